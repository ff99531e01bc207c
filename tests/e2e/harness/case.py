"""The base of every end-to-end test: folders, daemons, neighbours."""

import contextlib
import itertools
import os
import shutil
import sys
import tempfile
import unittest

from . import pb
from .consumer import Consumer, config
from .daemon import Daemon
from .ipc import Connection
from .loop import SCALE, Loop
from .producer import TEST_SOURCE, Producer
from .relay import Relay


class Case(unittest.TestCase):
    longMessage = True

    def setUp(self):
        # Short: a socket's path has only 107 bytes.
        self.folder = tempfile.mkdtemp(prefix="trib", dir="/tmp")
        self.loop = Loop()
        self.daemons = []
        self.relays = []
        self.connections = []
        # Before the traces are looked at: they are whole then.
        self.addCleanup(self._end)

    def run(self, result=None):
        """Shows the logs of one that fails, and removes its folder."""
        before = len(result.errors) + len(result.failures)
        super().run(result)
        if len(result.errors) + len(result.failures) > before:
            self._show_logs()
        if getattr(self, "folder", None):
            if "TEST_KEEP" in os.environ:
                print(f"# kept: {self.folder}", file=sys.stderr)
            else:
                shutil.rmtree(self.folder, ignore_errors=True)
        return result

    def _end(self):
        """Ends what the test started, whatever happened to it."""
        for connection in self.connections:
            connection.close()
        try:
            for program in [*self.relays, *self.daemons]:
                program.stop()
        finally:
            self.loop.close()

    def _show_logs(self):
        for program in [*getattr(self, "relays", ()),
                        *getattr(self, "daemons", ())]:
            lines = program.log().splitlines()
            print(f"# {program.log_path}, last of {len(lines)} lines:",
                  *lines[-60:], sep="\n#   ", file=sys.stderr)

    def path(self, name):
        return os.path.join(self.folder, name)

    def daemon(self, **options):
        """A running daemon; the first one is what connections go to."""
        daemon = Daemon(self.folder, **options)
        self.daemons.append(daemon)
        daemon.start()
        return daemon

    def relay(self, to=None, **options):
        """A running tributary-relay; to: an address, or a daemon."""
        relay = Relay(self.folder, to, **options)
        self.relays.append(relay)
        relay.start()
        return relay

    def _add(self, connection):
        self.connections.append(connection)
        return connection

    def producer(self, *args, address=None, **options):
        address = address or self.daemons[0].address("producers")
        return self._add(Producer(self.loop, address, *args, **options))

    def consumer(self, address=None, **options):
        address = address or self.daemons[0].address("consumers")
        return self._add(Consumer(self.loop, address, **options))

    def raw(self, address=None, port="producers", **options):
        """Frames by hand."""
        address = address or self.daemons[0].address(port)
        return self._add(Connection(self.loop, address, **options))

    def until(self, condition, what, **options):
        return self.loop.until(condition, what, **options)

    def session(self, *sources, fds=(), **options):
        """A consumer with a running session; default: TEST_SOURCE."""
        consumer = self.consumer()
        consumer.enable(config(*(sources or [TEST_SOURCE]), **options), fds)
        return consumer

    def assert_numbers(self, trace, expected):
        """expected: how many numbered packets each sequence wrote, sorted."""
        found = trace.numbers()
        for sequence, numbers in found.items():
            self.assertEqual(numbers, list(range(len(numbers))),
                             f"sequence {sequence}")
        self.assertEqual(sorted(map(len, found.values())), sorted(expected))
        self.assertEqual(trace.losses(), [])

    def assert_unreadable(self, consumer):
        """ReadBuffers gives nothing: refused, or as today's service does it,
        an empty reply."""
        call = consumer.call("ReadBuffers")
        self.until(call.ended, "an answer to ReadBuffers")
        self.assertFalse(call.gone)
        self.assertEqual(b"".join(call.replies), b"")

    def assert_grown_less(self, before, kilobytes, daemon=None):
        """The daemon's memory since daemon.memory() said `before`.

        Sanitizers keep freed memory back: there it says nothing.
        """
        grown = (daemon or self.daemons[0]).memory() - before
        if SCALE == 1:
            self.assertLess(grown, kilobytes, "KiB more than before")

    def assert_clean_stats(self, stats):
        """No loss and no violation anywhere."""
        for field in ("chunks_discarded", "patches_discarded",
                      "invalid_packets", "flushes_failed"):
            self.assertEqual(getattr(stats, field), 0, field)
        for buffer in stats.buffer_stats:
            for field in ("chunks_overwritten", "chunks_discarded",
                          "abi_violations", "patches_failed",
                          "trace_writer_packet_loss"):
                self.assertEqual(getattr(buffer, field), 0, field)

    @contextlib.contextmanager
    def neighbour(self, kind="unix"):
        """Somebody else's session, recorded around the body, unharmed.

        An honest producer and consumer record packets before, during and
        after; at the end every one of them is there and nothing was counted
        as wrong.
        """
        name = f"neighbour.{next(_neighbours)}"
        producer = self.producer(
            name, [name],
            address=self.daemons[0].address("producers", kind))
        consumer = self.session(name)
        writer = producer.writer()
        writer.number(20)
        yield
        self.assertFalse(producer.closed, "the neighbour was cut off")
        self.assertFalse(consumer.closed, "the neighbour was cut off")
        writer.number(20)
        consumer.flush(60_000)
        stats = consumer.stats()
        for field in ("chunks_discarded", "patches_discarded",
                      "invalid_packets"):
            self.assertEqual(getattr(stats, field), 0, field)
        consumer.stop()
        trace = consumer.read()
        self.assert_numbers(trace, [40])
        self.assertEqual(
            {p.for_testing.seq_value for p in trace.of("for_testing")},
            {writer.id})
        for buffer in stats.buffer_stats:
            self.assertEqual(buffer.abi_violations, 0)
            self.assertEqual(buffer.chunks_overwritten, 0)
            self.assertEqual(buffer.patches_failed, 0)
        producer.close()
        consumer.close()


_neighbours = itertools.count(1)

__all__ = ["Case", "TEST_SOURCE", "config", "pb"]
