#!/usr/bin/env python3
"""The tests that ThreadSanitizer has to look at.

    threaded_tests.py BUILD NOTES              their names, for `meson test`
    threaded_tests.py --needed BUILD NOTES     what they run, for `ninja`

Those whose program was seen to start a thread (it left its name in the folder
NOTES, see note_threads.c), and those of the suite `threads`: tests of the
daemons that were picked for what they do to the daemons' threads.
"""

import json
import os
import subprocess
import sys


def introspect(what, build):
    return json.loads(subprocess.run(
        ["meson", "introspect", f"--{what}", build], check=True,
        stdout=subprocess.PIPE).stdout)


def needed(build, tests):
    """Paths below the build's folder of all that these tests want built."""
    files = {target["id"]: target["filename"]
             for target in introspect("targets", build)}
    paths = {os.path.join(build, test["cmd"][0]) for test in tests}
    for test in tests:
        for target in test["depends"]:
            paths.update(files[target])
    inside = (os.path.relpath(path, build) for path in paths)
    return {path for path in inside if not path.startswith("..")}


def main(how, build, notes):
    seen = set(os.listdir(notes))
    if not seen:
        print("threaded_tests: nothing was seen to start a thread",
              file=sys.stderr)
        return 1
    tests = [test for test in introspect("tests", build)
             if os.path.basename(test["cmd"][0]) in seen
             or "tributary:threads" in test["suite"]]
    print("\n".join(sorted(needed(os.path.realpath(build), tests) if how else
                           {test["name"] for test in tests})))
    return 0


if __name__ == "__main__":
    how = sys.argv[1:2] == ["--needed"]
    if len(sys.argv) != 3 + how:
        sys.exit(__doc__)
    sys.exit(main(how, *sys.argv[1 + how:]))
