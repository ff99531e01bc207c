"""ProtoVM, the second time: a program for test events, a plain interpreter
of programs, and what a trace's state and its packets come to together."""

from . import pb
from .trace import read_varint

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
SRC, DST = 1, 2  # VmCursorEnum
SKIP, BREAK, ABORT = 1, 2, 3


# ---- a program ----

def field(number, **more):
    return {"field_id": number, **more}


def key(number, register):
    return {"map_key_field_id": number, "register_to_match": register}


def select(cursor, path, *nested, create=False, level=SKIP):
    return {"select": {"cursor": cursor, "relative_path": path,
                       "create_if_not_exist": create},
            "nested_instructions": nested, "abort_level": level}


def load(register):
    return {"reg_load": {"cursor": SRC, "dst_register": register}}


EVENT, PATCH, STATE = 900, 6, 7  # TracePacket.for_testing and inside of it
INSTRUCTIONS = [
    # A packet without a patch is none of this program's business.
    select(SRC, [field(EVENT), field(PATCH)], select(
        DST, [field(EVENT), field(STATE)],
        select(SRC, [field(1)], select(DST, [field(1)], {"set": {}},
                                       create=True)),
        select(SRC, [field(2)], select(DST, [field(2)], {"set": {}},
                                       create=True)),
        select(SRC, [field(3)], select(DST, [field(3)], {"merge": {}},
                                       create=True)),
        select(SRC, [field(4, is_repeated=True)],
               select(SRC, [field(1)], load(0)),
               select(DST, [field(4), key(1, 0)], {"merge": {}},
                      create=True)),
        select(SRC, [field(5, is_repeated=True)], load(0),
               select(DST, [field(4), key(1, 0)], {"del": {}})),
        create=True), level=BREAK),
]


def program(instructions=None, version=None):
    """The VmProgram of nested dicts."""
    out = pb.VmProgram(instructions=[
        _instruction(i) for i in (instructions or INSTRUCTIONS)])
    if version is not None:
        out.version = version
    return out


def _instruction(fields):
    out = pb.VmInstruction()
    for name, value in fields.items():
        if name == "abort_level":
            out.abort_level = value
        elif name == "nested_instructions":
            out.nested_instructions.extend(map(_instruction, value))
        else:
            message = getattr(out, name)
            message.SetInParent()
            for inner, what in value.items():
                if inner == "relative_path":
                    for part in what:
                        message.relative_path.add(**part)
                else:
                    setattr(message, inner, what)
    return out


# ---- an interpreter ----

class Skipped(Exception):
    """An instruction met something that is not there."""


def parse(data):
    """A message as {field: [values]}: numbers, or bytes until they are
    entered."""
    out, at = {}, 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = read_varint(data, at)
        elif kind == BYTES:
            length, at = read_varint(data, at)
            value = bytes(data[at:at + length])
            at += length
        else:
            size = 8 if kind == FIXED64 else 4
            value = ("fixed", bytes(data[at:at + size]))
            at += size
        out.setdefault(tag >> 3, []).append(value)
    return out


def varint(value):
    out = b""
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def serialize(message):
    out = b""
    for number in sorted(message):
        for value in message[number]:
            if isinstance(value, dict):
                value = serialize(value)
            if isinstance(value, bytes):
                out += varint(number << 3 | BYTES) + varint(len(value)) + value
            elif isinstance(value, tuple):
                kind = FIXED64 if len(value[1]) == 8 else FIXED32
                out += varint(number << 3 | kind) + value[1]
            else:
                out += varint(number << 3 | VARINT) + varint(value)
    return out


class Place:
    """A value in a message: values[index], of which it is an element."""

    def __init__(self, values, index, owner=None, number=None):
        self.values, self.index = values, index
        self.owner, self.number = owner, number

    def get(self):
        return self.values[self.index]

    def message(self):
        """The value as a message, parsed where it lies."""
        if isinstance(self.get(), bytes):
            self.values[self.index] = parse(self.get())
        return self.get()

    def delete(self):
        del self.values[self.index]
        if not self.values and self.owner is not None:
            del self.owner[self.number]


