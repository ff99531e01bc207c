"""When two replies mean the same: ids, times and sizes may differ."""

# Ids: what the other side said first decides, and then it must be consistent.
IDS = {
    "GetAsyncCommandResponse.SetupDataSource.new_instance_id": "instance",
    "GetAsyncCommandResponse.StartDataSource.new_instance_id": "instance",
    "GetAsyncCommandResponse.StopDataSource.instance_id": "instance",
    "GetAsyncCommandResponse.Flush.data_source_ids": "instance",
    "GetAsyncCommandResponse.Flush.request_id": "flush",
    "GetAsyncCommandResponse.ClearIncrementalState.data_source_ids":
        "instance",
    "DataSourceConfig.target_buffer": "buffer",
    "DataSourceConfig.tracing_session_id": "session",
    "TracingServiceState.Producer.id": "producer",
    "TracingServiceState.DataSource.producer_id": "producer",
}

# What is listed in any order.
SETS = {
    "TracingServiceState.data_sources": lambda d: d.ds_descriptor.name,
    "TracingServiceState.producers": lambda p: p.name,
}

# Left out by today's service for its own machine; ours says it.
MAY_BE_SAID = {
    "TracingServiceState.Producer.machine_name",
}

# Any value will do, if both have one.
FREE = {
    "TracingServiceState.Producer.pid",
    "TracingServiceState.Producer.uid",
    "TracingServiceState.tracing_service_version",
    "CloneSessionResponse.uuid_msb",
    "CloneSessionResponse.uuid_lsb",
}

# Ids in what the client sends, translated before it is sent.
SENT_IDS = {
    "NotifyDataSourceStartedRequest.data_source_id": "instance",
    "NotifyDataSourceStoppedRequest.data_source_id": "instance",
    "RegisterTraceWriterRequest.target_buffer": "buffer",
    "CommitDataRequest.ChunksToMove.target_buffer": "buffer",
    "CommitDataRequest.ChunkToPatch.target_buffer": "buffer",
    "CommitDataRequest.flush_request_id": "flush",
}


def rule_name(message, field):
    name = message.DESCRIPTOR.full_name.removeprefix("perfetto.protos.")
    return f"{name}.{field.name}"


def is_message(field):
    return field.type == field.TYPE_MESSAGE


def is_repeated(field):
    return field.label == field.LABEL_REPEATED


class Ids:
    """Recorded id -> our id, for each kind of id."""

    def __init__(self):
        self.known = {}

    def learn(self, kind, recorded, ours):
        """Whether the pair fits what was seen before."""
        return self.known.setdefault((kind, recorded), ours) == ours

    def translate(self, message):
        """Rewrites the ids in a message to be sent."""
        for field, value in message.ListFields():
            if is_message(field):
                for part in value if is_repeated(field) else [value]:
                    self.translate(part)
                continue
            kind = SENT_IDS.get(rule_name(message, field))
            if kind is not None:
                setattr(message, field.name,
                        self.known.get((kind, value), value))


def differences(recorded, ours, ids, where=""):
    """Sentences about what does not mean the same; empty is good."""
    out = []
    for field in recorded.DESCRIPTOR.fields:
        rule = rule_name(recorded, field)
        path = f"{where}{field.name}"
        a, b = getattr(recorded, field.name), getattr(ours, field.name)
        if is_repeated(field):
            if len(a) != len(b):
                out.append(f"{path}: {len(a)} recorded, {len(b)} here")
                continue
            if rule in SETS:
                a, b = (sorted(x, key=SETS[rule]) for x in (a, b))
            pairs = list(zip(a, b))
        else:
            if is_message(field) and \
                    recorded.HasField(field.name) != ours.HasField(field.name):
                out.append(f"{path}: only on one side")
                continue
            pairs = [(a, b)]
        for left, right in pairs:
            if is_message(field):
                if recorded.HasField(field.name) if not is_repeated(field) \
                        else True:
                    out += differences(left, right, ids, path + ".")
            elif rule in IDS:
                if bool(left) != bool(right) or (
                        left and not ids.learn(IDS[rule], left, right)):
                    out.append(f"{path}: {left} recorded, {right} here")
            elif rule in FREE:
                if field.has_presence and recorded.HasField(field.name) != \
                        ours.HasField(field.name):
                    out.append(f"{path}: only on one side")
            elif left != right and not (rule in MAY_BE_SAID and not left):
                out.append(f"{path}: {left!r} recorded, {right!r} here")
    return out


