#!/usr/bin/env python3
"""Holds the arrows between rooms: docs/rooms.toml says what a room may use.

    tests/lint/rooms.py           says what is wrong, a line each; 1 if anything is
    tests/lint/rooms.py --write   brings docs/architecture.md up to docs/rooms.toml

Reads every #include "..." of the product.  Tests may look into any room.
"""
import os
import re
import sys
import textwrap

try:
    import tomllib
except ImportError:  # Python 3.10 and before
    print("skipped: no tomllib in this Python")
    sys.exit(77)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
BEGIN = "<!-- Of docs/rooms.toml: tests/lint/rooms.py --write -->\n"
END = "<!-- So far. -->\n"


def sources(rooms, root):
    """{room: {file: [included path, ...]}} of all folders that hold rooms."""
    found = {}
    for top in sorted({room.split("/")[0] for room in rooms}):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if not name.endswith((".c", ".h")):
                    continue
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    includes = INCLUDE.findall(f.read())
                room = os.path.relpath(folder, root)
                found.setdefault(room, {})[name] = includes
    return found


def check_files(rooms, found):
    """Files outside of rooms, arrows that are not allowed, private headers."""
    used, shown = set(), set()
    for room, files in sorted(found.items()):
        if room not in rooms:
            yield f"{room}: is no room (docs/rooms.toml), and has {sorted(files)[0]}"
            continue
        for name, includes in sorted(files.items()):
            for path in includes:
                other, header = os.path.split(path)
                if other == room:
                    continue
                where = f"{room}/{name} includes {path}"
                if other not in rooms:
                    yield f"{where}: of no room"
                    continue
                used.add((room, other))
                shown.add((other, header))
                if other not in rooms[room]["uses"]:
                    yield f"{where}: {room} may not use {other}"
                # Generated headers are the schemas', and all are public.
                if header not in rooms[other]["public"] and not header.endswith(".pb-c.h"):
                    yield f"{where}: private to {other}"
    for room, entry in rooms.items():
        if room not in found:
            yield f"{room}: has no files"
        for other in entry["uses"]:
            if (room, other) not in used:
                yield f"{room}: no include needs {other}"
        for header in entry["public"]:
            if (room, header) not in shown:
                yield f"{room}: {header} is public, and no other room includes it"


def check_circles(rooms):
    """Rooms that use each other, on whatever way."""
    done, way = set(), []

    def visit(room):
        if room in way:
            yield "circle: " + " -> ".join(way[way.index(room):] + [room])
        elif room not in done:
            way.append(room)
            for other in rooms.get(room, {"uses": []})["uses"]:
                yield from visit(other)
            way.pop()
            done.add(room)

    for room in rooms:
        yield from visit(room)


def words(rooms):
    """The rooms as docs/architecture.md shows them."""
    out, top = [], None
    for room, entry in rooms.items():
        if room.split("/")[0] != top:
            top = room.split("/")[0]
            out.append(f"\n### {top}\n")
        uses = ", ".join(entry["uses"]) or "nothing"
        text = f"**{room}**: {' '.join(entry['about'].split())} *Uses {uses}.*"
        out.append(textwrap.fill(text, 100, initial_indent="* ", subsequent_indent="  ",
                                 break_long_words=False, break_on_hyphens=False))
    return "\n".join(out).lstrip("\n") + "\n\n"


def main(root, write):
    with open(os.path.join(root, "docs/rooms.toml"), "rb") as f:
        rooms = tomllib.load(f)
    page = os.path.join(root, "docs/architecture.md")
    with open(page, encoding="utf-8") as f:
        text = f.read()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    wanted = text[:begin] + "\n" + words(rooms) + text[end:]
    if write:
        with open(page, "w", encoding="utf-8") as f:
            f.write(wanted)
        text = wanted
    wrong = [*check_files(rooms, sources(rooms, root)), *check_circles(rooms)]
    if text != wanted:
        wrong.append("docs/architecture.md: not as docs/rooms.toml; tests/lint/rooms.py --write")
    print("\n".join(wrong) or f"ok: {len(rooms)} rooms")
    return 1 if wrong else 0


if __name__ == "__main__":
    HERE = os.path.dirname(os.path.abspath(__file__))
    sys.exit(main(os.path.dirname(os.path.dirname(HERE)), "--write" in sys.argv))