class Machine:
    def __init__(self, vm_program, state=b""):
        self.program = vm_program
        self.root = [parse(state)]

    def state(self):
        return serialize(self.root[0])

    def apply(self, packet):
        """Whether the program ran to its end."""
        self.registers = {}
        try:
            self._run(self.program.instructions, Place([parse(packet)], 0),
                      Place(self.root, 0))
        except Skipped:
            return False
        return True

    def _run(self, instructions, src, dst):
        for i in instructions:
            try:
                self._one(i, src, dst)
            except Skipped:
                level = i.abort_level if i.HasField("abort_level") else BREAK
                assert level != ABORT
                if level == BREAK:
                    raise

    def _one(self, i, src, dst):
        kind = i.WhichOneof("operation")
        if kind == "select":
            path = list(i.select.relative_path)
            self._walk(i, path, src, dst)
            return
        if kind == "reg_load":
            self.registers[i.reg_load.dst_register] = src.get()
        elif kind == "set":
            dst.values[dst.index] = src.get()
        elif kind == "merge":
            into, what = dst.message(), parse(as_bytes(src.get()))
            into.update(what)
        elif kind == "del":
            dst.delete()
        self._run(i.nested_instructions, src, dst)

    def _walk(self, i, path, src, dst):
        if not path:
            self._run(i.nested_instructions, src, dst)
            return
        part, rest = path[0], path[1:]
        in_src = i.select.cursor != DST
        message = (src if in_src else dst).message()
        number = part.field_id
        if part.is_repeated:
            values = message.get(number)
            if not values:
                raise Skipped
            for n in range(len(values)):
                self._walk(i, rest, Place(values, n), dst)
            return
        if rest and rest[0].HasField("map_key_field_id"):
            place = self._by_key(i, message, number, rest.pop(0))
        else:
            if number not in message:
                if not i.select.create_if_not_exist:
                    raise Skipped
                message[number] = [b""]
            place = Place(message[number], 0, message, number)
        if in_src:
            self._walk(i, rest, place, dst)
        else:
            self._walk(i, rest, src, place)

    def _by_key(self, i, message, number, part):
        wanted = self.registers[part.register_to_match]
        values = message.get(number, [])
        for n in range(len(values)):
            place = Place(values, n, message, number)
            if place.message().get(part.map_key_field_id) == [wanted]:
                return place
        if not i.select.create_if_not_exist:
            raise Skipped
        values = message.setdefault(number, values)
        values.append({part.map_key_field_id: [wanted]})
        return Place(values, len(values) - 1, message, number)


def as_bytes(value):
    return serialize(value) if isinstance(value, dict) else value


# ---- a trace ----

def instances(trace):
    """All of them, in the order of the trace."""
    return [i for packet in trace.of("protovms")
            for i in packet.protovms.instance]


def sequences_of(trace):
    """Producer of each sequence."""
    return {s.id: s.producer_id for packet in trace.of("trace_provenance")
            for buffer in packet.trace_provenance.buffers
            for s in buffer.sequences}


def final_state(trace, vm_program):
    """What the state of the trace's last instance comes to, with all packets
    behind it; without an instance, with all packets."""
    machine, producers, begun = Machine(vm_program), None, False
    whose = sequences_of(trace)
    for raw, packet in zip(trace.raw, trace.packets):
        kind = packet.WhichOneof("data")
        if kind == "protovms":
            (instance,) = packet.protovms.instance
            machine = Machine(instance.program,
                              instance.state.SerializeToString())
            producers = set(instance.producer_id)
            begun = True
        elif kind == "for_testing" and (
                not begun or
                whose[packet.trusted_packet_sequence_id] in producers):
            machine.apply(raw)
    return pretty(machine.state())


def pretty(state):
    """A state that compares equal to one with its elements in other order."""
    event = pb.TracePacket.FromString(state).for_testing
    kept = event.protovm_incremental_state
    return {
        "string": kept.string_merged, "int": kept.int_merged,
        "single": (kept.single_message.id,
                   kept.single_message.submessage.single_int),
        "messages": {m.id: m.submessage.single_int for m in kept.messages},
    }
