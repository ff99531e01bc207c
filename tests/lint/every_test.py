#!/usr/bin/env python3
"""Finds tests that nothing runs: a file that its folder's meson.build does not name."""
import os
import re
import sys

FILE = re.compile(r"test_(\w+)\.(c|py)$")


def unnamed(root):
    """The tests below root, as paths, that no meson.build beside them names."""
    for folder, _, names in os.walk(root):
        tests = [name for name in sorted(names) if FILE.match(name)]
        build = os.path.join(folder, "meson.build")
        if not tests:
            continue
        text = ""
        if os.path.exists(build):
            with open(build, encoding="utf-8") as file:
                text = file.read()
        for name in tests:
            stem = FILE.match(name)[1]
            if not re.search(rf"'(test_)?{stem}(\.c|\.py)?'", text):
                yield os.path.join(folder, name)


def main():
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = list(unnamed(top))
    for path in found:
        print(f"{os.path.relpath(path, os.path.dirname(top))}: no meson.build "
              "names it, so nothing runs it")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
