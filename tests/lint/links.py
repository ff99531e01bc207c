#!/usr/bin/env python3
"""Checks what the documents point at: links, anchors and paths in backticks.

    tests/lint/links.py       one line for each that leads nowhere; 1 if any does

A relative link has to name a file or folder, and an anchor a heading of that page.
A path in backticks that begins with one of our folders has to exist, with or
without its extension.  Addresses on the web are not looked at.
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
PLACEHOLDER = re.compile(r"NAME|ROOM")  # tests/fuzz/NAME


def pages(root):
    """The documents, as paths below root; hidden and build folders left out."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build")) and
                            not os.path.exists(os.path.join(folder, f, "build.ninja")))
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), root)


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
    texts = {}
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
        for code in CODE.findall(INDENTED.sub("", prose)):
            if PATH.fullmatch(code) and not PLACEHOLDER.search(code) and not any(
                    os.path.exists(os.path.join(root, code + end)) for end in ("", ".c", ".h")):
                yield f"{page}: `{code}`: there is no such file"


def main(root):
    wrong = list(check(root))
    print("\n".join(wrong) or "ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    HERE = os.path.dirname(os.path.abspath(__file__))
    sys.exit(main(os.path.dirname(os.path.dirname(HERE))))
