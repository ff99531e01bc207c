#!/usr/bin/env python3
"""The units under a real systemd, the first process of an emulated machine."""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import tap, vm
from harness.case import Case, config
from harness.consumer import source
from harness.trace import Trace

WHY_NOT = vm.unavailable_systemd()
UNITS = "etc/systemd/system"
BINDIR = "/usr/local/bin"


def install(payload):
    """As a package does: programs, settings, units."""
    subprocess.run(["meson", "install", "-C", os.environ["BUILD_ROOT"],
                    "--no-rebuild", "--quiet", "--destdir", payload],
                   check=True, stdout=subprocess.DEVNULL)
    units = os.path.join(payload, UNITS)
    os.makedirs(units)
    for folder in (os.environ["BUILD_ROOT"], os.environ["SOURCE_ROOT"]):
        folder = os.path.join(folder, "deploy")
        for name in os.listdir(folder):
            if name.endswith((".service", ".socket")):
                shutil.copy(os.path.join(folder, name), units)


@functools.cache
def machine():
    """One boot for all tests of this file."""
    with tempfile.TemporaryDirectory(prefix="trib-vm") as payload:
        install(payload)
        found = vm.WithSystemd(payload)
    print(f"# booted in {found.boot_seconds:.1f} s")
    return found


CONFINED = {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0" * 16,
            "CapBnd": "0" * 16, "CapPrm": "0" * 16}


