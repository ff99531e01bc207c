"""A real sshd on a loopback port, with keys and settings of its own."""

import getpass
import os
import shutil
import signal
import subprocess

from .daemon import environment
from .loop import PATIENCE
from .ports import free_port

SSHD = shutil.which("sshd") or (
    "/usr/sbin/sshd" if os.path.exists("/usr/sbin/sshd") else None)


def missing():
    """Why there can be no such test here, or None."""
    if SSHD is None:
        return "there is no sshd"
    for tool in ("ssh", "ssh-keygen"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    return None


def make_key(path):
    """An Ed25519 key; the public half, "ssh-ed25519 AAAA..."."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path],
                   check=True, stdin=subprocess.DEVNULL)
    with open(path + ".pub", encoding="ascii") as file:
        return " ".join(file.read().split()[:2])


class Sshd:
    """settings: lines for sshd_config.  options: of the key it lets in, as in
    authorized_keys.  env: what its logins find in their environment."""

    def __init__(self, folder, *, settings=(), options="", env=None):
        self.folder = folder
        os.mkdir(folder)
        self.log_path = os.path.join(folder, "log")
        self.known_hosts = os.path.join(folder, "known_hosts")
        self.key = os.path.join(folder, "id")
        self.wrapper = os.path.join(folder, "ssh")
        self.host_key = make_key(os.path.join(folder, "host"))
        self.public = make_key(self.key)
        self._settings = list(settings)
        self._env = env or {}
        self.process = None
        self.user = getpass.getuser()
        self.authorize(options)

    def authorize(self, options="", public=None):
        with open(os.path.join(self.folder, "authorized_keys"), "w",
                  encoding="ascii") as file:
            file.write(f"{options} {public or self.public}\n".lstrip())

    def know(self, host_key=None):
        """Puts the host's key, or another, into our known_hosts."""
        with open(self.known_hosts, "w", encoding="ascii") as file:
            file.write(f"[127.0.0.1]:{self.port} {host_key or self.host_key}\n")

    def _configure(self):
        env = " ".join(f'"{k}={v}"' for k, v in self._env.items())
        lines = [
            "ListenAddress 127.0.0.1", f"Port {self.port}",
            f"HostKey {self.folder}/host",
            f"AuthorizedKeysFile {self.folder}/authorized_keys",
            "UsePAM no", "StrictModes no", "PidFile none",
            "PermitRootLogin yes", "PasswordAuthentication no",
            "KbdInteractiveAuthentication no", "LogLevel VERBOSE",
            "StreamLocalBindUnlink yes",
        ] + ([f"SetEnv {env}"] if env else [])
        # The first of a kind counts: a test's own go ahead.
        with open(f"{self.folder}/sshd_config", "w") as file:
            file.write("\n".join(self._settings + lines) + "\n")
        with open(f"{self.folder}/ssh_config", "w") as file:
            file.write(f"Host *\n  IdentityFile {self.key}\n"
                       "  IdentitiesOnly yes\n"
                       f"  UserKnownHostsFile {self.known_hosts}\n"
                       "  GlobalKnownHostsFile none\n")
        with open(self.wrapper, "w") as file:
            file.write(f"#!/bin/sh\nexec ssh -F {self.folder}/ssh_config "
                       '"$@"\n')
        os.chmod(self.wrapper, 0o700)

    def start(self, until):
        """until: a Case's."""
        if os.getuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        self.port = free_port()
        self._configure()
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", f"{self.folder}/sshd_config"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment())
        until(lambda: "Server listening" in self.log() or
              self.process.poll() is not None, "sshd listens")
        if self.process.poll() is not None:
            raise AssertionError("sshd did not start:\n" + self.log())
        self.know()
        return self

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def address(self, target=""):
        """ssh:// to it; target: a path, "host:port" or nothing."""
        slash = "/" if target and not target.startswith("/") else ""
        return f"ssh://127.0.0.1:{self.port}{slash}{target}"

    def env(self):
        """For programs of ours that shall come in through it."""
        return {"TRIBUTARY_SSH": self.wrapper, "XDG_RUNTIME_DIR": self.folder}

    def left_over(self):
        """What dials left in $XDG_RUNTIME_DIR."""
        return [n for n in os.listdir(self.folder) if n.startswith("tributary-ssh")]

    def forward(self, *flags):
        """A forward by hand: ssh -N and these flags."""
        return subprocess.Popen(
            [self.wrapper, "-N", "-o", "BatchMode=yes",
             "-o", "ExitOnForwardFailure=yes", "-p", str(self.port), *flags,
             "127.0.0.1"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill_connections(self):
        """kill -9 for the processes that serve logins now."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children"
                  ) as file:
            for pid in file.read().split():
                os.kill(int(pid), signal.SIGKILL)

    def stop(self):
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
