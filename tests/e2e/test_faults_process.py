#!/usr/bin/env python3
"""Programs that stop, die, run out of descriptors, or whose clocks jump: what
is left of what they did, and that nobody else notices.

	meson test -C build faults_process
	meson test -C build --suite slow     stops of a minute
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from google.protobuf.message import DecodeError

from harness import abi, faults, tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.chance import seeded
from harness.chaos import Proxy
from harness.daemon import environment
from harness.device import RelayCase
from harness.imported import causes
from harness.ipc import Rejected
from harness.loop import SCALE
from harness.producer import numbered
from harness.trace import Trace
from harness.unhurried import Watch, kept_waiting

COMPRESSED = {"compression_type": "COMPRESSION_TYPE_DEFLATE"}


class FaultCase(Case):
    def settings(self, text):
        path = self.path("settings")
        with open(path, "w") as file:
            file.write(text)
        return ["--config", path]

    def wait_log(self, *words, program=None):
        program = program or self.daemons[0]

        def line():
            return [one for one in program.log().splitlines()
                    if all(word in one for word in words)]
        return self.until(line, f"a line with {words}")[0]

    def bind(self, connection):
        frame = pb.IPCFrame(request_id=1)
        frame.msg_bind_service.service_name = "ProducerPort"
        connection.send_frame(frame)

    def into_file(self, source=TEST_SOURCE, name="f", **fields):
        fd = os.open(self.path(name), os.O_RDWR | os.O_CREAT, 0o600)
        fields.setdefault("file_write_period_ms", 100)
        consumer = self.session(source, fds=[fd], write_into_file=True,
                                **fields)
        os.close(fd)
        return consumer


class Descriptors(FaultCase):
    """A collector that has none left."""

    def test_those_inside_are_served(self):
        traces = self.path("traces")
        os.mkdir(traces)
        daemon = self.daemon(flags=["--trace-dir", traces])
        producer = self.producer("p", ["a", "b"])
        spare = self.consumer()
        with self.neighbour():
            with faults.NoDescriptors(daemon):
                waiting = self.raw()
                with faults.Idle(self, daemon):
                    self.loop.settle(0.5)
                self.assertFalse(waiting.closed)
                self.wait_log("new connections have to wait", "LimitNOFILE")
                # A file wants one, and so does a descriptor that is passed.
                error = spare.refused(config("b", write_into_file=True,
                                             output_path="x"))
                self.assertRegex(error, "(?i)too many")
                spare.free()
                with open(self.path("f"), "wb") as file:
                    error = spare.refused(config("b", write_into_file=True),
                                          [file.fileno()])
                self.assertIn("file descriptor", error)
                self.wait_log("it passed a file descriptor", "LimitNOFILE")
                # So does a timer that goes on while the machine sleeps.
                error = spare.refused(config(
                    "b", duration_ms=100,
                    prefer_suspend_clock_for_duration=True))
                self.assertIn("LimitNOFILE", error)
            # Nobody has to be started again, nor to connect again.
            self.bind(waiting)
            self.until(lambda: waiting.frames, "it is served")
            self.wait_log("accepted again")
            spare.enable(config("b", write_into_file=True, output_path="x"))
            producer.writer().number(10)
            self.assertFalse(spare.stop().error)
            self.assert_numbers(Trace.from_file(os.path.join(traces, "x")),
                                [10])

    def test_a_producer_that_gets_no_shared_memory(self):
        """Its first session needs a descriptor for it: that one goes without
        its data and says so, the next one has it."""
        daemon = self.daemon()
        producer = self.producer("p")
        consumer = self.consumer()
        with self.neighbour():
            with faults.NoDescriptors(daemon):
                consumer.enable(config(TEST_SOURCE))
                self.wait_log("cannot take part", "LimitNOFILE")
                consumer.flush(60_000)
                consumer.stop()
                consumer.free()
            consumer.enable(config(TEST_SOURCE))
            producer.writer().number(7)
            consumer.stop()
            self.assert_numbers(consumer.read(), [7])


class RelayDescriptors(RelayCase):
    def test_a_relay_without_any_links_again(self):
        """Its connection is cut while there is none for another."""
        daemon = self.collector()
        proxy = Proxy(self.path("proxy.log"), (
            "127.0.0.1:0", daemon.producer_path))
        self.things.append(proxy)
        device = self.device("a", proxy.addresses[0], memory_kb=32768)
        self.wait_linked()
        book = self.ledger([(device, 1)], rate=50_000)
        recording = self.record()
        self.wait_writing(book, 2)
        self.wait_written(book, 10)
        with faults.NoDescriptors(device):
            with self.neighbour():
                proxy.say("cut rst")
                # Taken at once: what was the connection is free again.
                held = socket.socket(socket.AF_UNIX)
                held.connect(device.socket)
                with faults.Idle(self, device, share=0.5):
                    self.loop.settle(0.5)
        held.close()
        self.until(device.linked, "it is linked again")
        audit = self.finish(book, recording)
        self.assert_complete(audit)


class Clocks(FaultCase):
    def jump(self, *steps):
        """A session and a neighbour, during which the clock is set."""
        plan = faults.Plan(self.path("plan"))
        daemon = self.daemon(env=plan.env())
        if not plan.loaded:
            self.skipTest("nothing can be preloaded here")
        producer = self.producer("p")
        consumer = self.into_file()
        began = time.monotonic()
        limited = self.session("nobody", duration_ms=int(800 * SCALE))
        writer = producer.writer()
        with self.neighbour(), faults.Idle(self, daemon, share=0.5):
            for field, seconds in steps:
                setattr(plan, field, int(seconds * 1e9))
                writer.number(20)
                watch = Watch(daemon.pid)
                consumer.flush(60_000)
                self.assertLess(watch.seconds(), 5 * SCALE)
                self.session("nobody").close()
                self.loop.settle(0.05)
        self.assertFalse(consumer.stop().error)
        self.assert_numbers(Trace.from_file(self.path("f")),
                            [20 * len(steps)])
        # Neither too early nor never.
        self.assertFalse(limited.ended().error)
        self.assertGreater(time.monotonic() - began, 0.75 * SCALE)

    def test_clocks_that_jump_end_nothing_and_delay_nothing(self):
        """The time of day is set, back and forth; then the clock of what
        passed since the start jumps ahead, as after a sleep."""
        year = 366 * 86400
        self.jump(("realtime_ns", 3600), ("realtime_ns", -3600),
                  ("realtime_ns", 30 * year), ("realtime_ns", -30 * year),
                  ("realtime_ns", 0), ("boottime_ns", 3600),
                  ("boottime_ns", 8 * 3600))


class Stopped(FaultCase):
    """SIGSTOP, for longer than every time-out, which are shorter here."""

    slow = False

    def pause(self):
        self.loop.settle(61 if self.slow else 1.0 * SCALE)

    def limits(self):
        if self.slow:
            return []
        short = int(800 * SCALE)
        return self.settings(f"""limits {{
            bind_timeout_ms: {short} stalled_timeout_ms: {short} }}""")

    def test_the_collector(self):
        """Nobody is thrown out for what he could not do meanwhile."""
        daemon = self.daemon(flags=self.limits())
        producer = self.producer("p")
        consumer = self.into_file()
        writer = producer.writer()
        writer.number(50)
        with self.neighbour():
            late = self.raw()   # has not said yet what it is
            daemon.signal(signal.SIGSTOP)
            writer.number(20, ask=False)
            early = self.raw()  # of the time when nobody accepted
            self.pause()
            self.bind(late)
            self.bind(early)
            daemon.signal(signal.SIGCONT)
            writer.number(30)
            self.assertFalse(consumer.stop().error)
            self.until(lambda: late.frames and early.frames,
                       "they are served, though it was late")
        self.assert_numbers(Trace.from_file(self.path("f")), [100])

    @causes("traced_final_flush_failed", "traced_flushes_failed")
    def test_a_producer(self):
        """In the middle of a session, while it holds a chunk."""
        daemon = self.daemon(flags=self.limits())
        child = self.spawn_producer()
        try:
            honest = self.producer("honest", ["child"])
            consumer = self.session(
                "child", size_kb=4096, flush_timeout_ms=300,
                data_source_stop_timeout_ms=300)
            writer = honest.writer()
            self.until(lambda: consumer.stats().buffer_stats[0].chunks_written
                       > 20, "the child writes")
            writer.number(10)
            child.send_signal(signal.SIGSTOP)
            with self.neighbour(), faults.Idle(self, daemon, share=0.5):
                watch = Watch(daemon.pid)
                with self.assertRaises(Rejected):
                    consumer.flush(300)
                writer.number(10)
                self.pause()
                consumer.stop()
                self.assertLess(watch.seconds(),
                                (70 if self.slow else 15) * SCALE)
            stats = consumer.stats()
            self.assertGreater(stats.flushes_failed, 0)
            lengths = set()
            for numbers in consumer.read().numbers().values():
                self.assertEqual(numbers, list(range(len(numbers))))
                lengths.add(len(numbers))
            self.assertIn(20, lengths)  # of the one that was not stopped
            child.send_signal(signal.SIGCONT)
            # It goes on, and the next session has it.
            again = self.session("child", size_kb=4096)
            self.until(lambda: again.stats().buffer_stats[0].chunks_written >
                       20, "it writes again")
            again.stop()
        finally:
            child.kill()
            child.wait()

    def spawn_producer(self):
        """A process with a producer that writes as long as it lives."""
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, self.daemons[0].producer_path],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.assertEqual(child.stdout.readline(), b"ready\n")
        return child

    def test_a_consumer(self):
        """It has asked for megabytes and takes none of them."""
        daemon = self.daemon(flags=self.limits())
        producer = self.producer("p")
        consumer = self.session(size_kb=32768)
        writer = producer.writer()
        for _ in range(8):
            writer.number(1000, size=1000)
        before = daemon.memory()
        consumer.pause()
        consumer.call("ReadBuffers")
        with self.neighbour(), faults.Idle(self, daemon, share=0.5):
            producer.sync()
            self.pause()
            # Its session is over, and what that took is free.
            producer.wait_command("stop_data_source")
        self.wait_log("it took none of the data that waits for it")
        self.assert_grown_less(before, 16 * 1024)


@tap.slow
class Stopped_slow(Stopped):
    """The same for a minute, with the time-outs as they come."""

    slow = True


CHILD = """
import sys
from harness.loop import Loop
from harness.producer import Producer
from harness.unhurried import Watch, kept_waiting
loop = Loop()
producer = Producer(loop, sys.argv[1], "child", ["child"])
print("ready", flush=True)
writers = {}
while True:
    for instance in producer.started():
        if instance.id not in writers:
            writers[instance.id] = producer.writer(instance)
        writers[instance.id].number(5)
    loop.turn(0.005)
