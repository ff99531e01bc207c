#!/usr/bin/env python3
"""A disk that is full, slow, broken, or taken away: what the sessions that
write to it say and lose, and that nobody else notices.

	meson test -C build faults_disk
"""

import errno
import os
import shutil
import signal
import subprocess
import sys
import unittest

from harness import faults, tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.chaos import Proxy
from harness.device import Device, RelayCase
from harness.imported import causes, may_cause
from harness.recording import RecordCase
from harness.trace import Trace

KIB = 1024


class DiskCase(Case):
    """A daemon whose files below "traces" do what self.plan says."""

    def setUp(self):
        super().setUp()
        self.traces = self.path("traces")
        os.mkdir(self.traces)
        self.plan = faults.Plan(self.path("plan"), match="/traces/")

    def start(self, **options):
        daemon = self.daemon(flags=["--trace-dir", self.traces],
                             env=self.plan.env(), **options)
        if not self.plan.loaded:
            self.skipTest("nothing can be preloaded here")
        return daemon

    def file(self, name):
        return os.path.join(self.traces, name)

    def by_path(self, name="t", source=TEST_SOURCE, **fields):
        """A session that writes to traces/name."""
        fields.setdefault("file_write_period_ms", 100)
        return self.session(source, write_into_file=True, output_path=name,
                            **fields)

    def read(self, name="t"):
        """Every byte of the file is of a whole packet."""
        return Trace.from_file(self.file(name))

    def write_until_it_ends(self, consumer, writer):
        for _ in range(400):
            if consumer.session.ended():
                break
            writer.number(100, ask=False)
            self.loop.settle(0.01)
        return consumer.ended().error

    def assert_accounted(self, consumer, count):
        """What the session took and the file has not got, `count` packets
        being there, is said to be lost, to the packet, by its cause."""
        stats = consumer.stats()
        self.assertEqual(
            {pb.LinkLossCause.Name(loss.cause)
             for loss in stats.tributary_link_losses},
            {"LINK_LOSS_TRACE_FILE"})
        self.assertEqual(
            sum(loss.packets for loss in stats.tributary_link_losses),
            stats.tributary_packets - count)

    def wait_log(self, *words):
        def line():
            return [one for one in self.daemons[0].log().splitlines()
                    if all(word in one for word in words)]
        return self.until(line, f"a line with {words}")[0]

    def assert_begins(self, trace):
        """Whole packets, and of each sequence the first ones; how many."""
        count = 0
        for numbers in trace.numbers().values():
            self.assertEqual(numbers, list(range(len(numbers))))
            count += len(numbers)
        return count

    def assert_works(self, name="again"):
        """A new session into a file, without any restart."""
        producer = self.producer(name, [name])
        consumer = self.by_path(name, name)
        producer.writer().number(50)
        self.assertFalse(consumer.stop().error)
        self.assert_numbers(self.read(name), [50])
        producer.close()
        consumer.close()


class Full(DiskCase):
    def setUp(self):
        super().setUp()
        os.rmdir(self.traces)
        faults.small_disk(self, "traces", "384k")

    def test_it_ends_its_session_and_the_next_one_finds_space(self):
        daemon = self.start()
        producer = self.producer("p")
        consumer = self.by_path(size_kb=512)
        writer = producer.writer()
        with self.neighbour():
            error = self.write_until_it_ends(consumer, writer)
            producer.wait_command("stop_data_source")
            self.assertIn("no space left", error)
            line = self.wait_log("no space left", self.file("t"))
            self.assertIn("free", line)
            count = self.assert_begins(self.read())
            self.assertGreater(count, 100)
            self.assert_accounted(consumer, count)
            with faults.Idle(self, daemon):
                self.loop.settle(0.3)
        # Space again: nobody has to be started again.
        os.unlink(self.file("t"))
        self.assert_works()

    def test_two_sessions_and_one_disk(self):
        """The one that is on another disk goes on."""
        self.start()
        producer = self.producer("p", ["small", "large"])
        path = self.path("elsewhere")
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        large = self.session("large", fds=[fd], write_into_file=True,
                             file_write_period_ms=100)
        os.close(fd)
        small = self.by_path("t", "small", size_kb=512)
        by_name = {i.config.name: i for i in producer.wait_started(2)}
        other = producer.writer(by_name["large"])
        self.write_until_it_ends(small, producer.writer(by_name["small"]))
        other.number(200)
        large.stop()
        self.assert_numbers(Trace.from_file(path), [200])


