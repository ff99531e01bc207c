"""Where programs of others are that tests talk to (`deploy/install-deps peers`
puts them there), and Perfetto's Trace Processor among them.

Knows nothing of Tributary; every program of the tests may import it.
"""

import atexit
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def folder():
    """Of everything that was fetched."""
    cache = os.environ.get("XDG_CACHE_HOME") or \
        os.path.expanduser("~/.cache")
    return os.environ.get("TRIBUTARY_PEERS") or \
        os.path.join(cache, "tributary", "peers")


def program(name):
    """The command line of `perfetto`, `traced` or `traced_probes`; None when
    it is not there."""
    run = os.path.join(folder(), "perfetto", "run")
    return [run, name] if os.access(run, os.X_OK) else None


class CannotRead(Exception):
    """Trace Processor refuses the trace; its words."""


class BadQuery(Exception):
    """Trace Processor refuses the SQL; its words."""


class TraceProcessor:
    """Answers SQL about traces.  One process serves all programs of a run: the
    first that asks starts it, and it ends by itself when nobody has asked for
    a minute.  Is there, or is not: available()."""

    def __init__(self):
        self._connection = None
        self._files = None

    @staticmethod
    def wasm():
        return os.path.join(folder(), "trace_processor",
                            "trace_processor.wasm")

    @classmethod
    def available(cls):
        return os.access(cls.wasm(), os.R_OK) and \
            shutil.which("node") is not None

    def ask_file(self, path, *queries):
        """[(columns, rows)] of each query.  The file must not have been asked
        about with other contents."""
        request = json.dumps({"trace": os.path.abspath(path),
                              "queries": queries}) + "\n"
        reply = self._exchange(request.encode())
        if "error" in reply:
            raise CannotRead(reply["error"])
        out = []
        for answer in reply["answers"]:
            if "error" in answer:
                raise BadQuery(answer["error"])
            out.append((answer["columns"],
                        [tuple(row) for row in answer["rows"]]))
        return out

    def ask(self, data, *queries):
        """The same of a trace's bytes."""
        if self._files is None:
            self._files = tempfile.mkdtemp(prefix="trib-traces")
            atexit.register(shutil.rmtree, self._files, ignore_errors=True)
        # What a file of a name holds never changes.
        path = os.path.join(self._files, hashlib.sha256(data).hexdigest())
        if not os.path.exists(path):
            with open(path, "wb") as file:
                file.write(data)
        return self.ask_file(path, *queries)

    def forget(self):
        """Removes the files that ask() made."""
        if self._files is not None:
            for name in os.listdir(self._files):
                os.unlink(os.path.join(self._files, name))

    def _exchange(self, request):
        # One that was about to end may take a connection and not answer.
        for _ in range(3):
            try:
                if self._connection is None:
                    self._connection = self._connect().makefile("rwb")
                self._connection.write(request)
                self._connection.flush()
                line = self._connection.readline()
            except (BrokenPipeError, ConnectionResetError):
                line = b""
            if line.endswith(b"\n"):
                return json.loads(line)
            self._connection = None
        raise CannotRead("Trace Processor ends instead of answering")

    def _connect(self):
        home, path = _address()
        with open(os.path.join(home, "lock"), "w") as lock:
            # Whoever holds it may start the server and remove its socket.
            fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(OSError):
                return _connected(path)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            server = subprocess.Popen(
                ["node", os.path.join(HERE, "serve.mjs"), self.wasm(), path],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True)
            deadline = time.monotonic() + 60
            while True:
                with contextlib.suppress(OSError):
                    return _connected(path)
                if server.poll() is not None or time.monotonic() > deadline:
                    raise CannotRead("Trace Processor does not start; try: "
                                     + " ".join(map(str, server.args)))
                time.sleep(0.02)


def _address():
    """A folder of this user's, and the socket in it: one for each version of
    the server."""
    home = os.path.join(tempfile.gettempdir(),
                        f"tributary-peers-{os.getuid()}")
    os.makedirs(home, 0o700, exist_ok=True)
    if os.stat(home).st_uid != os.getuid():
        raise CannotRead(f"{home} is somebody else's")
    version = hashlib.sha256(TraceProcessor.wasm().encode())
    for name in ("serve.mjs", "trace_processor.mjs"):
        with open(os.path.join(HERE, name), "rb") as file:
            version.update(file.read())
    return home, os.path.join(home, version.hexdigest()[:16])


def _connected(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


trace_processor = TraceProcessor()
