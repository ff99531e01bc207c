"""Every trace that a test reads is looked at by `tributary inspect` as well:
the two have to find the same.

INSPECT_TRACES=no in the environment switches it off.
"""

import json
import os
import subprocess

from . import pb
from .daemon import environment

SERVICE_SEQUENCE = 1
CLEARED, NEEDS_STATE = 1, 2
BUFFER_COUNTERS = ("bytes_written", "bytes_overwritten", "chunks_written",
                   "chunks_overwritten", "chunks_discarded",
                   "write_wrap_count", "patches_failed", "abi_violations",
                   "trace_writer_packet_loss")
COUNTERS = ("chunks_discarded", "patches_discarded", "invalid_packets",
            "flushes_requested", "flushes_failed")

_noted = {}


def note(trace, key):
    """To be looked at when the test ends; the last one of a key."""
    _noted[key] = trace


def _varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def framed(raw_packets):
    """The bytes of a file that holds these packets."""
    return b"".join(b"\n" + _varint(len(p)) + p for p in raw_packets)


def inspect(data=None, path="-", flags=("--json",)):
    """Exit status, output, complaints."""
    done = subprocess.run(
        [os.environ["TRIBUTARY"], "inspect", *flags, path], input=data,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    return done.returncode, done.stdout, done.stderr.decode()


def report(data=None, path="-"):
    """What --json says of bytes, or of a file."""
    status, out, err = inspect(data, path)
    assert status in (0, 1, 2) and not err, (status, err)
    return json.loads(out)


class _Sequence:
    def __init__(self):
        self.packets = self.gaps = self.undecodable = 0
        self.reasons = 0
        self.valid = False

    def take(self, packet):
        dropped = packet.previous_packet_dropped
        first = packet.first_packet_on_sequence or \
            (dropped == 1 and self.packets == 0)
        # Only the writer itself knows of a loss before its first packet.
        if dropped & packet.DATA_LOSS_SMB_FULL or dropped and not first:
            self.gaps += 1
            self.reasons |= dropped
        self.packets += 1
        if packet.sequence_flags & CLEARED or packet.incremental_state_cleared:
            self.valid = True
        elif dropped:
            self.valid = False
        if packet.sequence_flags & NEEDS_STATE and not self.valid:
            self.undecodable += 1

    def told(self):
        return (self.packets, self.gaps, self.undecodable, self.reasons)


def _sequences(packets):
    out = {}
    for packet in packets:
        sequence = packet.trusted_packet_sequence_id
        if sequence > SERVICE_SEQUENCE:
            out.setdefault(sequence, _Sequence()).take(packet)
    return out


def _same(what, found, expected):
    assert found == expected, \
        f"inspect says of {what}: {found}, and the trace holds {expected}"


def _compare_stats(found, packets):
    stats = [p.trace_stats for p in packets
             if p.WhichOneof("data") == "trace_stats"
             and p.trusted_packet_sequence_id <= SERVICE_SEQUENCE]
    if not stats:
        _same("the statistics", found["trace_stats"], None)
        return
    for name in COUNTERS:
        _same(name, found["trace_stats"].get(name, 0), getattr(stats[-1], name))
    buffers = found["trace_stats"]["buffer_stats"]
    _same("buffers", len(buffers), len(stats[-1].buffer_stats))
    for ours, theirs in zip(buffers, stats[-1].buffer_stats):
        for name in BUFFER_COUNTERS:
            _same(name, ours.get(name, 0), getattr(theirs, name))


def compare(trace, found):
    """Whether what --json says is what Python's reader finds in the packets."""
    _same("whole packets", found["file"]["packets"], len(trace.stored))
    assert found["verdict"] in ("whole", "lossy", "wrong_times",
                                "unfinished"), found["text"]
    _same("damage", found["file"]["n_damages"], 0)
    _same("the file's end", found["file"]["tail"], None)
    # Anew: a test may have changed those that it was given.
    packets = [pb.TracePacket.FromString(raw) for raw in trace.raw]
    _same("packets", found["packets"], len(packets))
    sequences = _sequences(packets)
    _same("sequences", {
        s["id"]: (s["packets"], s["gaps"], s["undecodable_packets"],
                  sum(s["reasons"])) for s in found["sequences"]},
        {i: s.told() for i, s in sequences.items()})
    _same("gaps", found["gaps"], sum(s.gaps for s in sequences.values()))
    _same("the service's packets", found["service_packets"], len(packets) -
          sum(s.packets for s in sequences.values()))
    kinds = {}
    for packet in packets:
        kind = packet.WhichOneof("data") or ""
        kinds[kind] = kinds.get(kind, 0) + 1
    _same("types", {t["name"]: t["packets"] for t in found["packet_types"]},
          kinds)
    _compare_stats(found, packets)


def noted():
    """What was noted since the last time: [(key, trace)]."""
    out = [(key, trace) for key, trace in _noted.items() if trace.stored]
    _noted.clear()
    return out


def check(traces):
    """[(name, bytes, what --json says)] of those, each compared."""
    out = []
    for key, trace in traces:
        data = framed(trace.stored)
        out.append((str(key), data, report(data)))
        if os.environ.get("INSPECT_TRACES") != "no":
            compare(trace, out[-1][2])
    return out
