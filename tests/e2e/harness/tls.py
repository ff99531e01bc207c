"""Python's own TLS as a client: another implementation's wrapping of the same
frames."""

import os
import socket
import ssl


class Address(str):
    """A tls:// address, and the directory of certificates to go there with."""

    def __new__(cls, address, folder):
        self = super().__new__(cls, address)
        self.folder = folder
        return self


def context(folder):
    """A client's, with what a directory of certificates holds."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(os.path.join(folder, "ca.pem"))
    made.load_cert_chain(os.path.join(folder, "cert.pem"),
                         os.path.join(folder, "key.pem"))
    return made


class Socket:
    """What Connection uses of a socket, over TLS."""

    family = socket.AF_INET

    def __init__(self, plain, folder):
        self.error = None  # what ended it, as ssl says it
        plain.settimeout(30)
        self._ssl = context(folder).wrap_socket(
            plain, server_hostname="localhost")

    def fileno(self):
        return self._ssl.fileno()

    def close(self):
        self._ssl.close()

    def setblocking(self, blocking):
        self._ssl.setblocking(blocking)

    def setsockopt(self, *option):
        self._ssl.setsockopt(*option)

    def peer_certificate(self):
        return self._ssl.getpeercert()

    def recvmsg(self, size, _):
        """All that is there: what TLS holds back does not wake select()."""
        data = b""
        while len(data) < size:
            try:
                part = self._ssl.recv(size - len(data))
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if not data:
                    raise BlockingIOError from None
                break
            except ssl.SSLError as error:
                self.error = error
                if not data:
                    raise OSError(str(error)) from error
                break
            if not part:
                break
            data += part
        return data, [], 0, None

    def send(self, data):
        try:
            return self._ssl.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None
