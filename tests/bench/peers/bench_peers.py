"""tributaryd beside Perfetto's traced, in turns: ./bench-peers."""

import argparse
import json
import os
import signal
import subprocess
import sys

from cases import Bench
from ratios import Pairs, put_between_marks, table, verdict
from services import Missing, traced

PURPOSE = """\
Measures tributaryd beside Perfetto's own traced, in turns, and prints a table
of ratios, ours to traced's: of processor time, of time, of memory, of what is
better small.  A run of all cases writes it into docs/performance.md, too.
"""


def options():
    parser = argparse.ArgumentParser(
        prog="./bench-peers", description=PURPOSE,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE",
                        help="those with this in their name; without: all")
    parser.add_argument("--quick", action="store_true",
                        help="one short round with 2000 idle producers, about "
                        "a minute; nothing is written")
    parser.add_argument("--rounds", type=int, metavar="N",
                        help="pairs of each case (5); 0: the table of what "
                        "--results has")
    parser.add_argument("--seconds", type=float, metavar="S",
                        help="of load in each measurement (1.5)")
    parser.add_argument("--results", metavar="FILE",
                        help="adds the pairs to this file, and makes the "
                        "table of all that are in it: a run in portions")
    parser.add_argument("--before", metavar="BUILD",
                        help="in place of traced: an earlier release build of "
                        "ours, by its folder; the table is only printed")
    parser.add_argument("--list", action="store_true",
                        help="the names of the cases")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--document", required=True, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.rounds is None:
        o.rounds = 1 if o.quick else 5
    o.seconds = o.seconds or (0.5 if o.quick else 1.5)
    o.crowd = 2000 if o.quick else 10000
    return o


def chosen(bench, words):
    cases = [(name, make) for name, make in bench.cases()
             if not words or any(word in name for word in words)]
    if not cases:
        raise Missing(f"no case has {' or '.join(words)} in its name; "
                      "--list has them")
    return cases


def show(name, ours, theirs):
    one = Pairs()
    one.add(name, ours, theirs)
    figures = ", ".join(f"{measure} {one.median(name, measure):.2f}"
                        for measure in ours if one.median(name, measure))
    print(f"{name}: {figures}", file=sys.stderr, flush=True)


def measure(bench, cases, rounds, keep):
    """Rounds over all cases: what disturbs for a while disturbs one pair of
    each."""
    if rounds > 0:
        bench.warm_up()
    for i in range(rounds):
        for _, make in cases:
            for name, (ours, theirs) in make(i % 2 == 0).items():
                show(name, ours, theirs)
                keep(name, ours, theirs)


def load_results(path, pairs):
    if path is None or not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        for line in file:
            pairs.add(*json.loads(line))


def version(argv):
    return subprocess.run([*argv, "--version"], stdout=subprocess.PIPE,
                          check=True, text=True).stdout.strip()


def heading(o, bench, pairs):
    counts = {len(found) for found in pairs.cases.values()}
    rounds = " to ".join(map(str, sorted({min(counts), max(counts)})))
    kernel = os.uname()
    other = "an earlier build" if o.before else \
        f"traced of {version(traced())}"
    return (f"`./bench-peers`: {version(bench.sides[0])} (release build) "
            f"against {other},\npairs of each: {rounds}, "
            f"seconds of load: {o.seconds:g}; {kernel.sysname} "
            f"{kernel.release}, {os.cpu_count()} processors.")


def summary(o, bench, pairs):
    if not pairs.cases:
        return "Nothing is measured."
    peers, bare = pairs.split([name for name, _ in bench.cases()])
    parts = [heading(o, bench, pairs)]
    if peers.cases:
        parts += [table(peers)]
        if not o.before:
            parts += [verdict(peers)]
    if bare.cases:
        parts += ["Of the relay:", table(bare)]
    return "\n\n".join(parts)


def write(path, text):
    with open(path, encoding="utf-8") as file:
        whole = put_between_marks(file.read(), text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(whole)


def run(o):
    bench = Bench(o.build, o.seconds, o.crowd, o.before)
    if o.list:
        print("\n".join(name for name, _ in bench.cases()))
        return
    pairs = Pairs()
    load_results(o.results, pairs)

    def keep(*pair):
        pairs.add(*pair)
        if o.results is not None:
            with open(o.results, "a", encoding="utf-8") as file:
                file.write(json.dumps(pair) + "\n")

    cases = chosen(bench, o.cases)
    whole = True
    try:
        measure(bench, cases, o.rounds, keep)
    except KeyboardInterrupt:
        whole = False
    text = summary(o, bench, pairs)
    print(text)
    if whole and not o.quick and not o.cases and not o.before:
        write(o.document, text)


def main():
    # As Ctrl-C: what was started ends, and the table shows what there is.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(options())
    except Missing as error:
        print(f"bench-peers: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
