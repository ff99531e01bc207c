#!/usr/bin/env python3
"""Shared memory and chunks: honest ones, odd ones and hostile ones."""

import fcntl
import os
import sys
import time

from google.protobuf.message import DecodeError

from harness import abi, tap
from harness.case import Case, config, pb
from harness.chance import seeded
from harness.imported import causes
from harness.producer import numbered

F_ADD_SEALS, F_GET_SEALS = 1033, 1034
SEAL_SEAL, SEAL_SHRINK, SEAL_GROW = 1, 2, 4
KIB = 1024


def memfd(size, seals=SEAL_SEAL | SEAL_SHRINK | SEAL_GROW):
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if seals:
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


def move(buffer, page=0, index=0, **fields):
    return pb.CommitDataRequest.ChunksToMove(
        page=page, chunk=index, target_buffer=buffer, **fields)


def patch(writer, chunk_id, offset, data, more=False, buffer=None):
    return pb.CommitDataRequest.ChunkToPatch(
        target_buffer=writer.buffer if buffer is None else buffer,
        writer_id=writer.id, chunk_id=chunk_id, has_more_patches=more,
        patches=[pb.CommitDataRequest.ChunkToPatch.Patch(
            offset=offset, data=data)])


class MemoryCase(Case):
    def setUp(self):
        super().setUp()
        self.daemon(producer=[self.path("p"), "127.0.0.1:0"])

    def set_up(self, **options):
        """A producer with its data source started, and the consumer."""
        producer = self.producer("mem", ["mem"], **options)
        consumer = self.session("mem")
        producer.wait_started()
        return producer, consumer

    def tcp(self):
        return self.daemons[0].address("producers", "tcp")

    def finish(self, consumer):
        """The trace, after a normal stop."""
        stats = consumer.stats()
        consumer.stop()
        return consumer.read(), stats


