#!/usr/bin/env python3
"""Random programs over random packets, by the machine and by the naive one below.

    test_protovm_model.py DRIVER [SEED...]

The model keeps cells of Python objects, copies its state before every packet, and knows no limits;
every verdict and every byte of the state has to be the same.  Without seeds, a fixed range of them.
"""
import copy
import random
import struct
import subprocess
import sys

OK, SKIPPED, ABORTED, BAD_PACKET, NO_MEMORY, TOO_MANY_STEPS, OFF = range(7)
SRC, DST = 1, 2
FIELD, INDEX, MAP_KEY, INDEX_REG = 1, 2, 3, 4
SKIP, BREAK_OUTER, ABORT = 1, 2, 3
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


# ---- Wire format ----

def varint(v):
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7f | 0x80)
        v >>= 7
    return bytes(out + bytes([v]))


def field(number, wire, v):
    tag = varint(number << 3 | wire)
    if wire == VARINT:
        return tag + varint(v)
    if wire == BYTES:
        return tag + varint(len(v)) + v
    return tag + v.to_bytes(4 if wire == FIXED32 else 8, "little")


class Malformed(Exception):
    """Bytes that are no message."""


def read_varint(data, at):
    v = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed
        v |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            if v >> 64:
                raise Malformed
            return v, at


def fields(data):
    """Yields (number, wire, value) and raises at the first malformed one."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if number == 0 or tag >> 32:
            raise Malformed
        if wire == VARINT:
            v, at = read_varint(data, at)
        elif wire in (BYTES, FIXED32, FIXED64):
            n = {FIXED32: 4, FIXED64: 8}.get(wire)
            if wire == BYTES:
                n, at = read_varint(data, at)
            if n > len(data) - at:
                raise Malformed
            v, at = data[at:at + n], at + n
            if wire != BYTES:
                v = int.from_bytes(v, "little")
        else:
            raise Malformed
        yield number, wire, v


def is_message(data):
    try:
        return all(True for _ in fields(data))
    except Malformed:
        return False


# ---- The model ----

class Missing(Exception):
    pass


class Stop(Exception):
    """A verdict."""


class Message(dict):
    pass


class Array(list):
    pass


class Map(dict):
    pass


class Cell:
    """A place of the state: None, (wire, number), bytes, Message, Array or Map of cells."""

    def __init__(self, v=None):
        self.v = v


def aborted(condition):
    if condition:
        raise Stop(ABORTED)


def from_wire(wire, v):
    return v if wire == BYTES else (wire, v)


def opened(cell):
    """The cell's message."""
    if cell.v is None:
        cell.v = Message()
    if isinstance(cell.v, bytes):
        m = Message()
        try:
            for number, wire, v in fields(cell.v):
                if number not in m:
                    m[number] = Cell(from_wire(wire, v))
                    continue
                if not isinstance(m[number].v, Array):
                    m[number].v = Array([Cell(m[number].v)])
                m[number].v.append(Cell(from_wire(wire, v)))
        except Malformed:
            raise Stop(ABORTED) from None
        cell.v = m
    aborted(not isinstance(cell.v, Message))
    return cell.v


def key_of(cell, number):
    if isinstance(cell.v, Message):
        found = cell.v.get(number, Cell()).v
        aborted(not isinstance(found, tuple))
        return found[1]
    aborted(not isinstance(cell.v, bytes))
    try:
        for n, wire, v in fields(cell.v):
            if n == number:
                aborted(wire == BYTES)
                return v
    except Malformed:
        pass
    raise Stop(ABORTED)


def as_array(cell):
    if cell.v is None:
        cell.v = Array()
    aborted(isinstance(cell.v, Map))
    if not isinstance(cell.v, Array):
        cell.v = Array([Cell(cell.v)])
    return cell.v


def as_map(cell, number):
    if isinstance(cell.v, Map):
        return cell.v
    if cell.v is None:
        cell.v = Map()
        return cell.v
    elements = cell.v if isinstance(cell.v, Array) else [Cell(cell.v)]
    keyed = [(key_of(e, number), e) for e in elements]
    cell.v = Map()
    for key, e in keyed:
        cell.v.setdefault(key, e)
    return cell.v


def put(cell, number):
    v = cell.v
    if v is None:
        return b""
    if isinstance(v, tuple):
        return field(number, *v)
    if isinstance(v, bytes):
        return field(number, BYTES, v)
    if isinstance(v, Message):
        return field(number, BYTES, put_message(v))
    elements = v if isinstance(v, Array) else [v[key] for key in sorted(v)]
    return b"".join(put(e, number) for e in elements)


