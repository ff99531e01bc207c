#!/usr/bin/env python3
"""Writes a C table of the system calls that the compiler's kernel headers know.

    syscall_names.py OUTPUT COMPILER...

A row is { "read", 0 }, sorted by name; numbers are those of the machine that is compiled for.
"""
import re
import subprocess
import sys

DEFINE = re.compile(r"^#define __NR(3264)?_(\w+) +(.+)$", re.M)
NUMBER = re.compile(r"\(?(?:__NR_SYSCALL_BASE *\+ *)?(\d+)\)?")
# Limits and switches that look like one.
NONE = ("syscalls", "arch_specific_syscall", "SYSCALL_BASE", "Linux")


def numbers(text):
    """{name: number}; some names are defined by another's: __NR_lseek as __NR3264_lseek."""
    defined = {(bool(m[1]), m[2]): m[3].strip() for m in DEFINE.finditer(text)}
    found = {}
    for (other, name), value in defined.items():
        alias = re.fullmatch(r"__NR(3264)?_(\w+)", value)
        if alias:
            value = defined.get((bool(alias[1]), alias[2]), "")
        number = NUMBER.fullmatch(value)
        if not other and name not in NONE and number:
            found[name] = int(number[1])
    return found


def main(output, compiler):
    done = subprocess.run([*compiler, "-E", "-dM", "-x", "c", "-"], check=True, text=True,
                          input="#include <sys/syscall.h>\n", stdout=subprocess.PIPE)
    rows = "".join(f'{{ "{name}", {number} }},\n'
                   for name, number in sorted(numbers(done.stdout).items()))
    with open(output, "w", encoding="utf-8") as out:
        out.write(rows)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
