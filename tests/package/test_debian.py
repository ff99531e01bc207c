#!/usr/bin/env python3
"""debian/ and the spec of the RPMs against the tree, without a build of packages:
what is installed is in one package each, and the library's symbols, dependencies
and version are those of the build.

    test_debian.py BUILD LIBRARY

Prints TAP.
"""

import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from harness import tap

BUILD, LIBRARY = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]
ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = ROOT / "debian"
SPEC = ROOT / "deploy/rpm/tributary.spec"
UNITS = "lib/systemd/system"
# Values of macros in the spec, for what a build installs here.
MACROS = {"_bindir": "usr/bin", "_datadir": "usr/share", "_libdir": "usr/lib/*",
          "_includedir": "usr/include", "_mandir": "usr/share/man",
          "_docdir": "usr/share/doc", "_sysconfdir": "etc", "_unitdir": UNITS,
          "_sysusersdir": "usr/lib/sysusers.d", "_tmpfilesdir": "usr/lib/tmpfiles.d"}


def text(path):
    return path.read_text("utf-8")


def paragraphs(path):
    """Of a file in Debian's format: dicts, continued lines joined."""
    for part in re.split(r"\n\n+", text(path).strip()):
        found = {}
        for line in part.splitlines():
            if line[0] in " \t":
                found[name] += "\n" + line.strip()
            else:
                name, _, value = line.partition(":")
                found[name] = value.strip()
        yield found


def installed():
    """Paths below / of all that `meson install` makes for Debian."""
    with tempfile.TemporaryDirectory(prefix="trib") as folder:
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild",
                        "--quiet", "--destdir", folder], check=True,
                       stdout=subprocess.DEVNULL)
        root = pathlib.Path(folder)
        paths = {str(path.relative_to(root)) for path in root.rglob("*")
                 if path.is_symlink() or not path.is_dir()}
    # The build that is tested has another prefix.
    paths = {re.sub(r"^usr/local/etc/", "etc/", path).replace(
        "usr/local/", "usr/") for path in paths}
    for folder in (ROOT / "deploy", pathlib.Path(BUILD) / "deploy"):
        paths |= {f"{UNITS}/{path.name}" for path in folder.iterdir()
                  if path.suffix in (".service", ".socket") and
                  # An example is no unit of the system's.
                  f"usr/share/doc/tributary/{path.name}" not in paths}
    return paths


def packaged():
    """[(package, pattern of paths)] of debian/*.install."""
    for path in DEBIAN.glob("*.install"):
        for line in text(path).splitlines():
            pattern = line.split()[0].replace("${env:UNIT_DIR}", UNITS)
            yield path.stem, pattern


def in_rpms():
    """[(package, pattern of paths)] of the spec's %files."""
    for part in re.split(r"(?m)^%files", text(SPEC))[1:]:
        name, *lines = part.splitlines()
        words = name.split() or [""]
        for line in lines:
            # The build's own, by their names in the tree.
            if not line or line.startswith("%license") or (
                    line.startswith("%doc") and "/" not in line):
                continue
            path = re.sub(r"%{(\w+)}", lambda found: MACROS[found[1]],
                          line.split()[-1])
            yield words[-1], path


class Rpms(unittest.TestCase):
    def test_what_is_installed_is_in_one_package(self):
        patterns = list(in_rpms())
        unused = set(patterns)
        for path in sorted(installed()):
            owners = [(package, pattern) for package, pattern in patterns
                      if fnmatch.fnmatch(path, pattern) or
                      path.startswith(pattern + "/")]
            self.assertEqual(len(owners), 1, f"{path} is in {owners}: {SPEC}")
            unused -= set(owners)
        # The spec's own %install has these from debian/.
        self.assertEqual([pattern for _, pattern in unused
                          if pattern not in text(SPEC) and
                          not pattern.endswith(("/tributaryd.conf",
                                                "-group.conf"))], [])

    def test_it_wants_what_the_build_wants(self):
        wanted = set(re.findall(r"(?m)^BuildRequires: +pkgconfig\((.*?)\)",
                                text(SPEC)))
        found = set(re.findall(r"(?m)^\w+ = dependency\('(.*?)'",
                               text(ROOT / "meson.build")))
        self.assertEqual(wanted, found - {"cmocka", "threads"})


class Debian(unittest.TestCase):
    def test_what_is_installed_is_in_one_package(self):
        patterns = list(packaged())
        unused = set(patterns)
        for path in sorted(installed()):
            owners = [(package, pattern) for package, pattern in patterns
                      if fnmatch.fnmatch(path, pattern) or
                      path.startswith(pattern + "/")]
            self.assertEqual(len(owners), 1, f"{path} is in {owners}: "
                             "debian/*.install")
            unused -= set(owners)
        # Those that are not of the build are of the source.
        self.assertEqual([pattern for _, pattern in unused
                          if not (ROOT / pattern).is_file()], [])

    def test_symbols_are_those_of_the_library(self):
        said = subprocess.run(["nm", "-D", "--defined-only", LIBRARY],
                              check=True, capture_output=True, text=True)
        names = {words[2].split("@")[0] for words in map(
            str.split, said.stdout.splitlines()) if len(words) == 3}
        symbols = re.findall(r"(?m)^ (\w+)@TRIBUTARY_0 [\d.]+$",
                             text(DEBIAN / "libtributary0.symbols"))
        self.assertEqual(sorted(symbols), sorted(names),
                         "debian/libtributary0.symbols")

    def test_build_dependencies_are_those_of_install_deps(self):
        names = re.search(r"(?ms)^build=\((.*?)\)",
                          text(ROOT / "deploy/install-deps"))[1].split()
        source = next(paragraphs(DEBIAN / "control"))
        wanted = {re.match(r"[\w+.-]+", part.strip())[0]
                  for part in source["Build-Depends"].split(",")}
        # Every build of a package has these.
        essential = {"gcc", "libc6-dev", "ninja-build", "pkg-config"}
        # Only a build of a package has these.
        debian = {"debhelper-compat", "dh-sequence-installsysusers",
                  "pkgconf", "systemd"}
        self.assertEqual(wanted - debian, set(names) - essential)

    def test_the_version_is_the_project_s(self):
        version = re.search(r"(?m)^  version: '(.+)',",
                            text(ROOT / "meson.build"))[1]
        self.assertEqual(re.match(r"tributary \((.+?)\)",
                                  text(DEBIAN / "changelog"))[1], version)

    def test_every_package_says_what_it_is(self):
        _, *packages = paragraphs(DEBIAN / "control")
        names = {p["Package"] for p in packages}
        self.assertEqual(names, {package for package, _ in packaged()})
        shorts = [p["Description"].split("\n")[0] for p in packages]
        self.assertEqual(len(set(shorts)), len(packages))
        guide = text(ROOT / "docs/packages.md")
        self.assertEqual([n for n in names if f"`{n}`" not in guide], [],
                         "docs/packages.md has every package")


if __name__ == "__main__":
    sys.exit(tap.main())
