#!/usr/bin/env python3
"""`tributary record`, the real command against the real daemon."""

import fcntl
import os
import pty
import re
import signal
import stat
import struct
import subprocess
import sys
import termios

from harness import pb, tap
from harness.case import TEST_SOURCE
from harness.imported import causes
from harness.recording import RecordCase
from harness.trace import Trace

class Local(RecordCase):
    def setUp(self):
        super().setUp()
        self.daemon()

    def test_ctrl_c_ends_it_and_keeps_the_trace(self):
        recording = self.record("-o", "t", "-t", "0", TEST_SOURCE)
        producer = self.producer("p")
        producer.wait_started()
        producer.writer().number(50)
        recording.interrupt()
        errors = recording.end()
        self.assert_numbers(self.trace(), [50])
        self.assert_clean_stats(self.trace().stats())
        self.assertIn("Lost            nothing", errors)
        self.assertRegex(errors, r"Producers +p, pid \d+: 50 packets")
        self.assertIn(f"Data sources    {TEST_SOURCE}", errors)
        self.assertEqual(os.stat(self.path("t")).st_mode & 0o777, 0o600)

    def test_a_duration_ends_it(self):
        producer = self.producer("p")
        config = self.config(f"""
            duration_ms: 300
            buffers {{ size_kb: 1024 }}
            data_sources {{ config {{ name: "{TEST_SOURCE}" }} }}""")
        producer.number_at_flush(20)
        self.record("-c", config, "-o", "t").end()
        self.assert_numbers(self.trace(), [20])

    def test_what_ftrace_did_not_record_is_no_success(self):
        """Said also when it is quiet; the trace is kept."""
        stats = pb.FtraceStats
        begin = stats(phase=stats.START_OF_TRACE, unknown_ftrace_events=[
            "sched/nope"])
        begin.cpu_stats.add(cpu=1, overrun=3)
        end = stats(phase=stats.END_OF_TRACE)
        end.cpu_stats.add(cpu=1, overrun=10)
        for flags, lost in (((), True), (("-q",), False)):
            producer = self.producer("p")
            recording = self.record("-o", "t", "-t", "0", *flags, TEST_SOURCE)
            producer.wait_started()
            producer.writer().write([
                pb.TracePacket(ftrace_stats=said.SerializeToString())
                .SerializeToString() for said in (begin, end)])
            producer.sync()
            recording.interrupt()
            errors = recording.end(3)
            producer.close()
            self.assertIn("Not recorded    sched/nope: the kernel has no "
                          "such event\n", errors)
            self.assertEqual(lost, "Lost            7 events overwritten "
                             "unread in the kernel's ftrace buffer, on CPU 1\n"
                             in errors)
            self.assertEqual(self.trace().sql(
                "select idx, value from stats "
                "where name = 'ftrace_cpu_overrun_delta' and value > 0"),
                [(1, 7)])

    def test_a_config_may_come_from_a_pipe_and_a_trace_go_into_one(self):
        producer = self.producer("p")
        recording = self.record("-c", "-", "--txt", "-o", "-", "-q",
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(recording.process.stdout.close)
        recording.process.stdin.write(f"""
            buffers {{ size_kb: 4096 }} write_into_file: true
            data_sources {{ config {{ name: "{TEST_SOURCE}" }} }}
            """.encode())
        recording.process.stdin.close()
        producer.wait_started()
        producer.writer().number(3000)
        recording.interrupt()
        data = bytearray()
        os.set_blocking(recording.process.stdout.fileno(), False)

        def read_all():
            data.extend(recording.process.stdout.read() or b"")
            return recording.process.poll() is not None

        self.until(read_all, "all comes out of the pipe")
        read_all()
        self.assertEqual(recording.end(), "")
        self.assert_numbers(Trace.from_bytes(bytes(data)), [3000])

    def test_the_service_writes_a_file_of_limited_size(self):
        producer = self.producer("p")
        recording = self.record("-o", "t", "-t", "0", "-s", "64kb",
                                "-b", "256kb", TEST_SOURCE)
        producer.wait_started()
        producer.writer().number(2000)  # over half of the buffer
        recording.end()
        self.assertLessEqual(os.path.getsize(self.path("t")), 64 << 10)
        (numbers,) = self.trace().numbers().values()
        self.assertEqual(numbers, list(range(len(numbers))))

    @causes("config_write_into_file_discard")
    def test_discard_and_a_file_are_warned_of_and_explained(self):
        producer = self.producer("p")
        config = self.config(f"""
            write_into_file: true
            buffers {{ size_kb: 64 fill_policy: DISCARD }}
            data_sources {{ config {{ name: "{TEST_SOURCE}" }} }}""")
        recording = self.record("-c", config, "-o", "t")
        producer.wait_started()
        producer.writer().number(3000)
        recording.interrupt()
        errors = recording.end()
        self.assertEqual(errors.count("RING_BUFFER goes on"), 1)
        self.assertIn("into a file, fill_policy: RING_BUFFER", errors)
        out, _ = self.run_command("inspect", self.path("t"))
        self.assertIn(b"RING_BUFFER would have gone on", out)
        self.assertNotIn(b"faster disk", out)

    def test_a_wrong_field_is_pointed_at(self):
        config = self.config("buffers {\n  size_kbs: 10\n}\n")
        errors = self.record("-c", config, "-o", "t").end(1)
        self.assertIn("config.pbtx:2:3: error:", errors)
        self.assertIn("size_kb", errors.splitlines()[0])
        self.assertEqual(errors.splitlines()[1], "  size_kbs: 10")
        self.assertEqual(errors.splitlines()[2], "  ^")
        self.assertFalse(os.path.exists(self.path("t")))

    def test_a_refusal_is_a_sentence_and_leaves_no_file(self):
        config = self.config("buffers { size_kb: 0 }")
        errors = self.record("-c", config, "-o", "t").end(1)
        self.assertIn("the collector says: ", errors)
        self.assertIn("size_kb", errors)
        self.assertFalse(os.path.exists(self.path("t")))

    def test_a_config_that_no_frame_holds_is_refused(self):
        config = self.config("buffers { size_kb: 4 }\n" + "".join(
            f'data_sources {{ config {{ name: "a.data.source.{n}" }} }}\n'
            for n in range(8000)))
        errors = self.record("-c", config, "-o", "t").end(1)
        self.assertIn("collectors take at most 128 KiB", errors)

    def test_a_name_nobody_offers_is_told(self):
        self.producer("p")
        recording = self.record("-o", "t", "-t", "100ms", TEST_SOURCE[:-1])
        self.assertIn(f'did you mean "{TEST_SOURCE}"', recording.end())

    def test_no_clobber_keeps_what_is_there(self):
        with open(self.path("t"), "w", encoding="utf-8") as file:
            file.write("precious")
        errors = self.record("-o", "t", "--no-clobber", "x").end(1)
        self.assertIn("--no-clobber", errors)
        self.assertEqual(os.path.getsize(self.path("t")), 8)

    def test_a_daemon_that_is_ended_leaves_a_whole_but_shorter_trace(self):
        recording = self.record("-o", "t", "-t", "1h", TEST_SOURCE)
        producer = self.producer("p")
        producer.wait_started()
        producer.writer().number(20)
        self.daemons[0].signal(signal.SIGTERM)
        errors = recording.end()
        self.assertRegex(errors, r"the collector ended the recording after "
                                 r"[\d.]+ s of 1 h 00 min")
        self.assert_numbers(self.trace(), [20])

    def test_a_daemon_that_dies_is_told_and_the_file_is_whole(self):
        producer = self.producer("p")
        config = self.config(f"""
            write_into_file: true file_write_period_ms: 100
            buffers {{ size_kb: 1024 }}
            data_sources {{ config {{ name: "{TEST_SOURCE}" }} }}""")
        recording = self.record("-c", config, "-o", "t")
        producer.wait_started()
        producer.writer().number(30)
        self.until(lambda: len(self.so_far().of("for_testing")) == 30,
                   "the file holds them")
        self.daemons[0].kill()
        errors = recording.end(1)
        self.assertIn("the connection to the collector was lost", errors)
        self.assertRegex(errors, r"t holds the first \d+ packets")
        self.assert_numbers(self.trace(), [30])

    def test_a_second_ctrl_c_gives_up_at_once(self):
        producer = self.producer("p")
        config = self.config(f"""
            write_into_file: true file_write_period_ms: 100
            buffers {{ size_kb: 1024 }} flush_timeout_ms: 100000
            data_sources {{ config {{ name: "{TEST_SOURCE}" }} }}""")
        recording = self.record("-c", config, "-o", "t")
        producer.wait_started()
        producer.writer().number(30)
        self.until(lambda: len(self.so_far().of("for_testing")) == 30,
                   "the file holds them")
        producer.answers_flush = False
        recording.interrupt()
        recording.says("once more to give up")
        recording.interrupt()
        self.assertIn("interrupted", recording.end(1))
        self.assert_numbers(self.trace(), [30])

    def test_what_a_full_device_did_not_take_is_not_said_to_be_in_it(self):
        if not stat.S_ISCHR(os.stat("/dev/full").st_mode):
            self.skipTest("/dev/full is no device here")
        producer = self.producer("p")
        recording = self.record("-o", "/dev/full", "-t", "0", TEST_SOURCE)
        producer.wait_started()
        producer.writer().number(30)
        recording.interrupt()
        errors = recording.end(1)
        self.assertIn("nothing was recorded into /dev/full", errors)
        self.assertNotIn("holds", errors)

    def test_arguments_are_echoed_without_what_steers_a_terminal(self):
        for status, words in (
                (1, ["-o", "no/such\u202efolder", "a"]),
                (1, ["-t", "\u202e5", "a"]),
                (1, ["--no-such-\u202e"]),
                (1, ["-c", "no-such\x9b31m-\u2066file"]),
                (0, ["-o", "t", "-t", "10ms", "source\u202e"])):
            errors = self.record(*words).end(status)
            self.assertTrue(errors)
            for character in "\u202e\u2066\x9b":
                self.assertNotIn(character, errors)

    def test_the_background_prints_its_process_id(self):
        producer = self.producer("p")
        recording = self.record("-D", "-o", "t", "-t", "0", TEST_SOURCE,
                                stdout=subprocess.PIPE)
        recording.end()
        pid = int(recording.process.stdout.read())
        recording.process.stdout.close()
        self.assertEqual(len(producer.started()), 1)
        producer.writer().number(12)
        os.kill(pid, signal.SIGTERM)
        self.until(lambda: not os.path.exists(f"/proc/{pid}"), "it ends")
        self.assert_numbers(self.trace(), [12])

    def test_the_start_is_told_to_a_descriptor(self):
        producer = self.producer("p")
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        recording = self.record("-o", "t", "-t", "100ms", "--notify-fd",
                                str(writer), TEST_SOURCE, pass_fds=(writer,))
        os.close(writer)
        os.set_blocking(reader, False)
        told = []

        def told_it():
            try:
                told.append(os.read(reader, 1))
            except BlockingIOError:
                return False
            return True

        self.until(told_it, "a byte comes")
        self.assertEqual(told, [b"\0"])
        self.assertEqual(len(producer.started()), 1)
        recording.end()

    def test_a_terminal_shows_one_live_line(self):
        producer = self.producer("p")
        try:
            screen, terminal = pty.openpty()
        except OSError as error:
            self.skipTest(str(error))
        self.addCleanup(os.close, screen)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 24, 120, 0, 0))
        os.set_blocking(screen, False)
        recording = self.record("-o", "t", "-t", "0", TEST_SOURCE,
                                stderr=terminal)
        os.close(terminal)
        seen = bytearray()

        def shows(pattern):
            def looked():
                try:
                    seen.extend(os.read(screen, 65536))
                except (BlockingIOError, OSError):
                    pass
                return re.search(pattern, seen)
            self.until(looked, f"the terminal shows {pattern}")

        shows(rb"\rRecording  \d+\.\d s  0 bytes")
        producer.wait_started()
        producer.writer().number(50)
        shows(rb"\rRecording  \d+\.\d s  [1-9][^\r\n]*  50 packets"
              rb"  1 producer  nothing lost\x1b\[K")
        self.assertNotIn(b"\n", seen)
        recording.interrupt()
        shows(rb"Lost            nothing")
        self.until(lambda: recording.process.poll() == 0, "the end")


