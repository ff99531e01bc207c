#!/usr/bin/env python3
"""Debian's packages as others meet them: built twice, looked at by lintian, then
installed, upgraded, removed and purged in a Debian of their own.

    test_packages.py

TRIBUTARY_PACKAGES=FOLDER takes those of deploy/build-packages instead of a build.
Prints TAP.
"""

import atexit
import filecmp
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import imported, inspected, tap, vm
from peers import folder as peers_folder

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIRROR = ["apt-get", "indextargets", "--format", "$(REPO_URI)",
          "Created-By: Packages"]
CONF = "etc/tributary/tributaryd.conf"
OTHER = "etc/tributary/tributary-relay.conf"
OLD = "0.0.1"
# Left by others than our packages: dpkg's and apt's own records, and caches.
OTHERS = re.compile(
    r"(proc|sys|dev|tmp|run|debs|var/(lib/(dpkg|apt|systemd|pam)|cache|log)|"
    r"etc/(ld\.so\.cache|apt|(passwd|group|g?shadow|subuid|subgid)-?))(/|$)")
# What a group of ours is in, which stays as its number may be in use.
GROUPS = {"tributary-record", "tributary-tls"}


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n" \
        f"{done.stdout[-8000:]}"
    return done.stdout


def why_not():
    for program in ("dpkg-buildpackage", "debootstrap", "lintian"):
        if shutil.which(program) is None:
            return f"there is no {program}; deploy/install-deps packages"
    if os.getuid() != 0:
        return "debootstrap wants root"
    return None


@functools.cache
def folder():
    """A temporary one, for all of this."""
    path = tempfile.mkdtemp(prefix="trib-packages")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return pathlib.Path(path)


def build(name, **env):
    """Built with an environment of its own; the folder of what came out."""
    target = folder() / name
    run(ROOT / "deploy/build-packages", target, env={**os.environ, **env})
    return target


@functools.cache
def packages():
    """The packages, by name."""
    given = os.environ.get("TRIBUTARY_PACKAGES")
    target = pathlib.Path(given) if given else build("packages")
    return {path.name.split("_")[0]: path for path in target.glob("*.deb")
            if "-dbgsym_" not in path.name}


@functools.cache
def before():
    """The version before: the same, with another number and older settings."""
    target = folder() / "before"
    target.mkdir()
    for name, path in packages().items():
        tree = target / name
        run("dpkg-deb", "-R", path, tree)
        control = tree / "DEBIAN/control"
        text = control.read_text()
        version = re.search(r"(?m)^Version: (.*)$", text)[1]
        control.write_text(text.replace(f"Version: {version}",
                                        f"Version: {OLD}").replace(
                                            f"(= {version})", f"(= {OLD})"))
        for conf in (OTHER,):
            if (tree / conf).exists():
                with open(tree / conf, "a") as file:
                    file.write("# Of the version before.\n")
        run("dpkg-deb", "--root-owner-group", "-b", tree,
            target / f"{name}.deb")
        shutil.rmtree(tree)
    return sorted(target.glob("*.deb"))


