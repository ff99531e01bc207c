"""One thread, many sockets: everything a test waits for, it waits for here.

A test plays producers and consumers at once, so nothing may block on one of
them: Loop.until() serves all of them while it waits for a condition.
"""

import os
import selectors
import time

# Sanitizer builds get more time; no test passes faster.
SCALE = float(os.environ.get("TEST_TIME_SCALE", "1"))
# So much that only what never comes takes it, however busy the machine is.
PATIENCE = max(60.0 / SCALE, 20.0)


class TimedOut(AssertionError):
    pass


class Loop:
    def __init__(self):
        self._selector = selectors.DefaultSelector()

    def watch(self, sock, ready, writing=False):
        """Calls ready(can_read, can_write) when sock is; again to change."""
        events = selectors.EVENT_READ
        if writing:
            events |= selectors.EVENT_WRITE
        try:
            self._selector.modify(sock, events, ready)
        except KeyError:
            self._selector.register(sock, events, ready)

    def unwatch(self, sock):
        try:
            self._selector.unregister(sock)
        except (KeyError, ValueError):
            pass

    def turn(self, timeout=0.0):
        """Serves what is ready, waiting at most timeout for something."""
        if not self._selector.get_map():
            time.sleep(timeout)
            return
        for key, mask in self._selector.select(timeout):
            key.data(bool(mask & selectors.EVENT_READ),
                     bool(mask & selectors.EVENT_WRITE))

    def until(self, condition, what, timeout=PATIENCE):
        """Returns the first true value of condition().

        Conditions outside the sockets (a file that grows) are looked at
        every 20 ms.
        """
        deadline = time.monotonic() + timeout * SCALE
        while True:
            value = condition()
            if value:
                return value
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimedOut(f"not within {timeout * SCALE:g} s: {what}")
            self.turn(min(left, 0.02))

    def settle(self, seconds=0.2):
        """For what must NOT happen: serves everybody for a while."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.turn(left)

    def close(self):
        self._selector.close()