class Setup(MemoryCase):
    def assert_memory(self, producer, size_kb, page_kb):
        self.assertEqual(producer.shm.size, size_kb * KIB)
        self.assertEqual(producer.page_size, page_kb * KIB)
        seals = fcntl.fcntl(producer.memory_fd, F_GET_SEALS)
        self.assertTrue(seals & SEAL_SHRINK and seals & SEAL_SEAL)

    def test_the_default_is_256_kib_in_pages_of_4_kib(self):
        producer, _ = self.set_up()
        self.assert_memory(producer, 256, 4)

    def test_the_producers_hints_are_taken(self):
        producer, _ = self.set_up(
            shared_memory_page_size_hint_bytes=32 * KIB,
            shared_memory_size_hint_bytes=2048 * KIB)
        self.assert_memory(producer, 2048, 32)

    def test_sizes_that_make_no_sense_fall_back(self):
        for page, size in ((3 * KIB, 256 * KIB), (5000, 65536), (64 * KIB, 0),
                           (2**31, 2**31), (1, 1), (4096, 4097)):
            with self.subTest(page=page, size=size):
                producer = self.producer(
                    f"odd{page}.{size}", [f"odd{page}.{size}"],
                    shared_memory_page_size_hint_bytes=page,
                    shared_memory_size_hint_bytes=size)
                self.session(f"odd{page}.{size}")
                producer.wait_started()
                self.assertIn(producer.page_size, (4096, 8192, 16384, 32768))
                self.assertEqual(producer.shm.size % producer.page_size, 0)
                self.assertLessEqual(producer.shm.size, 32 * KIB * KIB)
                self.assertGreaterEqual(producer.shm.size, producer.page_size)

    def test_the_sessions_sizes_win_over_the_hints(self):
        producer = self.producer("mem", ["mem"],
                                 shared_memory_size_hint_bytes=512 * KIB)
        self.session("mem", producers=[pb.TraceConfig.ProducerConfig(
            producer_name="mem", shm_size_kb=1024, page_size_kb=8)])
        producer.wait_started()
        self.assert_memory(producer, 1024, 8)

    def test_memory_of_the_producers_own_is_adopted(self):
        fd = memfd(128 * KIB)
        producer = self.producer(
            "own", ["own"], fds=[fd], producer_provided_shmem=True,
            shared_memory_page_size_hint_bytes=4096,
            shared_memory_size_hint_bytes=128 * KIB)
        self.assertTrue(producer.settings.using_shmem_provided_by_producer)
        producer.map(fd)
        consumer = self.session("own")
        producer.wait_started()
        self.assertFalse(producer.fds)
        producer.writer().number(100)
        trace, _ = self.finish(consumer)
        self.assert_numbers(trace, [100])

    def test_memory_that_could_shrink_or_is_no_memory_is_not_adopted(self):
        """The file may shrink under the reader: it must not be mapped."""
        with open(self.path("plain"), "wb") as plain:
            plain.truncate(128 * KIB)
        bad = {
            "unsealed": memfd(128 * KIB, seals=0),
            "sealed against growing only": memfd(128 * KIB, seals=SEAL_GROW),
            "a plain file": os.open(self.path("plain"), os.O_RDWR),
            "a pipe": os.pipe()[0],
            "empty": memfd(0),
            "no multiple of the page": memfd(128 * KIB + 100),
            "too large": memfd(33 * KIB * KIB),
        }
        with self.neighbour():
            for number, (what, fd) in enumerate(bad.items()):
                with self.subTest(what):
                    name = f"bad{number}"
                    producer = self.producer(
                        name, [name], fds=[fd], producer_provided_shmem=True,
                        shared_memory_page_size_hint_bytes=4096,
                        shared_memory_size_hint_bytes=128 * KIB)
                    self.assertFalse(
                        producer.settings.using_shmem_provided_by_producer)
                    if "seal" in what or "plain" in what:
                        os.ftruncate(fd, 0)
                    consumer = self.session(name)
                    producer.wait_started()
                    producer.writer().number(10)
                    trace, _ = self.finish(consumer)
                    self.assert_numbers(trace, [10])
                os.close(fd)

    def test_memory_with_a_page_size_that_is_none_is_not_adopted(self):
        """Whoever writes other pages than are read loses most of them."""
        for page in (0, 12 * KIB, 64 * KIB):
            with self.subTest(page=page):
                name = f"odd.own.{page}"
                fd = memfd(768 * KIB)
                producer = self.producer(
                    name, [name], fds=[fd], producer_provided_shmem=True,
                    shared_memory_page_size_hint_bytes=page,
                    shared_memory_size_hint_bytes=768 * KIB)
                self.assertFalse(
                    producer.settings.using_shmem_provided_by_producer)
                consumer = self.session(name)
                producer.wait_started()
                producer.writer().number(100)
                trace, _ = self.finish(consumer)
                self.assert_numbers(trace, [100])
                os.close(fd)

    def test_sockets_without_shared_memory_get_emulation(self):
        producer, consumer = self.set_up(address=self.tcp())
        self.assertTrue(producer.settings.use_shmem_emulation)
        self.assertTrue(producer.settings.direct_smb_patching_supported)
        self.assertIsNone(producer.shm)
        producer.writer().number(500)
        trace, _ = self.finish(consumer)
        self.assert_numbers(trace, [500])


