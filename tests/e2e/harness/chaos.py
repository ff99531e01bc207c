"""The chaos proxy: a bad network between two ends of this machine."""

import os
import signal
import subprocess

from .daemon import SANITIZER_LINES, environment
from .loop import SCALE


class Proxy:
    """routes: (listen, target) pairs; addresses[n] is where route n listens.

	with Proxy(case.path("proxy.log"), ("127.0.0.1:0", there)) as proxy:
	    proxy.say("delay 20 10")
	    proxy.say("cut rst", route=0)
    """

    def __init__(self, log_path, *routes, wrap=(), flags=()):
        self.log_path = log_path
        argv = [*wrap, os.environ["CHAOS_PROXY"], *flags]
        for listen, target in routes:
            argv += [listen, target]
        with open(log_path, "wb") as log:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, env=environment(), text=True, bufsize=1)
        self.addresses = []
        for _ in routes:
            line = self.process.stdout.readline().split()
            if not line or line[0] != "listening":
                self.process.wait(60 * SCALE)
                raise AssertionError(self.log())
            self.addresses.append(line[1])

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()

    def say(self, command, route=None):
        """The answer to one command, without its "ok"."""
        if route is not None:
            command = f"@{route} {command}"
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer.startswith("ok"), f"{command}: {answer}{self.log()}"
        return answer[2:].strip()

    def stats(self, route=None):
        words = self.say("stats", route).split()
        return dict(zip(words[::2], map(int, words[1::2])))

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def stop(self):
        """Ends it; asserts a clean end."""
        if self.process is None:
            return
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.stdin.close()
        status = process.wait(60 * SCALE)
        process.stdout.close()
        for line in SANITIZER_LINES:
            assert line not in self.log(), self.log()
        assert status == 0, f"status {status}: {self.log()}"
