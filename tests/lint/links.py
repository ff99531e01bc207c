#!/usr/bin/env python3
"""Checks what the documents point at: links, anchors, and names of files and functions.

    tests/lint/links.py       one line for each that leads nowhere; 1 if any does

A relative link has to name a file or folder, and an anchor a heading of that page.
A path in backticks that begins with one of our folders has to exist, with or
without its extension; a program of build/tests needs its source.  A file.c or
file.h needs a file of that name, and `function()` has to stand in a source.
Addresses on the web are not looked at.
"""
import os
import re
import sys

FENCE = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1 *$", re.M | re.S)
INDENTED = re.compile(r"^(?: {4}|\t).*$", re.M)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?\)")
HEADING = re.compile(r"^#+ +(.*?)#* *$", re.M)
SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:")
PATH = re.compile(r"(?:client|deploy|docs|protos|relay|service|tests|transport)/[\w./-]+")
SOURCE = re.compile(r"(?<![\w./*-])[\w-]+\.[ch]\b(?!/)")
CALL = re.compile(r"([a-z_]\w*)\(\)")
# tests/fuzz/NAME; examples of docs/style.md
PLACEHOLDER = re.compile(r"NAME|ROOM|^(foo|utils|common)\b|^foo_")


def files(root):
    """Paths below root; hidden and build folders left out."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build")) and
                            not os.path.exists(os.path.join(folder, f, "build.ninja")))
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), root)


def pages(root):
    """The documents, as paths below root."""
    return (path for path in files(root) if path.endswith(".md"))


class Sources:
    """What a name in a document may mean."""

    def __init__(self, root):
        self.root = root
        paths = list(files(root))
        self.names = {os.path.basename(path) for path in paths}
        self.words = set()
        for path in paths:
            if path.endswith((".c", ".h", ".py")):
                with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
                    self.words.update(re.findall(r"\w+", f.read()))

    def has_path(self, path):
        return any(os.path.exists(os.path.join(self.root, path + end))
                   for end in ("", ".c", ".h"))

    def wrong(self, prose):
        for code in CODE.findall(prose):
            for word in code.split():
                path = re.sub(r"^build/(?=tests/)", "", word)
                call = CALL.fullmatch(word)
                if PLACEHOLDER.search(word):
                    continue
                if PATH.fullmatch(path) and not self.has_path(path):
                    yield f"`{code}`: there is no such file"
                elif call and call[1] not in self.words:
                    yield f"`{code}`: no source has this name"
        for name in SOURCE.findall(prose):
            if name not in self.names and not PLACEHOLDER.search(name):
                yield f"{name}: there is no such file"


def anchors(text):
    """The anchors of a page's headings, made as GitHub makes them."""
    seen = {}
    for heading in HEADING.findall(FENCE.sub("", text)):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        yield slug if count == 0 else f"{slug}-{count}"


def check(root):
    texts, sources = {}, Sources(root)
    for page in pages(root):
        with open(os.path.join(root, page), encoding="utf-8") as f:
            texts[page] = f.read()
    for page, text in texts.items():
        prose = FENCE.sub("", text)
        for link in LINK.findall(CODE.sub("", prose)):
            if SCHEME.match(link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(root, target)):
                yield f"{page}: {link}: there is no {target}"
            elif anchor and target in texts and anchor not in anchors(texts[target]):
                yield f"{page}: {link}: {target} has no heading #{anchor}"
        for fault in sources.wrong(INDENTED.sub("", prose)):
            yield f"{page}: {fault}"


def main(root):
    wrong = list(check(root))
    print("\n".join(wrong) or "ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    HERE = os.path.dirname(os.path.abspath(__file__))
    sys.exit(main(os.path.dirname(os.path.dirname(HERE))))
