#!/usr/bin/env python3
"""tributary-web: what it shows is what the collector says, and what strangers
send it does no harm."""

import base64
import http.server
import json
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import threading
import unittest

from harness import tap
from harness.case import Case, TEST_SOURCE
from harness.consumer import Consumer, config, join_slices
from harness.daemon import environment
from harness.loop import SCALE
from harness.pki import Pki
from harness.prometheus import (PROMETHEUS, PROMTOOL, WITHOUT, Prometheus, check_metrics,
                                numbers)
from harness.trace import Trace
from harness.web import (CHROMIUM, SERVES, Web, WebSocket, browse, first_pixel, parse,
                         read_all)

DEPLOY = os.path.join(os.environ["SOURCE_ROOT"], "deploy")
OPENMETRICS = "Accept: application/openmetrics-text; version=1.0.0"
TOKEN = "0123456789abcdef0123456789abcdef"
# Binds the consumer port, and reports the names of its methods; the page is loaded
# once they have come, as a picture is a part of it.
BROWSER_PAGE = """<!DOCTYPE html><title>page</title><img src="/reported"><script>
const ws = new WebSocket("ws://127.0.0.1:%d/traced");
ws.binaryType = "arraybuffer";
ws.onopen = () => {
  const name = new TextEncoder().encode("ConsumerPort");
  const inner = [10, name.length, ...name];
  const frame = [16, 1, 26, inner.length, ...inner];
  ws.send(new Uint8Array([frame.length, 0, 0, 0, ...frame]));
};
ws.onmessage = (e) => fetch("/report", {method: "POST", body: e.data});
</script>
"""


