#!/usr/bin/env python3
"""docs/cli.md: every command in it is run, and ends as the guide says.

What stands in ```sh blocks is run by one shell, in a folder where nothing is
yet, with a collector and tributary-probes.  A command ends with status 0, or
with the N of "# exit N" behind it.  Each line of the ```text block that
follows begins a line of what was printed; where it has digits or "...", its
first word does.  What only the test needs, mostly to wait for something, is in comments:
<!-- check: COMMAND -->.  Durations are cut short.

test_cli_guide.py --show prints the commands with what they say.
"""

import os
import re
import signal
import subprocess
import sys

from harness import tap
from harness.case import Case
from harness.daemon import environment
from harness.imported import DAMAGED, causes
from harness.loop import SCALE

GUIDE = os.path.join(os.environ["SOURCE_ROOT"], "docs", "cli.md")
SHORTER = ((r" -t \d+s\b", " -t 300ms"),
           # Long enough for a buffer of 64 KiB to overflow five times.
           (r"duration_ms: \d+", "duration_ms: 2000"),
           (r"period_ms: \d{4}", "period_ms: 100"),
           (r"timeout (.*) \d+ tributary", r"timeout \1 1 tributary"),
           (r"--interval \d+\b", "--interval 0.2"))
FENCE = re.compile(r"```(\w*)$")
HIDDEN = re.compile(r"<!-- check: (.*) -->$")
EXIT = re.compile(r" +# exit (\d+)$")
HERE = re.compile(r"<<'(\w+)'")


class Command:
    def __init__(self, line, text):
        self.line = line  # of the guide
        self.status = int((EXIT.search(text) or [0, 0])[1])
        self.text = EXIT.sub("", text)
        self.shown = []   # what the guide says that it prints
        self.printed = ""
        self.ended = None


def commands_of(lines):
    """Those of a block: with their continued lines and here-documents."""
    lines = iter(lines)
    for number, line in lines:
        text = line
        while text.endswith("\\"):
            text += "\n" + next(lines)[1]
        if match := HERE.search(line):
            while not text.endswith("\n" + match[1]):
                text += "\n" + next(lines)[1]
        if not line.startswith("#"):
            yield Command(number, text)


def blocks(lines):
    """(language, [(number, line)]) of each fence, and of hidden commands."""
    kind, block = None, []
    for number, line in enumerate(lines, 1):
        match = FENCE.match(line)
        if kind is None and match:
            kind, block = match[1], []
        elif match:
            yield kind, block
            kind = None
        elif kind is not None:
            block.append((number, line))
        elif match := HIDDEN.match(line):
            yield "hidden", [(number, match[1])]


def guide():
    found, last = [], []
    with open(GUIDE, encoding="utf-8") as file:
        for kind, block in blocks(file.read().splitlines()):
            if kind in ("sh", "hidden"):
                commands = list(commands_of(block))
                found += commands
                if kind == "sh":
                    last = commands
            elif kind == "text":
                last[-1].shown += [line for _, line in block]
                last[-1].group = last
    return found


def squeezed(text):
    return " ".join(text.split())


def beginning(line):
    """What of a line in the guide is the same every time."""
    if not re.search(r"\d|\.\.\.", line):
        return squeezed(line)
    words = line.split()
    return words[0] if re.fullmatch(r"[A-Za-z][a-z]+:?", words[0]) else ""


class Guide(Case):
    shorter = True

    def setUp(self):
        super().setUp()
        self.daemon(flags=["--trace-dir", self.folder])
        self.env = environment(
            PERFETTO_CONSUMER_SOCK_NAME=self.daemons[0].consumer_path,
            PERFETTO_PRODUCER_SOCK_NAME=self.daemons[0].producer_path,
            PATH=os.path.dirname(os.environ["TRIBUTARY"]) + ":" +
            os.environ["PATH"])
        self.work = self.path("work")
        os.mkdir(self.work)
        with open(self.path("probes.log"), "wb") as log:
            probes = subprocess.Popen([os.environ["TRIBUTARY_PROBES"]],
                                      env=self.env, stdin=subprocess.DEVNULL,
                                      stdout=log, stderr=log)
        self.addCleanup(self.end, probes)
        self.until(lambda: b"sys_stats" in subprocess.run(
            [os.environ["TRIBUTARY"], "sources"], env=self.env,
            capture_output=True, check=False).stdout, "the probes are there")

    def end(self, probes):
        probes.send_signal(signal.SIGTERM)
        self.assertEqual(probes.wait(60 * SCALE), 0)

    def run_all(self, commands):
        script = ["set +e", f"statuses={self.path('statuses')}"]
        for i, command in enumerate(commands):
            text = command.text
            for old, new in SHORTER if self.shorter else ():
                text = re.sub(old, new, text)
            script += ["{", text, f"}} >{self.path(f'out.{i}')} 2>&1",
                       'echo $? >>"$statuses"']
        with open(self.path("script"), "w", encoding="utf-8") as file:
            file.write("\n".join(script) + "\n")
        subprocess.run(["bash", self.path("script")], cwd=self.work,
                       env=self.env, stdin=subprocess.DEVNULL,
                       timeout=60 * SCALE, check=False)
        with open(self.path("statuses"), encoding="ascii") as file:
            ended = [int(line) for line in file]
        for i, command in enumerate(commands[:len(ended)]):
            command.ended = ended[i]
            with open(self.path(f"out.{i}"), errors="replace") as file:
                command.printed = file.read()

    @causes(DAMAGED)
    def test_every_command_does_what_the_guide_says(self):
        commands = guide()
        self.run_all(commands)
        wrong = []
        for command in commands:
            if command.ended != command.status:
                wrong.append(f"line {command.line}: {command.text}\n"
                             f"ended with {command.ended}, not "
                             f"{command.status}:\n{command.printed}")
            if not command.shown:
                continue
            printed = "".join(c.printed for c in command.group)
            begins = [squeezed(line) for line in printed.splitlines()]
            for line in command.shown:
                start = beginning(line)
                if not any(b.startswith(start) for b in begins):
                    wrong.append(f"line {command.line}: {command.text}\n"
                                 f'prints no "{start}":\n{printed}')
        self.assertEqual(wrong, [], "\n\n".join(wrong))

    def test_no_command_is_left_out(self):
        text = subprocess.run([os.environ["TRIBUTARY"], "--help"],
                              capture_output=True, text=True,
                              check=True).stdout
        names = re.findall(r"(?m)^  ([a-z]+)  ", text)
        self.assertIn("record", names)
        with open(GUIDE, encoding="utf-8") as file:
            page = file.read()
        run = "\n".join(c.text for c in guide())
        for name in names:
            self.assertIn(f"| `{name}", page)
            # Those need two machines, or a browser.
            if name not in ("forward", "connect", "open", "ui"):
                self.assertIn(f"tributary {name}", run)


class Show(Guide):
    shorter = False

    def runTest(self):
        commands = guide()
        self.env["PAUSE"] = "12"  # for sessions that are worth a look
        self.run_all(commands)
        for command in commands:
            print(f"$ {command.text}\n{command.printed}"
                  f"[{command.line}: {command.ended}]\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--show"]:
        show = Show("runTest")
        if not show.run(tap.unittest.TestResult()).wasSuccessful():
            sys.exit(1)
    else:
        del Show
        sys.exit(tap.main())
