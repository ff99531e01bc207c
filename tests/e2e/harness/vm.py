"""Emulated machines: Debian's kernel in QEMU, with programs of the test's.

	machine = vm.Machine(programs=[os.environ["TRIBUTARY_PROBES"]])
	machine.run("uname -r")
	machine.collector          # tests listen there, on the loopback interface
	vm.COLLECTOR               # and the machine finds it there

It has a kernel, a boot clock, a /proc and a tracefs of its own, vsock to itself,
kernel TLS (`module("tls")`), and a network in which nothing but one port of
this machine's loopback interface is to be reached.  `deploy/install-deps vm`.
"""

import atexit
import contextlib
import ctypes
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from peers import folder as peers_folder
from peers import program

from .loop import SCALE
from .ports import free_port

QEMU = "qemu-system-x86_64"
BUSYBOX = "/bin/busybox"
INIT = os.path.join(os.environ["SOURCE_ROOT"], "tests/vm/init")
# What the machine calls the collector, and its port there.
COLLECTOR = "collector:7443"
# Those that the tests load themselves are there as well, but not loaded.
LOADED = ("virtio_pci", "virtio_console", "virtio_net", "virtio_blk",
          "vsock_loopback")
LATER = ("tls", "gcm", "ctr", "ghash_generic")
# An emulated processor is slow, and the one that emulates it busy.
PATIENCE = 120
PERFETTO = "/peers/perfetto"


def _kernel():
    """The folder of an unpacked kernel, or None."""
    path = os.path.join(peers_folder(), "kernel")
    return path if os.path.exists(os.path.join(path, "complete")) else None


def unavailable():
    """Why there can be no such machine here; None: there can."""
    if SCALE != 1:
        return "programs with sanitizers are too slow in an emulated machine"
    for program in (QEMU, BUSYBOX, "cpio"):
        if shutil.which(program) is None:
            return f"there is no {program}; deploy/install-deps vm"
    if _kernel() is None:
        return "there is no kernel; deploy/install-deps vm"
    return None


def has_perfetto():
    """Its programs can be put into machines."""
    return program("traced_probes") is not None


def _modules(kernel, names):
    """Paths of modules and what they depend on, in the order of loading."""
    root, = glob.glob(os.path.join(kernel, "lib/modules/*"))
    needs = {}
    with open(os.path.join(root, "modules.dep")) as file:
        for line in file:
            path, _, rest = line.partition(":")
            name = os.path.basename(path).removesuffix(".ko")
            needs[name.replace("-", "_")] = [*reversed(rest.split()), path]
    order = dict.fromkeys(path for name in names for path in needs[name])
    return [os.path.join(root, path) for path in order]


def _libraries(program):
    """What the loader finds for it, itself included."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True)
    words = done.stdout.split()
    return sorted({w for w in words if w.startswith("/")})


def _put(root, source, target=None):
    target = root + (target or source)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(source, target)


def _pack(path, programs, files, perfetto):
    """An initial file system: programs go to /bin with their libraries, files
    are {path there: path of a file or folder here}."""
    kernel = _kernel()
    with tempfile.TemporaryDirectory(prefix="trib-vm") as root:
        os.chmod(root, 0o755)
        _put(root, INIT, "/init")
        os.chmod(root + "/init", 0o755)
        _put(root, BUSYBOX, "/bin/busybox")
        for program in programs:
            _put(root, program, "/bin/" + os.path.basename(program))
            for library in _libraries(program):
                _put(root, library)
        loaded = _modules(kernel, LOADED)
        for module in loaded + _modules(kernel, LATER):
            _put(root, module, "/modules/" + os.path.basename(module))
        with open(root + "/modules/load", "w") as file:
            file.writelines(os.path.basename(m) + "\n" for m in loaded)
        for target, source in files.items():
            if os.path.isdir(source):
                shutil.copytree(source, root + target, symlinks=True)
            else:
                _put(root, source, target)
        if perfetto:
            shutil.copytree(os.path.join(peers_folder(), "perfetto"),
                            root + PERFETTO, symlinks=True,
                            ignore=shutil.ignore_patterns("share"))
        _write_etc(root + "/etc")
        with open(path, "wb") as out:
            names = subprocess.run(["find", "."], cwd=root, check=True,
                                   stdout=subprocess.PIPE).stdout
            subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root,
                           input=names, stdout=out, check=True)


def _write_etc(etc):
    os.makedirs(etc, exist_ok=True)
    for name, text in (
            ("hosts", "127.0.0.1 localhost\n10.0.2.100 collector\n"),
            ("nsswitch.conf", "hosts: files\n"),
            ("passwd", "root:x:0:0:root:/root:/bin/sh\n"
                       "nobody:x:65534:65534:nobody:/:/bin/false\n"),
            ("group", "root:x:0:\nnogroup:x:65534:\n")):
        with open(os.path.join(etc, name), "w") as file:
            file.write(text)


def _make_disk(path, megabytes):
    """An empty ext4 file system."""
    with open(path, "wb") as file:
        file.truncate(megabytes << 20)
    mkfs = shutil.which("mkfs.ext4") or "/usr/sbin/mkfs.ext4"
    subprocess.run([mkfs, "-q", "-F", path], check=True)


def _die_with_us():
    """Of a child: whatever ends the test ends the machine."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Failed(AssertionError):
    """A command in the machine ended with another status than 0."""


