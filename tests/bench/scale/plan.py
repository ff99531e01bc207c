#!/usr/bin/env python3
"""How many collectors so many devices need, what each part of the way sees, and
what it costs: arithmetic alone, from what bench_device.py measured
(figures.json).

	plan.py
	plan.py --devices 50000 --rate 4000 --segment 300 --no-zstd
	plan.py --price machine=90 --price requests=4

Prints the tables of docs/scale.md, in Markdown, for other numbers.
"""

import argparse
import json
import math
import os

HOUR, DAY = 3600, 86400
MONTH = 30 * DAY
FIGURES = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "figures.json")
# Fixed in the collector; its default; how long it waits for a handshake; ports
# that the kernel has from one address to another.
MACHINES, CONNECTIONS, HANDSHAKE_S, PORTS = 16384, 66000, 10, 28232
# Decompressing a MB at the collector: docs/performance.md.
ZSTD_MB_S = 0.0009
# What a figure may be filled to.
HALF = 0.5
PRICES = {  # an example
    "machine": (80, "a machine and month"),
    "stored": (20, "a TB in the store and month"),
    "requests": (5, "a million requests that write"),
    "traffic": (0, "a TB between devices and collectors"),
}


class Device:
    """Of one device, in an hour unless it says otherwise.  o: the options."""

    def __init__(self, o, figures, segment):
        f = {name: figure["value"] for name, figure in figures.items()}
        self.cuts = HOUR / segment
        # Files are shared by all devices of a collector where there is no split.
        self.files = self.cuts / (1 if o.split else o.full)
        self.data_mb = o.rate * HOUR / 1e6 + self.cuts * f["cut_bytes"] / 1e6
        wire = "wire_zstd_mb" if o.zstd else "wire_plain_mb"
        self.wire_mb = self.data_mb * f[wire] / f["data_mb"]
        self.cpu_s = f["link_cpu_s"] + self.data_mb * (
            f["slow_cpu_s"] - f["link_cpu_s"]) / 3.6 + \
            self.data_mb * ZSTD_MB_S * o.zstd + self.cuts * f["segment_cpu_ms"] / 1000
        self.kib = f["link_writing_kib"] + (f["zstd_kib"] if o.zstd else 0)
        self.disk_mb = self.data_mb * f["disk_mb"]
        self.stored_mb = self.disk_mb + \
            self.cuts * f["description_bytes"] / 1e6
        # A shared file describes the processes of all, and its rows are as many.
        self.rows = self.cuts * (o.rows or f["rows"])
        rows = self.rows / f["rows"]
        self.rows_mb = self.rows * f["postgres_bytes"] / 1e6
        self.postgres_s = rows * f["postgres_ms"] / 1000
        self.files_cpu_s = (rows * f["archiver_ms"] +
                            self.files * f["upload_ms"]) / 1000
        # Larger files than 64 MiB go in parts of 16, with further requests.
        mib = self.disk_mb / self.files * 1e6 / (1 << 20)
        self.requests = self.files * (
            f["requests"] if mib <= 64 else
            math.ceil(mib / 16) + f["requests_large"] - math.ceil(100 / 16))
        self.store_cpu_s = self.files * f["gateway_ms"] / 1000
        self.haproxy_cpu_s = f["haproxy_cpu_s"] + max(
            0, self.wire_mb - 3.6) * f["haproxy_mb_ms"] / 1000
        self.haproxy_kib = f["haproxy_kib"]
        self.connect_s = f["connect_ms"] / 1000


def bounds(o, d):
    """What bounds the devices of one collector: words, number, remedy."""
    return sorted([
        ("all devices shake hands again within 10 s, one thread",
         HANDSHAKE_S / d.connect_s, "`io_threads`; longer `max_retry_ms`"),
        ("16,384 machines, fixed", MACHINES, "another collector"),
        (f"memory: half of {o.memory} GiB",
         o.memory * HALF * (1 << 20) / d.kib,
         "`link { compression: false }`; more memory"),
        ("half of the thread that has the sessions",
         HALF * HOUR / d.cpu_s, "`io_threads`; longer segments"),
        ("archiver and uploader: half a processor",
         HALF * HOUR / d.files_cpu_s, "longer segments; no `split`"),
        ("half of 1 Gbit/s from devices",
         HALF * 125 * HOUR / d.wire_mb, "zstd; another collector"),
        ("28,232 ports of one HAProxy to one collector", PORTS,
         "more addresses of HAProxy's"),
        ("`max_connections`, the default", CONNECTIONS,
         "set it, and `LimitNOFILE`"),
    ], key=lambda row: row[1])