class Chunks(MemoryCase):
    def test_every_page_layout_is_read(self):
        producer, consumer = self.set_up()
        counts = []
        for page, layout in enumerate(abi.CHUNKS):
            for index in range(abi.CHUNKS[layout]):
                writer = producer.writer()
                data = abi.chunk(writer.id, 0, [numbered(0, 60, writer.id),
                                                numbered(1, 60, writer.id)])
                producer.shm.put(page, index, data, layout)
                counts.append(2)
            producer.commit([move(writer.buffer, page, index)
                             for index in range(abi.CHUNKS[layout])])
            self.assertEqual(producer.shm.header(page), 0,
                             "the page is free again")
        trace, stats = self.finish(consumer)
        self.assert_numbers(trace, counts)
        self.assert_clean_stats(stats)

    def test_packets_larger_than_chunks_come_out_whole(self):
        for address in (None, self.tcp()):
            producer = self.producer("big", ["big"], address=address)
            consumer = self.session("big", size_kb=8192)
            producer.wait_started()
            writer = producer.writer()
            sizes = [10, 4000, 4080, 4081, 5000, 100_000, 12, 1_000_000, 7]
            packets = [numbered(n, size) for n, size in enumerate(sizes)]
            writer.write(packets)
            trace, stats = self.finish(consumer)
            self.assert_numbers(trace, [len(sizes)])
            for want, got in zip(packets, trace.of("for_testing")):
                self.assertEqual(pb.TracePacket.FromString(want).for_testing,
                                 got.for_testing)
            self.assert_clean_stats(stats)
            producer.close()
            consumer.close()

    def test_a_chunk_still_being_written_is_scraped_at_the_stop(self):
        producer, consumer = self.set_up(smb_scraping_mode=1)
        writer = producer.writer()
        packets = [numbered(n, 80) for n in range(5)]
        producer.shm.put(0, 0, abi.chunk(writer.id, 0, packets),
                         state=abi.BEING_WRITTEN)
        producer.shm.put(1, 0, abi.chunk(
            writer.id + 1, 0, [numbered(n, 80) for n in range(3)]),
            state=abi.COMPLETE)
        producer.register_writer(writer.id + 1, writer.buffer)
        producer.sync()
        trace, _ = self.finish(consumer)
        # The last fragment of an unfinished chunk may be half written.
        self.assert_numbers(trace, [4, 3])

    def test_a_scraped_chunk_that_is_committed_later_counts_once(self):
        producer, consumer = self.set_up(smb_scraping_mode=1)
        writer = producer.writer()
        packets = [numbered(n, 80) for n in range(6)]
        producer.shm.put(0, 0, abi.chunk(writer.id, 0, packets[:3]),
                         state=abi.BEING_WRITTEN)
        producer.sync()
        consumer.flush(60_000)
        first = consumer.read()
        self.assertEqual([len(n) for n in first.numbers().values()], [2])
        producer.shm.put(0, 0, abi.chunk(writer.id, 0, packets))
        producer.commit([move(writer.buffer)])
        trace, stats = self.finish(consumer)
        self.assertEqual(list(trace.numbers().values()), [[2, 3, 4, 5]])
        self.assertEqual(trace.losses(), [])
        self.assert_clean_stats(stats)

    def test_without_scraping_an_unfinished_chunk_stays_the_producers(self):
        producer, consumer = self.set_up(smb_scraping_mode=2)
        writer = producer.writer()
        producer.shm.put(0, 0, abi.chunk(
            writer.id, 0, [numbered(n, 80) for n in range(5)]),
            state=abi.BEING_WRITTEN)
        producer.sync()
        trace, _ = self.finish(consumer)
        self.assertEqual(trace.numbers(), {})

    def test_a_chunk_that_waits_for_a_patch_is_held_back_until_it_comes(self):
        for address in (None, self.tcp()):
            producer = self.producer("patched", ["patched"], address=address)
            consumer = self.session("patched")
            producer.wait_started()
            writer = producer.writer()
            other = producer.writer()
            packet = bytearray(numbered(0, 3000))
            whole = bytes(packet)
            packet[100:104] = b"\0\0\0\0"
            data = abi.chunk(writer.id, 0, [bytes(packet[:2000])],
                             abi.CONTINUED | abi.NEEDS_PATCHING)
            tail = abi.chunk(writer.id, 1, [bytes(packet[2000:]),
                                            numbered(1)], abi.CONTINUES)
            for part in (data, tail):
                placed = producer.place(part)
                placed.target_buffer = writer.buffer
                producer.commit([placed])
            other.number(3)
            first = consumer.read()
            self.assertEqual([len(n) for n in first.numbers().values()], [3])
            at = abi.CHUNK_HEADER - abi.CHUNK_HEADER + \
                len(abi.varint(2000)) + 100
            producer.commit(patches=[patch(writer, 0, at, whole[100:102],
                                           more=True)])
            self.assertEqual(consumer.read().numbers(), {})
            producer.commit(patches=[patch(writer, 0, at + 2,
                                           whole[102:104])])
            second = consumer.read()
            self.assertEqual(list(second.numbers().values()), [[0, 1]])
            self.assertEqual(second.of("for_testing")[0].for_testing,
                             pb.TracePacket.FromString(whole).for_testing)
            stats = consumer.stats()
            self.assertEqual(stats.buffer_stats[0].patches_succeeded, 2)
            self.assert_clean_stats(stats)
            producer.close()
            consumer.close()

    def test_patches_apply_after_the_chunks_of_the_same_request(self):
        producer, consumer = self.set_up()
        writer = producer.writer()
        packet = numbered(0, 500)
        holed = packet[:50] + b"\0\0" + packet[52:]
        head = producer.place(abi.chunk(
            writer.id, 0, [holed[:300]], abi.CONTINUED | abi.NEEDS_PATCHING))
        tail = producer.place(abi.chunk(
            writer.id, 1, [holed[300:]], abi.CONTINUES))
        head.target_buffer = tail.target_buffer = writer.buffer
        producer.commit([head, tail],
                        [patch(writer, 0, len(abi.varint(300)) + 50,
                               packet[50:52])])
        trace, stats = self.finish(consumer)
        self.assert_numbers(trace, [1])
        self.assert_clean_stats(stats)

    def test_emulated_chunks_may_have_any_page_number(self):
        """Rejecting them once lost three quarters of the data."""
        producer, consumer = self.set_up(address=self.tcp())
        writer = producer.writer()
        for n, page in enumerate((0, 63, 64, 1000, 8191, 2**31, 2**32 - 1)):
            producer.commit([move(
                writer.buffer, page, n % 14,
                data=abi.chunk(writer.id, n, [numbered(n)]))])
        trace, stats = self.finish(consumer)
        self.assert_numbers(trace, [7])
        self.assert_clean_stats(stats)

    @causes("traced_buf_sequence_packet_loss")
    def test_a_gap_between_chunks_is_reported_in_the_trace(self):
        producer, consumer = self.set_up()
        writer = producer.writer()
        writer.number(2)
        writer.next_chunk += 3
        writer.number(2)
        trace, _ = self.finish(consumer)
        packets = trace.of("for_testing")
        self.assertEqual([bool(p.previous_packet_dropped) for p in packets],
                         [False, False, True, False])

    @causes("traced_buf_sequence_packet_loss",
            "traced_buf_trace_writer_packet_loss")
    def test_a_writer_that_gave_up_on_a_packet_is_counted(self):
        producer, consumer = self.set_up()
        writer = producer.writer()
        placed = producer.place(abi.header(writer.id, writer.chunk_id(), 2) +
                                abi.fragment(numbered(0)) +
                                abi.varint(abi.DROP_PACKET))
        placed.target_buffer = writer.buffer
        producer.commit([placed])
        writer.counter = 1
        writer.number(1)
        trace, _ = self.finish(consumer)
        self.assertEqual(list(trace.numbers().values()), [[0, 1]])
        self.assertTrue(trace.of("for_testing")[1].previous_packet_dropped)
        self.assertEqual(
            trace.stats().buffer_stats[0].trace_writer_packet_loss, 1)