class Broken(DiskCase):
    def check(self, words, *, source="p", **fields):
        producer = self.producer(source, [source])
        consumer = self.by_path(source, source, size_kb=256, **fields)
        writer = producer.writer()
        error = self.write_until_it_ends(consumer, writer)
        self.assertIn(words, error)
        self.wait_log(words, self.file(source))
        self.assert_accounted(consumer, self.assert_begins(
            Trace.so_far(self.file(source))))
        consumer.close()
        producer.close()

    def test_a_write_that_fails(self):
        """The first, or a later one, for whatever reason."""
        self.start()
        with self.neighbour():
            for number, (error, after, words) in enumerate((
                    (errno.EIO, 0, "I/O error"), (errno.EIO, 3, "I/O error"),
                    (errno.EDQUOT, 1, "quota"),
                    (errno.EROFS, 2, "read-only"))):
                self.plan.write_after = after
                self.plan.write_errno = error
                name = f"f{number}"
                self.check(words, source=name)
                self.read(name)
                self.plan.heal()
                self.assert_works(f"again{number}")

    def test_a_write_that_fails_in_the_middle_of_a_packet(self):
        """And nothing can be cut off again: reported, and said."""
        self.start()
        self.plan.short_bytes = 1000
        self.plan.write_after = 3
        self.plan.write_errno = errno.EIO
        with self.neighbour():
            self.check("I/O error", source="cut")
            self.read("cut")
            self.plan.truncate_errno = errno.EIO
            self.plan.write_after = 3
            self.check("in the middle of a packet", source="torn")

    def test_the_same_of_a_compressed_file(self):
        self.start()
        for after in (0, 2):
            self.plan.write_after = after
            self.plan.write_errno = errno.ENOSPC
            name = f"f{after}"
            self.check("no space left", source=name,
                       compression_type="COMPRESSION_TYPE_DEFLATE")
            self.read(name)
            self.plan.heal()

    def test_writes_that_take_a_part(self):
        self.start()
        self.plan.short_bytes = 777
        producer = self.producer("p")
        consumer = self.by_path()
        producer.writer().number(2000)
        self.assertFalse(consumer.stop().error)
        self.assert_numbers(self.read(), [2000])
        self.assertGreater(self.plan.writes, 200)

    def test_a_sync_that_fails(self):
        """What the kernel took may not be on the disk: that is no success."""
        self.start()
        self.plan.sync_errno = errno.EIO
        with self.neighbour():
            producer = self.producer("p")
            consumer = self.by_path(fflush_post_write="FFLUSH_ENABLED")
            producer.writer().number(10)
            self.assertIn("may not have reached the disk",
                          consumer.ended().error)
            self.wait_log("may not have reached", self.file("t"))
        self.assertGreater(self.plan.failed, 0)
        self.plan.heal()
        self.assert_works()


