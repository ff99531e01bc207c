"""What the collector holds, minute by minute, and whether it gave all back."""

import os


class Sample:
    def __init__(self, pid):
        self.rss_kb = self.threads = 0
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    self.rss_kb = int(line.split()[1])
                elif line.startswith("Threads:"):
                    self.threads = int(line.split()[1])
        self.fds = len(os.listdir(f"/proc/{pid}/fd"))

    def fields(self):
        return {"rss_kb": self.rss_kb, "threads": self.threads,
                "fds": self.fds}

    def __str__(self):
        return f"{self.rss_kb / 1024:.1f} MiB, {self.fds} fds, " \
            f"{self.threads} threads"


def open_files(pid):
    """What its descriptors are, and how many of each."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            name = os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0]
        except OSError:
            continue
        found[name] = found.get(name, 0) + 1
    return found
