#!/usr/bin/env python3
"""Holds how comments begin: with the noun or the verb that the reader looks for.

    tests/lint/comments.py [FILE...]   says where one does not, a line each; 1 if any

docs/style.md says why.  Without files: all C of the product.
"""
import os
import re
import sys

FOLDERS = ("protos", "transport", "relay", "service", "client")
# Each stands for a noun that the reader does not know yet.
BEGINNINGS = ("What", "Whatever", "Of", "Who", "Whose", "Whom", "Whoever",
              "Those", "These", "This", "That", "It", "They", "The same",
              "Nobody", "Nothing", "Somebody", "Others", "One that")
COMMENT = re.compile(r"/\*[*\s]*(.*?)\*/", re.S)
WRONG = re.compile(rf"({'|'.join(BEGINNINGS)})\b")
# People without a name; in quotes, the user "nobody".
NAMELESS = re.compile(r'(?<!")\b(whoever|somebody|nobody|anybody|everybody)\b',
                      re.I)


def wrong(text):
    """[(line, first words)] of the comments in a C file's text."""
    return [(text.count("\n", 0, found.start(1)) + 1,
             " ".join(found[1].split()[:6]))
            for found in COMMENT.finditer(text)
            if WRONG.match(found[1]) or NAMELESS.search(found[1])]


def sources(root):
    for top in FOLDERS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.join(folder, name)


def main(paths):
    root = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    bad = False
    for path in paths or sorted(sources(root)):
        with open(path, encoding="utf-8") as file:
            for line, words in wrong(file.read()):
                bad = True
                print(f"{os.path.relpath(path, root)}:{line}: {words!r}: a "
                      "comment begins with a noun or a verb, and names "
                      "its subject (docs/style.md)")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
