"""Every trace that a test reads or leaves behind is loaded by Perfetto's Trace
Processor, which must find nothing wrong with it: no row of `stats` that is an
error or a data loss, but those that the test says it causes.

Without Trace Processor (`deploy/install-deps peers`) nothing is checked;
IMPORT_TRACES=no in the environment switches it off, IMPORT_TRACES=say only
prints what would be wrong.
"""

import os
import sys

from google.protobuf.message import DecodeError
from peers import CannotRead, trace_processor

from . import agreement, inspected, pb

# Names of what is wrong with a trace.
WRONG = ("select distinct name from stats "
         "where severity in ('error', 'data_loss') and value > 0")

# Not a fault of the trace's but of its config's, and what most tests ask for:
# a session that writes into a file, without periodic flushes.
NO_FLUSH = "config_write_into_file_no_flush"
CONFIG = "select str_value from metadata where name = 'trace_config_pbtxt'"

# What a test names that leaves a damaged trace, by inspect's verdict; what
# Trace Processor makes of it is a matter of chance.
DAMAGED = "damaged"
# It refuses one that inspect reads.
UNREADABLE = "unreadable"

# How a packet begins whose one field is zstd_compressed_packets.
ZSTD = pb.TracePacket(zstd_compressed_packets=b"").SerializeToString()[:-1]

_wanted = os.environ.get("IMPORT_TRACES", "yes")


def causes(*names):
    """Of a test or a class of tests: each of these rows is in one of its
    traces, and no other."""
    def mark(test):
        test.causes = names
        return test
    return mark


def may_cause(*names):
    """The same of rows that chance decides about."""
    def mark(test):
        test.may_cause = names
        return test
    return mark


def available():
    return _wanted != "no" and trace_processor.available()


def sql(data, query):
    """The rows of a query about a trace's bytes."""
    (rows,) = ask(data, query)
    return rows


def ask(data, *queries):
    """The rows of each."""
    return [rows for _, rows in
            trace_processor.ask(_unpacked(data), *queries)]


def _marked(test, mark):
    method = getattr(test, test._testMethodName)
    return {*getattr(method, mark, ()), *getattr(type(test), mark, ())}


def _is_trace(data):
    """Whether it begins with a whole packet that something is in."""
    from . import trace  # which notes each trace for us

    try:
        first, _ = trace.first_packet(data)
        return bool(pb.TracePacket.FromString(first).ListFields())
    except (DecodeError, trace.Broken):
        return False


def _contents(folder):
    """(path, bytes) of the traces in there, whatever their names are."""
    for where, _, names in os.walk(folder):
        for path in (os.path.join(where, name) for name in names):
            if not (os.path.isfile(path) and os.access(path, os.R_OK)):
                continue
            with open(path, "rb") as file:
                data = file.read(1)
                data += file.read() if data == b"\n" else b""
            if _is_trace(data):
                yield path, data


def _left_behind(test, seen):
    """Traces in a test's folder that it did not read itself, or not to the
    end."""
    folder = getattr(test, "folder", None)
    for path, data in _contents(folder) if folder else ():
        if data not in seen:
            seen.add(data)
            yield path, data, inspected.report(data)


def _wrong(answers):
    """Names of the rows of a trace that should not be there."""
    found = {name for name, _, _, severity in answers["stats"]
             if severity in ("error", "data_loss")}
    text = "".join(words for (words,) in answers["config"])
    if "write_into_file: true" in text and "\nflush_period_ms" not in text:
        found.discard(NO_FLUSH)
    return found


def _unpacked(data):
    """Trace Processor v55 passes over zstd_compressed_packets in silence:
    it gets what is in them."""
    from . import trace  # which notes each trace for us

    stored = trace.split_cut_file(data)[0]
    if not any(raw.startswith(ZSTD) for raw in stored):
        return data
    return inspected.framed(raw for raw, _ in trace.expand(stored))


def _ask(data):
    """{name: rows}"""
    queries = {**agreement.QUERIES, "config": CONFIG}
    return dict(zip(queries, ask(data, *queries.values())))


def check(test, traces):
    """Looks at a test's traces: [(name, bytes, what inspect says)]."""
    if not available():
        return
    traces = list(traces)
    traces += _left_behind(test, {data for _, data, _ in traces})
    found, differing = {}, []
    for name, data, report in traces:
        if not data:
            continue
        if report["verdict"] == DAMAGED:
            found[DAMAGED] = name
            continue
        try:
            answers = _ask(data)
        except CannotRead as error:
            found[UNREADABLE] = f"{name}: {error}"
            continue
        for row in _wrong(answers):
            found.setdefault(row, name)
        differing += [f"{name}: {words}" for words in
                      agreement.differences(report, answers)]
    trace_processor.forget()
    caused = _marked(test, "causes")
    unexpected = set(found) - caused - _marked(test, "may_cause")
    missing = caused - set(found)
    words = "".join(f"\n  Trace Processor finds {row} in {found[row]}"
                    for row in sorted(unexpected))
    words += "".join(f"\n  Trace Processor finds no {row}, which this test "
                     "says it causes" for row in sorted(missing))
    words += "".join(f"\n  {difference}" for difference in differing)
    if words and _wanted == "say":
        print(f"# imported: {test.id()}: {words}", file=sys.stderr)
    elif words:
        raise AssertionError(words)
