#!/usr/bin/env python3
"""How fast tributary-upload brings segments into a store, beside a bare curl.

	bench_upload.py

A real store (radosgw, in memory) gets the same files twice a round: by one `curl
-T` with all of them, signed, which takes no checksum; and by `tributary-upload
--once`, with SHA-256, conditions and descriptions.  $TRIBUTARY_UPLOAD and
$TRIBUTARY name the programs, $BENCH_ROUNDS the rounds, $BENCH_FILES and
$BENCH_MB the files of a round.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from harness import store

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
FILES = int(os.environ.get("BENCH_FILES", "16"))
MB = int(os.environ.get("BENCH_MB", "16"))


def timed(*command):
    """Seconds of the wall clock, and of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    subprocess.run(command, check=True, env={**os.environ, **store.KEYS},
                   stdout=subprocess.DEVNULL)
    wall = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, (after.ru_utime + after.ru_stime - before.ru_utime -
                  before.ru_stime)


def send_by_curl(bucket, paths):
    words = []
    for path in paths:
        words += ["-T", path]
    return timed(
        "curl", "-sf", "--aws-sigv4", "aws:amz:us-east-1:s3", "-u", "AK:SK",
        "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", *words,
        *[f"http://127.0.0.1:{bucket.gateway.port}/{bucket.name}/"] *
        len(paths))


def send_by_upload(bucket, folder):
    config = os.path.join(folder, "..", "settings")
    bucket.settings(config, archive_dir=folder,
                    endpoint=f"http://127.0.0.1:{bucket.gateway.port}")
    return timed(store.UPLOAD, "--config", config, "--once")


def run(top):
    """Both ways, with the same bytes, into a bucket of its own each."""
    folder = os.path.join(top, "archive")
    os.mkdir(folder)
    paths = [os.path.join(folder, f"{n}.pftrace") for n in range(FILES)]
    for path in paths:
        with open(path, "wb") as file:
            file.write(os.urandom(MB << 20))
    subprocess.run([os.environ["TRIBUTARY"], "archive", "reindex",
                    "--archive", folder], stdout=subprocess.DEVNULL,
                   check=True)
    found = []
    for name, send in ("curl", lambda b: send_by_curl(b, paths)), \
            ("upload", lambda b: send_by_upload(b, folder)):
        bucket = store.Bucket(os.path.join(top, name))
        found.append(send(bucket))
        if len(bucket.keys()) < FILES:
            sys.exit(f"{name} did not send all")
        bucket.stop()
    return found


def main():
    if store.MISSING:
        sys.exit("radosgw is not installed (deploy/install-deps store)")
    rounds = []
    for _ in range(ROUNDS):
        top = tempfile.mkdtemp(prefix="trib", dir="/tmp")
        try:
            rounds.append(run(top))
        finally:
            shutil.rmtree(top)
    print(f"{FILES} files of {MB} MB, median of {ROUNDS} rounds")
    for at, name in enumerate(("curl -T", "tributary-upload")):
        wall = statistics.median(r[at][0] for r in rounds)
        cpu = statistics.median(r[at][1] for r in rounds)
        print(f"{name:<17} {FILES * MB / wall:6.0f} MB/s, "
              f"{1000 * cpu / (FILES * MB):5.2f} ms of processor time a MB")
    print(f"{'ratio':<17} "
          f"{statistics.median(c[0] / u[0] for c, u in rounds):6.2f}")


if __name__ == "__main__":
    main()