class PageServer(http.server.ThreadingHTTPServer):
    """Serves `page`, keeps what it reports, and holds its picture until then."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), PageHandler)
        self.page = ""
        self.reported = b""
        self.has_reported = threading.Event()


class PageHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/reported":
            self.server.has_reported.wait(60 * SCALE)
        self._answer(self.server.page.encode() if self.path == "/" else b"")

    def do_POST(self):
        self.server.reported += self.rfile.read(
            int(self.headers["Content-Length"]))
        self.server.has_reported.set()
        self._answer(b"")

    def _answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", len(body))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


# A handshake that failed: an alert, a reset, or an answer without a status.
REFUSED = (ssl.SSLError, ConnectionError, IndexError)


class WebCase(Case):
    flags = ()

    def setUp(self):
        super().setUp()
        self.daemon(flags=["--enable-relay-endpoint"])
        self.web = self.serve(*self.flags)

    def serve(self, *flags, to=None):
        web = Web(self.folder, to or self.daemons[0].consumer_path,
                  flags=flags)
        web.start()
        # It is ended before the daemon.
        self.relays.append(web)
        return web


class Numbers(WebCase):
    def test_what_happens_is_counted(self):
        self.producer("near")
        before = self.web.metrics()
        self.assertEqual(before["tributary_collector_up"], 1)
        self.assertEqual(before["tributary_producers"], 1)
        self.assertEqual(before['tributary_sessions{state="started"}'], 0)
        self.session()
        self.until(lambda: self.web.metrics()[
            'tributary_sessions{state="started"}'] == 1, "a session runs")
        after = self.web.metrics()
        self.assertGreater(after["tributary_buffer_bytes"], 0)
        self.assertEqual(after['tributary_connections{port="producer"}'], 1)
        # The session's consumer, and tributary-web.
        self.assertEqual(after['tributary_connections{port="consumer"}'], 2)

    def test_data_and_files_are_counted(self):
        producer = self.producer("near")
        out = self.path("trace")
        with open(out, "wb") as file:
            self.session(fds=[file.fileno()], write_into_file=True,
                         file_write_period_ms=100)
            producer.wait_started()
            producer.writer().number(200)
            self.until(lambda: self.web.metrics()[
                "tributary_file_written_bytes_total"] > 0, "it is written")
        now = self.web.metrics()
        self.assertGreater(now["tributary_received_bytes_total"], 200)
        self.assertGreater(now["tributary_chunks_written_total"], 0)

    def test_a_link_that_is_cut_and_resumed_is_counted(self):
        relay = self.relay(self.daemons[0], machine="bus-1")
        self.producer("far", address=relay.producer_path)
        links = 'tributary_links{state="%s"}'
        self.until(lambda: self.web.metrics()[links % "connected"] == 1,
                   "it is linked")
        self.assertEqual(
            self.web.metrics()['tributary_link_resumes_total{result="new"}'],
            1)
        self.assertEqual(
            self.web.metrics()['tributary_machines{state="connected"}'], 2)
        relay.kill()
        self.until(lambda: self.web.metrics()[links % "cut"] == 1,
                   "it is cut off")
        status, _, page = self.web.get("/")
        self.assertEqual(status, 200)
        self.assertIn("1 machine is cut off.", page)
        self.assertIn("Not healthy", page)

    def test_a_collector_that_went_is_told_and_comes_back(self):
        self.assertEqual(self.web.get("/readyz")[0], 200)
        self.daemons[0].stop()
        self.until(lambda: self.web.get("/readyz")[0] == 503, "it is told")
        self.assertEqual(self.web.get("/healthz")[0], 200)
        now = self.web.metrics()
        self.assertEqual(now["tributary_collector_up"], 0)
        self.assertNotIn("tributary_producers", now)
        self.assertGreater(now["process_resident_memory_bytes"], 0)
        status, _, page = self.web.get("/")
        self.assertEqual(status, 200)
        self.assertIn("The collector cannot be asked", page)
        self.daemons[0].start()
        self.until(lambda: self.web.get("/readyz")[0] == 200, "it is back")
        self.assertEqual(self.web.metrics()["tributary_collector_up"], 1)

    def test_a_collector_that_starts_anew_is_no_failure(self):
        start = "tributary_process_start_time_seconds"
        before = self.web.metrics()[start]
        self.daemons[0].stop()
        self.daemons[0].start()

        def is_new():
            now = self.web.metrics()
            self.assertEqual(now["tributary_collector_up"], 1)
            return now[start] != before
        # For a second answers are old ones.
        self.until(is_new, "the new collector answers")

    def test_it_is_confined(self):
        with open(f"/proc/{self.web.pid}/status", encoding="ascii") as file:
            status = file.read()
        self.assertIn("NoNewPrivs:\t1", status)
        if "sanitizer" not in self.web.log():
            self.assertIn("Seccomp:\t2", status)

    @unittest.skipIf(PROMTOOL is None, f"promtool {WITHOUT}")
    def test_promtool_has_nothing_to_say(self):
        self.producer("near")
        self.session()
        check_metrics(self, self.web.get("/metrics")[2])

    def names(self, text):
        """Of the metrics in expressions of PromQL."""
        return {re.sub("_bucket$", "", name) for name in
                re.findall(r"\b((?:tributary|process)_\w+)", text)}

    def test_examples_ask_for_what_is_there(self):
        with open(os.path.join(DEPLOY, "tributary-dashboard.json")) as file:
            panels = json.load(file)["panels"]
        with open(os.path.join(DEPLOY, "tributary-alerts.yml")) as file:
            # Summaries and comments are for people.
            alerts = re.sub(r"#.*|summary:.*", "", file.read())
        asked = self.names(alerts) | {
            name for panel in panels for target in panel["targets"]
            for name in self.names(target["expr"])}
        self.assertGreater(len(asked), 20)
        # With TLS, for the certificate; and a folder, for the room in it.
        self.daemon(
            producer=["tls://127.0.0.1:0"], consumer=[self.path("far")],
            flags=["--tls-dir", Pki(self.path("pki")).collector(),
                   "--trace-dir", self.folder])
        there = {re.sub(r"(_bucket)?(\{.*)?$", "", series) for series in
                 self.serve(to=self.path("far")).metrics()}
        self.assertEqual(asked - there, set())

    @unittest.skipIf(PROMTOOL is None, f"promtool {WITHOUT}")
    def test_promtool_takes_the_alerts(self):
        done = subprocess.run(
            [PROMTOOL, "check", "rules",
             os.path.join(DEPLOY, "tributary-alerts.yml")],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_openmetrics_is_for_who_asks(self):
        _, headers, body = self.web.get("/metrics", OPENMETRICS)
        self.assertIn("application/openmetrics-text",
                      headers["content-type"])
        self.assertTrue(body.endswith("\n# EOF\n"))
        _, headers, body = self.web.get("/metrics")
        self.assertIn("version=0.0.4", headers["content-type"])
        self.assertNotIn("# EOF", body)

    @unittest.skipIf(PROMETHEUS is None, f"prometheus {WITHOUT}")
    def test_a_real_prometheus_scrapes_it(self):
        self.producer("near")
        prometheus = Prometheus(self, [
            {"job_name": "tributary",
             "static_configs": [{"targets": [self.web.host]}]}])
        ask = prometheus.ask
        self.until(lambda: ask("up") == "1", "it was scraped", timeout=90)
        self.until(lambda: ask("tributary_producers") == "1",
                   "the number is there")
        # A histogram as Prometheus understands them.
        self.until(lambda: ask("histogram_quantile(0.9, "
                               "tributary_event_loop_lag_seconds_bucket)")
                   not in (None, "NaN", []), "a quantile", timeout=90)


class Machines(WebCase):
    """/metrics?machine=NAME, beside what its relay says itself."""

    def setUp(self):
        super().setUp()
        self.far = self.relay(self.daemons[0], machine="bus 1")

    def machine(self, name="bus%201", *headers):
        return self.web.get(f"/metrics?machine={name}", *headers)

    def numbers(self):
        status, headers, body = self.machine()
        self.assertEqual(status, 200, body)
        self.assertIn("version=0.0.4", headers["content-type"])
        return numbers(body)

    def wait_for(self, what, condition, timeout=60):
        """Until its numbers are so; they are there."""
        found = {}

        def so():
            status, _, body = self.machine()
            found.update(numbers(body) if status == 200 else {})
            return status == 200 and condition(found)
        self.until(so, what, timeout=timeout)
        return found

    def test_numbers_are_those_that_the_relay_says(self):
        self.producer("far", address=self.far.producer_path)
        start = "tributary_relay_process_start_time_seconds"
        now = self.wait_for("the relay has told", lambda n:
                            n.get("tributary_machine_producers") == 1 and
                            start in n and
                            "tributary_relay_clock_error_seconds" in n)
        own = self.far.metrics()
        self.assertEqual(now[start], own[start])
        self.assertEqual(now['tributary_machine_state{state="connected"}'], 1)
        for same in ('tributary_relay_backlog_limit_bytes{where="memory"}',
                     "tributary_relay_reconnects_total"):
            self.assertEqual(now[same], own[same])
        offset = "tributary_relay_clock_offset_seconds"
        self.assertAlmostEqual(now[offset], own[offset], delta=1)
        self.assertEqual(
            now['tributary_machine_lost_packets_total{cause="spool_full"}'], 0)
        # Each family of relays has one name, whoever tells of it.
        of_relays = {name for name in now if "tributary_relay_" in name}
        self.assertGreater(len(of_relays), 25)
        self.assertEqual(of_relays - set(own), set())

    def test_a_cut_shows_here_and_in_the_totals(self):
        producer = self.producer("far", address=self.far.producer_path)
        self.session(trace_all_machines=True)
        producer.wait_started()
        limit = 'tributary_relays_backlog_limit_bytes{where="memory"}'
        self.until(lambda: self.web.metrics()[limit] > 0, "its room counts")
        self.until(lambda: self.web.metrics()[
            "tributary_relays_clock_error_seconds"] > 0, "its clock counts")
        self.far.kill()
        self.wait_for("it is cut off", lambda n: n[
            'tributary_machine_state{state="cut"}'] == 1)

    def test_who_is_not_known_is_not_found(self):
        for name in ("bus", "bus%20*", "", "x" * 600, "%22%5c"):
            status, headers, body = self.machine(name)
            self.assertEqual(status, 404, name)
            self.assertIn("text/plain", headers["content-type"])
            self.assertIn("knows no machine of this name", body)
        self.assertEqual(self.machine("host")[0], 200)
        self.daemons[0].stop()
        self.until(lambda: self.machine()[0] == 503, "it is told")
        self.assertIn("cannot be asked", self.machine()[2])

    def test_openmetrics_is_for_who_asks(self):
        self.wait_for("it is there", lambda n: True)
        _, headers, body = self.machine("bus%201", OPENMETRICS)
        self.assertIn("application/openmetrics-text",
                      headers["content-type"])
        self.assertTrue(body.endswith("\n# EOF\n"))

    @unittest.skipIf(PROMTOOL is None, f"promtool {WITHOUT}")
    def test_promtool_has_nothing_to_say(self):
        self.wait_for("the relay has told", lambda n:
                      "tributary_relay_event_loop_lag_seconds_count" in n)
        check_metrics(self, self.machine()[2])
        check_metrics(self, self.machine("host")[2])

    @unittest.skipIf(PROMETHEUS is None, f"prometheus {WITHOUT}")
    def test_a_real_prometheus_scrapes_machines(self):
        ask = Prometheus(self, [
            {"job_name": "machines",
             "static_configs": [{"targets": ["bus 1", "nobody"]}],
             "relabel_configs": [
                 {"source_labels": ["__address__"],
                  "target_label": "__param_machine"},
                 {"source_labels": ["__param_machine"],
                  "target_label": "instance"},
                 {"target_label": "__address__",
                  "replacement": self.web.host}]}]).ask
        self.until(lambda: ask('up{instance="bus 1"}') == "1",
                   "it was scraped", timeout=90)
        self.until(lambda: ask('up{instance="nobody"}') == "0",
                   "one that is not known is down", timeout=90)
        self.until(lambda: ask(
            'tributary_machine_state{instance="bus 1",state="connected"}')
            == "1", "the number is there")


class Recording(WebCase):
    """/traced, as Perfetto's UI speaks there."""

    flags = ("--traced", "--origin", "http://127.0.0.1:1")

    def dial(self, **options):
        return Consumer(self.loop, WebSocket(self.web, **options))

    def assert_has(self, trace, count):
        numbers, = trace.numbers().values()
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + count)))

    def test_a_session_as_the_ui_has_it(self):
        producer = self.producer("near")
        consumer = self.dial()
        consumer.enable(config(TEST_SOURCE, size_kb=8192))
        producer.wait_started()
        # More than any buffer on the way holds.
        writer = producer.writer()
        for _ in range(10):
            writer.number(400, size=1000)
        self.assertTrue(consumer.stats().buffer_stats)
        # kPerfettoCmd, kTraceStop: flush_flags.h.
        consumer.flush(flags=(2 << 4) | 2)
        self.assertFalse(consumer.stop().error)
        self.assert_has(consumer.read(), 4000)
        consumer.close()
        self.until(lambda: self.web.metrics()[
            'tributary_connections{port="consumer"}'] == 1,
            "the collector is told that it has gone")

    def test_a_reader_that_rests_gets_everything_later(self):
        producer = self.producer("near")
        consumer = self.dial()
        consumer.enable(config(TEST_SOURCE, size_kb=16384))
        producer.wait_started()
        writer = producer.writer()
        for _ in range(10):
            writer.number(400, size=2000)
        self.assertFalse(consumer.stop().error)
        consumer.pause()
        call = consumer.call("ReadBuffers")
        # Others are served meanwhile, by both programs.
        other = self.dial()
        self.assertEqual(self.web.get("/readyz")[0], 200)
        self.assertFalse(call.ended())
        consumer.resume()
        consumer.finish(call)
        self.assert_has(Trace(join_slices(call.replies)), 4000)
        other.close()

    def test_tributary_ui_is_this_for_a_person(self):
        folder = os.path.dirname(os.environ["TRIBUTARY_WEB"])
        env = {**environment(), "PATH": f"{folder}:{os.environ['PATH']}"}
        ui = subprocess.Popen(
            [os.environ["TRIBUTARY"], "ui", "--connect",
             self.daemons[0].consumer_path, "--listen", "127.0.0.1:0"],
            env=env, stderr=subprocess.PIPE, text=True)
        lines = iter(ui.stderr.readline, "")
        try:
            self.assertIn("https://ui.perfetto.dev/#!/record", next(lines))
            self.web.port = next(int(found[2]) for found in
                                 map(SERVES.search, lines) if found)
            self.web.host = f"127.0.0.1:{self.web.port}"
            self.dial().close()
        finally:
            ui.send_signal(signal.SIGINT)
            self.assertEqual(ui.wait(60 * SCALE), 0)
            ui.stderr.close()
        env["PATH"] = self.folder
        done = subprocess.run([os.environ["TRIBUTARY"], "ui"], env=env,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no tributary-web in PATH", done.stderr)

    @unittest.skipIf(CHROMIUM is None, "chromium is not installed "
                     "(deploy/install-deps chromium)")
    def test_a_browser_is_let_in(self):
        server = PageServer()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        origin = f"http://127.0.0.1:{server.server_port}"
        self.web = self.serve("--traced", "--origin", origin)
        server.page = BROWSER_PAGE % self.web.port
        browse(self, origin + "/", "--dump-dom")
        self.assertIn(b"EnableTracing", server.reported)

    def test_who_may_not_is_told_why(self):
        for origin in (None, "null", "https://evil.example",
                       "https://ui.perfetto.dev.evil.example",
                       "http://ui.perfetto.dev", self.web.url):
            refused = WebSocket(self.web, origin=origin)
            self.assertEqual(refused.status, 403, origin)
            self.assertIn(b"--origin", refused.refusal)
        for path in ("/", "/traced/", "/adb", "/healthz"):
            self.assertEqual(WebSocket(self.web, path=path).status, 404, path)
        for origin in ("https://ui.perfetto.dev", "http://127.0.0.1:10000",
                       "http://127.0.0.1:1"):
            allowed = WebSocket(self.web, origin=origin)
            self.assertEqual(allowed.status, 101, origin)
            allowed.close()
        shut = self.serve()
        refused = WebSocket(shut)
        self.assertEqual(refused.status, 404)
        self.assertIn(b"--traced", refused.refusal)

    def test_there_is_a_most_and_room_again(self):
        some = [WebSocket(self.web) for _ in range(64)]
        one = WebSocket(self.web)
        # Closed at once, or not opened at all.
        self.assertEqual(read_all(one._sock), b"")
        for each in some:
            each.close()
        def there_is_room():
            try:
                self.dial().close()
                return True
            except AssertionError:
                return False
        self.until(there_is_room, "there is room again")

    def test_a_collector_that_goes_ends_it(self):
        consumer = self.dial()
        self.daemons[0].stop()
        consumer.wait_closed()
        self.assertEqual(consumer.sock.why[0], 1001)
        self.assertIn("cannot be reached", WebSocket(self.web).closing()[1])

    def test_a_last_word_reaches_one_that_rests(self):
        """The collector ends a connection behind much that it has said."""
        producer = self.producer("near")
        consumer = self.dial()
        consumer.enable(config(TEST_SOURCE, size_kb=4096))
        producer.wait_started()
        for _ in range(10):
            producer.writer().number(100, size=1000)
        self.assertFalse(consumer.stop().error)
        consumer.pause()
        call = consumer.call("ReadBuffers")
        # Behind it what the collector hangs up for.
        consumer.send_raw(b"\xff" * 100)
        self.until(lambda: "closed: sent a frame over" in
                   self.daemons[0].log(), "it has hung up")
        consumer.resume()
        consumer.wait_closed()
        # How much it had said by then is its own affair.
        self.assertTrue(call.replies)
        self.assertEqual(consumer.sock.why[0], 1001)

    def test_who_closes_at_once_and_no_other_protocol(self):
        for _ in range(20):
            hasty = WebSocket(self.web)
            hasty.send(bytes([18, 0, 0, 0]) + b"\x10\x01\x1a\x0e\x0a\x0c"
                       b"ConsumerPort")
            hasty.close()
        answer = self.web.raw((
            f"GET /traced HTTP/1.1\r\nHost: {self.web.host}\r\n"
            "Origin: https://ui.perfetto.dev\r\nConnection: Upgrade, "
            "HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
            "AAMAAABkAAQAAP__\r\n\r\n").encode())
        self.assertNotIn(b" 101 ", answer[:20])
        self.dial().close()

    def test_what_is_no_binary_message_ends_it(self):
        text = WebSocket(self.web)
        text.send(b"hello", WebSocket.TEXT)
        self.assertEqual(text.closing()[0], 1003)
        for junk in (b"\x82\x05hello", b"\xf2\x85\0\0\0\0hello",
                     b"\x82\xff\xff" + b"\0" * 11, bytes(range(256)) * 20):
            broken = WebSocket(self.web)
            broken._sock.sendall(junk)
            broken._sock.shutdown(socket.SHUT_WR)
            read_all(broken._sock)
        # Not a frame of the protocol: the collector hangs up.
        frame = WebSocket(self.web)
        frame.send(b"\xff" * 100)
        self.assertEqual(frame.closing()[0], 1001)
        self.dial().close()


class Strangers(WebCase):
    def status(self, path, *headers, **options):
        return self.web.get(path, *headers, **options)[0]

    def test_other_hosts_and_origins_are_refused(self):
        for host in ("evil.example", "127.0.0.1", f"{self.web.host}.evil",
                     "a" * 2000, f"localhost:{self.web.port + 1}"):
            self.assertIn(self.status("/", host=host), (403, 431), host)
        self.assertEqual(self.status("/", host=f"localhost:{self.web.port}"),
                         200)
        for origin in ("https://evil.example", "null", "http://localhost",
                       f"https://{self.web.host}"):
            self.assertEqual(self.status("/", f"Origin: {origin}"), 403,
                             origin)
        self.assertEqual(self.status("/", f"Origin: {self.web.url}"), 200)
        self.assertEqual(
            parse(self.web.raw(b"GET /healthz HTTP/1.0\r\n\r\n"))[0], 403)

    def test_it_listens_at_its_address_alone(self):
        for other in ("127.0.0.2", "::1"):
            with self.assertRaises(OSError):
                socket.create_connection((other, self.web.port)).close()

    def test_there_is_get_and_head_alone(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            status, headers, _ = self.web.get(
                "/", "Content-Length: 0", method=method)
            self.assertEqual(status, 405, method)
            self.assertEqual(headers["allow"], "GET, HEAD")
        self.assertEqual(self.status("/", method="BREW"), 403)
        status, headers, body = self.web.get("/style.css", method="HEAD")
        self.assertEqual((status, body), (200, ""))
        self.assertGreater(int(headers["content-length"]), 1000)
        self.assertEqual(self.status("/", "Content-Length: 3"), 400)
        self.assertEqual(self.status("/", "Transfer-Encoding: chunked"), 400)

    def test_paths_lead_nowhere_else(self):
        for path in ("/../../etc/passwd", "/%2e%2e/etc/passwd", "/index.html",
                     "/metrics/", "/traced", "/style.css/x"):
            self.assertEqual(self.status(path), 404, path)
        self.assertEqual(self.status("/?q=%3Cscript%3E&page=99999999999&&=&"),
                         200)

    def test_every_answer_is_guarded(self):
        for path in ("/", "/metrics", "/healthz", "/nothing", "/style.css"):
            headers = self.web.get(path)[1]
            self.assertEqual(headers["x-content-type-options"], "nosniff")
            self.assertEqual(headers["cache-control"], "no-store")
            self.assertIn("default-src 'none'",
                          headers["content-security-policy"])
            self.assertIn("frame-ancestors 'none'",
                          headers["content-security-policy"])

    def test_garbage_and_heads_without_an_end(self):
        ends = b"\r\nHost: " + self.web.host.encode() + b"\r\n"
        for junk in (bytes(range(256)) * 40, b"\x16\x03\x01" + b"\0" * 500,
                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 100,
                     b"GET /" + b"a" * 20000 + b" HTTP/1.1" + ends + b"\r\n",
                     b"GET / HTTP/1.1" + ends + b"X: " + b"a" * 20000,
                     b"GET / HTTP/1.1" + ends + b"A: b\r\n" * 4000 + b"\r\n",
                     b"GET /healthz%00x HTTP/1.1" + ends + b"\r\n",
                     b"GET / HTTP/1.1" + ends + b"Connection: Upgrade\r\n"
                     b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                     b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"):
            answer = self.web.raw(junk)
            self.assertNotIn(b" 200 ", answer[:20], junk[:40])
            self.assertNotIn(b" 101 ", answer[:20], junk[:40])
        self.assertEqual(self.status("/healthz"), 200)

    def test_thousands_that_say_nothing_keep_nobody_out(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(12000, hard), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE,
                        (soft, hard))
        fds = self.web.metrics()["process_open_fds"]
        socks = []
        self.addCleanup(lambda: [sock.close() for sock in socks])
        for number in range(min(10000, hard - 1000)):
            socks.append(self.web.connect())
            if number % 2:
                socks[-1].sendall(b"GET / HT")
        self.assertEqual(self.status("/healthz"), 200)
        self.assertEqual(self.status("/"), 200)
        # Each new one takes the place of the oldest.
        self.assertEqual(read_all(socks[0]), b"")
        self.assertLessEqual(self.web.metrics()["process_open_fds"],
                             fds + 1024)
        for sock in socks:
            sock.close()
        self.until(lambda: self.web.metrics()["process_open_fds"] <= fds + 2,
                   "all are closed")

    def test_one_that_reads_slowly_is_given_up(self):
        sock = self.web.connect()
        self.addCleanup(sock.close)
        request = (f"GET /style.css HTTP/1.1\r\nHost: {self.web.host}\r\n\r\n"
                   .encode())
        # More answers than sockets hold, of which none is read.
        sock.setblocking(False)
        sent = 0
        try:
            for _ in range(20000):
                sent += sock.send(request)
        except (BlockingIOError, ConnectionError):
            pass
        self.assertGreater(sent, 0)
        self.until(lambda: self.web.metrics()["tributary_web_connections"] ==
                   1, "it is given up", timeout=90)


class Far(WebCase):
    """With TLS, a token, certificates of clients."""

    def setUp(self):
        super().setUp()
        self.pki = Pki(self.path("pki"))
        self.server = self.pki.issue("web", server=True,
                                     alternatives=["IP:127.0.0.1"])
        self.token_file = self.path("token")
        with open(self.token_file, "w") as file:
            os.chmod(self.token_file, 0o600)
            file.write(TOKEN + "\n")

    def https(self, *flags):
        return ["--https-cert", os.path.join(self.server, "cert.pem"),
                "--https-key", os.path.join(self.server, "key.pem"), *flags]

    def ask(self, web, path, *headers, client=None):
        context = ssl.create_default_context(
            cafile=os.path.join(self.server, "ca.pem"))
        if client:
            context.load_cert_chain(os.path.join(client, "cert.pem"),
                                    os.path.join(client, "key.pem"))
        request = (f"GET {path} HTTP/1.1\r\nHost: {web.host}\r\n"
                   "Connection: close\r\n" +
                   "".join(h + "\r\n" for h in headers) + "\r\n")
        with context.wrap_socket(web.connect(),
                                 server_hostname="127.0.0.1") as sock:
            sock.sendall(request.encode())
            return parse(read_all(sock))

    def test_a_token_lets_in(self):
        web = self.serve(*self.https("--token-file", self.token_file))
        self.assertEqual(web.scheme, "https")
        status, headers, body = self.ask(web, "/metrics")
        self.assertEqual(status, 401)
        self.assertIn("Basic", headers["www-authenticate"])
        self.assertNotIn("tributary_", body)
        basic = base64.b64encode(f"me:{TOKEN}".encode()).decode()
        for who in (f"Bearer {TOKEN}", f"Basic {basic}"):
            status, _, body = self.ask(web, "/metrics",
                                       f"Authorization: {who}")
            self.assertEqual(status, 200)
            self.assertIn("tributary_collector_up 1", body)
        self.assertEqual(self.ask(web, "/", "Authorization: Bearer x")[0],
                         401)
        self.assertEqual(self.ask(web, "/healthz")[0], 200)

    def test_a_certificate_lets_in(self):
        web = self.serve(*self.https(
            "--client-ca", os.path.join(self.server, "ca.pem")))
        client = self.pki.issue("somebody")
        self.assertEqual(self.ask(web, "/readyz", client=client)[0], 200)
        with self.assertRaises(REFUSED):
            self.ask(web, "/readyz")
        stranger = Pki(self.path("other"), "another CA").issue("somebody")
        with self.assertRaises(REFUSED):
            self.ask(web, "/readyz", client=stranger)

    def serial(self, web):
        """Of the certificate that is served."""
        context = ssl.create_default_context(
            cafile=os.path.join(self.server, "ca.pem"))
        with context.wrap_socket(web.connect(),
                                 server_hostname="127.0.0.1") as sock:
            return sock.getpeercert()["serialNumber"]

    def test_what_is_renewed_is_read_again(self):
        web = self.serve(*self.https("--token-file", self.token_file))
        before = self.serial(web)
        self.pki.issue("web", server=True, alternatives=["IP:127.0.0.1"])
        with open(self.token_file, "w") as file:
            file.write(TOKEN[::-1] + "\n")
        web.signal(signal.SIGHUP)
        self.until(lambda: self.serial(web) != before, "the new certificate")
        self.assertEqual(
            self.ask(web, "/", f"Authorization: Bearer {TOKEN}")[0], 401)
        bearer = f"Authorization: Bearer {TOKEN[::-1]}"
        self.assertEqual(self.ask(web, "/", bearer)[0], 200)
        # Half of a renewal changes nothing; without a signal, too.
        now = self.serial(web)
        with open(os.path.join(self.server, "cert.pem"), "w") as file:
            file.write("broken\n")
        self.until(lambda: "kept as they were: --https-cert" in web.log(),
                   "it is told")
        self.assertEqual(self.serial(web), now)
        self.assertEqual(self.ask(web, "/", bearer)[0], 200)

    def test_one_that_is_revoked_stays_out(self):
        client = self.pki.issue("somebody")
        other = self.pki.issue("another")
        self.pki.write_crl(self.server)
        web = self.serve(*self.https(
            "--client-ca", os.path.join(self.server, "ca.pem"),
            "--client-crl", os.path.join(self.server, "crl.pem")))
        self.assertEqual(self.ask(web, "/readyz", client=client)[0], 200)
        self.pki.revoke(client)
        self.pki.write_crl(self.server)
        web.signal(signal.SIGHUP)
        self.until(lambda: "were read again" in web.log(), "it is read")
        with self.assertRaises(REFUSED):
            self.ask(web, "/readyz", client=client)
        self.assertEqual(self.ask(web, "/readyz", client=other)[0], 200)

    def test_without_them_it_does_not_start(self):
        for flags, sentence in (
                ([], "--https-cert"),
                (self.https(), "--client-ca or --token-file"),
                (self.https("--token-file", "/nowhere"), "/nowhere"),
                (["--https-cert", os.path.join(self.server, "cert.pem"),
                  "--https-key", os.path.join(self.stranger(), "key.pem"),
                  "--token-file", self.token_file], "key values mismatch")):
            done = subprocess.run(
                [os.environ["TRIBUTARY_WEB"], "--connect", "/run/c",
                 "--listen", "0.0.0.0:0", *flags], env=environment(),
                capture_output=True, text=True, timeout=60 * SCALE)
            self.assertEqual(done.returncode, 1)
            self.assertIn(sentence, done.stderr)

    def stranger(self):
        return self.pki.issue("stranger")

    def test_a_port_that_is_taken_is_told(self):
        done = subprocess.run(
            [os.environ["TRIBUTARY_WEB"], "--connect", "/run/c", "--listen",
             self.web.host], env=environment(), capture_output=True,
            text=True, timeout=60 * SCALE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"cannot listen at {self.web.host}", done.stderr)


@unittest.skipIf(CHROMIUM is None, "chromium is not installed")
class Browser(WebCase):
    def test_it_looks_as_it_should(self):
        """Pictures for people are kept with --keep."""
        self.producer("near <b>bold</b>")
        self.session()
        url = self.web.url + "/?refresh=0"
        dom, log = browse(self, url, "--dump-dom")
        self.assertIn("Healthy", dom)
        self.assertNotIn("<b>bold", dom)
        # Styles were let in, and nothing else was wanted.
        self.assertNotIn("Content Security Policy", log)
        self.assertEqual(self.corner(url, "desktop", 1, "1300,1200"),
                         (0xf6, 0xf7, 0xf9))
        self.assertEqual(self.corner(url, "phone", 0, "500,1600"),
                         (0x0f, 0x12, 0x16))

    def corner(self, url, name, scheme, size):
        picture = self.path(name + ".png")
        # Its own profile: the browser before may still be ending.
        _, log = browse(self, url, f"--screenshot={picture}",
                        f"--window-size={size}",
                        f"--blink-settings=preferredColorScheme={scheme}",
                        name=name)
        self.assertTrue(os.path.exists(picture), log)
        return first_pixel(picture)


class Page(WebCase):
    def test_what_is_there_is_on_it(self):
        self.producer("near")
        self.relay(self.daemons[0], machine="bus-<1>")
        consumer = self.session(unique_session_name="lab & co")
        self.until(lambda: "bus-&lt;1&gt;" in self.web.get("/")[2],
                   "the machine is there")
        page = self.web.get("/")[2]
        self.assertIn("lab &amp; co", page)
        self.assertIn(f"uid {os.getuid()}", page)
        self.assertNotIn("bus-<1>", page)
        self.assertIn("0 machines", self.web.get("/?q=tram")[2])
        self.assertIn("1 machine,", self.web.get("/?q=BUS")[2])
        # Words for landmarks, heads for tables.
        for word in ("<header>", "<main>", "<footer>", "<nav aria-label",
                     'role="search"', '<label for="q">', 'scope="col"',
                     'scope="row"', '<html lang="en">'):
            self.assertIn(word, page)
        self.assertEqual(re.findall(r"<script|https?://|style=", page), [])
        consumer.close()

    def test_many_machines_do_not_make_it_long(self):
        load = subprocess.Popen(
            [os.environ["TRIBUTARY_LOAD"], "--connect",
             self.daemons[0].producer_path, "--relays", "300", "--rate", "0",
             "--duration", "600"], env=environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.until(lambda: "301 machines, page 1 of 7" in
                       self.web.get("/")[2], "all are there", timeout=90)
            self.assertLess(len(self.web.get("/")[2]), 60000)
            page = self.web.get("/?page=7")[2]
            self.assertIn("page 7 of 7", page)
            self.assertIn("Previous", page)
        finally:
            load.terminate()
            load.wait(60 * SCALE)


if __name__ == "__main__":
    sys.exit(tap.main())
