#!/usr/bin/env python3
"""tributary top: what it shows is what happens, and the terminal is as it was
whatever ends it."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

from harness import tap
from harness.case import Case
from harness.daemon import environment
from harness.loop import SCALE

TRIBUTARY = os.environ["TRIBUTARY"]
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, case, args, lines=24, columns=80):
        self.case = case
        self.fd, there = pty.openpty()
        self.there = there
        self.resize(lines, columns)
        self.before = termios.tcgetattr(there)

        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(
            args, stdin=there, stdout=there, stderr=there, preexec_fn=lead,
            env=dict(environment(), TERM="xterm"))
        os.set_blocking(self.fd, False)
        self.out = b""
        case.addCleanup(self.close)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)
        os.close(self.there)

    def resize(self, lines, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ,
                    struct.pack("HHHH", lines, columns, 0, 0))

    def read(self):
        try:
            while data := os.read(self.fd, 65536):
                self.out += data
        except (BlockingIOError, OSError):
            pass

    def screen(self):
        """The last drawing that is complete, as lines."""
        self.read()
        drawings = self.out.split(b"\x1b[H")[1:]
        whole = [d.split(b"\x1b[J")[0] for d in drawings if b"\x1b[J" in d]
        text = whole[-1].decode() if whole else ""
        return text.replace("\x1b[K", "").replace("\r", "").split("\n")

    def see(self, condition, what):
        self.case.until(lambda: condition(self.screen()), what)

    def key(self, key):
        os.write(self.fd, key)

    def ended(self, status):
        self.case.assertEqual(self.process.wait(timeout=60 * SCALE), status)
        self.read()
        self.case.assertIn(ENTER, self.out)
        self.case.assertEqual(self.out.count(ENTER), self.out.count(LEAVE))
        after = self.out.rsplit(LEAVE, 1)
        self.case.assertIn(b"\x1b[?25h", after[0][-20:])
        self.case.assertEqual(termios.tcgetattr(self.there), self.before)


class Top(Case):
    def setUp(self):
        super().setUp()
        self.daemon()
        self.address = self.daemons[0].address("consumers")

    def command(self, *flags):
        return [TRIBUTARY, "top", "--connect", self.address, *flags]

    def blocks(self, *flags, status=0):
        done = subprocess.run(self.command(*flags), env=environment(),
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=60 * SCALE, check=False, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def recording(self, name="probes"):
        producer = self.producer("writer")
        consumer = self.session(unique_session_name=name)
        return producer.writer(), consumer

    def test_lines_where_there_is_no_terminal(self):
        self.recording()
        out, err = self.blocks("-n", "2", "--interval", "0.1")
        self.assertEqual(err, "")
        self.assertEqual(len(re.findall("^SESSION ", out, re.M)), 2)
        self.assertEqual(len(re.findall("^MACHINE ", out, re.M)), 2)
        self.assertRegex(out, r"(?m)^1 probes +started ")
        self.assertRegex(out, r"(?m)^writer +host +\d+ ")
        self.assertRegex(out, r"(?m)^host +connected ")
        self.assertNotIn("\x1b", out)

    def test_rates_and_losses_are_those_of_what_is_written(self):
        writer, _ = self.recording()
        process = subprocess.Popen(
            self.command("--interval", "0.1"), env=environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.set_blocking(process.stdout.fileno(), False)
        out = ""

        def wrote():
            nonlocal out
            writer.number(10)
            out += (process.stdout.read() or b"").decode()
            line = r"(?m)^{} .*?\s([1-9][\d.]* \w+/s)\s+[1-9][\d,.]*\s+0\s"
            return re.search(line.format("writer"), out) and re.search(
                line.format("1 probes"), out)
        self.until(wrote, "rates")
        process.send_signal(signal.SIGTERM)

    def test_a_screen_and_its_keys(self):
        self.recording()
        top = Terminal(self, self.command("--interval", "0.2"))
        top.see(lambda lines: any(line.startswith("writer")
                                  for line in lines), "the producer")
        top.key(b"x")
        top.key(b" ")
        top.key(b"q")
        top.ended(0)

    def test_any_end_puts_the_terminal_back(self):
        for how in (lambda top: top.key(b"\x03"),
                    lambda top: top.process.send_signal(signal.SIGTERM),
                    lambda top: top.process.send_signal(signal.SIGHUP)):
            top = Terminal(self, self.command("--interval", "0.2"))
            top.see(lambda lines: any("MACHINE" in line for line in lines),
                    "the machines")
            how(top)
            top.ended(0)
        top = Terminal(self, self.command("--interval", "0.2"))
        top.see(lambda lines: any("MACHINE" in line for line in lines),
                "the machines")
        top.process.send_signal(signal.SIGSEGV)
        top.ended(-signal.SIGSEGV if SCALE == 1 else top.process.wait())

    def test_another_size_is_drawn_at_once(self):
        self.recording("a-session-with-a-name-of-some-length")
        top = Terminal(self, self.command("--interval", "3600"), 24, 120)
        top.see(lambda lines: any("BUFFERS" in line for line in lines),
                "a wide screen")
        top.resize(10, 40)
        top.see(lambda lines: len(lines) <= 10 and max(map(len, lines)) <= 40,
                "a small one")
        self.assertTrue(any("LOST" in line for line in top.screen()))
        top.key(b"q")
        top.ended(0)

    def test_names_do_not_steer_the_terminal(self):
        self.recording("evil\x1b[31mred\nline")
        top = Terminal(self, self.command("--interval", "0.2"))
        top.see(lambda lines: any(line.startswith(r"1 evil\x1b[31mred\x0aline")
                                  for line in lines), "the session")
        self.assertNotIn(b"\x1b[31m", top.out)
        top.key(b"q")
        top.ended(0)

    def test_a_collector_that_goes_is_waited_for(self):
        top = Terminal(self, self.command("--interval", "0.2"))
        top.see(lambda lines: any("MACHINE" in line for line in lines),
                "the machines")
        self.daemons[0].stop()
        top.see(lambda lines: "packets/s" not in lines[0], "the trouble")
        self.daemons[0].start()
        top.see(lambda lines: "packets/s" in lines[0], "it is back")
        top.key(b"q")
        top.ended(0)

    def test_one_that_never_was_there_is_an_error(self):
        _, err = self.blocks("--connect", self.path("nobody"), status=1)
        self.assertIn("tributary top: ", err)
        top = Terminal(self, [TRIBUTARY, "top", "--connect",
                              self.path("nobody")])
        top.ended(1)
        self.assertIn(b"tributary top: ", top.out.rsplit(LEAVE, 1)[1])

    def test_words_that_mean_nothing_are_refused(self):
        for flags, said in ((["--interval", "0"], "seconds"),
                            (["--interval", "x"], "seconds"),
                            (["-n", "0"], "1 or more"),
                            (["robots"], "no names"),
                            (["--intervall", "1"], "--interval")):
            _, err = self.blocks(*flags, status=1)
            self.assertIn(said, err)


if __name__ == "__main__":
    sys.exit(tap.main())