def fleet_bounds(o, d):
    """The same of all devices together."""
    return sorted([
        ("PostgreSQL: its one writer, half of the time",
         HALF * HOUR / d.postgres_s, "longer segments; fewer processes"),
        ("store: 3,500 requests a second that write, as Amazon's takes for "
         "a prefix", 3500 * HOUR / d.requests,
         "longer segments; no `split`; collectors have folders of their own"),
        (f"HAProxy: half of {o.cores} processors",
         HALF * o.cores * HOUR / d.haproxy_cpu_s,
         "more of them (DNS); relays' lists"),
        ("HAProxy: half of 10 Gbit/s, both ways",
         HALF * 1250 * HOUR / d.wire_mb, "the same"),
        (f"catalogue of {o.keep_days} days: 1 TB",
         1e6 / (d.rows_mb * 24 * o.keep_days),
         "longer segments; fewer processes; `--keep-days`"),
    ], key=lambda row: row[1])


class Fleet:
    def __init__(self, o, devices, d):
        self.devices, self.d = devices, d
        # One may end, and the others still hold all.
        self.collectors = max(2, math.ceil(devices / o.full) + 1)
        self.each = devices / self.collectors
        self.haproxy_cores = devices * d.haproxy_cpu_s / HOUR
        self.proxies = max(2, math.ceil(self.haproxy_cores / HALF / o.cores))
        self.kept_tb = devices * d.stored_mb * 24 * o.keep_days / 1e6
        self.rows = devices * d.rows * 24 * o.keep_days
        self.requests = devices * d.requests / HOUR
        self.costs = {
            "machine": self.collectors + self.proxies,
            "stored": self.kept_tb,
            "requests": self.requests * MONTH / 1e6,
            "traffic": devices * d.wire_mb * 24 * 30 / 1e6,
        }


def number(v):
    """Three digits, with commas."""
    if v == 0:
        return "0"
    if v < 1:
        return f"{v:.3g}" if v >= 0.001 else f"{v:.1g}"
    digits = max(0, 3 - len(str(int(v))))
    v = round(v, digits if digits else 3 - len(str(int(v))))
    return f"{v:,.{digits}f}" if digits and v != int(v) else f"{int(v):,}"


def table(head, rows):
    cells = [[c if isinstance(c, str) else number(c) for c in row]
             for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |",
                      "|---" * len(head) + "|",
                      *("| " + " | ".join(row) + " |" for row in cells)])


def named(segment):
    return f"{segment} s" if segment < 60 else f"{segment // 60} min"


def device_table(o, figures):
    devices = [Device(o, figures, s) for s in o.segment]
    rows = [("trace data, MB", "data_mb"),
            ("on the wire, MB", "wire_mb"),
            ("collector: processor, s", "cpu_s"),
            ("collector: memory, KiB", "kib"),
            ("disk, MB", "disk_mb"),
            ("archiver and uploader: processor, s", "files_cpu_s"),
            ("catalogue: rows", "rows"), ("catalogue: MB", "rows_mb"),
            ("catalogue: PostgreSQL's processor, s", "postgres_s"),
            ("store: requests", "requests"), ("store: MB", "stored_mb"),
            ("store: processor of radosgw's, s", "store_cpu_s"),
            ("HAProxy: processor, s", "haproxy_cpu_s"),
            ("HAProxy: memory, KiB", "haproxy_kib")]
    return table(["of a device and hour", *(f"segments of {named(s)}"
                                           for s in o.segment)],
                 [(words, *(getattr(d, name) for d in devices))
                  for words, name in rows])


def bound_table(o, figures, of, words):
    columns = [{row[0]: row for row in of(o, Device(o, figures, s))}
               for s in o.segment]
    names = sorted(columns[0], key=lambda name: columns[0][name][1])
    return table([words,
                  *(f"devices, {named(s)}" for s in o.segment), "then"],
                 [(name, *(c[name][1] for c in columns), columns[0][name][2])
                  for name in names])


