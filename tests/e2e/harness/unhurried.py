"""Time as it would pass on a machine that has nothing else to do.

What a process waited for a processor (its run delay, which the kernel counts) is
nobody's fault: a watch leaves it out.  What it slept for, a lock, a disk or an
answer, is all there.
"""

import os
import time


def _schedstat(pid, field):
    """Seconds of all threads that it has; 0: the kernel does not count."""
    total = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[field])
    except (FileNotFoundError, ProcessLookupError):
        pass  # the thread is gone, or the kernel does not count
    return total / 1e9


def ran(pid):
    """Seconds that its threads had a processor so far."""
    return _schedstat(pid, 0)


def kept_waiting(pid):
    """Seconds that its threads waited for a processor so far."""
    return _schedstat(pid, 1)


class Watch:
    """Runs from the beginning; of this process and those that it waits for."""

    def __init__(self, *pids):
        self._pids = [os.getpid(), *pids]
        self._waited = self._kept_waiting()
        self._began = time.monotonic()

    def _kept_waiting(self):
        return sum(map(kept_waiting, self._pids))

    def seconds(self):
        took = time.monotonic() - self._began
        return max(0.0, took - (self._kept_waiting() - self._waited))
