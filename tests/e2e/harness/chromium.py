"""Debian's Chromium as a producer, and what a whole trace of it looks like."""

import os
import shutil
import signal
import subprocess
import urllib.request

from . import imported
from .daemon import environment
from .loop import SCALE

PAGE = ("data:text/html,<canvas></canvas><script>setInterval(()=>{let d="
        "document.createElement('p');d.textContent=Date.now();"
        "document.body.prepend(d);if(document.body.childNodes.length>50)"
        "document.body.lastChild.remove()},10)</script>")
CLEARED = 1  # TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
NEEDS_STATE = 2

CHROMIUM = shutil.which("chromium")


def _first_line(path):
    """Without its end; None: it is not there, or not yet whole."""
    if not os.path.exists(path):
        return None
    with open(path) as file:
        line = file.readline()
    return line[:-1] if line.endswith("\n") else None


class Browser:
    """Starts it, waits for its DevTools port and opens a busy page.

    Its processes connect to the producer socket that `socket` names.
    """

    def __init__(self, case, socket, name="profile"):
        profile = case.path(name)
        os.mkdir(profile)
        self._log = open(case.path(name + ".log"), "wb")
        self._process = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-dev-shm-usage",
             f"--user-data-dir={profile}",
             "--enable-features=EnablePerfettoSystemTracing",
             "--remote-debugging-port=0", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self._log,
            stderr=subprocess.STDOUT, start_new_session=True,
            env=environment(PERFETTO_PRODUCER_SOCK_NAME=socket, HOME=profile))
        try:
            self._open_page(case, os.path.join(profile, "DevToolsActivePort"))
        except BaseException:
            self.quit()
            raise

    @staticmethod
    def _open_page(case, port_file):
        case.until(lambda: _first_line(port_file) is not None,
                   "Chromium opens its DevTools port", timeout=60)
        port = int(_first_line(port_file))
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/json/new?" +
            urllib.request.quote(PAGE, safe=""), method="PUT")
        urllib.request.urlopen(request, timeout=30 * SCALE).close()

    def quit(self):
        """Ends the whole group that we started."""
        if self._process is None:
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._log.close()
        self._process = None


class TrackEvents:
    """Assertions for a Case about a trace of Chromium."""

    @staticmethod
    def processes(trace):
        """Pids of the processes whose threads wrote track events.

        All connections are the browser's, which opens them for its children:
        trusted_pid does not tell them apart, their descriptors do.
        """
        pids, writing = {}, set()
        for packet in trace.packets:
            sequence = packet.trusted_packet_sequence_id
            descriptor = packet.track_descriptor
            for part in (descriptor.thread, descriptor.process):
                if part.pid:
                    pids[sequence] = part.pid
            if packet.WhichOneof("data") == "track_event":
                writing.add(sequence)
        return {pids[s] for s in writing if s in pids}

    def assert_interned_names_resolve(self, trace):
        """Replays interning in order, as an importer does."""
        names, valid = {}, {}
        resolved = []
        for packet in trace.packets:
            sequence = packet.trusted_packet_sequence_id
            if packet.sequence_flags & CLEARED:
                names[sequence] = {}
                valid[sequence] = True
            known = names.setdefault(sequence, {})
            for entry in packet.interned_data.event_names:
                known[entry.iid] = entry.name
            event = packet.track_event
            if packet.WhichOneof("data") != "track_event" or \
                    event.WhichOneof("name_field") != "name_iid":
                continue
            if packet.sequence_flags & NEEDS_STATE:
                self.assertTrue(valid.get(sequence),
                                f"sequence {sequence} lost its state")
            self.assertIn(event.name_iid, known,
                          f"sequence {sequence}: a name was never interned")
            resolved.append(known[event.name_iid])
        return resolved

    def assert_chromium(self, trace):
        """Five processes at least, whole, with names that resolve."""
        self.assertGreaterEqual(len(self.processes(trace)), 5,
                                "processes in the trace")
        self.assertGreater(len(trace.of("track_event")), 1000)
        names = self.assert_interned_names_resolve(trace)
        self.assertGreater(len(names), 500)
        self.assertGreater(len(set(names)), 5)
        self.assertEqual(trace.losses(), [])
        if imported.available():
            self.assert_processes_by_sql(trace)
            self.assert_slices_by_sql(trace)

    def assert_processes_by_sql(self, trace):
        """What an importer knows of them at any time; nothing is lost."""
        pids = {pid for pid, in trace.sql("select pid from process")}
        self.assertLessEqual(self.processes(trace), pids)
        self.assertEqual(trace.sql(
            "select name, value from stats "
            "where severity = 'data_loss' and value > 0"), [])

    def assert_slices_by_sql(self, trace):
        """The same processes, with named threads and slices on them."""
        processes = trace.sql(
            "select p.pid, p.name, count(distinct t.utid), count(*), "
            "sum(s.dur > 0) from slice s "
            "join thread_track k on s.track_id = k.id "
            "join thread t using (utid) join process p using (upid) "
            "group by p.pid")
        # One may have written nothing but what belongs to no thread.
        self.assertGreaterEqual(len(processes), 5)
        self.assertLessEqual({pid for pid, *_ in processes},
                             self.processes(trace))
        for _, name, threads, slices, lasting in processes:
            self.assertTrue(name)  # its own, or that of /proc
            self.assertGreater(threads, 0, name)
            self.assertGreater(slices, 0, name)
            self.assertGreater(lasting, 0, name)
        threads = {name for name, in trace.sql("select name from thread")}
        self.assertLessEqual({"CrBrowserMain", "CrRendererMain"}, threads)
        ((slices, nameless),) = trace.sql(
            "select count(*), sum(name is null) from slice")
        self.assertGreater(slices, 500)
        self.assertEqual(nameless, 0)
