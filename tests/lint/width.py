#!/usr/bin/env python3
"""Holds the documents to 100 columns, tables too.

    tests/lint/width.py            one line for each that is longer; 1 if any is
    tests/lint/width.py --write    wraps the paragraphs and list items that have one

Code, comments and single words (addresses) may be longer, and so may what a
program writes into a page: its table has a column for each thing measured.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from links import pages  # noqa: E402

WIDTH = 100
FENCE = re.compile(r"^ {0,3}(```|~~~)")
ITEM = re.compile(r"^( *)([*+-]|\d+\.) +")
# What a program writes between two marks of a page.
WRITTEN = re.compile(r"<!-- written by .*? -->.*?<!-- end of what .*? -->", re.S)
# Rows of tables, headings, quotations, HTML, and empty lines.
NO_TEXT = re.compile(r" {0,3}([|<>#]|$)")
# Short code stays on one line.
WORD = re.compile(r"(?:`[^`]{,60}`|[^\s])+")
# What would begin an item, a heading or a quotation at the beginning of a line.
MARKER = re.compile(r"[*+-]|\d+\.|#+|>")


def blocks(lines):
    """(first, end, kind) of each block; kind is "text" (a paragraph, an item), "code", "other"."""
    i, fenced, in_item, last = 0, False, False, ""
    while i < len(lines):
        first, line = i, lines[i]
        i += 1
        item = ITEM.match(line)
        if fenced or FENCE.match(line):
            fenced = fenced != bool(FENCE.match(line))
            last = "code"
        elif not item and line.startswith("    ") and (not in_item or last == "code"):
            last = "code"
        elif NO_TEXT.match(line):
            last = last if not line else "other"
        else:
            while i < len(lines) and not (NO_TEXT.match(lines[i]) or ITEM.match(lines[i]) or
                                          FENCE.match(lines[i])):
                i += 1
            in_item = bool(item) or in_item and line.startswith(" ")
            last = "text"
        yield first, i, last if line else "other"


def wrap(text):
    """One paragraph or item, its lines no longer than WIDTH where words allow it."""
    item = ITEM.match(text[0])
    first = item.group(0) if item else re.match(r" *", text[0]).group(0)
    rest = " " * len(first)
    words = WORD.findall(" ".join([text[0][len(first):]] + text[1:]))
    out, line = [], first
    for word in words:
        empty = not line.strip() or line == first
        if empty or len(line) + 1 + len(word) <= WIDTH or MARKER.fullmatch(word):
            line += word if empty else " " + word
        else:
            out.append(line)
            line = rest + word
    return out + [line]


def too_long(line):
    return (len(line) > WIDTH and len(line.split()) > 1 and
            not line.lstrip().startswith("<!--"))


def check(text):
    """Numbers of the lines that are too long."""
    lines = WRITTEN.sub(lambda m: "\n" * m[0].count("\n"), text).split("\n")
    for first, end, kind in blocks(lines):
        if kind != "code":
            yield from (i + 1 for i in range(first, end) if too_long(lines[i]))


def wrapped(text):
    lines, out = text.split("\n"), []
    for first, end, kind in blocks(lines):
        part = lines[first:end]
        out += wrap(part) if kind == "text" and any(map(too_long, part)) else part
    return "\n".join(out)


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    found = 0
    for page in pages(root):
        path = os.path.join(root, page)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if "--write" in sys.argv[1:] and wrapped(text) != text:
            text = wrapped(text)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        for line in check(text):
            print(f"{page}:{line}: longer than {WIDTH} columns")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