class Slow(DiskCase):
    FOREVER_US = 3600_000_000  # until the plan is healed

    def check_calls(self, *calls):
        """They return while a call of the disk does not."""
        asked = self.plan.writes, self.plan.syncs
        for _ in range(3):
            for call in calls:
                call()
        self.assertEqual((self.plan.writes, self.plan.syncs), asked,
                         "somebody waited for the disk")

    def test_nobody_waits_for_it_but_its_own_session(self):
        """Calls, flushes and the start and stop of others return while a write
        does not."""
        daemon = self.start()
        producer = self.producer("p")
        consumer = self.by_path(size_kb=256)
        writer = producer.writer()
        writer.number(50)
        self.until(lambda: self.read().of("for_testing"), "it is written")
        self.plan.write_delay_us = self.FOREVER_US
        before = self.plan.writes
        writer.number(500)
        self.until(lambda: self.plan.writes > before, "a write is under way")
        other = self.consumer()

        def short_session():
            session = self.session("nobody")
            session.stop()
            session.close()
        with self.neighbour(), faults.Idle(self, daemon, share=0.5):
            self.check_calls(lambda: consumer.flush(60_000),
                             consumer.stats, other.query, producer.sync,
                             short_session)
        self.plan.heal()
        self.assertFalse(consumer.stop().error)
        self.assert_numbers(self.read(), [550])

    def test_it_holds_its_producer_back_and_loses_nothing(self):
        self.start()
        self.plan.write_delay_us = 20_000
        producer = self.producer("p")
        consumer = self.by_path(size_kb=64)
        producer.writer().number(6000)
        self.assertFalse(consumer.stop().error)
        self.assert_numbers(self.read(), [6000])

    def test_a_slow_sync_delays_nobody_else(self):
        self.start()
        self.plan.sync_delay_us = self.FOREVER_US
        producer = self.producer("p")
        consumer = self.by_path(fflush_post_write="FFLUSH_ENABLED")
        producer.writer().number(10)
        self.until(lambda: self.plan.syncs > 0, "a sync is under way")
        other = self.consumer()
        self.check_calls(consumer.stats, other.query, producer.sync)
        self.plan.heal()
        self.assertFalse(consumer.stop().error)
        self.assert_numbers(self.read(), [10])


class Taken(DiskCase):
    """Somebody removes, cuts or replaces what is being written."""

    def begin(self, **fields):
        self.start()
        self.tracer = self.producer("p")
        consumer = self.by_path(**fields)
        self.writer = self.tracer.writer()
        self.writer.number(100)
        self.until(lambda: os.path.getsize(self.file("t")) > 8 * KIB,
                   "it is written")
        return consumer

    def check_ends(self, consumer, words):
        error = self.write_until_it_ends(consumer, self.writer)
        self.assertIn(words, error)
        self.wait_log(words, self.file("t"))
        consumer.close()
        self.tracer.close()
        self.assert_works()

    def test_a_file_that_is_removed_ends_its_session(self):
        """Else it would fill a disk that nobody sees, for nobody."""
        consumer = self.begin()
        with self.neighbour():
            os.unlink(self.file("t"))
            self.check_ends(consumer, "removed")

    def test_a_file_that_is_removed_when_nothing_more_comes(self):
        """Found at the latest when it is complete."""
        consumer = self.begin(file_write_period_ms=3_600_000, size_kb=16)
        os.unlink(self.file("t"))
        self.assertIn("removed", consumer.stop().error)

    def test_a_file_that_is_cut_ends_its_session(self):
        consumer = self.begin()
        with self.neighbour():
            os.truncate(self.file("t"), 100)
            self.check_ends(consumer, "cut")
            # What was left of it was not made worse.
            self.assertEqual(os.path.getsize(self.file("t")), 100)

    def test_a_descriptor_of_the_consumers_is_its_own_affair(self):
        """It may remove the file's name, and still read it."""
        self.start()
        producer = self.producer("p")
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT, 0o600)
        consumer = self.session(fds=[fd], write_into_file=True,
                                file_write_period_ms=100)
        os.unlink(self.path("f"))
        producer.writer().number(100)
        self.assertFalse(consumer.stop().error)
        with os.fdopen(fd, "rb") as file:
            file.seek(0)
            self.assert_numbers(Trace.from_bytes(file.read()), [100])

    def test_a_file_that_is_made_read_only_is_written_all_the_same(self):
        consumer = self.begin()
        os.chmod(self.file("t"), 0o400)
        os.chmod(self.traces, 0o500)
        self.writer.number(100)
        self.assertFalse(consumer.stop().error)
        self.assert_numbers(self.read(), [200])

    def test_a_folder_that_is_removed_and_made_again(self):
        self.start()
        self.assert_works("first")
        shutil.rmtree(self.traces)
        refused = self.consumer().refused(config(
            TEST_SOURCE, write_into_file=True, output_path="x"))
        self.assertIn(self.traces, refused)
        self.wait_log(self.traces, "x")
        os.mkdir(self.traces)
        self.assert_works("second")

    def test_a_disk_that_is_unmounted_and_mounted_again(self):
        os.rmdir(self.traces)
        faults.small_disk(self, "traces", "4m")
        consumer = self.begin()
        held = os.open(self.traces, os.O_RDONLY)
        self.addCleanup(os.close, held)
        subprocess.run(["umount", "-l", self.traces], check=True)
        # The session's file is where it was made, whoever can see it.
        self.writer.number(100)
        self.assertFalse(consumer.stop().error)
        fd = os.open("t", os.O_RDONLY, dir_fd=held)
        with os.fdopen(fd, "rb") as file:
            self.assert_numbers(Trace.from_bytes(file.read()), [200])
        consumer.close()
        self.tracer.close()
        # New ones go where the path leads now.
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700",
                        "none", self.traces], check=True)
        self.assert_works("after")

    def test_a_disk_that_becomes_read_only_and_writable_again(self):
        os.rmdir(self.traces)
        faults.small_disk(self, "traces", "4m")
        self.start()
        self.assert_works("before")
        subprocess.run(["mount", "-o", "remount,ro", self.traces], check=True)
        refused = self.consumer().refused(config(
            TEST_SOURCE, write_into_file=True, output_path="x"))
        self.assertIn("read-only", refused)
        subprocess.run(["mount", "-o", "remount,rw", self.traces], check=True)
        self.assert_works("after")


