"""A CA of `tributary cert`, for tests that need certificates."""

import os
import subprocess

from .daemon import environment

TRIBUTARY = os.environ["TRIBUTARY"]


def cert(*args, status=0, **options):
    """Runs `tributary cert`; what it printed, both streams."""
    done = subprocess.run([TRIBUTARY, "cert", *args], capture_output=True,
                          text=True, env=environment(), check=False,
                          stdin=subprocess.DEVNULL, **options)
    said = done.stdout + done.stderr
    assert done.returncode == status, \
        f"tributary cert {args}: status {done.returncode}: {said}"
    return said


class Authority:
    """A CA in a new folder; the collector is called localhost, 127.0.0.1."""

    def __init__(self, folder, *args):
        self.folder = folder
        cert("init", folder, *args)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def issue(self, name, role="producer", *args):
        """A device's or person's folder, for --tls-dir."""
        cert("issue", self.folder, name, "--role", role, *args)
        return self.path("issued", name)

    def revoke(self, name, *args):
        cert("revoke", self.folder, name, *args)

    def renew(self, *args):
        cert("renew", self.folder, *args)