class Machine:
    """One that is running.  Ends with the test program, or by stop().

    disk: the path of one that is there; new_disk: one is made for it, of so
    many MiB.
    """

    disk_options = ""

    def __init__(self, programs=(), files=None, perfetto=False, disk=None,
                 new_disk=0, memory=512, processors=1):
        self.folder = tempfile.mkdtemp(prefix="trib-vm", dir="/tmp")
        atexit.register(self.stop)
        self.port = free_port()
        self.collector = f"127.0.0.1:{self.port}"
        self._disk = disk
        if new_disk:
            self._disk = os.path.join(self.folder, "disk")
            _make_disk(self._disk, new_disk)
        self._memory = memory
        self._processors = processors
        self._initrd = os.path.join(self.folder, "initrd")
        self.qemu = None
        _pack(self._initrd, programs, files or {}, perfetto)
        self.boot()

    def boot(self):
        """Starts it, or what it has become: memory is empty, the disk as it
        was left."""
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            ends = [stack.enter_context(self._listen(name))
                    for name in ("control", "marks", "qmp")]
            with open(self.console_path, "ab") as console:
                self.qemu = subprocess.Popen(
                    self._command(), stdin=subprocess.DEVNULL, stdout=console,
                    stderr=subprocess.STDOUT, preexec_fn=_die_with_us)
            self._control, self._marks, self._qmp = (
                self._accept(end) for end in ends)
        self._said = self._control.makefile("rb")
        self._mark_said = self._marks.makefile("rb")
        self._qmp_said = self._qmp.makefile("rb")
        self._qmp_said.readline()
        self.qmp("qmp_capabilities")
        self.run("true")
        self.boot_seconds = time.monotonic() - began

    @property
    def console_path(self):
        return os.path.join(self.folder, "console")

    def _listen(self, name):
        end = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.folder, name))
        end.bind(os.path.join(self.folder, name))
        end.listen()
        end.settimeout(PATIENCE)
        return end

    def _accept(self, end):
        connection, _ = end.accept()
        connection.settimeout(PATIENCE)
        return connection

    def _command(self):
        kernel, = glob.glob(os.path.join(_kernel(), "boot/vmlinuz-*"))
        forward = f"guestfwd=tcp:10.0.2.100:7443-cmd:{BUSYBOX} nc " \
            f"127.0.0.1 {self.port}"
        argv = [QEMU, "-accel", "tcg", "-m", str(self._memory),
                "-smp", str(self._processors), "-nographic",
                "-no-reboot", "-nodefaults", "-serial", "stdio",
                "-kernel", kernel, "-initrd", self._initrd,
                # On a busy machine the timer's interrupts come too late for
                # the kernel's check of them, which ends in a panic.
                "-append", "console=ttyS0 quiet panic=-1 no_timer_check",
                "-global", "PIIX4_PM.disable_s3=0",
                "-netdev", f"user,id=net,restrict=on,{forward}",
                "-device", "virtio-net-pci,netdev=net",
                "-device", "virtio-serial-pci"]
        for name in ("control", "marks"):
            argv += ["-chardev",
                     f"socket,id={name},path={self.folder}/{name}",
                     "-device", f"virtserialport,chardev={name},name={name}"]
        argv += ["-qmp", f"unix:{self.folder}/qmp"]
        if self._disk is not None:
            argv += ["-drive", f"file={self._disk},format=raw,if=virtio"
                     f"{self.disk_options}"]
        return argv

    def console(self):
        with open(self.console_path, errors="replace") as file:
            return file.read()

    def qmp(self, command, **arguments):
        request = {"execute": command, "arguments": arguments}
        self._qmp.sendall(json.dumps(request).encode())
        while True:
            reply = json.loads(self._qmp_said.readline())
            if "error" in reply:
                raise Failed(f"{command}: {reply['error']}")
            if "return" in reply:
                return reply["return"]

    def output(self, command):
        """(status, bytes that it said) of a shell command in the machine."""
        self._control.sendall(
            b"{ %s\n} >/tmp/.said 2>&1 </dev/null\n"
            b"echo $? $(wc -c </tmp/.said); cat /tmp/.said\n" %
            command.encode())
        try:
            line = self._said.readline()
            status, size = map(int, line.split())
        except (OSError, ValueError) as error:
            raise Failed(f"the machine does not answer: {error}; it said:\n" +
                         self.console()) from error
        return status, self._said.read(size)

    def run(self, command):
        """What it said; it has to end with status 0."""
        status, said = self.output(command)
        text = said.decode(errors="replace")
        if status != 0:
            raise Failed(f"{command!r} in the machine: status {status}: "
                         f"{text}")
        return text

    def read(self, path):
        """Bytes of a file there."""
        status, said = self.output(f"cat {path}")
        if status != 0:
            raise Failed(said.decode(errors="replace"))
        return said

    def put(self, path, data):
        """Makes a small file there."""
        self.run(f"mkdir -p {os.path.dirname(path)}; "
                 f"cat >{path} <<'END OF FILE'\n{data}\nEND OF FILE")

    def put_folder(self, source, target):
        """The files of a folder here, which are texts."""
        for name in os.listdir(source):
            with open(os.path.join(source, name)) as file:
                self.put(os.path.join(target, name), file.read())
        self.run(f"chmod -R go= {target}")

    def start(self, *argv, **env):
        """A program in the background; its log is /tmp/NAME.log.  Its pid."""
        name = os.path.basename(argv[0])
        words = " ".join([*(f"{k}='{v}'" for k, v in env.items()), *argv])
        return int(self.run(f"{words} >>/tmp/{name}.log 2>&1 & echo $!"))

    def attach(self, *argv):
        """The same for the program that mark() talks to."""
        return int(self.run(f"{' '.join(argv)} <>/dev/marks >&0 "
                            f"2>>/tmp/{argv[0]}.log & echo $!"))

    def log(self, name):
        return self.read(f"/tmp/{name}.log").decode(errors="replace")

    def end(self, *pids):
        """Ends what start() started, by SIGTERM; asserts status 0, or that
        it had no handler for the signal."""
        statuses = {}
        for pid in pids:
            # Whoever started it is the shell that this runs in.
            statuses[pid], _ = self.output(
                f"kill -TERM {pid}; wait {pid}")
        assert set(statuses.values()) <= {0, 143}, statuses

    def mark(self, name):
        """Has the program `marker` (on the port "marks") write an event of
        this name: (our boot clock before, that of the machine, ours after)."""
        before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._marks.sendall(name.encode() + b"\n")
        line = self._mark_said.readline()
        after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        said, there = line.decode().rsplit(None, 1)
        assert said == name, line
        return before, int(there), after

    def module(self, name):
        """Loads one of those that are there for later, where it is not."""
        for path in _modules(_kernel(), [name]):
            loaded = os.path.basename(path).removesuffix(".ko")
            self.run(f"[ -e /sys/module/{loaded.replace('-', '_')} ] || "
                     f"insmod /modules/{os.path.basename(path)}")

    def sleep(self, seconds):
        """Suspends it to memory, and wakes it after so long."""
        self.run("(sleep 0.1; echo mem >/sys/power/state) &")
        while self.qmp("query-status")["status"] != "suspended":
            time.sleep(0.05)
        time.sleep(seconds)
        self.qmp("system_wakeup")
        self.run("true")

    def halt(self):
        """As if its power were cut."""
        if self.qemu is not None:
            self.qemu.kill()
            self.qemu.wait()
            self.qemu = None
        for end in (self._control, self._marks, self._qmp):
            end.close()

    def stop(self):
        if self.qemu is not None:
            self.halt()
        atexit.unregister(self.stop)
        shutil.rmtree(self.folder, ignore_errors=True)


