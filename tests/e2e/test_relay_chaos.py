#!/usr/bin/env python3
"""Twenty devices, a terrible network, relays that are killed and a collector
that stalls: every packet arrives exactly once, in order, or its loss is
accounted for.

TRIBUTARY_SEED repeats what a seed made (as far as scheduling lets it),
TRIBUTARY_SOAK_SECONDS makes it longer; ./soak does both.
"""

import os
import signal
import sys
import time

from harness import netns, tap
from harness.chance import SEED, seeded
from harness.chaos import Proxy
from harness.device import RelayCase
from harness.imported import may_cause

DEVICES = 20
HOSTS = 4       # of them have addresses of their own
SECONDS = float(os.environ.get("TRIBUTARY_SOAK_SECONDS", "30"))
CUT_MEAN_MS = 2500
RATE = 20_000   # bytes per second of each of two producers of a device


class Chaos(RelayCase):
    def setUp(self):
        super().setUp()
        self.random = seeded()
        self.network = None
        self.hosts = []
        self.proxies = []
        self.cuts = self.kills = self.stalls = 0

    def _end(self):
        try:
            for daemon in self.daemons:
                if daemon.running():
                    daemon.signal(signal.SIGCONT)
            super()._end()
        finally:
            if self.network is not None:
                self.network.close()

    def proxy(self, *routes, wrap=()):
        proxy = Proxy(self.path(f"proxy{len(self.proxies)}.log"), *routes,
                      wrap=wrap)
        self.proxies.append(proxy)
        self.things.append(proxy)
        return proxy.addresses

    def make_devices(self, **options):
        """Some on hosts of their own, the others behind one proxy."""
        where = {"producer": [self.path("p"), "127.0.0.1:0"]}
        wrap = ()
        if netns.unavailable() is None:
            self.network = netns.Network()
            self.network.__enter__()
            host = self.network.host("c")
            wrap = host.command()
            where = {"producer": [self.path("p"), f"{host.address}:7700"],
                     "flags": ["--allow-remote", f"{host.address}:7700"],
                     "wrap": wrap}
        daemon = self.collector(**where)
        there = daemon.address("producers", "tcp")
        if self.network is not None:
            self.hosts = [self.network.host(f"d{n}") for n in range(HOSTS)]
        for n, host in enumerate(self.hosts):
            near, = self.proxy(("127.0.0.1:0", there), wrap=host.command())
            self.device(f"d{n}", near, wrap=host.command(), **options)
        rest = range(len(self.hosts), DEVICES)
        addresses = self.proxy(*[
            ("127.0.0.1:0", there if n % 2 and not self.network
             else daemon.producer_path) for n in rest])
        for n, near in zip(rest, addresses):
            self.device(f"d{n}", near, **options)
        self.wait_linked()

    def step(self):
        """One misfortune that the proxies cannot bring about."""
        what = self.random.random()
        if what < 0.75:
            device = self.random.choice(self.devices)
            device.kill()
            self.loop.settle(self.random.random() * 0.3)
            device.start()
            self.kills += 1
        elif what < 0.9:
            daemon = self.daemons[0]
            daemon.signal(signal.SIGSTOP)
            self.loop.settle(0.2 + self.random.random())
            daemon.signal(signal.SIGCONT)
            self.stalls += 1
        elif self.hosts:
            host = self.random.choice(self.hosts)
            host.cut()
            self.loop.settle(self.random.random())
            host.mend()
            self.cuts += 1

    def storm(self, seconds):
        for n, proxy in enumerate(self.proxies):
            proxy.say("delay 1 3")
            proxy.say(f"random {SEED + n} {CUT_MEAN_MS}")
        end = time.monotonic() + seconds
        # A busy machine takes longer to have as many misfortunes.
        while time.monotonic() < end or self.kills <= seconds / 5 or \
                self.cuts + self.cuts_by_proxies() <= 4 * seconds:
            self.loop.settle(self.random.expovariate(1.2))
            self.step()
        for proxy in self.proxies:
            proxy.say("heal")
        self.cuts += self.cuts_by_proxies()

    def cuts_by_proxies(self):
        return sum(proxy.stats()["cuts"] for proxy in self.proxies)

    @may_cause("traced_buf_trace_writer_packet_loss")
    def test_twenty_devices(self):
        self.make_devices(spool_kb=65536, memory_kb=1024)
        ledger = self.ledger([(d, 2) for d in self.devices], rate=RATE)
        consumer = self.record_to_file(self.path("trace"))
        self.wait_writing(ledger, 4 * DEVICES)
        self.storm(SECONDS)
        self.until(lambda: ledger.ready() == ledger.count,
                   "all producers are back")
        self.wait_linked()
        audit = self.finish(ledger, consumer, self.path("trace"))
        print(f"# {self.cuts} cuts, {self.kills} relays killed, "
              f"{self.stalls} stalls of the collector; {audit.packets} "
              f"packets of {len(audit.arrived)} sequences, {audit.lost} lost, "
              f"{audit.unsure} that lacked a patch", flush=True)
        self.assert_complete(audit)


if __name__ == "__main__":
    sys.exit(tap.main())