def put_message(m):
    return b"".join(put(m[number], number) for number in sorted(m))


class Model:
    def __init__(self, program, state):
        self.program = program
        self.root = Cell(state or None)

    def state(self):
        v = self.root.v
        return v if isinstance(v, bytes) else put_message(v or {})

    def apply(self, packet):
        before = copy.deepcopy(self.root)
        self.registers = {}
        self.source = (BYTES, packet)
        self.cell, self.parent, self.deleted = self.root, None, []
        try:
            for _ in fields(packet):
                pass
            self.run(self.program)
        except Missing:
            return SKIPPED
        except Malformed:
            self.root = before
            return BAD_PACKET
        except Stop as s:
            self.root = before
            return s.args[0]
        return OK

    def run(self, instructions):
        for ins in instructions:
            try:
                self.one(ins)
            except Missing:
                aborted(ins["level"] == ABORT)
                if ins["level"] == BREAK_OUTER:
                    raise

    def one(self, ins):
        if ins["op"] == "select":
            saved = self.source, self.cell, self.parent
            try:
                self.path(ins, ins["path"])
            finally:
                aborted(any(saved[1] is d for d in self.deleted))
                self.source, self.cell, self.parent = saved
            return
        getattr(self, "op_" + ins["op"])(ins)
        self.run(ins["nested"])

    def message_of_source(self):
        aborted(self.source[0] != BYTES)
        return fields(self.source[1])

    def destination(self):
        aborted(self.cell is None)
        return self.cell

    def path(self, ins, path):
        if not path:
            self.run(ins["nested"])
            return
        c, rest = path[0], path[1:]
        if c["step"] == "each":
            self.each(ins, c, rest)
            return
        if c["step"] in ("register", "key"):
            aborted(c["reg"] not in self.registers)
        if ins["cursor"] == SRC:
            self.enter_source(c)
        else:
            self.enter_state(c, ins["create"])
        self.path(ins, rest)

    def each(self, ins, c, rest):
        def visit(index):
            if "store" in c:
                self.registers[c["store"]] = index
            self.path(ins, rest)

        index = 0
        if ins["cursor"] == SRC:
            for number, wire, v in self.message_of_source():
                if number == c["field"]:
                    self.source = wire, v
                    visit(index)
                    index += 1
            return
        found = opened(self.destination()).get(c["field"])
        if found is None:
            return
        array = as_array(found)
        for element in list(array):
            # By identity: an insertion has moved it, a deletion only others before it.
            at = [i for i, e in enumerate(array) if e is element][0]
            self.cell, self.parent = element, array
            visit(at)

    def enter_source(self, c):
        index = {"index": lambda: c["index"], "register": lambda: self.registers[c["reg"]]}
        left = index.get(c["step"], lambda: 0)()
        for number, wire, v in self.message_of_source():
            if number == c["field"]:
                if left == 0:
                    self.source = wire, v
                    return
                left -= 1
        raise Missing

    def enter_state(self, c, create):
        m = opened(self.destination())
        if c["field"] not in m:
            if not create and c["step"] not in ("index", "register"):
                raise Missing
            m[c["field"]] = Cell()
        cell = m[c["field"]]
        if c["step"] == "field":
            aborted(isinstance(cell.v, (Array, Map)))
            self.cell, self.parent = cell, m
        elif c["step"] == "key":
            self.parent = as_map(cell, c["key"])
            self.cell = self.parent.setdefault(self.registers[c["reg"]], Cell())
        else:
            array = as_array(cell)
            at = c["index"] if c["step"] == "index" else self.registers[c["reg"]]
            aborted(at > len(array))
            if at == len(array):
                array.append(Cell())
            self.cell, self.parent = array[at], array

    def op_reg_load(self, ins):
        v = self.source if ins["cursor"] == SRC else self.destination().v
        aborted(not isinstance(v, tuple) or v[0] == BYTES)
        self.registers[ins["reg"]] = v[1]

    def op_set(self, _):
        cell, scalar = self.destination(), self.source[0] != BYTES
        aborted(isinstance(cell.v, (Array, Map)))
        if scalar:
            aborted(cell is self.root or isinstance(cell.v, (bytes, Message)))
        else:
            aborted(isinstance(cell.v, tuple))
            aborted(cell is self.root and not is_message(self.source[1]))
        cell.v = from_wire(*self.source)

    def op_insert(self, ins):
        cell = self.destination()
        if not isinstance(self.parent, Array) or cell.v is None:
            self.op_set(ins)
            return
        at = [i for i, e in enumerate(self.parent) if e is cell][0]
        self.cell = Cell(from_wire(*self.source))
        self.parent.insert(at, self.cell)

    def op_del(self, _):
        cell = self.destination()
        if self.parent is None:
            cell.v = None
            return
        if isinstance(self.parent, Array):
            self.parent[:] = [e for e in self.parent if e is not cell]
        else:
            for key in [k for k, e in self.parent.items() if e is cell]:
                del self.parent[key]
        self.deleted.append(cell)
        self.cell = None

    def op_merge(self, ins):
        cell = self.destination()
        aborted(self.source[0] != BYTES or isinstance(cell.v, (tuple, Array, Map)))
        if not self.source[1]:
            return
        m, cleared = opened(cell), []
        for number, wire, v in self.message_of_source():
            old = m.get(number)
            if old is not None and ins["skip"] and isinstance(old.v, Message):
                continue
            if old is not None and ins["del"] and wire == BYTES and not v:
                del m[number]
                continue
            if old is None:
                m[number] = Cell(from_wire(wire, v))
                continue
            aborted(isinstance(old.v, Map))
            if isinstance(old.v, Array):
                if not any(old.v is c for c in cleared):
                    old.v = Array()
                    cleared.append(old.v)
                old.v.append(Cell(from_wire(wire, v)))
                continue
            old.v = from_wire(wire, v)


