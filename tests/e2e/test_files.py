#!/usr/bin/env python3
"""write_into_file: what reaches the disk, when, and what never may."""

import array
import fcntl
import mmap
import os
import resource
import select
import signal
import stat
import subprocess
import sys
import termios
import time

from harness import abi, tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.imported import causes
from harness.producer import numbered
from harness.trace import Trace, split_cut_file

KIB = 1024


def whole(path):
    return Trace.from_file(path)


class FileCase(Case):
    def setUp(self):
        super().setUp()
        self.traces = self.path("traces")
        os.mkdir(self.traces)

    def start(self, settings=None, **options):
        flags = ["--trace-dir", self.traces]
        if settings:
            flags += ["--config", settings]
        return self.daemon(flags=flags, **options)

    def into_file(self, name="f", *, sources=(TEST_SOURCE,), **fields):
        """A session that writes into a descriptor we pass; and the path."""
        path = self.path(name)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        consumer = self.session(*sources, fds=[fd], write_into_file=True,
                                **fields)
        os.close(fd)
        return consumer, path

    def grown(self, path, count):
        """Waits until the file holds `count` numbered packets."""
        def enough():
            trace = Trace.so_far(path)
            return trace if len(trace.of("for_testing")) >= count else None
        return self.until(enough, f"{count} packets in {path}")


