#!/usr/bin/env python3
"""Shows rooms.py what it must find, in trees of a few files."""
import contextlib
import io
import os
import tempfile
import unittest

import rooms

SOUND = {
    "docs/rooms.toml": '["t/low"]\nabout = "Low."\nuses = []\npublic = ["low.h"]\n'
                       '["t/high"]\nabout = "High."\nuses = ["t/low"]\npublic = []\n',
    "docs/architecture.md": "before\n" + rooms.BEGIN + rooms.END + "behind\n",
    "t/low/low.h": "",
    "t/low/own.h": "",
    "t/low/low.c": '#include "t/low/low.h"\n#include "t/low/own.h"\n#include <stdio.h>\n',
    "t/high/high.c": '#include "t/low/low.h"\n',
}


def said(tree, write=True):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**SOUND, **tree}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = rooms.main(root, write)
        return status, out.getvalue().strip()


class Rooms(unittest.TestCase):
    def wrong(self, tree, *sentences):
        self.assertEqual(said(tree), (1, "\n".join(sentences)))

    def test_what_the_table_allows_is_fine(self):
        self.assertEqual(said({}), (0, "ok: 2 rooms"))

    def test_an_arrow_that_is_not_in_the_table(self):
        self.wrong({"docs/rooms.toml": SOUND["docs/rooms.toml"] +
                    '["t/third"]\nabout = "3."\nuses = []\npublic = []\n',
                    "t/third/x.c": '#include "t/low/low.h"\n'},
                   "t/third/x.c includes t/low/low.h: t/third may not use t/low")

    def test_a_row_that_no_include_needs(self):
        self.wrong({"t/high/high.c": ""}, "t/low: low.h is public, and no other room includes it",
                   "t/high: no include needs t/low")

    def test_a_private_header(self):
        self.wrong({"t/high/more.c": '#include "t/low/own.h"\n'},
                   "t/high/more.c includes t/low/own.h: private to t/low")

    def test_a_file_that_is_in_no_room(self):
        self.wrong({"t/other/x.c": ""},
                   "t/other: is no room (docs/rooms.toml), and has x.c")

    def test_a_room_without_files(self):
        self.wrong({"docs/rooms.toml": SOUND["docs/rooms.toml"] +
                    '["t/third"]\nabout = "3."\nuses = []\npublic = []\n'},
                   "t/third: has no files")

    def test_a_circle(self):
        toml = SOUND["docs/rooms.toml"].replace("uses = []", 'uses = ["t/high"]')
        toml = toml.replace("public = []", 'public = ["high.h"]')
        self.wrong({"docs/rooms.toml": toml, "t/high/high.h": "",
                    "t/low/low.c": '#include "t/high/high.h"\n'},
                   "circle: t/low -> t/high -> t/low")

    def test_an_include_of_no_room(self):
        self.wrong({"t/high/more.c": '#include "else/x.h"\n'},
                   "t/high/more.c includes else/x.h: of no room")

    def test_a_page_that_says_something_else(self):
        self.assertEqual(said({}, write=False),
                         (1, "docs/architecture.md: not as docs/rooms.toml; "
                             "tests/lint/rooms.py --write"))


if __name__ == "__main__":
    unittest.main()
