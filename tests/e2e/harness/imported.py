"""Every trace that a test reads or leaves behind is loaded by Perfetto's Trace
Processor, which must find nothing wrong with it: no row of `stats` that is an
error or a data loss, but those that the test says it causes.

Without Trace Processor (`deploy/install-deps peers`) nothing is checked;
IMPORT_TRACES=no in the environment switches it off, IMPORT_TRACES=say only
prints what would be wrong.
"""

import os
import sys

from peers import CannotRead, trace_processor

WRONG = ("select distinct name from stats "
         "where severity in ('error', 'data_loss') and value > 0")

# Not a fault of the trace's but of its config's, and what most tests ask for:
# a session that writes into a file, without periodic flushes.
NO_FLUSH = "config_write_into_file_no_flush"
CONFIG = "select str_value from metadata where name = 'trace_config_pbtxt'"

# What a test names that leaves a damaged trace.
UNREADABLE = "unreadable"

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
    return [rows for _, rows in trace_processor.ask(data, *queries)]


def _marked(test, mark):
    method = getattr(test, test._testMethodName)
    return {*getattr(method, mark, ()), *getattr(type(test), mark, ())}


def _left_behind(test, seen):
    """Files of traces in a test's folder that it did not read itself."""
    for folder, _, names in os.walk(getattr(test, "folder", None) or ""):
        for path in (os.path.join(folder, name) for name in names
                     if name.endswith(".pftrace")):
            if os.path.isfile(path) and path not in seen:
                with open(path, "rb") as file:
                    yield path, file.read()


def _wrong(data):
    """Names of the rows of a trace that should not be there."""
    (_, rows), (_, config) = trace_processor.ask(data, WRONG, CONFIG)
    found = {name for (name,) in rows}
    text = "".join(words for (words,) in config)
    if "write_into_file: true" in text and "\nflush_period_ms" not in text:
        found.discard(NO_FLUSH)
    return found


def check(test, traces):
    """Looks at a test's traces: [(name, bytes)]."""
    if not available():
        return
    traces = list(traces)
    traces += _left_behind(test, {name for name, _ in traces})
    found = {}
    for name, data in traces:
        if not data:
            continue
        try:
            for row in _wrong(data):
                found.setdefault(row, name)
        except CannotRead as error:
            found[UNREADABLE] = f"{name}: {error}"
    trace_processor.forget()
    caused = _marked(test, "causes")
    unexpected = set(found) - caused - _marked(test, "may_cause")
    missing = caused - set(found)
    words = "".join(f"\n  Trace Processor finds {row} in {found[row]}"
                    for row in sorted(unexpected))
    words += "".join(f"\n  Trace Processor finds no {row}, which this test "
                     "says it causes" for row in sorted(missing))
    if words and _wanted == "say":
        print(f"# imported: {test.id()}: +{sorted(unexpected)} "
              f"-{sorted(missing)}", file=sys.stderr)
    elif words:
        raise AssertionError(words)
