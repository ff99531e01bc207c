"""Reads traces and knows what a whole one looks like."""

import unittest

from . import imported, inspected, pb
from .expand import inflate, unzstd

# What only the service may write into a packet.
TRUSTED = ("trusted_uid", "trusted_pid", "trusted_packet_sequence_id",
           "machine_id")
SERVICE_SEQUENCE = 1


class Broken(AssertionError):
    """The bytes are not a sequence of whole packets."""


def read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Broken(f"a varint is cut at byte {at}")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return value, at


def split_file(data):
    """The packets of a trace file, every byte accounted for."""
    packets, at = [], 0
    while at < len(data):
        start = at
        tag, at = read_varint(data, at)
        if tag != 0x0A:
            raise Broken(f"field {tag >> 3} at byte {start}, not a packet")
        length, at = read_varint(data, at)
        if at + length > len(data):
            raise Broken(f"the packet at byte {start} is cut: {length} bytes "
                         f"promised, {len(data) - at} there")
        packets.append(data[at:at + length])
        at += length
    return packets


def split_cut_file(data):
    """The same of a file whose writer was killed: whole packets, and how many
    bytes lie behind them."""
    packets, at = [], 0
    while at < len(data):
        try:
            length = packet_length(data, at)
            (packet,) = split_file(data[at:at + length])
        except Broken:
            break
        at += length
        packets.append(packet)
    return packets, len(data) - at


def first_packet(data):
    """The bytes of the first packet, and where it ends."""
    end = packet_length(data, 0)
    (packet,) = split_file(data[:end])
    return packet, end


def packet_length(data, at):
    """Of the packet that begins there, with what stands before it."""
    _, behind_tag = read_varint(data, at)
    length, begin = read_varint(data, behind_tag)
    return begin + length - at


def expand(raw_packets):
    """(bytes, parsed) of those, with what is inside of compressed ones in
    their place."""
    parse = pb.TracePacket.FromString
    for raw in raw_packets:
        packet = parse(raw)
        kind = packet.WhichOneof("data")
        if kind == "compressed_packets":
            inner = inflate(packet.compressed_packets)
        elif kind == "zstd_compressed_packets":
            inner = unzstd(packet.zstd_compressed_packets)
        else:
            yield raw, packet
            continue
        for raw_inside in split_file(inner):
            yield raw_inside, parse(raw_inside)


class Trace:
    """Packets in order, parsed; raw holds their bytes.  Those that came
    compressed stand there as if they had not; stored has them as they came."""

    def __init__(self, raw_packets, path=None):
        self.stored = list(raw_packets)
        self.raw, self.packets = [], []
        for raw, packet in expand(self.stored):
            self.raw.append(raw)
            self.packets.append(packet)
        inspected.note(self, path or id(self))

    @classmethod
    def from_file(cls, path):
        with open(path, "rb") as file:
            return cls(split_file(file.read()), path)

    @classmethod
    def so_far(cls, path):
        """Of a file that is being written: a reader may see half a write(),
        and so half a packet at the end."""
        with open(path, "rb") as file:
            return cls(split_cut_file(file.read())[0], path)

    @classmethod
    def from_bytes(cls, data):
        return cls(split_file(data))

    def sql(self, query):
        """The rows that Perfetto's Trace Processor answers with; a test that
        asks is skipped where there is none."""
        (rows,) = self.ask(query)
        return rows

    def ask(self, *queries):
        """The rows of each, the trace being loaded once."""
        if not imported.available():
            raise unittest.SkipTest("no Trace Processor; "
                                    "deploy/install-deps peers")
        return imported.ask(inspected.framed(self.stored), *queries)

    def __len__(self):
        return len(self.packets)

    def stored_kinds(self):
        """Names of the payloads, in order, of what was stored."""
        return [pb.TracePacket.FromString(p).WhichOneof("data")
                for p in self.stored]

    def of(self, kind):
        """The packets whose payload is `kind`."""
        return [p for p in self.packets if p.WhichOneof("data") == kind]

    def kinds(self):
        """Names of the payloads, in order."""
        return [p.WhichOneof("data") for p in self.packets]

    def events(self):
        """Names of the lifecycle events, in order."""
        return [p.service_event.WhichOneof("event_type")
                for p in self.of("service_event")]

    def stats(self):
        """The last TraceStats in the trace."""
        return self.of("trace_stats")[-1].trace_stats

    def numbers(self):
        """{sequence id: numbers of its numbered packets, in file order}."""
        out = {}
        for packet in self.of("for_testing"):
            out.setdefault(packet.trusted_packet_sequence_id, []).append(
                packet.for_testing.counter)
        return out

    def losses(self):
        """Packets that say something before them was lost."""
        return [p for p in self.packets if p.previous_packet_dropped]
