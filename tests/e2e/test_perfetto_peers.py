#!/usr/bin/env python3
"""Perfetto's `traced_probes` with our service and relay, and our command,
probes and relay with Perfetto's `traced`."""

import os
import sys

from harness import real, tap
from harness.case import TEST_SOURCE
from harness.consumer import source
from harness.daemon import Program
from harness.device import RelayCase
from harness.ports import free_address
from harness.recording import RecordCase

PROCESSES, SYSTEM = "linux.process_stats", "linux.sys_stats"


def everything():
    """What both kinds of probes have, ten times a second."""
    processes, system = source(PROCESSES), source(SYSTEM)
    stats = processes.config.process_stats_config
    stats.scan_all_processes_on_start = True
    stats.record_thread_names = True
    stats.proc_stats_poll_ms = 100
    system.config.sys_stats_config.meminfo_period_ms = 100
    system.config.sys_stats_config.stat_period_ms = 100
    return processes, system


class OurProbes(Program):
    name = "tributary-probes"
    variable = "TRIBUTARY_PROBES"
    notify_variable = "TRACED_PROBES_NOTIFY_FD"

    def __init__(self, folder, address):
        super().__init__(folder, env={"PERFETTO_PRODUCER_SOCK_NAME": address})


class Peers(RelayCase):
    """A service of one kind, and what connects to it, of the other."""

    def serve(self, service):
        self.daemons.append(service)
        service.start()
        return service

    def connect(self, program):
        """Probes, or a relay: ended before the service is."""
        program.start()
        self.things.append(program)
        return program

    def wait_offered(self, *names):
        consumer = self.consumer()
        self.until(lambda: set(names) <= {
            s.ds_descriptor.name for s in consumer.query().data_sources},
            f"{names} are offered")
        consumer.close()

    def record_machine(self, **fields):
        """Some time of it; a Trace."""
        self.wait_offered(PROCESSES, SYSTEM)
        consumer = self.session(*everything(), size_kb=16384,
                                duration_ms=1500, **fields)
        consumer.ended()
        return consumer.read()

    def assert_this_machine(self, trace, remote=False):
        """By our reader, and by SQL."""
        # First what was lost and why: the rest would only say what is missing.
        self.assertEqual([p for p in trace.losses()
                          if p.previous_packet_dropped > 1], [])
        stats = trace.stats()
        self.assert_clean_stats(stats)
        self.assertGreater(stats.flushes_succeeded, 0)
        tree = {p.pid: p for packet in trace.of("process_tree")
                for p in packet.process_tree.processes}
        self.assertEqual(tree[os.getpid()].ppid, os.getppid())
        self.assertGreaterEqual(len(trace.of("sys_stats")), 3)
        machines = {p.machine_id for kind in ("process_tree", "sys_stats")
                    for p in trace.of(kind)}
        self.assertEqual(len(machines), 1)
        self.assertEqual(machines != {0}, remote)
        self.assert_by_sql(trace)
        return machines.pop()

    def assert_by_sql(self, trace):
        ((total,),) = trace.sql(
            "select cast(max(c.value) as int) from counter c join track t "
            "on c.track_id = t.id where t.name = 'MemTotal'")
        with open("/proc/meminfo") as file:
            self.assertEqual(total, 1024 * int(file.readline().split()[1]))
        ((pid, parent),) = trace.sql(
            "select p.pid, q.pid from process p join process q "
            f"on p.parent_upid = q.upid where p.pid = {os.getpid()}")
        self.assertEqual((pid, parent), (os.getpid(), os.getppid()))
        ((samples, first, last),) = trace.sql(
            "select count(*), min(c.ts), max(c.ts) from counter c "
            "join track t on c.track_id = t.id where t.name = 'MemTotal'")
        self.assertGreaterEqual(samples, 3)
        ((began, ended),) = trace.sql(
            "select max(iif(name = 'tracing_started_ns', int_value, 0)), "
            "max(iif(name = 'tracing_disabled_ns', int_value, 0)) "
            "from metadata")
        self.assertLessEqual(began - 10**8, first)
        self.assertLessEqual(last, ended + 10**8)


@real.needed
class TheirProbes(Peers):
    """traced_probes with tributaryd."""

    def test_over_unix(self):
        daemon = self.daemon()
        self.connect(real.Probes(self.folder, daemon.producer_path))
        self.assert_this_machine(self.record_machine())

    def test_over_tcp(self):
        daemon = self.daemon(producer=["127.0.0.1:0"])
        self.connect(real.Probes(self.folder,
                                 daemon.address("producers", "tcp")))
        self.assert_this_machine(self.record_machine(trace_all_machines=True))

    def behind(self, **options):
        daemon = self.collector(producer=["127.0.0.1:0"])
        # A collector that gets no processor for a second acknowledges nothing
        # meanwhile: 1 MiB is too little for a machine full of processes.
        device = self.device("a", daemon.address("producers", "tcp"),
                             memory_kb=32768, **options)
        self.connect(real.Probes(self.folder, device.socket))
        trace = self.record_machine(trace_all_machines=True)
        producer, = device.report().producers
        self.assertEqual(producer.discarded, 0, "chunks or patches that the "
                         "relay took for breaking the rules")
        machine = self.assert_this_machine(trace, remote=True)
        self.assertIn((machine,), trace.sql("select raw_id from machine"))

    def test_behind_a_relay(self):
        self.behind()

    def test_behind_a_relay_in_perfettos_way(self):
        self.behind(settings="protocol: CLASSIC")

    def test_they_find_a_service_that_was_restarted(self):
        daemon = self.daemon()
        self.connect(real.Probes(self.folder, daemon.producer_path))
        daemon.stop()
        daemon.start()
        self.assert_this_machine(self.record_machine())


