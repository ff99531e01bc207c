"""Chunks and the shared memory they live in, from the producer's side."""

import mmap
import os
import struct

PAGE_HEADER = 8
CHUNK_HEADER = 8

# Chunk flags.
CONTINUES = 1        # the first fragment continues the previous chunk's last
CONTINUED = 2        # the last fragment goes on in the next chunk
NEEDS_PATCHING = 4   # not to be read before its patches came

# Chunk states.
FREE, BEING_WRITTEN, BEING_READ, COMPLETE = range(4)

# Page layouts, and the chunks in a page of each.
CHUNKS = {1: 1, 2: 2, 3: 4, 4: 7, 5: 14}
DIV1, DIV2, DIV4, DIV7, DIV14 = CHUNKS

# A fragment of this size says "the rest of this packet is lost".
DROP_PACKET = 0x0FFFFFFF


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fragment(data):
    return varint(len(data)) + data


def header(writer, chunk, count, flags=0):
    return struct.pack("<IHH", chunk & 0xFFFFFFFF, writer, count | flags << 10)


def chunk(writer, chunk_id, fragments, flags=0, count=None, size=None):
    """A chunk with its header; size pads it with zeros."""
    body = b"".join(map(fragment, fragments))
    if count is None:
        count = len(fragments)
    out = header(writer, chunk_id, count, flags) + body
    if size is not None:
        assert len(out) <= size
        out = out.ljust(size, b"\0")
    return out


def split(packets, room):
    """Cuts packets into chunks of at most `room` bytes of fragments.

    Yields (fragments, flags).  A packet that does not fit goes on in the next
    chunk, as a writer's does when its chunk is full.
    """
    fragments, used, flags = [], 0, 0
    for packet in packets:
        rest = packet
        while True:
            space = room - used - 4
            if len(rest) <= space:
                fragments.append(rest)
                used += len(fragment(rest))
                break
            if space > 0:
                fragments.append(rest[:space])
                rest = rest[space:]
                yield fragments, flags | CONTINUED
                fragments, used, flags = [], 0, CONTINUES
            else:
                yield fragments, flags
                fragments, used, flags = [], 0, 0
    if fragments:
        yield fragments, flags


class SharedMemory:
    """A mapping of the shared buffer; single chunk states by index."""

    def __init__(self, fd, page_size):
        self.size = os.fstat(fd).st_size
        self.page_size = page_size
        self.pages = self.size // page_size
        self.map = mmap.mmap(fd, self.size)
        # Words are stored whole, as a writer in C would.
        self._words = memoryview(self.map).cast("I")
        self._halves = memoryview(self.map).cast("H")

    def close(self):
        self._words.release()
        self._halves.release()
        self.map.close()

    def header(self, page):
        return self._words[page * self.page_size // 4]

    def set_header(self, page, value):
        self._words[page * self.page_size // 4] = value

    def layout(self, page):
        return self.header(page) >> 28 & 7

    def state(self, page, index=0):
        return self.header(page) >> 2 * index & 3

    def set_state(self, page, index, state):
        word = self.header(page) & ~(3 << 2 * index)
        self.set_header(page, word | state << 2 * index)

    def chunk_size(self, page):
        count = CHUNKS[self.layout(page)]
        return (self.page_size - PAGE_HEADER) // count & ~3

    def chunk_at(self, page, index):
        return (page * self.page_size + PAGE_HEADER +
                index * self.chunk_size(page))

    def free_page(self):
        """The first page that holds nothing, or None."""
        for page in range(self.pages):
            if self.header(page) & 0x0FFFFFFF == 0:
                return page
        return None

    def put(self, page, index, data, layout=DIV1, state=COMPLETE):
        """Writes a chunk (header included) and gives it a state."""
        if self.layout(page) != layout:
            self.set_header(page, layout << 28)
        at = self.chunk_at(page, index)
        room = self.chunk_size(page)
        assert len(data) <= room, f"{len(data)} bytes in a chunk of {room}"
        self.map[at:at + room] = data.ljust(room, b"\0")
        self.set_state(page, index, state)

    def set_packets(self, page, index, count, flags=0):
        """The count-and-flags half of a chunk's header, in one store."""
        at = self.chunk_at(page, index) + 6
        self._halves[at // 2] = count | flags << 10
