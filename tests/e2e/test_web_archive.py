#!/usr/bin/env python3
"""/archive of tributary-web: what it shows is the catalogue, what it hands over
are the archive's bytes, and nobody gets anything else of it."""

import http.server
import os
import re
import sqlite3
import subprocess
import sys
import threading
import unittest
import urllib.parse
import zlib

from harness import tap
from harness.bytecode import varint
from harness.devtools import Browser
from harness.loop import SCALE
from harness.trace import Trace
from harness.web import CHROMIUM, Web, read_all
from test_archive import ArchiveCase

# Plays Perfetto's UI (post_message_handler.ts): ready a while after it is
# there; it says what came by posting it to where it came from.
PLAYED_UI = b"""<!DOCTYPE html><title>UI</title><script>
let pings = 0;
addEventListener("message", async (e) => {
  if (e.source !== opener)
    return;
  if (e.data === "PING") {
    if (++pings > 3) {
      e.source.postMessage("PONG", e.origin);
      e.source.postMessage("PONG", e.origin);
    }
    return;
  }
  const { buffer, title, fileName } = e.data.perfetto;
  await fetch("/got?" + new URLSearchParams({ title, fileName }),
      { method: "POST", body: buffer });
});
</script>"""


class PlayedUi:
    def __init__(self, case):
        got = self.got = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(PLAYED_UI)))
                self.end_headers()
                self.wfile.write(PLAYED_UI)

            def do_POST(self):
                data = self.rfile.read(int(self.headers["Content-Length"]))
                got.append((urllib.parse.parse_qs(
                    self.path.partition("?")[2]), data))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        case.addCleanup(server.server_close)
        case.addCleanup(server.shutdown)
        self.origin = f"http://127.0.0.1:{server.server_port}"


class ArchivePage(ArchiveCase):
    """Three segments of one recording."""

    def setUp(self):
        super().setUp()
        self.start()
        producer = self.producer("p")
        consumer = self.record()
        writer = producer.writer()
        for cut in range(2):
            writer.number(50)
            self.cut(producer, cut + 1)
        writer.number(7)
        self.assertFalse(consumer.stop().error)
        self.archive("reindex")
        self.names = [row[0] for row in self.sql(
            "SELECT path FROM segments ORDER BY number")]

    def serve(self, *flags):
        web = Web(self.folder, self.daemons[0].consumer_path,
                  flags=["--archive", self.traces, *flags])
        web.start()
        self.relays.append(web)
        return web

    def bytes_of(self, web, path, *headers):
        """(status, head, body as bytes)"""
        lines = [f"GET {path} HTTP/1.1", f"Host: {web.host}",
                 "Connection: close", *headers]
        answer = web.raw("".join(f"{line}\r\n" for line in
                                 [*lines, ""]).encode())
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), head.decode().lower(), body

    def whole(self, name):
        with open(os.path.join(self.traces, name), "rb") as file:
            return file.read()

    def segment(self, name):
        return "/archive/segment?path=" + urllib.parse.quote(name, safe="")

    def fetched(self, *words):
        path = self.path("fetched")
        subprocess.run([os.environ["TRIBUTARY"], "fetch", "--archive",
                        self.traces, *words, "-o", path], check=True,
                       capture_output=True)
        with open(path, "rb") as file:
            return file.read()