def fleet_rows(o):
    """Words and what they say of a Fleet."""
    keep = f"of {o.keep_days} days"
    return [
        ("collectors", lambda f: f.collectors),
        ("devices of each; when one has ended",
         lambda f: f"{number(f.each)}; "
         f"{number(f.devices / (f.collectors - 1))}"),
        ("its processors, busy", lambda f: f.each * f.d.cpu_s / HOUR),
        ("its memory, GiB", lambda f: f.each * f.d.kib / (1 << 20)),
        ("its network, Mbit/s", lambda f: f.each * f.d.wire_mb * 8 / HOUR),
        ("its new files a second", lambda f: f.each * f.d.files / HOUR),
        ("HAProxy: connections", lambda f: f.devices),
        ("HAProxy: memory, GiB",
         lambda f: f.devices * f.d.haproxy_kib / (1 << 20)),
        ("HAProxy: processors, busy", lambda f: f.haproxy_cores),
        ("HAProxy: Mbit/s, each way",
         lambda f: f.devices * f.d.wire_mb * 8 / HOUR),
        ("bucket: requests a second", lambda f: f.requests),
        ("bucket: Mbit/s", lambda f: f.devices * f.d.stored_mb * 8 / HOUR),
        (f"bucket: TB {keep}", lambda f: f.kept_tb),
        (f"bucket: million objects {keep}",
         lambda f: f.devices * f.d.requests * 24 * o.keep_days / 1e6),
        ("bucket: processors of radosgw's, busy",
         lambda f: f.devices * f.d.store_cpu_s / HOUR),
        ("catalogue: segments a second",
         lambda f: f.devices * f.d.files / HOUR),
        ("catalogue: PostgreSQL's processors, busy",
         lambda f: f.devices * f.d.postgres_s / HOUR),
        (f"catalogue: million rows {keep}", lambda f: f.rows / 1e6),
        (f"catalogue: GB {keep}",
         lambda f: f.devices * f.d.rows_mb * 24 * o.keep_days / 1e3),
        *((f"cost a month: {name}s" if name == "machine" else
           f"cost a month: {name}", lambda f, name=name:
           f.costs[name] * o.prices[name])
          for name in PRICES if o.prices[name]),
        ("cost a month: of a device", lambda f: sum(
            f.costs[name] * o.prices[name] for name in PRICES) / f.devices)]


def fleet_table(o, head, fleets):
    return table(head, [(words, *(of(f) for f in fleets))
                        for words, of in fleet_rows(o)])


def sizes_table(o, figures, segment):
    """Columns are numbers of devices."""
    return fleet_table(
        o, [f"segments of {named(segment)}",
            *(f"{n:,} devices" for n in o.devices)],
        [Fleet(o, n, Device(o, figures, segment)) for n in o.devices])


def lengths_table(o, figures, devices):
    """Columns are lengths of segments, and the first without split."""
    whole = argparse.Namespace(**{**vars(o), "split": False})
    return fleet_table(
        o, [f"{devices:,} devices", *(map(named, o.segment)),
            f"{named(o.segment[0])}, no `split`"],
        [*(Fleet(o, devices, Device(o, figures, s)) for s in o.segment),
         Fleet(o, devices, Device(whole, figures, o.segment[0]))])


def figure_table(figures):
    return table(["measured", "figure", "of what"],
                 [(f"`{name}`", figure["value"], figure["what"])
                  for name, figure in figures.items()])


def options(argv=None):
    p = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--devices", type=int, nargs="+",
                   default=[10000, 100000, 1000000])
    p.add_argument("--rate", type=float, default=1000,
                   help="trace data of a device, bytes a second")
    p.add_argument("--segment", type=int, nargs="+", default=[60, 600, 3600],
                   help="length of segments, s")
    p.add_argument("--whole", dest="split", action="store_false",
                   help="a file for all devices of a collector, not for each")
    p.add_argument("--rows", type=float,
                   help="of the catalogue for a segment, where it is not as "
                   "measured, as with fewer processes")
    p.add_argument("--no-zstd", dest="zstd", action="store_false",
                   help="relays do not compress")
    p.add_argument("--full", type=int, default=8000,
                   help="most devices of one collector, when another has ended")
    p.add_argument("--memory", type=float, default=16,
                   help="of a machine, GiB")
    p.add_argument("--cores", type=int, default=4,
                   help="of a machine with HAProxy")
    p.add_argument("--keep-days", type=int, default=14)
    p.add_argument("--price", action="append", default=[],
                   metavar="NAME=NUMBER",
                   help="an example's " + ", ".join(
                       f"{name}={price} ({what})"
                       for name, (price, what) in PRICES.items()))
    p.add_argument("--figures", default=FIGURES)
    o = p.parse_args(argv)
    o.prices = {name: price for name, (price, _) in PRICES.items()}
    for text in o.price:
        name, _, price = text.partition("=")
        try:
            o.prices[name] = (float(price), o.prices[name])[0]
        except (KeyError, ValueError):
            p.error(f"--price {text}: NAME=NUMBER with a NAME of "
                    f"{', '.join(PRICES)}")
    for name in ("devices", "segment"):
        if min(getattr(o, name)) <= 0:
            p.error(f"--{name}: has to be more than 0")
    return o


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    o = options()
    figures = load(o.figures)
    print(device_table(o, figures),
          bound_table(o, figures, bounds, "what bounds one collector"),
          bound_table(o, figures, fleet_bounds, "what bounds all together"),
          *(sizes_table(o, figures, s) for s in o.segment), sep="\n\n")


if __name__ == "__main__":
    main()
