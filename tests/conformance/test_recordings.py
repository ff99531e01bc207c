#!/usr/bin/env python3
"""Recorded exchanges of real clients get equivalent answers here."""

import os
import sys

from harness import abi, pb, tap
from harness.case import Case
from harness.imported import causes
from harness.producer import Producer
from harness.trace import Trace
from equivalence import Ids, trace_differences
import recording
from replay import Script


def packets_of(trace, kind):
    """Packets of a recorded trace as their producer wrote them."""
    out = []
    for recorded in trace.of(kind):
        packet = pb.TracePacket.FromString(recorded.SerializeToString())
        for field in ("trusted_uid", "trusted_pid", "machine_id",
                      "trusted_packet_sequence_id",
                      "previous_packet_dropped"):
            packet.ClearField(field)
        out.append(packet.SerializeToString())
    return out


class Recordings(Case):
    def setUp(self):
        super().setUp()
        self.ids = Ids()
        self.daemon(producer=[self.path("p"), "127.0.0.1:0"],
                    consumer=[self.path("c"), "127.0.0.1:0"],
                    flags=["--enable-relay-endpoint"])

    def recorded(self, name):
        return Trace.from_file(os.path.join(recording.FOLDER, f"trace-{name}.pftrace"))

    def script(self, name, port, kind="unix", ready=None, events=None):
        script = Script(self, name, events or recording.load(name),
                        self.daemons[0].address(port, kind), self.ids, ready)
        if port == "producers":
            script.prepare = self.prepare
        return script

    def play(self, *scripts):
        def finished():
            for script in scripts:
                script.advance()
            return all(s.done() for s in scripts)
        try:
            self.until(finished, "the end of the recording")
        except AssertionError as error:
            stuck = [f"{s.name} waits for {s.next().method} on connection "
                     f"{s.next().conn} ({s.next().kind} at "
                     f"{s.next().t_us} us)" for s in scripts if not s.done()]
            raise AssertionError(f"{error}; {stuck}; " + "\n".join(
                p for s in scripts for p in s.problems)) from error
        self.assert_same([p for s in scripts for p in s.problems])
        for script in scripts:
            for conn, order in script.recorded_order.items():
                self.assertEqual(order, script.clients[conn].reply_order,
                                 f"{script.name}: order of the replies")

    def assert_same(self, problems):
        if problems:
            self.fail("\n" + "\n".join(problems))

    # What the producers of the recordings had in their shared memory is not
    # in the recordings: plausible chunks are written in its place.
    payload = ()

    def prepare(self, client, event, request):
        if event.method == "RegisterTraceWriter":
            client.writers[request.trace_writer_id] = request.target_buffer
        elif event.method == "CommitData":
            for move in request.chunks_to_move:
                self.fill(client, move)
            if event.truncated:
                self.complete_frame(client, request)

    def fill(self, client, move):
        """A complete chunk where this request says there is one."""
        if client.shm is None:
            return
        writer = min(client.writers)
        if client.shm.layout(move.page) == 0:
            layout = next(k for k, n in abi.CHUNKS.items() if n > move.chunk)
            client.shm.set_header(move.page, layout << 28)
        chunk_id = client.free_chunk_ids.get(writer, 0)
        client.free_chunk_ids[writer] = chunk_id + 1
        client.shm.put(move.page, move.chunk,
                       abi.chunk(writer, chunk_id, self.payload),
                       client.shm.layout(move.page))

    def complete_frame(self, client, request):
        """A cut CommitData: chunks again where their data was cut off."""
        writer = min(client.writers)
        for move in request.chunks_to_move:
            if client.shm is None and not move.data:
                chunk_id = client.free_chunk_ids.get(writer, 0)
                client.free_chunk_ids[writer] = chunk_id + 1
                move.data = abi.chunk(writer, chunk_id, self.payload)

    def probes(self):
        """A stand-in for the traced_probes that was there when recording."""
        descriptors = [
            e.message().data_source_descriptor
            for e in recording.load("producer-unix")
            if e.kind == "c2s" and e.method == "RegisterDataSource"]
        producer = self._add(Producer(
            self.loop, self.daemons[0].address("producers"), start=False,
            name="perfetto.traced_probes"))
        producer.bind()
        producer.invoke("InitializeConnection", pb.InitializeConnectionRequest(
            producer_name="perfetto.traced_probes",
            smb_scraping_mode="SMB_SCRAPING_DISABLED",
            shared_memory_page_size_hint_bytes=32768,
            shared_memory_size_hint_bytes=2 << 20,
            sdk_version="Perfetto v0.0 (unknown)"))
        producer.page_size = 32768
        producer.listen()
        for descriptor in descriptors:
            producer.invoke("RegisterDataSource", pb.RegisterDataSourceRequest(
                data_source_descriptor=descriptor))
        payload = packets_of(self.recorded("record"), "sys_stats")
        written = set()

        def write(command):
            """At a flush: what has gathered, for each new instance."""
            for instance in producer.started():
                if instance.id not in written:
                    written.add(instance.id)
                    producer.writer(instance).write(payload, ask=False)
        producer.before_flush = write
        return producer

    def test_record_with_the_producer_it_recorded(self):
        """consumer-record and producer-unix: one run, both sides."""
        self.payload = packets_of(self.recorded("record"), "sys_stats")
        producer = self.script("producer-unix", "producers")
        consumer = self.script(
            "consumer-record", "consumers",
            ready=lambda: producer.waits_for("GetAsyncCommand"))
        self.play(producer, consumer)
        ((_, ours),) = consumer.traces
        self.assertEqual(len(ours.of("sys_stats")), len(self.payload))
        self.assert_same(trace_differences(self.recorded("record"), ours))

    def test_record_over_tcp_with_its_producer(self):
        """consumer-tcp and producer-tcp: emulated shared memory."""
        self.payload = packets_of(self.recorded("tcp"), "sys_stats")
        producer = self.script("producer-tcp", "producers", "tcp")
        consumer = self.script(
            "consumer-tcp", "consumers", "tcp",
            ready=lambda: producer.waits_for("GetAsyncCommand"))
        self.play(producer, consumer)
        ((_, ours),) = consumer.traces
        self.assertTrue(ours.of("sys_stats"))

    def test_write_into_file(self):
        self.probes()
        consumer = self.script("consumer-write-into-file", "consumers")
        self.play(consumer)
        (path,) = consumer.files
        ours = Trace.from_file(path)
        # The file of that run is gone; a file holds what a read would.
        recorded = self.recorded("record")
        self.assertEqual(set(recorded.kinds()), set(ours.kinds()))
        self.assertEqual(len(ours.of("sys_stats")),
                         len(recorded.of("sys_stats")))

    def test_queries_detaching_attaching_and_cloning(self):
        """consumer-admin: six connections of the perfetto command."""
        probes = self.probes()
        consumer = self.script("consumer-admin", "consumers")
        self.play(consumer)
        self.assertEqual(len(consumer.traces), 2)
        # The clone is read first; the command wrote it to a file.
        (_, clone), (_, ring) = consumer.traces
        self.assert_same(trace_differences(self.recorded("clone"), clone))
        self.assertTrue(clone.of("sys_stats"))
        self.assert_new_half_of_uuid(clone, ring)
        # What detached wrote into its own file; the clone's stayed empty.
        detached, unused = consumer.files
        self.assertEqual(
            set(Trace.from_file(detached).kinds()),
            set(self.recorded("record").kinds()))
        self.assertEqual(os.path.getsize(unused), 0)
        # Producers see whose flush it is: the command's own, and ours.
        self.assertEqual([c.flags for c in probes.saw("flush")],
                         [0x22, 0x12, 0x13, 0x22, 0x12])
        self.nothing_is_left()

    def assert_new_half_of_uuid(self, clone, source):
        a, b = (t.of("trace_uuid")[0].trace_uuid for t in (clone, source))
        self.assertNotEqual(a.msb, b.msb)
        self.assertEqual(a.lsb, b.lsb)

    def nothing_is_left(self):
        other = self.consumer()
        self.until(lambda: other.query().num_sessions == 0,
                   "the sessions are gone")

    def test_a_stop_trigger_pulled_by_trigger_perfetto(self):
        probes = self.probes()
        consumer = self.script("consumer-trigger", "consumers")
        trigger = self.script("producer-trigger", "producers",
                              ready=lambda: bool(probes.started()))
        self.play(consumer, trigger)
        ((recorded, ours),) = consumer.traces
        (theirs,), (mine,) = recorded.of("trigger"), ours.of("trigger")
        self.assertEqual(mine.trigger.trigger_name, theirs.trigger.trigger_name)
        self.assertEqual(mine.trigger.producer_name,
                         theirs.trigger.producer_name)
        self.assertEqual(mine.trigger.stop_delay_ms,
                         theirs.trigger.stop_delay_ms)
        self.assertEqual(mine.trigger.trusted_producer_uid, os.getuid())
        # It was pulled while the session ran.
        began, ended = (next(
            p.timestamp for p in ours.of("service_event")
            if p.service_event.WhichOneof("event_type") == name)
            for name in ("tracing_started", "tracing_disabled"))
        self.assertLess(began, mine.timestamp)
        self.assertLess(mine.timestamp, ended)
        self.assertEqual([c.flags for c in probes.saw("flush")], [0x12])
        self.nothing_is_left()

    def test_a_relay_and_the_producer_behind_it(self):
        recorded = self.recorded("relay")
        self.payload = packets_of(recorded, "sys_stats")
        relay = self.script("relay-tcp", "producers", "tcp")
        config = recorded.of("trace_config")[0].trace_config
        consumer = self.consumer()

        def play():
            relay.advance()
            if relay.waits_for("GetAsyncCommand") and \
                    not hasattr(consumer, "session"):
                consumer.enable(config)
            return relay.done()
        self.until(play, "the end of the relay's recording")
        self.assert_same(relay.problems)
        consumer.ended()
        ours = consumer.read()
        self.assertTrue(ours.of("sys_stats"))
        self.assert_same(trace_differences(recorded, ours))
        machines = {p.machine_id for p in ours.of("sys_stats")}
        self.assertEqual(len(machines), 1)
        (sync,) = ours.of("remote_clock_sync")
        self.assertEqual({sync.machine_id}, machines)

    # What it scrapes has a number far behind the others.
    @causes("traced_buf_sequence_packet_loss")
    def test_every_process_of_a_chromium(self):
        """Most of its data is never committed and must be scraped."""
        self.payload = [pb.TracePacket(
            timestamp=1, for_testing=pb.TestEvent(counter=n)
        ).SerializeToString() for n in range(3)]
        producers = self.script("producer-chromium", "producers")
        scraped = []
        plain = producers.prepare

        def prepare(client, event, request):
            plain(client, event, request)
            if event.method == "RegisterTraceWriter":
                # A chunk that its writer will never finish.
                page = client.shm.pages - 1 - len(client.writers)
                client.shm.put(page, 0, abi.chunk(
                    request.trace_writer_id, 1000,
                    [*self.payload, b"\x0a"]), state=abi.BEING_WRITTEN)
                scraped.append(request.trace_writer_id)
        producers.prepare = prepare
        setup = next(e for e in producers.events if e.kind == "s2c" and
                     e.method == "GetAsyncCommand" and
                     e.message().WhichOneof("cmd") == "setup_data_source")
        wanted = pb.TraceConfig(
            duration_ms=2000, buffers=[pb.TraceConfig.BufferConfig(
                size_kb=32 * 1024)])
        source = wanted.data_sources.add().config
        source.name = "track_event"
        source.track_event_config.CopyFrom(
            setup.message().setup_data_source.config.track_event_config)
        consumer = self.consumer()

        def play():
            producers.advance()
            if producers.waits_for("GetAsyncCommand") and \
                    not hasattr(consumer, "session"):
                consumer.enable(wanted)
            return producers.done()
        self.until(play, "the end of Chromium's recording")
        self.assert_same(producers.problems)
        consumer.ended()
        ours = consumer.read()
        commits = sum(len(e.message().chunks_to_move)
                      for e in producers.events
                      if e.kind == "c2s" and e.method == "CommitData")
        self.assertEqual(len(ours.of("for_testing")),
                         3 * (commits + len(scraped)))
        for buffer in ours.stats().buffer_stats:
            self.assertEqual(buffer.abi_violations, 0)


if __name__ == "__main__":
    sys.exit(tap.main())
