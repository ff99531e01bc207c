"""Splits the stream of a session that was cut, by the rules of
transport/segment/segment_splitter.h, as far as tests of the marks need them:
what begins and ends a file, and marks of losses, are left out."""

from .trace import SERVICE_SEQUENCE, Trace

CLEARED = 1  # SequenceFlags


def mark(packet):
    """The packet's SegmentCut; None: it is none."""
    return packet.tributary_segment_cut \
        if packet.HasField("tributary_segment_cut") else None


def split(trace):
    """A Trace for each segment."""
    segments, moved, is_open = [[]], set(), False
    for raw, packet in zip(trace.raw, trace.packets):
        sequence, cut = packet.trusted_packet_sequence_id, mark(packet)
        if cut:
            is_open = cut.phase == cut.BEGIN
            moved = {SERVICE_SEQUENCE}
            if is_open:
                segments.append([])
        if packet.sequence_flags & CLEARED or packet.incremental_state_cleared:
            moved.add(sequence)
        stays = is_open and (sequence not in moved or
                             packet.HasField("trace_stats"))
        segments[-2 if stays else -1].append(raw)
    return [Trace(raw) for raw in segments]


def joined(trace):
    """A Trace without what was repeated."""
    return Trace([raw for raw, packet in zip(trace.raw, trace.packets)
                  if not packet.tributary_repeated])
