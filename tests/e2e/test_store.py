#!/usr/bin/env python3
"""Segments that are only in an object store: their catalogue made from the
store alone, found and fetched, and what is said where that cannot be."""

import os
import shutil
import subprocess
import sys
import unittest

from harness import store, tap
from harness.case import pb
from test_archive import ArchiveCase
from test_segments import segments

PROGRAM = os.environ["TRIBUTARY"]


@unittest.skipIf(store.MISSING, "radosgw is not installed "
                 "(deploy/install-deps store)")
class StoreCase(ArchiveCase):
    def setUp(self):
        super().setUp()
        self.bucket = store.Bucket(os.path.dirname(self.path("x")))
        self.addCleanup(self.bucket.stop)
        self.config = self.path("upload.conf")
        self.settings()
        self.start()
        self.make_segments()
        self.fill()
        self.archive("reindex")
        self.rows = self.contents()
        self.upload()

    def settings(self):
        self.bucket.settings(self.config, archive_dir=self.traces)

    def make_segments(self):
        """Of two machines; with triggers and losses of a foreign service."""
        producer = self.producer("p")
        consumer = self.record(of=segments(recording="always"))
        writer = producer.writer()
        for cuts in range(3):
            writer.number(50)
            self.cut(producer, cuts + 1)
        writer.number(7)
        self.assertFalse(consumer.stop().error)
        lossy = [
            pb.TracePacket(
                timestamp=1, trusted_packet_sequence_id=2,
                trusted_uid=0, previous_packet_dropped=True,
                process_tree=pb.ProcessTree(processes=[
                    pb.ProcessTree.Process(pid=42, cmdline=["chromium"])])),
            pb.TracePacket(
                trusted_packet_sequence_id=1, trusted_uid=0,
                trace_stats=pb.TraceStats(buffer_stats=[
                    pb.TraceStats.BufferStats(chunks_discarded=3)]))]
        with open(os.path.join(self.traces, "lossy.pftrace"), "wb") as file:
            for packet in lossy:
                raw = packet.SerializeToString()
                self.assertLess(len(raw), 128)
                file.write(bytes([0x0a, len(raw)]) + raw)

    def run_with_keys(self, *words, status=0, keys=None):
        """Returns what was printed; the keys of the store in no word of it."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("AWS_")}
        environment["PATH"] = os.path.dirname(store.UPLOAD) + ":" + \
            environment["PATH"]
        environment["TRIBUTARY_STORE"] = self.config
        environment["TMPDIR"] = os.path.dirname(self.path("x"))
        done = subprocess.run(
            words, env={**environment,
                        **(store.KEYS if keys is None else keys)},
            capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertNotIn("hidden", done.stdout + done.stderr)
        return done.stdout + done.stderr

    def upload(self):
        self.run_with_keys(store.UPLOAD, "--config", self.config, "--once")

    def reindex_from(self, *words, **expected):
        return self.run_with_keys(
            PROGRAM, "archive", "reindex", "--from", self.bucket.url,
            "--archive", self.traces, *words, **expected)

    def fetch(self, *words, **expected):
        """The joined trace, or what was said instead of it."""
        path = self.path("joined")
        said = self.run_with_keys(PROGRAM, "fetch", "--archive", self.traces,
                                  *words, "-o", path, **expected)
        if expected.get("status", 0) != 0:
            self.assertFalse(os.path.exists(path))
            return said
        with open(path, "rb") as file:
            data = file.read()
        os.remove(path)
        return data

    def lose_the_archive(self):
        """A new machine: nothing but the store is left."""
        shutil.rmtree(self.traces)
        os.mkdir(self.traces)

    def keep_only_the_store(self):
        """The files go, as retention lets them, and the catalogue knows."""
        for path in self.files(""):
            os.remove(path)
        self.archive("reindex")


class OnlyInTheStore(StoreCase):
    def test_a_catalogue_of_the_store_alone_is_that_of_the_files(self):
        self.lose_the_archive()
        count = len(self.rows[0])
        self.assertGreater(count, 4)
        for table in self.rows[1:]:
            self.assertTrue(table, self.rows)
        self.assertIn(f"{count} segments of the store taken",
                      self.reindex_from())
        # All but `local`, the last column.
        self.assertEqual([row[:-1] for row in self.contents()[0]],
                         [row[:-1] for row in self.rows[0]])
        self.assertEqual({row[-1] for row in self.contents()[0]}, {0})
        self.assertEqual(self.contents()[1:], self.rows[1:])
        self.assertEqual(self.sql("SELECT count(*) FROM segments WHERE "
                                  "stored_state = 'stored'"), [(count,)])
        # Once more changes nothing, nor does a look for files.
        before = self.sql("SELECT path, stored_url FROM segments ORDER BY 1")
        self.assertIn(f"0 segments of the store taken, {count} known",
                      self.reindex_from())
        self.archive("reindex")
        self.assertEqual(before, self.sql(
            "SELECT path, stored_url FROM segments ORDER BY 1"))
        found = self.run_with_keys(PROGRAM, "find", "--recording", "always",
                                   "--archive", self.traces)
        self.assertEqual(found.count("(in the store)"), 4)

    def test_what_is_only_in_the_store_is_fetched_as_from_the_archive(self):
        conditions = ("--recording", "always")
        path = self.sql("SELECT path FROM segments WHERE number = 2")[0][0]
        joined, one = self.fetch(*conditions), self.fetch(path)
        self.keep_only_the_store()
        self.assertEqual(self.fetch(*conditions), joined)
        self.assertEqual(self.fetch(path), one)
        self.lose_the_archive()
        self.reindex_from()
        self.assertEqual(self.fetch(*conditions), joined)
        self.assertEqual([name for name in os.listdir(
            os.path.dirname(self.path("x"))) if "tributary." in name], [])

    def test_files_that_are_there_learn_that_the_store_has_them(self):
        self.forget()
        self.archive("reindex")
        count = len(self.rows[0])
        self.assertIn(f"0 segments of the store taken, {count} known",
                      self.reindex_from())
        self.assertEqual(self.contents(), self.rows)
        self.bucket.front.requests.clear()
        self.upload()
        self.assertEqual(self.bucket.front.requests, [])

    def test_a_fetch_that_cannot_be_says_why(self):
        self.keep_only_the_store()
        words = ("--recording", "always")
        self.assertIn("AWS_ACCESS_KEY_ID",
                      self.fetch(*words, status=2, keys={}))
        self.assertIn("403", self.fetch(
            *words, status=2, keys={"AWS_ACCESS_KEY_ID": "AK",
                                    "AWS_SECRET_ACCESS_KEY": "hidden"}))
        path, sha256 = self.sql(
            "SELECT path, hex(sha256) FROM segments WHERE number = 1")[0]
        url = f"{self.bucket.url}/{path}"
        key = url.split("/", 3)[3]
        # Another whole object in its place.
        self.bucket.signed("DELETE", key)
        self.bucket.signed("PUT", key, data="another")
        said = self.fetch(path, status=2)
        self.assertIn(f"{url} is another file", said)
        self.assertIn(sha256.lower(), said)
        self.bucket.signed("DELETE", key)
        self.assertIn(f"{url} is not in the store", self.fetch(path, status=2))
        self.bucket.front.stop()
        self.assertIn("no answer from the store", self.fetch(path, status=2))

    def test_descriptions_that_are_none_keep_no_others_back(self):
        self.lose_the_archive()
        key = next(key for key in self.bucket.keys()
                   if key.endswith(".json"))
        self.bucket.signed("DELETE", key)
        self.bucket.signed("PUT", key, data="[]")
        count = len(self.rows[0])
        said = self.reindex_from()
        self.assertIn(f"{count - 1} segments of the store taken", said)
        self.assertIn(f"{key} is no description", said)
        self.lose_the_archive()
        self.assertIn("which is what reads from a store", self.reindex_from(
            status=1, keys={"PATH": "/nonexistent"}))

    def test_a_store_is_said_as_a_store(self):
        for words, said in (
                (("--from", "yesterday"), "s3://BUCKET/PREFIX"),
                (("--from", "s3://b", "--full"), "not both"),
                (("--store", "x"), "--store goes with")):
            self.assertIn(said, self.archive("reindex", *words, status=1))


if __name__ == "__main__":
    sys.exit(tap.main())
