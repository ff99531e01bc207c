"""Chromium by its DevTools protocol: pages, keys, clicks, scripts, pictures."""

import base64
import json
import os
import re
import subprocess
import time
import urllib.request

from .loop import SCALE
from .web import CHROMIUM, WebSocket


class _Place:
    """Where a WebSocket connects."""

    def __init__(self, port):
        self.host = f"127.0.0.1:{port}"
        self._port = port

    def connect(self):
        import socket
        return socket.create_connection(("127.0.0.1", self._port),
                                        timeout=60 * SCALE)


class Navigated(AssertionError):
    """The page went elsewhere before it could answer."""


class Page:
    """A tab, commanded one call at a time."""

    def __init__(self, port, path):
        self._socket = WebSocket(_Place(port), origin=None, path=path)
        self._number = 0

    def close(self):
        self._socket.close()

    def _receive(self):
        self._socket.setblocking(True)
        text = b""
        while True:
            try:
                text += self._socket.recvmsg(1 << 20)[0]
            except BlockingIOError:
                continue
            yield from self._messages(text)
            text = self._rest

    def _messages(self, text):
        """Whole ones of JSON; messages come in one piece or glued together."""
        decoder, at, text = json.JSONDecoder(), 0, text.decode()
        while at < len(text):
            message, at = decoder.raw_decode(text, at)
            yield message
        self._rest = b""

    def call(self, method, **parameters):
        self._number += 1
        self._socket.send(json.dumps(
            {"id": self._number, "method": method,
             "params": parameters}).encode(), kind=WebSocket.TEXT)
        for message in self._receive():
            if message.get("id") == self._number:
                if "navigated" in str(message.get("error")):
                    raise Navigated(message["error"])
                if "error" in message:
                    raise AssertionError(message["error"])
                return message["result"]

    def run(self, script):
        """The value of an expression, promises awaited."""
        done = self.call("Runtime.evaluate", expression=script,
                         awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise AssertionError(done["exceptionDetails"])
        return done["result"].get("value")

    def wait(self, script, what):
        """Until an expression is true; for a minute."""
        end = time.monotonic() + 60 * SCALE
        while time.monotonic() < end:
            try:
                if value := self.run(script):
                    return value
            except Navigated:
                continue
        raise AssertionError(f"{what}: not in time")

    def key(self, name, text=""):
        code = {"Tab": 9, "Enter": 13}.get(name, 0)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                      windowsVirtualKeyCode=code,
                      **({"text": text} if text and kind == "keyDown" else {}))

    def write(self, text):
        self.call("Input.insertText", text=text)

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait(f"location.href.startsWith({json.dumps(url)}) && "
                  "document.readyState == 'complete'", f"{url} is there")

    def picture(self, path, width, height, dark=False, whole=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}])
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call(
                "Page.captureScreenshot", captureBeyondViewport=whole)["data"]))


class Browser:
    """Chromium with a page; ended by its number."""

    def __init__(self, folder, name="devtools"):
        profile = os.path.join(folder, name)
        self._log = open(profile + ".log", "w+b")
        self._process = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
             f"--user-data-dir={profile}", "--remote-debugging-port=0",
             "--remote-allow-origins=*", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            start_new_session=True)
        self._pages = []
        self.port = None
        try:
            self._find_port(profile)
        except BaseException:
            self.quit()
            raise

    def _find_port(self, profile):
        end = time.monotonic() + 60 * SCALE
        while self.port is None:
            with open(profile + ".log", errors="replace") as log:
                found = re.search(r"listening on ws://127\.0\.0\.1:(\d+)/",
                                  log.read())
            self.port = found and int(found[1])
            if time.monotonic() > end or self._process.poll() is not None:
                raise AssertionError("Chromium does not start")

    def tabs(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/json",
                                    timeout=60 * SCALE) as answer:
            return [tab for tab in json.load(answer) if tab["type"] == "page"]

    def page(self):
        tab = self.tabs()[0]
        page = Page(self.port, "/" + tab["webSocketDebuggerUrl"].split("/", 3)[3])
        self._pages.append(page)
        page.call("Page.enable")
        return page

    def quit(self):
        for page in self._pages:
            page.close()
        self._process.terminate()
        self._process.wait(60 * SCALE)
        self._log.close()
