"""A certificate authority made by the `openssl` command, as an operator with
a PKI of their own has one."""

import datetime
import os
import shutil
import subprocess

OPENSSL = shutil.which("openssl")

CONFIG = """
[ca]
default_ca = this
[this]
dir = {folder}
database = {folder}/index.txt
serial = {folder}/serial
crlnumber = {folder}/crlnumber
new_certs_dir = {folder}/new
certificate = {folder}/ca.pem
private_key = {folder}/ca-key.pem
default_md = sha256
default_days = 30
default_crl_days = 30
unique_subject = no
policy = anything
copy_extensions = none
[anything]
commonName = optional
organizationName = optional
[req]
distinguished_name = nothing
prompt = no
[nothing]
"""


def run(*argv, **options):
    done = subprocess.run(argv, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}:\n" +
                             done.stdout.decode(errors="replace"))
    return done.stdout


def utc(days):
    """A time so many days from now, as openssl ca takes it."""
    when = datetime.datetime.utcnow() + datetime.timedelta(days=days)
    return when.strftime("%Y%m%d%H%M%SZ")


class Pki:
    """Directories as --tls-dir takes them; each holds the CA's certificate."""

    def __init__(self, folder, name="test CA"):
        self.folder = folder
        os.makedirs(self._path("new"))
        self._write("index.txt", "")
        self._write("serial", "1000\n")
        self._write("crlnumber", "01\n")
        self._write("ca.cnf", CONFIG.format(folder=folder))
        self._key("ca-key.pem")
        run(OPENSSL, "req", "-new", "-x509", "-days", "60", "-config",
            self._path("ca.cnf"), "-subj", f"/CN={name}", "-key",
            self._path("ca-key.pem"), "-out", self._path("ca.pem"),
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext",
            "keyUsage=critical,keyCertSign,cRLSign")

    def _path(self, *names):
        return os.path.join(self.folder, *names)

    def _write(self, name, text):
        with open(self._path(name), "w") as file:
            file.write(text)

    def _key(self, name):
        run(OPENSSL, "genpkey", "-algorithm", "EC", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-out", self._path(name))
        os.chmod(self._path(name), 0o600)

    @property
    def ca(self):
        return self._path("ca.pem")

    def issue(self, name, *, role=None, alternatives=(), server=False,
              start=-1, end=30, folder=None):
        """A directory with ca.pem, cert.pem and key.pem.

        start, end: days from now.  server: for the collector.
        """
        folder = folder or self._path(f"of-{name}")
        os.makedirs(folder, exist_ok=True)
        stem = os.path.basename(folder)
        self._key(f"{stem}.key")
        run(OPENSSL, "req", "-new", "-config", self._path("ca.cnf"), "-subj",
            f"/CN={name}", "-key", self._path(f"{stem}.key"), "-out",
            self._path(f"{stem}.csr"))
        names = list(alternatives)
        if role is not None:
            names.append(f"URI:urn:tributary:role:{role}")
        usage = "serverAuth,clientAuth" if server else "clientAuth"
        lines = ["basicConstraints=critical,CA:FALSE",
                 "keyUsage=critical,digitalSignature",
                 f"extendedKeyUsage={usage}"]
        if names:
            lines.append("subjectAltName=" + ",".join(names))
        self._write(f"{stem}.ext", "\n".join(lines) + "\n")
        run(OPENSSL, "ca", "-batch", "-notext", "-config",
            self._path("ca.cnf"), "-in", self._path(f"{stem}.csr"), "-out",
            os.path.join(folder, "cert.pem.new"), "-startdate", utc(start),
            "-enddate", utc(end), "-extfile", self._path(f"{stem}.ext"))
        shutil.copy(self._path(f"{stem}.key"),
                    os.path.join(folder, "key.pem"))
        os.chmod(os.path.join(folder, "key.pem"), 0o600)
        os.replace(os.path.join(folder, "cert.pem.new"),
                   os.path.join(folder, "cert.pem"))
        shutil.copy(self.ca, os.path.join(folder, "ca.pem"))
        return folder

    def collector(self, name="collector", **options):
        """The server's directory, for loopback addresses and localhost."""
        options.setdefault("alternatives", [
            f"DNS:{name}", "DNS:localhost", "IP:127.0.0.1", "IP:::1"])
        return self.issue(name, server=True, **options)

    def revoke(self, folder):
        """Revokes the certificate in a directory."""
        run(OPENSSL, "ca", "-batch", "-config", self._path("ca.cnf"),
            "-revoke", os.path.join(folder, "cert.pem"))

    def write_crl(self, folder):
        """The list of what is revoked now, into a directory, at once."""
        new = os.path.join(folder, "crl.pem.new")
        run(OPENSSL, "ca", "-batch", "-config", self._path("ca.cnf"),
            "-gencrl", "-out", new)
        os.replace(new, os.path.join(folder, "crl.pem"))
