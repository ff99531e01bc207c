#!/usr/bin/env python3
"""What segments cost beside one file: processor time of the collector for each
MB that is written, by turns in the same run.

	bench_segments.py [CASE...]

The uncut file is that of a consumer's session; segments are those of a standing
recording with the same config.  $TRIBUTARYD and $TRIBUTARY_LOAD name the
programs, $BENCH_ROUNDS and $BENCH_SECONDS the rounds and the length of each.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SECONDS = int(os.environ.get("BENCH_SECONDS", "10"))
RATE = 20_000_000
CONFIG = """
trace_all_machines: true
buffers { size_kb: 65536 }
file_write_period_ms: 500
data_sources { config { name: "tributary.load" } }
"""
# Name, devices, whether each is a machine, and fields of the recording; None:
# a consumer's file.
CASES = {
    "file": ("one file", 50, False, None),
    "uncut": ("a recording, not cut", 50, False, ""),
    "10s": ("cut every 10 s", 50, False, "rotate { every_ms: 10000 }"),
    "1s": ("cut every second", 50, False, "rotate { every_ms: 1000 }"),
    "machines": ("1000 machines, one file", 1000, True, None),
    "split": ("1000 machines, a file each", 1000, True, "split: BY_MACHINE"),
}


def written(folder):
    files = [os.path.join(path, name) for path, _, names in os.walk(folder)
             for name in names if ".pftrace" in name]
    return sum(os.path.getsize(file) for file in files), len(files)


def run(folder, devices, machines, recording):
    traces = os.path.join(folder, "traces")
    os.mkdir(traces)
    config = os.path.join(folder, "config.pbtx")
    settings = os.path.join(folder, "settings")
    words = ["--producers", str(devices)]
    if machines:
        words = ["--relays", str(devices), "--producers", "1"]
    with open(config, "w") as file:
        file.write(CONFIG)
        if recording is None:
            file.write("write_into_file: true\n")
            words += ["--config", config, "--session",
                      os.path.join(traces, "one.pftrace")]
    with open(settings, "w") as file:
        file.write("enable_relay_endpoint: true\n")
        if recording is not None:
            file.write(f'archive_dir: "{traces}"\nrecording {{ name: "bench" '
                       f'config_file: "{config}" {recording} }}\n')
    done = subprocess.run(
        [os.environ["TRIBUTARY_LOAD"], "--daemon", os.environ["TRIBUTARYD"],
         "--daemon-config", settings, "--connect", "tcp", *words,
         "--total-rate", str(RATE), "--chunks", "4", "--duration",
         f"{SECONDS}s", "--quiet"],
        stdout=subprocess.PIPE, check=True)
    result = json.loads(done.stdout)
    result["written"], result["files"] = written(traces)
    for path, folders, names in os.walk(traces, topdown=False):
        for name in names:
            os.remove(os.path.join(path, name))
        for name in folders:
            os.rmdir(os.path.join(path, name))
    os.rmdir(traces)
    return result


def cost(result):
    """Milliseconds for a MB of the devices' packets."""
    return (1e9 * result["collector"]["load_cpu_s"] /
            result["bytes"]["total"])


def main(names):
    names = names or list(CASES)
    results = {name: [] for name in names}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for _ in range(ROUNDS):
            for name in names:
                results[name].append(run(folder, *CASES[name][1:]))
    base = None
    for name in names:
        each = statistics.median(cost(r) for r in results[name])
        memory = statistics.median(
            r["collector"]["rss_peak_kb"] / 1024 for r in results[name])
        if CASES[name][3] is None:
            base = each, memory
        print(f"{CASES[name][0]:<28} {each:7.2f} ms a MB", end="")
        if base is not None:
            print(f" ({each / base[0]:4.2f} of the file)", end="")
        print(f", {memory:6.1f} MiB at most, {results[name][0]['files']} files,"
              f" {results[name][0]['written'] / 1e6:.0f} MB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
