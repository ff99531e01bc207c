"""Hosts of their own: network namespaces, joined by one virtual switch.

	with Network() as net:
	    device = net.host("device")     # 10.77.0.2
	    device.run("ip", "addr")
	    subprocess.Popen(device.command("tributary-probes", ...))
"""

import itertools
import os
import shutil
import subprocess

IP = shutil.which("ip") or "/usr/sbin/ip"
_networks = itertools.count()


def _ip(*args):
    done = subprocess.run([IP, *args], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(args)}: "
                      f"{done.stdout.decode(errors='replace').strip()}")


def unavailable():
    """Why there can be none here; None: there can."""
    if os.geteuid() != 0:
        return "network namespaces want root"
    if not os.path.exists(IP):
        return "there is no ip command (iproute2)"
    # Not every place where they can be made lets commands run in them.
    try:
        with Network() as network:
            network.host("probe").run("true")
    except OSError as error:
        return str(error)
    return None


class Host:
    def __init__(self, namespace, address):
        self.namespace = namespace
        self.address = address

    def command(self, *argv):
        """What runs argv on this host."""
        return [IP, "netns", "exec", self.namespace, *argv]

    def run(self, *argv):
        done = subprocess.run(self.command(*argv), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise OSError(f"{argv}: {done.stdout.decode(errors='replace')}")
        return done.stdout.decode(errors="replace")

    def cut(self):
        """Unplugs the cable: packets vanish, nobody is told."""
        self.run(IP, "link", "set", "eth0", "down")

    def mend(self):
        self.run(IP, "link", "set", "eth0", "up")


class Network:
    def __init__(self):
        self.tag = f"t{os.getpid() % 100000}x{next(_networks)}"
        self.switch = f"{self.tag}-sw"
        self.namespaces = []

    def __enter__(self):
        # The switch has a namespace of its own: ours stays as it is.
        try:
            _ip("netns", "add", self.switch)
            self.namespaces.append(self.switch)
            _ip("-n", self.switch, "link", "add", "br0", "type", "bridge")
            _ip("-n", self.switch, "link", "set", "br0", "up")
        except OSError:
            self.close()
            raise
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        for name in reversed(self.namespaces):
            subprocess.run([IP, "netns", "delete", name],
                           stderr=subprocess.DEVNULL)
        self.namespaces.clear()

    def host(self, name):
        """A new host with an address of its own."""
        number = len(self.namespaces)
        namespace = f"{self.tag}-{name}"
        _ip("netns", "add", namespace)
        self.namespaces.append(namespace)
        port = f"port{number}"
        _ip("-n", self.switch, "link", "add", port, "type", "veth", "peer",
            "name", "eth0", "netns", namespace)
        _ip("-n", self.switch, "link", "set", port, "master", "br0", "up")
        address = f"10.77.0.{number + 1}"
        _ip("-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0")
        _ip("-n", namespace, "link", "set", "eth0", "up")
        _ip("-n", namespace, "link", "set", "lo", "up")
        return Host(namespace, address)
