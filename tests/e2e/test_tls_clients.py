#!/usr/bin/env python3
"""`tributary record` and `tributary-probes` over TLS, with certificates of
`tributary cert`: what works as on a local socket, and what people read when it
does not."""

import atexit
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from harness import tap, tls
from harness.case import Case, TEST_SOURCE
from harness.certs import Authority
from harness.daemon import SANITIZER_LINES, environment
from harness.pki import Pki
from harness.trace import Trace

TRIBUTARY = os.environ["TRIBUTARY"]
PROBES = os.environ["TRIBUTARY_PROBES"]


class Command:
    """One of our programs, running; its output is in a file."""

    def __init__(self, case, *argv, stdout=None, **env):
        self.case = case
        self.path = case.path(f"said.{id(self)}")
        with open(self.path, "wb") as err:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=stdout or err,
                stderr=err, cwd=case.folder,
                env=environment(HOME=case.folder, **env))
        case.addCleanup(self.process.wait)
        case.addCleanup(self.process.kill)

    @property
    def said(self):
        with open(self.path, errors="replace") as file:
            return file.read()

    def says(self, text):
        self.case.until(lambda: text in self.said, f"it says {text!r}")

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def end(self, status=0):
        self.case.until(lambda: self.process.poll() is not None,
                        "the program ends")
        self.case.assertEqual(self.process.returncode, status, self.said)
        for line in SANITIZER_LINES:
            self.case.assertNotIn(line, self.said)
        return self.said


@functools.cache
def certificates():
    """A CA, a device and a person of it: the same for all tests."""
    folder = tempfile.mkdtemp(prefix="trib", dir="/tmp")
    atexit.register(shutil.rmtree, folder)
    ca = Authority(os.path.join(folder, "ca"))
    return ca, ca.issue("device-7"), ca.issue("ann", "consumer")


