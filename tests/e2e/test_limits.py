#!/usr/bin/env python3
"""Limits: what is over one of them is told so and goes; nobody else notices."""

import itertools
import resource
import socket
import sys
import time

from harness import tap, tls
from harness.case import Case, config
from harness.pki import OPENSSL, Pki
from harness.producer import numbered

KIB = 1024
HALF_A_FRAME = b"\xfc\xff\x01\x00" + bytes(100 * KIB)  # of 128 KiB to come


def is_open(sock):
    try:
        return sock.recv(1, socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


class Limits(Case):
    def start(self, setting, *, with_tls=False, **options):
        """A daemon with these limits, at UNIX, TCP and, if asked, TLS."""
        lines = [f"limits {{ {setting} }}"]
        producer = [self.path("p"), "127.0.0.1:0"]
        if with_tls:
            if OPENSSL is None:
                self.skipTest("openssl is not installed")
            self.pki = Pki(self.path("pki"))
            lines.append(f'tls {{ dir: "{self.pki.collector()}" }}')
            self.device = self.pki.issue("device")
            producer.append("tls://127.0.0.1:0")
        with open(self.path("conf"), "w") as file:
            file.write("\n".join(lines))
        return self.daemon(producer=producer,
                           flags=["--config", self.path("conf")], **options)

    def address(self, kind):
        return self.daemons[0].address("producers", kind)

    def over_tls(self):
        return tls.Address(self.address("tls"), self.device)

    def assert_refused(self, connection, *words):
        """It is told why, and then there is no more."""
        self.until(lambda: connection.closed, "the refusal")
        said = [frame.msg_request_error.error for frame in connection.frames]
        self.assertEqual(len(said), 1, said)
        for word in words:
            self.assertIn(word, said[0])

    def wait_log(self, *words):
        daemon = self.daemons[0]
        self.until(lambda: any(all(word in line for word in words)
                               for line in daemon.log().splitlines()),
                   f"{words} in the log")

    def until_served(self, address):
        """The daemon sees that somebody left when it comes to it."""
        def try_it():
            try:
                self.producer("later", address=address).sync()
            except (OSError, AssertionError):
                return False
            return True
        self.until(try_it, "room for a newcomer")

    # ---- connections ----

    def test_connections_in_total(self):
        self.start("max_connections: 5")
        with self.neighbour():  # has two
            held = [self.raw(self.address("tcp")) for _ in range(3)]
            for kind in ("unix", "tcp"):
                self.assert_refused(self.raw(self.address(kind)),
                                    "no more than 5 connections",
                                    "limits.max_connections")
            self.wait_log("connection refused", "limits.max_connections")
            self.assertFalse([c for c in held if c.closed])
            for connection in held:
                connection.close()
            self.until_served(self.address("unix"))

    def test_connections_of_one_peer(self):
        self.start("max_connections_per_peer: 3")
        with self.neighbour():
            held = [self.raw(self.address("tcp")) for _ in range(3)]
            self.assert_refused(self.raw(self.address("tcp")),
                                "no more than 3 connections of one peer",
                                "limits.max_connections_per_peer")
            # Another peer is not that one.
            self.raw(self.address("unix"))
            held.pop().close()
            self.until_served(self.address("tcp"))

    def test_connections_of_one_certificate(self):
        self.start("max_connections_per_peer: 2", with_tls=True)
        with self.neighbour():
            held = [self.producer(f"p{n}", address=self.over_tls())
                    for n in range(2)]
            third = self.raw(self.over_tls())
            self.assert_refused(third, "limits.max_connections_per_peer")
            for producer in held:
                producer.sync()
            other = tls.Address(self.address("tls"),
                                self.pki.issue("another"))
            self.producer("q", address=other).sync()

    def test_descriptors(self):
        self.start("", limits=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (64, 64)))
        with self.neighbour():
            many = [self.raw(self.address("tcp")) for _ in range(64)]
            refused = self.until(
                lambda: [c for c in many if c.closed], "a refusal")
            self.assert_refused(refused[0], "file descriptors")
            # There are some left for who is inside: files, shared memory.
            self.assertLess(self.daemons[0].fds(), 64 - 8)
            for connection in many:
                connection.close()
        self.until_served(self.address("tcp"))

    # ---- handshakes ----

    def half_open(self, n, first=b""):
        """Connections to the TLS socket that do not go on."""
        address = self.address("tls")
        made = [self.raw(str(address)) for _ in range(n)]
        for connection in made:
            connection.send_raw(first)
        return made

    def half_open_from(self, source, n):
        """The same from another address of this machine's, as sockets."""
        host, port = self.address("tls").removeprefix("tls://").split(":")
        made = []
        for _ in range(n):
            sock = socket.create_connection((host, int(port)),
                                            source_address=(source, 0))
            self.addCleanup(sock.close)
            sock.send(b"\x16")
            made.append(sock)
        return made

    def test_handshakes_of_one_address(self):
        self.start("max_handshakes_per_peer: 2", with_tls=True)
        with self.neighbour():
            inside = self.producer("inside", address=self.over_tls())
            held = self.half_open(2, b"\x16\x03\x01")
            self.loop.settle(0.1)
            self.assertFalse([c for c in held if c.closed])
            late, = self.half_open(1)
            self.until(lambda: late.closed, "no third handshake")
            self.wait_log("connection refused",
                          "limits.max_handshakes_per_peer")
            inside.sync()
            # Plain connections have no handshake to wait for.
            self.producer("plain", address=self.address("tcp")).sync()
            for connection in held:
                connection.close()
            self.until_served(self.over_tls())

    def test_handshakes_in_total(self):
        self.start("max_handshakes: 2", with_tls=True)
        with self.neighbour():
            inside = self.producer("inside", address=self.over_tls())
            first, second = self.half_open(2, b"\x16\x03\x01")
            third, = self.half_open(1)
            self.until(lambda: first.closed, "the oldest makes room")
            self.wait_log("closed", "(limits.max_handshakes)")
            self.producer("late", address=self.over_tls()).sync()
            self.until(lambda: second.closed, "the next one makes room")
            self.assertFalse(third.closed)
            inside.sync()

    def test_two_addresses_lock_nobody_out_of_tls(self):
        self.start("max_handshakes: 8 max_handshakes_per_peer: 4",
                   with_tls=True)
        sources = ("127.0.0.2", "127.0.0.3")
        with self.neighbour():
            held = {source: self.half_open_from(source, 4)
                    for source in sources}
            for i in range(6):
                self.producer(f"device-{i}", address=self.over_tls()).sync()
                # Whoever made room comes back at once.
                for source in sources:
                    open_ones = [s for s in held[source] if is_open(s)]
                    held[source] = open_ones + self.half_open_from(
                        source, 4 - len(open_ones))
            self.wait_log("127.0.0.2", "made room for another",
                          "(limits.max_handshakes)")

    def test_a_handshake_takes_no_longer_than_it_may(self):
        self.start("handshake_timeout_ms: 1500", with_tls=True)
        with self.neighbour():
            inside = self.producer("inside", address=self.over_tls())
            silent, = self.half_open(1)
            slow, = self.half_open(1)
            letters = itertools.cycle(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc")

            def one_byte():
                slow.send_raw(bytes([next(letters)]))
                return silent.closed and slow.closed
            self.until(one_byte, "both are given up")
            self.wait_log("TLS handshake was not done for 1500 ms")
            inside.sync()

    # ---- time ----

    def test_who_binds_nothing_goes(self):
        self.start("bind_timeout_ms: 1500", with_tls=True)
        with self.neighbour():
            for address in (self.address("unix"), self.address("tcp"),
                            self.over_tls()):
                self.assert_refused(self.raw(address),
                                    "bound no service for 1500 ms")

    def test_who_is_quiet_goes_and_who_speaks_stays(self):
        self.start("idle_timeout_ms: 1500")
        talker = self.producer("talker")
        quiet = self.producer("quiet")

        def talk():
            talker.sync()
            return quiet.closed
        self.until(talk, "the quiet one goes")
        self.assertIn("it was quiet for 1500 ms", "".join(quiet.errors))
        self.assertFalse(talker.closed)

    # ---- slow readers ----

    def slow_reader(self, address):
        """A consumer with more to read than fits anywhere."""
        source = f"slow.{address[-4:]}"
        producer = self.producer(source, [source])
        consumer = self.consumer(address, rcvbuf=4096)
        consumer.enable(config(source, size_kb=16 * KIB))
        producer.writer().write([numbered(n, 3000) for n in range(4000)])
        consumer.stop()
        return consumer

    def test_a_slow_reader_goes(self):
        """One byte now and then counts as nothing."""
        self.start("stalled_timeout_ms: 1500")
        with self.neighbour():
            before = self.daemons[0].memory()
            stuck = self.slow_reader(self.path("c"))
            stuck.call("ReadBuffers")
            stuck.pause()
            sips = 0

            def sip():
                nonlocal sips
                try:
                    sips += len(stuck.sock.recv(1))
                except BlockingIOError:
                    pass
                return "took none of the data that waits for it" in \
                    self.daemons[0].log()
            self.until(sip, "it is given up")
            self.assertGreater(sips, 0)
            self.assert_grown_less(before, 24 * KIB)

    # ---- memory ----

    def check_memory(self, limits, word):
        self.start(limits)
        with self.neighbour():
            held = []
            for _ in range(5):
                connection = self.raw(self.address("tcp"))
                connection.send_raw(HALF_A_FRAME)
                held.append(connection)
            self.until(lambda: any(c.closed for c in held),
                       "one is over the limit")
            self.wait_log("127.0.0.1:", word)
            self.loop.settle(0.1)
            self.assertLess(len([c for c in held if c.closed]), 5)

    def test_memory_of_one_peer(self):
        self.check_memory("max_connection_memory_per_peer_kb: 256", "memory")

    def test_memory_of_all(self):
        self.check_memory("max_connection_memory_kb: 384 "
                          "max_connection_memory_per_peer_kb: 384", "memory")

    # ---- bytes ----

    def check_bytes(self, limits):
        self.start(limits)
        with self.neighbour():
            producer = self.producer("much", ["much"],
                                     address=self.address("tcp"))
            consumer = self.session("much", size_kb=16 * KIB,
                                    trace_all_machines=True)
            writer = producer.writer()
            began = time.monotonic()
            writer.number(4000, size=1000)
            took = time.monotonic() - began
            # 4 MB at 1 MiB a second, the first second's worth at once.
            self.assertGreater(took, 1.5)
            consumer.stop()
            self.assert_numbers(consumer.read(), [4000])

    def test_bytes_per_second_of_one_peer(self):
        self.check_bytes("max_input_kb_per_s_per_peer: 1024")

    def test_bytes_per_second_of_all(self):
        self.check_bytes("max_input_kb_per_s: 1024")


if __name__ == "__main__":
    sys.exit(tap.main())