# ---- Random programs and packets ----
#
# Most often field 1 is a number and 2 and 3 are messages, so that most instructions can run.

class Dice(random.Random):
    def some(self, most):
        return range(self.choice([0, 1, 1, 2, most]))

    def chance(self, p):
        return self.random() < p

    def number(self):
        return self.choice([0, 1, 1, 2, 3, self.getrandbits(self.choice([7, 32, 33, 64]))])


def random_message(d, depth, most=4):
    return b"".join(random_field(d, depth) for _ in d.some(most))


def random_field(d, depth):
    number = d.choice([1, 1, 2, 3])
    if depth > 0 and d.chance(0.04 if number == 1 else 0.95):
        return field(number, BYTES, random_message(d, depth - 1))
    if d.chance(0.02 if number == 1 else 0.3):
        return field(number, BYTES, d.choice([b"~~~", b"name", b"", b""]))
    wire = d.choice([VARINT, VARINT, VARINT, FIXED32, FIXED64])
    bits = {FIXED32: 32}.get(wire, 64)
    return field(number, wire, d.number() & (1 << bits) - 1)


def random_component(d, cursor):
    number, r = d.choice([1, 2, 2, 2, 3, 3, 3]), d.random()
    if r < 0.45:
        return [{"step": "field", "field": number}]
    if r < 0.65:
        c = {"step": "each", "field": number if cursor == SRC else d.choice([number, 4])}
        if d.chance(0.3):
            c["store"] = d.randrange(3)
        return [c]
    if r < 0.75:
        return [{"step": "index", "field": number, "index": d.choice([0, 0, 0, 0, 1, 2])}]
    if r < 0.8 or cursor == SRC:
        return [{"step": "register", "field": number, "reg": d.randrange(3)}]
    return [{"step": "key", "field": d.choice([number, 4, 4]), "key": d.choice([1, 1, 1, 2]),
             "reg": d.randrange(3)}]


def random_instruction(d, depth):
    ops = ["set", "merge", "merge", "merge", "insert", "del"]
    if depth > 0:
        ops += ["select"] * 12
    if d.chance(0.05):
        ops = ["reg_load"]
    op = d.choice(ops)
    ins = {"op": op, "level": d.choice([SKIP] * 6 + [BREAK_OUTER] * 4 + [ABORT]),
           "cursor": d.choice([SRC, DST]), "create": False, "nested": []}
    if op == "select":
        ins["path"] = sum((random_component(d, ins["cursor"]) for _ in d.some(2)), [])
        ins["create"] = ins["cursor"] == DST and d.chance(0.7)
        ins["nested"] = [random_instruction(d, depth - 1) for _ in range(d.randrange(1, 4))]
    elif d.chance(0.1) and depth > 0:
        ins["nested"] = [random_instruction(d, depth - 1)]
    ins["reg"] = d.randrange(3)
    ins["skip"], ins["del"] = d.chance(0.3), d.chance(0.3)
    return ins


def loads(d):
    """Loads the registers, so that not most programs end at one that was not."""
    return [{"op": "select", "level": SKIP, "cursor": SRC, "create": False,
             "path": [{"step": "field", "field": number} for number in path],
             "nested": [{"op": "reg_load", "level": SKIP, "cursor": SRC, "nested": [],
                         "reg": reg}]}
            for reg in range(3) for path in ([1], d.choice([[2, 1], [3, 1], [2, 2, 1]]))
            if d.chance(0.9)]


