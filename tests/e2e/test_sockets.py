#!/usr/bin/env python3
"""The program itself: flags, settings, sockets, start and end."""

import os
import resource
import signal
import socket
import stat
import subprocess
import sys

from harness import tap
from harness.case import Case
from harness.daemon import environment
from harness.loop import SCALE

BINARY = os.environ["TRIBUTARYD"]


class Program(Case):
    def run_daemon(self, *flags, env=None, timeout=60):
        """For what is expected to end at once: (status, output)."""
        done = subprocess.run(
            [BINARY, *flags], stdin=subprocess.DEVNULL, timeout=timeout * SCALE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment(**(env or {})))
        return done.returncode, done.stdout

    def refuse(self, *flags, words=()):
        """It does not start, and says why in words for people."""
        status, output = self.run_daemon(
            *flags, *([] if "--consumer-socket" in flags else
                      ["--consumer-socket", self.path("unused")]))
        self.assertGreater(status, 0, output)
        for word in words:
            self.assertIn(word, output)
        return output


class Flags(Program):
    def test_help_names_every_flag(self):
        status, output = self.run_daemon("--help")
        self.assertEqual(status, 0)
        for flag in ("--producer-socket", "--consumer-socket", "--trace-dir",
                     "--config", "--check-config", "--log-level",
                     "--background", "--version", "--enable-relay-endpoint",
                     "--set-socket-permissions", "--allow-remote",
                     "--allow-plain-consumer", "--tls-dir", "--user",
                     "--seccomp"):
            self.assertIn(flag, output)

    def test_version_is_printed(self):
        status, output = self.run_daemon("--version")
        self.assertEqual(status, 0)
        self.assertRegex(output, r"\d+\.\d+")

    def test_unknown_flags_and_missing_values_are_errors(self):
        self.assertIn("--no-such-flag", self.refuse("--no-such-flag"))
        status, output = self.run_daemon("--producer-socket")
        self.assertNotEqual(status, 0)
        self.assertTrue(output)
        self.refuse("--log-level", "loud", words=["loud"])
        self.refuse("stray")

    def test_settings_are_checked_with_line_and_column(self):
        good = self.path("good")
        with open(good, "w") as file:
            file.write('# ours\ntrace_dir: "/tmp"\n'
                       'limits { max_sessions: 4 }\n')
        status, output = self.run_daemon("--config", good, "--check-config")
        self.assertEqual(status, 0, output)
        bad = self.path("bad")
        for text, line, column, word in (
                ('trace_dir: "/tmp"\ntrace_dirr: 3\n', 2, 1, "trace_dirr"),
                ("limits {\n  max_sessions: many\n}\n", 2, 17, "many"),
                ("limits { max_sessions: -1 }\n", 1, 24, "-1"),
                ("limits {\n", 2, 1, "")):
            with self.subTest(text):
                with open(bad, "w") as file:
                    file.write(text)
                status, output = self.run_daemon("--config", bad,
                                                 "--check-config")
                self.assertNotEqual(status, 0)
                self.assertIn(f"{bad}:{line}", output)
                self.assertIn(word, output)
                if column > 1:
                    self.assertIn(f"{bad}:{line}:{column}", output)
        status, output = self.run_daemon("--config", self.path("none"),
                                         "--check-config")
        self.assertNotEqual(status, 0)
        self.assertIn(self.path("none"), output)

    def test_settings_open_the_sockets_they_name(self):
        path = self.path("settings")
        with open(path, "w") as file:
            file.write(f'producer_socket: "{self.path("sp")}"\n'
                       f'consumer_socket: "{self.path("sc")}"\n')
        process = subprocess.Popen(
            [BINARY, "--config", path], env=environment(),
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.until(lambda: os.path.exists(self.path("sc")), "the socket")
            self.producer("p", address=self.path("sp"))
            state = self.consumer(self.path("sc")).query()
            self.assertEqual([p.name for p in state.producers], ["p"])
        finally:
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(60 * SCALE), 0)

    def test_the_environment_names_the_sockets_as_for_traced(self):
        notify_read, notify_write = os.pipe()
        process = subprocess.Popen(
            [BINARY], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=[notify_write], env=environment(
                PERFETTO_PRODUCER_SOCK_NAME=f"{self.path('e1')},"
                                            f"{self.path('e2')}",
                PERFETTO_CONSUMER_SOCK_NAME="@" + self.path("abstract"),
                TRACED_NOTIFY_FD=str(notify_write)))
        os.close(notify_write)
        try:
            self.assertEqual(os.read(notify_read, 16), b"1")
            self.assertEqual(os.read(notify_read, 16), b"")
            self.producer("one", address=self.path("e1"))
            self.producer("two", address=self.path("e2"))
            state = self.consumer("@" + self.path("abstract")).query()
            self.assertEqual(sorted(p.name for p in state.producers),
                             ["one", "two"])
        finally:
            os.close(notify_read)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(60 * SCALE), 0)

    def test_systemd_is_told_when_it_is_ready_and_when_it_stops(self):
        path = self.path("notify")
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(path)
        notify.settimeout(60 * SCALE)
        daemon = self.daemon(env={"NOTIFY_SOCKET": path})
        self.assertIn(b"READY=1", notify.recv(4096))
        daemon.stop()
        notify.close()

    def test_it_starts_in_well_under_a_tenth_of_a_second(self):
        if SCALE > 1:
            self.skipTest("a sanitizer build starts slower")
        times = []
        for n in range(5):
            daemon = self.daemon(producer=[self.path(f"p{n}")],
                                 consumer=[self.path(f"c{n}")])
            times.append(daemon.cpu())
        self.assertLess(min(times), 0.1, times)

    def test_in_the_background_it_serves_after_the_parent_has_ended(self):
        status, output = self.run_daemon(
            "--background", "--producer-socket", self.path("p"),
            "--consumer-socket", self.path("c"))
        self.assertEqual(status, 0, output)
        state = self.until(lambda: os.path.exists(self.path("c")) and
                           self.consumer(self.path("c")), "it serves")
        pid = int.from_bytes(state.sock.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)
        state.query()
        os.kill(pid, signal.SIGTERM)
        state.wait_closed()
        self.until(lambda: not os.path.exists(self.path("c")), "it ends")

    def test_in_the_background_the_process_id_comes_before_the_log(self):
        self.daemon()
        log = ["--log-level", "debug"]
        for program, word, arguments in (
                ("TRIBUTARYD", "listening",
                 ["--producer-socket", self.path("bg"),
                  "--consumer-socket", self.path("bg-c")]),
                ("TRIBUTARY_RELAY", "listening",
                 ["--to", self.path("p"), "--state-dir", self.path("state"),
                  "--producer-socket", self.path("bg-r")]),
                ("TRIBUTARY_PROBES", "",
                 ["--producer-socket", self.path("p")])):
            with self.subTest(program=program), \
                    open(self.path("out"), "w+") as out:
                status = subprocess.run(
                    [os.environ[program], "--background", *log, *arguments],
                    stdin=subprocess.DEVNULL, stdout=out,
                    stderr=subprocess.STDOUT, env=environment(),
                    timeout=60 * SCALE).returncode
                said = open(self.path("out")).read()
                self.assertEqual(status, 0, said)
                pid = int(said.splitlines()[0])
                # The file is the daemon's log from here on.
                os.kill(pid, signal.SIGTERM)
                self.until(lambda: not os.path.exists(f"/proc/{pid}") or
                           open(f"/proc/{pid}/stat").read().split()[2] == "Z",
                           "it ends")
                self.assertIn(word, open(self.path("out")).read())

    def test_in_the_background_a_failure_is_told_and_no_process_id(self):
        status, output = self.run_daemon(
            "--background", "--producer-socket", self.path("no/such/folder"),
            "--consumer-socket", self.path("c"))
        self.assertEqual(status, 1)
        self.assertIn("no/such/folder", output)
        self.assertFalse(output.splitlines()[0].isdigit(), output)


