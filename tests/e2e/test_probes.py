#!/usr/bin/env python3
"""tributary-probes: this machine's own processes and counters, recorded."""

import os
import select
import signal
import subprocess
import sys
import threading
import unittest

from harness import pb, tap
from harness.case import Case
from harness.consumer import config, source
from harness.daemon import SANITIZER_LINES, environment
from harness.loop import SCALE
from harness.pki import OPENSSL, Pki
from harness.trace import Trace

PROCESS_STATS = "linux.process_stats"
TRACEFS = "/sys/kernel/tracing/trace_clock"
SYS_STATS = "linux.sys_stats"


class Probes(Case):
    def setUp(self):
        super().setUp()
        self.probes = None

    def _end(self):
        try:
            if self.probes is not None:
                self.assertEqual(self.stop_probes(), 0)
        finally:
            super()._end()

    def start_probes(self, *flags, **env):
        """Returns when it says that the service knows its data sources."""
        read_end, write_end = os.pipe()
        self.log_path = self.path("probes.log")
        with open(self.log_path, "ab") as log:
            self.probes = subprocess.Popen(
                [os.environ["TRIBUTARY_PROBES"], "--log-level", "debug",
                 *flags],
                stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, pass_fds=[write_end],
                env=environment(TRACED_PROBES_NOTIFY_FD=str(write_end), **env))
        os.close(write_end)
        readable, _, _ = select.select([read_end], [], [], 20 * SCALE)
        said = os.read(read_end, 16) if readable else b""
        rest = os.read(read_end, 16) if readable else b""
        os.close(read_end)
        self.assertEqual((said, rest), (b"1", b""), self.log())

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def stop_probes(self):
        """SIGTERM; its exit status."""
        probes, self.probes = self.probes, None
        if probes.poll() is None:
            probes.send_signal(signal.SIGTERM)
        status = probes.wait(60 * SCALE)
        for line in SANITIZER_LINES:
            self.assertNotIn(line, self.log())
        return status

    def everything(self):
        """A config with both data sources, polled ten times a second."""
        process, system = source(PROCESS_STATS), source(SYS_STATS)
        ps = process.config.process_stats_config
        ps.scan_all_processes_on_start = True
        ps.record_thread_names = True
        ps.record_process_age = True
        ps.record_process_runtime = True
        ps.proc_stats_poll_ms = 100
        for kind in ("meminfo", "vmstat", "stat", "buddyinfo", "diskstat",
                     "cpufreq", "cpuidle", "devfreq", "gpufreq", "psi",
                     "thermal", "slab"):
            setattr(system.config.sys_stats_config, kind + "_period_ms", 100)
        return process, system

    def record(self):
        """Some time of both data sources; a Trace."""
        consumer = self.session(*self.everything(), size_kb=16384,
                                duration_ms=2000)
        consumer.ended()
        return consumer.read()

    def assert_this_machine(self, trace):
        """The trace shows us, and what the kernel says of the machine."""
        tree = {p.pid: p for packet in trace.of("process_tree")
                for p in packet.process_tree.processes}
        threads = {t.tid: t for packet in trace.of("process_tree")
                   for t in packet.process_tree.threads}
        me = tree[os.getpid()]
        self.assertEqual(me.ppid, os.getppid())
        self.assertEqual(me.uid, os.getuid())
        with open("/proc/self/cmdline", "rb") as file:
            arguments = file.read().split(b"\0")
        self.assertEqual([a.encode() for a in me.cmdline],
                         [a for a in arguments if a])
        self.assertGreater(me.process_start_from_boot, 0)
        self.assertEqual(threads[os.getpid()].tgid, os.getpid())
        self.assertEqual(threads[self.thread_id].tgid, os.getpid())
        self.assertTrue(threads[self.thread_id].name)

        mine = [p for packet in trace.of("process_stats")
                for p in packet.process_stats.processes
                if p.pid == os.getpid()]
        self.assertGreaterEqual(len(mine), 3)
        self.assertGreater(mine[-1].vm_rss_kb, 1000)
        self.assertGreater(mine[-1].vm_size_kb, mine[-1].vm_rss_kb)
        self.assertGreater(mine[-1].runtime_user_mode, 0)

        stats = [p.sys_stats for p in trace.of("sys_stats")]
        self.assertGreaterEqual(len(stats), 3)
        memory = {m.key: m.value for m in stats[-1].meminfo}
        with open("/proc/meminfo") as file:
            self.assertEqual(memory[pb.MeminfoCounters.Value(
                "MEMINFO_MEM_TOTAL")], int(file.readline().split()[1]))
        with open("/proc/stat") as file:
            cpus = [line.split()[0] for line in file
                    if line.startswith("cpu")]
        self.assertEqual([f"cpu{c.cpu_id}" for c in stats[-1].cpu_stat],
                         cpus[1:])
        self.assertGreater(len(stats[-1].vmstat), 50)
        self.assertGreater(stats[-1].num_forks, 0)
        self.assertGreater(len(stats[-1].buddy_info), 0)

    def assert_times(self, trace):
        """On the clock of the service, each later than the one before."""
        snapshot = trace.of("clock_snapshot")[0].clock_snapshot
        began = {c.clock_id: c.timestamp for c in snapshot.clocks}[6]
        for kind in ("process_stats", "sys_stats"):
            times = [p.timestamp for p in trace.of(kind)]
            self.assertEqual(times, sorted(times))
            self.assertGreater(times[0], began - 10**9)
            self.assertLess(times[-1], began + 60 * 10**9)

    def check_recording(self, trace):
        self.assert_this_machine(trace)
        self.assert_times(trace)
        self.assertEqual(trace.losses(), [])
        self.assert_clean_stats(trace.stats())
        for kind in ("process_tree", "sys_stats"):
            packet = trace.of(kind)[0]
            self.assertEqual(packet.trusted_pid, self.seen_pid)
            self.assertTrue(packet.first_packet_on_sequence)

    def run_with_a_thread(self, body):
        """body, while this process has a thread besides the main one."""
        stop = threading.Event()
        started = threading.Event()

        def wait():
            self.thread_id = threading.get_native_id()
            started.set()
            stop.wait()

        thread = threading.Thread(target=wait)
        thread.start()
        started.wait()
        try:
            body()
        finally:
            stop.set()
            thread.join()

    def test_this_machine_is_recorded_through_shared_memory(self):
        self.daemon()
        self.start_probes(
            PERFETTO_PRODUCER_SOCK_NAME=self.daemons[0].producer_path)
        self.seen_pid = self.probes.pid
        self.run_with_a_thread(lambda: self.check_recording(self.record()))

    def test_this_machine_is_recorded_over_tcp(self):
        self.daemon(producer=["127.0.0.1:0"])
        self.start_probes("--producer-socket",
                          self.daemons[0].address("producers", "tcp"))
        self.seen_pid = 0  # nobody vouches for it
        consumer = self.session(*self.everything(), size_kb=16384,
                                duration_ms=2000, trace_all_machines=True)
        consumer.ended()
        trace = consumer.read()
        self.assertEqual(trace.losses(), [])
        self.assert_clean_stats(trace.stats())
        self.assertIn(os.getpid(), {
            p.pid for packet in trace.of("process_tree")
            for p in packet.process_tree.processes})
        self.assertGreaterEqual(len(trace.of("sys_stats")), 3)

    def test_two_sessions_have_probes_of_their_own(self):
        self.daemon()
        self.start_probes("--producer-socket", self.daemons[0].producer_path)
        plain = source(PROCESS_STATS)
        plain.config.process_stats_config.scan_all_processes_on_start = True
        one = self.session(plain, size_kb=4096)
        two = self.session(*self.everything(), size_kb=4096)
        for consumer in (one, two):
            consumer.flush(60_000)
            consumer.stop()
        one, two = one.read(), two.read()
        self.assertFalse(one.of("sys_stats"))
        self.assertFalse(one.of("process_stats"))
        self.assertTrue(two.of("sys_stats"))
        for trace, named in ((one, False), (two, True)):
            threads = [t for packet in trace.of("process_tree")
                       for t in packet.process_tree.threads]
            self.assertEqual(any(t.name for t in threads), named)

    def test_state_is_described_again_when_it_is_cleared(self):
        self.daemon()
        self.start_probes("--producer-socket", self.daemons[0].producer_path)
        process, _ = self.everything()
        consumer = self.session(
            process, size_kb=16384, duration_ms=1500,
            incremental_state_config=pb.TraceConfig.IncrementalStateConfig(
                clear_period_ms=400))
        consumer.ended()
        trace = consumer.read()
        packets = [p for p in trace.packets
                   if p.WhichOneof("data") in ("process_tree",
                                               "process_stats")]
        self.assertTrue(packets[0].incremental_state_cleared)
        cleared = [i for i, p in enumerate(packets)
                   if p.incremental_state_cleared]
        self.assertGreaterEqual(len(cleared), 2)
        after = packets[cleared[1]:]
        self.assertIn(os.getpid(), {
            p.pid for packet in after for p in packet.process_tree.processes})

    def crowd(self, n=120):
        """n processes whose arguments are more than the probes' memory."""
        out = []
        for _ in range(n):
            out.append(subprocess.Popen(["sh", "-c", "read x", "y" * 30_000],
                                        stdin=subprocess.PIPE))
            self.addCleanup(out[-1].wait)
            self.addCleanup(out[-1].stdin.close)
        return out

    def check_crowd(self, policy=0):
        """A scan that is a burst of twice the memory loses nothing."""
        crowd = {p.pid for p in self.crowd()}
        process = source(PROCESS_STATS, buffer_exhausted_policy=policy)
        process.config.process_stats_config.scan_all_processes_on_start = True
        consumer = self.session(process, size_kb=32768, duration_ms=60_000,
                                trace_all_machines=True)
        consumer.flush(60_000)
        consumer.stop()
        trace = consumer.read()
        seen = {p.pid: p for packet in trace.of("process_tree")
                for p in packet.process_tree.processes}
        self.assertEqual(crowd - set(seen), set())
        self.assertEqual({len(seen[pid].cmdline[3]) for pid in crowd},
                         {30_000})
        self.assertEqual(trace.losses(), [])
        self.assertNotIn("packets dropped", self.log())

    def test_a_burst_larger_than_the_memory_loses_nothing(self):
        self.daemon()
        self.start_probes("--producer-socket", self.daemons[0].producer_path)
        self.check_crowd()

    def test_a_burst_that_stalls_loses_nothing(self):
        self.daemon()
        self.start_probes("--producer-socket", self.daemons[0].producer_path)
        self.check_crowd(pb.DataSourceConfig.BUFFER_EXHAUSTED_STALL_THEN_DROP)

    @unittest.skipIf(OPENSSL is None, "there is no openssl command")
    def test_a_burst_over_tls_loses_nothing(self):
        """While the probes wait for room another thread empties it."""
        pki = Pki(self.path("pki"))
        self.daemon(producer=["tls://127.0.0.1:0"],
                    flags=["--tls-dir", pki.collector()])
        self.start_probes("--producer-socket",
                          self.daemons[0].address("producers", "tls"),
                          "--tls-dir", pki.issue("pump", role="producer"))
        self.check_crowd()

    def test_a_burst_over_tcp_loses_nothing(self):
        self.daemon(producer=["127.0.0.1:0"])
        self.start_probes("--producer-socket",
                          self.daemons[0].address("producers", "tcp"))
        self.check_crowd()

    @unittest.skipIf(os.path.exists(TRACEFS), "it would set this machine's "
                     "tracefs; test_ftrace.py has a machine for that")
    def test_without_tracefs_the_flags_for_it_do_nothing(self):
        done = subprocess.run([os.environ["TRIBUTARY_PROBES"],
                               "--cleanup-after-crash"],
                              env=environment(), capture_output=True,
                              timeout=60 * SCALE)
        self.assertEqual((done.returncode, done.stdout), (0, b""))
        self.assertIn(b"nothing to clean up: tracefs is not mounted",
                      done.stderr)
        self.daemon()
        self.start_probes("--producer-socket", self.daemons[0].producer_path,
                          "--reset-ftrace")
        self.assertIn("linux.ftrace is not offered: tracefs is not mounted",
                      self.log())

    def test_it_finds_a_daemon_that_was_restarted(self):
        self.daemon()
        self.start_probes("--producer-socket", self.daemons[0].producer_path)
        self.session(*self.everything())
        self.daemons[0].kill()
        for connection in self.connections:
            connection.close()
        self.daemons.clear()
        self.daemon()
        consumer = self.consumer()
        self.until(lambda: PROCESS_STATS in {
            d.ds_descriptor.name for d in consumer.query().data_sources},
            "it is back")
        consumer.enable(config(*self.everything(), duration_ms=1500))
        consumer.ended()
        self.assertTrue(consumer.read().of("process_tree"))

    def test_what_it_has_written_survives_its_end(self):
        self.daemon()
        self.start_probes("--producer-socket", self.daemons[0].producer_path)
        consumer = self.session(*self.everything(), size_kb=16384)
        observed = consumer.query()
        self.assertEqual(observed.producers[0].name, "tributary-probes")
        # Looked at in a clone, which takes nothing away.
        session = consumer.query().tracing_sessions[0].id

        def has_read():
            looker = self.consumer()
            looker.clone(session_id=session)
            seen = looker.read()
            looker.free()
            return seen.of("process_tree") and seen.of("sys_stats")
        self.until(has_read, "both sources have been read")
        self.assertEqual(self.stop_probes(), 0)
        self.until(lambda: not consumer.query().producers, "it is gone")
        consumer.stop()
        trace = consumer.read()
        self.assertTrue(trace.of("process_tree"))
        self.assertTrue(trace.of("sys_stats"))
        self.assertEqual(trace.losses(), [])
        self.assert_clean_stats(trace.stats())

    def test_a_file_holds_what_the_probes_wrote(self):
        self.daemon()
        self.start_probes("--producer-socket", self.daemons[0].producer_path)
        fd = os.open(self.path("f"), os.O_RDWR | os.O_CREAT)
        consumer = self.session(*self.everything(), fds=[fd],
                                write_into_file=True, duration_ms=2000,
                                file_write_period_ms=100)
        os.close(fd)
        consumer.ended()
        trace = Trace.from_file(self.path("f"))
        self.assertTrue(trace.of("process_tree"))
        self.assertGreaterEqual(len(trace.of("sys_stats")), 3)


if __name__ == "__main__":
    sys.exit(tap.main())
