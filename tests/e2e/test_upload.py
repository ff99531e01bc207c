#!/usr/bin/env python3
"""tributary-upload and a real object store: once, whole, under one name."""

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from harness import store, tap
from harness.loop import SCALE
from harness.terminal import Terminal

SMALL = [("kiosk 7/ä+1%.pftrace", 1000), ("b/c.pftrace", 1 << 20),
         ("b/c.pftrace-x.pftrace", 1), ("empty.pftrace", 0)]
TRACE = os.path.join(os.environ["SOURCE_ROOT"], "tests", "conformance",
                     "recordings", "trace-record.pftrace")
LARGE = ("large.pftrace", (64 << 20) + 12345)


@unittest.skipIf(store.MISSING, "radosgw is not installed "
                 "(deploy/install-deps store)")
class Upload(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="trib", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.archive = os.path.join(folder.name, "archive")
        os.mkdir(self.archive)
        self.log_path = os.path.join(folder.name, "log")
        self.bucket = store.Bucket(folder.name)
        self.addCleanup(self.bucket.stop)
        self.front = self.bucket.front
        self.config = os.path.join(folder.name, "settings")
        self.settings()
        # Makes the catalogue.
        self.assertEqual(self.once(), 0, self.log())

    # ---- the program ----

    def settings(self, **more):
        self.bucket.settings(self.config, archive_dir=self.archive, **more)

    def start(self, *flags, keys=True):
        log = open(self.log_path, "ab")
        self.addCleanup(log.close)
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith("AWS_")}
        program = subprocess.Popen(
            [store.UPLOAD, "--config", self.config, *flags],
            env={**environment, **(store.KEYS if keys else {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def run_it(self, *flags):
        program = self.start(*flags)
        out, _ = program.communicate(timeout=120 * SCALE)
        return program.returncode, out.decode()

    def once(self):
        return self.run_it("--once")[0]

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def until(self, condition, what):
        end = time.monotonic() + 60 * SCALE
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}\n{self.log()}")
            time.sleep(0.02)

    def stop(self, program):
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(60 * SCALE), 0, self.log())

    # ---- segments ----

    def add(self, path, size, **more):
        data = random.Random(path).randbytes(size)
        store.catalogue(self.archive, path, data, **more)
        return data

    def assert_stored(self, segments):
        """Each once, whole, under its name; nothing else in the store."""
        paths = [path for path, _ in segments]
        self.assertEqual(self.bucket.keys(), sorted(
            f"fleet/{path}{end}" for path in paths for end in ("", ".json")),
            self.log())
        self.assertEqual(self.bucket.uploads(), 0)
        self.assertEqual(store.rows(self.archive),
                         sorted((path, "stored") for path in paths))
        for path, size in segments:
            copy = os.path.join(self.archive, "copy")
            url = f"{self.bucket.url}/{path}"
            self.assertEqual(self.run_it("--get", url, copy)[0], 0,
                             self.log())
            with open(copy, "rb") as file:
                self.assertEqual(
                    hashlib.sha256(file.read()).digest(),
                    hashlib.sha256(random.Random(path).randbytes(size))
                    .digest(), path)
            os.unlink(copy)

    def test_segments_are_sent_once_and_whole(self):
        segments = [*SMALL, LARGE]
        for segment in segments:
            self.add(*segment)
        self.assertEqual(self.once(), 0, self.log())
        self.assert_stored(segments)
        self.front.requests.clear()
        self.assertEqual(self.once(), 0)
        self.assertEqual(self.front.requests, [])

    def test_descriptions_are_the_rows_of_the_catalogue(self):
        for segment in SMALL:
            self.add(*segment)
        self.assertEqual(self.once(), 0, self.log())
        status, out = self.run_it("--descriptions")
        self.assertEqual(status, 0)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(sorted(line["description"]["path"]
                                for line in lines),
                         sorted(path for path, _ in SMALL))
        for line in lines:
            row = line["description"]
            self.assertEqual(line["url"],
                             f"{self.bucket.url}/{row['path']}")
            self.assertEqual(line["size"], row["bytes"])
            self.assertEqual(row["machines"][0]["name"], 'a "kiosk"')
            self.assertEqual(row["processes"][0]["pid"], 42)

    def test_an_object_of_another_is_not_replaced(self):
        self.add("a.pftrace", 1000)
        self.assertEqual(self.once(), 0, self.log())
        # An archive begun anew has another segment of this name.
        os.unlink(f"{self.archive}/catalog.db")
        self.assertEqual(self.once(), 0, self.log())
        store.catalogue(self.archive, "a.pftrace", b"another")
        self.add("b.pftrace", 10)
        self.assertEqual(self.once(), 1, self.log())
        self.assertIn("a.pftrace is not sent: the store has another object "
                      "of this name (1000 bytes", self.log())
        ((path, state, detail),) = store.rows(
            self.archive, "SELECT path, stored_state, stored_detail FROM "
            "segments WHERE stored_state IS NOT 'stored'")
        self.assertEqual((path, state), ("a.pftrace", "failed"))
        self.assertIn("another object", detail)
        self.assertIn("fleet/b.pftrace.json", self.bucket.keys())
        _, head, _ = self.bucket.signed("HEAD", "fleet/a.pftrace")
        self.assertIn(b"Content-Length: 1000", head)

    def test_a_file_that_is_not_what_the_catalogue_says_stays(self):
        self.add("small.pftrace", 1000, sha256=b"\7" * 32)
        self.add(LARGE[0], LARGE[1], sha256=b"\7" * 32)
        self.assertEqual(self.once(), 1)
        self.assertEqual(self.log().count("is not what the catalogue says"),
                         2, self.log())
        self.assertEqual(self.bucket.keys(), [])
        self.assertEqual(self.bucket.uploads(), 0)

    def test_killed_at_every_request_it_sends_once(self):
        segments = [SMALL[0], LARGE, SMALL[1]]
        for segment in segments:
            self.add(*segment)
        for when in range(1, 40):
            program = None
            seen = 0

            def fault(request):
                nonlocal seen
                # Odd ones before the store has it, even ones after it.
                if (request.answer is None) == (when % 2 == 1):
                    seen += 1
                    if seen == (when + 1) // 2:
                        program.kill()
                        program.wait()
                        return "cut"
                return None
            self.front.fault = fault
            # The front waits for what it has to kill.
            with self.front.lock:
                program = self.start("--once")
            if program.wait(120 * SCALE) == 0:
                break
        else:
            self.fail(f"it never came to an end\n{self.log()}")
        self.assertGreater(when, 10)
        self.assert_stored(segments)

    def test_an_answer_that_is_lost_is_no_second_object(self):
        segments = [SMALL[0], LARGE]
        for segment in segments:
            self.add(*segment)
        cut = set()

        def fault(request):
            name = (request.command, request.path.split("&uploadId")[0])
            if request.answer is None or name in cut:
                return None
            cut.add(name)
            return "cut"
        self.front.fault = fault
        self.settings(max_retry_ms=20)
        program = self.start()
        self.until(lambda: all(state == "stored" for _, state
                               in store.rows(self.archive)), "all is stored")
        self.stop(program)
        self.assert_stored(segments)

    def test_parts_that_are_there_are_not_sent_again(self):
        self.add(*LARGE)

        def fault(request):
            return "cut" if "partNumber=4" in request.path else None
        self.front.fault = fault
        self.assertEqual(self.once(), 1)
        self.assertEqual(self.bucket.uploads(), 1)
        self.front.fault = lambda request: None
        self.assertEqual(self.once(), 0, self.log())
        for part in (1, 2, 3):
            self.assertEqual(len([path for _, path in self.front.requests
                                  if f"partNumber={part}&" in path]), 1)
        self.assert_stored([LARGE])

    def test_a_busy_store_is_left_alone_as_long_as_it_says(self):
        self.add("a.pftrace", 1000)
        times = []

        def fault(request):
            if request.answer is None:
                times.append(request.came)
            if len(times) == 1:
                return 503, {"Retry-After": "2"}
            return (500, {}) if len(times) == 2 else None
        self.front.fault = fault
        self.assertEqual(self.once(), 0, self.log())
        self.assertGreaterEqual(times[1] - times[0], 2)
        self.assertEqual(self.log().count("not sent yet"), 1, self.log())
        self.assertIn("takes segments again, after 2 failures", self.log())
        self.assert_stored([("a.pftrace", 1000)])

    def test_a_denial_is_told_once_and_new_keys_are_tried(self):
        keys = self.config + ".keys"
        with open(keys, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write("[default]\naws_access_key_id = AK\n"
                       "aws_secret_access_key = wrong-and-hidden\n")
        self.settings(credentials_file=keys)
        self.add("a.pftrace", 1000)
        program = self.start("--log-level", "info", keys=False)
        self.until(lambda: len(self.front.requests) > 3, "it tries again")
        with open(f"/proc/{program.pid}/cmdline", encoding="utf-8") as file:
            self.assertNotIn("hidden", file.read())
        self.assertIn("403", self.run_it("--status")[1])
        with open(keys, "w", encoding="ascii") as file:
            file.write("[default]\naws_access_key_id = AK\n"
                       "aws_secret_access_key = SK\n")
        program.send_signal(signal.SIGHUP)
        self.until(lambda: store.rows(self.archive)[0][1] == "stored",
                   "it is stored")
        self.stop(program)
        self.assertEqual(self.log().count("answered 403"), 1, self.log())
        self.assertNotIn("hidden", self.log())
        self.assert_stored([("a.pftrace", 1000)])

    def test_a_connection_that_stalls_is_given_up(self):
        self.settings(stall_s=1)
        self.add("a.pftrace", 1000)
        stalled = []

        def fault(request):
            if not stalled:
                stalled.append(True)
                # Until the other side has had enough.
                request.rfile.read(1)
                return "cut"
            return None
        self.front.fault = fault
        self.assertEqual(self.once(), 0, self.log())
        self.assertIn("no answer from the store", self.log())
        self.assert_stored([("a.pftrace", 1000)])

    def test_segments_are_sent_as_they_come(self):
        os.unlink(f"{self.archive}/catalog.db")
        self.settings(max_backlog_mb=1)
        program = self.start()
        self.until(lambda: os.path.exists(f"{self.archive}/catalog.db"),
                   "the catalogue")
        for number in range(20):
            self.add(f"{number}.pftrace", 100000)
        self.until(lambda: all(state == "stored" for _, state
                               in store.rows(self.archive)), "all is stored")
        status, out = self.run_it("--status", "--json")
        self.assertEqual(status, 0)
        self.assertEqual(json.loads(out)["sent_segments"], 20)
        self.assertEqual(self.once(), 1)
        self.assertIn("one is enough", self.log())
        self.assert_confined(program)
        self.stop(program)
        self.assertEqual(self.run_it("--status")[0], 1)
        self.assert_stored([(f"{n}.pftrace", 100000) for n in range(20)])

    def assert_confined(self, program):
        with open(f"/proc/{program.pid}/status", encoding="ascii") as file:
            status = file.read()
        self.assertIn("NoNewPrivs:\t1", status)
        if "sanitizer" not in self.log():
            self.assertIn("Seccomp:\t2", status)

    def test_a_backlog_beyond_its_bound_is_told(self):
        self.settings(max_backlog_mb=1)
        self.front.fault = lambda request: (500, {})
        for number in range(3):
            self.add(f"{number}.pftrace", 1 << 20)
        self.assertEqual(self.once(), 1)
        self.assertEqual(self.log().count("more than max_backlog_mb"), 1)
        self.front.fault = lambda request: None
        self.assertEqual(self.once(), 0, self.log())

    def hold(self, method):
        """Requests wait for their answer until the event is set."""
        go = threading.Event()

        def fault(request):
            if request.command == method and request.answer is None:
                go.wait(60 * SCALE)
        self.front.fault = fault
        return go

    def assert_shows(self, line, method, *command, **env):
        """The command, on a terminal, has this line while it waits for the
        store, and not when it has ended."""
        go = self.hold(method)
        terminal = Terminal(self, command, **store.KEYS, **env)
        self.until(lambda: re.search(line, terminal.read()), line)
        go.set()
        terminal.ended(0)
        drawn = [m.start() for m in re.finditer(line, terminal.out)]
        self.assertIn(b"\r\x1b[K", terminal.out[drawn[-1]:])
        self.front.fault = lambda request: None

    def test_on_a_terminal_it_shows_how_far_it_is(self):
        with open(TRACE, "rb") as file:
            store.catalogue(self.archive, "a.pftrace", file.read())
        self.add("b.pftrace", 3000)
        size = os.path.getsize(TRACE)
        percent = round(100 * size / (size + 3000))
        self.assert_shows(
            rf"sent: \S+ \w+ of \S+ KiB \({percent} %\)".encode(), "PUT", store.UPLOAD, "--config", self.config, "--once")
        self.assertEqual(self.states(), {"stored"})
        copy = os.path.join(self.archive, "copy")
        self.assert_shows(
            rb"received: 0 bytes so far", "GET", store.UPLOAD, "--config",
            self.config, "--get", f"{self.bucket.url}/b.pftrace", copy)
        os.unlink(copy)
        # The same through another program, which has the only line.
        tributary = os.environ["TRIBUTARY"]
        os.unlink(os.path.join(self.archive, "a.pftrace"))
        subprocess.run([tributary, "archive", "reindex", "--archive",
                        self.archive], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL)
        self.assert_shows(
            rb"\r\x1b\[\?7lbrought: 0 bytes of \S+ \w+ \(0 %\)", "GET", tributary, "fetch", "a.pftrace", "--archive", self.archive,
            "--store", self.config, "-o", copy,
            PATH=f"{os.path.dirname(store.UPLOAD)}:{os.environ['PATH']}")

    def states(self):
        return {state for _, state in store.rows(self.archive)}

    def test_a_damaged_object_is_not_fetched(self):
        self.add("a.pftrace", 1000)
        self.assertEqual(self.once(), 0, self.log())
        url = f"{self.bucket.url}/a.pftrace"
        copy = os.path.join(self.archive, "copy")

        def fault(request):
            if request.answer is not None:
                request.answer.headers.replace_header(
                    "x-amz-meta-tributary-sha256", "00" * 32)
        self.front.fault = fault
        self.assertEqual(self.run_it("--get", url, copy)[0], 1)
        self.assertIn("is damaged", self.log())
        self.assertFalse(os.path.exists(copy))
        self.front.fault = lambda request: None
        self.assertEqual(self.run_it("--get", url + "x", copy)[0], 1)
        self.assertIn("x is not in the store", self.log())


if __name__ == "__main__":
    sys.exit(tap.main())
