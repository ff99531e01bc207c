// Perfetto's Trace Processor (WebAssembly) in this process, without a browser.
//
//	const tp = await TraceProcessor.open(wasm_file);
//	tp.load(bytes);                  // forgets the trace before
//	tp.query("select ts from slice") // {columns, rows}; throws with its words
//
// Knows nothing of sockets and of what is asked.  Numbers of requests and of
// fields are those of TraceProcessorRpc in Perfetto's
// protos/perfetto/trace_processor/trace_processor.proto.
import { readFileSync } from 'node:fs';

const APPEND = 1, FINALIZE = 2, QUERY = 3, RESET = 11;  // TraceProcessorMethod
const APPEND_DATA = 101, QUERY_ARGS = 103;              // of a request
const FATAL = 5, APPEND_RESULT = 201, QUERY_RESULT = 203, FINALIZE_RESULT = 212;  // of a reply
const ENOSYS = -52;
const REQUEST_BYTES = 16 << 20;  // the buffer that requests are handed over in

const text = new TextDecoder();
const bytes_of = new TextEncoder();

// --- protobuf ---

function varint(n) {
  const out = [];
  for (n = BigInt(n); n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  out.push(Number(n));
  return Uint8Array.from(out);
}

function join(...parts) {
  const out = new Uint8Array(parts.reduce((sum, p) => sum + p.length, 0));
  let at = 0;
  for (const p of parts) { out.set(p, at); at += p.length; }
  return out;
}

const number_field = (id, n) => join(varint(id << 3), varint(n));
const bytes_field = (id, b) => join(varint(id << 3 | 2), varint(b.length), b);

function* varints(b) {
  for (let i = 0; i < b.length;) {
    let value = 0n, shift = 0n, byte;
    do { byte = b[i++]; value |= BigInt(byte & 127) << shift; shift += 7n; } while (byte > 127);
    yield value;
  }
}

// [id, value] of a message: numbers as BigInt, all else as bytes.
function fields(b) {
  const out = [];
  let i = 0;
  const next = () => {
    let value = 0n, shift = 0n, byte;
    do { byte = b[i++]; value |= BigInt(byte & 127) << shift; shift += 7n; } while (byte > 127);
    return value;
  };
  const take = n => b.subarray(i, i += n);
  while (i < b.length) {
    const tag = Number(next()), id = tag >> 3;
    switch (tag & 7) {
    case 0: out.push([id, next()]); break;
    case 1: out.push([id, take(8)]); break;
    case 2: out.push([id, take(Number(next()))]); break;
    case 5: out.push([id, take(4)]); break;
    default: throw new Error(`wire type ${tag & 7} in a reply`);
    }
  }
  return out;
}

// --- the cells of a QueryResult ---

const NULL = 1, INTEGER = 2, FLOAT = 3, STRING = 4;  // QueryResult.CellsBatch.CellType

function floats(b) {
  const view = new DataView(b.buffer, b.byteOffset, b.length);
  return Array.from({ length: b.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

// Calls row() with each row of a batch, whose cells are sorted by their types.
function read_batch(batch, width, row) {
  const of = { types: [], integers: [], floats: [], strings: [], blobs: [] };
  for (const [id, value] of fields(batch)) {
    switch (id) {
    case 1: of.types = Array.from(varints(value), Number); break;
    case 2: of.integers = Array.from(varints(value), n => BigInt.asIntN(64, n)); break;
    case 3: of.floats = floats(value); break;
    case 4: of.blobs.push(value); break;
    case 5: of.strings = text.decode(value).split('\0'); break;
    }
  }
  const at = { integers: 0, floats: 0, strings: 0, blobs: 0 };
  const next = kind => of[kind][at[kind]++];
  let cells = [];
  for (const type of of.types) {
    cells.push(type === NULL ? null : type === INTEGER ? next('integers') :
      type === FLOAT ? next('floats') : type === STRING ? next('strings') : next('blobs'));
    if (cells.length === width) { row(cells); cells = []; }
  }
}

// --- the module ---

export class TraceProcessor {
  static async open(wasm_file) {
    return new TraceProcessor(await WebAssembly.compile(readFileSync(wasm_file)));
  }

  constructor(module) {
    this.module = module;
    this.said = '';   // what it wrote to its standard error since the last load
    this.replies = [];
    this.sequence = 0;
    this.start();
  }

  start() {
    const imports = {};
    for (const { module, name } of WebAssembly.Module.imports(this.module))
      (imports[module] ??= {})[name] = this.system_call(name);
    const x = this.exports = new WebAssembly.Instance(this.module, imports).exports;
    this.memory = x.memory;
    x.emscripten_stack_init?.();
    x.__wasm_call_ctors();
    x.__main_argc_argv?.(0, 0);
    this.buffer = x.trace_processor_rpc_init(this.callback(), REQUEST_BYTES) >>> 0;
  }

  // A function table takes only functions of WebAssembly: one that calls ours
  // with (address, length).
  callback() {
    const shim = new WebAssembly.Module(Uint8Array.from([
      0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 2, 127, 127, 0,
      2, 7, 1, 1, 101, 1, 102, 0, 0, 7, 5, 1, 1, 102, 0, 0]));
    const reply = (at, length) =>
      this.replies.push(new Uint8Array(this.memory.buffer, at >>> 0, length >>> 0).slice());
    const table = this.exports.__indirect_function_table;
    const index = table.grow(1);
    table.set(index, new WebAssembly.Instance(shim, { e: { f: reply } }).exports.f);
    return index;
  }

  // What it may ask of a system: the time, memory, and to say something.
  system_call(name) {
    const view = () => new DataView(this.memory.buffer);
    const string = at => {
      const all = new Uint8Array(this.memory.buffer, at >>> 0);
      return text.decode(all.subarray(0, all.indexOf(0)));
    };
    const die = what => { throw new Error(`Trace Processor: ${what}: ${this.said}`); };
    const known = {
      emscripten_get_now: () => performance.now(),
      emscripten_date_now: () => Date.now(),
      clock_time_get: (id, precision, out) => {
        const ms = id === 0 ? Date.now() : performance.now();
        view().setBigUint64(out >>> 0, BigInt(Math.round(ms * 1e6)), true);
        return 0;
      },
      emscripten_get_heap_max: () => 0xffff0000 | 0,
      emscripten_resize_heap: size => {
        const pages = Math.ceil(((size >>> 0) - this.memory.buffer.byteLength) / 65536);
        try { this.memory.grow(pages); return 1; } catch { return 0; }
      },
      environ_sizes_get: (count, size) => {
        view().setUint32(count >>> 0, 0, true);
        view().setUint32(size >>> 0, 0, true);
        return 0;
      },
      environ_get: () => 0,
      fd_write: (fd, vectors, n, written) => {
        let total = 0;
        for (let i = 0; i < n; i++) {
          const at = view().getUint32((vectors >>> 0) + 8 * i, true);
          const length = view().getUint32((vectors >>> 0) + 8 * i + 4, true);
          this.said += text.decode(new Uint8Array(this.memory.buffer, at, length));
          total += length;
        }
        view().setUint32(written >>> 0, total, true);
        return 0;
      },
      exit: status => die(`exit ${status}`),
      proc_exit: status => die(`exit ${status}`),
      _abort_js: () => die('abort'),
      __assert_fail: (what, file, line) => die(`${string(what)} ${string(file)}:${line}`),
      __cxa_throw: () => die('an exception'),
      _tzset_js: () => {}, emscripten_asm_const_int: () => 0, HaveOffsetConverter: () => 0,
      emscripten_pc_get_function: () => 0, emscripten_stack_snapshot: () => 0,
      emscripten_stack_unwind_buffer: () => 0,
    };
    return known[name] ?? (() => ENOSYS);
  }

  // The [id, value] fields of all replies to a request.
  call(method, args = new Uint8Array()) {
    const request = bytes_field(1, join(number_field(1, this.sequence++), number_field(2, method), args));
    this.replies = [];
    for (let at = 0; at < request.length; at += REQUEST_BYTES) {
      const part = request.subarray(at, at + REQUEST_BYTES);
      new Uint8Array(this.memory.buffer).set(part, this.buffer);
      this.exports.trace_processor_on_rpc_request(part.length);
    }
    const out = fields(join(...this.replies)).flatMap(([, reply]) => fields(reply));
    for (const [id, value] of out)
      if (id === FATAL) throw new Error(`Trace Processor: ${text.decode(value)}`);
    return out;
  }

  // Throws with its words when it cannot read the trace.
  load(bytes) {
    this.said = '';
    this.call(RESET);
    const must = (result, error_id, reply) => {
      for (const [id, value] of reply)
        if (id === result)
          for (const [inner, words] of fields(value))
            if (inner === error_id && words.length) throw new Error(text.decode(words));
    };
    for (let at = 0; at < bytes.length; at += REQUEST_BYTES / 2)
      must(APPEND_RESULT, 2, this.call(APPEND,
        bytes_field(APPEND_DATA, bytes.subarray(at, at + REQUEST_BYTES / 2))));
    must(FINALIZE_RESULT, 1, this.call(FINALIZE));
  }

  query(sql) {
    const columns = [], rows = [];
    for (const [id, result] of this.call(QUERY, bytes_field(QUERY_ARGS, bytes_field(1, bytes_of.encode(sql))))) {
      if (id !== QUERY_RESULT) continue;
      for (const [inner, value] of fields(result)) {
        if (inner === 1) columns.push(text.decode(value));
        else if (inner === 2 && value.length) throw new Error(text.decode(value));
        else if (inner === 3) read_batch(value, columns.length, row => rows.push(row));
      }
    }
    return { columns, rows };
  }

  heap_bytes() {
    return this.memory.buffer.byteLength;
  }
}
