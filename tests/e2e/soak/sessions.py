"""Sessions that begin, flush, clone and end at random, and whose every trace
is held against the ledgers."""

import json
import os
import shutil
import subprocess
import time

from harness import pb
from harness.consumer import Consumer, config, join_slices, source
from harness.daemon import SANITIZER_LINES, environment
from harness.ipc import Gone, Rejected
from harness.load import program
from harness.loop import SCALE

PATIENCE = 90.0
VERIFIERS = 2  # at a time
FAULTS = ("untold", "doubled", "disordered", "altered", "never_written",
          "strangers", "mixed_up", "damaged")


def tagged(name, tag):
    """A data source whose sequences the ledger knows by the tag."""
    out = source(name)
    out.config.for_testing.seed = tag
    return out


def framed(packets):
    out = bytearray()
    for packet in packets:
        out += b"\x0a"
        size = len(packet)
        while size >= 0x80:
            out.append(size & 0x7F | 0x80)
            size >>= 7
        out.append(size)
        out += packet
    return bytes(out)


class Verifier:
    """One verification, in a process of its own.  parts: names of a trace's
    segments in its folder."""

    def __init__(self, soak, trace, tag, ledgers, flags, parts=None):
        self.soak = soak
        self.trace = trace
        self.parts = parts
        self.ledgers = ledgers
        self.argv = [program(), "verify", *(parts or [trace]), "--session",
                     str(tag), *flags]
        for ledger in self.ledgers:
            self.argv += ["--ledger", ledger]
        self.process = None

    def ended(self):
        """Starts it, when there is room."""
        if self.process is None and self.soak.verifying < VERIFIERS:
            self.soak.verifying += 1
            self.process = subprocess.Popen(
                self.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=environment(), text=True,
                cwd=self.trace if self.parts is not None else None)
        if self.process is None or self.process.poll() is None:
            return False
        return True

    def result(self, count=True):
        self.soak.verifying -= 1
        out, err = self.process.communicate()
        for line in SANITIZER_LINES:
            assert line not in err, err
        found = json.loads(out) if out else {}
        if count:
            self.soak.count(found)
        if self.process.returncode != 0:
            self.keep(out + err)
        return found

    def keep(self, text):
        """What was found wrong is for people to look at."""
        n = len(self.soak.faults)
        where = os.path.join(self.soak.folder, "wrong",
                             f"{n}.{os.path.basename(self.trace)}")
        os.makedirs(where, exist_ok=True)
        if self.parts is None:
            shutil.copy(self.trace, where)
        for ledger in self.ledgers:
            shutil.copy(ledger, where)
        with open(os.path.join(where, "verdict"), "w") as file:
            file.write(" ".join(self.argv) + "\n" + text)
        self.soak.wrong(f"{where}: {text.strip()[:1500]}")


