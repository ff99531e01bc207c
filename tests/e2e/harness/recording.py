"""The `tributary` command as a child of a test."""

import os
import signal
import subprocess

from .case import Case
from .daemon import environment
from .trace import Trace


class Recording:
    """A running `tributary record`, or another of its commands."""

    def __init__(self, case, *args, command="record", stdin=None,
                 stdout=subprocess.DEVNULL, stderr=None, connect=None,
                 pass_fds=()):
        self.case = case
        self.err_path = case.path(f"stderr.{id(self)}")
        address = connect or case.daemons[0].addresses("consumers")[0]
        producers = (case.daemons[0].addresses("producers")[0]
                     if case.daemons else "")
        with open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(
                [os.environ["TRIBUTARY"], command, *args],
                stdin=stdin or subprocess.DEVNULL,
                stdout=stdout, stderr=stderr or err, pass_fds=pass_fds,
                cwd=case.folder,
                env=environment(PERFETTO_CONSUMER_SOCK_NAME=address,
                                PERFETTO_PRODUCER_SOCK_NAME=producers))
        case.addCleanup(self.process.wait)
        case.addCleanup(self.process.kill)

    @property
    def errors(self):
        with open(self.err_path, encoding="utf-8") as file:
            return file.read()

    def says(self, text):
        self.case.until(lambda: text in self.errors, f"it says {text!r}")

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def end(self, status=0):
        """Waits, with the producers of the test alive meanwhile."""
        self.case.until(lambda: self.process.poll() is not None,
                        "the command ends")
        self.case.assertEqual(self.process.returncode, status, self.errors)
        return self.errors


class RecordCase(Case):
    def run_command(self, command, *args, status=0, **options):
        """To its end; what it said on standard output and error."""
        out_path = self.path(f"stdout.{command}")
        with open(out_path, "wb") as out:
            errors = Recording(self, *args, command=command, stdout=out,
                               **options).end(status)
        with open(out_path, "rb") as out:
            return out.read(), errors

    def record(self, *args, **options):
        return Recording(self, *args, **options)

    def config(self, text):
        path = self.path("config.pbtx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def trace(self, name="t"):
        return Trace.from_file(self.path(name))

    def so_far(self, name="t"):
        return Trace.so_far(self.path(name))