@tap.slow
@unittest.skipIf(WHY_NOT is not None, WHY_NOT)
class Units(Case):
    def setUp(self):
        super().setUp()
        self.vm = machine()
        self.vm.run("cp -r /usr/local/etc/tributary /run/settings")
        self.vm.run("systemctl start tributaryd.socket "
                    "tributaryd-consumer.socket")

    def _end(self):
        self.vm.run("systemctl stop 'tributary*'; systemctl reset-failed; "
                    "rm -rf /run/systemd/system/tributary*; "
                    "rm -rf /usr/local/etc/tributary; "
                    "mv /run/settings /usr/local/etc/tributary; "
                    "systemctl daemon-reload")
        super()._end()

    def _show_logs(self):
        super()._show_logs()
        print(self.vm.run("journalctl --no-pager -n 60 -u 'tributary*'"),
              file=sys.stderr)

    def show(self, unit, name):
        return self.vm.run(f"systemctl show -P {name} {unit}").strip()

    def wait(self, unit, name, value):
        self.until(lambda: self.show(unit, name) == value,
                   f"{unit} has {name}={value}", timeout=vm.PATIENCE)

    def add(self, unit, text):
        """A drop-in."""
        self.vm.put(f"/run/systemd/system/{unit}.d/test.conf", text)
        self.vm.run("systemctl daemon-reload")

    def record(self):
        """What a session of a second holds."""
        said = self.vm.run("tributary record -t 1s -o /tmp/t linux.sys_stats")
        self.assertIn("Lost            nothing", said)
        path = self.path("there.pftrace")
        with open(path, "wb") as file:
            file.write(self.vm.read("/tmp/t"))
        return Trace.from_file(path)

    def check_confined(self, unit, files):
        """As the unit says, by what the kernel says."""
        pid = self.show(unit, "MainPID")
        status = dict(line.split(":\t", 1) for line in self.vm.run(
            f"cat /proc/{pid}/status").splitlines())
        self.assertEqual({k: status[k] for k in CONFINED}, CONFINED)
        self.assertNotIn("0", status["Uid"].split())
        within = f"nsenter -t {pid} -m"
        for folder in ("/usr", "/etc", "/var/lib", "/root"):
            self.assertNotEqual(
                self.vm.output(f"{within} touch {folder}/x")[0], 0, folder)
        self.assertEqual(self.vm.output(f"{within} ls /dev/vda")[0], 2)
        self.assertEqual(self.vm.run(f"{within} ls /tmp"), "")
        limit = self.vm.run(f"grep 'Max open files' /proc/{pid}/limits")
        self.assertEqual(limit.split()[3], files)
        return within

    def test_socket_activation(self):
        self.assertEqual(self.show("tributaryd", "ActiveState"), "inactive")
        # Whoever asks starts it, and gets the answer.
        self.record()
        self.assertEqual(self.show("tributaryd", "ActiveState"), "active")
        self.vm.run("systemctl stop tributaryd")
        # So does a producer, whose socket is another.
        self.vm.run("systemctl start tributary-probes")
        self.wait("tributaryd", "ActiveState", "active")
        self.assertGreater(len(self.record().of("sys_stats")), 0)
        self.assertEqual(self.show("tributaryd", "NRestarts"), "0")

    def test_watchdog(self):
        """Nobody ends one that is idle; one that hangs is started again."""
        self.add("tributaryd.service", "[Service]\nWatchdogSec=2")
        self.vm.run("systemctl start tributaryd; sleep 5")
        self.assertEqual(self.show("tributaryd", "NRestarts"), "0")
        pid = self.show("tributaryd", "MainPID")
        self.vm.run(f"kill -STOP {pid}")
        self.wait("tributaryd", "NRestarts", "1")
        self.wait("tributaryd", "ActiveState", "active")
        self.assertNotEqual(self.show("tributaryd", "MainPID"), pid)
        self.assertIn("Watchdog timeout", self.vm.run(
            "journalctl --no-pager -u tributaryd"))
        self.record()

    def upgrade(self):
        self.vm.run("systemctl kill --kill-whom=main -s USR2 tributaryd")

    def test_upgrade(self):
        """The program in its place takes over, in the same process."""
        self.vm.run("systemctl start tributaryd")
        pid = self.show("tributaryd", "MainPID")
        program = f"{BINDIR}/tributaryd"
        self.vm.run(f"cp {program} {program}.new; mv {program}.new {program}")
        inode = self.vm.run(f"stat -c %i {program}")
        self.assertNotEqual(self.vm.run(f"stat -Lc %i /proc/{pid}/exe"),
                            inode)
        self.upgrade()
        self.until(lambda: self.vm.run(f"stat -Lc %i /proc/{pid}/exe") ==
                   inode, "the new program runs", timeout=vm.PATIENCE)
        self.wait("tributaryd", "SubState", "running")
        self.assertEqual(self.show("tributaryd", "MainPID"), pid)
        self.assertEqual(self.show("tributaryd", "NRestarts"), "0")
        self.record()
        self.check_confined("tributaryd", "140000")

    def test_an_upgrade_that_is_refused(self):
        """`systemctl status` says why, and all goes on."""
        self.vm.run("systemctl start tributaryd")
        pid = self.show("tributaryd", "MainPID")
        self.vm.run("echo nonsense >>/usr/local/etc/tributary/tributaryd.conf")
        self.upgrade()
        self.until(lambda: "nonsense" in self.show("tributaryd",
                                                   "StatusText"),
                   "systemd knows why", timeout=vm.PATIENCE)
        self.wait("tributaryd", "SubState", "running")
        self.assertEqual(self.show("tributaryd", "MainPID"), pid)
        self.record()

    def test_confinement(self):
        self.vm.run("systemctl start tributaryd")
        within = self.check_confined("tributaryd", "140000")
        # The one folder that it may write into.
        self.vm.run(f"{within} touch /var/lib/tributary/x")
        self.vm.put("/tmp/config", """
            buffers { size_kb: 1024 }
            data_sources { config { name: "linux.sys_stats" } }
            duration_ms: 500
            write_into_file: true
            output_path: "/var/lib/tributary/there.pftrace" """)
        self.vm.run("tributary record -c /tmp/config")
        self.vm.run("test -s /var/lib/tributary/there.pftrace")

    def test_a_device(self):
        """Its relay and its probes, joined to a collector outside."""
        self.daemon(producer=[self.path("p"), self.vm.collector],
                    flags=["--enable-relay-endpoint"])
        self.vm.run("systemctl stop tributaryd.socket "
                    "tributaryd-consumer.socket")
        self.vm.put("/usr/local/etc/tributary/tributary-relay.conf",
                    'to: "10.0.2.100:7443"\nmachine_name: "robot-7"\n'
                    'spool { dir: "/var/lib/tributary-relay" '
                    "size_kb: 1024 }")
        self.vm.run("systemctl start tributary-relay.socket tributary-probes")
        consumer = self.consumer(self.daemons[0].consumer_path)
        self.until(lambda: any(d.ds_descriptor.name == "linux.sys_stats"
                               for d in consumer.query().data_sources),
                   "its probes are here", timeout=vm.PATIENCE)
        self.check_confined("tributary-relay", "16384")
        # One that hangs is started again, and its producers with it.
        pid = self.show("tributary-relay", "MainPID")
        self.add("tributary-relay.service", "[Service]\nWatchdogSec=2")
        self.vm.run("systemctl restart tributary-relay; sleep 5")
        self.assertEqual(self.show("tributary-relay", "NRestarts"), "0")
        self.vm.run(f"kill -STOP "
                    f"{self.show('tributary-relay', 'MainPID')}")
        self.wait("tributary-relay", "NRestarts", "1")
        self.wait("tributary-relay", "ActiveState", "active")
        self.assertNotEqual(self.show("tributary-relay", "MainPID"), pid)
        self.until(lambda: self.vm.run(
            "journalctl --no-pager -u tributary-probes").count(
                "connected to") >= 2, "its probes are here again",
            timeout=vm.PATIENCE)
        wanted = source("linux.sys_stats")
        wanted.config.sys_stats_config.meminfo_period_ms = 100
        consumer.enable(config(wanted, trace_all_machines=True))
        self.vm.run("sleep 1")
        consumer.flush(60_000)
        consumer.stop()
        trace = consumer.read()
        self.assertGreater(len(trace.of("sys_stats")), 0)
        self.assertEqual({p.system_info.machine_name
                          for p in trace.of("system_info") if p.machine_id},
                         {"robot-7"})


if __name__ == "__main__":
    sys.exit(tap.main())
