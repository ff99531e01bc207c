#!/usr/bin/env python3
"""Many track events of a program with libtributary: from many threads, by the
million, and in rings that wrap; none is lost, and all have their names."""

import sys

from harness import imported, inspected, real, tap, tracing

SEQ_CLEARED = 1


@tracing.needed
class Many(tracing.TracingCase):
    """Through memory that is shared with tributaryd."""

    def test_many_threads(self):
        self.crowd(16, 3000)

    def test_millions_of_events(self):
        self.crowd(4, 250_000)

    def crowd(self, threads, pairs):
        # The memory holds all of it, so that nobody waits for the service.
        program = self.begin(memory_kb=32 * 1024, size_kb=256 * 1024)
        program.do(f"many {threads} {pairs}")
        self.finish_session(program)
        # Python would take minutes to parse them.
        raw = inspected.framed(self.consumer_.read_raw())
        wrong, rows = imported.ask(
            raw, imported.WRONG,
            "select t.name, s.name, count(*), sum(s.dur >= 0) from slice s "
            "join thread_track k on s.track_id = k.id join thread t "
            "using (utid) group by 1, 2")
        self.assertEqual(wrong, [])
        odd = len(range(3, pairs, 16))
        self.assertEqual(sorted(rows), sorted(
            row for i in range(threads) for row in (
                (f"crowd {i}", "odd", odd, odd),
                (f"crowd {i}", "even", pairs - odd, pairs - odd))))

    def test_rings_that_wrap_with_state_that_is_cleared(self):
        program = self.begin(
            size_kb=256,
            incremental_state_config={"clear_period_ms": 100})
        program.do("rounds 100")
        trace = self.finish(program)
        self.assertGreater(trace.stats().buffer_stats[0].chunks_overwritten,
                           0)
        # All that there is has its name, its track and its arguments.
        self.assertEqual(trace.sql(
            "select count(*) from slice where name is null or "
            "category is null and dur >= 0"), [(0,)])
        rounds = [n for (n,) in trace.sql(
            "select a.int_value from slice s join args a using (arg_set_id) "
            "join track t on s.track_id = t.id where s.name = 'round' and "
            "a.key = 'debug.number' and t.name = 'round track' order by s.ts")]
        self.assertGreater(len(rounds), 2)
        self.assertEqual(rounds[-1], 99)
        self.assertEqual(rounds, list(range(rounds[0], 100)))
        self.assertEqual(trace.sql(
            "select distinct t.name from counter c join track t "
            "on c.track_id = t.id where t.name is null"), [])
        self.assertGreater(len([p for p in trace.packets if
                                p.sequence_flags & SEQ_CLEARED]), 1)


class OverTcp(tracing.OverTcp, Many):
    """Without shared memory: the library sends its chunks."""


class ByRelay(tracing.ByRelay, Many):
    """By tributary-relay and its link."""


@real.needed
class WithTraced(tracing.WithTraced, Many):
    """Perfetto's service."""


if __name__ == "__main__":
    sys.exit(tap.main())
