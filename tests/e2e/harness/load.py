"""tributary-load: many devices, and the verifier of what became of them."""

import json
import os
import subprocess

from .daemon import SANITIZER_LINES, environment
from .loop import SCALE


def program():
    return os.environ["TRIBUTARY_LOAD"]


def check_words(text):
    for line in SANITIZER_LINES:
        assert line not in text, text


def load(*args, timeout=100, env=None):
    """A run; its line of JSON."""
    done = subprocess.run([program(), "--quiet", *map(str, args)],
                          env=environment(**(env or {})),
                          capture_output=True, text=True,
                          timeout=timeout * SCALE)
    check_words(done.stderr)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    return json.loads(line)


def verify(traces, ledgers, *args, timeout=100):
    """The exit status and the line of JSON."""
    argv = [program(), "verify", *traces, *map(str, args)]
    for ledger in ledgers:
        argv += ["--ledger", ledger]
    done = subprocess.run(argv, env=environment(), capture_output=True,
                          text=True, timeout=timeout * SCALE)
    check_words(done.stderr)
    assert done.returncode in (0, 1), done.stderr
    (line,) = done.stdout.splitlines()
    return done.returncode, json.loads(line)
