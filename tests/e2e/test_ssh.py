#!/usr/bin/env python3
"""Streams through a real sshd: addresses ssh://, `tributary connect`, and
forwards made by hand."""

import os
import signal
import socket
import subprocess
import sys

from harness import sshd, tap
from harness.case import Case, TEST_SOURCE
from harness.daemon import environment
from harness.ipc import listeners
from harness.loop import SCALE
from harness.trace import Trace

SOURCE = "test.library"
PACKETS = 100
# Where no -L or connect puts anything.
NOWHERE = "/nonexistent/socket"


class SshCase(Case):
    def setUp(self):
        super().setUp()
        if (reason := sshd.missing()) is not None:
            self.skipTest(reason)
        self.host = None

    def _show_logs(self):
        super()._show_logs()
        if getattr(self, "host", None) is not None:
            print("# sshd:", *self.host.log().splitlines()[-30:],
                  sep="\n#   ", file=sys.stderr)

    def sshd(self, **options):
        """The host that the daemon runs on; its logins find the daemon."""
        env = {
            "PATH": os.path.dirname(os.environ["TRIBUTARY"]) +
                    ":" + os.environ["PATH"],
            "PERFETTO_PRODUCER_SOCK_NAME": self.path("p"),
            "PERFETTO_CONSUMER_SOCK_NAME": self.path("c"),
            **options.pop("env", {})}
        self.host = sshd.Sshd(self.path("sshd"), env=env, **options)
        self.addCleanup(self.host.stop)
        return self.host.start(self.until)

    # -- programs --

    def run_program(self, argv, **env):
        path = self.path(f"stderr.{len(os.listdir(self.folder))}")
        with open(path, "wb") as err:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=err, cwd=self.folder,
                env=environment(**{**self.host.env(), **env}))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.errors = lambda: open(path, errors="replace").read()
        return process

    def ends(self, process, status=0):
        self.until(lambda: process.poll() is not None, "the program ends")
        self.assertEqual(process.returncode, status, process.errors())
        return process.errors()

    def recorder(self, address, name="t"):
        return self.run_program(
            [os.environ["TRIBUTARY"], "record", "-o", name, "-t", "0",
             "--connect", address, TEST_SOURCE])

    # -- what is recorded --

    def records_through(self, address):
        """The consumer comes through the tunnel."""
        with self.neighbour():
            recorder = self.recorder(address)
            producer = self.producer("p")
            producer.wait_started()
            producer.writer().number(3000)
            recorder.send_signal(signal.SIGINT)
            self.ends(recorder)
            producer.close()
        self.assert_numbers(Trace.from_file(self.path("t")), [3000])
        self.nothing_is_left()

    def produces_through(self, address, **env):
        """The producer comes through the tunnel; what the collector knows of
        it."""
        with self.neighbour():
            process = self.run_program(
                [os.environ["LIBRARY_PRODUCER"], address, str(PACKETS),
                 "12000"], **env)
            consumer = self.consumer()

            def offers():
                return [d for d in consumer.query().data_sources
                        if d.ds_descriptor.name == SOURCE]

            def is_there():
                self.assertIsNone(process.poll(), process.errors())
                return offers()

            self.until(is_there, "the producer is there")
            state = consumer.query()
            session = self.session(SOURCE, size_kb=16 * 1024,
                                   trace_all_machines=True)
            session.flush(60_000)
            session.stop()
            self.ends(process)
            trace = session.read()
            stats = session.stats()
            # Its end has to come through, too.
            self.until(lambda: not offers(), "the producer is gone")
        self.assert_numbers(trace, [PACKETS] * 2)
        self.assert_clean_stats(stats)
        self.nothing_is_left()
        return trace, next(p for p in state.producers
                           if p.name == "library_producer")

    def nothing_is_left(self):
        self.assertEqual(self.host.left_over(), [])

    def fails(self, address, *pieces, **env):
        """A recording ends with a sentence of these pieces, and whoever is
        connected does not notice."""
        with self.neighbour():
            process = self.run_program(
                [os.environ["TRIBUTARY"], "record", "-o", "t", "-t", "0",
                 "--connect", address, TEST_SOURCE], **env)
            errors = self.ends(process, 1)
        for piece in pieces:
            self.assertIn(piece, errors)
        self.nothing_is_left()
        return errors