@functools.cache
class Debian:
    """A small one in a folder, the same for all of this."""

    def __init__(self):
        self.root = folder() / "root"
        mirror = next(line for line in run(*MIRROR).splitlines()
                      if re.search("/debian/?$", line))
        # With what the tests of the packages compile and link with.
        run("debootstrap", "--variant=minbase",
            "--include=systemd-sysv,gcc,libc6-dev,pkgconf", "bookworm",
            self.root, mirror)
        (self.root / "debs").mkdir()
        # Whoever needs a proxy or keys for a mirror has them in these.
        for name in ("etc/resolv.conf", "etc/apt/apt.conf.d"):
            if os.path.isdir(f"/{name}"):
                shutil.copytree(f"/{name}", self.root / name,
                                dirs_exist_ok=True)
            else:
                shutil.copy(f"/{name}", self.root / name)
        self.run("apt-get", "-q", "update")
        # Dependencies of the packages are not theirs to remove.
        needed = {part.split()[0] for path in packages().values()
                  for part in re.split("[,|] *", run(
                      "dpkg-deb", "-f", path, "Depends").strip())
                  if part.split()[0] not in packages() and
                  not part.startswith("systemd-")}
        self.run("apt-get", "-q", "install", "-y",
                 "--no-install-recommends", *sorted(needed))

    def run(self, *command, **env):
        # In a mount namespace, so that nothing is left to be unmounted.
        return run("unshare", "--mount", "sh", "-c", """
            mount -t proc proc "$0/proc" && exec chroot "$0" "$@"
            """, self.root, *command, env={
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C",
            "DEBIAN_FRONTEND": "noninteractive", **{
                k: v for k, v in os.environ.items()
                if k.lower().endswith("_proxy")}, **env})

    def install(self, paths):
        for path in paths:
            shutil.copy(path, self.root / "debs")
        said = self.run("apt-get", "-q", "install", "-y",
                        "--no-install-recommends",
                        *(f"/debs/{os.path.basename(p)}" for p in paths))
        for path in paths:
            (self.root / "debs" / os.path.basename(path)).unlink()
        return said

    def files(self):
        found = set()
        for path, folders, files in os.walk(self.root):
            below = os.path.relpath(path, self.root)
            if OTHERS.match(below):
                folders.clear()
                continue
            found.update(os.path.normpath(os.path.join(below, name))
                         for name in folders + files)
        return {name for name in found if not OTHERS.match(name)}

    def versions(self):
        said = self.run("dpkg-query", "-W", "-f",
                        "${Package} ${Version} ${db:Status-Status}\n",
                        "*tributary*")
        return {words[0]: words[1] for words in map(
            str.split, said.splitlines()) if words[-1] == "installed"}

    def enabled(self):
        """Units of ours that start by themselves."""
        wants = self.root / "etc/systemd/system"
        return {path.name for path in wants.glob("*.wants/tributary*")}


# Of a root and a command: runs it as a container would be.
IN_IMAGE = r"""
mount --bind "$0" "$0"
mount -o remount,bind,ro "$0"
if touch "$0/x" 2>/dev/null; then exit 1; fi
mount -t tmpfs -o uid=65534,gid=65534,mode=755 tmpfs "$0/run/perfetto"
mount --bind "$OUTSIDE" "$0/var/lib/tributary"
nobody="chroot --userspec=65534:65534"
trap 'kill $load $daemon' EXIT
$nobody "$0" "$@" & daemon=$!
until $nobody "$0" /usr/bin/tributary sessions; do kill -0 $daemon; done
$nobody "$0" /usr/bin/tributary-load --quiet --producers 3 --rate 8K \
    --connect /run/perfetto/traced-producer.sock & load=$!
until $nobody "$0" /usr/bin/tributary sources | grep tributary.load; do
	kill -0 $load
done
$nobody "$0" /usr/bin/tributary record -t 1s \
    -o /var/lib/tributary/trace.pftrace tributary.load
kill $load $daemon
wait $daemon
echo "ended with $?"
trap - EXIT
"""


CONFIG = """buffers { size_kb: 1024 }
data_sources { config { name: "linux.process_stats" process_stats_config {
scan_all_processes_on_start: true } } }
duration_ms: 2000"""


def add_perfetto(root):
    """Perfetto's units, and its programs with the libraries that they want."""
    shutil.copytree(os.path.join(peers_folder(), "perfetto"),
                    root / "opt/perfetto", symlinks=True)
    # The folder of the cache is its user's alone.
    (root / "opt/perfetto").chmod(0o755)
    for name in ("usr/sbin/traced", "usr/sbin/traced_probes",
                 "usr/bin/perfetto"):
        path = root / name
        path.write_text('#!/bin/sh\nexec /opt/perfetto/run '
                        f'{path.name} "$@"\n')
        path.chmod(0o755)
    for unit in (root / "opt").rglob("traced*.service"):
        shutil.copy(unit, root / "usr/lib/systemd/system")
    with open(root / "etc/group", "a") as file:
        file.write("perfetto:x:998:\n")
    shutil.copy(ROOT / "debian/tests/units", root / "debs")


