#!/usr/bin/env python3
"""Completion in bash, zsh and fish: every flag of every command, and the names that
the collector knows."""

import os
import re
import shutil
import subprocess
import sys
import unittest

from harness import tap
from harness.case import Case, TEST_SOURCE
from harness.daemon import environment
from harness.loop import SCALE

PROGRAMS = {name: os.environ[variable] for name, variable in (
    ("tributary", "TRIBUTARY"), ("tributaryd", "TRIBUTARYD"),
    ("tributary-archiver", "TRIBUTARY_ARCHIVER"),
    ("tributary-relay", "TRIBUTARY_RELAY"),
    ("tributary-probes", "TRIBUTARY_PROBES"),
    ("tributary-upload", "TRIBUTARY_UPLOAD"),
    ("tributary-web", "TRIBUTARY_WEB"))}
FOLDER = os.path.join(os.environ["SOURCE_ROOT"], "deploy", "completion")
BASH = os.path.join(FOLDER, "tributary.bash")
ZSH = os.path.join(FOLDER, "_tributary")
SHELLS = [s for s in ("bash", "zsh") if shutil.which(s)]
# Words as bash breaks them: COMP_WORDBREAKS has = and :.
IN_BASH = """
set -u
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_tributary 2>/dev/null
printf '%s\\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"}
"""
# What the shell does with what it is given is its own affair.
IN_ZSH = """
compadd() { local i; for i; do [[ $i == (-|--|-S|) ]] || print -r -- $i; done }
compset() { }
_files() { print -r -- FILES }
file=$1; shift
words=("$@") CURRENT=$#
source $file
"""


def output(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL,
                          capture_output=True, check=True, text=True,
                          timeout=60 * SCALE, **options).stdout


def commands():
    """["tributary", "record"] and the like, all there are."""
    text = output(PROGRAMS["tributary"], "--help")
    names = re.findall(r"(?m)^  ([a-z]+) ", text.split("Commands:")[1].split(
        "\n\n")[0])
    return [["tributary", name] for name in names] + [
        [name] for name in PROGRAMS if name != "tributary"]


def flags(command):
    """Those that its help explains, each at the beginning of a line."""
    text = output(PROGRAMS[command[0]], *command[1:], "--help")
    found = set()
    for line in re.findall(r"(?m)^ +(-.*)$", text):
        found |= set(re.findall(r"(?:^|, )(--[a-z][a-z0-9_.-]*[a-z0-9])",
                                line.split("  ")[0]))
    return found