class Addresses(SshCase):
    """ssh:// in our own programs."""

    def test_a_recording_through_a_socket_over_there(self):
        self.daemon()
        host = self.sshd()
        self.records_through(host.address(self.daemons[0].consumer_path))

    def test_a_recording_through_a_port_over_there(self):
        self.daemon(consumer=[self.path("c"), "127.0.0.1:0"])
        host = self.sshd()
        self.records_through(host.address(
            self.daemons[0].address("consumers", "tcp")))

    def test_a_recording_through_a_command_over_there(self):
        self.daemon()
        self.records_through(self.sshd().address())

    def test_a_recording_through_a_user_of_that_name(self):
        self.daemon()
        host = self.sshd()
        self.records_through(
            host.address().replace("ssh://", f"ssh://{host.user}@"))

    def test_a_recording_in_the_background(self):
        self.daemon()
        host = self.sshd()
        front = subprocess.Popen(
            [os.environ["TRIBUTARY"], "record", "-D", "-o", "t", "-t", "0",
             "--connect", host.address(self.daemons[0].consumer_path),
             TEST_SOURCE], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            cwd=self.folder, env=environment(**host.env()), text=True)
        producer = self.producer("p")
        producer.wait_started()
        self.until(lambda: front.poll() is not None, "the front ends")
        pid = int(front.stdout.read())
        front.stdout.close()
        producer.writer().number(100)
        os.kill(pid, signal.SIGINT)
        self.until(lambda: not os.path.exists(f"/proc/{pid}/exe"),
                   "the recording ends")
        self.assert_numbers(Trace.from_file(self.path("t")), [100])
        self.nothing_is_left()

    def test_a_command_through_a_connection_that_is_shared(self):
        """As ControlMaster keeps it: nobody is let in anew."""
        self.daemon()
        host = self.sshd()
        control = self.path("control")
        master = host.forward("-M", "-S", control)
        self.addCleanup(master.wait)
        self.addCleanup(master.kill)
        self.until(lambda: os.path.exists(control), "the master is there")
        with open(os.path.join(host.folder, "ssh_config"), "a") as file:
            file.write(f"  ControlPath {control}\n")
        host.authorize(public=sshd.make_key(self.path("other")))
        self.records_through(host.address())
        self.assertIsNone(master.poll(), "it is not ours to end")
        # A forward would stay behind in it: it has a connection of its own.
        self.fails(host.address(self.daemons[0].consumer_path),
                   "127.0.0.1 does not let us in")

    def test_a_producer_through_a_socket_over_there(self):
        self.daemon()
        host = self.sshd()
        self.produces_through(host.address(self.daemons[0].producer_path))

    def test_a_producer_through_a_port_over_there(self):
        self.daemon(producer=[self.path("p"), "127.0.0.1:0"])
        host = self.sshd()
        self.produces_through(host.address(
            self.daemons[0].address("producers", "tcp")))

    def test_a_producer_through_a_command_over_there(self):
        self.daemon()
        self.produces_through(self.sshd().address())

    def test_a_collector_that_dies_is_noticed_through_a_port(self):
        daemon = self.daemon(consumer=[self.path("c"), "127.0.0.1:0"])
        host = self.sshd()
        recorder = self.recorder(host.address(
            daemon.address("consumers", "tcp")))
        self.producer("p").wait_started()
        daemon.kill()
        self.assertIn("closed the connection", self.ends(recorder, 1))

    def test_a_collector_that_dies_is_noticed_through_a_command(self):
        daemon = self.daemon()
        recorder = self.recorder(self.sshd().address())
        self.producer("p").wait_started()
        daemon.kill()
        self.assertIn("closed the connection", self.ends(recorder, 1))