class TlsCase(Case):
    """A daemon on UNIX sockets and on TLS, with a CA of ours."""

    def setUp(self):
        super().setUp()
        self.ca, self.device, self.ann = certificates()

    def start(self, folder=None, *flags):
        return self.daemon(
            producer=[self.path("p"), "tls://127.0.0.1:0"],
            consumer=[self.path("c"), "tls://127.0.0.1:0"],
            flags=["--tls-dir", folder or self.ca.folder, *flags])

    def address(self, port, host="localhost"):
        found = self.daemons[0].address(port, "tls")
        return f"tls://{host}:{found.rsplit(':', 1)[1]}"

    def tls_producer(self, *args, **options):
        return self.producer(*args, address=tls.Address(
            self.address("producers"), self.device), **options)

    def record(self, *args, folder=None, address=None, name=None, **options):
        """With Ann's certificate, where no other is named."""
        if name is not None:
            args = ("--tls-name", name, *args)
        return Command(self, TRIBUTARY, "record", "--connect",
                       address or self.address("consumers"), "--tls-dir",
                       folder or self.ann, *args, **options)

    def config(self, text, size_kb=4096):
        path = self.path("config.pbtx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""
                buffers {{ size_kb: {size_kb} }}
                data_sources {{ config {{ name: "{TEST_SOURCE}" }} }}
                {text}""")
        return path

    def trace(self, name="t"):
        return Trace.from_file(self.path(name))


class Sessions(TlsCase):
    def test_who_comes_again_resumes_and_may_do_the_same(self):
        """Several connections of one program: `tributary forward`."""
        daemon = self.start(None, "--log-level", "debug")
        there = self.path("forwarded")
        forward = Command(self, TRIBUTARY, "forward", "--to",
                          self.address("producers"), "--tls-dir", self.device,
                          "--listen", there)
        forward.says("forwarding producers")
        self.producer("first", address=there).close()
        self.assertIn("TLSv1.3", daemon.log())
        self.assertNotIn("resumed", daemon.log())
        self.producer("second", address=there)
        self.assertIn(", resumed", daemon.log())
        # Its certificate is not sent again, and still lets it be a producer.
        consumer = self.consumer()
        names = {p.name for p in consumer.query().producers}
        self.assertIn("second", names)


class Recordings(TlsCase):
    def setUp(self):
        super().setUp()
        self.start()

    def test_a_recording_over_tls_is_whole(self):
        recording = self.record("-o", "t", "-t", "0", TEST_SOURCE)
        producer = self.producer("p")
        producer.wait_started()
        producer.writer().number(5000)
        recording.interrupt()
        said = recording.end()
        self.assert_numbers(self.trace(), [5000])
        self.assert_clean_stats(self.trace().stats())
        self.assertIn("Lost            nothing", said)

    def test_both_sides_over_tls(self):
        recording = self.record("-o", "t", "-t", "0", "--all-machines",
                                TEST_SOURCE)
        producer = self.tls_producer("p")
        producer.wait_started()
        producer.writer().number(500)
        recording.interrupt()
        recording.end()
        self.assert_numbers(self.trace(), [500])

    def test_the_folder_is_found_by_itself(self):
        """~/.config/tributary/tls, and the variable before it."""
        found = self.path(".config/tributary/tls")
        shutil.copytree(self.ann, found)
        producer = self.producer("p")
        for env in ({}, {"TRIBUTARY_TLS_DIR": self.ann}):
            if env:
                shutil.rmtree(found)
            recording = Command(self, TRIBUTARY, "record", "--connect",
                                self.address("consumers"), "-o", "t", "-t",
                                "0", TEST_SOURCE, **env)
            producer.wait_started()
            producer.writer().number(20)
            recording.interrupt()
            recording.end()
            self.assert_numbers(self.trace(), [20])

    def test_a_config_that_writes_into_a_file_streams_instead(self):
        """The command line of a local recording, and the same packets."""
        config = self.config("write_into_file: true "
                             "file_write_period_ms: 100")
        for address in (self.path("c"), self.address("consumers")):
            argv = [TRIBUTARY, "record", "-c", config, "-o", "t"]
            recording = Command(self, *argv, TRIBUTARY_TLS_DIR=self.ann,
                                PERFETTO_CONSUMER_SOCK_NAME=address)
            producer = self.producer("p")
            producer.wait_started()
            writer = producer.writer()
            writer.number(2000)
            # It is in the file while the session goes on.
            self.until(lambda: os.path.getsize(self.path("t")) > 2000,
                       "the file grows")
            self.assertIsNone(recording.process.poll())
            writer.number(2000)
            recording.interrupt()
            recording.end()
            self.assert_numbers(self.trace(), [4000])
            self.assert_clean_stats(self.trace().stats())
            producer.close()

    def test_a_size_limit_holds(self):
        config = self.config("write_into_file: true "
                             "file_write_period_ms: 100 "
                             "max_file_size_bytes: 65536")
        recording = self.record("-c", config, "-o", "t")
        producer = self.producer("p")
        producer.wait_started()
        producer.writer().number(4000)
        recording.end()
        self.assertLessEqual(os.path.getsize(self.path("t")), 65536)
        (numbers,) = self.trace().numbers().values()
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertGreater(len(numbers), 100)

    def test_more_than_the_buffer_holds_is_read_in_time(self):
        """256 KiB of buffer, and ten times that in packets."""
        config = self.config("write_into_file: true "
                             "file_write_period_ms: 100", size_kb=256)
        recording = self.record("-c", config, "-o", "t")
        producer = self.producer("p")
        producer.wait_started()
        writer = producer.writer()
        numbers = 0
        while numbers < 60000:
            writer.number(2000)
            numbers += 2000
            # Packets of what was written so far are in the file: no more is
            # in the buffer than was written since.
            size = os.path.getsize(self.path("t"))
            self.until(lambda: os.path.getsize(self.path("t")) > size,
                       "the file grows")
        recording.interrupt()
        recording.end()
        self.assert_numbers(self.trace(), [numbers])

    def test_standard_output(self):
        recording = self.record("-q", "-o", "-", "-t", "0", "-s", "10mb",
                                TEST_SOURCE, stdout=subprocess.PIPE)
        self.addCleanup(recording.process.stdout.close)
        producer = self.producer("p")
        producer.wait_started()
        producer.writer().number(3000)
        recording.interrupt()
        data = bytearray()
        os.set_blocking(recording.process.stdout.fileno(), False)

        def read_all():
            data.extend(recording.process.stdout.read() or b"")
            return recording.process.poll() is not None

        self.until(read_all, "all comes out of the pipe")
        read_all()
        self.assertEqual(recording.end(), "")
        self.assert_numbers(Trace.from_bytes(bytes(data)), [3000])

    def test_in_the_background(self):
        recording = self.record("-D", "-o", "t", "-t", "0", "-s", "10mb",
                                TEST_SOURCE)
        producer = self.producer("p")
        said = recording.end()
        pid = int(said.splitlines()[0])
        self.assertTrue(producer.started)
        producer.writer().number(300)
        os.kill(pid, signal.SIGTERM)
        self.until(lambda: not os.path.exists(f"/proc/{pid}"),
                   "the recording ends")
        self.assert_numbers(self.trace(), [300])

    def test_a_forwarded_socket_streams_too(self):
        """A forwarder that nobody knows drops descriptors without a word."""
        path = self.path("forwarded")
        with forwarder(path, self.path("c")):
            recording = Command(
                self, TRIBUTARY, "record", "--connect", path, "-c",
                self.config("write_into_file: true"), "-o", "t")
            producer = self.producer("p")
            producer.wait_started()
            producer.writer().number(700)
            recording.interrupt()
            recording.end()
        self.assert_numbers(self.trace(), [700])


class forwarder:
    """Carries the bytes, and nothing but the bytes, of one UNIX socket to
    another, as a tunnel does."""

    def __init__(self, path, target):
        self.target = target
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.sockets = [self.listener]

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()

    def __exit__(self, *_):
        for sock in self.sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    def _accept(self):
        try:
            while True:
                here, _ = self.listener.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(self.target)
                self.sockets += [here, there]
                for a, b in ((here, there), (there, here)):
                    threading.Thread(target=self._carry, args=(a, b),
                                     daemon=True).start()
        except OSError:
            pass

    @staticmethod
    def _carry(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class ProbesOverTls(TlsCase):
    def setUp(self):
        super().setUp()
        self.start()

    def probes(self, *flags, folder=None, address=None):
        return Command(self, PROBES, "--producer-socket",
                       address or self.address("producers"), "--tls-dir",
                       folder or self.device, *flags)

    def test_a_device_is_recorded_from_elsewhere(self):
        probes = self.probes()
        probes.says("connected to tls://localhost:")
        recording = self.record("-o", "t", "-t", "0", "--all-machines",
                                "linux.sys_stats", "linux.process_stats")
        self.until(lambda: "started with 2 data sources" in
                   self.daemons[0].log(), "both data sources start")
        recording.interrupt()
        said = recording.end()
        self.assertIn("tributary-probes", said)
        trace = self.trace()
        packets = trace.of("sys_stats")
        self.assertTrue(packets)
        machines = {p.machine_id for p in packets}
        self.assertEqual(len(machines), 1)
        self.assertNotIn(0, machines)
        self.assertTrue(trace.of("process_tree"))
        # The certificate is who the peer is.
        self.assertIn("device-7 at 127.0.0.1:", self.daemons[0].log())
        probes.process.terminate()
        probes.end()

    def test_without_all_machines_it_says_how(self):
        self.probes().says("connected to tls://localhost:")
        recording = self.record("-o", "t", "-t", "0", "linux.sys_stats")
        recording.says("--all-machines")
        recording.interrupt()
        recording.end()

    def test_a_consumer_is_no_producer(self):
        with self.neighbour():
            probes = self.probes(folder=self.ann)
            probes.says('the certificate "ann" may be consumer, not producer')
            probes.says("trying again")
        probes.process.terminate()
        probes.end()

    def test_one_that_is_revoked_learns_why(self):
        folder = self.ca.issue("stolen")
        probes = self.probes(folder=folder)
        probes.says("connected to tls://localhost:")
        with self.neighbour():
            self.ca.revoke("stolen", "--reason", "key-compromise")
            probes.says("is revoked: have a new one issued; trying again")
        self.assertIn("stolen at 127.0.0.1:", self.daemons[0].log())
        probes.process.terminate()
        probes.end()

    def test_a_certificate_that_comes_later_is_taken(self):
        """The probes go on trying, and read the files anew each time."""
        folder = self.path("tls")
        probes = self.probes(folder=folder)
        probes.says(folder)
        shutil.copytree(self.device, folder)
        probes.says("connected to tls://localhost:")
        probes.process.terminate()
        probes.end()


class Refusal(TlsCase):
    """Each: what is read, exit status 1, no file, an unharmed neighbour."""

    def refused(self, *sentences, **options):
        with self.neighbour():
            said = self.record("-o", "t", "-t", "1s", TEST_SOURCE,
                               **options).end(status=1)
        for sentence in sentences:
            self.assertIn(sentence, said.splitlines()[-1])
        # One sentence, after warnings about our own files, if any.
        *warnings, last = said.splitlines()
        self.assertTrue(last.startswith("tributary: "), said)
        for line in warnings:
            self.assertIn(" tributary warn  ", line)
        self.assertNotIn("\\x", said)
        self.assertFalse(os.path.exists(self.path("t")))
        if os.environ.get("SHOW"):
            print("#", said, flush=True)
        return said

class Refusals(Refusal):
    """What is wrong with us, or with what we were told."""

    def setUp(self):
        super().setUp()
        self.start()

    def mixed(self, name, ca, cert):
        """Files of two owners."""
        folder = self.path(name)
        os.mkdir(folder, 0o700)
        shutil.copy(os.path.join(ca, "ca.pem"), folder)
        shutil.copy(os.path.join(cert, "cert.pem"), folder)
        shutil.copy(os.path.join(cert, "key.pem"), folder)
        return folder

    def logged(self, text):
        self.until(lambda: text in self.daemons[0].log(), f"{text!r} is "
                   "logged")

    def test_a_producer_on_the_consumer_port(self):
        self.refused('the certificate "device-7" may be producer, not '
                     "consumer", "--role consumer", folder=self.device)

    def test_the_collectors_own_certificate_records_nothing(self):
        self.refused("not consumer", folder=self.ca.folder)

    def test_a_collector_of_another_ca(self):
        other = Authority(self.path("other"))
        folder = other.issue("ann", "consumer")
        self.refused("is not signed by anyone in", folder + "/ca.pem",
                     folder=folder)

    def test_a_certificate_of_another_ca(self):
        other = Authority(self.path("other"))
        folder = self.mixed("mixed", self.ann, other.issue("ann", "admin"))
        self.refused("our certificate", "cert.pem", folder=folder)
        self.logged("is not signed by anyone in")

    def test_another_name(self):
        self.refused('was asked for as "collector.example"',
                     '"localhost"', name="collector.example")

    def test_a_name_that_stands_for_another_address(self):
        recording = self.record("-o", "t", "-t", "100ms", TEST_SOURCE,
                                name="127.0.0.1")
        recording.end()

    def test_our_own_certificate_has_expired(self):
        self.refused("says that our certificate", "cert.pem", "is valid from",
                     "the clock here says", "renew it",
                     folder=self.openssl("late", start=-9, end=-2))
        self.logged('the certificate "late"')

    def test_our_own_certificate_is_not_valid_yet(self):
        self.refused("refuses our certificate", "cert.pem", "is valid from",
                     "the clock here says",
                     folder=self.openssl("early", start=2))
        self.logged('the certificate "early"')

    def openssl(self, name, **options):
        """A consumer of our CA, made by the openssl command."""
        pki = Pki(self.path("pki"))
        for file in ("ca.pem", "ca-key.pem"):
            shutil.copy(self.ca.path(file), self.path(f"pki/{file}"))
        return pki.issue(name, role="consumer", **options)

    def test_our_own_certificate_is_revoked(self):
        folder = self.ca.issue("revoked", "consumer")
        self.ca.revoke("revoked")
        self.logged("certificates reloaded")
        self.refused("says that our certificate", "is revoked", folder=folder)

    def test_there_is_no_certificate(self):
        self.refused("nowhere/ca.pem", "tributary cert",
                     folder=self.path("nowhere"))

    def test_a_key_that_belongs_to_another_certificate(self):
        folder = self.mixed("mixed", self.ann, self.ann)
        shutil.copy(os.path.join(self.device, "key.pem"), folder)
        self.refused("key.pem", folder=folder)

    def test_plain_to_a_tls_port(self):
        address = self.address("consumers").removeprefix("tls://")
        with self.neighbour():
            said = Command(self, TRIBUTARY, "record", "--connect", address,
                           "-o", "t", "-t", "1s", TEST_SOURCE).end(status=1)
        self.assertIn("tls://", said)
        self.logged("does not speak TLS")

    def test_flags_for_tls_with_a_plain_address(self):
        address = self.address("consumers").removeprefix("tls://")
        self.refused("--tls-dir is for tls:// addresses",
                     f"say tls://{address}", address=address)


class Collectors(Refusal):
    """What is wrong with the collector's certificate."""

    def setUp(self):
        super().setUp()
        self.pki = Pki(self.path("pki"))
        self.ann = self.pki.issue("ann", role="consumer")

    def test_it_has_expired(self):
        self.start(self.pki.collector(start=-9, end=-2))
        self.refused('"collector"', "expired at", "the clock here says",
                     folder=self.ann)

    def test_it_is_not_valid_yet(self):
        self.start(self.pki.collector(start=2))
        self.refused('"collector"', "is not valid before",
                     "the clock here says", folder=self.ann)

    def test_it_is_revoked(self):
        folder = self.pki.collector()
        self.pki.revoke(folder)
        self.pki.write_crl(self.ann)
        self.start(folder)
        self.refused('"collector"', "is revoked", self.ann + "/crl.pem",
                     folder=self.ann)

    def test_it_is_a_device_that_pretends(self):
        """Signed by the right CA, but not to serve."""
        self.start(self.pki.issue("localhost", role="producer",
                                  alternatives=["DNS:localhost"]))
        self.refused("is not for a server", folder=self.ann)

    def test_it_does_not_speak_tls(self):
        self.daemon(consumer=[self.path("c"), "127.0.0.1:0"],
                    flags=["--allow-plain-consumer", "127.0.0.1:0"])
        address = self.daemons[0].address("consumers", "tcp")
        self.refused("does not speak TLS", "that port is without TLS",
                     folder=self.ann, address="tls://localhost:" +
                     address.rsplit(":", 1)[1])
        self.assertIn("speaks TLS to a port without it",
                      self.daemons[0].log())


if __name__ == "__main__":
    sys.exit(tap.main())
