"""Assembles trace_filter's bytecode."""


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def encode(words):
    """The words as bytecode, with their checksum."""
    total = 0xcbf29ce484222325
    for word in words:
        for byte in word.to_bytes(4, "little"):
            total = (total ^ byte) * 0x100000001b3 % 2**64
    return b"".join(map(varint, [*words, total % 2**32]))


def assemble(*messages):
    """Messages as {field: None (as it is), number of a message, "string"}."""
    words = []
    for fields in messages:
        for field, what in sorted(fields.items()):
            if what is None:
                words += [field << 3 | 1]
            elif what == "string":
                words += [field << 3 | 4]
            else:
                words += [field << 3 | 3, what]
        words.append(0)
    return encode(words)
