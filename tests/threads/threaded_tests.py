#!/usr/bin/env python3
"""Names, for `meson test`, the tests that ThreadSanitizer has to look at.

    threaded_tests.py BUILD NOTES

Those whose program was seen to start a thread (it left its name in the folder
NOTES, see note_threads.c), and those of the suite `threads`: tests of the
daemons that were picked for what they do to the daemons' threads.
"""

import json
import os
import subprocess
import sys


def main(build, notes):
    seen = set(os.listdir(notes))
    tests = json.loads(subprocess.run(
        ["meson", "introspect", "--tests", build], check=True,
        stdout=subprocess.PIPE).stdout)
    names = {test["name"] for test in tests
             if os.path.basename(test["cmd"][0]) in seen
             or "tributary:threads" in test["suite"]}
    if not seen:
        print("threaded_tests: nothing was seen to start a thread",
              file=sys.stderr)
        return 1
    print("\n".join(sorted(names)))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
