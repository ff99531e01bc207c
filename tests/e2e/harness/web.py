"""tributary-web as a program, and requests to it as bytes."""

import os
import re
import shutil
import socket
import subprocess
import zlib

from .daemon import Program
from .loop import SCALE

CHROMIUM = shutil.which("chromium")
SERVES = re.compile(r"serves (https?)://127\.0\.0\.1:(\d+)/")


class Web(Program):
    """Serves at a port of its own choice, for the collector at `to`."""

    name = "tributary-web"
    variable = "TRIBUTARY_WEB"
    notify_variable = "TRIBUTARY_WEB_NOTIFY_FD"

    def __init__(self, folder, to, **options):
        super().__init__(folder, **options)
        self._to = to

    def command(self):
        return [os.environ[self.variable], "--log-level", "debug", "--connect",
                self._to, "--listen", "127.0.0.1:0", *self._flags]

    def start(self):
        taken = super().start()
        found = SERVES.search(self.log())
        self.scheme, self.port = found[1], int(found[2])
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"{self.scheme}://{self.host}"
        return taken

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port),
                                        timeout=60 * SCALE)

    def raw(self, request):
        """All that is answered to these bytes, until the connection ends."""
        with self.connect() as sock:
            sock.sendall(request)
            return read_all(sock)

    def get(self, path, *headers, method="GET", host=None):
        """(status, {header: value}, body)"""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host or self.host}",
                 "Connection: close", *headers]
        return parse(self.raw("".join(
            line + "\r\n" for line in [*lines, ""]).encode()))

    def metrics(self):
        """{series: value}"""
        status, _, body = self.get("/metrics")
        assert status == 200, body
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                for line in body.splitlines() if not line.startswith("#")}


def read_all(sock):
    out = b""
    try:
        while data := sock.recv(65536):
            out += data
    except ConnectionResetError:
        pass
    return out


def parse(answer):
    head, _, body = answer.decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    return (int(first.split()[1]),
            dict(line.split(": ", 1) for line in lines), body)


def browse(case, url, *flags, name="profile"):
    """Runs Chromium to its end; what it printed, and what it logged."""
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
         "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars",
         "--enable-logging=stderr", f"--user-data-dir={case.path(name)}",
         *flags, url], capture_output=True, text=True, timeout=120 * SCALE)
    case.assertEqual(done.returncode, 0, done.stderr)
    return done.stdout, done.stderr


def first_pixel(path):
    """(red, green, blue) of a PNG's corner, which no filter changes."""
    with open(path, "rb") as file:
        data = file.read()
    at, compressed = 8, b""
    while at < len(data):
        size, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        if kind == b"IDAT":
            compressed += data[at + 8:at + 8 + size]
        at += size + 12
    return tuple(zlib.decompress(compressed)[1:4])
