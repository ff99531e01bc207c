"""A real HAProxy in front of collectors, with the settings that `tributary fleet
haproxy` prints, and the tributary-web that it asks for the collectors' health."""

import os
import re
import shutil
import socket
import subprocess

from .daemon import Program, environment
from .loop import SCALE
from .ports import free_port

HAPROXY = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
TOKEN = "0123456789abcdef0123456789abcdef"
DOMAIN = "collectors.example"


def fleet(*words, status=0):
    """What `tributary fleet haproxy` prints."""
    done = subprocess.run(
        [os.environ["TRIBUTARY"], "fleet", "haproxy", *words], check=False,
        capture_output=True, text=True, env=environment())
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


class Web(Program):
    """tributary-web at a given address."""

    name = "tributary-web"
    variable = "TRIBUTARY_WEB"
    notify_variable = "TRIBUTARY_WEB_NOTIFY_FD"


def health(folder, ca, consumer, address):
    """A running Web for /readyz of the collector at `consumer`."""
    token = os.path.join(folder, "token")
    with open(token, "w", encoding="ascii",
              opener=lambda p, f: os.open(p, f, 0o600)) as file:
        file.write(TOKEN)
    web = Web(folder, flags=[
        "--connect", consumer, "--listen", address, "--https-cert",
        ca.path("cert.pem"), "--https-key", ca.path("key.pem"),
        "--token-file", token])
    web.start()
    return web


class Haproxy:
    """Runs from start() on.  until: Case.until(), or a loop's."""

    def __init__(self, folder, until, *words):
        self.port = free_port()
        self.until = until
        self.path = os.path.join(folder,
                                 f"haproxy.{len(os.listdir(folder))}")
        self.process = None
        self.set(*words)

    def set(self, *words):
        """Settings of these words, from the next start() on."""
        with open(self.path + ".cfg", "w", encoding="ascii") as file:
            file.write(fleet(*words, "--listen", f"127.0.0.1:{self.port}",
                             "--grace", "600ms"))

    def start(self):
        with open(self.path + ".log", "ab") as log:
            self.process = subprocess.Popen(
                [HAPROXY, "-db", "-f", self.path + ".cfg"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment(TRIBUTARY_WEB_TOKEN=TOKEN))
        self.until(self.accepts, self.log)
        return self

    def log(self):
        with open(self.path + ".log", errors="replace") as file:
            return file.read()

    def accepts(self):
        assert self.process.poll() is None, self.log()
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except ConnectionRefusedError:
            return False
        return True

    def stop(self):
        self.process.terminate()
        self.process.wait(60 * SCALE)

    def says(self, collector, state):
        """Waits until it tells of so many changes to that state as happened."""
        line = f"Server collectors/{collector} is {state}"
        self.until(lambda: line in self.log(), line)

    def leads(self, context, machine):
        """The collector that a device of this name reaches."""
        name = machine and f"{machine}.{DOMAIN}"
        with socket.create_connection(("127.0.0.1", self.port),
                                      timeout=60 * SCALE) as sock:
            port = sock.getsockname()[1]
            with context.wrap_socket(sock, server_hostname=name):
                pass
        # It writes a line for a connection when that has ended.
        line = re.compile(rf"127\.0\.0\.1:{port} \[\S+\] devices "
                          r"collectors/(\S+) ")
        return self.until(lambda: line.search(self.log()),
                          f"{machine} is logged")[1]
