#!/usr/bin/env python3
"""libtributary as others get it: what it exports and needs, and programs that
are compiled against what is installed.

    test_package.py BUILD LIBRARY ARCHIVE

Prints TAP.
"""

import atexit
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import tap

BUILD, LIBRARY, ARCHIVE = map(os.path.abspath, sys.argv[1:4])
del sys.argv[1:4]
PROGRAM = str(pathlib.Path(__file__).resolve().parent / "every_macro.c")
EVENT_LOOP = str(pathlib.Path(__file__).resolve().parents[2] /
                 "docs/examples/event_loop.c")
PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs"
# Called by macros and inline functions of track_event.h alone.
BEHIND_MACROS = {"tributary_category_add", "tributary_category_remove",
                 "tributary_count", "tributary_count_double",
                 "tributary_event", "tributary_event_args",
                 "tributary_process_uuid", "tributary_slice_end"}
LIMIT = 150_000
SANITIZED = os.environ["TEST_TIME_SCALE"] != "1"


def output(*command, **env):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "LC_ALL": "C", **env})
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


class Library(unittest.TestCase):
    """Of the build."""

    def names(self, *arguments):
        return {line.split()[-1]
                for line in output("nm", "--defined-only",
                                   *arguments).splitlines()
                if len(line.split()) == 3}

    def test_the_library_exports_names_with_its_prefix_and_a_version(self):
        names = self.names("-D", LIBRARY)
        self.assertIn("tributary_start@@TRIBUTARY_0", names)
        names.remove("TRIBUTARY_0")
        self.assertEqual([n for n in names if not re.fullmatch(
            r"tributary_\w+@@TRIBUTARY_0", n)], [])

    def test_the_archive_has_the_same_names(self):
        names = self.names("-g", ARCHIVE)
        self.assertEqual({f"{n}@@TRIBUTARY_0" for n in names} |
                         {"TRIBUTARY_0"}, self.names("-D", LIBRARY))

    def test_manual_pages_of_section_3_have_all_names(self):
        described = set()
        for page in PAGES.glob("*.3"):
            described.update(re.findall(r"^\.(?:Fn|Nm) (tributary_\w+)",
                                        page.read_text("utf-8"), re.M))
        names = {n.partition("@")[0] for n in self.names("-D", LIBRARY)}
        self.assertEqual(names - described - BEHIND_MACROS, {"TRIBUTARY_0"})

    @unittest.skipIf(SANITIZED, "built with sanitizers")
    def test_nothing_but_the_c_library_is_needed(self):
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]",
                            output("readelf", "-d", LIBRARY))
        self.assertEqual([n for n in needed if not n.startswith(
            ("libc.", "libpthread.", "ld-"))], [])

    @unittest.skipIf(SANITIZED, "built with sanitizers")
    def test_it_is_small(self):
        with tempfile.TemporaryDirectory() as folder:
            small = os.path.join(folder, "small")
            output("strip", "-o", small, LIBRARY)
            self.assertLess(os.path.getsize(small), LIMIT)


@functools.cache
def installed():
    """A temporary folder with all that `meson install` makes."""
    folder = tempfile.mkdtemp(prefix="trib")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    output("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet",
           "--destdir", folder)
    return folder


@unittest.skipIf(SANITIZED, "built with sanitizers")
@unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config")
class Installed(unittest.TestCase):
    """Programs against what is installed."""

    def setUp(self):
        self.folder = installed()
        self.pkgconfig = self.where("tributary.pc")
        self.libraries = self.where("libtributary.so.0")

    def where(self, name):
        """The folder of the one file that is called so."""
        (path,) = pathlib.Path(self.folder).rglob(name)
        return str(path.parent)

    def flags(self, *arguments):
        return output("pkg-config", *arguments, "tributary",
                      PKG_CONFIG_LIBDIR=self.pkgconfig,
                      PKG_CONFIG_SYSROOT_DIR=self.folder).split()

    def compile(self, *compiler, static=False):
        """Compiled, linked and run; without a word of the compiler."""
        if shutil.which(compiler[0]) is None:
            self.skipTest(f"no {compiler[0]}")
        program = os.path.join(self.folder, "program")
        said = output(*compiler, "-o", program, PROGRAM,
                      *self.flags("--cflags", "--libs",
                                  *["--static"] * static))
        if not static:
            self.assertEqual(said, "")
        self.assertEqual(output(program, LD_LIBRARY_PATH=self.libraries),
                         self.flags("--modversion")[0] + " 0\n")
        return output("readelf", "-d", program)

    STRICT = "-Wall", "-Wextra", "-Wpedantic", "-Werror"

    def test_an_event_loop_in_cpp17(self):
        """It gets its input, also where there is no service."""
        if shutil.which("g++") is None:
            self.skipTest("no g++")
        program = os.path.join(self.folder, "event_loop")
        self.assertEqual(output(
            "g++", "-xc++", "-std=c++17", *self.STRICT, "-o", program,
            EVENT_LOOP, "-xnone", *self.flags("--cflags", "--libs")), "")
        done = subprocess.run(
            [program], input="a\nb\n", capture_output=True, text=True,
            check=True, env={"LD_LIBRARY_PATH": self.libraries,
                             "PERFETTO_PRODUCER_SOCK_NAME": "/nowhere/p"})
        self.assertEqual(done.stdout, "a\nb\n")
        self.assertIn("not traced: ", done.stderr)

    def test_c11_by_gcc(self):
        used = self.compile("gcc", "-std=c11", *self.STRICT)
        self.assertIn("[libtributary.so.0]", used)

    def test_c11_by_clang_with_every_warning(self):
        # Those who want C90 declare otherwise, and padding is no mistake.
        self.compile("clang", "-std=c11", "-Weverything", "-Werror",
                     "-Wno-padded", "-Wno-declaration-after-statement",
                     "-Wno-unknown-warning-option",
                     "-Wno-unsafe-buffer-usage")

    def test_cpp17_by_gcc(self):
        self.compile("g++", "-xc++", "-std=c++17", *self.STRICT)

    def test_cpp17_by_clang(self):
        self.compile("clang++", "-xc++", "-std=c++17", *self.STRICT)

    def test_optimized(self):
        self.compile("gcc", "-std=c11", "-O3", "-flto", *self.STRICT)

    def test_static(self):
        used = self.compile("gcc", "-std=c11", "-static", static=True)
        self.assertNotIn("NEEDED", used)

    def test_the_archive_alone(self):
        """In a program that is otherwise dynamic."""
        program = os.path.join(self.folder, "program")
        output("gcc", "-o", program, PROGRAM, *self.flags("--cflags"),
               os.path.join(self.libraries, "libtributary.a"), "-pthread")
        self.assertEqual(output(program),
                         self.flags("--modversion")[0] + " 0\n")


if __name__ == "__main__":
    sys.exit(tap.main())