@real.needed
class TheirService(Peers):
    """traced with our programs."""

    def test_our_probes_over_unix(self):
        traced = self.serve(real.Traced(self.folder))
        self.connect(OurProbes(self.folder, traced.producer_path))
        self.assert_this_machine(self.record_machine())

    def test_our_probes_over_tcp(self):
        traced = self.serve(real.Traced(
            self.folder, producer=[free_address()]))
        self.connect(OurProbes(self.folder,
                               traced.address("producers", "tcp")))
        # They say which machine they are on, as a relay does for others.
        self.assert_this_machine(self.record_machine(trace_all_machines=True),
                                 remote=True)

    def test_our_relay_in_perfettos_way(self):
        traced = self.serve(real.Traced(
            self.folder, flags=["--enable-relay-endpoint"],
            producer=[free_address()]))
        device = self.device("a", traced.address("producers", "tcp"),
                             settings="protocol: CLASSIC")
        self.connect(OurProbes(self.folder, device.socket))
        trace = self.record_machine(trace_all_machines=True)
        self.assert_this_machine(trace, remote=True)
        self.assertGreater(len(trace.of("remote_clock_sync")), 0)

    def test_our_relay_finds_out_which_way(self):
        traced = self.serve(real.Traced(
            self.folder, flags=["--enable-relay-endpoint"],
            producer=[free_address()]))
        device = self.device("a", traced.address("producers", "tcp"))
        self.until(lambda: device.report().link.state == "classic",
                   "it speaks Perfetto's way")
        self.connect(OurProbes(self.folder, device.socket))
        self.assert_this_machine(self.record_machine(trace_all_machines=True),
                                 remote=True)


@real.needed
class OurCommand(RecordCase):
    """`tributary` with traced."""

    def setUp(self):
        super().setUp()
        service = real.Traced(self.folder)
        self.daemons.append(service)
        service.start()

    def test_a_recording(self):
        producer = self.producer("p")
        recording = self.record("-o", "t", "-t", "0", TEST_SOURCE)
        producer.wait_started()
        producer.writer().number(50)
        recording.interrupt()
        said = recording.end()
        self.assertEqual(sorted(map(len, self.trace().numbers().values())),
                         [50])
        self.assertIn("Lost            nothing", said)

    def test_a_file_that_the_service_writes(self):
        producer = self.producer("p")
        recording = self.record("-o", "t", "-t", "0", "-s", "1mb",
                                TEST_SOURCE)
        producer.wait_started()
        producer.writer().number(500)
        recording.interrupt()
        recording.end()
        self.assertEqual(sorted(map(len, self.trace().numbers().values())),
                         [500])

    def test_sources_and_sessions(self):
        producer = self.producer("p")
        producer.sync()
        out, _ = self.run_command("sources")
        self.assertIn(TEST_SOURCE.encode(), out)
        self.session(TEST_SOURCE, unique_session_name="mine")
        out, _ = self.run_command("sessions")
        self.assertIn(b"mine", out)

    def test_a_snapshot(self):
        producer = self.producer("p")
        self.session(TEST_SOURCE, unique_session_name="mine")
        producer.wait_started()
        producer.writer().number(50)
        self.run_command("snapshot", "mine", "-o", "t")
        self.assertEqual(sorted(map(len, self.trace().numbers().values())),
                         [50])

    def test_a_trigger(self):
        producer = self.producer("p")
        consumer = self.session(TEST_SOURCE, trigger_config={
            "trigger_mode": "STOP_TRACING", "trigger_timeout_ms": 20_000,
            "triggers": [{"name": "now", "stop_delay_ms": 1}]})
        producer.wait_started()
        self.run_command("trigger", "now")
        consumer.ended()

    def test_a_detached_session(self):
        producer = self.producer("p")
        path = self.config(f"""
            buffers {{ size_kb: 1024 }} write_into_file: true
            data_sources {{ config {{ name: "{TEST_SOURCE}" }} }}""")
        self.record("--detach=key", "-c", path, "-o", "t").end()
        producer.wait_started()
        producer.writer().number(50)
        self.record("--is_detached=key").end()
        self.record("--is_detached=none").end(status=2)
        self.record("--attach=key", "--stop").end()
        self.assertEqual(sorted(map(len, self.trace().numbers().values())),
                         [50])

    def test_what_only_tributaryd_answers(self):
        """Each command says so, and what to do instead."""
        self.session(TEST_SOURCE, unique_session_name="mine")
        for command in ("machines", "stats", "flush", "stop", "start"):
            words = () if command == "machines" else ("mine",)
            _, said = self.run_command(command, *words, status=1)
            self.assertIn("not a tributaryd", said)
            self.assertIn("(Perfetto's traced, or an older one): ", said)


if __name__ == "__main__":
    sys.exit(tap.main())
