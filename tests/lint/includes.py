#!/usr/bin/env python3
"""Holds the order of #include lines at the top of a file, as docs/style.md has it.

    tests/lint/includes.py           names the files that differ; 1 if any does
    tests/lint/includes.py --write   sorts them

A file's own header, then the system's, then ours: each group sorted, an empty line between them.
cmocka.h stands last in its group, as it wants four others before it.  Lines behind the first that
is neither an #include nor empty are left alone: there the order may mean something.
"""
import os
import re
import sys

INCLUDE = re.compile(r'#include ([<"])([^">]+)[">].*\n')
FIRST = re.compile(r"^#include .*\n(?:(?:#include .*)?\n)*", re.M)
FOLDERS = ("client", "protos", "relay", "service", "tests", "transport")


def ordered(path, block):
    """The lines of one block as they should stand; each once."""
    own = os.path.splitext(path)[0] + ".h"
    groups = [set(), set(), set()]
    for line in block.splitlines(keepends=True):
        if line != "\n":
            kind, header = INCLUDE.fullmatch(line).groups()
            groups[1 if kind == "<" else 0 if header == own else 2].add((header, line))
    return "\n".join("".join(line for _, line in sorted(
        group, key=lambda pair: (pair[0] == "cmocka.h", pair[0]))) for group in groups if group)


def sorted_text(path, text):
    found = FIRST.search(text)
    if not found:
        return text
    block = found.group(0)
    lines = block.rstrip("\n") + "\n"
    return text[:found.start()] + ordered(path, lines) + block[len(lines):] + text[found.end():]


def main(root, write):
    wrong = []
    for top in FOLDERS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if not name.endswith((".c", ".h")):
                    continue
                full = os.path.join(folder, name)
                path = os.path.relpath(full, root)
                with open(full, encoding="utf-8") as f:
                    text = f.read()
                wanted = sorted_text(path, text)
                if text != wanted:
                    wrong.append(f"{path}: #include lines out of order; --write sorts them")
                    if write:
                        with open(full, "w", encoding="utf-8") as f:
                            f.write(wanted)
    if not write:
        print("\n".join(wrong) or "ok")
    return 1 if wrong and not write else 0


if __name__ == "__main__":
    HERE = os.path.dirname(os.path.abspath(__file__))
    sys.exit(main(os.path.dirname(os.path.dirname(HERE)), "--write" in sys.argv))
