"""Perfetto's own programs: `traced`, `traced_probes` and `perfetto`, started
and ended like ours.  `deploy/install-deps peers` brings them."""

import os
import signal
import subprocess
import unittest

import peers

from .daemon import Program, environment
from .recording import Recording

AVAILABLE = peers.program("perfetto") is not None
needed = unittest.skipUnless(
    AVAILABLE, "no programs of Perfetto's; deploy/install-deps peers")


class RealProgram(Program):
    """Ends by SIGTERM, which it does not catch."""

    def command(self):
        return [*peers.program(self.name), *self._flags]

    def stop(self):
        if self.running():
            self.expected_status = -signal.SIGTERM
        super().stop()


class Traced(RealProgram):
    """The service; takes the place of a Daemon in a Case.  producer: more
    addresses that it listens on."""

    name = "traced"
    notify_variable = "TRACED_NOTIFY_FD"

    def __init__(self, folder, *, producer=(), **options):
        self.producer_path = os.path.join(folder, "p")
        self.consumer_path = os.path.join(folder, "c")
        self._producers = [self.producer_path, *producer]
        super().__init__(folder, env={
            "PERFETTO_PRODUCER_SOCK_NAME": ",".join(self._producers),
            "PERFETTO_CONSUMER_SOCK_NAME": self.consumer_path}, **options)

    def addresses(self, port):
        return self._producers if port == "producers" else \
            [self.consumer_path]

    def address(self, port, kind="unix"):
        address, = [a for a in self.addresses(port)
                    if a.startswith("/") == (kind == "unix")]
        return address


class Probes(RealProgram):
    """traced_probes, ready when the service at `address` knows its data
    sources."""

    name = "traced_probes"
    notify_variable = "TRACED_PROBES_NOTIFY_FD"

    def __init__(self, folder, address, **options):
        super().__init__(folder, env={
            "PERFETTO_PRODUCER_SOCK_NAME": address}, **options)
