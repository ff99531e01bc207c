"""Reads the recorded exchanges: one line a frame, see recordings/README.md.

Long frames were cut when they were recorded.  A cut frame is mended: what was
complete in it is kept, the one item that was cut off is dropped, so that it is
again a valid message, only with less in it.
"""

import json
import os

from harness import abi, pb
from harness.trace import read_varint

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "recordings")


def mend(descriptor, data, embedded=None):
    """A message without its cut-off end.

    embedded: {field name of type bytes: descriptor of the message in it}.
    """
    out, at = bytearray(), 0
    while at < len(data):
        start = at
        try:
            tag, at = read_varint(data, at)
            if tag & 7 == 0:
                _, at = read_varint(data, at)
            elif tag & 7 == 2:
                length, at = read_varint(data, at)
                if at + length > len(data):
                    field = descriptor.fields_by_number.get(tag >> 3)
                    inner = field and (field.message_type or
                                       (embedded or {}).get(field.name))
                    if inner:
                        rest = mend(inner, data[at:])
                        out += abi.varint(tag) + abi.varint(len(rest)) + rest
                    return bytes(out)
                at += length
            else:
                at += 8 if tag & 7 == 1 else 4
        except AssertionError:
            return bytes(out)
        if at > len(data):
            return bytes(out)
        out += data[start:at]
    return bytes(out)


class Event:
    """A line of a recording."""

    def __init__(self, line):
        self.conn = line["conn"]
        self.t_us = line["t_us"]
        self.kind = line.get("event") or line["dir"]
        self.side = line.get("side")
        self.method = line.get("method")
        self.truncated = line.get("truncated", False)
        self.drop_reply = line.get("drop_reply", False)
        self.fd_kinds = line.get("fd_kinds", [])
        self.fd_info = line.get("fd_info", [])
        self.frame = None
        if "hex" in line:
            self.frame = self._parse(bytes.fromhex(line["hex"]))

    def _parse(self, raw):
        if self.truncated:
            request = getattr(pb, self.method + "Request").DESCRIPTOR
            invoke = pb.IPCFrame.InvokeMethod.DESCRIPTOR
            raw = mend_frame(raw, invoke, request)
        return pb.IPCFrame.FromString(raw)

    def message(self):
        """The arguments or the reply, decoded."""
        if self.kind == "c2s":
            raw = self.frame.msg_invoke_method.args_proto
            return getattr(pb, self.method + "Request").FromString(raw)
        raw = self.frame.msg_invoke_method_reply.reply_proto
        return getattr(pb, self.method + "Response").FromString(raw)


def mend_frame(raw, invoke, request):
    """An IPCFrame whose InvokeMethod was cut in its args_proto."""
    out, at = bytearray(), 0
    while at < len(raw):
        start = at
        tag, at = read_varint(raw, at)
        if tag & 7 == 0:
            _, at = read_varint(raw, at)
            out += raw[start:at]
            continue
        _, at = read_varint(raw, at)
        inner = mend(invoke, raw[at:], {"args_proto": request})
        return bytes(out + abi.varint(tag) + abi.varint(len(inner)) + inner)
    return bytes(out)


def load(name):
    with open(os.path.join(FOLDER, name + ".jsonl")) as file:
        return [Event(json.loads(line)) for line in file]