class Sessions:
    """One place where a session lives after the other."""

    def __init__(self, soak, slot, random):
        self.soak = soak
        self.slot = slot
        self.random = random
        self.over = False
        self.consumer = None
        self.n = 0
        self.going = self.lives()
        self.wait(lambda: True, "begin")

    # -- the machinery --

    def wait(self, condition, what):
        self.condition, self.what = condition, what
        self.since = time.monotonic()

    def step(self):
        """Whether it is still there."""
        while self.condition():
            try:
                self.wait(*next(self.going))
            except StopIteration:
                return False
            except (AssertionError, Gone, Rejected) as error:
                self.soak.wrong(f"session {self.slot}.{self.n}: {error!r}")
                return self.again()
        if time.monotonic() - self.since > PATIENCE * SCALE:
            self.soak.wrong(f"session {self.slot}.{self.n} waits for "
                            f"{self.what} for ever")
            return self.again()
        return True

    def again(self):
        """Another one in its place, after a fault."""
        self.soak.disconnect(self.consumer)
        self.going = self.lives()
        self.wait(lambda: True, "begin")
        return not self.over

    def call(self, method, request=None, consumer=None, **options):
        call = (consumer or self.consumer).call(method, request, **options)
        yield call.ended, method
        assert not call.gone, f"cut off in {method}: " \
            f"{(consumer or self.consumer).errors}"
        self.soak.calls[method] = self.soak.calls.get(method, 0) + 1
        return call

    def rest(self, seconds):
        until = time.monotonic() + seconds
        yield lambda: self.over or time.monotonic() >= until, "rest"

    def chance(self, percent):
        return self.random.random() * 100 < percent

    # -- one session --

    def lives(self):
        while not self.over:
            self.n += 1
            yield from self.one()
            self.soak.lives += 1

    def make_config(self):
        names = self.random.sample(self.soak.sources,
                                   self.random.randint(1, 3))
        if self.chance(8):
            names.append("soak.slow")
        fields = {"flush_timeout_ms": 2000,
                  "data_source_stop_timeout_ms": 3000,
                  "trace_all_machines": True,
                  "unique_session_name": f"soak.{self.tag}"}
        if self.chance(30):
            fields["compression"] = self.random.choice((
                pb.TraceConfig.CompressionConfig(deflate={}),
                pb.TraceConfig.CompressionConfig(zstd={"level": 3})))
        self.file = self.path = None
        self.tiny = self.soak.tiny is not None and self.chance(12)
        if self.tiny or self.chance(65):
            self.path = os.path.join(
                self.soak.tiny if self.tiny else self.soak.folder,
                f"trace.{self.tag}")
            fields.update(write_into_file=True, file_write_period_ms=500)
        return config(*[tagged(name, self.tag) for name in names],
                      size_kb=self.random.choice((2048, 8192, 16384)),
                      **fields)

    def one(self):
        self.tag = self.soak.next_tag()
        self.began = time.monotonic()
        self.soak.begun(self)
        wanted = self.make_config()
        self.consumer = self.soak.consumer()
        fds = [os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)] \
            if self.path else []
        self.consumer.enable(wanted, fds)
        for fd in fds:
            os.close(fd)
        for _ in range(self.random.randint(1, 5)):
            yield from self.rest(self.random.random() * 4)
            if self.over or self.consumer.session.ended():
                break
            yield from self.random.choice(
                (self.flush, self.stats, self.clone))()
        yield from self.end()
        self.soak.disconnect(self.consumer)
        if self.path and os.path.exists(self.path):
            os.unlink(self.path)
        self.soak.ended(self)

    def flush(self):
        """May fail: frozen peers answer nothing."""
        yield from self.call("Flush", pb.FlushRequest(timeout_ms=2000))

    def stats(self):
        yield from self.call("GetTraceStats")

    def clone(self):
        if self.path:
            return  # what is in the file already is not in the clone
        path = os.path.join(self.soak.folder, f"clone.{self.tag}")
        copier = self.soak.consumer()
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        request = pb.CloneSessionRequest(
            unique_session_name=f"soak.{self.tag}")
        call = copier.call("CloneSession", request)
        os.close(fd)
        yield call.ended, "CloneSession"
        assert not call.gone
        reply = pb.CloneSessionResponse.FromString(call.replies[-1])
        if reply.success:
            call = yield from self.call("ReadBuffers", None, copier)
            with open(path, "wb") as file:
                file.write(framed(join_slices(call.replies)))
            yield from self.verify(path, "--prefix")
            self.soak.clones += 1
        os.unlink(path)
        self.soak.disconnect(copier)

    # -- its end --

    def end(self):
        if self.path and self.chance(15):
            # Nobody says goodbye.
            self.soak.disconnect(self.consumer)
            self.soak.cut_off += 1
            yield from self.rest(0.2)
            yield from self.verify(self.path, "--prefix", "--cut")
            return
        if not self.consumer.session.ended():
            yield from self.call("DisableTracing")
        yield self.consumer.session.ended, "the end"
        assert not self.consumer.session.gone, "cut off at the end"
        reply = pb.EnableTracingResponse.FromString(
            self.consumer.session.replies[-1])
        if self.tiny:
            # It may have been full: what is there has to be good.
            self.soak.full += bool(reply.error)
            yield from self.verify(self.path, "--prefix", "--cut")
            return
        assert not reply.error, reply.error
        if self.path:
            yield from self.verify(self.path)
            return
        call = yield from self.call("ReadBuffers")
        path = os.path.join(self.soak.folder, f"trace.{self.tag}")
        with open(path, "wb") as file:
            file.write(framed(join_slices(call.replies)))
        yield from self.verify(path)
        os.unlink(path)

    def verify(self, path, *flags):
        verifier = Verifier(self.soak, path, self.tag,
                            self.soak.ledgers(self.began), flags)
        yield verifier.ended, "the verifier"
        verifier.result()
