"""A disk that fails, clocks that jump and input that takes long, inside of a
program of ours.

	plan = Plan(case.path("plan"), match="traces/")
	case.daemon(env=plan.env())
	plan.write_errno = errno.ENOSPC
"""

import mmap
import os
import resource
import struct
import subprocess
import time

SHIM = os.environ.get("FAULT_SHIM")
# As struct plan of tests/load/fault_shim.c.
FIELDS = ("write_errno", "write_after", "write_times", "short_bytes",
          "write_delay_us", "sync_errno", "sync_after", "sync_delay_us",
          "truncate_errno", "realtime_ns", "boottime_ns", "read_delay_us",
          "loaded", "writes", "syncs", "failed")
MATCH_BYTES = 256


class Plan:
    """What goes wrong now, for files whose path contains `match`; its fields
    may be set and read while the program runs."""

    def __init__(self, path, match=""):
        size = 8 * len(FIELDS) + MATCH_BYTES
        with open(path, "w+b") as file:
            file.truncate(size)
            self.__dict__["_map"] = mmap.mmap(file.fileno(), size)
        self.__dict__["path"] = path
        self._map[8 * len(FIELDS):] = match.encode().ljust(MATCH_BYTES, b"\0")
        self.write_times = -1

    def __setattr__(self, name, value):
        struct.pack_into("=q", self._map, 8 * FIELDS.index(name), value)

    def __getattr__(self, name):
        if name not in FIELDS:
            raise AttributeError(name)
        return struct.unpack_from("=q", self._map, 8 * FIELDS.index(name))[0]

    def env(self):
        # A sanitizer wants to be the first library, and can do without.
        options = os.environ.get("ASAN_OPTIONS", "detect_leaks=1")
        return {"LD_PRELOAD": SHIM, "FAULT_SHIM": self.path,
                "ASAN_OPTIONS": options + ":verify_asan_link_order=0"}

    def heal(self):
        for name in FIELDS[:FIELDS.index("loaded")]:
            setattr(self, name, 0)
        self.write_times = -1


def small_disk(case, name, size):
    """Mounts a tmpfs of `size` ("256k") in the test's folder; its path."""
    path = case.path(name)
    os.mkdir(path)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", path],
        stderr=subprocess.PIPE)
    if done.returncode != 0:
        case.skipTest("cannot mount a tmpfs: " +
                      done.stderr.decode(errors="replace").strip())
    case.addCleanup(subprocess.run, ["umount", "-l", path],
                    stderr=subprocess.DEVNULL)
    return path


def pid_of(program):
    return program.process.pid


def cpu_of(program):
    """Seconds of processor time it used so far."""
    with open(f"/proc/{pid_of(program)}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class NoDescriptors:
    """A program that gets no new file descriptor inside of the block."""

    def __init__(self, program):
        self.pid = pid_of(program)

    def __enter__(self):
        used = set(map(int, os.listdir(f"/proc/{self.pid}/fd")))
        # Those that it has, above, are not taken away.
        free = min(set(range(len(used) + 1)) - used)
        self.before = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE,
                         (free, self.before[1]))
        return self

    def __exit__(self, *exc):
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, self.before)


class Idle:
    """A program that should hardly use the processor inside of the block.

    Its share of the processor, measured by its own clock: a busy machine makes
    it smaller, never larger.
    """

    def __init__(self, case, program, share=0.3):
        self.case, self.program, self.share = case, program, share

    def __enter__(self):
        self.began = time.monotonic()
        self.before = cpu_of(self.program)
        return self

    def __exit__(self, kind, *exc):
        if kind is None:
            took = time.monotonic() - self.began
            used = cpu_of(self.program) - self.before
            self.case.assertLess(used, self.share * took + 0.1,
                                 f"{used:.2f} s of {took:.2f} s: it spins")