class Recorded(RecordCase):
    def test_a_recording_whose_file_is_removed_is_no_success(self):
        """The collector writes on, as it is the command's own file; the
        command says what became of it."""
        self.daemon()
        recording = self.record("-o", "t", "-t", "0", TEST_SOURCE)
        producer = self.producer("p")
        producer.wait_started()
        producer.writer().number(50)
        os.unlink(self.path("t"))
        recording.interrupt()
        self.assertIn("was removed while", recording.end(1))


class Spool(RelayCase):
    """A relay whose collector is away, and whose disk is not well."""

    def begin(self, *, memory_kb=1024, spool="spool", settings=""):
        self.collector()
        self.proxy = Proxy(self.path("proxy.log"), (
            "127.0.0.1:0", self.daemons[0].producer_path))
        self.things.append(self.proxy)
        self.plan = faults.Plan(self.path("plan"), match=f"/{spool}/")
        self.spool = self.path(spool)
        self.a = self.device(
            "a", self.proxy.addresses[0], memory_kb=memory_kb,
            settings=f'spool {{ dir: "{self.spool}" size_kb: 65536 '
            f"{settings} }}", env=self.plan.env())
        if not self.plan.loaded:
            self.skipTest("nothing can be preloaded here")
        self.wait_linked()
        self.book = self.ledger([(self.a, 2)], rate=2_000_000)
        self.trace = self.path("trace")
        self.recording = self.record_to_file(self.trace, size_kb=16384)
        self.wait_writing(self.book, 4)
        self.proxy.say("refuse 600000")
        self.proxy.say("cut rst")

    def store(self):
        return self.a.report().store

    def spooled(self, size):
        before = self.store().spool_bytes
        self.until(lambda: self.store().spool_bytes > before + size,
                   "the spool fills")

    def log_has(self, *words):
        self.until(lambda: [line for line in self.a.log().splitlines()
                            if all(word in line for word in words)],
                   f"a line with {words}")

    def end(self, *causes):
        """All that is missing is told, by these causes."""
        self.proxy.say("heal")
        self.wait_linked()
        audit = self.finish(self.book, self.recording, self.trace)
        self.assert_accounted(audit, *causes)
        return audit

    @causes("traced_buf_patches_failed")
    def test_writes_that_fail_for_a_while(self):
        """Each third of them, then all: memory keeps what it can, the rest is
        counted, and the spool is used again by itself."""
        self.begin(memory_kb=4096)
        self.spooled(500_000)
        with self.neighbour():
            self.plan.write_errno = errno.EIO
            self.log_has("cannot be written", self.spool)
            with faults.Idle(self, self.a, share=0.9):
                self.until(lambda: self.a.losses(), "something is lost")
            self.plan.heal()
            self.log_has("is written again", self.spool)
        audit = self.end("LINK_LOSS_DISK")
        self.assertGreater(audit.lost, 0)

    def test_writes_that_take_a_part(self):
        self.begin()
        self.plan.short_bytes = 5000
        self.plan.write_delay_us = 500
        self.spooled(1_000_000)
        self.plan.heal()
        self.assertEqual(self.end().missing, {})

    def test_syncs_that_fail_are_said(self):
        self.begin()
        self.plan.sync_errno = errno.EIO
        self.spooled(500_000)
        self.log_has("may not survive", self.spool)
        self.assertEqual(self.end().missing, {})

    # Patches are among what was in the folder, and packets that wait for them.
    @causes("traced_buf_patches_failed")
    @may_cause("traced_buf_trace_writer_packet_loss")
    def test_a_folder_that_is_removed_and_comes_back(self):
        """What it had is counted, and the rest goes into a new one."""
        self.begin(memory_kb=2048)
        self.spooled(1_000_000)
        shutil.rmtree(self.spool)
        self.log_has("is another one than before", self.spool)
        self.log_has("is written again", self.spool)
        self.spooled(500_000)
        self.assertTrue(os.listdir(self.spool))
        self.proxy.say("heal")
        self.wait_linked()
        audit = self.finish(self.book, self.recording, self.trace)
        # Of blocks that are gone with their files nobody knows the sequences:
        # they are told of the machine, by their number all the same.
        told = sum(audit.told.values())
        # Those that had arrived but for a patch, which was in such a block.
        unpatched = sum(b.trace_writer_packet_loss
                        for b in audit.stats.buffer_stats)
        self.assertGreater(audit.lost, 0)
        self.assertLessEqual(audit.lost, told + unpatched)
        self.assertLess(told, audit.lost * 1.01 + 5)
        self.assertEqual(audit.causes(), {"LINK_LOSS_DISK"})
        self.assertEqual(audit.gaps_without_mark(), [])

    @may_cause("traced_buf_patches_failed")
    def test_no_room_for_what_it_keeps_in_memory(self):
        """The file system of its state folder is full: less is kept, it does
        not fall over the page that is not there, and its link goes on; with
        room again, it keeps as much as was set."""
        self.collector()
        state = faults.small_disk(self, "state", "24m")
        other = os.path.join(state, "other")
        with open(other, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 16 << 20)
        device = Device(self.folder, "b", self.daemons[0].producer_path,
                        memory_kb=16384)
        device.state = state
        device.arguments += ["--state-dir", state]
        self.devices.append(device)
        device.start()
        self.wait_linked()
        book = self.ledger([(device, 2)], rate=4_000_000)
        recording = self.record()
        self.wait_writing(book, 4)
        self.daemons[0].signal(signal.SIGSTOP)
        try:
            self.until(lambda: "file system is full" in device.log(),
                       "it says so")
            self.until(device.losses, "something is lost")
            self.assertLess(device.report().store.memory_limit,
                            10 << 20)
            os.unlink(other)
            self.until(lambda: device.report().store.memory_limit ==
                       16 << 20, "there is room again")
        finally:
            self.daemons[0].signal(signal.SIGCONT)
        self.until(device.linked, "it is linked")
        audit = self.finish(book, recording)
        self.assertGreater(audit.lost, 0)
        self.assert_accounted(audit, "LINK_LOSS_SPOOL_FULL")
        self.assertNotIn("anew", device.log())


if __name__ == "__main__":
    sys.exit(tap.main())
