#!/usr/bin/env python3
"""Shows comments.py comments that begin well and badly."""
import unittest

import comments


class Comments(unittest.TestCase):
    def test_a_pronoun_at_the_beginning_is_found_with_its_line(self):
        self.assertEqual(
            comments.wrong("int a;\n/* What is kept. */\n\n/*\n * Of those.\n */\n"),
            [(2, "What is kept."), (5, "Of those.")])

    def test_words_that_only_begin_like_one_are_none(self):
        self.assertEqual(comments.wrong("/* Items. */ /* Offsets: what is */"), [])

    def test_a_pronoun_later_on_is_fine(self):
        self.assertEqual(comments.wrong("/* Bytes: what is kept. */"), [])


if __name__ == "__main__":
    unittest.main()
