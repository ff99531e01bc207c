#!/usr/bin/env python3
"""Shows links.py what it must find, in trees of a few pages."""
import os
import tempfile
import unittest

import links


def wrong(tree):
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        return list(links.check(root))


class Links(unittest.TestCase):
    def test_what_exists_is_fine(self):
        self.assertEqual(wrong({
            "README.md": "[a](docs/a.md#two-words) [b](docs/) [c](#top) [web](https://x.test/y)\n"
                         "# Top\n",
            "docs/a.md": "## Two `words`\n[up](../README.md), `docs/a.md`, `service/x`\n",
            "service/x.c": ""}), [])

    def test_a_file_that_is_not_there(self):
        self.assertEqual(wrong({"docs/a.md": "[b](b.md)\n"}),
                         ["docs/a.md: b.md: there is no docs/b.md"])

    def test_a_heading_that_is_not_there(self):
        self.assertEqual(wrong({"a.md": "[b](b.md#old) [a](#old)\n", "b.md": "# New\n"}),
                         ["a.md: b.md#old: b.md has no heading #old",
                          "a.md: #old: a.md has no heading #old"])

    def test_headings_of_one_name_are_numbered(self):
        self.assertEqual(wrong({"a.md": "# Same\n# Same\n[a](#same-1) [b](#same-2)\n"}),
                         ["a.md: #same-2: a.md has no heading #same-2"])

    def test_a_path_in_backticks(self):
        self.assertEqual(wrong({"a.md": "`service/gone` and `service/NAME.c`\n"}),
                         ["a.md: `service/gone`: there is no such file"])

    def test_a_program_of_the_build_without_a_source(self):
        self.assertEqual(wrong({"a.md": "`S=1 build/tests/test_x 2` and `build/tests/test_y`\n",
                                "tests/test_x.c": ""}),
                         ["a.md: `build/tests/test_y`: there is no such file"])

    def test_a_source_that_is_not_there(self):
        self.assertEqual(wrong({"a.md": "room/x.c (y.c, `z.h`)\n", "room/z.h": ""}),
                         ["a.md: y.c: there is no such file"])

    def test_a_function_that_is_not_there(self):
        self.assertEqual(wrong({"a.md": "`x_new()` and `x_free()`\n", "x.c": "x_new(void)"}),
                         ["a.md: `x_free()`: no source has this name"])

    def test_examples_are_not_looked_at(self):
        self.assertEqual(wrong({"a.md": "```\n[b](b.md) # Not\n```\n\n    see `service/gone`\n"
                                        "`[b](b.md)`\n"}), [])

    def test_folders_of_builds_are_left_out(self):
        self.assertEqual(wrong({"build-x/a.md": "[b](b.md)\n", "out/build.ninja": "",
                                "out/a.md": "[b](b.md)\n"}), [])


if __name__ == "__main__":
    unittest.main()