"""


class StoppedRelay(RelayCase):
    slow = False

    def test_a_relay(self):
        """For longer than the collector waits for those who take nothing, and
        for a relay that is cut off."""
        stop = 61 if self.slow else 1.5 * SCALE
        self.collector("" if self.slow else
                       "limits { stalled_timeout_ms: 1000 } "
                       "link { grace_ms: 1000 }")
        device = self.device("a", memory_kb=32768)
        self.wait_linked()
        book = self.ledger([(device, 2)], rate=100_000, shm_kb=64)
        recording = self.record()
        self.wait_writing(book, 4)
        self.wait_written(book, 20)
        with self.neighbour():
            device.signal(signal.SIGSTOP)
            self.loop.settle(stop)
            device.signal(signal.SIGCONT)
        self.until(device.linked, "it is linked")
        audit = self.finish(book, recording)
        self.assert_complete(audit)


@tap.slow
class StoppedRelay_slow(StoppedRelay):
    slow = True


class Killed(FaultCase):
    def test_the_collector_loses_the_last_write_period_at_most(self):
        """By packet: what it had taken one period (and a moment, and what it
        had to wait for a processor) before is in the file."""
        period, moment = 0.2, 0.3 * SCALE
        for number, fields in enumerate(({}, COMPRESSED)):
            daemon = self.daemon(producer=[self.path(f"p{number}")],
                                 consumer=[self.path(f"c{number}")])
            self.daemons.insert(0, self.daemons.pop())
            producer = self.producer("p")
            consumer = self.into_file(
                name=f"f{number}", size_kb=4096,
                file_write_period_ms=int(period * 1000), **fields)
            writer = producer.writer()
            taken = []  # (when, packets until then)
            began = time.monotonic()
            before = kept_waiting(daemon.pid)
            busy = 0.0
            while time.monotonic() - began < 3 * period + 2 * moment + \
                    min(busy, 10.0):
                busy = kept_waiting(daemon.pid) - before
                writer.number(20)
                taken.append((time.monotonic(), writer.counter))
                self.loop.turn(0.005)
            busy = kept_waiting(daemon.pid) - before
            killed = time.monotonic()
            daemon.kill()
            trace = Trace.so_far(self.path(f"f{number}"))
            (numbers,) = trace.numbers().values()
            self.assertEqual(numbers, list(range(len(numbers))))
            due = max(count for when, count in taken
                      if when < killed - period - moment - busy)
            self.assertGreaterEqual(len(numbers), due)
            self.assertGreater(due, 20)
            consumer.wait_closed()

    def test_producers_in_the_middle_of_a_chunk(self):
        """What they had completed in shared memory is in the trace, nothing
        of what they had not."""
        daemon = self.daemon()
        with self.neighbour():
            for number in range(6):
                name = f"dying{number}"
                consumer = self.session(name, size_kb=4096)
                child = os.fork()
                if child == 0:
                    self.die_in_a_chunk(name, number)
                os.waitpid(child, 0)
                self.until(lambda: f"is {name}" in daemon.log() and
                           not [p for p in consumer.query().producers
                                if p.name == name], "it is gone")
                consumer.flush(60_000)
                consumer.stop()
                trace = consumer.read()
                (numbers,) = trace.numbers().values()
                self.assertEqual(numbers, list(range(30 + 2 * number)))
                self.assert_clean_stats(consumer.stats())
                consumer.close()

    def die_in_a_chunk(self, name, number):
        """A process of its own that kills itself."""
        try:
            self.loop = type(self.loop)()
            producer = self.producer(name, [name])
            writer = producer.writer()
            writer.number(30)
            # Complete packets, then one that is being written.
            whole = [numbered(30 + n, 80, value=writer.id)
                     for n in range(2 * number)]
            torn = numbered(30 + 2 * number, 80, value=writer.id)
            data = abi.chunk(writer.id, writer.chunk_id(), [*whole, torn])
            page = producer.shm.free_page()
            producer.shm.put(page, 0, data[:-20], state=abi.BEING_WRITTEN)
            producer.sync()
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)

    def test_real_producers_at_any_moment(self):
        """Of the C library, at full speed: no sequence has a gap or a half
        packet, to its end."""
        self.daemon()
        with self.neighbour():
            for number in range(3):
                child = subprocess.Popen(
                    [os.environ["LIBRARY_PRODUCER"],
                     self.daemons[0].producer_path, "5000000", "2000"],
                    stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    env=environment())
                watch = self.consumer()
                self.until(lambda: "test.library" in [
                    d.ds_descriptor.name for d in watch.query().data_sources],
                    "it is there")
                consumer = self.session("test.library", size_kb=4096)
                self.until(lambda: consumer.stats().buffer_stats[0]
                           .chunks_written > 20 + 100 * number, "it writes")
                child.kill()
                child.wait()
                self.until(lambda: "test.library" not in [
                    d.ds_descriptor.name for d in watch.query().data_sources],
                    "it is gone")
                consumer.flush(60_000)
                consumer.stop()
                trace = consumer.read()
                self.assertEqual(len(trace.numbers()), 2)
                for numbers in trace.numbers().values():
                    self.assertTrue(numbers == list(range(
                        numbers[0], numbers[0] + len(numbers))), "a gap")
                self.assertEqual(trace.stats().invalid_packets, 0)
                consumer.close()


class Silent(FaultCase):
    def test_a_log_that_nobody_takes_holds_up_nobody(self):
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        self.addCleanup(os.close, write_end)
        daemon = self.daemon(wrap=["/bin/sh", "-c",
                                   f'exec "$@" 2>&{write_end}', "sh"],
                             pass_fds=[write_end])
        address = self.path("p")
        with faults.Idle(self, daemon, share=0.9):
            for _ in range(1500):
                self.raw(address).close()
                self.loop.turn()
            producer = self.producer("p", address=address)
            consumer = self.consumer(self.path("c"))
            consumer.enable(config(TEST_SOURCE))
            producer.writer().number(5)
            consumer.stop()
            self.assert_numbers(consumer.read(), [5])
        # Somebody reads again, and learns that lines are missing.
        os.set_blocking(read_end, False)
        said = bytearray()

        def told():
            self.raw(address).close()
            self.loop.turn()
            try:
                said.extend(os.read(read_end, 1 << 16))
            except BlockingIOError:
                pass
            return b"lines of this log are lost" in said
        self.until(told, "the log says that it has gaps")


class Unreachable(RelayCase):
    """Somebody tidies up where the sockets are."""

    def test_sockets_that_are_removed_are_made_again(self):
        daemon = self.collector(flags=["--set-socket-permissions",
                                       "root:0640:root:0600"]
                                if os.geteuid() == 0 else [])
        device = self.device("a")
        self.wait_linked()
        mode = os.stat(daemon.producer_path).st_mode
        with self.neighbour():
            for path in (daemon.producer_path, daemon.consumer_path,
                         device.socket):
                os.unlink(path)
            for path in (daemon.producer_path, daemon.consumer_path,
                         device.socket):
                self.until(lambda: os.path.exists(path), f"{path} is back")
            consumer = self.record("there", "here")
            for name, path in (("here", daemon.producer_path),
                               ("there", device.socket)):
                producer = self.producer(name, [name], address=path)
                producer.wait_started()
                producer.writer().number(9)
            self.wait_empty()
            consumer.flush(60_000)
            consumer.stop()
            self.assert_numbers(consumer.read(), [9, 9])
        self.until(lambda: os.stat(daemon.producer_path).st_mode == mode,
                   "its mode is what was set")
        self.assertIn(f"the socket {device.socket} was removed",
                      device.log())

    def test_a_folder_that_is_removed_and_made_again(self):
        folder = self.path("sockets")
        os.mkdir(folder)
        there = os.path.join(folder, "p")
        daemon = self.daemon(producer=[there, "127.0.0.1:0"])
        with self.neighbour("tcp"):
            shutil.rmtree(folder)
            self.until(lambda: "cannot be made anew" in daemon.log(),
                       "it says so")
            with faults.Idle(self, daemon):
                self.loop.settle(0.3)
            os.mkdir(folder)
            self.until(lambda: os.path.exists(there), "it is back")
            self.producer("p", address=there).sync()

    def test_a_socket_that_another_program_took_is_left_alone(self):
        daemon = self.daemon()
        os.unlink(daemon.producer_path)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(daemon.producer_path)
            other.listen()
            self.until(lambda: "is another program's now" in daemon.log(),
                       "it says so")
            daemon.stop()
            self.assertTrue(os.path.exists(daemon.producer_path))


class Scribbled(RelayCase):
    """A producer that rewrites its shared memory while a relay reads it."""

    def test_a_relay_harms_nobody(self):
        self.collector()
        device = self.device("a", memory_kb=16384)
        self.wait_linked()
        rng = seeded()
        producer = self.producer("scribbler", ["mem"], address=device.socket)
        honest = self.producer("honest", ["honest"], address=device.socket)
        consumer = self.record("mem", "honest")
        producer.wait_started()
        honest.wait_started()
        writer = honest.writer()
        with self.neighbour():
            child = os.fork()
            if child == 0:
                scribble(producer, rng)
            try:
                deadline = time.monotonic() + 0.5 * SCALE
                buffer = producer.started()[0].buffer
                while time.monotonic() < deadline:
                    producer.commit([pb.CommitDataRequest.ChunksToMove(
                        page=page, chunk=chunk, target_buffer=buffer)
                        for page in range(8) for chunk in range(14)])
                    writer.number(5)
                    self.assertFalse(honest.closed)
            finally:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        self.assertTrue(device.running())
        self.wait_empty()
        consumer.flush(60_000)
        consumer.stop()
        found = []
        for raw in consumer.read_raw():
            try:
                packet = pb.TracePacket.FromString(raw)
            except DecodeError:
                continue  # whatever the child made up
            if packet.for_testing.str.startswith("x") and \
                    packet.for_testing.seq_value == writer.id and \
                    packet.trusted_packet_sequence_id:
                found.append((packet.trusted_packet_sequence_id,
                              packet.for_testing.counter))
        sequences = {sequence for sequence, _ in found}
        whole = [sequence for sequence in sequences
                 if [n for s, n in found if s == sequence] ==
                 list(range(writer.counter))]
        self.assertEqual(len(whole), 1, "the honest one's")


def scribble(producer, rng):
    """Never stops rewriting the first eight pages; a process of its own."""
    try:
        shm = producer.shm
        while True:
            page = rng.randrange(8)
            at = page * producer.page_size + rng.randrange(64) * 4
            kind = rng.randrange(4)
            if kind == 0:
                shm.set_header(page, rng.randrange(1, 6) << 28 |
                               rng.getrandbits(28))
            elif kind == 1:
                shm.map[at:at + 8] = abi.header(
                    rng.randrange(64), rng.getrandbits(32),
                    rng.randrange(1024), rng.randrange(8))
            else:
                n = rng.randrange(4, 64)
                shm.map[at:at + n] = rng.randbytes(n)
    finally:
        os._exit(0)


if __name__ == "__main__":
    sys.exit(tap.main())
