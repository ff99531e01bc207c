#!/usr/bin/env python3
"""One relay, no trouble: everything that local producers write arrives, over
every transport."""

import os
import socket
import subprocess
import sys
import unittest

from harness import sshd, tap
from harness.consumer import config, source
from harness.daemon import SANITIZER_LINES, environment
from harness.device import RelayCase
from harness.ledger import SOURCE, Audit, Ledger
from harness.loop import SCALE
from harness.pki import OPENSSL, Pki
from harness.ports import free_address

PACKETS = 5000
needs_sshd = unittest.skipIf(sshd.missing() is not None, sshd.missing())


class Simple(RelayCase):
    def device(self, *args, **options):
        """As fast as they can: there has to be room for what is slower."""
        return super().device(*args, memory_kb=65536, **options)

    def check(self, device):
        """5000 packets of each sequence come through a relay."""
        self.wait_linked(device)
        ledger = self.ledger([(device, 2)], packets=PACKETS)
        consumer = self.record()
        self.wait_writing(ledger, 4)
        self.wait_written(ledger, PACKETS)
        audit = self.finish(ledger, consumer)
        self.assert_complete(audit)
        self.assertEqual(audit.packets, 4 * PACKETS)
        self.assertEqual(audit.dropped, {})
        machine, = set().union(*audit.machines.values())
        self.assertNotEqual(machine, 0)
        return audit

    def test_the_books_at_a_daemon_itself(self):
        """The ledger's own check, without a relay."""
        daemon = self.daemon()
        with Ledger(self.path("ledger.log"), [(daemon.producer_path, 3)],
                    packets=PACKETS) as ledger:
            ledger.wait_ready()
            consumer = self.session(SOURCE, size_kb=65536)
            self.wait_writing(ledger, 6)
            self.wait_written(ledger, PACKETS)
            consumer.flush(60_000)
            consumer.stop()
            audit = Audit(ledger.book(), consumer.read())
        self.assert_complete(audit)
        self.assertEqual(audit.packets, 6 * PACKETS)
        self.assertEqual(audit.dropped, {})

    def test_unix(self):
        self.collector()
        self.check(self.device("a"))

    def test_tcp(self):
        daemon = self.collector(producer=["127.0.0.1:0"])
        self.check(self.device("a", daemon.address("producers", "tcp")))

    def test_vsock(self):
        try:
            with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as trial:
                trial.bind((1, socket.VMADDR_PORT_ANY))
        except OSError as error:
            self.skipTest(f"vsock does not reach this machine: {error}")
        self.collector(producer=["vsock://1:7700"])
        self.check(self.device("a", "vsock://1:7700"))

    @unittest.skipIf(OPENSSL is None, "there is no openssl command")
    def test_tls(self):
        pki = Pki(self.path("pki"))
        daemon = self.collector(producer=["tls://127.0.0.1:0"],
                                flags=["--tls-dir", pki.collector()])
        device = self.device("a", daemon.address("producers", "tls"),
                             flags=["--tls-dir", pki.issue("device-7")])
        self.check(device)
        # The certificate's word counts, not the relay's.
        control = self.control()
        if control is not None:
            self.assertIn("device-7", control.machines())

    @needs_sshd
    def test_ssh_to_a_socket(self):
        daemon = self.collector()
        host = sshd.Sshd(self.path("sshd"))
        self.things.append(host)
        host.start(self.until)
        self.check(self.device("a", host.address(daemon.producer_path),
                               env=host.env()))

    @needs_sshd
    def test_ssh_to_a_program(self):
        daemon = self.collector()
        host = sshd.Sshd(self.path("sshd"), env={
            "PERFETTO_PRODUCER_SOCK_NAME": daemon.producer_path})
        self.things.append(host)
        host.start(self.until)
        self.check(self.device(
            "a", host.address(), env=host.env(), flags=[
                "--ssh-command",
                f"{os.environ['TRIBUTARY']} connect relay"]))

    def test_compressed(self):
        self.collector()
        device = self.device("a", settings="compression_level: 3")
        self.check(device)
        link = device.report().link
        self.assertTrue(link.compressed)
        # Padding is zeros: no measure of anything but that it is on.
        self.assertLess(4 * link.bytes_sent, link.bytes_up)

    def test_a_producer_without_shared_memory(self):
        """Over TCP on the device itself: its chunks come as data."""
        self.collector()
        here = free_address()
        device = self.device("a", sockets=[here])
        self.wait_linked(device)
        producer = self.producer("p", address=here)
        consumer = self.record("test.numbers")
        producer.writer().number(PACKETS)
        consumer.flush(60_000)
        consumer.stop()
        self.assert_numbers(consumer.read(), [PACKETS])

    def test_an_old_producer_gets_shared_memory_at_once(self):
        """One that knows no emulation, and comes before there is a link."""
        daemon = self.collector()
        device = self.device("a", self.path("nobody"))
        old = self.producer("old", address=device.socket)
        self.assertFalse(old.settings.use_shmem_emulation)
        device.stop()
        self.devices.remove(device)
        self.assertTrue(daemon.running())

    def test_names_and_systems_of_two_machines(self):
        self.collector()
        self.device("a")
        self.device("b")
        self.wait_linked()
        ledger = self.ledger([(d, 1) for d in self.devices], packets=100)
        consumer = self.record()
        self.wait_writing(ledger, 4)
        self.wait_written(ledger, 100)
        ledger.finish()
        self.wait_empty()
        consumer.flush(60_000)
        consumer.stop()
        trace = consumer.read()
        audit = Audit(ledger.book(), trace)
        self.assert_complete(audit)
        machines = {}
        for seq, line in ledger.book().items():
            index = int(line["producer"].split(".")[1])
            machines.setdefault(index, set()).update(audit.machines[seq])
        self.assertEqual(len(machines[0]), 1)
        self.assertEqual(len(machines[1]), 1)
        self.assertNotEqual(machines[0], machines[1])
        infos = {p.machine_id: p.system_info for p in trace.of("system_info")}
        for machine in machines[0] | machines[1]:
            self.assertIn(machine, infos)
            self.assertTrue(infos[machine].utsname.sysname)

    def test_relays_of_one_kernel_have_a_name_each(self):
        """As in two containers: the filter means one, and who comes late."""
        self.collector()
        for name in ("box-a", "box-b"):
            self.device(name, machine_id="one kernel")
            self.wait_linked()
        boxes = {device.name: device for device in self.devices}
        near = {name: self.producer(f"of-{name}", address=boxes[name].socket)
                for name in ("box-b", "box-a")}
        for name, producer in near.items():
            wanted = config("test.numbers", trace_all_machines=True)
            wanted.data_sources[0].machine_name_filter.append(name)
            self.consumer().enable(wanted)
            self.until(lambda: producer.instances, f"{name} is recorded")
        # What had come for the wrong one would have come before its own.
        self.assertEqual([len(p.instances) for p in near.values()], [1, 1])
        state = self.consumer().query()
        self.assertEqual({p.name: p.machine_name for p in state.producers},
                         {"of-box-a": "box-a", "of-box-b": "box-b"})
        self.assertEqual(len({p.machine_id for p in state.producers}), 1)

    def test_the_probes_through_a_relay(self):
        self.collector()
        device = self.device("a")
        self.wait_linked()
        with open(self.path("probes.log"), "wb") as log:
            probes = subprocess.Popen(
                [os.environ["TRIBUTARY_PROBES"], "--producer-socket",
                 device.socket], stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, env=environment())
        try:
            consumer = self.consumer()
            self.until(lambda: any(
                s.ds_descriptor.name == "linux.sys_stats"
                for s in consumer.query().data_sources), "the probes are seen")
            system = source("linux.sys_stats")
            system.config.sys_stats_config.meminfo_period_ms = 50
            processes = source("linux.process_stats")
            processes.config.process_stats_config \
                .scan_all_processes_on_start = True
            recording = self.record(system, processes)
            self.until(lambda: recording.stats().buffer_stats[0]
                       .bytes_written > 20_000, "something is written")
            recording.flush(60_000)
            recording.stop()
            kinds = recording.read().kinds()
        finally:
            probes.terminate()
            status = probes.wait(60 * SCALE)
        with open(self.path("probes.log"), errors="replace") as log:
            said = log.read()
        self.assertEqual(status, 0, said)
        for line in SANITIZER_LINES:
            self.assertNotIn(line, said)
        self.assertIn("process_tree", kinds)
        self.assertIn("sys_stats", kinds)


if __name__ == "__main__":
    sys.exit(tap.main())
