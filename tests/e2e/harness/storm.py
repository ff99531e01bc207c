"""Sessions that live at random, all at once, over producers that write at
random, and the books that say what each session must have got."""

import os
import time

from . import pb
from .consumer import config, join_slices
from .loop import SCALE
from .producer import Producer, numbered
from .trace import Trace

PATIENCE = max(100.0 / SCALE, 30.0)
# What nobody is to miss because this test is slow.
LONG_MS = 600_000
# A config's flush that comes every 50 ms may be given up after five seconds:
# where a turn of this test takes so long, that it failed says nothing.
PROMPT = 1.0
MUTE = "storm.mute"  # of producers that answer nothing


class Book:
    """What was written for one session: sequence -> packets, and chunks."""

    def __init__(self):
        self.written = {}
        self.chunks = 0


class Busy(Producer):
    """Writes into whatever runs, and keeps the books of it."""

    def __init__(self, storm, name, sources, **options):
        self.storm = storm
        super().__init__(storm.loop, storm.producers_at, name, sources,
                         **options)

    def _command(self, raw):
        super()._command(raw)
        self.commands.clear()  # they would add up

    def _started(self, command):
        super()._started(command)
        instance = self.instances[command.new_instance_id]
        instance.number = self.storm.next_number()
        instance.out = self.writer(instance)

    def _stopped(self, command):
        instance = self.instances[command.instance_id]
        if instance.state == "started":
            self.unregister_writer(instance.out.id)
        super()._stopped(command)
        del self.instances[command.instance_id]

    def write(self, count):
        """A few packets into one that runs."""
        running = self.started()
        if not running:
            return
        instance = self.storm.random.choice(running)
        book = self.storm.book(instance.config.tracing_session_id)
        first = book.written.get(instance.number, 0)
        before = instance.out.next_chunk
        instance.out.write([
            numbered(n, value=instance.number)
            for n in range(first, first + count)], ask=False)
        book.written[instance.number] = first + count
        book.chunks += instance.out.next_chunk - before


class Mute(Busy):
    """Says nothing after its start, and writes nothing."""

    def __init__(self, storm, name):
        super().__init__(storm, name, [MUTE])
        self.acks_stop = self.answers_flush = False

    def write(self, count):
        pass


def by_number(packets):
    """{sequence of the books: its packets' numbers}."""
    out = {}
    for raw in packets:
        packet = pb.TracePacket.FromString(raw)
        if packet.WhichOneof("data") == "for_testing":
            assert not packet.previous_packet_dropped, "a loss"
            out.setdefault(packet.for_testing.seq_value, []).append(
                packet.for_testing.counter)
    return out


