"""tributary-relay as a program, and what a classic relay says."""

import json
import os
import subprocess

from . import pb
from .daemon import Program, environment
from .ipc import Port
from .prometheus import numbers


class Relay(Program):
    """A tributary-relay between producers at .producer_path and a collector.

    to: the collector's address, or a Daemon, whose producer socket it is
    (give that daemon the flag --enable-relay-endpoint).  None: it is dialled.
    What it keeps is in .state_dir, so that a second Relay with the same
    folder and name goes on where a killed one ended.
    """

    name = "tributary-relay"
    variable = "TRIBUTARY_RELAY"
    notify_variable = "TRACED_RELAY_NOTIFY_FD"

    def __init__(self, folder, to=None, *, label="relay", producer=None,
                 machine=None, spool=None, flags=(), **options):
        super().__init__(folder, flags=flags, **options)
        self.to = to if to is None or isinstance(to, str) else \
            to.address("producers")
        self.producer_path = producer or os.path.join(folder, f"{label}.p")
        self.state_dir = os.path.join(folder, f"{label}.state")
        self.spool_dir = spool
        self.machine = machine

    def command(self):
        argv = [*self._wrap, os.environ[self.variable],
                "--log-level", "debug", "--state-dir", self.state_dir,
                "--producer-socket", self.producer_path]
        argv += ["--to", self.to] if self.to is not None else ["--dialled"]
        if self.machine is not None:
            argv += ["--machine-name", self.machine]
        if self.spool_dir is not None:
            argv += ["--spool-dir", self.spool_dir]
        return argv + self._flags

    def report(self):
        """What --status --json says; None: nobody answers."""
        done = subprocess.run(
            [os.environ[self.variable], "--status", "--json", "--state-dir",
             self.state_dir], env=environment(), capture_output=True,
            text=True, timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def metrics(self):
        """{series: value} of what --metrics says."""
        done = subprocess.run(
            [os.environ[self.variable], "--metrics", "--state-dir",
             self.state_dir], env=environment(), capture_output=True,
            text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return numbers(done.stdout)

    def link_state(self):
        """"linked", "classic", "waiting", "connecting"; None: no answer."""
        report = self.report()
        return report and report["link"]["state"]


class ClassicRelay(Port):
    """A classic relay's own connection."""

    service = "RelayPort"

    def __init__(self, loop, address, identity):
        super().__init__(loop, address, bind=False)
        frame = pb.IPCFrame()
        for key, value in identity.items():
            setattr(frame.set_peer_identity, key, value)
        self.send_frame(frame)
        self.bind()

    def init(self, **system_info):
        request = pb.InitRelayRequest()
        request.system_info.CopyFrom(pb.SystemInfo(**system_info))
        self.invoke("InitRelay", request)

    def sync(self, phase, clocks):
        """clocks: {clock id: nanoseconds}."""
        request = pb.SyncClockRequest(
            phase=pb.SyncClockRequest.Phase.Value(phase))
        for clock_id, timestamp in clocks.items():
            request.clocks.add(clock_id=clock_id, timestamp=timestamp)
        self.invoke("SyncClock", request)