class Reading(ArchivePage):
    def test_what_is_there_is_on_it(self):
        web = self.serve()
        status, headers, page = web.get("/archive")
        self.assertEqual(status, 200)
        for name in self.names:
            self.assertIn(name, page)
        self.assertIn("3 segments, page 1 of 1", page)
        self.assertIn("cut", page)
        self.assertIn(">host</a>", page)
        self.assertIn('role="img" aria-label="3 segments', page)
        self.assertRegex(page, "Times are the clock of this server")
        self.assertEqual(re.findall(r"<script>|https?://(?!ui\.)|style=",
                                    page), [])
        self.assertIn("script-src 'self'", headers["content-security-policy"])
        self.assertNotIn("cross-origin-opener-policy", headers)
        status, headers, page = web.get("/?refresh=0")
        self.assertNotIn("script-src", headers["content-security-policy"])
        self.assertIn('<a href="/archive">', page)

    def test_a_search_is_that_of_find(self):
        web = self.serve()
        for query in ("machine=host", "machine=h*", "machine=tram",
                      "recording=r", "recording=x", "trigger=cut", "lost=1",
                      "from=-1h", "from=-1h&to=now", "to=@1",
                      "at=now&around=1h", "process=none"):
            words = [word for name, _, value in
                     (part.partition("=") for part in query.split("&"))
                     for word in (["--lost"] if name == "lost" else
                                  [f"--{name}", value])]
            found = subprocess.run(
                [os.environ["TRIBUTARY"], "find", "--archive", self.traces,
                 "--json", *words], capture_output=True, text=True)
            page = web.get("/archive?" + query)[2]
            self.assertEqual([name in page for name in self.names],
                             [name in found.stdout for name in self.names],
                             query)
        status, _, page = web.get("/archive?at=noonish")
        self.assertEqual(status, 400)
        self.assertIn("is no time", page)
        self.assertEqual(web.get("/archive?machine=" + "*a" * 60)[0], 200)
        page = web.get("/archive?machine=%22%3E%3Cscript%3Ealert(1)")[2]
        self.assertNotIn("<script>alert", page)

    def test_without_an_archive_the_flag_is_named(self):
        web = Web(self.folder, self.daemons[0].consumer_path)
        web.start()
        self.relays.append(web)
        for path in ("/archive", "/archive/trace", "/archive/segment?path=x",
                     "/archive.js"):
            status, _, body = web.get(path)
            self.assertEqual(status, 404)
            self.assertIn("--archive DIR", body)
        self.assertNotIn("/archive", web.get("/?refresh=0")[2])

    def test_segments_and_joins_are_those_of_fetch(self):
        web = self.serve()
        for name in self.names:
            status, head, body = self.bytes_of(web, self.segment(name))
            self.assertEqual((status, body), (200, self.whole(name)))
            self.assertIn('content-disposition: attachment; filename="'
                          + os.path.basename(name).lower(), head)
        status, head, body = self.bytes_of(web, "/archive/trace?recording=r")
        self.assertEqual((status, body), (200, self.fetched("--recording",
                                                            "r")))
        path = self.path("joined.pftrace")
        with open(path, "wb") as file:
            file.write(body)
        numbers, = Trace.from_file(path).numbers().values()
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + 107)))
        # A time trims, as --trim does.
        first = self.sql("SELECT first_ns FROM segments WHERE number = 2")
        moment = f"@{first[0][0] / 1e9:.3f}"
        status, _, body = self.bytes_of(
            web, f"/archive/trace?machine=host&at={moment}&around=50ms")
        self.assertEqual((status, body), (200, self.fetched(
            "--machine", "host", "--at", moment, "--around", "50ms",
            "--trim")))
        # Nothing is left behind.
        held = os.listdir(f"/proc/{web.pid}/fd")
        self.assertEqual([one for one in held if "tributary-web." in
                          os.readlink(f"/proc/{web.pid}/fd/{one}")], [])

    def test_what_is_in_the_store_alone_says_how_to_get_it(self):
        catalog = sqlite3.connect(os.path.join(self.traces, "catalog.db"))
        with catalog:
            catalog.execute("UPDATE segments SET local = 0, stored_state = "
                            "'stored', stored_url = 's3://t/x' WHERE "
                            "number = 2")
        catalog.close()
        web = self.serve()
        page = web.get("/archive?recording=r")[2]
        self.assertIn("in the store alone: <code>tributary fetch", page)
        self.assertIn("1 of these segments is in the store alone", page)
        status, _, body = web.get(self.segment(self.names[1]))
        self.assertEqual(status, 404)
        self.assertIn("tributary fetch", body)
        self.assertEqual(web.get("/archive/trace?recording=r")[0], 404)

    def test_a_catalogue_may_go_and_come(self):
        web = self.serve()
        self.assertEqual(web.get("/archive")[0], 200)
        # None of the page's handles is in the way.
        self.archive("reindex", "--full")
        self.assertEqual(web.get("/archive")[0], 200)
        self.forget()
        status, _, page = web.get("/archive")
        self.assertEqual(status, 503)
        self.assertIn("tributary archive reindex", page)