class ForcedCommand(SshCase):
    """authorized_keys says what a key may do: nothing else."""

    RESTRICT = 'restrict,command="tributary connect {}"'

    def host_with(self, words):
        self.daemon()
        return self.sshd(options=self.RESTRICT.format(words))

    def test_a_producer_where_forwarding_is_forbidden(self):
        host = self.host_with("producer")
        self.produces_through(host.address())

    def test_what_the_other_side_asks_for_plays_no_part(self):
        host = self.host_with("producer")
        self.fails(host.address(), "does not offer ConsumerPort")

    def test_the_other_side_chooses_from_a_list(self):
        host = self.host_with("--from-ssh-command producer,consumer")
        self.records_through(host.address())
        self.produces_through(host.address())

    def test_what_is_not_in_the_list_is_refused(self):
        host = self.host_with("--from-ssh-command producer,relay")
        self.fails(host.address(), "127.0.0.1 said: tributary connect: this "
                   "key may ask for producer,relay, not for",
                   "tributary connect consumer")

    def test_it_may_not_forward(self):
        host = self.host_with("producer")
        self.fails(host.address(self.daemons[0].consumer_path),
                   "did not connect to", "AllowStreamLocalForwarding",
                   "tributary connect")


class Accept(SshCase):
    """`tributary connect --accept`, for a collector that dials."""

    def setUp(self):
        super().setUp()
        self.daemon()
        self.sshd()
        self.socket = self.path("device")

    def dial(self, path=None):
        """As a collector does that reaches out: ssh, and its stream led to
        the producers' port."""
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(self.daemons[0].producer_path)
            process = subprocess.Popen(
                [self.host.wrapper, "-T", "-p", str(self.host.port),
                 "127.0.0.1",
                 f"tributary connect --accept={path or self.socket}"],
                stdin=stream, stdout=stream, stderr=subprocess.PIPE,
                env=environment(), text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def listens(self):
        self.until(lambda: os.path.exists(self.socket), "somebody listens")

    def test_one_producer_is_carried_and_then_it_ends(self):
        dial = self.dial()
        self.listens()
        self.produces_through(self.socket)
        self.assertEqual(dial.wait(60 * SCALE), 0, dial.stderr.read())
        self.assertEqual([n for n in os.listdir(self.folder)
                          if n.startswith("device")], [])

    def test_several_for_one_path_take_turns(self):
        dials = [self.dial() for _ in range(3)]
        for _ in range(3):
            self.listens()
            self.produces_through(self.socket)
        for dial in dials:
            self.assertEqual(dial.wait(60 * SCALE), 0, dial.stderr.read())

    def test_it_ends_with_the_ssh_that_started_it(self):
        first = self.dial()
        self.listens()
        self.host.kill_connections()
        first.wait(60 * SCALE)
        # The next one has its turn.
        self.dial()
        self.until(self.is_listened_at, "somebody listens again")
        self.produces_through(self.socket)

    def is_listened_at(self):
        return listeners(self.socket) == 1

    def test_a_collector_of_the_devices_own_is_left_alone(self):
        dial = self.dial(self.daemons[0].producer_path)
        with self.neighbour():
            self.assertEqual(dial.wait(60 * SCALE), 1)
        errors = dial.stderr.read()
        self.assertIn("tributary connect: ", errors)
        self.assertIn(self.daemons[0].producer_path, errors)


class AcceptWithoutSsh(Case):
    def test_a_producer_that_leaves_words_unread_is_no_error(self):
        path = self.path("device")
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = subprocess.Popen(
                [os.environ["TRIBUTARY"], "connect", f"--accept={path}"],
                stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
                env=environment(), text=True)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            self.until(lambda: os.path.exists(path), "somebody listens")
            with process.stderr, socket.socket(socket.AF_UNIX) as producer:
                producer.connect(path)
                ours.sendall(b"words")
                self.assertEqual(producer.recv(1), b"w")
                producer.close()
                self.assertEqual(process.stderr.read(), "")
                self.assertEqual(process.wait(60 * SCALE), 0)


class Dial(SshCase):
    """A collector that dials its devices, behind a real sshd."""

    def setUp(self):
        super().setUp()
        self.socket = self.path("device")

    def dials(self, target="", more=""):
        with open(self.path("conf"), "w") as file:
            file.write(f'dial {{ address: "{self.host.address(target)}" '
                       f"max_retry_ms: 200 {more} }}\n")
        self.daemon(flags=["--config", self.path("conf")],
                    env=self.host.env())

    def listens(self):
        self.until(lambda: listeners(self.socket),
                   "somebody listens on the device")

    def test_a_command_over_there_waits_for_producers_one_by_one(self):
        self.sshd()
        self.dials(more=f'command: "tributary connect --accept={self.socket}"'
                   ' machine_name: "the pump"')
        for _ in range(2):
            self.listens()
            _, producer = self.produces_through(self.socket)
            self.assertEqual(producer.machine_name, "the pump")

    def test_the_sshd_over_there_listens_for_all_producers(self):
        self.sshd()
        self.dials(self.socket, 'machine_name: "the pump"')
        for _ in range(2):
            self.listens()
            _, producer = self.produces_through(self.socket)
            self.assertEqual(producer.machine_name, "the pump")

    def test_an_sshd_that_may_not_listen_is_said(self):
        self.sshd(settings=["AllowStreamLocalForwarding no"])
        self.dials(self.socket)
        with self.neighbour():
            self.until(lambda: "the sshd of 127.0.0.1 cannot listen for us"
                       in self.daemons[0].log(), "the log says why")
        self.assertIn("AllowStreamLocalForwarding", self.daemons[0].log())

    def test_a_tunnel_that_breaks_is_dialled_again(self):
        self.sshd()
        self.dials(self.socket)
        with self.neighbour():
            self.listens()
            self.host.kill_connections()
            self.until(lambda: "dial ssh://" in self.daemons[0].log(),
                       "the log says so")
        self.listens()
        self.produces_through(self.socket)


class ByHand(SshCase):
    """ssh -L and -R, and any program of Perfetto's behind them."""

    def forwarded(self, *flags, path=None, port=None):
        forward = self.host.forward(*flags)
        self.addCleanup(forward.wait)
        self.addCleanup(forward.kill)

        def is_there():
            self.assertIsNone(forward.poll(), self.host.log())
            if path is not None:
                return os.path.exists(path)
            with open("/proc/net/tcp") as table:
                return f" 0100007F:{port:04X} 00000000:0000 0A" in table.read()

        self.until(is_there, "ssh listens")

    def numbers_through(self, address):
        """A producer as Perfetto's are: without a word about itself."""
        with self.neighbour():
            producer = self.producer("forwarded", ["forwarded"],
                                     address=address)
            consumer = self.session("forwarded", trace_all_machines=True)
            producer.writer().number(500)
            consumer.flush(60_000)
            consumer.stop()
            trace = consumer.read()
            producer.close()
        self.assert_numbers(trace, [500])

    def test_a_socket_here_for_a_socket_there(self):
        daemon = self.daemon()
        self.sshd()
        path = self.path("local")
        self.forwarded("-L", f"{path}:{daemon.producer_path}", path=path)
        self.numbers_through(path)
        self.produces_through(path)

    def test_a_port_here_for_a_socket_there(self):
        daemon = self.daemon()
        self.sshd()
        port = sshd.free_port()
        self.forwarded("-L", f"127.0.0.1:{port}:{daemon.producer_path}",
                       port=port)
        self.numbers_through(f"127.0.0.1:{port}")

    def test_a_port_here_for_a_port_there(self):
        daemon = self.daemon(producer=[self.path("p"), "127.0.0.1:0"])
        self.sshd()
        port = sshd.free_port()
        self.forwarded("-L", f"127.0.0.1:{port}:" +
                       daemon.address("producers", "tcp"), port=port)
        self.numbers_through(f"127.0.0.1:{port}")

    def test_a_socket_there_for_a_socket_here(self):
        daemon = self.daemon()
        self.sshd()
        path = self.path("remote")
        self.forwarded("-R", f"{path}:{daemon.producer_path}", path=path)
        self.numbers_through(path)
        self.produces_through(path)

    def test_a_port_there_for_a_port_here(self):
        daemon = self.daemon(producer=[self.path("p"), "127.0.0.1:0"])
        self.sshd()
        port = sshd.free_port()
        self.forwarded("-R", f"127.0.0.1:{port}:" +
                       daemon.address("producers", "tcp"), port=port)
        self.numbers_through(f"127.0.0.1:{port}")

    def test_a_recording_through_a_socket_that_was_forwarded(self):
        daemon = self.daemon()
        self.sshd()
        path = self.path("local")
        self.forwarded("-L", f"{path}:{daemon.consumer_path}", path=path)
        self.records_through(path)


class Sentences(SshCase):
    """What is said when it fails: which side, which file, what to do."""

    def setUp(self):
        super().setUp()
        self.daemon()

    def consumer_address(self):
        return self.host.address(self.daemons[0].consumer_path)

    def test_a_host_key_that_is_not_known(self):
        self.sshd()
        os.unlink(self.host.known_hosts)
        self.fails(self.consumer_address(),
                   "the host key of 127.0.0.1 is not known on this machine",
                   f"ssh -p {self.host.port} 127.0.0.1", "known_hosts")
        self.fails(self.host.address(), "is not known on this machine")

    def test_a_host_key_that_changed(self):
        self.sshd()
        self.host.know(sshd.make_key(self.path("other")))
        self.fails(self.consumer_address(),
                   "the host key of 127.0.0.1 is not the one in " +
                   self.host.known_hosts + ":1",
                   f"ssh-keygen -R '[127.0.0.1]:{self.host.port}'")

    def test_a_key_that_is_not_let_in(self):
        self.sshd()
        self.host.authorize(public=sshd.make_key(self.path("other")))
        self.fails(self.consumer_address(), "127.0.0.1 does not let us in",
                   "Permission denied (publickey)",
                   "~/.ssh/authorized_keys there")

    def test_nobody_at_the_port(self):
        self.sshd()
        self.host.stop()
        self.fails(self.consumer_address(),
                   f"no sshd answers at port {self.host.port} of 127.0.0.1")

    def test_a_name_that_does_not_resolve(self):
        self.sshd()
        self.fails("ssh://no-such-host.invalid/x.sock",
                   "this machine cannot find no-such-host.invalid")

    def test_forwarding_of_sockets_that_is_forbidden(self):
        self.sshd(settings=["AllowStreamLocalForwarding no"])
        self.fails(self.consumer_address(),
                   "the sshd of 127.0.0.1 did not connect to " +
                   self.daemons[0].consumer_path,
                   "AllowStreamLocalForwarding")

    def test_forwarding_of_ports_that_is_forbidden(self):
        self.sshd(settings=["AllowTcpForwarding no"])
        self.fails(self.host.address("127.0.0.1:7443"),
                   "may not forward to 127.0.0.1:7443", "AllowTcpForwarding",
                   "/etc/ssh/sshd_config there", "tributary connect")

    def test_a_port_that_is_not_permitted(self):
        self.sshd(settings=["PermitOpen 127.0.0.1:1"])
        self.fails(self.host.address("127.0.0.1:7443"),
                   "may not forward to 127.0.0.1:7443", "PermitOpen")

    def test_nobody_at_the_socket_over_there(self):
        self.sshd()
        self.fails(self.host.address(NOWHERE),
                   f"did not connect to {NOWHERE}", "no program listens there")

    def test_nobody_at_the_port_over_there(self):
        self.sshd()
        self.fails(self.host.address(f"127.0.0.1:{sshd.free_port()}"),
                   "let us in, but no program listens at 127.0.0.1:")

    def test_a_command_that_is_not_there(self):
        self.sshd(env={"PATH": "/usr/bin:/bin"})
        self.fails(self.host.address(),
                   "let us in, but does not find the command",
                   "install tributary on 127.0.0.1")

    def test_nobody_behind_the_command_over_there(self):
        self.sshd(env={"PERFETTO_CONSUMER_SOCK_NAME": NOWHERE})
        self.fails(self.host.address(),
                   "127.0.0.1 said: tributary connect: no daemon listens at " +
                   NOWHERE)

    def test_no_ssh_on_this_machine(self):
        self.sshd()
        self.fails(self.consumer_address(), "cannot start /nonexistent/ssh",
                   "install OpenSSH's client",
                   TRIBUTARY_SSH="/nonexistent/ssh")

    def test_a_tunnel_that_breaks_while_it_records(self):
        self.sshd()
        recorder = self.recorder(self.consumer_address())
        self.producer("p").wait_started()
        with self.neighbour():
            self.host.kill_connections()
            errors = self.ends(recorder, 1)
        self.assertIn("127.0.0.1", errors)


if __name__ == "__main__":
    sys.exit(tap.main())
