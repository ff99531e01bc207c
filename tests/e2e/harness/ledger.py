"""Producers that keep a book of what they wrote, and the audit of it: every
packet arrived exactly once, in order, or its loss is accounted for."""

import json
import os
import select
import subprocess

from . import pb
from .daemon import SANITIZER_LINES, environment
from .loop import SCALE

SOURCE = "test.ledger"


class Ledger:
    """ledger_producers; places: (address, count) pairs.

	with Ledger(case.path("ledger.log"), [(relay.socket, 2)], rate=50000):
	    ...
    """

    def __init__(self, log_path, places, *, rate=0, packets=0, shm_kb=0,
                 writers=2, size=200, patches=True, text=False,
                 source=SOURCE):
        self.log_path = log_path
        argv = [os.environ["LEDGER_PRODUCERS"], "--rate", str(rate),
                "--packets", str(packets), "--shm-kb", str(shm_kb),
                "--writers", str(writers), "--size", str(size)]
        if not patches:
            argv.append("--no-patches")
        if text:
            argv.append("--text")
        argv.append(source)
        argv += [f"{address}:{count}" for address, count in places]
        self.count = sum(count for _, count in places)
        with open(log_path, "wb") as log:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, env=environment(), bufsize=0)
        self._rest = b""

    def _line(self, timeout=60):
        while b"\n" not in self._rest:
            if not select.select([self.process.stdout], [], [],
                                 timeout * SCALE)[0]:
                raise AssertionError(f"the ledger is mute: {self.log()}")
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                raise AssertionError(f"the ledger ended: {self.log()}")
            self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def wait_ready(self):
        line = self._line()
        assert line == "ready", line

    def say(self, command):
        """The lines of the answer; the last one without its "ok"."""
        self.process.stdin.write(command.encode() + b"\n")
        lines = []
        while True:
            line = self._line()
            if line == "ready" and command != "ready":
                continue  # late, because nobody waited for it
            if line == "ok" or line.startswith("ok "):
                return lines + [line[2:].strip()]
            lines.append(line)

    def writing(self):
        """How many sequences are being written."""
        return int(self.say("writing")[-1])

    def ready(self):
        """How many producers are connected, their source known."""
        return int(self.say("ready")[-1])

    def finish(self):
        """Writes no more, and has committed all."""
        self.say("finish")

    def book(self):
        """{seq_value: line}; a line has producer, connection, written, bytes,
        within, end and unsure."""
        lines = map(json.loads, self.say("book")[:-1])
        return {line["seq"]: line for line in lines}

    def stop(self):
        if self.process is None:
            return
        process, self.process = self.process, None
        process.stdin.close()
        try:
            status = process.wait(60 * SCALE)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        process.stdout.close()
        for line in SANITIZER_LINES:
            assert line not in self.log(), self.log()
        assert status == 0, f"status {status}: {self.log()}"