class Hostile(MemoryCase):
    def test_page_and_chunk_indexes_out_of_range_are_discarded(self):
        with self.neighbour():
            producer, consumer = self.set_up()
            writer = producer.writer()
            producer.shm.put(0, 0, abi.chunk(writer.id, 0, [numbered(0)]),
                             abi.DIV2)
            bad = [(producer.shm.pages, 0), (2**32 - 1, 0), (2**31, 2**31),
                   (0, 2), (0, 13), (0, 14), (0, 16), (0, 2**32 - 1),
                   (1, 0), (0, 1)]  # the last two: nothing there to take
            producer.commit([move(writer.buffer, p, c) for p, c in bad])
            stats = consumer.stats()
            self.assertGreaterEqual(stats.chunks_discarded, 1)
            self.assertEqual(stats.buffer_stats[0].chunks_written, 0)
            # The chunk that is there can still be taken.
            producer.commit([move(writer.buffer)])
            trace, _ = self.finish(consumer)
            self.assert_numbers(trace, [1])

    def test_page_headers_that_make_no_sense_are_survived(self):
        with self.neighbour():
            producer, consumer = self.set_up()
            writer = producer.writer()
            for layout in range(8):
                for states in (0, 0x0FFFFFFF, 0x0AAAAAAA, 0x05555555):
                    for top in (0, 1):
                        producer.shm.set_header(
                            3, top << 31 | layout << 28 | states)
                        producer.commit([move(writer.buffer, 3, c)
                                         for c in range(16)])
            consumer.flush(60_000)
            producer.shm.set_header(3, 0)
            writer.number(5)
            self.assertIn(5, [len(n) for n in
                              self.finish(consumer)[0].numbers().values()])

    def hostile_chunks(self):
        packet = numbered(0, 200)
        body = abi.fragment(packet)
        yield "a count without packets", abi.header(1, 0, 1023)
        yield "fewer packets than promised", abi.header(1, 0, 5) + body
        yield "a size beyond the chunk", \
            abi.header(1, 0, 1) + abi.varint(60_000) + packet
        yield "a size of 256 MiB", \
            abi.header(1, 0, 1) + abi.varint(0x0FFFFFFE) + packet
        yield "a size that never ends", abi.header(1, 0, 1) + b"\xff" * 300
        yield "a size of ten bytes", \
            abi.header(1, 0, 1) + b"\xff" * 9 + b"\x01" + packet
        yield "nothing but a header", abi.header(1, 0, 0)
        yield "shorter than a header", b"\1\0\0"
        yield "empty data", b""
        for flags in range(1, 64):
            yield f"flags {flags}", abi.header(1, flags, 2, flags) + 2 * body
        yield "writer 0", abi.header(0, 0, 1) + body
        yield "writer 65535", abi.header(0xFFFF, 0, 1) + body
        yield "a packet of noise", abi.chunk(1, 0, [b"\xff" * 50])
        yield "an empty packet", abi.chunk(1, 0, [b""])

    @causes("traced_buf_abi_violations")
    def test_chunks_whose_counts_sizes_or_flags_lie_harm_nobody(self):
        with self.neighbour():
            for address in (None, self.tcp()):
                with self.subTest(address=address):
                    self.all_lie(address)

    def all_lie(self, address):
        """One session for all of them, each of a producer of its own: a trace
        for each would take ten times as long to look at."""
        consumer = self.session("liar", size_kb=16384)
        wrote = {}
        for number, (what, data) in enumerate(self.hostile_chunks(), 100):
            producer = self.producer("liar", ["liar"], address=address)
            producer.wait_started()
            buffer = producer.started()[0].buffer
            honest = producer.writer(writer_id=number)
            honest.number(3)
            if producer.shm:
                producer.shm.put(5, 0, data)
                producer.commit([move(buffer, 5)])
            else:
                producer.commit([move(buffer, data=data)])
            honest.number(3)
            producer.sync()
            wrote[number] = what, producer
        trace, _ = self.finish(consumer)
        arrived = {}
        for packet in trace.of("for_testing"):
            event = packet.for_testing
            arrived.setdefault(event.seq_value, []).append(event.counter)
        for number, (what, producer) in wrote.items():
            self.assertEqual(arrived.get(number), [0, 1, 2, 3, 4, 5], what)
            self.assertFalse(producer.closed, what)
            producer.close()
        consumer.close()

    @causes("traced_buf_abi_violations")
    def test_a_chunk_that_breaks_the_rules_is_counted(self):
        producer, consumer = self.set_up()
        producer.shm.put(0, 0, abi.header(1, 0, 1) + abi.varint(60_000))
        producer.commit([move(producer.started()[0].buffer)])
        trace, stats = self.finish(consumer)
        self.assertGreaterEqual(
            trace.stats().buffer_stats[0].abi_violations, 1)

    @causes("traced_buf_sequence_packet_loss")
    def test_packets_that_forge_or_do_not_parse_are_dropped_and_counted(self):
        bad = [b"\x0a\xff", b"\xff\xff", b"\x08", b"\x0b\x0c",
               b"\x00\x01\x02", b"\x42\x7f"]
        forged = {3: 0, 10: 0, 33: 2, 35: 2, 36: 2, 50: 2, 69: 2, 79: 0,
                  98: 0, 124: 2, 125: 2, 133: 2}
        for field, wire in forged.items():
            tag = abi.varint(field << 3 | wire)
            bad.append(numbered(99) + tag + (b"\x07" if wire == 0 else b"\0"))
            bad.append(tag + (b"\x07" if wire == 0 else b"\0") + numbered(99))
        for address in (None, self.tcp()):
            producer = self.producer("forger", ["forger"], address=address)
            consumer = self.session("forger")
            producer.wait_started()
            writer = producer.writer()
            for packet in bad:
                writer.number(1)
                writer.write([packet])
            writer.number(1)
            consumer.stop()
            trace = consumer.read()
            self.assertEqual(list(trace.numbers().values()),
                             [list(range(len(bad) + 1))])
            self.assertEqual(trace.stats().invalid_packets, len(bad))
            corrupted = pb.TracePacket.DATA_LOSS_PRESENT | \
                pb.TracePacket.DATA_LOSS_CHUNK_CORRUPTED
            self.assertEqual([p.previous_packet_dropped
                              for p in trace.of("for_testing")][1:],
                             [corrupted] * len(bad))
            for packet in trace.of("for_testing"):
                if address is None:
                    self.assertEqual(packet.trusted_uid, os.getuid())
                    self.assertEqual(packet.trusted_pid, os.getpid())
                else:
                    self.assertNotEqual(packet.trusted_uid, 0)
            producer.close()
            consumer.close()

    def test_memory_that_changes_while_it_is_read_harms_nobody(self):
        rng = seeded()
        with self.neighbour():
            producer, consumer = self.set_up(smb_scraping_mode=1)
            buffer = producer.started()[0].buffer
            # Another producer's: of its own writers' ids the child may make up
            # any, and chunks that come before theirs.
            other = self.producer("honest", ["mem"])
            other.wait_started()
            honest = other.writer(writer_id=1000)
            child = os.fork()
            if child == 0:
                self.scramble(producer, rng)
            try:
                deadline = time.monotonic() + 1.5
                rounds = 0
                while time.monotonic() < deadline:
                    producer.commit([move(buffer, page, index)
                                     for page in range(8)
                                     for index in range(14)])
                    if rounds % 10 == 0:
                        consumer.flush(60_000)
                        self.assertFalse(consumer.closed)
                        consumer.read_raw()
                    rounds += 1
            finally:
                os.kill(child, 9)
                os.waitpid(child, 0)
            self.assertGreater(rounds, 10)
            for page in range(8):
                producer.shm.set_header(page, 0)
            consumer.read_raw()
            honest.number(5)
            consumer.stop()
            # What the child made up may be anything inside, if it is a
            # message at all; the honest writer's packets are among it.
            found = []
            for raw in consumer.read_raw():
                try:
                    event = pb.TracePacket.FromString(raw).for_testing
                except DecodeError:
                    continue
                if event.seq_value == honest.id:
                    found.append(event.counter)
            self.assertEqual(found, [0, 1, 2, 3, 4])

    @staticmethod
    def scramble(producer, rng):
        """A child that never stops rewriting the first eight pages."""
        try:
            shm = producer.shm
            while True:
                page = rng.randrange(8)
                at = page * producer.page_size + rng.randrange(64) * 4
                kind = rng.randrange(4)
                if kind == 0:
                    shm.set_header(page, rng.randrange(1, 6) << 28 |
                                   rng.getrandbits(28))
                elif kind == 1:
                    shm.map[at:at + 8] = abi.header(
                        rng.randrange(64), rng.getrandbits(32),
                        rng.randrange(1024), rng.randrange(8))
                else:
                    n = rng.randrange(4, 64)
                    shm.map[at:at + n] = rng.randbytes(n)
        finally:
            os._exit(0)

    @causes("traced_buf_patches_failed")
    def test_a_patch_outside_its_chunk_is_refused_whole(self):
        for address in (None, self.tcp()):
            with self.neighbour():
                producer = self.producer("patcher", ["patcher"],
                                         address=address)
                consumer = self.session("patcher")
                producer.wait_started()
                writer = producer.writer()
                packet = numbered(0, 300)
                placed = producer.place(abi.chunk(
                    writer.id, 0, [packet[:200]],
                    abi.CONTINUED | abi.NEEDS_PATCHING))
                placed.target_buffer = writer.buffer
                producer.commit([placed])
                writer.next_chunk = 1
                size = 200 + len(abi.varint(200))
                outside = [(size, b"\0"), (size - 1, b"\0\0"),
                           (100_000, b"\0\0\0\0"), (2**32 - 1, b"\0\0"),
                           (2**32 - 2, b"\0" * 4), (0, b"\0" * 5000)]
                for offset, data in outside:
                    producer.commit(patches=[patch(writer, 0, offset, data)])
                stats = consumer.stats()
                self.assertEqual(stats.buffer_stats[0].patches_succeeded, 0)
                self.assertEqual(stats.buffer_stats[0].patches_failed +
                                 stats.patches_discarded, len(outside))
                producer.commit(patches=[patch(writer, 0, size - 1,
                                               packet[199:200])])
                placed = producer.place(abi.chunk(
                    writer.id, 1, [packet[200:]], abi.CONTINUES))
                placed.target_buffer = writer.buffer
                producer.commit([placed])
                trace, _ = self.finish(consumer)
                self.assert_numbers(trace, [1])
                producer.close()
                consumer.close()

    def test_patches_of_chunks_that_are_not_there_are_counted(self):
        producer, consumer = self.set_up()
        writer = producer.writer()
        writer.number(1)
        producer.commit(patches=[patch(writer, n, 0, b"\0")
                                 for n in (1, 7, 2**32 - 1)])
        stats = consumer.stats()
        self.assertEqual(stats.buffer_stats[0].patches_failed +
                         stats.patches_discarded, 3)

    def test_a_buffer_the_producer_has_no_right_to_stays_untouched(self):
        """Not another session's, not one that its own session also has."""
        victim = self.producer("victim", ["v"])
        theirs = self.session("v")
        honest = victim.writer()
        honest.number(3)
        for address in (None, self.tcp()):
            thief = self.producer("thief", ["t"], address=address)
            own = self.consumer()
            own.enable(config("t", buffers=[
                pb.TraceConfig.BufferConfig(size_kb=64) for _ in range(2)]))
            allowed = thief.wait_started()[0].buffer
            targets = {honest.buffer, 0, 65535, 65536 + allowed,
                       allowed + 1, allowed - 1} - {allowed}
            for number, target in enumerate(sorted(t for t in targets
                                                   if t >= 0)):
                data = abi.chunk(honest.id, 7, [numbered(666)])
                placed = thief.place(data)
                placed.target_buffer = target
                thief.commit([placed])
                thief.commit(patches=[patch(honest, 0, 5, b"evil!",
                                            buffer=target)])
            stats = own.stats()
            self.assertGreaterEqual(stats.chunks_discarded, 1)
            self.assertGreaterEqual(stats.patches_discarded, 1)
            for buffer in stats.buffer_stats:
                self.assertEqual(buffer.chunks_written, 0)
            own.stop()
            self.assertEqual(own.read().numbers(), {})
            self.assertRegex(self.daemons[0].log(),
                             r'\("thief", pid -?\d+, machine \d+\): \d+ '
                             r"chunks and \d+ patches of a commit discarded")
            thief.close()
        honest.number(3)
        trace, stats = self.finish(theirs)
        self.assert_numbers(trace, [6])
        self.assertEqual(stats.buffer_stats[0].patches_failed, 0)

    def test_what_others_break_is_no_loss_of_a_session(self):
        """Neither while it runs nor when it begins afterwards."""
        stranger = self.producer("stranger", [])
        broken = abi.chunk(1, 0, [numbered(0)])
        nowhere = move(60000, 0, 0)
        nowhere.data = broken
        with self.neighbour():
            stranger.commit([nowhere, nowhere, move(60000, 2**31, 0)])
            stranger.sync()
        later = self.session("nobody.has.this")
        later.stop()
        self.assert_clean_stats(later.read().stats())

    def test_a_registered_writer_may_write_to_its_buffer_only(self):
        producer = self.producer("two", ["a", "b"])
        consumer = self.consumer()
        sources = config("a", "b", buffers=[
            pb.TraceConfig.BufferConfig(size_kb=64) for _ in range(2)])
        sources.data_sources[1].config.target_buffer = 1
        consumer.enable(sources)
        first, second = sorted(producer.wait_started(2),
                               key=lambda i: i.config.name)
        self.assertNotEqual(first.buffer, second.buffer)
        writer = producer.writer(first)
        writer.number(2)
        writer.buffer = second.buffer
        writer.number(2)
        writer.buffer = first.buffer
        stats = consumer.stats()
        self.assertEqual(stats.chunks_discarded, 1)
        self.assertEqual(stats.buffer_stats[1].chunks_written, 0)
        consumer.stop()
        self.assertEqual(list(consumer.read().numbers().values()), [[0, 1]])

    def test_registering_writers_with_odd_ids_or_buffers_harms_nobody(self):
        with self.neighbour():
            producer, consumer = self.set_up()
            buffer = producer.started()[0].buffer
            for writer_id in (0, 32767, 32768, 65535, 65536, 2**32 - 1):
                for target in (0, buffer, 65535, 65536, 2**32 - 1):
                    producer.register_writer(writer_id, target)
            producer.sync()
            producer.writer(writer_id=7).number(3)
            trace, _ = self.finish(consumer)
            self.assertIn([0, 1, 2], list(trace.numbers().values()))


if __name__ == "__main__":
    sys.exit(tap.main())
