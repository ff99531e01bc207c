#!/usr/bin/env python3
"""64 sessions over 200 producers begin, flush, clone and end at random: every
packet is where it belongs, the counters agree with the books, nobody waits for
somebody else, and nothing is left over.

TRIBUTARY_SEED repeats what a seed made (as far as scheduling lets it),
TRIBUTARY_SOAK_SECONDS makes it longer; `./soak sessions` does both.
"""

import os
import random
import sys
import time

from harness import tap
from harness.case import Case
from harness.chance import SEED, seeded
from harness.consumer import Consumer, config
from harness.imported import may_cause
from harness.loop import SCALE
from harness.pulse import Pulse
from harness.storm import MUTE, Book, Busy, Life, Mute

SESSIONS = 64
PRODUCERS = 200
SOURCES = [f"storm.{n}" for n in range(40)]
SECONDS = float(os.environ.get("TRIBUTARY_SOAK_SECONDS", "5"))
# Seconds that the daemon may work before it answers a flush of a session that
# does little, while the others do what they like.
MOST_WORK = 2.0

SETTINGS = """
limits {
  max_sessions: 256
  max_sessions_per_uid: 256
  max_consumers_per_uid: 512
  max_connections: 1024
}
"""


class Storm(Case):
    def setUp(self):
        super().setUp()
        self.random = seeded()
        self.books = {}      # session id -> Book, until it was compared
        self.lives = self.chunks = self.packets = self.numbers = 0
        self.slowest = {}    # what was waited for -> seconds
        self.counts = {}     # method -> calls
        self.over = False
        self.longest_turn = 0.0
        with open(self.path("settings"), "w") as file:
            file.write(SETTINGS)
        self.daemon(flags=["--config", self.path("settings"),
                           "--log-level", "info"])
        self.producers_at = self.daemons[0].address("producers")

    def next_number(self):
        self.numbers += 1
        return self.numbers

    def connect(self):
        return self._add(Consumer(self.loop,
                                  self.daemons[0].address("consumers")))

    def disconnect(self, consumer):
        consumer.close()
        self.connections.remove(consumer)

    def pull(self, trigger):
        self.random.choice(self.busy).activate(trigger)

    def book(self, session):
        return self.books.setdefault(session, Book())

    def start_producers(self):
        self.sources = SOURCES
        self.busy = [
            self._add(Busy(self, f"p{n}", self.random.sample(SOURCES, 2)))
            for n in range(PRODUCERS - 2)]
        mutes = [self._add(Mute(self, f"mute{n}")) for n in range(2)]
        self.everybody = [*self.busy, *mutes]
        self.n_producers = len(self.everybody)
        self.n_data_sources = sum(len(p.sources) for p in self.everybody)

    def touch_everybody(self):
        """From then on each has its shared memory; the daemon's descriptors."""
        fds = self.daemons[0].fds()
        consumer = self.connect()
        consumer.enable(config(*SOURCES, MUTE, data_source_stop_timeout_ms=100,
                               flush_timeout_ms=100))
        self.until(lambda: all(p.shm for p in self.everybody), "memory")
        consumer.stop()
        self.disconnect(consumer)
        self.books.clear()
        fds += self.n_producers
        self.until(lambda: self.daemons[0].fds() == fds, "its end")
        return fds

    def turn(self, lives):
        for producer in self.random.sample(self.busy, 10):
            producer.write(self.random.randint(1, 10))
        self.loop.turn(0.002)
        return [life for life in lives if life.step()]

    @may_cause("traced_final_flush_failed", "traced_flushes_failed")
    def test_sessions_come_and_go_and_nobody_is_harmed(self):
        self.start_producers()
        daemon = self.daemons[0]
        fds = self.touch_everybody()
        lives = [Life(self, n, random.Random(SEED * 1000 + n))
                 for n in range(SESSIONS)]
        pulse = Pulse(daemon)
        self.addCleanup(pulse.kill)
        self.n_producers += 1
        self.n_data_sources += 1
        began = time.monotonic()
        memory = None
        passed = 0.0
        while lives:
            lives = self.turn(lives)
            before, passed = passed, time.monotonic() - began
            self.longest_turn = max(self.longest_turn, passed - before)
            if memory is None and passed > SECONDS / 2:
                memory = daemon.memory()
            self.over = passed > SECONDS
        beats = pulse.end()
        self.n_producers -= 1
        self.n_data_sources -= 1
        self.report(time.monotonic() - began, beats)
        self.assertLess(max(worked for worked, _ in beats), MOST_WORK * SCALE)
        self.nothing_is_left(fds)
        self.assert_grown_less(memory, 16 * 1024)

    def report(self, took, beats):
        calls = " ".join(f"{k}:{v}" for k, v in sorted(self.counts.items()))
        slow = " ".join(f"{k}:{v:.2f}" for k, v in sorted(
            self.slowest.items()) if k != "rest")
        worked, passed = (sorted(beat[i] for beat in beats) for i in (0, 1))
        print(f"# {took:.0f} s: {self.lives} sessions, {self.packets} packets "
              f"in {self.chunks} chunks read back; calls {calls}\n"
              f"# slowest, seconds, this test's own slowness included: {slow}\n"
              f"# flush of the quiet session: {len(beats)}, median "
              f"{passed[len(beats) // 2]:.3f} s, most {passed[-1]:.3f} s, "
              f"of them at work {worked[-1]:.3f} s", flush=True)

    def nothing_is_left(self, fds):
        """What a new consumer sees."""
        consumer = self.connect()

        def state():
            found = consumer.query()
            return found.num_sessions == 0 and found
        found = self.until(state, "the last session is gone")
        self.assertEqual(found.num_sessions_started, 0)
        self.assertEqual(len(found.producers), self.n_producers)
        self.assertEqual(len(found.data_sources), self.n_data_sources)
        for producer in self.busy:
            self.assertFalse(producer.closed, producer.name)
            producer.sync()
            self.assertEqual(producer.instances, {}, producer.name)
        consumer.enable(config("nobody.has.this"))
        stats = consumer.stats()
        self.assertEqual((stats.tracing_sessions, stats.total_buffers,
                          stats.producers_connected),
                         (1, 1, self.n_producers))
        self.assertEqual(stats.patches_discarded, 0)
        # Only what came for a session that was cut off is nowhere.
        self.assertLessEqual(stats.chunks_discarded, sum(
            book.chunks for book in self.books.values()))
        self.disconnect(consumer)
        self.until(lambda: self.daemons[0].fds() == fds,
                   "descriptors are closed")


if __name__ == "__main__":
    sys.exit(tap.main())
