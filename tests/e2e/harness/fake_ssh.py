"""A stand-in for ssh, and the device at its end."""

import os
import socket
import sys

# Stands for ssh and what runs on the device: leads its standard input and
# output to the test, or says why it cannot.
FAKE_SSH = r'''#!{python}
import json, os, select, socket, sys
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
with open(os.path.join(folder, "calls"), "a") as file:
    file.write(json.dumps([os.getpid(), sys.argv[1:]]) + "\n")
if os.path.exists(os.path.join(folder, "says")):
    with open(os.path.join(folder, "says")) as file:
        sys.stderr.write(file.read())
    sys.exit(255)
if "-R" in sys.argv:
    sys.exit(len(os.read(0, 1)))
far = socket.socket(socket.AF_UNIX)
far.connect(os.path.join(folder, "device"))
while True:
    ready, _, _ = select.select([0, far], [], [])
    for end in ready:
        data = os.read(end if end == 0 else far.fileno(), 1 << 16)
        if not data:
            sys.exit(0)
        if end == 0:
            far.sendall(data)
        else:
            while data:
                data = data[os.write(1, data):]
'''


class FakeSsh:
    """Of a Case, before it: ssh is the program, far where it leads."""

    def setUp(self):
        super().setUp()
        self.ssh = self.path("ssh")
        with open(self.ssh, "w") as file:
            file.write(FAKE_SSH.replace("{python}", sys.executable))
        os.chmod(self.ssh, 0o755)
        self.far = socket.socket(socket.AF_UNIX)
        self.far.bind(self.path("device"))
        self.far.listen()
        self.far.setblocking(False)
        self.addCleanup(self.far.close)

    def answer(self):
        """The device's end of the connection that comes."""
        def accept():
            try:
                return self.far.accept()[0]
            except BlockingIOError:
                return None
        return self.until(accept, "the collector connects")
