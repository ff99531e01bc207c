#!/usr/bin/env python3
"""tributary open: a trace gets into Perfetto's UI as a whole, once, and to
nobody else."""

import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import unittest

from harness import tap
from harness.case import Case
from harness.daemon import environment
from harness.loop import SCALE
from harness.trace import Trace
from harness.web import CHROMIUM, parse, read_all

RECORDED = os.path.join(os.environ["SOURCE_ROOT"], "tests", "conformance",
                        "recordings")
# Plays Perfetto's UI (TraceHttpStream): it says what came by posting it back.
PLAYED_UI = b"""<!DOCTYPE html><title>UI</title><script>
(async () => {
  const url = new URLSearchParams(location.hash.split("?")[1]).get("url");
  const answer = await fetch(url);
  const parts = [];
  const reader = answer.body.getReader();
  for (;;) {
    const part = await reader.read();
    if (part.done)
      break;
    parts.push(part.value);
  }
  await fetch("/got?" + answer.headers.get("content-length"),
      { method: "POST", body: new Blob(parts) });
})();
</script>"""
# Becomes a browser at the address, and says its number.
BROWSER = """#!/bin/sh
echo $$ >%s
exec %s --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \\
    --disable-background-networking --disable-component-update \\
    --disable-sync --disable-dev-shm-usage --user-data-dir=%s \\
    --remote-debugging-port=0 "$1" 2>/dev/null
"""


class PlayedUi:
    """A page at an origin of its own."""

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
                got.append((self.path, data))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        case.addCleanup(server.server_close)
        case.addCleanup(server.shutdown)
        self.origin = f"http://127.0.0.1:{server.server_port}"


