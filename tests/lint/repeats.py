#!/usr/bin/env python3
"""Finds code of the product that stands in two functions to the letter.

    tests/lint/repeats.py [FILE...]    a line for each run; 1 if there is any

A run is SIX statements or conditions on after each other: declarations, labels,
`break`, `goto`, returns of a name and lone braces do not count, white space and
comments neither.  Write a function in their stead, in a room that both may use.
"""
import collections
import os
import re
import sys

SIX = 6
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ["protos", "transport", "service", "relay", "client"]
QUOTED = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
COMMENT = re.compile(r"(%s)|/\*.*?\*/|//[^\n]*" % QUOTED, re.S)
TOKEN = re.compile(r"%s|\w+|\S" % QUOTED)
DECLARATION = re.compile(r"\t+(?!return |goto |else )(?:(?:static|const|struct|enum|union|unsigned) )*"
                         r"\w+ \**\w+(?:\[[^]]*\])*(?:, [^;=()]*)?;$")
THIN = re.compile(r"\t*(?:case .*:|default:|break;|continue;|goto \w+;|return [^()]*;|\W*(?:else\W*)?)$")


def without_comments(text):
    return COMMENT.sub(lambda m: m.group(1) or "\n" * m.group().count("\n"), text)


def bodies(text):
    """Lists of (line number, tokens), one for each function."""
    body = None
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        line = line.rstrip()
        if line == "{":
            body = []
        elif line == "}" and body is not None:
            yield body
            body = None
        elif body is not None and not DECLARATION.match(line) and not THIN.match(line):
            body.append((number, tuple(TOKEN.findall(line))))


def runs(files):
    """(name, first line, last, name, first, last) of each pair, as long as it goes."""
    all_bodies = [(name, body) for name, text in files for body in bodies(text)]
    places = collections.defaultdict(list)
    for b, (_, body) in enumerate(all_bodies):
        for i in range(len(body) - SIX + 1):
            places[tuple(tokens for _, tokens in body[i:i + SIX])].append((b, i))
    pairs = {(p, q) for at in places.values() for p in at for q in at
             if p < q and (p[0] != q[0] or q[1] - p[1] >= SIX)}
    for (b, i), (c, j) in sorted(pairs):
        if ((b, i - 1), (c, j - 1)) in pairs:
            continue
        n = SIX
        while ((b, i + n - SIX + 1), (c, j + n - SIX + 1)) in pairs:
            n += 1
        (name, body), (other, there) = all_bodies[b], all_bodies[c]
        yield name, body[i][0], body[i + n - 1][0], other, there[j][0], there[j + n - 1][0]


def main(names):
    os.chdir(TOP)
    if not names:
        names = [os.path.join(at, name) for top in FOLDERS
                 for at, _, there in os.walk(top) for name in sorted(there)]
    files = []
    for name in names:
        if name.endswith((".c", ".h")) and os.path.exists(name):
            with open(name, encoding="utf-8") as f:
                files.append((name, f.read()))
    found = list(runs(files))
    for run in found:
        print("%s:%d-%d stands again in %s:%d-%d" % run)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
