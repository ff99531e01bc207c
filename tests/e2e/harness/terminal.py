"""A program on a terminal of its own."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

from harness.daemon import environment
from harness.loop import SCALE


class Terminal:
    """stdin may be another file than the terminal.  case: whose addCleanup()
    ends the program."""

    def __init__(self, case, args, lines=24, columns=80, stdin=None,
                 **env):
        self.case = case
        self.fd, there = pty.openpty()
        self.there = there
        self.resize(lines, columns)
        self.before = termios.tcgetattr(there)

        def lead():
            os.setsid()
            fcntl.ioctl(2, termios.TIOCSCTTY, 0)
        ours = environment(TERM="xterm", LC_ALL="C.UTF-8")
        ours.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            args, stdin=stdin or there, stdout=there, stderr=there,
            preexec_fn=lead, env={**ours, **env})
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
        """All that came so far."""
        try:
            while data := os.read(self.fd, 65536):
                self.out += data
        except (BlockingIOError, OSError):
            pass
        return self.out

    def key(self, key):
        os.write(self.fd, key)

    def ended(self, status):
        self.case.assertEqual(self.process.wait(timeout=60 * SCALE), status,
                              self.read())
        self.read()
        self.case.assertEqual(termios.tcgetattr(self.there), self.before)
