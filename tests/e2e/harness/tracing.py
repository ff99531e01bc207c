"""Programs that trace themselves with libtributary (track_events), in a
session on each way to a service."""

import os
import subprocess
import unittest

from . import imported, real
from .consumer import source
from .daemon import environment
from .device import RelayCase
from .loop import SCALE

SOURCE = "track_event"


def track_event(**fields):
    """A data source of a config; fields of TrackEventConfig."""
    out = source(SOURCE)
    for key, value in fields.items():
        if isinstance(value, list):
            getattr(out.config.track_event_config, key).extend(value)
        else:
            setattr(out.config.track_event_config, key, value)
    return out


class Tracing:
    """A running track_events."""

    def __init__(self, case, address, *arguments):
        self.case = case
        self._err_path = case.path(f"tracing{len(case.programs)}")
        with open(self._err_path, "wb") as err:
            self.process = subprocess.Popen(
                [os.environ[case.program_variable], address, *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err,
                env=environment())
        self.pid = self.process.pid
        os.set_blocking(self.process.stdout.fileno(), False)

    def say(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def do(self, line):
        """What it says besides "ok", when it has done so."""
        self.say(line)
        said = b""

        def answered():
            nonlocal said
            said += self.process.stdout.read() or b""
            return said.endswith(b"\n") or self.process.poll() is not None

        self.case.until(answered, f"the program has done {line!r}")
        words = said.decode().split()
        self.case.assertEqual(words[-1:], ["ok"], self._errors())
        return words[:-1]

    def _errors(self):
        with open(self._err_path, errors="replace") as file:
            return file.read()

    def wait(self):
        """Its exit status, when it has ended."""
        status = self.process.wait(60 * SCALE)
        self.process.stdin.close()
        self.process.stdout.close()
        return status

    def end(self):
        self.process.stdin.close()
        self.case.assertEqual(self.wait(), 0, self._errors())

    def stop(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()


needed = unittest.skipUnless(
    imported.available(), "no Trace Processor; deploy/install-deps peers")


class TracingCase(RelayCase):
    """A program, a session, and what SQL finds."""

    all_machines = False
    program_variable = "TRACK_EVENTS"

    def setUp(self):
        super().setUp()
        self.programs = []

    def address(self):
        """Starts a service; where programs connect."""
        return self.daemon().producer_path

    def settle(self):
        """Until what the program handed over is where the session is."""

    def program(self, *arguments):
        program = Tracing(self, self.at, *arguments)
        self.programs.append(program)
        self.things.append(program)
        return program

    def wait_offered(self, count=1):
        consumer = self.consumer()
        self.until(lambda: len([
            s for s in consumer.query().data_sources
            if s.ds_descriptor.name == SOURCE]) == count,
            "track events are offered")
        consumer.close()

    def begin(self, *, size_kb=65536, fields=None, memory_kb=None, extra=(),
              **options):
        """A program in a session; fields of TrackEventConfig."""
        self.at = self.address()
        program = self.program(*([str(memory_kb)] if memory_kb else []))
        self.wait_offered()
        self.consumer_ = self.session(
            track_event(**(fields or {})), *extra, size_kb=size_kb,
            trace_all_machines=self.all_machines, **options)
        program.do("enabled")
        return program

    def finish_session(self, program):
        program.do("flush")
        self.settle()
        self.consumer_.flush(60_000)
        self.consumer_.stop()
        program.end()

    def finish(self, program):
        """The session's whole Trace."""
        self.finish_session(program)
        return self.consumer_.read()

    def traced(self, *lines, fields=None, **options):
        program = self.begin(fields=fields, **options)
        said = [program.do(line) for line in lines]
        self.said = said[-1]
        self.pid = program.pid
        trace = self.finish(program)
        self.assert_whole(trace)
        return trace

    def assert_whole(self, trace):
        self.assert_clean_stats(trace.stats())
        self.assertEqual([p for p in trace.losses()
                          if p.previous_packet_dropped > 1], [])


# Ways to a service, in front of a TracingCase.

class OverTcp:
    """Without shared memory: the library sends its chunks."""

    all_machines = True

    def address(self):
        return self.daemon(producer=["127.0.0.1:0"]).address(
            "producers", "tcp")


class ByRelay:
    """By tributary-relay and its link."""

    all_machines = True

    def address(self):
        self.collector()
        self.relay_device = self.device("a", memory_kb=64 * 1024)
        self.wait_linked()
        return self.relay_device.socket

    def settle(self):
        self.wait_empty()


class WithTraced:
    """Perfetto's service."""

    def address(self):
        traced = real.Traced(self.folder)
        self.daemons.append(traced)
        traced.start()
        return traced.producer_path