class Open(Case):
    UI = "https://ui.perfetto.dev"
    process = None

    def tearDown(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process is not None:
            self.process.stdout.close()
        super().tearDown()

    def environment(self, **more):
        folder = os.path.dirname(os.environ["TRIBUTARY_WEB"])
        return {**environment(), "PATH": f"{folder}:{os.environ['PATH']}",
                **more}

    def open(self, *words, browser=None):
        """Starts it; self.address is that of the file."""
        env = self.environment(**({"BROWSER": browser} if browser else {}))
        with open(self.path("log"), "wb") as log:
            self.process = subprocess.Popen(
                [os.environ["TRIBUTARY"], "open", *words, "--listen",
                 "127.0.0.1:0"], env=env, text=True, stderr=log,
                stdout=subprocess.PIPE)
        self.line = self.process.stdout.readline().strip()
        before, self.address = self.line.split("/#!/?url=")
        self.host = self.address.split("/")[2]
        return before

    def trace(self, size, name="trace.pftrace"):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(os.urandom(size))
        return path

    def ask(self, method="GET", path=None, origin=UI, host=None):
        """A connection on which a request was sent."""
        address, port = self.host.split(":")
        sock = socket.create_connection((address, int(port)),
                                        timeout=60 * SCALE)
        path = path or "/" + self.address.split("/", 3)[3]
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host or self.host}"]
        if origin is not None:
            lines.append(f"Origin: {origin}")
        sock.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
        return sock

    def answer(self, *words, **options):
        with self.ask(*words, **options) as sock:
            return parse(read_all(sock))

    def fetch(self):
        """The body, of a peer that closes as it is told to."""
        with self.ask() as sock:
            data = b""
            while b"\r\n\r\n" not in data:
                data += sock.recv(65536)
            head, _, body = data.partition(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split()[0])
            while len(body) < length:
                part = sock.recv(65536)
                self.assertTrue(part, "it ends before its length")
                body += part
        return body

    def assert_ended(self):
        self.assertEqual(self.process.wait(60 * SCALE), 0, self.log())

    def log(self):
        with open(self.path("log")) as file:
            return file.read()

    def test_one_whole_fetch_ends_it(self):
        path = self.trace(20_000_000)
        self.assertEqual(self.open(path, "--no-browser"), self.UI)
        with open(path, "rb") as file:
            whole = file.read()
        # Ones that are broken off: at once, and in the middle.
        self.ask().close()
        with self.ask() as sock:
            self.assertTrue(sock.recv(100_000))
        with self.ask() as sock:
            sock.recv(len(whole) // 2, socket.MSG_WAITALL)
        self.assertEqual(self.fetch(), whole)
        self.assert_ended()

    def test_what_is_no_fetch_of_the_ui_costs_nothing(self):
        self.open(self.trace(1000), "--no-browser")
        for path in ("/", "/other", "/../etc/passwd", "/trace.pftrace/",
                     "/trace.pftrace2"):
            self.assertEqual(self.answer(path=path)[0], 404, path)
        for origin in (None, "null", "https://evil.example", self.UI + ".net",
                       "http://ui.perfetto.dev"):
            status, headers, _ = self.answer(origin=origin)
            self.assertEqual(status, 403, origin)
            self.assertEqual(headers["access-control-allow-origin"], self.UI)
        self.assertEqual(self.answer(host="evil.example:9001")[0], 403)
        self.assertEqual(self.answer("POST")[0], 405)
        status, headers, body = self.answer("HEAD")
        self.assertEqual((status, headers["content-length"], body),
                         (200, "1000", ""))
        status, headers, body = self.answer("OPTIONS")
        self.assertEqual((status, body), (200, ""))
        self.assertEqual(headers["access-control-allow-private-network"],
                         "true")
        self.assertEqual(headers["access-control-allow-origin"], self.UI)
        self.assertIsNone(self.process.poll())
        self.assertEqual(len(self.fetch()), 1000)
        self.assert_ended()

    def test_it_is_confined(self):
        self.open(self.trace(1000), "--no-browser")
        # The thread that serves is there once it is confined.
        self.until(lambda: self.answer("HEAD")[0] == 200, "it serves")
        with open(f"/proc/{self.process.pid}/status") as file:
            status = file.read()
        self.assertIn("NoNewPrivs:\t1", status)
        if "sanitizer" not in self.log():
            self.assertIn("Seccomp:\t2", status)
        self.process.send_signal(signal.SIGINT)
        self.assert_ended()

    def test_names_need_no_escapes(self):
        self.open(self.trace(10, "a b&c#d?é%41.pftrace"), "--no-browser")
        self.assertRegex(self.address, r"/a_b_c_d___*_41\.pftrace$")
        self.assertEqual(len(self.fetch()), 10)
        self.assert_ended()

    @unittest.skipIf(CHROMIUM is None, "chromium is not installed "
                     "(deploy/install-deps chromium)")
    def test_a_page_in_a_browser_gets_it(self):
        ui = PlayedUi(self)
        path = next(os.path.join(folder, name)
                    for folder, _, names in sorted(os.walk(RECORDED))
                    for name in sorted(names) if name.endswith(".pftrace"))
        script, number = self.path("browser"), self.path("number")
        with open(script, "w") as file:
            file.write(BROWSER % (number, CHROMIUM, self.path("profile")))
        os.chmod(script, 0o700)
        try:
            self.assertEqual(self.open(path, "--ui", ui.origin,
                                       browser=script), ui.origin)
            self.assert_ended()
            self.until(lambda: ui.got, "the page says what it got")
        finally:
            self.until(lambda: os.path.exists(number) and
                       os.path.getsize(number), "a browser was started")
            with open(number) as file:
                os.kill(int(file.read()), signal.SIGTERM)
        with open(path, "rb") as file:
            whole = file.read()
        self.assertEqual(ui.got, [(f"/got?{len(whole)}", whole)])
        self.assertTrue(Trace.from_file(path).packets)

    def test_without_a_browser_it_says_where(self):
        env = self.environment()
        env.pop("DISPLAY", None)
        self.open(self.trace(10), browser=self.path("none"))
        self.until(lambda: "Open this address in a browser" in self.log(),
                   "it is told")
        self.fetch()
        self.assert_ended()

    def refused(self, *words):
        done = subprocess.run(
            [os.environ["TRIBUTARY"], "open", *words], env=self.environment(),
            capture_output=True, text=True, timeout=60 * SCALE)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return done.stderr

    def test_what_cannot_be_shown_is_told(self):
        path = self.trace(10)
        os.mkfifo(self.path("pipe"))
        self.assertIn("which file?", self.refused())
        for words, sentence in (
                ([self.path("none")], "No such file"),
                ([self.folder], "no regular file"),
                ([self.path("pipe")], "no regular file"),
                (["/dev/null"], "no regular file"),
                ([self.trace(0, "empty")], "is empty"),
                ([path, path], "takes one file"),
                ([path, "--ui", "ui.example.net"], "--ui takes"),
                ([path, "--ui", "https://a.net/x"], "--ui takes"),
                ([path, "--ui", "javascript://x"], "--ui takes"),
                ([path, "--ui", "https://a\"b"], "--ui takes"),
                ([path, "--traced"], "--open shows one file"),
                ([path, "--listen", "0.0.0.0:0"], "ssh -L")):
            self.assertIn(sentence, self.refused(*words), words)

    def test_a_port_that_is_taken_is_told(self):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                taken.bind(("127.0.0.1", 9001))
                taken.listen()
            except OSError:
                pass  # another program has it: as good
            self.assertIn("127.0.0.1:9001", self.refused(self.trace(10)))


if __name__ == "__main__":
    sys.exit(tap.main())
