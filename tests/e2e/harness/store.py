"""A real object store, and a front before it that fails as a network does."""

import atexit
import hashlib
import http.client
import http.server
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from . import ports

PROGRAMS = ("radosgw", "radosgw-admin", "ceph", "ceph-mon", "ceph-osd",
            "ceph-authtool", "monmaptool")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]

UPLOAD = os.environ.get("TRIBUTARY_UPLOAD") or os.path.join(
    os.environ.get("BUILD", "build"), "client", "upload", "tributary-upload")
KEYS = {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "SK"}


class Gateway:
    """The RADOS gateway, from its start to the end of this process."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="trib", dir="/tmp")
        self.port = ports.free_port()
        script = os.path.join(os.path.dirname(__file__), "radosgw")
        command = [script, self.folder, str(self.port),
                   str(ports.free_port())]
        if os.geteuid() == 0:  # it refuses to be root
            os.chmod(self.folder, 0o711)
            shutil.chown(self.folder, "nobody")
            command = ["setpriv", "--reuid=nobody", "--regid=nogroup",
                       "--clear-groups", *command]
        try:
            subprocess.run(command, check=True, timeout=280,
                           stdin=subprocess.DEVNULL, stdout=sys.stderr)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        for name in ("rgw", "osd", "mon"):
            try:
                with open(f"{self.folder}/{name}.pid",
                          encoding="ascii") as file:
                    os.kill(int(file.read()), signal.SIGKILL)
            except (OSError, ValueError):
                pass
        shutil.rmtree(self.folder, ignore_errors=True)


class Front(http.server.ThreadingHTTPServer):
    """Passes requests on, unless `fault` says otherwise.

    fault(request) is called before a request is passed on, and again with
    request.answer set before the answer goes back.  It returns None: go on;
    "cut": the connection ends; or (status, headers): the answer instead.
    """

    daemon_threads = True

    def __init__(self, gateway):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.gateway = gateway
        self.fault = lambda request: None
        self.requests = []  # (method, path), as they came
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """Clients that are killed are what this is for."""

    def stop(self):
        self.shutdown()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def _asked(self):
        """False: the request has had its answer."""
        verdict = self.server.fault(self)
        if verdict is None:
            return True
        if verdict == "cut":
            self.close_connection = True
            return False
        status, headers = verdict
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def _pass_on(self):
        self.answer = None
        self.came = time.monotonic()
        with self.server.lock:
            self.server.requests.append((self.command, self.path))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._asked():
            return
        upstream = http.client.HTTPConnection("127.0.0.1",
                                              self.server.gateway.port)
        upstream.putrequest(self.command, self.path, skip_host=True,
                            skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() != "expect":
                upstream.putheader(name, value)
        upstream.endheaders(body)
        self.answer = upstream.getresponse()
        data = self.answer.read()
        if self._asked():
            self.send_response_only(self.answer.status)
            for name, value in self.answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding",
                                        "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length",
                             self.answer.getheader("Content-Length")
                             if self.command == "HEAD" else str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        upstream.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on


_GATEWAY = None


def gateway():
    """One for all cases of a process."""
    global _GATEWAY
    if _GATEWAY is None:
        _GATEWAY = Gateway()
        atexit.register(_GATEWAY.stop)
    return _GATEWAY


class Bucket:
    """A bucket of its own, behind a front of its own."""

    def __init__(self, folder):
        """Named after a folder that nobody else has."""
        # No name may end with a sign that names of folders may end with.
        self.name = "b-" + os.path.basename(folder).lower().replace(
            "_", "-") + "-b"
        self.url = f"s3://{self.name}/fleet"
        self.gateway = gateway()
        self.front = Front(self.gateway)
        status, _, body = self.signed("PUT", "")
        if status != 200:
            raise RuntimeError(f"no bucket {self.name}: {status} {body}")

    def stop(self):
        for key in self.keys():
            self.signed("DELETE", key)
        self.front.stop()

    def signed(self, method, key, query="", data=None):
        """A request as `curl` signs it; returns (status, headers, body)."""
        out = subprocess.run(
            ["curl", "-s", "-i", "-X" if method != "HEAD" else "-I",
             *([method] if method != "HEAD" else []),
             "--aws-sigv4", "aws:amz:us-east-1:s3", "-u", "AK:SK",
             "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD",
             *(["--data-binary", data] if data is not None else []),
             f"http://127.0.0.1:{self.gateway.port}/{self.name}/"
             f"{urllib.parse.quote(key, safe='/~')}{query}"],
            check=True, stdout=subprocess.PIPE, timeout=60).stdout
        head, _, body = out.partition(b"\r\n\r\n")
        return int(head.split()[1]), head, body

    def keys(self):
        """The store lists a thousand at a time."""
        found = []
        while True:
            after = urllib.parse.quote(found[-1], safe="") if found else ""
            body = self.signed("GET", "", "?encoding-type=url&list-type=2" +
                               (f"&start-after={after}" if after else ""))[2]
            found += [urllib.parse.unquote(part.split("</Key>")[0])
                      for part in body.decode().split("<Key>")[1:]]
            if b"<IsTruncated>true" not in body:
                return sorted(found)

    def uploads(self):
        """How many uploads in parts are not completed."""
        return self.signed("GET", "", "?uploads=")[2].count(b"<UploadId>")

    def settings(self, path, **more):
        """Writes settings of tributary-upload."""
        settings = {"url": self.url, "endpoint": self.front.endpoint,
                    "min_retry_ms": 10, "max_retry_ms": 100, "part_mb": 16,
                    **more}
        with open(path, "w", encoding="utf-8") as file:
            for name, value in settings.items():
                file.write(f"{name}: {json.dumps(value)}\n")


def catalogue(folder, path, data, sha256=None):
    """Adds a file to an archive, with a row as the archiver would make it."""
    full = os.path.join(folder, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as file:
        file.write(data)
    db = sqlite3.connect(os.path.join(folder, "catalog.db"), timeout=60)
    db.execute("PRAGMA foreign_keys = ON")
    row = db.execute(
        "INSERT INTO segments (path, bytes, mtime_ns, sha256, verdict,"
        " problem, uuid, recording, number, is_last, unanswered, machine,"
        " packets, lost, first_ns, last_ns, class) VALUES"
        " (?,?,1,?,'whole','',?,'always',1,0,0,?,3,1,1000,2000,10)",
        (path, len(data), sha256 or hashlib.sha256(data).digest(),
         b"\1" * 16, 'a "kiosk"')).lastrowid
    db.execute("INSERT INTO machines VALUES (?,7,?,3,100,1000,2000)",
               (row, 'a "kiosk"'))
    db.execute("INSERT INTO losses VALUES"
               " (?,0,'1 chunk lost','full','chunk','session',1,0,NULL,7,0)",
               (row,))
    db.execute("INSERT INTO triggers VALUES (?,0,'drop','app',7,1500,0)",
               (row,))
    db.execute("INSERT INTO data_sources VALUES (?,'linux.ftrace')", (row,))
    db.execute("INSERT OR IGNORE INTO processes (name, machine, pid)"
               " VALUES ('chromium', ?, 42)", ('a "kiosk"',))
    db.execute("INSERT INTO seen SELECT ?, id FROM processes WHERE pid = 42",
               (row,))
    db.commit()
    db.close()


def rows(folder, sql="SELECT path, stored_state FROM segments ORDER BY path"):
    db = sqlite3.connect(os.path.join(folder, "catalog.db"), timeout=60)
    found = db.execute(sql).fetchall()
    db.close()
    return found
