#!/usr/bin/env python3
"""RPM packages: built, looked into, unpacked into a folder, and what is in them
records a trace from there.

    test_rpms.py

TRIBUTARY_RPMS=FOLDER takes those of deploy/build-rpms instead of a build.
Prints TAP.
"""

import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import imported, tap

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = {"tributary", "tributaryd", "tributary-relay", "tributary-upload",
         "tributary-web", "tributary-probes", "libtributary",
         "libtributary-devel"}


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n" \
        f"{done.stdout[-8000:]}"
    return done.stdout


def ask(path, *how):
    return run("rpm", "-qp", *how, path)


@functools.cache
class Built:
    """The packages, by name, and what all of them unpack to, for all of this."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="trib-rpms"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        given = os.environ.get("TRIBUTARY_RPMS")
        built = pathlib.Path(given or self.folder / "packages")
        if not given:
            run(ROOT / "deploy/build-rpms", built)
        self.packages = {ask(path, "--queryformat", "%{NAME}"): path
                         for path in built.glob("*.rpm")
                         if ".src." not in path.name}
        self.source, = built.glob("*.src.rpm")
        self.root = self.folder / "root"
        self.root.mkdir()
        for path in self.packages.values():
            unpack(path, self.root)


def unpack(package, folder):
    run("sh", "-c", 'rpm2cpio "$0" | cpio --quiet -idum', package, cwd=folder)


@unittest.skipIf(shutil.which("rpmbuild") is None,
                 "there is no rpmbuild; deploy/install-deps packages")
class Rpms(unittest.TestCase):
    def setUp(self):
        self.built = Built()
        self.root, self.folder = self.built.root, self.built.folder

    def test_each_is_there_and_owns_its_files_alone(self):
        self.assertEqual(set(self.built.packages), NAMES)
        files = []
        for path in self.built.packages.values():
            files += [name for name in ask(path, "-l").splitlines()
                      if not name.startswith(("/usr/share/licenses",
                                              "/usr/lib/.build-id"))]
        self.assertEqual(sorted(set(files)), sorted(files))
        settings = ask(self.built.packages["tributaryd"], "-c").splitlines()
        self.assertEqual(settings, ["/etc/tributary/tributary-archiver.conf",
                                    "/etc/tributary/tributaryd.conf"])
        # The libraries that a program is linked with are found by rpm.
        self.assertIn("libssl.so.3", ask(self.built.packages["tributaryd"],
                                              "--requires"))
        # Units name programs where these packages have them.
        for unit in self.root.glob("usr/lib/systemd/system/*.service"):
            for line in unit.read_text().splitlines():
                if line.startswith("ExecStart=/"):
                    program = line.removeprefix("ExecStart=").split()[0]
                    self.assertTrue((self.root / program[1:]).exists(), line)

    def test_what_was_unpacked_records(self):
        shutil.copy(ROOT / "debian/tests/records", self.folder)
        bin = self.root / "usr/bin"
        for name in ("tributaryd", "tributary", "tributary-relay",
                     "tributary-web", "tributary-upload", "tributary-probes",
                     "tributary-archiver"):
            self.assertIn("tributary", run(bin / name, "--version"))
        run(self.folder / "records", env={
            **os.environ, "PATH": f"{bin}:{os.environ['PATH']}",
            "AUTOPKGTEST_ARTIFACTS": str(self.folder)})
        data = (self.folder / "records.pftrace").read_bytes()
        (count,), = imported.sql(
            data, "select count(*) from process where pid > 0")
        self.assertGreater(count, 2)

    def test_the_source_package_has_all_of_it(self):
        held = ask(self.built.source, "-l").split()
        self.assertIn("tributary.spec", held)
        tar, = (name for name in held if name.endswith(".tar"))
        unpack(self.built.source, self.folder)
        names = run("tar", "-tf", self.folder / tar).splitlines()
        known = run("git", "-C", ROOT, "ls-files").splitlines()
        self.assertEqual({name.split("/", 1)[1] for name in names
                          if not name.endswith("/")}, set(known))


if __name__ == "__main__":
    sys.exit(tap.main())