@unittest.skipIf(why_not(), why_not())
class Packages(unittest.TestCase):
    def test_1_two_builds_give_the_same(self):
        """Elsewhere, at another time of day, with another umask."""
        if "TRIBUTARY_PACKAGES" in os.environ:
            self.skipTest("none is built")
        elsewhere = folder() / "another-place"
        elsewhere.mkdir()
        old = os.umask(0o077)
        try:
            again = build("again", TMPDIR=str(elsewhere), TZ="Asia/Kolkata",
                          LC_ALL="C", DEB_BUILD_OPTIONS="parallel=1",
                          HOME="/nonexistent")
        finally:
            os.umask(old)
        first = next(iter(packages().values())).parent
        names = sorted(path.name for path in first.glob("*.deb"))
        self.assertEqual(names,
                         sorted(path.name for path in again.glob("*.deb")))
        _, differ, _ = filecmp.cmpfiles(first, again, names, shallow=False)
        self.assertEqual(differ, [])

    def test_2_lintian_has_nothing_to_say(self):
        first = next(iter(packages().values())).parent
        changes, = first.glob("*.changes")
        self.assertEqual(run("lintian", "--pedantic", "--display-info",
                             "--allow-root", "--fail-on",
                             "error,warning,info,pedantic", changes), "")

    def test_3_install_record_upgrade_remove_and_purge(self):
        debian = Debian()
        root = debian.root
        without = debian.files()

        debian.install(before())
        self.assertEqual(set(debian.versions().values()), {OLD})
        self.assertEqual(debian.enabled(), {
            "tributaryd.socket", "tributaryd-consumer.socket",
            "tributaryd.service", "tributary-probes.service"})
        self.assertEqual(GROUPS - set(re.findall(
            "(?m)^([^:]+):", (root / "etc/group").read_text())), set())
        self.assertEqual(oct((root / "etc/tributary/tls").stat().st_mode),
                         "0o40750")
        with open(root / CONF, "a") as file:
            file.write("# Of the administrator.\n")

        debian.install(packages().values())
        self.assertEqual({v for v in debian.versions().values()} & {OLD},
                         set())
        self.assertEqual(set(debian.versions()), set(packages()))
        # Edited settings stay, others are those of the new version.
        self.assertIn("Of the administrator", (root / CONF).read_text())
        self.assertNotIn("Of the version before", (root / OTHER).read_text())
        self.assertEqual(list((root / "etc/tributary").glob("*.dpkg-*")), [])

        for name, query in (
                ("records", "select count(*) from process where pid > 0"),
                ("library", "select count(*) from slice where name='step'")):
            shutil.copy(ROOT / "debian/tests" / name, root / "tmp")
            debian.run(f"/tmp/{name}", AUTOPKGTEST_ARTIFACTS="/tmp")
            data = (root / f"tmp/{name}.pftrace").read_bytes()
            (count,), = imported.sql(data, query)
            self.assertGreater(count, 2, name)
            print(f"# {name}: {query}: {count}")

        # Certificates are the administrator's.
        (root / "etc/tributary/tls/key.pem").write_text("a key\n")
        names = sorted(packages())
        debian.run("apt-get", "-q", "remove", "-y", *names)
        self.assertEqual({n for n in debian.files() - without
                          if n.startswith(("usr/", "lib/"))}, set())
        self.assertIn("Of the administrator", (root / CONF).read_text())
        debian.run("dpkg", "--purge", *names)
        self.assertEqual(debian.files() - without, {
            "etc/tributary", "etc/tributary/tls",
            "etc/tributary/tls/key.pem"})
        (root / "etc/tributary/tls/key.pem").unlink()

        # Once more, with nothing of the administrator's.
        debian.install(packages().values())
        debian.run("dpkg", "--purge", *names)
        self.assertEqual(debian.files() - without, set())
        self.assertEqual(without - debian.files(), set())

    @unittest.skipIf(shutil.which("umoci") is None, "there is no umoci")
    def test_4_the_image(self):
        """As nobody, on a root that is read-only."""
        first = next(iter(packages().values())).parent
        images = [folder() / name for name in ("image", "image again")]
        for image in images:
            run(ROOT / "deploy/build-image", first, image)
        self.assertEqual(*((image / "index.json").read_text()
                           for image in images))
        size = sum(path.stat().st_size for path in images[0].rglob("*"))
        print(f"# {size / 1e6:.1f} MB")
        self.assertLess(size, 30_000_000)
        bundle = folder() / "bundle"
        run("umoci", "unpack", "--image", f"{images[0]}:tributary", bundle)
        outside = folder() / "outside"
        outside.mkdir()
        outside.chmod(0o777)
        process = json.loads((bundle / "config.json").read_text())["process"]
        self.assertEqual(process["user"], {"uid": 65534, "gid": 65534})
        said = run("unshare", "--mount", "sh", "-euc", IN_IMAGE,
                   bundle / "rootfs", *process["args"],
                   env={**os.environ, "OUTSIDE": str(outside)})
        self.assertIn("There is no session", said)
        self.assertIn("ended with 0", said)
        report = inspected.report(path=str(outside / "trace.pftrace"))
        self.assertEqual(report["verdict"], "whole")

    def test_5_the_bill_of_materials(self):
        first = next(iter(packages().values())).parent
        text = run(ROOT / "deploy/make-sbom", first)
        self.assertEqual(run(ROOT / "deploy/make-sbom", first), text)
        bill = json.loads(text)
        self.assertEqual((bill["spdxVersion"], bill["dataLicense"],
                          bill["SPDXID"]),
                         ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
        entries = {p["SPDXID"]: p for p in bill["packages"]}
        self.assertEqual(len(entries), len(bill["packages"]))
        for name in entries:
            self.assertRegex(name, r"^SPDXRef-[A-Za-z0-9.-]+$")
        described, pairs = set(), set()
        for relation in bill["relationships"]:
            one, other = (relation["spdxElementId"],
                          relation["relatedSpdxElement"])
            self.assertIn(other, entries)
            if relation["relationshipType"] == "DESCRIBES":
                described.add(entries[other]["name"])
            else:
                pairs.add((entries[one]["name"], entries[other]["name"]))
        self.assertEqual(described, set(packages()))
        # As `ldd` of them says.
        self.assertLessEqual({("tributaryd", "libssl3"),
                              ("tributary-upload", "libcurl4"),
                              ("libssl3", "libc6"),
                              ("libtributary-dev", "libtributary0")}, pairs)
        for name, path in packages().items():
            entry = entries[f"SPDXRef-Package-{name}"]
            self.assertEqual(entry["checksums"][0]["checksumValue"],
                             hashlib.sha256(path.read_bytes()).hexdigest())

    @unittest.skipIf(vm.unavailable() is not None, vm.unavailable())
    @unittest.skipUnless(vm.has_perfetto(), "Perfetto's programs are not here")
    def test_6_the_way_over_from_perfetto(self):
        """docs/packages.md, in an emulated machine: systemd, the units of
        Debian's package perfetto and its programs."""
        debian = Debian()
        add_perfetto(debian.root)
        for path in packages().values():
            shutil.copy(path, debian.root / "debs")
        disk = folder() / "disk"
        run("mkfs.ext4", "-q", "-d", debian.root, disk, "3G")
        with tempfile.TemporaryDirectory(prefix="trib-vm") as payload:
            machine = vm.WithSystemd(payload, disk=str(disk))
        self.addCleanup(machine.stop)

        def state(*units):
            return machine.output("systemctl is-active " + " ".join(units))[
                1].decode().split()

        ours = ["tributaryd.socket", "tributaryd-consumer.socket",
                "tributaryd.service"]
        theirs = ["traced.service", "traced-probes.service"]

        def record():
            """By Perfetto's own command, from whoever has the sockets."""
            machine.run("perfetto --txt -c /tmp/config -o /tmp/trace")
            (count,), = imported.sql(
                machine.read("/tmp/trace"),
                "select count(*) from process where pid > 0")
            self.assertGreater(count, 2)

        machine.put("/tmp/config", CONFIG)
        machine.run("systemctl start traced traced-probes")
        self.assertEqual(state(*theirs), ["active"] * 2)
        record()
        # Without a word to traced: it has to make way.
        machine.run("dpkg -i /debs/*.deb")
        self.assertEqual(state(*ours, "tributary-probes.service"),
                         ["active"] * 4)
        self.assertEqual(state(*theirs), ["inactive"] * 2)
        self.assertEqual(machine.run(
            "stat -c '%a %G' /run/perfetto/*").split("\n")[:2],
            ["660 tributary-record", "666 root"])
        record()
        machine.run("/debs/units")
        # The way back, and over once more.
        machine.run("systemctl start traced traced-probes")
        self.assertEqual(state(*ours), ["inactive"] * 3)
        self.assertEqual(state(*theirs), ["active"] * 2)
        record()
        machine.run("systemctl start tributaryd.socket "
                    "tributaryd-consumer.socket")
        self.assertEqual(state(*ours[:2]), ["active"] * 2)
        self.assertEqual(state(*theirs), ["inactive"] * 2)
        record()
        machine.run("dpkg --purge " + " ".join(packages()))
        self.assertEqual(machine.run(
            "systemctl --no-legend list-units --all 'tributary*'"), "")


if __name__ == "__main__":
    sys.exit(tap.main())
