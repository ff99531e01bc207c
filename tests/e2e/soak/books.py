"""The ledgers of tributary-load, read while they are written, and copies of
them that know which sessions were cut short."""

import struct

HEADER = 64
COUNT = struct.Struct("=8sIIQ")
# session, producer, written, sure, bytes, end, connection, kept, reserved
ENTRY = struct.Struct("=IIQQQIIQ16x")
WRITING, STOPPED, LOST = 0, 1, 4  # enum load_end


class Entry:
    def __init__(self, fields):
        (self.session, self.producer, self.written, self.sure, _, self.end, _,
         _) = fields


def read(path):
    """{key: Entry}"""
    with open(path, "rb") as file:
        _, _, first, n = COUNT.unpack(file.read(COUNT.size))
        file.seek(HEADER)
        data = file.read(n * ENTRY.size)
    data = data[:len(data) - len(data) % ENTRY.size]
    return {first + i: Entry(fields)
            for i, fields in enumerate(ENTRY.iter_unpack(data))}


def write_copy(path, copy, marks):
    """marks: {key: packets that have to be there, though the session of the
    sequence was cut short}."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    _, _, first, n = COUNT.unpack_from(data)
    for at in range(n):
        kept = marks.get(first + at)
        place = HEADER + at * ENTRY.size
        if kept is None or place + ENTRY.size > len(data):
            continue
        fields = list(ENTRY.unpack_from(data, place))
        fields[5], fields[7] = LOST, kept
        ENTRY.pack_into(data, place, *fields)
    with open(copy, "wb") as file:
        file.write(data)


class Marks:
    """Sequences whose sessions were cut short."""

    def __init__(self):
        self.kept = {}

    def cut_short(self, before, after, sure):
        """before: entries at a time after which all that was sure has reached
        the files; after: those at the cut; sure: whether what was sure then had
        reached the collector, by key."""
        for key, entry in after.items():
            was = before.get(key)
            if key in self.kept or (was is not None and was.end == STOPPED):
                continue
            self.kept[key] = was.sure if was is not None and sure(key) else 0
