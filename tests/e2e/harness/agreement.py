"""What `tributary inspect` and Perfetto's Trace Processor say of the same trace:
the two have to agree about machines, losses and times.

Knows nothing of tests; takes what --json says and what SQL answers.
"""

# Counters of the last TraceStats, by buffer and of all.
BUFFER = ("chunks_overwritten", "chunks_discarded", "chunks_written",
          "bytes_written", "patches_failed", "abi_violations",
          "trace_writer_packet_loss")
WHOLE = ("chunks_discarded", "patches_discarded", "flushes_requested",
         "flushes_failed")

# Rows of `stats` that are errors or data losses, and nothing that the trace
# lacks: advice about the config, flushes that lost nothing, and clocks
# that a producer made up or nobody read (inspect tells those as times that are
# not known).
NO_LOSS = {"config_write_into_file_no_flush", "config_write_into_file_discard",
           "traced_flushes_failed", "traced_final_flush_failed",
           "invalid_clock_snapshots", "trace_sorter_negative_timestamp_dropped",
           "clock_sync_failure_unknown_target_clock"}

QUERIES = {
    "stats": "select name, ifnull(idx, -1), value, severity from stats "
             "where value > 0",
    "machines": "select distinct raw_id from machine",
    "times": "select min(ts), max(ts), count(*) from (select ts from counter "
             "union all select ts from slice)",
}


def _stats(found):
    """{(name, buffer or -1): value} as Trace Processor calls them."""
    told = found["trace_stats"] or {}
    out = {(f"traced_{name}", -1): told.get(name, 0) for name in WHOLE}
    for index, buffer in enumerate(told.get("buffer_stats", ())):
        for name in BUFFER:
            out[f"traced_buf_{name}", index] = buffer.get(name, 0)
    return out


def _losses(found, rows):
    ours = {key: value for key, value in _stats(found).items() if value}
    theirs = {(name, idx): value for name, idx, value, _ in rows
              if (name, idx) in _stats(found)}
    for key in sorted({*ours, *theirs}):
        if ours.get(key, 0) != theirs.get(key, 0):
            yield (f"{key[0]}[{key[1]}] is {theirs.get(key, 0)} in Trace "
                   f"Processor, and {ours.get(key, 0)} in inspect")
    lost = {name for name, _, _, severity in rows
            if severity in ("error", "data_loss")} - NO_LOSS
    if lost and found["verdict"] == "whole":
        yield f"Trace Processor finds {sorted(lost)}, and inspect a whole trace"


def _machines(found, rows):
    ours = {machine["id"] for machine in found["machines"]}
    theirs = {raw_id for (raw_id,) in rows}
    # A machine that only said what it is has no row there, or no packets here.
    quiet = {m["id"] for m in found["machines"] if not m["packets"]} | {0}
    if (ours ^ theirs) - quiet:
        yield (f"machines {sorted(theirs)} are in Trace Processor, and "
               f"{sorted(ours)} in inspect")


def _times(found, rows):
    ((first, last, count),) = rows
    clocks = found["clocks"]
    remote = [m for m in found["machines"] if m["id"] and m["packets"]]
    # Of several remote machines v55 mixes up the clocks; what inspect cannot
    # place, Trace Processor puts somewhere.
    # A slice may be of a packet without a time.
    if not count or len(remote) > 1 or clocks["unresolved_packets"] or \
            "first_ns" not in clocks:
        return
    # A packet may hold older readings than its own time: vmstat's are taken
    # before it is written.
    slack = 10 ** 9
    if first < clocks["first_ns"] - slack or last > clocks["last_ns"] + slack:
        yield (f"slices and counters lie from {first} to {last} in Trace "
               f"Processor, and packets from {clocks['first_ns']} to "
               f"{clocks['last_ns']} in inspect")


def differences(found, answers):
    """Sentences, one for each; found: --json; answers: rows of QUERIES."""
    yield from _losses(found, answers["stats"])
    yield from _machines(found, answers["machines"])
    yield from _times(found, answers["times"])