def encode_component(c):
    first = field(FIELD, VARINT, c["field"])
    if c["step"] == "each":
        first += field(5, VARINT, 1)
        if "store" in c:
            first += field(7, VARINT, c["store"])
    out = field(2, BYTES, first)
    if c["step"] == "index":
        out += field(2, BYTES, field(INDEX, VARINT, c["index"]))
    elif c["step"] == "register":
        out += field(2, BYTES, field(INDEX_REG, VARINT, c["reg"]))
    elif c["step"] == "key":
        out += field(2, BYTES, field(MAP_KEY, VARINT, c["key"]) + field(6, VARINT, c["reg"]))
    return out


def encode_instruction(ins):
    op = ins["op"]
    if op == "select":
        body = field(1, VARINT, ins["cursor"]) + b"".join(map(encode_component, ins["path"]))
        out = field(1, BYTES, body + (field(3, VARINT, 1) if ins["create"] else b""))
    elif op == "reg_load":
        out = field(2, BYTES, field(1, VARINT, ins["cursor"]) + field(2, VARINT, ins["reg"]))
    elif op == "merge":
        out = field(3, BYTES, field(1, VARINT, ins["skip"]) + field(2, VARINT, ins["del"]))
    else:
        out = field({"set": 4, "del": 5, "insert": 8}[op], BYTES, b"")
    out += field(6, VARINT, ins["level"])
    return out + b"".join(field(7, BYTES, encode_instruction(n)) for n in ins["nested"])


# ---- The comparison ----

class Case:
    """One seed: a program, perhaps a state, and packets."""

    PACKETS = 8

    def __init__(self, seed):
        d = Dice(seed)
        self.seed = seed
        self.program = loads(d) + [random_instruction(d, 3) for _ in range(d.randrange(1, 5))]
        wire = b"".join(field(2, BYTES, encode_instruction(i)) for i in self.program)
        self.state = random_message(d, 4, 8) if d.chance(0.6) else b""
        self.packets = [random_message(d, 4, 8) for _ in range(self.PACKETS)]
        if d.chance(0.2):
            self.packets[3] = self.packets[3][:-1]
        self.frames = [(b"P", wire), (b"S", self.state)] + [(b"A", p) for p in self.packets]

    def check(self, answers, seen):
        made, loaded = answers[:2]
        assert made[0] == 0, f"seed {self.seed}: the program is refused"
        assert loaded == (0, self.state), f"seed {self.seed}: the state is not taken"
        model = Model(self.program, self.state)
        for i, packet in enumerate(self.packets):
            before = copy.deepcopy(model.root)
            verdict = model.apply(packet)
            got = answers[2 + i]
            if got[0] in (TOO_MANY_STEPS, OFF):
                verdict, model.root = got[0], before
            seen[verdict] = seen.get(verdict, 0) + 1
            want = verdict, model.state()
            assert got == want, (
                f"seed {self.seed}, packet {i} {packet.hex()}:\n"
                f"verdict and state {got[0]} {got[1].hex()}\n"
                f"rather than       {want[0]} {want[1].hex()}")


def answers_of(data):
    at = 0
    while at < len(data):
        n, = struct.unpack_from("<I", data, at + 1)
        yield data[at], data[at + 5:at + 5 + n]
        at += 5 + n


def main(driver, seeds):
    cases = [Case(seed) for seed in seeds]
    frames = [f for c in cases for f in c.frames]
    stdin = b"".join(letter + struct.pack("<I", len(data)) + data for letter, data in frames)
    out = subprocess.run([driver], input=stdin, stdout=subprocess.PIPE, check=True).stdout
    answers = list(answers_of(out))
    assert len(answers) == len(frames)
    seen = {}
    for case in cases:
        case.check(answers[:len(case.frames)], seen)
        del answers[:len(case.frames)]
    print("packets by verdict:", dict(sorted(seen.items())))
    if len(cases) > 100:
        few = len(cases)
        assert min(seen.get(v, 0) for v in (OK, SKIPPED, ABORTED)) > few / 2, "hardly a test"
        assert seen.get(BAD_PACKET, 0) > 0, "no packet was malformed"
        assert seen.get(TOO_MANY_STEPS, 0) + seen.get(OFF, 0) < few / 10, "too few packets ran"


if __name__ == "__main__":
    main(sys.argv[1], [int(s) for s in sys.argv[2:]] or range(1000))