class Completion(Case):
    def complete(self, shell, *words, socket=None):
        """What comes for the last of the words."""
        words = [PROGRAMS[words[0]], *words[1:]]
        script, file = (IN_BASH, BASH) if shell == "bash" else (IN_ZSH, ZSH)
        env = environment(**({"PERFETTO_CONSUMER_SOCK_NAME": socket}
                             if socket else {}))
        plain = ["--norc"] if shell == "bash" else ["-f"]
        out = output(shell, *plain, "-c", script, shell, file, *words,
                     env=env, cwd=self.folder)
        return {word.rstrip() for word in out.split("\n")} - {""}

    def test_bash_accepts_its_file(self):
        output("bash", "-n", BASH)

    @unittest.skipUnless("zsh" in SHELLS, "zsh is not installed: all of this "
                         "is tested in bash alone")
    def test_zsh_accepts_its_file(self):
        output("zsh", "-n", ZSH)

    def test_every_flag_of_every_command_is_completed(self):
        for command in commands():
            expected = flags(command)
            self.assertIn("--help", expected, command)
            for shell in SHELLS:
                found = self.complete(shell, *command, "--")
                self.assertEqual(expected - found, set(), (shell, command))

    def test_commands_are_completed(self):
        names = {command[1] for command in commands() if len(command) == 2}
        self.assertIn("record", names)
        for shell in SHELLS:
            found = self.complete(shell, "tributary", "")
            self.assertEqual(found, names | {"--help", "--version"}, shell)
        self.assertEqual(self.complete("bash", "tributary", "mach"),
                         {"machines"})

    def test_values_of_flags(self):
        with open(self.path("my-config"), "w", encoding="ascii"):
            os.mkdir(self.path("my-folder"))
        complete = self.complete
        self.assertEqual(complete("bash", "tributary", "record", "-c", "my"),
                         {"my-config", "my-folder"})
        self.assertEqual(complete("bash", "tributary", "record", "--tls-dir",
                                  "my"), {"my-folder"})
        self.assertEqual(complete("bash", "tributaryd", "--log-level", "=",
                                  "w"), {"warn"})
        self.assertEqual(complete("bash", "tributary", "cert", "issue",
                                  "--role", "con"), {"consumer"})
        self.assertEqual(complete("bash", "tributary", "cert", "r"),
                         {"renew", "revoke"})
        self.assertEqual(complete("bash", "tributary", "inspect", "my-c"),
                         {"my-config"})
        self.assertIn("track_event", complete("bash", "tributary", "inspect",
                                              "--type", "track"))
        # A flag without a value is followed by an argument.
        self.assertEqual(complete("bash", "tributary", "inspect", "--packets",
                                  "my-c"), {"my-config"})

    def test_names_come_from_the_collector(self):
        self.daemon()
        self.producer("p")
        self.session(unique_session_name="robots")
        self.session(unique_session_name="un typable; rm")
        socket = self.daemons[0].address("consumers")
        for shell in SHELLS:
            def complete(*words, shell=shell):
                return self.complete(shell, "tributary", *words,
                                     socket=socket)
            self.assertEqual({word for line in complete("stop", "")
                              for word in line.split()},
                             {"1", "robots", "2"}, shell)
            self.assertEqual(complete("machines", ""), {"host"}, shell)
            self.assertEqual(complete("record", "--machine", ""), {"host"},
                             shell)
            self.assertEqual(complete("record", ""), {TEST_SOURCE}, shell)
        self.assertEqual(self.complete("bash", "tributary", "stop",
                                       "--connect", socket, "ro"), {"robots"})

    def test_no_collector_is_no_trouble(self):
        for shell in SHELLS:
            self.assertEqual(self.complete(shell, "tributary", "stop", "",
                                           socket=self.path("nobody")), set())
            # It might want a password.
            self.assertEqual(self.complete(shell, "tributary", "stop",
                                           "--connect", "ssh://nobody", ""),
                             set())

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_asks_bash(self):
        script = self.path("tributary.fish")
        with open(os.path.join(FOLDER, "tributary.fish.in")) as source, \
                open(script, "w") as target:
            target.write(source.read().replace("@bash_dir@/tributary", BASH))
        os.mkdir(self.path("my-folder"))
        self.daemon()
        self.session(unique_session_name="robots")
        path = os.pathsep.join(map(os.path.dirname, PROGRAMS.values()))

        def complete(line):
            out = output("fish", "--no-config", "-c",
                         f"source {script}; complete -C '{line}'",
                         cwd=self.folder, env=environment(
                             PATH=f"{path}:{os.environ['PATH']}",
                             HOME=self.folder, PERFETTO_CONSUMER_SOCK_NAME=
                             self.daemons[0].address("consumers")))
            return {word.split("\t")[0] for word in out.splitlines()}

        self.assertEqual(complete("tributary mach"), {"machines"})
        self.assertEqual(complete("tributary stop ro"), {"robots"})
        self.assertEqual(complete("tributaryd --log-level=w"),
                         {"--log-level=warn"})
        self.assertEqual(complete("tributary record --tls-dir my"),
                         {"my-folder/"})
        self.assertEqual(flags(["tributary-relay"]) -
                         complete("tributary-relay --"), set())

    @unittest.skipUnless(shutil.which("meson"), "meson is not there")
    def test_meson_installs_them(self):
        plan = output("meson", "introspect", "--installed",
                      os.environ["BUILD_ROOT"])
        self.assertIn('bash-completion/completions/tributary"', plan)
        self.assertIn("zsh/site-functions/_tributary", plan)
        for name in PROGRAMS:
            self.assertIn(f"fish/vendor_completions.d/{name}.fish", plan)


if __name__ == "__main__":
    sys.exit(tap.main())