class Sockets(Program):
    def test_a_stale_socket_is_replaced(self):
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(self.path("p"))
        stale.close()
        self.daemon()
        self.producer("p").sync()

    def test_a_socket_that_is_taken_is_refused_and_its_owner_unharmed(self):
        self.daemon()
        with self.neighbour():
            self.refuse("--producer-socket", self.path("p"),
                        words=[self.path("p")])
            self.refuse("--consumer-socket", self.path("c"),
                        "--producer-socket", self.path("other"),
                        words=[self.path("c")])
        # The sockets are still there: somebody new gets in.
        self.producer("next").sync()

    def test_a_tcp_port_that_is_taken_is_refused(self):
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        self.refuse("--producer-socket", f"127.0.0.1:{port}",
                    words=[f"127.0.0.1:{port}"])
        taken.close()

    def test_a_path_that_is_too_long_is_refused(self):
        long = self.path("x" * 120)
        self.refuse("--producer-socket", long, words=["long"])
        self.refuse("--producer-socket", "@" + "x" * 120, words=["long"])

    def test_a_plain_file_is_not_removed(self):
        path = self.path("plain")
        with open(path, "w") as file:
            file.write("precious")
        self.refuse("--producer-socket", path, words=[path])
        with open(path) as file:
            self.assertEqual(file.read(), "precious")
        os.mkdir(self.path("folder"))
        self.refuse("--producer-socket", self.path("folder"),
                    words=[self.path("folder")])
        os.symlink(path, self.path("link"))
        self.refuse("--producer-socket", self.path("link"))
        with open(path) as file:
            self.assertEqual(file.read(), "precious")

    def test_a_folder_that_is_not_there_is_named(self):
        path = self.path("no/such/socket")
        self.refuse("--producer-socket", path, words=[path])

    def test_addresses_that_make_no_sense_are_refused(self):
        for bad in ("", "localhost:", ":", "127.0.0.1:99999", "[::1",
                    "vsock://x:y", "vsock://1", "nowhere.invalid:1",
                    "tls://host:1", "ssh://host", "127.0.0.1:port"):
            with self.subTest(bad):
                self.refuse("--producer-socket", bad)

    def test_an_address_off_the_loopback_is_refused_and_says_the_flag(self):
        for flag in ("--producer-socket", "--consumer-socket"):
            for address in ("0.0.0.0:0", "[::]:0"):
                with self.subTest(flag=flag, address=address):
                    output = self.refuse(flag, address)
                    self.assertIn("--allow-remote", output)
        output = self.refuse("--consumer-socket", "0.0.0.0:0",
                             "--allow-plain-consumer", "0.0.0.0:0")
        self.assertIn("--allow-remote 0.0.0.0:0", output)

    def test_a_plain_consumer_socket_is_refused_and_says_the_flag(self):
        for address in ("127.0.0.1:0", "[::1]:0", "vsock://1:20002"):
            with self.subTest(address):
                output = self.refuse("--consumer-socket", address)
                self.assertIn(f"--allow-plain-consumer {address}", output)
                self.assertIn("allow_plain_consumer: true", output)
        status, output = self.run_daemon(
            "--producer-socket", self.path("p"), env={
                "PERFETTO_CONSUMER_SOCK_NAME": "127.0.0.1:0"})
        self.assertEqual(status, 1)
        self.assertIn("--allow-plain-consumer 127.0.0.1:0", output)

    def test_a_plain_consumer_socket_is_permitted_by_flag_or_setting(self):
        daemon = self.daemon(consumer=["127.0.0.1:0"])
        self.consumer(daemon.address("consumers", "tcp")).query()
        daemon.stop()
        with open(self.path("conf"), "w") as file:
            file.write('listen { address: "127.0.0.1:0" port: CONSUMER '
                       'allow_plain_consumer: true }')
        for env in ({}, {"PERFETTO_CONSUMER_SOCK_NAME": "127.0.0.1:0"}):
            status, output = self.run_daemon(
                "--check-config", "--config", self.path("conf"),
                "--producer-socket", self.path("p"), env=env)
            self.assertEqual((status, output), (0, "OK\n"))

    def test_a_tls_socket_without_certificates_is_refused(self):
        for flag in ("--producer-socket", "--consumer-socket"):
            self.refuse(flag, "tls://127.0.0.1:0",
                        words=["tls://127.0.0.1:0", "--tls-dir",
                               "tributary cert init"])

    def test_the_flag_allows_that_one_address(self):
        daemon = self.daemon(producer=["0.0.0.0:0", self.path("p")],
                             flags=["--allow-remote", "0.0.0.0:0"])
        port = daemon.address("producers", "tcp").rsplit(":", 1)[1]
        self.producer("p", address=f"127.0.0.1:{port}").sync()
        self.refuse("--producer-socket", "[::]:0",
                    "--allow-remote", "0.0.0.0:0", words=["--allow-remote"])

    def test_both_ports_serve_on_every_kind_of_socket(self):
        daemon = self.daemon(
            producer=[self.path("p"), "@" + self.path("ap"), "127.0.0.1:0",
                      "[::1]:0"],
            consumer=[self.path("c"), "@" + self.path("ac"), "127.0.0.1:0",
                      "[::1]:0"])
        names = []
        for address in daemon.addresses("producers"):
            names.append(f"on {address}")
            self.producer(names[-1], address=address).sync()
        self.assertEqual(len(names), 4)
        for address in daemon.addresses("consumers"):
            state = self.consumer(address).query()
            self.assertEqual([p.name for p in state.producers], names)

    def test_vsock_serves_where_the_kernel_has_it(self):
        try:
            probe = socket.socket(socket.AF_VSOCK)
            probe.bind((socket.VMADDR_CID_ANY, 2**32 - 1))
            probe.listen()
            client = socket.socket(socket.AF_VSOCK)
            client.settimeout(2)
            client.connect((1, probe.getsockname()[1]))  # 1: this machine
            client.close()
            probe.close()
        except OSError as error:
            self.skipTest(f"no vsock to this machine itself: {error}")
        port = 51000 + os.getpid() % 1000
        daemon = self.daemon(
            producer=[self.path("p"), f"vsock://1:{port}"])
        self.producer("p", address=f"vsock:1:{port}").sync()
        del daemon

    def test_permissions_are_set_as_asked(self):
        import grp
        group = grp.getgrgid(os.getgid()).gr_name
        self.daemon(flags=["--set-socket-permissions",
                           f"{group}:0620:{group}:0600"])
        self.assertEqual(stat.S_IMODE(os.stat(self.path("p")).st_mode), 0o620)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("c")).st_mode), 0o600)

    def test_bad_permissions_are_refused(self):
        for bad in ("x", "::", "no-such-group:0600:no-such-group:0600",
                    "root:9999:root:0600"):
            self.refuse("--producer-socket", self.path("p"),
                        "--set-socket-permissions", bad)

    def test_out_of_descriptors_it_pauses_and_recovers(self):
        limit = 64
        self.daemon(limits=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (limit, limit)))
        with self.neighbour():
            address = self.path("p")
            many = []
            for _ in range(limit + 20):
                sock = socket.socket(socket.AF_UNIX)
                sock.setblocking(False)
                try:
                    sock.connect(address)
                except BlockingIOError:
                    pass
                many.append(sock)
            before = self.daemons[0].cpu()
            self.loop.settle(0.5)
            self.assertLess(self.daemons[0].cpu() - before, 0.3,
                            "it spins on accept")
            for sock in many:
                sock.close()
        self.producer("later").sync()

    def test_a_forwarded_socket_passes_no_descriptors(self):
        """Its clients come through a tunnel: no shared memory, and what they
        claim is a label."""
        with open(self.path("conf"), "w") as file:
            file.write(f'listen {{ address: "{self.path("f")}" '
                       'port: PRODUCER forwarded: true }')
        # Named by a flag, too: the file still says what it is.
        self.daemon(producer=[self.path("f"), "127.0.0.1:0"],
                    flags=["--config", self.path("conf")])
        with self.neighbour("tcp"):
            producer = self.producer(
                "far", ["far"], address=self.path("f"),
                identity={"machine_name": "elsewhere"})
            self.assertTrue(producer.settings.use_shmem_emulation)
            consumer = self.session("far", trace_all_machines=True)
            producer.writer().number(100)
            consumer.stop()
            self.assert_numbers(consumer.read(), [100])
            self.assertIsNone(producer.shm)
            found, = [p for p in self.consumer().query().producers
                      if p.name == "far"]
            self.assertEqual(found.machine_name, "elsewhere")

    def test_sigint_ends_it_as_sigterm_does(self):
        daemon = self.daemon()
        daemon.signal(signal.SIGINT)
        self.assertEqual(daemon.wait(), 0)
        self.assertFalse(os.path.exists(self.path("p")))


if __name__ == "__main__":
    sys.exit(tap.main())
