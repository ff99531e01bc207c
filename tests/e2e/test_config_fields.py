#!/usr/bin/env python3
"""Fields of a TraceConfig, each doing what it says."""

import sys

from harness import tap
from harness.case import Case, TEST_SOURCE, config, pb


class Warnings(Case):
    """What a config asks for without effect is named, never skipped."""

    def setUp(self):
        super().setUp()
        self.daemon()

    def odd_config(self):
        wanted = config(TEST_SOURCE)
        wanted.MergeFromString(b"\xfa\x3f\x05later")  # field 1023
        wanted.buffers[0].MergeFromString(b"\x98\x06\x01")  # field 99
        return wanted

    def test_the_consumer_is_told_at_the_end_and_the_log_at_once(self):
        consumer = self.consumer()
        consumer.enable(self.odd_config())
        self.until(lambda: "field 1023 of the trace config has no effect"
                   in self.daemons[0].log(), "the log names the field")
        response = consumer.stop()
        self.assertFalse(response.error)
        self.assertEqual(
            [w.split(" of the ")[0] for w in response.warnings],
            ["buffers field 99", "field 1023"])
        self.assertIn("does not know it", response.warnings[0])

    def test_one_that_frees_its_buffers_is_told_too(self):
        consumer = self.consumer()
        consumer.enable(self.odd_config())
        consumer.free()
        self.assertEqual(len(consumer.ended().warnings), 2)

    def test_a_config_that_is_served_whole_gives_none(self):
        consumer = self.session(
            notify_traceur=True, unique_session_name="x",
            statsd_metadata=pb.TraceConfig.StatsdMetadata(
                triggering_alert_id=5))
        self.assertEqual(list(consumer.stop().warnings), [])
        self.assertNotIn("has no effect", self.daemons[0].log())


if __name__ == "__main__":
    sys.exit(tap.main())
