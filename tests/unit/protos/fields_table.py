#!/usr/bin/env python3
"""Writes two tables of C: all constants of fields.h, and protobuf-c's descriptors.

    fields_table.py OUTPUT HEADER...    fields.h and *.pb-c.h
"""
import re
import sys

text = ""
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as f:
        text += f.read()

includes = "".join(f'#include "protos/{path.split("/")[-1]}"\n' for path in sys.argv[2:])
constants = "".join(f'\t{{ "{name}", {name} }},\n'
                    for name in re.findall(r"^\t(\w+) = -?\d+,$", text, re.M))


def descriptors(kind):
    names = re.findall(rf"^extern const ProtobufC{kind}Descriptor\s+(\w+);", text, re.M)
    return "".join(f"\t&{name},\n" for name in names)


with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write(f"""{includes}
static const struct {{ const char *name; int number; }} constants[] = {{
{constants}}};
static const ProtobufCMessageDescriptor *const messages[] = {{
{descriptors("Message")}}};
static const ProtobufCEnumDescriptor *const enums[] = {{
{descriptors("Enum")}}};
""")
