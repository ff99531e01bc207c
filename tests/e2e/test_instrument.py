#!/usr/bin/env python3
"""The server of docs/instrument.md, and the trace that the page shows."""

import os
import re
import socket
import subprocess
import sys
import threading

from harness import tap
from harness.case import Case
from harness.daemon import environment

REQUESTS = 60
WORKERS = 4


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def page():
    path = os.path.join(os.environ["SOURCE_ROOT"], "docs/instrument.md")
    with open(path, encoding="utf-8") as f:
        return f.read()


class Instrument(Case):
    def start(self, port):
        address = self.daemons[0].producer_path
        server = subprocess.Popen(
            [os.environ["HTTP_SERVER"], str(port)],
            env=environment(PERFETTO_PRODUCER_SOCK_NAME=address))
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return server

    def get(self, port, number):
        """Until the server closes: its slices of the request have ended."""
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(f"GET /page/{number} HTTP/1.0\r\n\r\n".encode())
            with s.makefile("rb") as f:
                self.assertTrue(f.read().endswith(
                    b"Hello from a traced server.\n"))

    def test_the_servers_trace_is_as_the_page_shows_it(self):
        port = free_port()
        self.daemon()
        self.start(port)
        session = self.session("track_event", size_kb=4096)

        def is_ready():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0
        consumer = self.consumer()
        self.until(lambda: [d for d in consumer.query().data_sources
                            if d.ds_descriptor.name == "track_event"],
                   "the server is a producer")
        self.until(is_ready, "the server listens")
        session.flush(60_000)
        # Connections of is_ready() without a request are no request below.
        threads = [threading.Thread(target=self.get, args=(port, i))
                   for i in range(REQUESTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        session.flush(60_000)
        session.stop()
        trace = session.read()
        shown = re.findall(r"^\| (\w+) \| 60 \| (\d) \|$", page(), re.M)
        self.assertEqual([name for name, _ in shown],
                         ["accept", "request", "read", "respond"])
        self.assertEqual(trace.sql(
            "select count(*), count(distinct extract_arg(arg_set_id, "
            "'debug.path')) from slice where name = 'respond'"),
            [(REQUESTS, REQUESTS)])
        for name, threads in shown:
            count, tracks = trace.sql(
                "select count(*), count(distinct track_id) from slice "
                f"where name = '{name}'")[0]
            self.assertGreaterEqual(count, REQUESTS, name)
            self.assertLessEqual(tracks, int(threads), name)
        # Every request is below the accept that its flow comes from.
        self.assertEqual(trace.sql(
            "select distinct o.name, i.name from flow "
            "join slice o on o.id = slice_out join slice i on i.id = slice_in"),
            [("accept", "request")])
        self.assertEqual(trace.sql(
            "select distinct t.name from slice s join thread_track k "
            "on s.track_id = k.id join thread t using (utid) "
            "where s.name = 'request'"), [("worker",)])
        values = trace.sql(
            "select cast(value as int) from counter join counter_track c "
            "on c.id = track_id where c.name = 'connections'")
        self.assertGreaterEqual(len(values), REQUESTS)


if __name__ == "__main__":
    sys.exit(tap.main())