def paths(message, where=""):
    """Every field that is set somewhere in a message."""
    out = set()
    for field, value in message.ListFields():
        path = f"{where}{field.name}"
        out.add(path)
        if is_message(field):
            for part in value if is_repeated(field) else [value]:
                out |= paths(part, path + ".")
    return out


def shape(trace):
    """{payload: every field set in any packet with that payload}."""
    out = {}
    for packet in trace.packets:
        kind = packet.WhichOneof("data")
        out.setdefault(kind, set()).update(paths(packet))
    return out


# Set in the recording alone, or by us alone, without a difference in meaning:
# payload -> fields.
FORGIVEN = {
    "trace_stats": {
        # Zero there, or here, depending on the run.
        "trace_stats.buffer_stats.padding_bytes_written",
        "trace_stats.buffer_stats.padding_bytes_cleared",
        "trace_stats.buffer_stats.write_wrap_count",
        "trace_stats.buffer_stats.readaheads_succeeded",
        "trace_stats.buffer_stats.readaheads_failed",
        # What was recorded over TCP has the boot clock of the machine that it
        # was recorded on; ours says so.
        "trace_stats.tributary_foreign_clocks",
        "trace_stats.tributary_foreign_clocks.offset_ns",
        "trace_stats.tributary_foreign_clocks.packets",
        "trace_stats.tributary_foreign_clocks.producer_id",
        "trace_stats.tributary_foreign_clocks.producer_name",
    },
    # Today's service writes trigger_timeout_ms there; ours writes the
    # consumer's config as it came.
    "trace_config": {"trace_config.duration_ms"},
    # Ours says more.
    "system_info": {"system_info.hz", "system_info.machine_name"},
    # Today's service always claims a loss before the first packet of a
    # sequence; ours does when there was one.
    "sys_stats": {"previous_packet_dropped"},
    # Ours names them; the real one had not seen any yet.
    "trace_provenance": {
        "trace_provenance.buffers.sequences",
        "trace_provenance.buffers.sequences.id",
        "trace_provenance.buffers.sequences.producer_id",
    },
    # Ours signs every packet of its own.
    "remote_clock_sync": {"trusted_packet_sequence_id"},
}

# Where these stand among the others has no meaning.
ANYWHERE = {"trigger"}

# How often producers were flushed: ours does it once more, at the stop.
FLUSHES = {"flush_started", "all_data_sources_flushed"}


def first_kinds(trace):
    """The payloads in the order in which they first appear."""
    kinds = [k for k in trace.kinds() if k not in ANYWHERE]
    return [k for n, k in enumerate(kinds) if k not in kinds[:n]]


def lifecycle(trace):
    return [e for e in trace.events() if e not in FLUSHES]


def trace_differences(recorded, ours):
    """Kinds of packets, their order, and the fields in them."""
    out = []
    for what, get in (("kinds", first_kinds), ("events", lifecycle),
                      ("all kinds", lambda t: set(t.kinds())),
                      ("all events", lambda t: set(t.events()))):
        if get(recorded) != get(ours):
            out.append(f"{what}: {get(recorded)} recorded, {get(ours)} here")
    theirs, mine = shape(recorded), shape(ours)
    for kind in theirs.keys() & mine.keys():
        forgiven = FORGIVEN.get(kind, set())
        missing = theirs[kind] - mine[kind] - forgiven
        extra = mine[kind] - theirs[kind] - forgiven
        if missing:
            out.append(f"{kind}: without {sorted(missing)}")
        if extra:
            out.append(f"{kind}: additionally {sorted(extra)}")
    return out
