#!/usr/bin/env python3
"""More input than the collector can take: what it leaves undone, in which
order, that it says so, that it ends, and that nothing is lost.

A library makes each read take some milliseconds, so what is too much is the
same on any machine."""

import json
import os
import signal
import subprocess
import sys

from harness import pb, tap
from harness.daemon import environment
from harness.device import Control, RelayCase
from harness.faults import Plan
from harness.load import check_words, program, verify

DEVICES = 150
# A round through them: 0.6 s, or 0.3 s where two threads read.
READ_US = 4000
CONFIG = """
    buffers { size_kb: 65536 }
    data_sources { config { name: "tributary.load" } }
    builtin_data_sources { snapshot_interval_ms: 100 }
    write_into_file: true
    file_write_period_ms: 100
"""


class Crowded:
    """A collector, and devices that write into a file of theirs."""

    def __init__(self, case, name, flags):
        self.case = case
        self.name = name
        self.trace = case.path(name + ".trace")
        self.ledger = case.path(name + ".ledger")
        self.plan = Plan(case.path(name + ".plan"))
        self.daemon = case.daemon(
            producer=["127.0.0.1:0"], consumer=[case.path(name)],
            flags=flags, env=self.plan.env())
        self.control = case._add(Control(case.loop, case.path(name)))
        config = case.path(name + ".config")
        with open(config, "w") as file:
            file.write(CONFIG)
        assert self.sessions().HasField("overload") is False
        self.load = subprocess.Popen(
            [program(), "--quiet", "--connect",
             self.daemon.address("producers", "tcp"), "--consumer",
             case.path(name), "--producers", str(DEVICES), "--rate", "100K",
             "--duration", "5m", "--session", self.trace, "--config", config,
             "--ledger", self.ledger],
            env=environment(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        case.addCleanup(self.kill)

    def kill(self):
        self.load.kill()
        self.load.wait()
        self.load.stdout.close()
        self.load.stderr.close()

    def sessions(self):
        call = self.control.call("QuerySessions", pb.QuerySessionsRequest())
        self.control.finish(call)
        whole = pb.QuerySessionsReply()
        for part in call.replies:
            whole.MergeFromString(part)
        return whole

    def state(self):
        """Each of these is a call that the collector answers."""
        return self.sessions().overload

    def writes(self):
        return os.path.exists(self.trace) and \
            os.path.getsize(self.trace) > 100000

    def finish(self):
        """The line of JSON of its generator."""
        self.load.send_signal(signal.SIGINT)
        said, errors = self.load.communicate()
        check_words(errors)
        assert self.load.returncode == 0, errors
        return json.loads(said)


class Overload(RelayCase):
    def overload(self, crowds):
        for c in crowds:
            self.until(c.writes, f"{c.name}: devices write", timeout=60)
        for c in crowds:
            c.plan.read_delay_us = READ_US
        for c in crowds:
            self.until(lambda: c.state().level == 3,
                       f"{c.name}: the last level", timeout=60)
            self.until(lambda: c.state().left_out > 0,
                       f"{c.name}: snapshots are thinned", timeout=60)
        for c in crowds:
            c.plan.read_delay_us = 0

    def check(self, c):
        state = c.state()
        # Each is reached from the one below it.
        self.assertEqual(len(state.times), 3)
        self.assertGreaterEqual(min(state.times), 1)
        self.assertEqual(state.text, "no connection has to wait")
        log = c.daemon.log()
        last = 0
        for words in ("overloaded (input waits",
                      "new connections and handshakes wait\n",
                      "statistics and clock snapshots are thinned\n",
                      "the connections that send most are held back\n",
                      "no longer overloaded\n"):
            at = log.find(words, last)
            self.assertGreaterEqual(at, last, words)
            last = at
        status, found = verify([c.trace], [c.ledger])
        self.assertEqual(status, 0, found)
        self.assertEqual(found["told"], 0, found)
        self.assertEqual(found["missing_unsure"], 0, found)
        self.assertGreater(found["present"], 20 * DEVICES)

    def test_each_level_is_reached_and_said_and_ends_and_nothing_is_lost(self):
        crowds = [Crowded(self, "alone", []),
                  Crowded(self, "threads", ["--io-threads", "2"])]
        self.overload(crowds)
        for c in crowds:
            report = c.finish()
            self.assertEqual(report["connected"], DEVICES)
        for c in crowds:
            self.until(lambda: c.state().level == 0, f"{c.name}: it is over",
                       timeout=60)
        for c in crowds:
            with self.subTest(c.name):
                self.check(c)


if __name__ == "__main__":
    sys.exit(tap.main())
