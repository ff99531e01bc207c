#!/usr/bin/env python3
"""What the linker and the compiler were asked for is in the programs.

    test_hardening.py BUILD PROGRAM...

Reads ELF files with readelf, and the build's compile_commands.json for the one
property that leaves no mark.  Prints TAP, one line a program and property.
"""

import json
import os
import re
import subprocess
import sys

OURS = ("transport", "protos", "service", "relay", "client")


def readelf(*arguments):
    done = subprocess.run(["readelf", "-W", *arguments], check=True,
                          stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "LC_ALL": "C"})
    return done.stdout


def segments(program):
    """(type, flags) of each, as readelf names them: "RW ", "R E"."""
    found = re.findall(
        r"^  (\w+) +0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x\w+ ([RWE ]{3}) ",
        readelf("-l", program), re.M)
    assert found, "no segments"
    return found


def dynamic(program):
    return readelf("-d", program)


def wanted_symbols(program):
    """What it takes from shared libraries."""
    return set(re.findall(r" UND (\w+)", readelf("--dyn-syms", program)))


def is_position_independent(program):
    assert "Type:                              DYN" in readelf("-h", program)
    assert re.search(r"FLAGS_1\).*\bPIE\b", dynamic(program))


def has_what_was_relocated_read_only(program):
    assert "GNU_RELRO" in {kind for kind, _ in segments(program)}


def binds_everything_at_its_start(program):
    assert re.search(r"\(FLAGS\).*\bBIND_NOW\b", dynamic(program))


def has_no_executable_stack(program):
    assert ("GNU_STACK", "RW ") in segments(program)


def has_nothing_that_is_writable_and_executable(program):
    for kind, flags in segments(program):
        assert not ("W" in flags and "E" in flags), kind
    assert "TEXTREL" not in dynamic(program)


def takes_no_library_from_odd_places(program):
    assert not re.search(r"\((RPATH|RUNPATH)\)", dynamic(program))


def guards_its_stack(program):
    assert "__stack_chk_fail" in wanted_symbols(program)


def checks_the_sizes_of_copies(program):
    checked = {s for s in wanted_symbols(program) if s.endswith("_chk")}
    assert len(checked) >= 3, checked


def permits_shadow_stacks(program):
    assert re.search(r"x86 feature:.*\bSHSTK\b", readelf("-n", program))


def tracks_branches(archive):
    """Each object does; the C library's start files decide for a program."""
    marks = re.split(r"^File: ", readelf("-n", archive), flags=re.M)[1:]
    assert marks, "no objects"
    for notes in marks:
        name = notes.split("\n", 1)[0]
        assert re.search(r"x86 feature:.*\bIBT\b.*\bSHSTK\b", notes), name


def compile_flags(build):
    """{source: its command} of what the programs are made of."""
    with open(os.path.join(build, "compile_commands.json")) as file:
        return {c["file"]: c["command"].split() for c in json.load(file)
                if c["output"].split("/", 1)[0] in OURS}


def every_source_has(flag, build):
    commands = compile_flags(build)
    assert commands
    for source, words in commands.items():
        assert flag in words, source


def cases(build, programs):
    """(name, what to call)"""
    x86 = os.uname().machine == "x86_64"
    checks = [
        is_position_independent, has_what_was_relocated_read_only,
        binds_everything_at_its_start, has_no_executable_stack,
        has_nothing_that_is_writable_and_executable,
        takes_no_library_from_odd_places, guards_its_stack,
        checks_the_sizes_of_copies,
    ] + ([permits_shadow_stacks] if x86 else [])
    for program in programs:
        for check in checks:
            yield (f"{os.path.basename(program)} {check.__name__}",
                   lambda c=check, p=program: c(p))
    flags = ["-fstack-clash-protection", "-fstack-protector-strong"]
    if x86:
        flags.append("-fcf-protection=full")
        for folder in OURS:
            archive = os.path.join(build, folder, f"lib{folder}.a")
            yield (f"{folder} tracks_branches",
                   lambda a=archive: tracks_branches(a))
    for flag in flags:
        yield (f"every_source_has {flag}",
               lambda f=flag: every_source_has(f, build))


def main(build, programs):
    todo = list(cases(build, programs))
    failed = 0
    print(f"1..{len(todo)}")
    for number, (name, call) in enumerate(todo, 1):
        try:
            call()
            print(f"ok {number} - {name}")
        except (AssertionError, OSError, subprocess.SubprocessError) as why:
            failed += 1
            print(f"not ok {number} - {name}")
            print(f"# {type(why).__name__}: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
