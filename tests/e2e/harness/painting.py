"""What a test writes for Trace Processor: a process with a thread, its slices
and a counter, which SQL finds again one by one."""

import time

from . import pb

CLEARED, NEEDS_STATE = 1, 2
CATEGORY = "test"


def boot_clock():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Painting:
    """A sequence of packets, and the book of what is in them.

    clock: what timestamps are read from, and its id; what the book has is the
    boot clock's time, by `to_boot`.
    """

    def __init__(self, pid=30001, name="painter", *, clock=boot_clock,
                 clock_id=None, to_boot=lambda ns: ns):
        self.pid, self.tid = pid, pid + 1
        self.name = name
        self.thread = f"{name} brush"
        self.counter = f"{name} paint"
        self.slices = []  # (name, ts, dur), in order
        self.values = []  # (ts, value)
        self._clock, self._clock_id = clock, clock_id
        self._to_boot = to_boot
        self._described = False

    def strokes(self, count):
        """Packets of the next slices, each with a value of the counter."""
        packets = [] if self._described else [*self._descriptors()]
        self._described = True
        for _ in range(count):
            packets += self._stroke(len(self.slices))
        return [p.SerializeToString() for p in packets]

    def _packet(self, ts, flags=NEEDS_STATE):
        packet = pb.TracePacket(timestamp=ts, sequence_flags=flags)
        if self._clock_id is not None:
            packet.timestamp_clock_id = self._clock_id
        return packet

    def _descriptors(self):
        process, thread, counter = (
            self._packet(self._clock(), flags)
            for flags in (CLEARED, NEEDS_STATE, NEEDS_STATE))
        track = process.track_descriptor
        track.uuid = self.pid
        track.process.pid = self.pid
        track.process.process_name = self.name
        track = thread.track_descriptor
        track.uuid, track.parent_uuid = self.tid, self.pid
        track.thread.pid, track.thread.tid = self.pid, self.tid
        track.thread.thread_name = self.thread
        track = counter.track_descriptor
        track.uuid, track.parent_uuid = self.pid << 1, self.pid
        track.name = self.counter
        track.counter.SetInParent()
        return process, thread, counter

    def _event(self, ts, kind, track):
        packet = self._packet(ts)
        packet.track_event.type = pb.TrackEvent.Type.Value(kind)
        packet.track_event.track_uuid = track
        return packet

    def _stroke(self, number):
        begin = self._clock()
        name, dur, value = f"stroke {number}", 1000 + number, 7 * number
        self.slices.append((name, self._to_boot(begin), dur))
        self.values.append((self._to_boot(begin), value))
        packet = self._event(begin, "TYPE_SLICE_BEGIN", self.tid)
        packet.track_event.name = name
        packet.track_event.categories.append(CATEGORY)
        yield packet
        packet = self._event(begin, "TYPE_COUNTER", self.pid << 1)
        packet.track_event.counter_value = value
        yield packet
        yield self._event(begin + dur, "TYPE_SLICE_END", self.tid)
        # The next one begins behind it.
        while self._clock() <= begin + dur:
            pass

    def found(self, trace):
        """(slices, values) of it that SQL finds, like those of the book."""
        return (trace.sql(
            "select s.name, s.ts, s.dur from slice s "
            "join thread_track k on s.track_id = k.id "
            "join thread t using (utid) join process p using (upid) "
            f"where p.pid = {self.pid} and p.name = '{self.name}' "
            f"and t.tid = {self.tid} "
            f"and t.name = '{self.thread}' order by s.ts"), trace.sql(
            "select c.ts, cast(c.value as int) from counter c "
            "join track t on c.track_id = t.id "
            f"where t.name = '{self.counter}' order by c.ts"))
