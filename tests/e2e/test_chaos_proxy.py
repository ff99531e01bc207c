#!/usr/bin/env python3
"""The chaos proxy does to connections what it says, and nothing else."""

import hashlib
import random
import select
import socket
import sys
import time

from harness import tap
from harness.case import Case
from harness.chaos import Proxy

PATIENCE = 20


class ChaosProxy(Case):
    def setUp(self):
        super().setUp()
        self.sockets = []
        self.target = self.keep(socket.socket())
        self.target.bind(("127.0.0.1", 0))
        self.target.listen(64)
        port = self.target.getsockname()[1]
        self.proxy = Proxy(self.path("proxy.log"),
                           ("127.0.0.1:0", f"127.0.0.1:{port}"))

    def _end(self):
        for sock in self.sockets:
            sock.close()
        self.proxy.stop()
        super()._end()

    def keep(self, sock):
        sock.settimeout(PATIENCE)
        self.sockets.append(sock)
        return sock

    def connect(self):
        host, port = self.proxy.addresses[0].split(":")
        return self.keep(socket.create_connection((host, int(port))))

    def accept(self):
        return self.keep(self.target.accept()[0])

    def pair(self):
        return self.connect(), self.accept()

    def receive(self, sock, size):
        data = b""
        while len(data) < size:
            part = sock.recv(size - len(data))
            self.assertTrue(part, f"the end after {len(data)} bytes")
            data += part
        return data

    def assert_reset(self, sock):
        with self.assertRaises(ConnectionResetError):
            while sock.recv(1 << 16):
                pass

    def assert_silent(self, *socks):
        """Nothing comes from there, no end either."""
        readable, _, _ = select.select(socks, [], [], 0.3)
        self.assertEqual(readable, [])

    def test_bytes_go_through_whole_and_in_order(self):
        self.proxy.say("delay 3 3")
        client, target = self.pair()
        sent = random.Random(7).randbytes(3 << 20)
        client.setblocking(False)
        got, at = bytearray(), 0
        while len(got) < len(sent):
            if at < len(sent):
                try:
                    at += client.send(sent[at:at + 65536])
                except BlockingIOError:
                    pass
            if select.select([target], [], [], 0)[0]:
                got += target.recv(1 << 20)
        self.assertEqual(hashlib.sha256(got).digest(),
                         hashlib.sha256(sent).digest())
        self.assertEqual(self.proxy.stats()["up"], len(sent))
        target.sendall(b"answer")
        client.setblocking(True)
        self.assertEqual(self.receive(client, 6), b"answer")

    def test_ends_are_handed_on_one_by_one(self):
        client, target = self.pair()
        client.sendall(b"last words")
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(self.receive(target, 10), b"last words")
        self.assertEqual(target.recv(1), b"")
        target.sendall(b"reply")
        target.close()
        self.assertEqual(self.receive(client, 5), b"reply")
        self.assertEqual(client.recv(1), b"")

    def test_a_delay_is_of_its_way_alone(self):
        self.proxy.say("delay 150 0 down")
        client, target = self.pair()
        began = time.monotonic()
        client.sendall(b"x")
        self.receive(target, 1)
        target.sendall(b"y")
        self.receive(client, 1)
        self.assertGreaterEqual(time.monotonic() - began, 0.15)

    def test_a_rate_is_kept(self):
        self.proxy.say("rate 200000")
        client, target = self.pair()
        began = time.monotonic()
        client.sendall(bytes(60000))
        self.receive(target, 60000)
        self.assertGreaterEqual(time.monotonic() - began, 0.29)

    def test_a_reset_reaches_both(self):
        client, target = self.pair()
        self.proxy.say("cut rst")
        self.assert_reset(client)
        self.assert_reset(target)

    def test_a_close_reaches_both(self):
        client, target = self.pair()
        self.proxy.say("cut close")
        self.assertEqual(client.recv(1), b"")
        self.assertEqual(target.recv(1), b"")

    def test_what_is_dropped_vanishes_and_nobody_is_told(self):
        client, target = self.pair()
        self.proxy.say("cut drop")
        client.sendall(b"x" * 100000)
        target.sendall(b"y" * 100000)
        self.assert_silent(client, target)
        client.close()
        self.assert_silent(target)
        # Others are not meant.
        other, there = self.pair()
        other.sendall(b"z")
        self.assertEqual(self.receive(there, 1), b"z")

    def test_half_open_for_the_target(self):
        client, target = self.pair()
        self.proxy.say("cut half-client")
        self.assert_reset(client)
        target.sendall(b"y")
        self.assert_silent(target)

    def test_half_open_for_the_client_until_it_is_healed(self):
        client, target = self.pair()
        self.proxy.say("cut half-target")
        self.assert_reset(target)
        client.sendall(b"x")
        self.assert_silent(client)
        self.proxy.say("heal")
        self.assert_reset(client)

    def test_a_stall_loses_nothing(self):
        client, target = self.pair()
        self.proxy.say("cut stall")
        client.sendall(b"x" * 1000)
        self.assert_silent(target)
        self.proxy.say("heal")
        self.assertEqual(self.receive(target, 1000), b"x" * 1000)

    def test_new_connections_are_refused_until_it_is_healed(self):
        self.proxy.say("refuse 60000")
        self.assert_reset(self.connect())
        self.proxy.say("heal")
        client, target = self.pair()
        client.sendall(b"x")
        self.assertEqual(self.receive(target, 1), b"x")

    def test_a_later_connection_comes_first(self):
        self.proxy.say("reorder 60000")
        first = self.connect()
        first.sendall(b"first")
        first.close()
        second = self.connect()
        second.sendall(b"second")
        self.assertEqual(self.receive(self.accept(), 6), b"second")
        self.assertEqual(self.receive(self.accept(), 5), b"first")

    def test_random_cuts_end_with_heal(self):
        self.proxy.say("random 7 5")
        deadline = time.monotonic() + PATIENCE
        client = self.connect()
        while self.proxy.stats()["cuts"] < 10:
            self.assertLess(time.monotonic(), deadline)
            try:
                client.settimeout(0.02)
                if not client.recv(1):
                    client = self.connect()
            except TimeoutError:
                pass
            except ConnectionResetError:
                client = self.connect()
        self.proxy.say("heal")
        cuts = self.proxy.stats()["cuts"]
        while True:  # those that chance let through to the target
            self.target.settimeout(0.2)
            try:
                self.accept()
            except TimeoutError:
                break
        self.target.settimeout(PATIENCE)
        client, target = self.pair()
        client.sendall(b"x")
        self.assertEqual(self.receive(target, 1), b"x")
        self.assertEqual(self.proxy.stats()["cuts"], cuts)

    def test_what_it_does_not_know_is_an_error(self):
        for line in ("cut cable", "delay", "@7 heal", "dance 1"):
            with self.assertRaises(AssertionError):
                self.proxy.say(line)
        self.proxy.say("heal")


if __name__ == "__main__":
    sys.exit(tap.main())
