#!/usr/bin/env python3
"""tributary-archiver and tributary-upload of one archive, and a real object
store: what is over a limit goes once the store has it, and is found there.

	meson test -C build archive_store
"""

import os
import re
import signal
import subprocess
import sys
import unittest

from harness import archiver, store, tap
from harness.archiver import Archiver
from harness.daemon import Program, environment
from harness.loop import SCALE
from test_archiver import ArchiverCase, KIB

# Two of these are within the limit, three are not.
SIZE = 400 * KIB
SETTINGS = "keep { size_mb: 1 }\nupload_required: true"
NAMES = [f"{name}.pftrace" for name in "abcde"]


class Uploader(Program):
    """Sends what is in the archive of the settings."""

    name = "tributary-upload"

    def __init__(self, folder, config):
        super().__init__(folder, env=store.KEYS)
        self.config = config

    def command(self):
        return [store.UPLOAD, "--log-level", "debug", "--config", self.config]

    def start(self):
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, env=self._env)
        self.pid = self.process.pid


@unittest.skipIf(store.MISSING, "radosgw is not installed "
                 "(deploy/install-deps store)")
class BothOfThem(ArchiverCase):
    def setUp(self):
        super().setUp()
        self.bucket = store.Bucket(self.folder)
        self.addCleanup(self.bucket.stop)
        self.front = self.bucket.front
        self.config = self.path("upload.conf")
        self.bucket.settings(self.config, archive_dir=self.archive)
        self.data = {}
        self.accepted = set()  # names of segments that the store has
        self.wrong = []
        self.kill_at = None
        self.front.fault = self.watch

    # ---- the store ----

    def watch(self, request):
        """At each request and answer: what is gone is in the store."""
        gone = set(self.data) - archiver.files(self.archive)
        if not gone <= self.accepted:
            self.wrong.append((request.path, gone, set(self.accepted)))
        name = os.path.basename(request.path.split("?")[0])
        if request.answer is not None and request.command == "PUT" and \
                request.answer.status == 200:
            self.accepted.add(name)
        if self.kill_at is not None and \
                (request.answer is None) == (self.kill_at % 2 == 1):
            self.seen += 1
            if self.seen == (self.kill_at + 1) // 2:
                self.kill_both()
                return "cut"
        return None

    def is_down(self, request):
        """Busy, then out of reach, and so on."""
        self.watch(request)
        return "cut" if len(self.front.requests) % 2 == 0 else (503, {})

    # ---- the programs ----

    def uploader(self):
        one = Uploader(self.folder, self.config)
        self.daemons.append(one)
        one.start()
        return one

    def kill_both(self):
        for one in self.both:
            os.kill(one.pid, signal.SIGKILL)

    def bury(self, *programs):
        """Those that were killed."""
        for one in programs:
            one.process.wait(60 * SCALE)
            self.assertEqual(one.process.returncode, -signal.SIGKILL,
                             one.log())
            self.daemons.remove(one)

    def tributary(self, *words):
        done = subprocess.run(
            [os.environ["TRIBUTARY"], *words, "--archive", self.archive],
            env=environment(PATH=os.path.dirname(store.UPLOAD) + ":" +
                            os.environ["PATH"], **store.KEYS),
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
            timeout=60 * SCALE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    # ---- segments ----

    def fill(self):
        """Catalogued in their order; an archiver runs."""
        for name in NAMES:
            self.put(name, size=SIZE)
            with open(os.path.join(self.archive, name), "rb") as file:
                self.data[name] = file.read()
            self.until(lambda: name in self.rows(), name)
        self.assertGreater(sum(map(len, self.data.values())), 2 * 1024 * KIB -
                           SIZE)

    def states(self):
        return dict(store.rows(self.archive))

    def state_of(self, one):
        report = one.report()
        return (report["segments"], report["waiting_for_upload"],
                report["not_kept"])

    def until_kept(self, *names):
        """These have a file still, and there it stays."""
        self.until(lambda: archiver.files(self.archive) == set(names) ==
                   self.rows(), f"{names} are left")

    def assert_settled(self, one):
        """All is in the store once, the two youngest are here as well."""
        self.until_kept("d.pftrace", "e.pftrace")
        self.assert_complete(one)

    def assert_complete(self, one):
        """All is in the store once, two are here as well."""
        self.until(lambda: set(self.states().values()) == {"stored"},
                   "all are stored")
        self.assertEqual(self.wrong, [])
        self.assertEqual(sorted(self.states()), NAMES)
        self.assertEqual(self.bucket.keys(), sorted(
            f"fleet/{name}{end}" for name in NAMES for end in ("", ".json")))
        self.assertEqual(self.bucket.uploads(), 0)
        self.until(lambda: self.state_of(one) == (2, 0, []),
                   "the status says that all is well")
        kept = archiver.files(self.archive)
        self.assertEqual(len(kept), 2)
        self.assertEqual(self.rows(), kept)
        found = self.tributary("find", "--recording", "always")
        self.assertEqual(sorted(re.findall(r"[a-z]\.pftrace", found)), NAMES)
        self.assertEqual(found.count("(in the store)"), 3, found)
        for name in set(NAMES) - kept:
            self.assert_fetched(name)

    def assert_fetched(self, name):
        path = self.path("fetched")
        self.tributary("fetch", "--store", self.config, name, "-o", path)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), self.data[name])
        os.unlink(path)

    def test_nothing_goes_before_the_store_has_it(self):
        one = self.archiver(SETTINGS)
        self.front.fault = self.is_down
        self.uploader()
        self.fill()
        self.until(lambda: "5 not yet uploaded segments" in one.status_text(),
                   "the status says what is in the way")
        self.assertRegex(
            one.status_text(), r"not kept  the archive has 2\.. MiB of "
            r"segments, and keeps 1\.0 MiB; 5 not yet uploaded segments "
            r"\(2\.. MiB\) are in the way")
        self.assertEqual(one.report()["waiting_for_upload"], 5)
        tried = len(self.front.requests)
        self.until(lambda: len(self.front.requests) > tried + 3,
                   "the store is tried again")
        self.until_kept(*NAMES)
        self.assertEqual(one.report()["deleted"], [])
        self.assertEqual(set(self.states().values()), {None})

        # Which ones go is a matter of which are sent first: those at which the
        # store failed have to wait for the others.
        self.front.fault = self.watch
        self.assert_complete(one)
        self.assertEqual([(d["cause"], d["segments"])
                          for d in one.report()["deleted"]], [("size", 3)])

    def test_one_that_the_store_does_not_take_stays(self):
        """The oldest: younger ones go instead of it."""
        self.bucket.signed("PUT", "fleet/a.pftrace", data="another")
        one = self.archiver(SETTINGS)
        self.uploader()
        self.fill()
        self.until(lambda: self.states().get("a.pftrace") == "failed",
                   "it is refused")
        self.until_kept("a.pftrace", "e.pftrace")
        self.assertEqual(self.wrong, [])
        self.assertEqual(re.findall(r"deleted (\S+) \(", one.log()),
                         NAMES[1:4])
        self.assert_fetched("b.pftrace")

    def test_both_killed_at_requests(self):
        """At each fourth; which ones, the seed says."""
        one = self.archiver(SETTINGS)
        self.fill()
        seed = int(os.environ.get("TRIBUTARY_SEED", "1"))
        for life in range(1 + seed % 4, 60, 4):
            # The front waits for what it has to kill.
            with self.front.lock:
                other = self.uploader()
                self.both = (one, other)
                self.seen, self.kill_at = 0, life
            self.until(lambda: not other.running() or
                       set(self.states().values()) == {"stored"},
                       f"killed, or all is sent ({life})")
            self.kill_at = None
            if other.running():
                break
            self.bury(one, other)
            self.assertLessEqual(set(self.data) - archiver.files(self.archive),
                                 self.accepted)
            one = self.archiver(SETTINGS)
        self.assertGreater(life, 4)
        self.assert_settled(one)

    def test_the_archiver_killed_at_each_change_of_files(self):
        if not archiver.KILL_SHIM:
            self.skipTest("no shim")
        one = self.archiver("upload_required: true")
        self.fill()
        self.uploader()
        self.until(lambda: set(self.states().values()) == {"stored"},
                   "all are stored")
        one.stop()
        self.daemons.remove(one)
        options = os.environ.get("ASAN_OPTIONS", "detect_leaks=1")
        for change in range(1, 200):
            one = Archiver(self.folder, self.archive, SETTINGS, env={
                "LD_PRELOAD": archiver.KILL_SHIM, "KILL_AT": str(change),
                "ASAN_OPTIONS": options + ":verify_asan_link_order=0"})
            self.daemons.append(one)
            try:
                one.start()
            except AssertionError:
                pass
            self.until(lambda: not one.running() or
                       self.rows() == set(NAMES[3:]), "killed, or all is done")
            if one.running():
                break
            self.bury(one)
            self.assertEqual(set(self.states().values()), {"stored"})
            self.assertEqual(sorted(self.states()), NAMES)
            self.assertLessEqual(set(NAMES[3:]), archiver.files(self.archive))
        one.kill()
        self.daemons.remove(one)
        self.assertGreater(change, 3)
        self.assert_settled(self.archiver(SETTINGS))


if __name__ == "__main__":
    sys.exit(tap.main())
