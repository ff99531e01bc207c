#!/usr/bin/env python3
"""tributary top: what it shows is what happens, and the terminal is as it was
whatever ends it."""

import os
import re
import signal
import subprocess
import sys
import unicodedata

from harness import tap
from harness.case import Case
from harness.daemon import environment
from harness.loop import SCALE
from harness.terminal import Terminal

TRIBUTARY = os.environ["TRIBUTARY"]
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Screen(Terminal):
    """tributary top on a terminal."""

    def screen(self):
        """The last drawing that is complete, as lines without colours."""
        text = re.sub("\x1b\\[[0-9]*m", "", self.coloured())
        return text.split("\n")

    def coloured(self):
        drawings = self.read().split(b"\x1b[H")[1:]
        whole = [d.split(b"\x1b[J")[0] for d in drawings if b"\x1b[J" in d]
        text = whole[-1].decode() if whole else ""
        return text.replace("\x1b[K", "").replace("\r", "")

    def see(self, condition, what):
        self.case.until(lambda: condition(self.screen()), what)

    def ended(self, status):
        super().ended(status)
        self.case.assertIn(ENTER, self.out)
        self.case.assertEqual(self.out.count(ENTER), self.out.count(LEAVE))
        after = self.out.rsplit(LEAVE, 1)
        self.case.assertIn(b"\x1b[?25h", after[0][-20:])


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
        top = Screen(self, self.command("--interval", "0.2"))
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
            top = Screen(self, self.command("--interval", "0.2"))
            top.see(lambda lines: any("MACHINE" in line for line in lines),
                    "the machines")
            how(top)
            top.ended(0)
        top = Screen(self, self.command("--interval", "0.2"))
        top.see(lambda lines: any("MACHINE" in line for line in lines),
                "the machines")
        top.process.send_signal(signal.SIGSEGV)
        top.ended(-signal.SIGSEGV if SCALE == 1 else top.process.wait())

    def test_another_size_is_drawn_at_once(self):
        self.recording("a-session-with-a-name-of-some-length")
        top = Screen(self, self.command("--interval", "3600"), 24, 120)
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
        top = Screen(self, self.command("--interval", "0.2"))
        top.see(lambda lines: any(line.startswith(r"1 evil\x1b[31mred\x0aline")
                                  for line in lines), "the session")
        self.assertNotIn(b"\x1b[31mred", top.out)
        top.key(b"q")
        top.ended(0)

    def test_wide_names_keep_the_columns_in_line(self):
        def width(text):
            return sum(2 if unicodedata.east_asian_width(c) in "WF" else
                       0 if unicodedata.combining(c) else 1 for c in text)

        def rows(lines):
            return [line for line in lines if re.match("[123] ", line)]
        names = ("\u673a\u5668\u4eba" * 5, "kiosk", "e\u0301tage \U0001f600")
        for name in names:
            self.session(unique_session_name=name)
        top = Screen(self, self.command("--interval", "0.2"), 24, 120)
        top.see(lambda lines: len(rows(lines)) == 3, "three sessions")
        self.assertEqual(len({width(row[:row.index("started")])
                              for row in rows(top.screen())}), 1)
        # Names are cut, between characters: all of it is UTF-8.
        for columns in (41, 40):
            top.resize(24, columns)
            top.see(lambda lines: len(rows(lines)) == 3 and max(
                map(width, lines)) <= columns, "a narrow screen")
        top.key(b"q")
        top.ended(0)

    def test_states_and_losses_have_colours_where_they_are_wanted(self):
        self.recording()
        for env, green in (({}, True), ({"NO_COLOR": ""}, True),
                           ({"NO_COLOR": "1"}, False)):
            top = Screen(self, self.command("--interval", "0.2"), 24, 120,
                         **env)
            top.see(lambda lines: any("started" in line for line in lines),
                    "the session")
            self.assertEqual("\x1b[32mstarted\x1b[0m" in top.coloured(), green)
            self.assertEqual("\x1b[1mSESSION\x1b[0m" in top.coloured(), green)
            top.key(b"q")
            top.ended(0)

    def test_a_dumb_terminal_has_lines(self):
        self.recording()
        for term in ("dumb", ""):
            top = Terminal(self, self.command("-n", "1"), TERM=term)
            top.ended(0)
            self.assertIn(b"1 probes  started", top.out)
            self.assertNotIn(b"\x1b", top.out)

    def test_the_trend_is_drawn_where_it_has_room_and_characters(self):
        writer, _ = self.recording()
        top = Screen(self, self.command("--interval", "0.1"), 24, 160)

        def rises():
            writer.number(10)
            return re.search("(?m)^1 probes .*[\u2582-\u2588]$",
                             "\n".join(top.screen()))
        self.until(rises, "a bar")
        self.assertIn("TREND", top.screen()[2])
        # The first of the columns that go.
        top.resize(24, 80)
        top.see(lambda lines: "PRODUCERS" not in lines[2] and
                "TREND" not in lines[2] and "FILE" in lines[2], "no room")
        top.key(b"q")
        top.ended(0)
        top = Screen(self, self.command("--interval", "0.1"), 24, 160,
                     LC_ALL="C")
        top.see(lambda lines: any("PRODUCERS" in line for line in lines),
                "a wide screen")
        self.assertNotIn("TREND", top.screen()[2])
        top.key(b"q")
        top.ended(0)

    def test_a_collector_that_goes_is_waited_for(self):
        top = Screen(self, self.command("--interval", "0.2"))
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
        top = Screen(self, [TRIBUTARY, "top", "--connect",
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
