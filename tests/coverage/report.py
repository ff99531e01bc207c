#!/usr/bin/env python3
"""What gcovr counted, folder by folder; and what no test reached.

    report.py [--missing] coverage.json

Functions are told where none of their lines was run; of others the lines.
"""

import json
import sys

FOLDERS = ("service", "relay", "transport")
WORST = 12


class File:
    def __init__(self, entry):
        self.name = entry["file"]
        lines = [l for l in entry["lines"] if not l.get("gcovr/noncode")]
        self.lines = {}
        taken = {}
        for line in lines:
            number = line["line_number"]
            self.lines[number] = self.lines.get(number, 0) + line["count"]
            for n, branch in enumerate(line.get("branches", ())):
                key = number, n
                taken[key] = taken.get(key, 0) + branch["count"]
        self.branches = len(taken)
        self.branches_taken = sum(1 for count in taken.values() if count)
        self.unreached = sorted(n for n, c in self.lines.items() if not c)

    def reached(self):
        return len(self.lines) - len(self.unreached)


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def ranges(numbers):
    """3-5 9: numbers that follow each other as one."""
    out = []
    for number in numbers:
        if out and number == out[-1][1] + 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def functions(path):
    """(name, first line, last line): a name begins a line, a brace ends it."""
    found, name, begin = [], None, 0
    with open(path) as file:
        for number, line in enumerate(file, 1):
            head = line.split("(", 1)[0]
            if "(" in line and head.isidentifier():
                name, begin = head, number
            elif line.rstrip() == "}" and name:
                found.append((name, begin, number))
                name = None
    return found


def counted(file):
    """(name, the lines of it that count) of each function."""
    for name, begin, end in functions(file.name):
        own = [n for n in file.lines if begin <= n <= end]
        if own:
            yield name, own


def runs(file, own):
    return any(file.lines[n] for n in own)


def show(file):
    left = set(file.unreached)
    whole = []
    for name, own in counted(file):
        if not runs(file, own):
            whole.append(f"{name}()")
            left -= set(own)
    text = " ".join(whole)
    if left:
        text += (" " if text else "") + ranges(sorted(left))
    print(f"{file.name}: {text}")


def main(missing, path):
    with open(path) as file:
        files = [File(entry) for entry in json.load(file)["files"]]
    if not files:
        print("report: nothing was counted", file=sys.stderr)
        return 1
    for folder in FOLDERS:
        own = [f for f in files if f.name.startswith(folder + "/")]
        lines = sum(len(f.lines) for f in own)
        reached = sum(f.reached() for f in own)
        branches = sum(f.branches for f in own)
        taken = sum(f.branches_taken for f in own)
        called = [runs(f, lines_of) for f in own for _, lines_of in counted(f)]
        print(f"{folder}: {reached} of {lines} lines "
              f"({share(reached, lines)}), {sum(called)} of {len(called)} "
              f"functions, {taken} of {branches} branches "
              f"({share(taken, branches)})")
    if missing:
        for file in sorted(files, key=lambda f: f.name):
            if file.unreached:
                show(file)
        return 0
    print("least reached:")
    for file in sorted(files, key=lambda f: -len(f.unreached))[:WORST]:
        print(f"  {file.name}: {len(file.unreached)} of {len(file.lines)} "
              "lines")
    return 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    every = "--missing" in arguments
    arguments = [a for a in arguments if a != "--missing"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    sys.exit(main(every, arguments[0]))