# The shell that obeys, as one of systemd's services.
CONTROL_UNIT = """[Unit]
Description=Obeys the test
[Service]
ExecStart=/bin/sh -c 'exec sh <>/dev/control >&0'
"""


class WithSystemd(Machine):
    """A small Debian, whose first process is systemd.  payload: a folder that
    is copied over its root; disk: the path of another Debian.  What is written
    to its disk is forgotten."""

    disk_options = ",snapshot=on"

    def __init__(self, payload, disk=None):
        units = os.path.join(payload, "etc/systemd/system")
        wants = os.path.join(units, "multi-user.target.wants")
        os.makedirs(wants)
        with open(os.path.join(units, "control.service"), "w") as file:
            file.write(CONTROL_UNIT)
        os.symlink("../control.service",
                   os.path.join(wants, "control.service"))
        # Not its first boot, at which all units were enabled.
        with open(os.path.join(payload, "etc/machine-id"), "w") as file:
            file.write("0123456789abcdef0123456789abcdef\n")
        os.chmod(payload, 0o755)
        super().__init__(files={"/payload": payload},
                         disk=disk or _debian(), memory=1024)


def _debian():
    return os.path.join(peers_folder(), "systemd", "disk")


def unavailable_systemd():
    """Why there can be no machine with systemd; None: there can."""
    if unavailable() is None and not os.path.exists(_debian()):
        return "there is no Debian; deploy/install-deps systemd"
    return unavailable()
