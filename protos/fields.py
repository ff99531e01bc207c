#!/usr/bin/env python3
"""Writes a C header with the number of every field, and of every value of an enum inside a message.

    protos/fields.py OUTPUT SCHEMA...

TracePacket.timestamp is TracePacket_timestamp, and SyncClockRequest.PING SyncClockRequest_PING.  A
message inside another goes by its own name where no other message has it (ChunksToMove_page), else
with as many outer names in front as tell the two apart (ClockSnapshot_Clock_timestamp).

Reads the part of the language that the schemas use: no maps, groups, extensions or services.
"""
import re
import sys

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TOKEN = re.compile(r'[{};=]|"[^"]*"|[^\s{};="]+')
KINDS = ("message", "oneof", "enum")


def messages(text):
    """{(outer message, ..., message): [(field or value, number), ...]}, in the schema's order."""
    found, blocks, statement = {}, [], []
    for token in TOKEN.findall(COMMENT.sub("", text)):
        path = tuple(name for kind, name in blocks if kind == "message")
        if token == "{":
            blocks.append(tuple(statement))
            if statement[0] == "message":
                found[path + (statement[1],)] = []
        elif token == "}":
            blocks.pop()
        elif token != ";":
            statement.append(token)
            continue
        elif path and blocks[-1][0] in KINDS and statement[0] not in ("option", "reserved"):
            equals = statement.index("=")
            found[path].append((statement[equals - 1], int(statement[equals + 1])))
        statement = []
    return found


def short_name(path, paths):
    """As much of the path's end as no other path ends in; all of a message of the top level."""
    for start in range(len(path) - 1, 0, -1):
        if sum(other[-len(path) + start:] == path[start:] for other in paths) == 1:
            return path[start:]
    return path


def header(schemas):
    found = {}
    for schema in schemas:
        found.update(messages(schema))
    lines = ["/* Numbers of fields and values of enums; written by protos/fields.py. */",
             "#ifndef PROTOS_FIELDS_H", "#define PROTOS_FIELDS_H", ""]
    for path, fields in found.items():
        if fields:
            prefix = "_".join(short_name(path, found))
            lines += [f"enum {{ /* {'.'.join(path)} */"]
            lines += [f"\t{prefix}_{name} = {number}," for name, number in fields]
            lines += ["};", ""]
    return "\n".join(lines + ["#endif /* PROTOS_FIELDS_H */", ""])


def main(output, paths):
    schemas = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            schemas.append(f.read())
    with open(output, "w", encoding="utf-8") as f:
        f.write(header(schemas))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
