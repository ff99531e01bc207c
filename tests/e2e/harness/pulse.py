"""A process of its own with a quiet session, for whoever wants to know whether
others disturb it: flushes and reads until its input ends, then prints of each
flush, as JSON, how many seconds the daemon worked until it was answered, and how
many passed; the machine may have had others to serve.

	python3 -m harness.pulse DAEMON-PID PRODUCER-SOCKET CONSUMER-SOCKET
"""

import json
import os
import select
import subprocess
import sys
import time

from .consumer import Consumer, config
from .loop import Loop
from .producer import Producer
from .unhurried import ran

NAME = "pulse"


class Pulse:
    """The process, seen from outside."""

    def __init__(self, daemon):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness.pulse", str(daemon.pid),
             daemon.address("producers"), daemon.address("consumers")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.begun = self.process.stdout.readline() == b"begun\n"
        assert self.begun, "the pulse does not beat"

    def end(self):
        """(worked, passed) of each beat, in seconds; that nothing was lost is
        sure then."""
        out, _ = self.process.communicate()
        assert self.process.returncode == 0, "the pulse stopped"
        return json.loads(out)

    def kill(self):
        self.process.kill()
        self.process.communicate()


def beat(daemon, consumer, writer, number):
    """One flush that brings what was written just before."""
    writer.number(3, ask=False)
    began, had_run = time.monotonic(), ran(daemon)
    consumer.flush(60_000)
    took = ran(daemon) - had_run, time.monotonic() - began
    found = consumer.read()
    assert list(found.numbers().values()) == [
        list(range(3 * number, 3 * number + 3))], found.numbers()
    assert not found.losses()
    return took


def main():
    loop = Loop()
    daemon = int(sys.argv[1])
    producer = Producer(loop, sys.argv[2], NAME, [NAME])
    consumer = Consumer(loop, sys.argv[3])
    consumer.enable(config(NAME, unique_session_name=NAME))
    writer = producer.writer()
    print("begun", flush=True)
    os.set_blocking(0, False)
    beats = []
    while not select.select([0], [], [], 0.02)[0]:
        beats.append(beat(daemon, consumer, writer, len(beats)))
    consumer.stop()
    json.dump(beats, sys.stdout)


if __name__ == "__main__":
    main()