class Audit:
    """What a trace has of a book.

    missing: {seq_value: numbers that were written and are not there}, without
    those that were unsure.  packets: how many arrived.  told: what TraceStats
    says was lost on the way, as {(sequence id or None, cause): packets}.
    """

    def __init__(self, book, trace):
        self.book = book
        self.arrived = {}
        self.dropped = {}    # seq_value: packets with a mark, by number
        self.sequences = {}  # seq_value: ids of the trace
        self.machines = {}   # seq_value: machine ids
        self.faults = []     # what must never be
        for packet in trace.packets:
            if packet.WhichOneof("data") == "for_testing":
                self._take(packet)
        for seq, numbers in self.arrived.items():
            self._look(seq, numbers)
        self.told = {}
        stats = trace.of("trace_stats")
        self.stats = stats[-1].trace_stats if stats else None
        for loss in self.stats.tributary_link_losses if stats else ():
            key = (loss.trusted_packet_sequence_id or None,
                   pb.LinkLossCause.Name(loss.cause))
            self.told[key] = self.told.get(key, 0) + loss.packets
        self.missing = {}
        self.unsure_of = {}  # seq_value: how many of those did not arrive
        for seq, line in book.items():
            lost = set(range(line["written"])) - set(
                self.arrived.get(seq, ()))
            self.unsure_of[seq] = len(lost & set(line["unsure"]))
            lost -= set(line["unsure"])
            if lost:
                self.missing[seq] = sorted(lost)
        self.packets = sum(map(len, self.arrived.values()))
        self.lost = sum(map(len, self.missing.values()))
        self.unsure = sum(self.unsure_of.values())

    def _take(self, packet):
        event = packet.for_testing
        if event.seq_value not in self.book:
            self.faults.append(f"a packet of nobody: {packet}")
            return
        seq = event.seq_value
        self.arrived.setdefault(seq, []).append(event.counter)
        self.sequences.setdefault(seq, set()).add(
            packet.trusted_packet_sequence_id)
        self.machines.setdefault(seq, set()).add(packet.machine_id)
        if packet.previous_packet_dropped:
            self.dropped.setdefault(seq, []).append(event.counter)

    def _look(self, seq, numbers):
        line = self.book[seq]
        for before, after in zip(numbers, numbers[1:]):
            if after <= before:
                self.faults.append(f"seq {seq}: {after} behind {before}")
                break
        if numbers[-1] >= line["written"]:
            self.faults.append(f"seq {seq}: {numbers[-1]} of "
                               f"{line['written']} written")
        if len(self.sequences[seq]) != 1 or len(self.machines[seq]) != 1:
            self.faults.append(f"seq {seq}: {self.sequences[seq]}, "
                               f"machines {self.machines[seq]}")

    def gaps_without_mark(self):
        """Gaps that the packet behind them does not tell of."""
        out = []
        for seq, numbers in self.arrived.items():
            marked = set(self.dropped.get(seq, ()))
            before = -1
            for number in numbers:
                if number != before + 1 and number not in marked:
                    out.append((seq, before, number))
                before = number
        return out

    def causes(self):
        """Of all that is told."""
        return {cause for _, cause in self.told}

    def unaccounted(self):
        """Sequences of which not exactly as many packets are said to be lost
        as are missing: [(seq, missing, said)].

        A packet that was unsure, or not whole when its writer was cut off, may
        be counted or not.  Sequences of which nothing arrived are looked at
        together, as nothing says which they are.
        """
        def said(sequence):
            return sum(packets for (known, _), packets in self.told.items()
                       if known == sequence)
        out, rest = [], [0, 0]
        known = set()
        for seq, line in self.book.items():
            lost = len(self.missing.get(seq, ()))
            most = lost + self.unsure_of[seq] + line["within"]
            if seq not in self.sequences:
                rest[0] += lost
                rest[1] += most
                continue
            known |= self.sequences[seq]
            told = said(next(iter(self.sequences[seq])))
            if not lost <= told <= most:
                out.append((seq, lost, told))
        told = sum(packets for (sequence, _), packets in self.told.items()
                   if sequence not in known)
        if not rest[0] <= told <= rest[1]:
            out.append((None, rest[0], told))
        return out

    def describe(self):
        lines = []
        for seq, numbers in sorted(self.missing.items())[:20]:
            line = self.book[seq]
            lines.append(
                f"seq {seq} ({line['producer']}, connection "
                f"{line['connection']}, {line['end']}): {len(numbers)} of "
                f"{line['written']} missing: {ranges(numbers)}; unsure "
                f"{line['unsure']}")
        lines += [f"seq {seq}: marks on {ranges(numbers)}"
                  for seq, numbers in sorted(self.dropped.items())][:20]
        lines += [f"told of {sequence}: {packets} ({cause})"
                  for (sequence, cause), packets in self.told.items()][:20]
        buffers = self.stats.buffer_stats if self.stats else ()
        lines += [f"buffer {i}: {buffer.chunks_overwritten} of "
                  f"{buffer.chunks_written} chunks overwritten"
                  for i, buffer in enumerate(buffers)]
        return "\n".join(lines + self.faults[:20])


def ranges(numbers):
    """[1, 2, 3, 7] as "1-3 7", the first ten of them."""
    out = []
    for number in numbers:
        if out and out[-1][1] == number - 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return " ".join(f"{a}-{b}" if a != b else str(a) for a, b in out[:10])
