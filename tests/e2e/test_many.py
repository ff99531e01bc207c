#!/usr/bin/env python3
"""64 producers that number their packets: none lost, doubled, reordered."""

import contextlib
import os
import socket
import subprocess
import sys

from harness import tap
from harness.case import Case
from harness.consumer import buffers, config, source
from harness.daemon import environment
from harness.loop import SCALE
from harness.pki import OPENSSL, Pki
from harness.trace import Trace

PRODUCERS = 64
# Of 260 bytes: more than a producer's shared memory holds.  A sanitizer build
# does the same with less.
PACKETS = 1500 if SCALE == 1 else 600

IDLE = 400
IDLE_KIB = 32


def vsock_address():
    """Where vsock reaches this machine itself; or why it does not."""
    try:
        listener = socket.socket(socket.AF_VSOCK)
        listener.bind((socket.VMADDR_CID_ANY, 2**32 - 1))
        listener.listen()
        client = socket.socket(socket.AF_VSOCK)
        client.settimeout(2)
        client.connect((1, listener.getsockname()[1]))
        client.close()
        port = listener.getsockname()[1]
        listener.close()
        return f"vsock://1:{port}", None
    except OSError as error:
        return None, f"no vsock to this machine itself: {error}"


class Many(Case):
    packets = PACKETS

    def many(self, kind, sessions, into_file=False):
        addresses = {"unix": self.path("p"), "tcp": "127.0.0.1:0"}
        if kind == "vsock":
            addresses["vsock"], reason = vsock_address()
            if reason:
                self.skipTest(reason)
        flags, tls_dir = [], []
        if kind == "tls":
            flags, tls_dir = self.certificates()
            addresses["tls"] = "tls://127.0.0.1:0"
        # Reading is what takes long.
        self.numbers = self.packets // sessions
        daemon = self.daemon(producer=[addresses[kind]], flags=flags)
        with self.tool(daemon.address("producers", kind), PRODUCERS, sessions,
                       tls_dir) as tool:
            traces = self.record(tool, sessions, into_file)
            self.assertEqual(tool.wait(60 * SCALE), 0)
        for trace in traces:
            self.check(trace)
            if into_file:
                self.assert_overflowed(trace)

    def certificates(self):
        """Arguments for the daemon and for the producers."""
        if OPENSSL is None:
            self.skipTest("no openssl command")
        pki = Pki(self.path("pki"))
        return (["--tls-dir", pki.collector()],
                [pki.issue("devices", role="producer")])

    @contextlib.contextmanager
    def tool(self, address, producers, sessions, tls_dir):
        """number_producers, whose producers are registered."""
        tool = subprocess.Popen(
            [os.environ["NUMBER_PRODUCERS"], address, str(producers),
             "numbers", str(self.numbers), str(sessions), *tls_dir],
            stdout=subprocess.PIPE, text=True, env=environment())
        try:
            self.assertEqual(tool.stdout.readline(), "ready\n")
            yield tool
        finally:
            tool.kill()
            tool.wait()
            tool.stdout.close()

    def record(self, tool, sessions, into_file):
        consumers, paths = [], []
        for number in range(sessions):
            # Different buffers: of different sizes, some of them two.
            wanted = config(
                source("numbers", target_buffer=number % 2),
                trace_all_machines=True,
                buffers=buffers(1024, 2048) if into_file else
                buffers(*[(64 << number) * 1024] * 2))
            fds = []
            if into_file:
                wanted.write_into_file = True
                paths.append(self.path(f"trace{number}"))
                fds = [os.open(paths[-1], os.O_RDWR | os.O_CREAT)]
            consumer = self.consumer()
            consumer.enable(wanted, fds)
            for fd in fds:
                os.close(fd)
            consumers.append(consumer)
        self.assertEqual(tool.stdout.readline(), "written\n")
        traces = []
        for consumer in consumers:
            response = consumer.stop()
            self.assertFalse(response.error)
            if not into_file:
                traces.append(consumer.read())
        return traces or [Trace.from_file(p) for p in paths]

    def check(self, trace):
        self.assert_numbers(trace, [self.numbers] * PRODUCERS)
        writers = {}
        for packet in trace.of("for_testing"):
            writers.setdefault(packet.trusted_packet_sequence_id, set()).add(
                packet.for_testing.seq_value)
        self.assertEqual({len(w) for w in writers.values()}, {1})
        self.assertEqual(len(set.union(*writers.values())), PRODUCERS)
        self.assert_clean_stats(trace.stats())

    def assert_overflowed(self, trace):
        """The file holds more than the small buffer it came through."""
        used, = [b for b in trace.stats().buffer_stats if b.bytes_written]
        self.assertGreater(used.bytes_written, used.buffer_size)
        self.assertGreater(used.write_wrap_count, 0)

    def test_over_unix_sockets_and_shared_memory(self):
        self.many("unix", 1)

    def test_over_tcp(self):
        self.many("tcp", 1)

    def test_over_tls(self):
        self.many("tls", 1)

    def test_over_vsock(self):
        self.many("vsock", 1)

    def test_over_unix_sockets_into_three_sessions(self):
        self.many("unix", 3)

    def test_over_tcp_into_three_sessions(self):
        self.many("tcp", 3)

    def test_over_tls_into_three_sessions(self):
        self.many("tls", 3)

    def test_over_vsock_into_three_sessions(self):
        self.many("vsock", 3)

    def test_over_unix_sockets_into_a_file_through_a_small_buffer(self):
        self.many("unix", 1, into_file=True)

    def test_over_tcp_into_three_files_through_small_buffers(self):
        self.many("tcp", 3, into_file=True)

    def test_idle_producers_over_tls_take_little_memory(self):
        flags, tls_dir = self.certificates()
        self.numbers = self.packets
        daemon = self.daemon(producer=["tls://127.0.0.1:0"], flags=flags)
        where = daemon.address("producers", "tls")
        # What the first of all makes is nobody's.
        with self.tool(where, 1, 1, tls_dir):
            before = daemon.memory()
            with self.tool(where, IDLE, 1, tls_dir):
                self.assert_grown_less(before, IDLE * IDLE_KIB)


if __name__ == "__main__":
    sys.exit(tap.main())
