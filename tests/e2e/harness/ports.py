"""TCP ports that are known before their program listens, or while it is down.

A port that the kernel gave away and got back (bind to 0, close) may be the next
connection's.  These lie below the ones that it gives away, and a name in the
abstract namespace, which ends with its process, keeps them for one test.
"""

import os
import socket

_held = []


def _candidates():
    with open("/proc/sys/net/ipv4/ip_local_port_range",
              encoding="ascii") as file:
        end = int(file.read().split()[0])
    ports = range(max(1025, end - 8192), end)
    assert ports, "no TCP ports below net.ipv4.ip_local_port_range"
    first = os.getpid() * 16 % len(ports)
    return [*ports[first:], *ports[:first]]


def free_port():
    """A port of 127.0.0.1 that is this process's until it ends."""
    for port in _candidates():
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0tributary.test.port.{port}")
            with socket.socket() as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind(("127.0.0.1", port))
                trial.listen()
        except OSError:
            lock.close()
            continue
        _held.append(lock)
        return port
    raise AssertionError("no free TCP port")


def free_address():
    """127.0.0.1:PORT."""
    return f"127.0.0.1:{free_port()}"
