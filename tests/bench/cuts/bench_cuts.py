#!/usr/bin/env python3
"""What cuts cost the producers of a session that is cut all the time:

	bench_cuts.py [PRODUCERS...]

Round trips of commits, and the collector's processor time, of tributary-load's
devices: in a session that is not cut, and in one that is cut each second, in
turns.  $TRIBUTARYD and $TRIBUTARY_LOAD name the programs, $BENCH_ROUNDS and
$BENCH_SECONDS the rounds and the length of each, $BENCH_RATE the bytes a second.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SECONDS = int(os.environ.get("BENCH_SECONDS", "10"))
# In all, well below what the collector can take.
RATE = int(os.environ.get("BENCH_RATE", "10000000"))
CONFIG = """
buffers { size_kb: 65536 }
write_into_file: true
file_write_period_ms: 1000
data_sources { config { name: "tributary.load" } }
"""
CUT = "tributary_segments { every_ms: 1000 }\n"


def run(folder, producers, cuts):
    config = os.path.join(folder, "config")
    with open(config, "w") as file:
        file.write(CONFIG + (CUT if cuts else ""))
    trace = os.path.join(folder, "trace")
    done = subprocess.run(
        [os.environ["TRIBUTARY_LOAD"], "--daemon", os.environ["TRIBUTARYD"],
         "--connect", "tcp", "--producers", str(producers), "--total-rate",
         str(RATE), "--chunks", "1", "--reply-every", "1", "--session", trace,
         "--config", config, "--duration", f"{SECONDS}s", "--quiet"],
        stdout=subprocess.PIPE, check=True)
    os.remove(trace)
    return json.loads(done.stdout)


def middle(results, get):
    return statistics.median(get(result) for result in results)


def show(producers, name, results):
    trip = [middle(results, lambda r, k=k: r["round_trip_us"][k]) / 1000
            for k in ("p50", "p99", "max")]
    cpu = middle(results, lambda r: r["collector"]["load_cpu_s"] / r["load_s"])
    flushes = middle(results, lambda r: r["flushes"] / producers)
    print(f"{producers:6} producers, {name:<16} round trip p50 {trip[0]:7.2f} "
          f"p99 {trip[1]:7.2f} longest {trip[2]:7.1f} ms; processor "
          f"{100 * cpu:5.1f} %; {flushes:4.0f} flushes each", flush=True)


def main(crowds):
    for producers in crowds:
        results = {False: [], True: []}
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            for _ in range(ROUNDS):
                for cuts in results:
                    results[cuts].append(run(folder, producers, cuts))
        show(producers, "not cut", results[False])
        show(producers, "cut each second", results[True])


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [100, 1000, 10000])
