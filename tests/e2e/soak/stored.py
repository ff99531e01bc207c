"""What becomes of a fleet's segments: an archiver and an uploader beside each
collector, one bucket of the RADOS gateway and one PostgreSQL for all."""

import os
import subprocess

from harness import postgres, store
from harness.archiver import Archiver, ask
from harness.daemon import environment

# Programs that are not there, without which nothing is stored.
MISSING = store.MISSING + postgres.MISSING


class Keeper:
    """Archiver and uploader of a collector."""

    def __init__(self, stored, collector):
        self.name, self.archive = collector.name, collector.archive
        self.folder = os.path.join(collector.folder, "keeper")
        os.mkdir(self.folder)
        self.config = os.path.join(self.folder, "upload.conf")
        stored.bucket.settings(
            self.config, archive_dir=self.archive,
            url=f"s3://{stored.bucket.name}/{self.name}",
            catalog=stored.database.url)
        self.archiver = Archiver(self.folder, self.archive)
        self.uploader = None
        self.start()

    def start(self):
        self.archiver.start()
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.uploader = subprocess.Popen(
                [store.UPLOAD, "--config", self.config],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment(**store.KEYS))

    def kill(self):
        self.archiver.kill()
        self.archiver.expected_status = 0  # of the next
        self.uploader.kill()
        self.uploader.wait()

    def stop(self):
        self.archiver.stop()
        self.uploader.terminate()
        status = self.uploader.wait(120)
        assert status == 0, f"uploader of {self.name}: {status}: {self.log()}"

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as file:
            return file.read()[-2000:]

    def rows(self):
        """{path: whether the store has it}, of the archive's catalogue."""
        return dict(ask(self.archive,
                        "SELECT path, stored_state = 'stored' FROM segments"))

    def listed(self):
        return not ask(self.archive, "SELECT segment FROM unlisted")


class Stored:
    def __init__(self, folder):
        self.bucket = store.Bucket(folder)
        self.server = postgres.server()
        self.database = postgres.Database(self.server)
        self.keepers = []

    def add(self, collector):
        self.keepers.append(Keeper(self, collector))

    def cut_bucket(self):
        """Connections are accepted and end at once."""
        self.bucket.front.fault = lambda request: "cut"

    def mend_bucket(self):
        self.bucket.front.fault = lambda request: None

    def has_all(self):
        """Each segment that is in an archive is in the store, and its row too."""
        return all(
            keeper.rows().keys() >= {os.path.relpath(path, keeper.archive) for
                                     path in segments(keeper.archive)} and
            all(keeper.rows().values()) and keeper.listed()
            for keeper in self.keepers)

    def faults(self):
        """Sentences, of what is there at the end."""
        paths = {f"{keeper.name}/{os.path.relpath(path, keeper.archive)}": path
                 for keeper in self.keepers
                 for path in segments(keeper.archive)}
        keys = self.bucket.keys()
        wanted = sorted(path + end for path in paths for end in ("", ".json"))
        if keys != wanted:
            yield f"the bucket has {len(keys)} objects, not {len(wanted)}: " \
                f"{sorted(set(keys) ^ set(wanted))[:10]}"
        if uploads := self.bucket.uploads():
            yield f"{uploads} uploads are not completed"
        rows = [row[0] for row in self.database.sql(
            "SELECT path FROM segments ORDER BY path")]
        if sorted(rows) != sorted(paths):
            yield f"PostgreSQL has {len(rows)} rows of {len(paths)} " \
                f"segments: {sorted(set(rows) ^ set(paths))[:10]}"
        for key, path in paths.items():
            status, _, body = self.bucket.signed("GET", key)
            with open(path, "rb") as file:
                if status != 200 or body != file.read():
                    yield f"{key} in the bucket is not the segment: {status}"

    def end(self):
        for keeper in self.keepers:
            keeper.kill()
        self.bucket.stop()


def segments(archive):
    return [os.path.join(archive, name) for name in os.listdir(archive)
            if name.endswith(".pftrace")]
