#!/usr/bin/env python3
"""The programs of docs/instrument.md, and the trace that the page shows."""

import os
import re
import socket
import subprocess
import sys
import threading

from harness import pb, tap
from harness.case import Case
from harness.daemon import environment
from harness.ports import free_port
from harness.trace import Trace

REQUESTS = 60
WORKERS = 4


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


class EventLoop(Case):
    """The program of one thread."""

    def start(self):
        self.said = self.path("said")
        with open(self.said, "wb") as said:
            program = subprocess.Popen(
                [os.environ["EVENT_LOOP"]], stdin=subprocess.PIPE,
                stdout=said, stderr=subprocess.STDOUT,
                env=environment(PERFETTO_PRODUCER_SOCK_NAME=self.path("p")))
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def wait_said(self, text, times=1):
        def is_said():
            with open(self.said, encoding="utf-8") as file:
                return file.read().count(text) >= times
        self.until(is_said, f"it says {text!r}")

    def say(self, program, *lines):
        program.stdin.write("".join(f"{line}\n" for line in lines).encode())
        program.stdin.flush()
        self.wait_said(f"{lines[-1]}\n")

    def started(self):
        """A session that the program records for."""
        session = self.session("track_event", size_kb=4096)
        events = session.observe(
            pb.ObservableEvents.TYPE_ALL_DATA_SOURCES_STARTED)
        self.until(lambda: any(e.all_data_sources_started for e in events),
                   "the program has started")
        return session

    def lines(self, trace):
        return [text for text, in trace.sql(
            "select extract_arg(arg_set_id, 'debug.text') from slice "
            "where name = 'line' order by ts")]

    def test_a_thread_that_waits_for_other_things_as_well(self):
        program = self.start()
        self.wait_said("not traced: No such file or directory\n")
        self.say(program, "before")
        self.daemon()
        self.assertEqual(self.daemons[0].producer_path, self.path("p"))
        self.wait_said("\ntraced\n")
        session = self.started()
        self.say(program, "one", "two")
        self.assertEqual(os.listdir(f"/proc/{program.pid}/task"),
                         [str(program.pid)])
        session.flush(60_000)
        self.say(program, "three")
        program.stdin.close()
        self.assertEqual(program.wait(), 0)
        session.stop()
        self.assertEqual(self.lines(session.read()), ["one", "two", "three"])

    def test_a_service_that_is_restarted(self):
        self.daemon()
        program = self.start()
        self.wait_said("traced\n")
        self.daemons[0].kill()
        for connection in self.connections:
            connection.close()
        self.daemons.clear()
        self.wait_said("not traced: the service closed the connection\n")
        self.say(program, "between")
        self.daemon()
        self.wait_said("\ntraced\n")
        session = self.started()
        self.say(program, "after")
        session.flush(60_000)
        session.stop()
        self.assertEqual(self.lines(session.read()), ["after"])
        program.stdin.close()
        self.assertEqual(program.wait(), 0)


class Programs(Case):
    """With a data source of its own, and with a session of its own."""

    def environment(self):
        daemon = self.daemon()
        return environment(PERFETTO_PRODUCER_SOCK_NAME=daemon.producer_path,
                           PERFETTO_CONSUMER_SOCK_NAME=daemon.consumer_path)

    def test_lines_as_packets_of_two_sessions(self):
        env = self.environment()
        with subprocess.Popen([os.environ["SAMPLES"]], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, env=env) as program:
            self.addCleanup(program.kill)
            consumer = self.consumer()
            self.until(lambda: [d for d in consumer.query().data_sources if
                                d.ds_descriptor.name == "example.samples"],
                       "the data source is offered")
            sessions, lines = [], [b"one", b"two", b"three"]
            for line in lines[1:]:
                session = self.session("example.samples")
                events = session.observe(
                    pb.ObservableEvents.TYPE_ALL_DATA_SOURCES_STARTED)
                self.until(lambda events=events: any(
                    e.all_data_sources_started for e in events), "it started")
                sessions.append(session)
                program.stdin.write(line + b"\n")
                program.stdin.flush()
                self.assertEqual(program.stdout.readline(), line + b"\n")
            program.stdin.close()
            self.assertEqual(program.wait(), 0)
        read = []
        for session in sessions:
            session.stop()
            read.append([(p.for_testing.str, p.for_testing.counter)
                         for p in session.read().of("for_testing")])
        self.assertEqual(read, [[("two", 1), ("three", 2)], [("three", 1)]])

    def test_a_program_that_has_a_service_record_it(self):
        path = self.path("trace")
        done = subprocess.run([os.environ["RECORD_ITSELF"], path],
                              env=self.environment(), capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(Trace.from_file(path).sql(
            "select count(*), count(distinct extract_arg(arg_set_id, "
            "'debug.number')) from slice where name = 'step' and dur >= 0"),
            [(100, 100)])


if __name__ == "__main__":
    sys.exit(tap.main())