class ByDescriptor(FileCase):
    def setUp(self):
        super().setUp()
        self.start()

    def test_the_file_holds_the_trace_at_the_end(self):
        producer = self.producer("p")
        consumer, path = self.into_file()
        producer.writer().number(100)
        response = consumer.stop()
        self.assertFalse(response.error)
        trace = whole(path)
        self.assert_numbers(trace, [100])
        self.assertEqual(trace.kinds()[0], "clock_snapshot")
        self.assertEqual(trace.kinds()[-1], "trace_stats")
        self.assert_clean_stats(trace.stats())

    def test_the_file_grows_at_its_period(self):
        producer = self.producer("p")
        consumer, path = self.into_file(file_write_period_ms=100)
        writer = producer.writer()
        writer.number(10)
        self.grown(path, 10)
        writer.number(10)
        self.grown(path, 20)
        consumer.stop()
        self.assert_numbers(whole(path), [20])

    def test_a_half_full_buffer_is_written_without_waiting(self):
        producer = self.producer("p")
        consumer, path = self.into_file(size_kb=256,
                                        file_write_period_ms=3_600_000)
        producer.writer().number(1500)
        self.grown(path, 1)
        consumer.stop()
        self.assert_numbers(whole(path), [1500])

    def test_far_more_than_the_buffer_holds_passes_without_a_loss(self):
        for address in (None,):
            producer = self.producer("p", address=address)
            consumer, path = self.into_file(size_kb=128)
            producer.writer().number(30_000)
            consumer.stop()
            trace = whole(path)
            self.assert_numbers(trace, [30_000])
            self.assert_clean_stats(trace.stats())

    def test_the_size_limit_ends_the_session_before_it_is_passed(self):
        producer = self.producer("p")
        limit = 64 * KIB
        consumer, path = self.into_file(max_file_size_bytes=limit,
                                        file_write_period_ms=100)
        writer = producer.writer()
        writer.number(2000)
        consumer.ended()
        producer.wait_command("stop_data_source")
        trace = whole(path)
        self.assertLessEqual(os.path.getsize(path), limit)
        self.assertGreater(os.path.getsize(path), limit // 2)
        (numbers,) = trace.numbers().values()
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertEqual(trace.packets[-1].WhichOneof("data"), "trace_stats")
        self.assertGreater(trace.stats().buffer_stats[0].chunks_written, 0)

    def test_reading_the_buffers_of_such_a_session_is_refused(self):
        producer = self.producer("p")
        consumer, path = self.into_file()
        producer.writer().number(5)
        self.assert_unreadable(consumer)
        consumer.stop()
        self.assert_unreadable(consumer)
        self.assert_numbers(whole(path), [5])

    def test_a_consumer_that_disconnects_leaves_a_complete_file(self):
        producer = self.producer("p")
        consumer, path = self.into_file()
        producer.writer().number(25)
        consumer.close()
        producer.wait_command("stop_data_source")
        other = self.consumer()
        self.until(lambda: not other.query().tracing_sessions,
                   "the session is gone")
        self.grown(path, 25)

    def test_what_was_in_the_file_before_stays(self):
        """A descriptor is written from where it stands."""
        path = self.path("f")
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        earlier = pb.Trace(packet=[pb.TracePacket(timestamp=1)])
        os.write(fd, earlier.SerializeToString())
        producer = self.producer("p")
        consumer = self.session(fds=[fd], write_into_file=True)
        os.close(fd)
        producer.writer().number(2)
        consumer.stop()
        trace = whole(path)
        self.assertEqual(trace.packets[0], earlier.packet[0])
        self.assert_numbers(trace, [2])

    def test_flush_modes_decide_whether_producers_are_asked(self):
        for mode, asked in (("WRITE_FLUSH_ENABLED", True),
                            ("WRITE_FLUSH_DISABLED", False)):
            producer = self.producer("p" + mode, [mode])
            consumer, path = self.into_file(
                mode, sources=[mode], file_write_period_ms=100,
                write_flush_mode=mode)
            writer = producer.writer()
            if asked:
                producer.before_flush = \
                    lambda command: writer.number(1, ask=False)
                self.grown(path, 2)
                self.assertTrue(producer.saw("flush"))
            else:
                writer.number(1)
                self.grown(path, 1)
                self.assertFalse(producer.saw("flush"))
            consumer.stop()
            producer.close()

    def test_a_descriptor_that_cannot_be_written_ends_the_session(self):
        with self.neighbour():
            fd = os.open("/dev/null", os.O_RDONLY)
            producer = self.producer("p")
            consumer = self.session(fds=[fd], write_into_file=True,
                                    file_write_period_ms=100)
            os.close(fd)
            producer.writer().number(5)
            self.assertTrue(consumer.ended().error)

    def test_a_pipe_whose_reader_goes_away_ends_the_session_only(self):
        with self.neighbour():
            read_end, write_end = os.pipe()
            producer = self.producer("p")
            consumer = self.session(fds=[write_end], write_into_file=True,
                                    file_write_period_ms=100)
            os.close(write_end)
            os.close(read_end)
            producer.writer().number(5)
            self.assertTrue(consumer.ended().error)


class Stuck(FileCase):
    """A descriptor that takes no bytes: whatever ends the session, it ends."""

    def setUp(self):
        super().setUp()
        self.daemon_ = self.start()

    def stuck(self, pipe=None):
        """A session whose full pipe nobody reads; and its consumer."""
        read_end, write_end = pipe or os.pipe()
        producer = self.producer("p")
        consumer = self.session(fds=[write_end], write_into_file=True,
                                file_write_period_ms=100, size_kb=1024)
        if pipe is None:
            self.addCleanup(os.close, read_end)
            os.close(write_end)
        writer = producer.writer()
        for _ in range(100):
            writer.number(10, size=1000, ask=False)
        self.until(lambda: self.bytes_in(read_end) > 60_000, "a full pipe")
        return consumer

    def bytes_in(self, pipe):
        count = array.array("i", [0])
        fcntl.ioctl(pipe, termios.FIONREAD, count)
        return count[0]

    def threads(self):
        return len(os.listdir(f"/proc/{self.daemon_.pid}/task"))

    def session_ids(self):
        looker = self.consumer()
        ids = [s.id for s in looker.query().tracing_sessions]
        looker.close()
        return ids

    def stop(self, *words):
        """`tributary stop`, while the others are served; its exit status."""
        command = subprocess.Popen(
            [os.environ["TRIBUTARY"], "stop", "--connect",
             self.daemon_.consumer_path, *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.until(lambda: command.poll() is not None, "stop ends",
                   timeout=60)
        return command.returncode, command.communicate()[0]

    def test_odd_descriptors_are_refused(self):
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        self.addCleanup(os.close, write_end)
        epoll, folder = select.epoll(), os.open("/", os.O_RDONLY)
        self.addCleanup(epoll.close)
        self.addCleanup(os.close, folder)
        main, terminal = os.openpty()
        self.addCleanup(os.close, main)
        self.addCleanup(os.close, terminal)
        zero = os.open("/dev/zero", os.O_RDWR)
        self.addCleanup(os.close, zero)
        for fd in (epoll.fileno(), folder, terminal, zero):
            consumer = self.session(fds=[fd], write_into_file=True)
            self.assertIn("a regular file", consumer.ended().error)
        self.assertEqual(self.session_ids(), [])

    def test_devices_that_never_wait_are_taken(self):
        for path, error in (("/dev/null", ""), ("/dev/full", "no space")):
            if not stat.S_ISCHR(os.stat(path).st_mode):
                self.skipTest(f"{path} is no device here")
            fd = os.open(path, os.O_WRONLY)
            consumer = self.session(fds=[fd], write_into_file=True)
            os.close(fd)
            consumer.call("DisableTracing")
            self.assertIn(error, consumer.ended().error)

    def test_it_ends_when_its_consumer_leaves(self):
        self.stuck().close()
        self.until(lambda: not self.session_ids(), "it is gone", timeout=60)

    def test_making_its_writes_block_leaves_no_thread_behind(self):
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        self.addCleanup(os.close, write_end)
        os.set_blocking(write_end, False)
        consumer = self.stuck((read_end, write_end))
        before = self.threads()
        # The description is shared: the daemon's writes wait from now on.
        os.set_blocking(write_end, True)
        os.read(read_end, 8192)
        self.until(lambda: self.bytes_in(read_end) > 60_000, "full again")
        consumer.close()
        self.until(lambda: not self.session_ids(), "it is gone", timeout=60)
        self.until(lambda: self.threads() < before, "so is its thread")

    def test_it_can_be_stopped_and_says_what_is_wrong(self):
        consumer = self.stuck()
        status, text = self.stop(str(self.session_ids()[0]))
        self.assertIn("takes nothing", text)
        self.assertEqual(status, 1)
        self.assertIn("takes nothing", consumer.ended().error)

    def test_it_can_be_discarded_while_it_is_being_stopped(self):
        consumer = self.stuck()
        consumer.call("DisableTracing")
        _, text = self.stop("--discard", str(self.session_ids()[0]))
        self.assertIn("takes nothing", text)  # of its file, not of the stop
        self.assertEqual(self.session_ids(), [])

    def test_the_daemon_does_not_wait_for_it_in_the_end(self):
        self.stuck().close()
        os.kill(self.daemon_.pid, signal.SIGTERM)
        self.daemon_.wait()
        self.assertNotIn("leaving without them", self.daemon_.log())

    def test_an_upgrade_goes_through(self):
        self.stuck().close()
        os.kill(self.daemon_.pid, signal.SIGUSR2)
        listening = "listening for consumers"
        self.until(lambda: self.daemon_.log().count(listening) == 2 or
                   "no upgrade" in self.daemon_.log(), "its end", timeout=60)
        self.assertNotIn("no upgrade", self.daemon_.log())


class Throttled(FileCase):
    """A disk that cannot keep up: a pipe that is read when we like."""

    def setUp(self):
        super().setUp()
        self.start(producer=[self.path("p"), "127.0.0.1:0"])
        self.written = bytearray()
        self.pipe, self.write_end = os.pipe()
        os.set_blocking(self.pipe, False)
        self.addCleanup(os.close, self.pipe)

    def throttled(self, *sources, **fields):
        """A session that writes into our pipe."""
        consumer = self.session(*sources, fds=[self.write_end],
                                write_into_file=True,
                                file_write_period_ms=100, **fields)
        os.close(self.write_end)
        return consumer

    def drain(self, amount=1 << 20):
        """Reads up to `amount` bytes that are there; whether it was open."""
        try:
            data = os.read(self.pipe, amount)
        except BlockingIOError:
            return True
        self.written += data
        return bool(data)

    def end(self, consumer):
        """Stops the session and reads the pipe to its end."""
        consumer.call("DisableTracing")

        def ended():
            self.drain()
            return consumer.session.ended()
        self.until(ended, "tracing ends", timeout=60)
        self.assertFalse(consumer.closed)
        self.assertFalse(consumer.ended().error)
        self.until(lambda: not self.drain(), "the daemon closes the pipe")
        return Trace.from_bytes(bytes(self.written))

    def chunks(self, writer, count, packets_each=10, size=390):
        """`count` chunks of numbered packets."""
        for n in range(count):
            yield abi.chunk(writer.id, writer.chunk_id(), [
                numbered(n * packets_each + k, size, writer.id)
                for k in range(packets_each)])

    def test_a_slow_file_holds_a_socket_producer_back_and_loses_nothing(self):
        """8 MB through a buffer of 256 KiB while nothing is read."""
        producer = self.producer(
            "p", address=self.daemons[0].address("producers", "tcp"))
        consumer = self.throttled(size_kb=256, trace_all_machines=True)
        writer = producer.writer()
        producer.sync()
        before = self.daemons[0].memory()
        calls = []
        for data in self.chunks(writer, 2000):
            move = producer.place(data)
            move.target_buffer = writer.buffer
            calls.append(producer.call("CommitData", pb.CommitDataRequest(
                chunks_to_move=[move])))
        self.loop.settle(0.5)
        self.assertFalse(all(c.ended() for c in calls),
                         "everything was taken though nothing was written")
        self.assert_grown_less(before, 4 * KIB)

        def all_taken():
            self.drain()
            return all(c.ended() for c in calls)
        self.until(all_taken, "all commits are taken", timeout=60)
        self.assertFalse(any(c.gone or c.rejected for c in calls))
        trace = self.end(consumer)
        self.assert_numbers(trace, [20_000])
        self.assert_clean_stats(trace.stats())

    def test_a_slow_file_holds_a_memory_producer_back_and_loses_nothing(self):
        """Chunks stay taken; the producer finds no free page and waits."""
        producer = self.producer("p")
        consumer = self.throttled(size_kb=128)
        writer = producer.writer()
        waiting = list(self.chunks(writer, 1000))
        stuck = []

        def placed_all():
            moves = []
            while waiting and (move := producer.place(waiting[0])):
                waiting.pop(0)
                move.target_buffer = writer.buffer
                moves.append(move)
            if moves:
                producer.commit(moves, ask=False)
            elif waiting:
                stuck.append(len(waiting))
                # Full for a while: let the file move on a little.
                if len(stuck) % 5 == 0:
                    self.drain(1 << 18)
            return not waiting
        self.until(placed_all, "the producer gets through", timeout=60)
        self.assertGreater(len(stuck), 5, "it was never held back")
        trace = self.end(consumer)
        self.assert_numbers(trace, [10_000])
        self.assert_clean_stats(trace.stats())

    @causes("traced_buf_sequence_packet_loss")
    def test_a_setting_restores_overwriting(self):
        with open(self.path("settings"), "w") as file:
            file.write("lossless: false\n")
        self.start(producer=[self.path("p2")], consumer=[self.path("c2")],
                   settings=self.path("settings"))
        self.daemons.reverse()
        producer = self.producer("p")
        consumer = self.throttled(size_kb=128)
        writer = producer.writer()
        writer.number(20_000)  # is taken, though nothing is read
        trace = self.end(consumer)
        (numbers,) = trace.numbers().values()
        self.assertLess(len(numbers), 20_000)
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertTrue(trace.losses())
        self.assertGreater(trace.stats().buffer_stats[0].chunks_overwritten,
                           0)

    def test_one_sessions_slow_file_does_not_slow_another(self):
        producer = self.producer("slow", ["slow"])
        consumer = self.throttled("slow", size_kb=64)
        writer = producer.writer()
        waiting = self.chunks(writer, 60)
        with self.neighbour():
            moves = [producer.place(data) for data in waiting]
            for move in moves:
                move.target_buffer = writer.buffer
            producer.commit(moves, ask=False)
            with self.neighbour():
                self.loop.settle(0.3)
        self.assert_numbers(self.end(consumer), [600])


class ByPath(FileCase):
    def setUp(self):
        super().setUp()
        self.start()

    def refused(self, name):
        consumer = self.consumer()
        error = consumer.refused(config(
            TEST_SOURCE, write_into_file=True, output_path=name))
        consumer.close()
        return error

    def test_a_path_below_the_trace_folder_is_made(self):
        producer = self.producer("p")
        consumer = self.session(write_into_file=True, output_path="one")
        producer.writer().number(10)
        consumer.stop()
        path = os.path.join(self.traces, "one")
        self.assert_numbers(whole(path), [10])
        self.assertEqual(os.stat(path).st_mode & 0o077, 0)

    def test_the_mode_of_the_files_is_a_setting(self):
        with open(self.path("modes"), "w") as file:
            file.write('trace_file_mode: "0640"\n')
        self.start(producer=[self.path("p3")], consumer=[self.path("c3")],
                   settings=self.path("modes"))
        consumer = self.consumer(address=self.path("c3"))
        consumer.enable(config(TEST_SOURCE, write_into_file=True,
                               output_path="shared"))
        consumer.stop()
        path = os.path.join(self.traces, "shared")
        self.assertEqual(os.stat(path).st_mode & 0o7777, 0o640)

    def test_a_name_is_what_it_seems(self):
        for name in ("one\0two", "one\ntwo", "one\x1b[31m", "gpj\u202etxt"):
            self.assertIn("printable", self.refused(name))
        self.assertEqual(os.listdir(self.traces), [])
        self.session(write_into_file=True, output_path="größe 1").stop()
        self.assertEqual(os.listdir(self.traces), ["größe 1"])

    def test_a_path_may_be_written_whole(self):
        producer = self.producer("p")
        path = os.path.join(self.traces, "two")
        consumer = self.session(write_into_file=True,
                                output_path=self.traces + "//two")
        producer.writer().number(10)
        consumer.stop()
        self.assert_numbers(whole(path), [10])

    def test_no_trick_leads_out_of_the_trace_folder(self):
        outside = self.path("outside")
        os.mkdir(outside)
        os.mkdir(os.path.join(self.traces, "sub"))
        os.symlink(outside, os.path.join(self.traces, "link"))
        os.symlink(os.path.join(outside, "new"),
                   os.path.join(self.traces, "dangling"))
        os.symlink("..", os.path.join(self.traces, "sub", "up"))
        os.symlink("/", os.path.join(self.traces, "root"))
        with self.neighbour():
            for name in ("../outside/x", "sub/../../outside/x", "..", ".",
                         "", "/", outside + "/x", "link/x", "dangling",
                         "sub/up/../outside/x", "root/tmp/x",
                         "./../outside/x", "sub", "sub/",
                         "/proc/self/root/tmp/x", "a" * 5000,
                         "no/such/folder", self.traces, self.traces + "/",
                         self.traces + "x/y", self.traces + "/../outside/x",
                         self.traces + "/link/x", self.traces + "/dangling",
                         self.traces + "/sub/up/../outside/x"):
                with self.subTest(name[:60]):
                    self.assertTrue(self.refused(name))
        self.assertEqual(os.listdir(outside), [])
        self.assertEqual(sorted(os.listdir(self.traces)),
                         ["dangling", "link", "root", "sub"])

    def test_a_file_that_exists_is_not_overwritten(self):
        with open(os.path.join(self.traces, "mine"), "w") as file:
            file.write("precious")
        with self.neighbour():
            self.assertTrue(self.refused("mine"))
        with open(os.path.join(self.traces, "mine")) as file:
            self.assertEqual(file.read(), "precious")

    def test_without_a_trace_folder_every_path_is_refused(self):
        daemon = self.daemon(producer=[self.path("p2")],
                             consumer=[self.path("c2")])
        consumer = self.consumer(daemon.address("consumers"))
        error = consumer.refused(config(
            TEST_SOURCE, write_into_file=True, output_path="x"))
        self.assertIn("trace-dir", error.replace("_", "-"))


class Ends(FileCase):
    def test_a_killed_daemon_leaves_a_file_complete_to_its_last_write(self):
        daemon = self.start()
        producer = self.producer("p")
        consumer, path = self.into_file(file_write_period_ms=100, size_kb=512)
        writer = producer.writer()
        for _ in range(5):
            writer.number(400)
            self.grown(path, 1)
        seen = len(self.grown(path, 2000).of("for_testing"))
        writer.number(3000, ask=False)
        daemon.kill()
        (numbers,) = self.left_behind(path).numbers().values()
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertGreaterEqual(len(numbers), seen)
        consumer.wait_closed()

    def left_behind(self, path):
        """What a killed daemon wrote: whole packets.

        But for one: the kernel ends the write() of a process that is killed
        at a page, and nothing that is written after it could mend that.
        """
        with open(path, "rb") as file:
            data = file.read()
        packets, rest = split_cut_file(data)
        if rest > 0:
            self.assertEqual(len(data) % mmap.PAGESIZE, 0,
                             f"{rest} bytes of a packet at the end")
        return Trace(packets)

    def test_killed_at_any_moment_the_file_opens(self):
        for round_number in range(6):
            daemon = self.start(producer=[self.path(f"p{round_number}")],
                                consumer=[self.path(f"c{round_number}")])
            producer = self.producer("p")
            consumer, path = self.into_file(
                f"f{round_number}", file_write_period_ms=100, size_kb=128)
            writer = producer.writer()
            began = time.monotonic()
            while time.monotonic() - began < 0.05 * round_number:
                writer.number(200)
            daemon.kill()
            self.daemons.clear()
            for numbers in self.left_behind(path).numbers().values():
                self.assertEqual(numbers, list(range(len(numbers))))
            del consumer

    def test_sigterm_ends_sessions_and_completes_their_files(self):
        daemon = self.start()
        producer = self.producer("p", ["a", "b"])
        first, first_path = self.into_file("one", sources=["a"])
        second = self.session("b", write_into_file=True, output_path="two")
        by_name = {i.config.name: i for i in producer.wait_started(2)}
        producer.writer(by_name["a"]).number(30)
        producer.writer(by_name["b"]).number(40)
        daemon.signal(signal.SIGTERM)
        # The producer is still asked to flush and to stop.
        producer.wait_command("stop_data_source", 2)
        self.until(lambda: not daemon.running(), "the daemon ends")
        self.assertEqual(daemon.wait(), 0)
        for path, count in ((first_path, 30),
                            (os.path.join(self.traces, "two"), 40)):
            trace = whole(path)
            self.assert_numbers(trace, [count])
            self.assertEqual(trace.kinds()[-1], "trace_stats")
        del first, second
        self.assertFalse(os.path.exists(self.path("p")))
        self.assertFalse(os.path.exists(self.path("c")))

    @causes("traced_final_flush_failed", "traced_flushes_failed")
    def test_sigterm_does_not_wait_for_silent_producers_forever(self):
        daemon = self.start()
        producer = self.producer("silent")
        producer.acks_stop = producer.answers_flush = False
        consumer, path = self.into_file()
        producer.writer().number(3)
        daemon.signal(signal.SIGTERM)
        self.until(lambda: not daemon.running(), "the daemon ends")
        self.assert_numbers(whole(path), [3])
        del consumer

    def full_disk(self, consumer, path, producer):
        writer = producer.writer()
        with self.neighbour():
            for _ in range(200):
                if consumer.session.ended():
                    break
                writer.number(200, ask=False)
                self.loop.settle(0.01)
            response = consumer.ended()
            self.assertTrue(response.error)
            producer.wait_command("stop_data_source")
        for numbers in whole(path).numbers().values():
            self.assertEqual(numbers, list(range(len(numbers))))
        return response.error

    def test_a_file_over_the_process_limit_ends_its_session_only(self):
        limit = 256 * KIB

        def limits():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        # The log is a file too: keep it small.
        self.start(limits=limits)
        producer = self.producer("p")
        consumer, path = self.into_file(file_write_period_ms=100, size_kb=512)
        self.full_disk(consumer, path, producer)
        self.assertLessEqual(os.path.getsize(path), limit)

    def test_a_full_disk_ends_its_session_only(self):
        disk = self.path("disk")
        os.mkdir(disk)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk],
            stderr=subprocess.DEVNULL).returncode == 0
        if not mounted:
            self.skipTest("cannot mount a tmpfs here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        self.start()
        producer = self.producer("p")
        consumer, path = self.into_file("disk/f", file_write_period_ms=100,
                                        size_kb=512)
        error = self.full_disk(consumer, path, producer)
        self.assertIn("space", error.lower())


if __name__ == "__main__":
    sys.exit(tap.main())