class Life:
    """One consumer after the other, each with a session, at random.

    Generators: what they yield is a condition, and they go on when it is true;
    storm.step() does that for all of them.
    """

    def __init__(self, storm, slot, rng):
        self.storm = storm
        self.slot = slot
        self.random = rng
        self.n = 0
        self.consumer = None
        self.going = self.lives()
        self.begin_wait(lambda: True, "begin")

    # -- the machinery --

    def begin_wait(self, condition, what):
        self.condition, self.what = condition, what
        self.since = time.monotonic()

    def step(self):
        """Whether it is still there."""
        while self.condition():
            took = time.monotonic() - self.since
            slowest = self.storm.slowest
            slowest[self.what] = max(took, slowest.get(self.what, 0))
            try:
                self.begin_wait(*next(self.going))
            except StopIteration:
                return False
        if time.monotonic() - self.since > PATIENCE * SCALE:
            raise AssertionError(f"session {self.slot}.{self.n} waits for "
                                 f"{self.what} for ever")
        return True

    def call(self, method, request=None, consumer=None, **options):
        """yield from it: the call, ended and not cut off."""
        call = (consumer or self.consumer).call(method, request, **options)
        yield call.ended, method
        assert not call.gone, f"cut off in {method}"
        self.storm.counts[method] = self.storm.counts.get(method, 0) + 1
        return call

    def rest(self, milliseconds):
        until = time.monotonic() + milliseconds / 1000
        yield lambda: time.monotonic() >= until, "rest"

    def chance(self, percent):
        return self.random.random() * 100 < percent

    # -- one session --

    def lives(self):
        while not self.storm.over:
            self.n += 1
            yield from self.one()

    def make_config(self):
        """Fields of the config; self.* say what to expect of it."""
        fields = {"unique_session_name": f"s{self.slot}.{self.n}",
                  "flush_timeout_ms": LONG_MS,
                  "data_source_stop_timeout_ms": LONG_MS}
        names = self.random.sample(self.storm.sources,
                                   self.random.randint(1, 2))
        self.mute = self.chance(5)
        if self.mute:
            names.append(MUTE)
            fields.update(flush_timeout_ms=100,
                          data_source_stop_timeout_ms=100)
        self.trigger = None
        self.deferred = self.chance(20)
        self.file = None
        self.duration = 0
        self.periodic = False
        kind = self.random.randrange(10)
        if kind == 0:
            self.duration = self.random.randint(100, 600)
            fields["duration_ms"] = self.duration
        elif kind in (1, 2):
            self.trigger = "STOP_TRACING" if kind == 1 else "CLONE_SNAPSHOT"
            name = f"t{self.slot}.{self.n}"
            fields["trigger_config"] = pb.TraceConfig.TriggerConfig(
                trigger_mode=self.trigger, trigger_timeout_ms=60_000,
                triggers=[pb.TraceConfig.TriggerConfig.Trigger(
                    name=name, stop_delay_ms=self.random.randint(0, 50))])
        elif kind in (3, 4):
            self.file = self.storm.path(f"f{self.slot}.{self.n}")
            fields.update(write_into_file=True, file_write_period_ms=100)
        elif kind == 5:
            self.periodic = True
            fields["flush_period_ms"] = 50
        return config(*names, deferred_start=self.deferred, **fields)

    def one(self):
        self.consumer = self.storm.connect()
        self.seen = {}
        if self.chance(30):
            self.consumer.observe(1, 2, 4)
        wanted = self.make_config()
        fds = []
        if self.file:
            fds.append(os.open(self.file,
                               os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        self.consumer.enable(wanted, fds)
        for fd in fds:
            os.close(fd)
        self.name = wanted.unique_session_name
        yield from self.find_id()
        if self.deferred:
            yield from self.call("StartTracing")
        for _ in range(self.random.randint(0, 6)):
            if self.consumer.session.ended():
                break
            yield from self.random.choice((
                self.flush, self.read, self.stats, self.clone, self.query,
                self.travel, lambda: self.rest(self.random.randint(0, 150))))()
        yield from self.end()
        self.storm.disconnect(self.consumer)
        if self.file:
            os.unlink(self.file)
        self.storm.lives += 1

    def find_id(self):
        state = yield from self.state(sessions_only=True)
        found = [s.id for s in state.tracing_sessions
                 if s.unique_session_name == self.name and
                 s.state != "CLONED_READ_ONLY"]
        assert len(found) == 1, f"{self.name} is there {len(found)} times"
        self.id = found[0]

    def state(self, **fields):
        call = yield from self.call("QueryServiceState",
                                    pb.QueryServiceStateRequest(**fields))
        whole = pb.QueryServiceStateResponse()
        for part in call.replies:
            whole.MergeFromString(part)
        return whole.service_state

    def query(self):
        state = yield from self.state()
        assert len(state.producers) == self.storm.n_producers
        assert len(state.data_sources) == self.storm.n_data_sources

    def flush(self):
        book = self.storm.book(self.id)
        before = dict(book.written)
        call = yield from self.call("Flush", pb.FlushRequest(
            timeout_ms=100 if self.mute else LONG_MS))
        if self.consumer.session.ended() or self.ends_by_itself():
            return
        # One that has not started is not flushed, nor does mute succeed.
        assert self.mute or not call.rejected, "a flush failed"
        if not call.rejected and self.readable():
            yield from self.read()
            self.has_all(before)

    def ends_by_itself(self):
        return self.duration > 0

    def readable(self):
        return self.file is None and self.trigger is None

    def read(self):
        if not self.readable():
            return
        deaf = self.chance(15)
        if deaf:  # for a while, and has them all at once then
            self.consumer.pause()
            call = self.consumer.call("ReadBuffers")
            yield from self.rest(self.random.randint(0, 100))
            self.consumer.resume()
            yield call.ended, "ReadBuffers"
            assert not call.gone
        else:
            call = yield from self.call("ReadBuffers")
        assert not call.rejected
        self.take(join_slices(call.replies))

    def take(self, packets):
        for number, counters in by_number(packets).items():
            have = self.seen.setdefault(number, 0)
            assert counters == list(range(have, have + len(counters))), \
                f"sequence {number}: {counters} after {have}"
            self.seen[number] = have + len(counters)

    def has_all(self, written):
        for number, count in written.items():
            assert self.seen.get(number, 0) >= count, \
                f"{self.seen.get(number, 0)} of {count} packets"

    def stats(self):
        call = yield from self.call("GetTraceStats")
        stats = pb.GetTraceStatsResponse.FromString(
            call.replies[-1]).trace_stats
        self.check(stats)
        return stats

    def check(self, stats):
        """Sums that hold at any time."""
        assert stats.flushes_succeeded + stats.flushes_failed <= \
            stats.flushes_requested
        assert self.mute or stats.flushes_failed == 0 or (
            self.periodic and self.storm.longest_turn > PROMPT)
        assert stats.invalid_packets == 0
        assert stats.patches_discarded == 0
        (buffer,) = stats.buffer_stats
        book = self.storm.book(self.id)
        assert buffer.chunks_written <= book.chunks
        assert buffer.chunks_overwritten == buffer.chunks_discarded == 0
        assert buffer.chunks_read <= buffer.chunks_written
        assert sum(sum(w.chunk_payload_histogram_counts)
                   for w in stats.writer_stats) <= buffer.chunks_written

    def travel(self):
        """To another consumer, by way of nobody."""
        if self.ends_by_itself():
            return
        key = f"key of {self.name}"
        yield from self.call("Detach", pb.DetachRequest(key=key))
        self.storm.disconnect(self.consumer)
        yield from self.rest(self.random.randint(0, 20))
        self.consumer = self.storm.connect()
        call = yield from self.call("Attach", pb.AttachRequest(key=key))
        assert not call.rejected, "the session is gone"
        self.consumer.session = self.consumer.call(
            "EnableTracing", pb.EnableTracingRequest(
                attach_notification_only=True))

    def clone(self):
        book = self.storm.book(self.id)
        before = dict(book.written)
        copier = self.storm.connect()
        selector = {"session_id": self.id} if self.chance(50) else \
            {"unique_session_name": self.name}
        call = yield from self.call(
            "CloneSession", pb.CloneSessionRequest(**selector), copier)
        response = pb.CloneSessionResponse.FromString(call.replies[-1])
        if response.success:
            yield from self.check_clone(copier, book, before)
        else:
            # The only way to fail is to come too late.
            assert self.ends_by_itself(), response.error
        if self.chance(50):
            yield from self.call("FreeBuffers", None, copier)
        self.storm.disconnect(copier)

    def check_clone(self, copier, book, before):
        call = yield from self.call("ReadBuffers", None, copier)
        assert not call.rejected
        packets = join_slices(call.replies)
        found = by_number(packets)
        for number, counters in found.items():
            assert counters == list(range(counters[0], counters[-1] + 1))
            assert counters[-1] < book.written[number]
        if self.mute or self.file:
            return  # flushed in vain, or already in the file
        for number, count in before.items():
            last = found.get(number, [self.seen.get(number, 0) - 1])[-1]
            assert last >= count - 1, \
                f"{last + 1} of {count} packets in the clone"

    # -- its end --

    def end(self):
        if self.trigger == "STOP_TRACING":
            self.storm.pull(f"t{self.slot}.{self.n}")
        elif self.ends_by_itself():
            pass
        elif self.chance(20):
            # Nobody says goodbye; what is on its way comes too late.
            return
        elif self.chance(20):
            yield from self.call("FreeBuffers")
            return
        else:
            if self.trigger:
                self.storm.pull(f"t{self.slot}.{self.n}")
            yield from self.call("DisableTracing")
        yield self.consumer.session.ended, "the end"
        response = pb.EnableTracingResponse.FromString(
            self.consumer.session.replies[-1])
        assert response.disabled and not response.error, response.error
        yield from self.last_read()

    def last_read(self):
        if self.trigger == "CLONE_SNAPSHOT":
            return
        if self.file:
            trace = Trace.from_file(self.file)
        else:
            call = yield from self.call("ReadBuffers")
            assert not call.rejected
            trace = Trace(join_slices(call.replies))
        self.take(trace.raw)
        book = self.storm.book(self.id)
        assert self.seen == book.written, "not what was written"
        stats = yield from self.stats()
        if trace.of("trace_stats"):  # else a read that saw the end has them
            self.check(trace.stats())
        assert stats.flushes_succeeded + stats.flushes_failed == \
            stats.flushes_requested
        (buffer,) = stats.buffer_stats
        assert buffer.chunks_written == buffer.chunks_read == book.chunks
        assert sum(sum(w.chunk_payload_histogram_counts)
                   for w in stats.writer_stats) == book.chunks
        del self.storm.books[self.id]
        self.storm.chunks += book.chunks
        self.storm.packets += sum(book.written.values())
