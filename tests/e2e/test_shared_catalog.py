#!/usr/bin/env python3
"""One catalogue for the segments of several collectors, in a real PostgreSQL:
its rows are those of the collectors' own catalogues, whatever happens on the
way, and what is asked of it is answered as they answer."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import unittest
import urllib.parse

from harness import imported, postgres, store, tap
from harness.archive import Archive
from harness.loop import SCALE
from harness.trace import Trace
from harness.web import Web
from test_segments import ERRORS
from test_store import PROGRAM, StoreCase

QUESTIONS = (
    (), ("--recording", "always"), ("--recording", "al*"), ("--machine", "h*"),
    ("--machine", "host"), ("--lost",), ("--trigger", "cut"),
    ("--trigger", "?ut"), ("--process", "chromium"),
    ("--process", "c[h]*"), ("--process", "100%_*"),
    ("--from", "2000-01-01", "--recording", "always"),
    ("--at", "-1s", "--around", "1h"), ("--to", "@1"),
    ("--machine", "host", "--trigger", "cut", "--from", "-1h"),
)


@unittest.skipIf(postgres.MISSING, "PostgreSQL is not installed "
                 "(deploy/install-deps test)")
class SharedCase(StoreCase):
    """A collector called c1."""

    def settings(self):
        self.db = postgres.Database(postgres.server())
        self.config = self.settings_of("c1", self.traces)

    def settings_of(self, collector, folder, **more):
        path = self.path(f"{collector}.conf")
        self.bucket.settings(path, archive_dir=folder, **{
            "url": f"s3://{self.bucket.name}/{collector}",
            "catalog": self.db.url, **more})
        return path

    def launch(self, *words):
        environment = {**os.environ, **store.KEYS}
        log = open(self.path("log"), "ab")
        self.addCleanup(log.close)
        program = subprocess.Popen(words, env=environment, stderr=log,
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def logged(self):
        if not os.path.exists(self.path("log")):
            return ""
        with open(self.path("log"), encoding="utf-8") as file:
            return file.read()

    def uploader(self, config=None):
        return self.launch(store.UPLOAD, "--config", config or self.config)

    def end(self, program):
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(60 * SCALE), 0, self.logged())

    def wait_until(self, condition, what):
        end = time.monotonic() + 60 * SCALE
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}\n{self.logged()}")
            time.sleep(0.02)

    def paths(self):
        return [row[0] for row in
                self.db.sql("SELECT path FROM segments ORDER BY path")]

    def find(self, *words, catalog=None, status=0):
        return self.run_with_keys(PROGRAM, "find", "--catalog",
                                  catalog or self.db.url, *words,
                                  status=status)

    def report(self):
        return json.loads(subprocess.run(
            [store.UPLOAD, "--status", "--json", "--archive", self.traces],
            check=True, stdout=subprocess.PIPE, text=True).stdout)

    def assert_rows(self, collector="c1"):
        """The tables say what those of the archive do, but for `local`."""
        mine, theirs = postgres.texts(self.contents()), \
            self.db.contents(collector)
        self.assertEqual([row[:-1] for row in theirs[0]],
                         [row[:-1] for row in mine[0]])
        self.assertEqual({row[-1] for row in theirs[0]}, {"0"})
        self.assertEqual(theirs[1:6], mine[1:6])
        # Patterns of bytes come in another order.
        self.assertEqual(sorted(theirs[6], key=str),
                         sorted((row for row in mine[6]), key=str))


class Rows(SharedCase):
    def test_the_rows_are_those_of_the_archive(self):
        self.assert_rows()
        self.assertEqual(
            self.db.sql("SELECT path, stored_url, stored_etag FROM segments "
                        "ORDER BY 1"),
            [(f"c1/{path}", url, etag) for path, url, etag in self.sql(
                "SELECT path, stored_url, stored_etag FROM segments "
                "ORDER BY 1")])
        self.assertEqual(self.sql("SELECT * FROM unlisted"), [])
        # Once more, and a second time from the begin, is no change.
        before = self.db.contents("c1")
        self.upload()
        self.change_archive("INSERT INTO unlisted (segment) "
                            "SELECT id FROM segments")
        self.upload()
        self.assertEqual(self.db.contents("c1"), before)

    def change_archive(self, sql):
        path = os.path.join(self.traces, "catalog.db")
        subprocess.run([sys.executable, "-c", "import sqlite3, sys; "
                        "db = sqlite3.connect(sys.argv[1]); "
                        "db.executescript(sys.argv[2]); db.commit()", path,
                        sql], check=True)

    def test_a_catalogue_of_the_bucket_alone_is_the_same(self):
        before = self.db.contents("c1")
        columns = ("SELECT path, stored_state, stored_url, stored_etag FROM "
                   "segments ORDER BY 1")
        stored = self.db.sql(columns)
        self.db = postgres.Database(postgres.server())
        words = (PROGRAM, "archive", "reindex", "--from",
                 f"s3://{self.bucket.name}", "--catalog", self.db.url)
        count = len(stored)
        self.assertIn(f"{count} segments of the store taken",
                      self.run_with_keys(*words))
        self.assertEqual(self.db.contents("c1"), before)
        self.assertEqual(self.db.sql(columns), stored)
        self.assertIn(f"0 segments of the store taken, {count} known",
                      self.run_with_keys(*words))
        self.assertEqual(self.db.contents("c1"), before)
        # A description that is none keeps no others back.
        key = next(key for key in self.bucket.keys()
                   if key.endswith(".json"))
        self.bucket.signed("DELETE", key)
        self.bucket.signed("PUT", key, data='{"tributary": 1, "path": '
                           '"../x.pftrace"}')
        self.db = postgres.Database(postgres.server())
        self.assertIn(f"{count - 1} segments of the store taken",
                      self.run_with_keys(*words[:-1], self.db.url, status=1))
        self.assertEqual(len(self.paths()), count - 1)

    def test_the_same_questions_have_the_same_answers(self):
        odd = 'INSERT INTO terms VALUES (90, 4, \'c[h]rome\', \'c[h]rome\'),' \
            ' (91, 4, \'100%_x\', \'100%_x\'), (92, 4, \'100%yx\', \'100%yx\');' \
            ' INSERT INTO postings SELECT k.column1, coalesce(class, -1), ' \
            'coalesce(first_ns, 0), id FROM segments CROSS JOIN (VALUES (90),' \
            ' (91), (92)) AS k WHERE number = k.column1 - 89'
        self.change_archive(odd)
        self.db.sql(odd)
        found = 0
        for words in QUESTIONS:
            mine = subprocess.run(
                [PROGRAM, "find", "--archive", self.traces, "--limit", "0",
                 "--json", *words], check=False, stdout=subprocess.PIPE,
                text=True)
            theirs = json.loads(self.find(
                "--json", "--limit", "0", *words,
                status=mine.returncode).partition("\ntributary find")[0])
            mine = json.loads(mine.stdout)
            for segment in theirs["segments"]:
                self.assertEqual(segment.pop("collector"), "c1")
                self.assertEqual(segment.pop("local"), False)
                segment["path"] = segment["path"].removeprefix("c1/")
            for segment in mine["segments"]:
                del segment["local"]
            self.assertEqual(theirs["segments"], mine["segments"], words)
            found += len(mine["segments"])
        self.assertGreater(found, 40)
        said = self.run_with_keys(PROGRAM, "archive", "du", "--json",
                                  "--catalog", self.db.url)
        rows = {row["name"]: row["segments"]
                for row in json.loads(said)["recordings"]}
        self.assertEqual(rows["always"], 4)
        self.assertEqual(json.loads(said)["all"][2]["segments"],
                         len(self.paths()))
        self.assertEqual(
            {row["name"] for row in json.loads(said)["days"]},
            {row["name"] for row in json.loads(self.archive(
                "du", "--json"))["days"]})

    def test_a_fetch_is_that_of_the_archive(self):
        joined = self.fetch("--recording", "always")
        path = self.sql("SELECT path FROM segments WHERE number = 2")[0][0]
        one = self.fetch(path)
        self.lose_the_archive()
        out = self.path("joined")
        for words, wanted in ((("--recording", "always"), joined),
                              ((f"c1/{path}",), one)):
            self.run_with_keys(PROGRAM, "fetch", "--catalog", self.db.url,
                               *words, "-o", out)
            with open(out, "rb") as file:
                self.assertEqual(file.read(), wanted)
        self.assertIn("has no segment c9/x.pftrace", self.run_with_keys(
            PROGRAM, "fetch", "--catalog", self.db.url, "c9/x.pftrace", "-o",
            out, status=2))
        environment = {**os.environ, "TRIBUTARY_CATALOG": self.db.url}
        environment.pop("TRIBUTARY_ARCHIVE", None)
        self.assertIn("always 2", subprocess.run(
            [PROGRAM, "find"], env=environment, check=True, text=True,
            stdout=subprocess.PIPE).stdout)


class Fleet(SharedCase):
    def second(self, **more):
        """Another collector, with files of the same names."""
        folder = self.path("archive2")
        os.mkdir(folder)
        for path, size in (("always/1.pftrace", 10), ("always/2.pftrace", 20)):
            store.catalogue(folder, path, os.urandom(size))
        return folder, self.settings_of("c2", folder, **more)

    def setUp(self):
        super().setUp()
        self.empty = self.path("archive0")

    def make_catalogue(self, folder):
        os.makedirs(folder, exist_ok=True)
        subprocess.run([PROGRAM, "archive", "reindex", "--archive", folder],
                       check=True, capture_output=True)

    def test_two_uploaders_write_at_once(self):
        folder = self.path("archive2")
        self.make_catalogue(folder)
        for n in range(60):
            for where in (self.traces, folder):
                store.catalogue(where, f"many/{n}.pftrace", os.urandom(50))
        other = self.settings_of("c2", folder)
        both = [self.uploader(), self.uploader(other)]
        count = len(self.rows[0])
        self.wait_until(lambda: len(self.paths()) == count + 120, "all are listed")
        for program in both:
            self.end(program)
        paths = self.paths()
        self.assertEqual(len(set(paths)), count + 120)
        for collector in ("c1", "c2"):
            self.assertEqual(len([path for path in paths if path.startswith(
                f"{collector}/many/")]), 60)
        # A process of both is one row, and counted.
        self.assertEqual(self.db.sql(
            "SELECT count(*), max(segments) FROM processes WHERE "
            "machine = 'a \"kiosk\"'"), [("1", "120")])
        self.assertNotIn("deadlock", self.logged())
        # Told apart, and asked apart.
        said = self.find("--recording", "always", "--limit", "0",
                         "--machine", 'a "kiosk"')
        self.assertIn("COLLECTOR", said)
        for name, count in (("c1", 60), ("c2", 60), ("c?", 120)):
            found = json.loads(self.find(
                "--collector", name, "--machine", 'a "kiosk"', "--json",
                "--limit", "0"))["segments"]
            self.assertEqual(len(found), count)
        self.assertIn("has a collector c3; there are c1, c2",
                      self.find("--collector", "c3", status=1))

    def test_a_moment_of_two_collectors_is_one_file(self):
        """Recorded, sent and found by each; joined by who has neither disk."""
        self.daemons[0].stop()
        self.traces = self.path("second")
        os.mkdir(self.traces)
        self.start()
        self.make_segments()
        Archive(self.traces).run("reindex")
        self.run_with_keys(store.UPLOAD, "--config", self.settings_of(
            "c2", self.traces), "--once")
        self.lose_the_archive()
        out = self.path("joined")
        packets = {}
        for collector in ("c1", "c2", "*"):
            self.run_with_keys(
                PROGRAM, "fetch", "--catalog", self.db.url, "--machine",
                "host", "--recording", "always", "--collector", collector,
                "-o", out)
            if collector != "*":
                trace = Trace.from_file(out)
                packets[collector] = len(trace.of("for_testing"))
                self.assertEqual(trace.sql(ERRORS), [])
        self.assertEqual(packets, {"c1": 157, "c2": 157})
        with tarfile.open(out) as tar:
            traces = [Trace.from_bytes(tar.extractfile(one).read())
                      for one in tar]
        self.assertEqual([len(trace.of("for_testing")) for trace in traces],
                         [157, 157])
        with open(out, "rb") as file:
            errors, names = imported.ask(
                file.read(), ERRORS, "SELECT count(*) FROM __intrinsic_"
                "trace_file WHERE trace_type = 'proto'")
        self.assertEqual(errors, [])
        self.assertEqual(names, [(2,)])

    def test_two_folders_of_one_name_are_told(self):
        folder = self.path("archive2")
        self.make_catalogue(folder)
        store.catalogue(folder, "a.pftrace", b"1")
        shutil.copytree(folder, folder + "b")
        for n, where in enumerate((folder, folder + "b")):
            config = self.settings_of(
                "c7", where, url=f"s3://{self.bucket.name}/{n}/c7")
            said = self.run_with_keys(store.UPLOAD, "--config", config,
                                      "--once", status=n)
        self.assertIn("two uploaders send to folders of one name", said)
        self.assertIn("c7/a.pftrace", self.paths())

    def test_rows_wait_while_postgresql_is_away(self):
        server = postgres.server()
        uploader = self.uploader()
        count = len(self.paths())
        for n in range(5):
            store.catalogue(self.traces, f"a/{n}.pftrace", b"a%d" % n)
        self.wait_until(lambda: len(self.paths()) == count + 5, "five rows")
        server.kill()
        try:
            for n in range(5):
                store.catalogue(self.traces, f"b/{n}.pftrace", b"b%d" % n)
            self.wait_until(lambda: self.sql(
                "SELECT count(*) FROM segments WHERE path LIKE 'b/%' AND "
                "stored_state = 'stored'") == [(5,)], "uploads go on")
            self.wait_until(lambda: self.report()["listing"].get(
                "waiting") in (5, "5"), "they are counted")
            self.assertIn("rows wait for the shared catalogue", self.logged())
            # Who comes after a crash knows what waits.
            uploader.kill()
            uploader.wait()
            uploader = self.uploader()
            for n in range(5):
                store.catalogue(self.traces, f"c/{n}.pftrace", b"c%d" % n)
            self.wait_until(lambda: self.sql(
                "SELECT count(*) FROM unlisted") == [(10,)], "ten wait")
            said = subprocess.run([store.UPLOAD, "--status", "--archive",
                                   self.traces], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
            self.assertRegex(said, "(5|10) rows wait")
        finally:
            server.start()
        self.wait_until(lambda: len(self.paths()) == count + 15, "all rows")
        # Killed between two rows, again and again.
        for n in range(30):
            store.catalogue(self.traces, f"d/{n}.pftrace", b"d%d" % n)
            if n % 10 == 5:
                server.kill()
                server.start()
        self.wait_until(lambda: len(self.paths()) == count + 45, "all rows")
        self.wait_until(lambda: self.sql("SELECT count(*) FROM unlisted") ==
                   [(0,)], "none waits")
        self.end(uploader)
        self.assertIn("takes rows again", self.logged())
        self.assertEqual(
            self.db.sql("SELECT count(*), count(DISTINCT path) FROM "
                        "segments"), [(str(count + 45),) * 2])
        self.assertEqual(
            self.db.sql("SELECT sum(segments) FROM processes"),
            self.db.sql("SELECT count(*) FROM seen"))

    def test_an_uploader_that_is_killed_goes_on(self):
        """Between its two catalogues, too: a row that both have is one."""
        count = len(self.paths())
        for n in range(80):
            store.catalogue(self.traces, f"k/{n}.pftrace", b"k%d" % n)
        for rows in range(count, count + 80, 8):
            uploader = self.uploader()
            self.wait_until(lambda: len(self.paths()) > rows, "a row more")
            uploader.kill()
            uploader.wait()
        self.upload()
        self.assertEqual(self.sql("SELECT count(*) FROM unlisted"), [(0,)])
        self.assertEqual(
            self.db.sql("SELECT count(*), count(DISTINCT path) FROM "
                        "segments"), [(str(count + 80),) * 2])
        self.assertEqual(
            self.db.sql("SELECT sum(segments) FROM processes"),
            self.db.sql("SELECT count(*) FROM seen"))
        self.assertEqual(
            self.db.sql("SELECT count(*) FROM postings AS p JOIN terms AS t "
                        "ON t.id = p.term WHERE kind = 6"),
            [(str(count + 80),)])

    def test_a_server_that_hangs_holds_up_no_uploads(self):
        server = postgres.server()
        uploader = self.uploader()
        count = len(self.paths())
        server.signal(signal.SIGSTOP)
        try:
            store.catalogue(self.traces, "x.pftrace", b"x")
            self.wait_until(lambda: self.sql(
                "SELECT stored_state FROM segments WHERE path = 'x.pftrace'"
                ) == [("stored",)], "it is sent")
            self.assertIn("does not answer in time",
                          self.find(status=2))
        finally:
            server.signal(signal.SIGCONT)
        self.wait_until(lambda: len(self.paths()) == count + 1, "its row")
        self.end(uploader)

    def test_a_writer_that_keeps_the_lock_keeps_no_reader(self):
        """Its transaction is ended for it, and the rows are put then."""
        count = len(self.paths())
        server = postgres.server()
        holder = subprocess.Popen(
            [os.path.join(postgres.BIN, "psql"), "-XAt", "-h", server.folder,
             "-p", str(server.port), "-U", "ann", "-d", self.db.name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.communicate)
        self.addCleanup(holder.kill)
        # As an uploader that stands still has it.
        holder.stdin.write("SET idle_in_transaction_session_timeout = '3s';"
                           "BEGIN; SELECT pg_advisory_xact_lock(1416774497);"
                           "SELECT 'held';\n")
        holder.stdin.flush()
        while holder.stdout.readline() != "held\n":
            pass
        store.catalogue(self.traces, "x.pftrace", b"x")
        uploader = self.uploader()
        self.assertIn("always 2", self.find())
        self.wait_until(lambda: len(self.paths()) == count + 1, "its row")
        self.end(uploader)

    def test_settings_that_come_and_go(self):
        """What was sent meanwhile is listed once there is a catalogue."""
        count = len(self.paths())
        self.settings_of("c1", self.traces, catalog="")
        self.assertIn("catalog", self.run_with_keys(
            store.UPLOAD, "--config", self.config, "--once", status=1))
        self.bucket.settings(self.config, archive_dir=self.traces,
                             url=f"s3://{self.bucket.name}/c1")
        store.catalogue(self.traces, "x.pftrace", b"x")
        self.upload()
        self.assertEqual(len(self.paths()), count)
        self.settings_of("c1", self.traces)
        self.upload()
        self.assertEqual(len(self.paths()), count + 1)
        old, self.db = self.db, postgres.Database(postgres.server())
        self.settings_of("c1", self.traces)
        self.upload()
        self.assertEqual(self.db.contents("c1"), old.contents("c1"))


class Page(SharedCase):
    def serve(self, url):
        """Of a machine without a collector."""
        web = Web(self.folder, self.path("nobody"), flags=["--catalog", url])
        web.start()
        self.relays.append(web)
        return web

    def test_it_shows_the_fleet_without_a_folder(self):
        # Over TLS, confined as the service is.
        web = self.serve(f"{self.db.tcp}?sslmode=verify-full&sslrootcert="
                         f"{postgres.server().certificate}")
        self.lose_the_archive()
        status, _, page = web.get("/archive")
        self.assertEqual(status, 200, page)
        for path in self.paths():
            self.assertIn(path, page)
        self.assertIn("host of c1", page)
        self.assertIn("tributary fetch --catalog", page)
        self.assertNotIn("hidden", page + web.log())
        path = self.paths()[0]
        for name, count in (("c1", 1), ("c2", 0)):
            page = web.get(f"/archive?collector={name}")[2]
            self.assertEqual(path in page, count == 1)
        status, _, said = web.get("/archive/segment?path=" +
                                  urllib.parse.quote(path, safe=""))
        self.assertEqual(status, 404)
        self.assertIn("in the store alone", said)
        self.assertEqual(web.get("/archive/trace?recording=always")[0], 404)

    def test_a_server_that_hangs_or_is_away_hangs_no_page(self):
        server = postgres.server()
        web = self.serve(self.db.url)
        self.assertEqual(web.get("/archive")[0], 200)
        server.signal(signal.SIGSTOP)
        try:
            status, _, page = web.get("/archive")
            self.assertEqual(status, 503)
            self.assertIn("does not answer in time", page)
            self.assertEqual(web.get("/healthz")[0], 200)
        finally:
            server.signal(signal.SIGCONT)
        server.kill()
        try:
            self.assertEqual(web.get("/archive")[0], 503)
        finally:
            server.start()
        self.assertEqual(web.get("/archive")[0], 200)


class Refused(SharedCase):
    def test_what_is_wrong_is_named_and_no_password(self):
        server = postgres.server()
        port, wrong = server.port, "hidden%20too"
        base = f"postgresql://ann:{postgres.quoted(postgres.PASSWORD)}@"
        for url, said in (
                (f"postgresql://ann:{wrong}@127.0.0.1:{port}/{self.db.name}",
                 "password authentication failed"),
                (f"{base}127.0.0.1:{port}/nothing", "does not exist"),
                (f"{base}127.0.0.1:1/{self.db.name}", "refused"),
                (f"{base}hidden@127.0.0.1/y", "%40"),
                ("postgresql://u:hidden/x@[::1/", "%2F"),
                ("postgresql://u:hidden@[::1/x", "no address of a catalogue"),
                ("postgresql:///x?pass=hidden", "no address of a catalogue"),
                ("mysql://hidden", "no address of a catalogue"),
                (f"{self.db.tcp}?sslmode=verify-full&sslrootcert=/dev/null",
                 "certificate")):
            self.assertIn(said, self.find(catalog=url, status=2))
        for name, sql, said in (
                ("empty", "SELECT 1", "has no catalogue yet"),
                ("newer", "CREATE TABLE catalog_version AS SELECT "
                 "1416774497 AS application, 99 AS version",
                 "newer version of Tributary (99"),
                ("older", "CREATE TABLE catalog_version AS SELECT "
                 "1416774497 AS application, 1 AS version", "older version"),
                ("another", "CREATE TABLE catalog_version AS SELECT 7 AS "
                 "application, 2 AS version", "another program"),
                ("bare", "CREATE TABLE catalog_version AS SELECT 1416774497 "
                 "AS application, 2 AS version", "is damaged")):
            db = postgres.Database(server)
            db.sql(sql)
            self.assertIn(said, self.find(catalog=db.url, status=2), name)
        latin = postgres.Database(server, "SQL_ASCII")
        self.assertIn("encoding is UTF8", self.find(catalog=latin.url,
                                                    status=2))
        for words, said in (
                (("find", "--archive", "x", "--catalog", "y"), "not both"),
                (("find", "--collector", "c1", "--archive", self.traces),
                 "--collector goes with --catalog"),
                (("archive", "verify", "--catalog", self.db.url),
                 "is about the files of a folder"),
                (("archive", "reindex", "--catalog", self.db.url),
                 "is about the files of a folder")):
            done = subprocess.run([PROGRAM, *words], check=False, text=True,
                                  capture_output=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)

    def test_a_password_comes_from_where_libpq_has_it(self):
        port = postgres.server().port
        url = f"postgresql://ann@127.0.0.1:{port}/{self.db.name}"
        self.assertIn("no password", self.find(catalog=url, status=2))
        secret = self.path("pgpass")
        with open(secret, "w", encoding="utf-8") as file:
            file.write(f"*:*:*:*:{postgres.PASSWORD}\n")
        os.chmod(secret, 0o600)
        self.assertIn("always 2", self.find(
            catalog=f"{url}?passfile={secret}"))
        # The uploader's children and log have none of the one in its settings.
        self.settings_of("c1", self.traces, catalog=self.db.tcp)
        uploader = self.uploader()
        store.catalogue(self.traces, "x.pftrace", b"x")
        self.wait_until(lambda: "c1/x.pftrace" in self.paths(), "its row")
        self.assertNotIn("hidden", json.dumps(self.report()))
        self.end(uploader)
        self.assertNotIn("hidden", self.logged())

    def test_a_reader_cannot_write_and_need_not(self):
        self.db.sql("CREATE ROLE bob LOGIN; GRANT SELECT ON ALL TABLES IN "
                    "SCHEMA public TO bob")
        self.addCleanup(self.db.sql, "DROP OWNED BY bob; DROP ROLE bob")
        url = self.db.url.replace("ann@", "bob@")
        self.assertIn("always 2", self.find(catalog=url))
        self.settings_of("c1", self.traces, catalog=url, min_retry_ms=1,
                         max_retry_ms=1)
        store.catalogue(self.traces, "x.pftrace", b"x")
        self.assertIn("GRANT", self.run_with_keys(
            store.UPLOAD, "--config", self.config, "--once", status=1))
        self.db.sql("REVOKE SELECT ON segments FROM bob")
        self.assertIn("permission denied", self.find(catalog=url, status=2))

    def test_hostile_rows_do_no_harm(self):
        """Of an archive's files, and of somebody who can write into ours."""
        store.catalogue(self.traces, "odd.pftrace", b"odd")
        db = os.path.join(self.traces, "catalog.db")
        subprocess.run([sys.executable, "-c", """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
row = db.execute("SELECT id FROM segments WHERE path = 'odd.pftrace'"
                 ).fetchone()[0]
for n, name in enumerate((b"\\xff\\xfe", b"a\\x00b", b"\\xed\\xa0\\x80",
                          b"n" * 9000, b"'; DROP TABLE segments; --",
                          b"%_\\\\", b"\\\\x41", b"")):
    db.execute("INSERT OR IGNORE INTO processes (name, machine, pid) VALUES "
               "(CAST(? AS TEXT), ?, ?)", (name, 'm' * 9000, n))
    db.execute("INSERT INTO seen SELECT ?, id FROM processes WHERE pid = ? "
               "AND machine LIKE 'mmm%'", (row, n))
db.execute("UPDATE segments SET recording = CAST(x'ff41' AS TEXT), problem = "
           "hex(zeroblob(9000)) WHERE id = ?", (row,))
db.commit()
""", db], check=True)
        self.upload()
        self.assertIn("c1/odd.pftrace", self.paths())
        self.assertEqual(self.db.sql("SELECT recording FROM segments WHERE "
                                     "path = 'c1/odd.pftrace'"),
                         [("\ufffdA",)])
        for name in ("%_\\", "\\x41", "'; DROP TABLE segments; --",
                     "n" * 9000):
            self.assertIn("odd.pftrace", self.find("--process", name))
        forged = ("../../etc/passwd.pftrace", "/etc/x.pftrace",
                  "c1/../x.pftrace", "c1/x")
        for path in forged:
            self.db.sql("UPDATE segments SET path = "
                        f"'{path}' WHERE number = 1 AND recording = 'always'")
            self.assertIn("is no path of a segment", self.find(
                "--recording", "always", status=2))
        # A row that says that it is on this disk, and a place that is none.
        self.db.sql("UPDATE segments SET path = 'tmp/x.pftrace', local = 1, "
                    "stored_url = '--config=x' WHERE number = 1 AND "
                    "recording = 'always'")
        said = self.run_with_keys(
            PROGRAM, "fetch", "--catalog", self.db.url, "tmp/x.pftrace", "-o",
            self.path("joined"), status=2)
        self.assertIn("--config=x, which is no place in a store", said)
        self.assertNotIn("/tmp/x.pftrace", said)
        self.db.sql("ALTER TABLE segments ALTER COLUMN bytes TYPE text, "
                    "ALTER COLUMN sha256 TYPE text, ALTER COLUMN verdict "
                    "DROP NOT NULL; UPDATE segments SET bytes = 'many', "
                    "sha256 = 'x', verdict = NULL")
        self.assertIn("pftrace", self.find("--json"))
        self.db.sql("DROP TABLE machines CASCADE")
        self.assertIn("is damaged", self.find("--json", status=2))


if __name__ == "__main__":
    sys.exit(tap.main())