class Hostile(ArchivePage):
    def test_nothing_else_is_read(self):
        outside = self.path("mine.pftrace")
        with open(outside, "wb") as file:
            file.write(b"mine")
        os.symlink(outside, os.path.join(self.traces, "link.pftrace"))
        os.mkfifo(os.path.join(self.traces, "fifo.pftrace"))
        os.symlink(self.folder, os.path.join(self.traces, "folder"))
        forged = ["link.pftrace", "fifo.pftrace", "folder/mine.pftrace"]
        catalog = sqlite3.connect(os.path.join(self.traces, "catalog.db"))
        with catalog:
            catalog.executemany("UPDATE segments SET path = ? WHERE number = ?",
                                zip(forged, (1, 2, 3)))
        catalog.close()
        web = self.serve()
        before = len(os.listdir(f"/proc/{web.pid}/fd"))
        for path in (*forged, "../mine.pftrace", outside, "/etc/passwd",
                     "catalog.db", "", "x" * 900 + ".pftrace",
                     "..%2f..%2fetc%2fpasswd", ".hidden.pftrace",
                     "/proc/self/mem.pftrace"):
            status, _, body = web.get("/archive/segment?path=" +
                                      urllib.parse.quote(path, safe="%"))
            self.assertEqual(status, 404, path)
            self.assertNotIn("mine\n", body)
        self.assertEqual(web.get("/archive/segment")[0], 404)
        for query in ("recording=r", "machine=host", ""):
            self.assertEqual(web.get("/archive/trace?" + query)[0], 404)
        self.until(lambda: len(os.listdir(f"/proc/{web.pid}/fd")) <= before,
                   "descriptors are closed")

    def test_others_get_nothing(self):
        web = self.serve()
        for path in ("/archive", self.segment(self.names[0]),
                     "/archive/trace"):
            self.assertEqual(web.get(path, "Origin: https://evil.example")[0],
                             403)
            self.assertEqual(web.get(path, host="evil.example")[0], 403)
            # An image, a script: they come without Origin.
            for site in ("cross-site", "same-site"):
                self.assertEqual(web.get(path, f"Sec-Fetch-Site: {site}",
                                         "Sec-Fetch-Mode: no-cors")[0], 403)
            self.assertEqual(self.bytes_of(
                web, path, "Sec-Fetch-Site: same-origin")[0], 200)
            self.assertEqual(web.get(path, method="POST")[0], 405)
        # But a link to the page.
        navigates = ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")
        self.assertEqual(web.get("/archive", *navigates)[0], 200)
        self.assertEqual(web.get("/archive/trace", *navigates)[0], 403)
        token = self.path("token")
        with open(token, "w") as file:
            os.chmod(token, 0o600)
            file.write("0123456789abcdef\n")
        web = self.serve("--token-file", token)
        for path in ("/archive", self.segment(self.names[0]),
                     "/archive/trace"):
            self.assertEqual(web.get(path)[0], 401)
            self.assertEqual(self.bytes_of(
                web, path, "Authorization: Bearer 0123456789abcdef")[0], 200)

    def change(self, sql):
        catalog = sqlite3.connect(os.path.join(self.traces, "catalog.db"))
        catalog.executescript(sql)
        catalog.close()

    def test_tables_may_be_anyones(self):
        """A catalogue that somebody else made is no way into the program."""
        # No key, and many rows of one id; times that are none.
        self.change("""
            CREATE TABLE loose AS SELECT * FROM segments;
            DROP TABLE segments;
            ALTER TABLE loose RENAME TO segments;
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
              WHERE i < 400) INSERT INTO segments SELECT s.* FROM segments AS
              s, n WHERE s.number = 1;""")
        web = self.serve()
        status, _, body = web.get("/archive/trace?recording=r")
        self.assertEqual(status, 503)
        self.assertIn("reindex --full", body)
        status, _, page = web.get("/archive")
        self.assertEqual(status, 200)
        self.assertLessEqual(page.count("<tr"), 51)
        for first, last in ((-2**63, 2**63 - 1), (0, 0), (2**63 - 1, -2**63),
                            (2**63 - 1, 2**63 - 1)):
            self.change(f"""
                UPDATE segments SET first_ns = {first}, last_ns = {last}
                  WHERE number = 2;
                UPDATE machines SET first_ns = {last}, last_ns = {first};""")
            self.assertEqual(web.get("/archive")[0], 200)
        # What a terminal would obey is in no command that one may copy.
        self.change("UPDATE segments SET local = 0, path = 'a' || char(27) || "
                    "'b''c<.pftrace' WHERE number = 3")
        page = web.get("/archive")[2]
        self.assertNotIn("\x1b", page)
        self.assertRegex(page, r"<code>tributary fetch [^<]* &#39;a[^<]*b&#39;"
                         r"\\&#39;&#39;c&lt;\.pftrace&#39; -o")
        self.change("UPDATE segments SET problem = hex(zeroblob(1000000))")
        self.assertEqual(web.get("/archive")[0], 503)

    def test_a_search_without_an_end_is_ended(self):
        columns = [row[1] for row in self.sql("PRAGMA table_info(segments)")]
        self.change(f"""
            DROP TABLE segments;
            CREATE VIEW segments AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL
              SELECT i + 1 FROM n) SELECT
              {", ".join(f"i AS {name}" for name in columns)} FROM n;""")
        web = self.serve()
        status, _, page = web.get("/archive")
        self.assertEqual(status, 503)
        self.assertIn("takes too long", page)
        # One that nobody waits for takes nobody's place.
        for _ in range(20):
            with web.connect() as sock:
                sock.sendall(f"GET /archive HTTP/1.1\r\nHost: {web.host}"
                             "\r\n\r\n".encode())
        self.assertEqual(web.get("/archive/segment")[0], 404)

    def bomb(self, name):
        """A small file whose packets take minutes to join."""
        packets = zlib.compress(b"\x0a\x02\x40\x01" * (8 << 20), 9)
        field = lambda tag, data: tag + varint(len(data)) + data
        with open(os.path.join(self.traces, name), "wb") as file:
            file.write(field(b"\x0a", field(b"\x92\x03", packets)) * 500)

    def joins(self, web):
        """Whether a join is being written."""
        folder = f"/proc/{web.pid}/fd"
        return any("tributary-web." in os.readlink(f"{folder}/{one}")
                   for one in os.listdir(folder))

    def test_joins_that_nobody_waits_for_are_ended(self):
        web = self.serve()
        self.bomb(self.names[2])
        request = ("GET /archive/trace?recording=r HTTP/1.1\r\nHost: "
                   f"{web.host}\r\n\r\n").encode()
        socks = [web.connect() for _ in range(4)]
        for sock in socks:
            sock.sendall(request)
        self.until(lambda: self.joins(web), "one of them is made")
        for sock in socks:
            sock.close()
        first = self.sql("SELECT last_ns FROM segments WHERE number = 1")
        good = f"/archive/trace?to=@{first[0][0] // 1000000 / 1000:.3f}"
        self.until(lambda: self.bytes_of(web, good)[0] == 200,
                   "others are served")
        # Neither does the end of the program wait for one.
        with web.connect() as sock:
            sock.sendall(request)
            self.until(lambda: self.joins(web), "it is made")
            web.stop()
        # Trace Processor would take as long.
        os.unlink(os.path.join(self.traces, self.names[2]))

    def test_a_thousand_joins_are_no_harm(self):
        web = self.serve()
        expected = self.fetched("--recording", "r")
        request = ("GET /archive/trace?recording=r HTTP/1.1\r\nHost: "
                   f"{web.host}\r\nConnection: close\r\n\r\n").encode()
        answers = []
        for _ in range(10):
            socks = [web.connect() for _ in range(100)]
            for sock in socks:
                sock.sendall(request)
            # Others are served meanwhile.
            self.assertEqual(web.get("/archive")[0], 200)
            for sock in socks:
                with sock:
                    answers.append(read_all(sock))
        statuses = [int(answer.split()[1]) for answer in answers if answer]
        self.assertEqual(len(statuses), 1000)
        self.assertEqual(set(statuses) - {200, 503}, set())
        self.assertIn(200, statuses)
        self.assertIn(503, statuses)
        for answer in answers:
            head, _, body = answer.partition(b"\r\n\r\n")
            if head.split()[1] == b"200":
                self.assertEqual(body, expected)
            else:
                self.assertIn(b"try again", body)
        # Ones that left before their answer leave nothing.
        for _ in range(20):
            with web.connect() as sock:
                sock.sendall(request)
        self.until(lambda: self.bytes_of(web, "/archive/trace?recording=r")
                   [0] == 200, "there is room again")


