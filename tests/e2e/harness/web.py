"""tributary-web as a program, and requests to it as bytes."""

import os
import re
import shutil
import socket
import struct
import subprocess
import zlib

from .daemon import Program
from .loop import SCALE
from .prometheus import numbers

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
        return numbers(body)


class WebSocket:
    """A WebSocket of a browser, as a socket: what is sent is a binary message,
    what is received are the bytes of messages."""

    family = socket.AF_INET
    TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9

    def __init__(self, web, origin="https://ui.perfetto.dev", path="/traced"):
        self._sock = web.connect()
        lines = [f"GET {path} HTTP/1.1", f"Host: {web.host}",
                 "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13",
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
        if origin is not None:
            lines.append(f"Origin: {origin}")
        self._sock.sendall("".join(f"{line}\r\n" for line in
                                   [*lines, ""]).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = self._sock.recv(1)
            if not byte:
                break
            head += byte
        self.status = int(head.split()[1]) if head else None
        self.refusal = b"" if self.status == 101 else read_all(self._sock)
        self.why = None     # (code, text) of its closing message
        self._in = bytearray()

    def fileno(self):
        return self._sock.fileno()

    def setblocking(self, blocking):
        self._sock.setblocking(blocking)

    def close(self):
        self._sock.close()

    def send(self, data, kind=BINARY):
        """All of it, in one message."""
        n = len(data)
        length = bytes([0x80 | n]) if n < 126 else (
            b"\xfe" + struct.pack(">H", n) if n < 65536 else
            b"\xff" + struct.pack(">Q", n))
        self._sock.setblocking(True)
        # Masked with zeros: as good as any to who unmasks.
        self._sock.sendall(bytes([0x80 | kind]) + length + bytes(4) + data)
        self._sock.setblocking(False)
        return n

    def _message(self):
        """(kind, payload) of the next whole one, or None."""
        if len(self._in) < 2:
            return None
        kind, n, at = self._in[0] & 15, self._in[1] & 127, 2
        if n >= 126:
            at = 4 if n == 126 else 10
            if len(self._in) < at:
                return None
            n = int.from_bytes(self._in[2:at], "big")
        if len(self._in) < at + n:
            return None
        payload = bytes(self._in[at:at + n])
        del self._in[:at + n]
        return kind, payload

    def closing(self):
        """Reads to the end; (code, text) of the closing message, or None."""
        self._sock.setblocking(True)
        while self.why is None:
            try:
                if not self.recvmsg(65536)[0]:
                    break
            except BlockingIOError:
                pass
        return self.why

    def recvmsg(self, size, _=0):
        data = self._sock.recv(size)
        self._in += data
        out = b""
        while (message := self._message()) is not None:
            if message[0] == self.CLOSE:
                self.why = (int.from_bytes(message[1][:2], "big"),
                            message[1][2:].decode())
                return out, [], 0, None
            out += message[1]
        if data and not out:
            raise BlockingIOError
        return out, [], 0, None


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
