"""Crowds: processes of tributary-load, each life with a ledger of its own."""

import json
import os
import signal
import subprocess
import time

from harness.daemon import SANITIZER_LINES, environment
from harness.load import program
from harness.loop import SCALE

# Of a ledger: who lives long begins very many sequences.
KEYS_SHORT = 1 << 16
KEYS_LONG = 1 << 24


class Keys:
    """Ranges of keys, so that ledgers of one trace do not meet."""

    def __init__(self):
        self.next = 1

    def take(self, count):
        first = self.next
        self.next += count
        assert self.next < 0xF0000000, "too many lives"
        return first


class Life:
    """One process, its ledger, and the keys of its sequences."""

    def __init__(self, ledger, keys):
        self.ledger = ledger
        self.keys = keys
        self.began = time.monotonic()
        self.ended = None


class Crowd:
    """Starts, freezes, kills and ends tributary-load with these arguments."""

    def __init__(self, folder, name, keys, *args, mortal=False):
        self.folder = folder
        self.name = name
        self.n_keys = KEYS_SHORT if mortal else KEYS_LONG
        self.args = [str(a) for a in args]
        self.keys = keys
        self.lives = []
        self.count = 0
        self.process = None
        self.kills = self.stops = 0
        self.frozen = False
        self.reports = []

    def _file(self, what):
        return os.path.join(self.folder,
                            f"{self.name}.{self.count}.{what}")

    def start(self, *more):
        self.count += 1
        first = self.keys.take(self.n_keys)
        self.lives.append(Life(self._file("ledger"),
                               range(first, first + self.n_keys)))
        self.log = self._file("log")
        self.out = self._file("json")
        argv = [program(), "--quiet", "--name", self.name, "--first-key",
                str(first), "--seed", str(self.count),
                "--ledger", self.lives[-1].ledger, *self.args, *more]
        with open(self.log, "wb") as log, open(self.out, "wb") as out:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=log,
                                            env=environment())

    def running(self):
        return self.process is not None and self.process.poll() is None

    def check(self):
        """None may end by itself."""
        if self.process is not None and self.process.poll() is not None:
            with open(self.log, errors="replace") as file:
                raise AssertionError(f"{self.name} ended with status "
                                     f"{self.process.returncode}: "
                                     f"{file.read()[-2000:]}")

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        self.frozen = True
        self.stops += 1

    def thaw(self):
        if self.frozen:
            self.process.send_signal(signal.SIGCONT)
        self.frozen = False

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None
        self.frozen = False
        self.kills += 1
        self.lives[-1].ended = time.monotonic()

    def ask_to_end(self):
        """All that was written is delivered first."""
        if self.process is not None:
            self.thaw()
            self.process.send_signal(signal.SIGTERM)

    def end(self):
        """Its report; asserts a clean end."""
        if self.process is None:
            return None
        try:
            status = self.process.wait(90 * SCALE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.name} did not end") from None
        self.process = None
        self.lives[-1].ended = time.monotonic()
        with open(self.log, errors="replace") as file:
            text = file.read()
        for line in SANITIZER_LINES:
            assert line not in text, text
        assert status == 0, f"{self.name}: status {status}: {text}"
        with open(self.out) as file:
            self.reports.append(json.loads(file.read()))
        return self.reports[-1]

    def abandon(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ledgers(self, since):
        """Of lives that were there at some time since then.  Who has not made
        its ledger yet has written nothing."""
        return [life.ledger for life in self.lives
                if (life.ended is None or life.ended >= since) and
                os.path.exists(life.ledger)]

    def forget(self, before):
        """Ledgers of lives that ended before then: nobody asks any more."""
        old = [life for life in self.lives
               if life.ended is not None and life.ended < before]
        for life in old:
            if os.path.exists(life.ledger):
                os.unlink(life.ledger)
        self.lives = [life for life in self.lives if life not in old]