@unittest.skipIf(CHROMIUM is None, "chromium is not installed "
                 "(deploy/install-deps chromium)")
class InABrowser(ArchivePage):
    def setUp(self):
        super().setUp()
        self.ui = PlayedUi(self)
        self.web = self.serve("--ui", self.ui.origin)
        self.browser = Browser(self.folder)
        self.addCleanup(self.browser.quit)
        self.page = self.browser.page()

    def focused(self):
        return self.page.run("(document.activeElement.name || "
                             "document.activeElement.textContent)")

    def tab_to(self, name):
        """By the keyboard alone."""
        for _ in range(60):
            self.page.key("Tab")
            if self.focused() == name:
                return
        self.fail(f"the tabulator does not reach {name}")

    def assert_got(self, body, title):
        self.until(lambda: self.ui.got, "the UI has the trace", timeout=60)
        (fields, data), = self.ui.got
        self.assertEqual(data, body)
        self.assertIn(title, fields["title"][0])
        self.assertRegex(fields["fileName"][0], r"^[\w.-]+\.pftrace$")
        self.page.wait("document.getElementById('said').textContent.includes("
                       "\"The trace is in Perfetto's UI\")", "it is said")

    def test_one_click_opens_a_segment(self):
        self.page.go(self.web.url + "/archive")
        at = self.page.run(
            "(() => { const b = [...document.querySelectorAll('button"
            "[data-href]')].find((e) => decodeURIComponent(e.dataset.href)"
            f".endsWith('path={self.names[1]}')); b.scrollIntoView(); const "
            "r = b.getBoundingClientRect(); return [r.x + r.width / 2, "
            "r.y + r.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.page.call("Input.dispatchMouseEvent", type=kind, x=at[0],
                           y=at[1], button="left", clickCount=1)
        self.assert_got(self.whole(self.names[1]), "r ")
        path = self.path("got.pftrace")
        with open(path, "wb") as file:
            file.write(self.ui.got[0][1])
        self.assertTrue(Trace.from_file(path).numbers())

    def test_a_keyboard_is_enough(self):
        self.page.go(self.web.url + "/archive")
        self.tab_to("machine")
        self.page.write("h*")
        self.page.key("Enter", "\r")
        self.page.wait("location.search.includes('machine=h') && "
                       "document.readyState == 'complete'", "it is searched")
        self.tab_to("Open in Perfetto")
        self.page.key("Enter", "\r")
        self.assert_got(self.fetched("--machine", "h*"), "h*")

    def test_what_goes_wrong_is_said(self):
        self.page.go(self.web.url + "/archive")
        os.unlink(os.path.join(self.traces, self.names[2]))
        self.tab_to("Open in Perfetto")
        self.page.key("Enter", "\r")
        self.page.wait("document.getElementById('said').textContent.includes("
                       "'It was not opened')", "it is said")
        self.assertIn("cannot be opened", self.page.run(
            "document.getElementById('said').textContent"))
        self.assertEqual(self.ui.got, [])
        self.until(lambda: len(self.browser.tabs()) == 1,
                   "its window is closed")


if __name__ == "__main__":
    sys.exit(tap.main())
