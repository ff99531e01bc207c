"""A real PostgreSQL of this process's own: on a UNIX socket and on loopback."""

import atexit
import csv
import glob
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from . import ports
from .archive import CONTENTS

_FOLDERS = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
BIN = _FOLDERS[-1] if _FOLDERS else None
MISSING = [name for name in ("initdb", "pg_ctl", "postgres", "psql")
           if BIN is None or not os.path.exists(os.path.join(BIN, name))]
PASSWORD = "hidden pass%word"


def quoted(password):
    return password.replace("%", "%25").replace(" ", "%20")


class Server:
    """Trusts who comes by the socket; by TCP it wants the password."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="trib", dir="/tmp")
        self.port = ports.free_port()
        self.data = os.path.join(self.folder, "data")
        self.number = 0
        self.as_user = []
        if os.geteuid() == 0:  # it refuses to be root
            os.chmod(self.folder, 0o711)
            shutil.chown(self.folder, "nobody")
            self.as_user = ["setpriv", "--reuid=nobody", "--regid=nogroup",
                            "--clear-groups"]
        secret = os.path.join(self.folder, "secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write(PASSWORD + "\n")
        os.chmod(secret, 0o644)
        self.run("initdb", "-D", self.data, "-U", "ann", "-E", "UTF8",
                 "--locale=C.UTF-8", "--no-sync", "-A", "scram-sha-256",
                 "--auth-local=trust", f"--pwfile={secret}")
        self.certificate = os.path.join(self.folder, "ca.pem")
        self.key = os.path.join(self.folder, "key.pem")
        subprocess.run([*self.as_user, "openssl", "req", "-x509", "-nodes",
                        "-newkey", "rsa:2048", "-days", "2", "-subj",
                        "/CN=127.0.0.1", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", self.key,
                        "-out", self.certificate], check=True,
                       capture_output=True, cwd="/")
        self.start()

    def run(self, program, *words):
        subprocess.run([*self.as_user, os.path.join(BIN, program), *words],
                       check=True, stdin=subprocess.DEVNULL,
                       stdout=sys.stderr, timeout=120, cwd="/",
                       env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})

    def start(self):
        self.run("pg_ctl", "-D", self.data, "-w", "-t", "100", "-l",
                 os.path.join(self.folder, "log"), "-o",
                 f"-p {self.port} -k {self.folder} -h 127.0.0.1 "
                 "-c fsync=off -c ssl=on "
                 f"-c ssl_cert_file={self.certificate} "
                 f"-c ssl_key_file={self.key}", "start")

    def pid(self):
        with open(os.path.join(self.data, "postmaster.pid"),
                  encoding="ascii") as file:
            return int(file.readline())

    def kill(self):
        """As a crash: nobody is told."""
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def signal(self, number):
        """To the server and all that serve connections."""
        pid = self.pid()
        children = subprocess.run(["pgrep", "-P", str(pid)], text=True,
                                  check=False, stdout=subprocess.PIPE).stdout
        for one in [pid, *map(int, children.split())]:
            os.kill(one, number)

    def stop(self):
        try:
            os.kill(self.pid(), signal.SIGCONT)
            self.run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        except (OSError, ValueError, subprocess.CalledProcessError):
            pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def psql(self, database, sql):
        """What is printed, as CSV; NULL is \\N."""
        return subprocess.run(
            [os.path.join(BIN, "psql"), "-XAt", "--csv", "-P", "null=\\N",
             "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p",
             str(self.port), "-U", "ann", "-d", database],
            input=sql, check=True, text=True, stdout=subprocess.PIPE,
            timeout=60).stdout


class Database:
    """One of its own, empty."""

    def __init__(self, server, encoding="UTF8"):
        server.number += 1
        self.server = server
        self.name = f"fleet{server.number}"
        server.psql("postgres", f"CREATE DATABASE {self.name} ENCODING "
                    f"'{encoding}' LOCALE 'C' TEMPLATE template0")
        self.url = (f"postgresql://ann@/{self.name}?host={server.folder}"
                    f"&port={server.port}")
        self.tcp = (f"postgresql://ann:{quoted(PASSWORD)}@127.0.0.1:"
                    f"{server.port}/{self.name}")

    def sql(self, query):
        """Rows of texts; None is NULL."""
        out = self.server.psql(self.name, query)
        return [tuple(None if cell == "\\N" else cell for cell in row)
                for row in csv.reader(io.StringIO(out))]

    def contents(self, collector):
        """As harness.archive has it, of one collector, without its name."""
        tables = []
        for query in CONTENTS:
            query = query.replace("hex(sha256)", "upper(encode(sha256,'hex'))")
            for name in ("uuid", "recording_uuid"):
                query = query.replace(
                    f" hex({name})",
                    f" coalesce(upper(encode({name}, 'hex')), '')")
            rows = self.sql(query)
            tables.append([
                tuple(cell[len(collector) + 1:] if cell is not None and
                      cell.startswith(collector + "/") else cell
                      for cell in row) for row in rows if row[0] != "6"])
        return tables


_SERVER = None


def server():
    """One for all cases of a process."""
    global _SERVER
    if _SERVER is None:
        _SERVER = Server()
        atexit.register(_SERVER.stop)
    return _SERVER


def texts(tables):
    """Rows of SQLite as those of psql are."""
    return [[tuple(None if cell is None else str(cell) for cell in row)
             for row in table] for table in tables]
