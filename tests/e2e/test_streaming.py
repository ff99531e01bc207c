#!/usr/bin/env python3
"""A config that has the service write a file, recorded from where no
descriptor can be passed: the command line is the same, and the file as well."""

import os
import signal
import subprocess
import sys

from harness import tap
from harness.case import TEST_SOURCE
from harness.daemon import environment
from harness.trace import Trace
from test_ssh import SshCase

TRIBUTARY = os.environ["TRIBUTARY"]


class Streaming(SshCase):
    def setUp(self):
        super().setUp()
        self.daemon(consumer=[self.path("c"), "127.0.0.1:0"])
        self.sshd()
        with open(self.path("config"), "w", encoding="utf-8") as file:
            file.write(f"""
                buffers {{ size_kb: 1024 }}
                write_into_file: true file_write_period_ms: 100
                max_file_size_bytes: 100000000
                data_sources {{ config {{ name: "{TEST_SOURCE}" }} }}""")

    def record(self, address, *flags):
        """In a process group of its own, as a shell starts it."""
        path = self.path("said")
        with open(path, "wb") as err:
            process = subprocess.Popen(
                [TRIBUTARY, "record", "-c", "config", "-o", "t", "--connect",
                 address, *flags],
                stdin=subprocess.DEVNULL, stdout=err, stderr=err,
                cwd=self.folder, env=environment(**self.host.env()),
                start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.errors = lambda: open(path, errors="replace").read()
        return process

    def size(self):
        path = self.path("t")
        return os.path.getsize(path) if os.path.exists(path) else 0

    def streams(self, address, *flags):
        with self.neighbour():
            process = self.record(address, *flags)
            producer = self.producer("p")
            producer.wait_started()
            writer = producer.writer()
            writer.number(3000)
            self.until(lambda: self.size() > 3000, "the file grows")
            before = self.size()
            writer.number(3000)
            self.until(lambda: self.size() > before, "the file grows on")
            self.assertIsNone(process.poll(), process.errors())
            # Ctrl-C: whoever else is in the group gets it, too.
            os.killpg(process.pid, signal.SIGINT)
            self.ends(process)
            producer.close()
        trace = Trace.from_file(self.path("t"))
        self.assert_numbers(trace, [6000])
        self.assert_clean_stats(trace.stats())
        self.nothing_is_left()

    def test_a_port(self):
        self.streams(self.daemons[0].address("consumers", "tcp"))

    def test_ssh_to_a_socket(self):
        self.streams(self.host.address(self.daemons[0].consumer_path))

    def test_ssh_to_a_port(self):
        self.streams(self.host.address(
            self.daemons[0].address("consumers", "tcp")))

    def test_ssh_to_a_command(self):
        self.streams(self.host.address())

    def test_ssh_to_a_command_of_ones_own(self):
        self.streams(
            self.host.address(), "--ssh-command",
            "PERFETTO_CONSUMER_SOCK_NAME=" + self.path("c") +
            " exec tributary connect consumer")

    def test_a_socket_that_ssh_forwards(self):
        path = self.path("local")
        forward = self.host.forward(
            "-L", f"{path}:{self.daemons[0].consumer_path}")
        self.addCleanup(forward.wait)
        self.addCleanup(forward.kill)
        self.until(lambda: os.path.exists(path), "ssh listens")
        self.streams(path)

    def test_a_socket_of_this_machine(self):
        """What the others have to be equal to."""
        self.streams(self.path("c"))

    def test_in_the_background(self):
        process = self.record(self.host.address(), "-D")
        producer = self.producer("p")
        self.ends(process)
        pid = int(process.errors().splitlines()[0])
        self.assertTrue(producer.started)
        producer.writer().number(500)
        os.kill(pid, signal.SIGTERM)
        self.until(lambda: not os.path.exists(f"/proc/{pid}"),
                   "the recording ends")
        self.assert_numbers(Trace.from_file(self.path("t")), [500])

    def test_a_tunnel_that_breaks_leaves_what_was_read(self):
        process = self.record(self.host.address())
        producer = self.producer("p")
        producer.wait_started()
        producer.writer().number(3000)
        self.until(lambda: self.size() > 3000, "the file grows")
        with self.neighbour():
            self.host.kill_connections()
            errors = self.ends(process, 1)
        self.assertIn("the connection to the collector was lost", errors)
        self.assertIn("t holds the first", errors)
        trace = Trace.from_file(self.path("t"))
        (numbers,) = trace.numbers().values()
        self.assertEqual(numbers, list(range(len(numbers))))


if __name__ == "__main__":
    sys.exit(tap.main())