class Remote(RecordCase):
    def setUp(self):
        super().setUp()
        self.daemon(consumer=["127.0.0.1:0"])

    def test_a_file_over_tcp_is_read_from_the_buffers_as_it_goes(self):
        producer = self.producer("p")
        recording = self.record("-o", "t", "-t", "0", "-s", "1mb",
                                TEST_SOURCE)
        producer.wait_started()
        producer.writer().number(40)
        writer = producer.writer()
        writer.number(4000)
        self.until(lambda: os.path.getsize(self.path("t")) > 0,
                   "the file grows")
        self.assertIsNone(recording.process.poll())
        recording.interrupt()
        recording.end()
        self.assert_numbers(self.trace(), [40, 4000])

    def test_the_size_limit_holds_there_too(self):
        producer = self.producer("p")
        recording = self.record("-o", "t", "-t", "0", "-s", "64kb",
                                TEST_SOURCE)
        producer.wait_started()
        producer.writer().number(2000)
        recording.end()
        self.assertLessEqual(os.path.getsize(self.path("t")), 64 << 10)
        self.assertGreater(os.path.getsize(self.path("t")), 60 << 10)
        (numbers,) = self.trace().numbers().values()
        self.assertEqual(numbers, list(range(len(numbers))))


class Alone(RecordCase):
    def test_nobody_listening_says_how_to_start_a_collector(self):
        errors = self.record("-o", "t", "x",
                             connect=self.path("nobody")).end(1)
        self.assertIn("start tributaryd", errors)
        self.assertFalse(os.path.exists(self.path("t")))

    def test_whoever_waits_for_the_start_is_told_of_a_failure(self):
        reader, writer = os.pipe()
        recording = self.record("-o", "t", "--notify-fd", str(writer), "x",
                                connect=self.path("nobody"),
                                pass_fds=(writer,))
        os.close(writer)
        recording.end(1)
        with os.fdopen(reader, "rb") as told:
            self.assertEqual(told.read(), b"\1")

    def test_the_background_does_not_hide_a_failure(self):
        recording = self.record("-d", "-o", "t", "x", stdout=subprocess.PIPE,
                                connect=self.path("nobody"))
        self.assertIn("start tributaryd", recording.end(1))
        self.assertEqual(recording.process.stdout.read(), b"")
        recording.process.stdout.close()


if __name__ == "__main__":
    sys.exit(tap.main())
