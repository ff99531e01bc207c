#!/usr/bin/env python3
"""Shows repeats.py functions that share lines, and some that only seem to."""
import unittest

import repeats

SIX = ["\tif (a->%s == b)" % name for name in "opqrst"]


def function(lines):
    return "void\nf(void)\n{\n" + "\n".join(lines) + "\n}\n"


def found(*functions):
    return list(repeats.runs([("a.c", "".join(functions))]))


class Repeats(unittest.TestCase):
    def test_six_lines_are_found_where_they_stand_twice(self):
        self.assertEqual(found(function(SIX), function(SIX)), [("a.c", 4, 9, "a.c", 14, 19)])

    def test_white_space_comments_and_labels_make_no_difference(self):
        other = [" " + line.replace("==", " == ") + " /* so */" for line in SIX]
        other[3:3] = ["\tint i;", "\tbreak;", "\tcase X:", "", "\treturn NULL;", "\t}"]
        self.assertEqual(len(found(function(SIX), function(other))), 1)

    def test_five_lines_are_none(self):
        self.assertEqual(found(function(SIX), function(SIX[:5] + ["\tb++;"])), [])

    def test_a_run_ends_with_its_function(self):
        self.assertEqual(found(function(SIX), function(SIX[:3]), function(SIX[3:])), [])

    def test_a_loop_unrolled_in_one_function_is_found(self):
        self.assertEqual(len(found(function(SIX + SIX))), 1)


if __name__ == "__main__":
    unittest.main()
