// Serves Perfetto's Trace Processor on a UNIX socket, so that a run of many test
// programs compiles it once:
//
//	node serve.mjs WASM SOCKET [IDLE_SECONDS]
//
// A request is a line of JSON, {"trace": FILE, "queries": [SQL...]}; so is its
// answer: {"error": words} when the trace cannot be read, else {"answers": [...]},
// each {"columns": [...], "rows": [[...]...]} or {"error": words}.  Integers have
// all their digits, bytes are {"hex": "..."}.  Clients that ask at the same time
// wait for each other.  A file is read once as long as it is asked for alone, so
// one that has changed needs another name.  Ends when nobody has been connected
// for a while.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { TraceProcessor } from './trace_processor.mjs';

const [, , wasm_file, socket, idle_seconds = '60'] = process.argv;
const HEAP_LIMIT = 1 << 30;  // WebAssembly's memory never shrinks

let tp = await TraceProcessor.open(wasm_file);
let loaded = null;

function cell(value) {
  switch (typeof value) {
  case 'bigint': return value.toString();
  case 'number': return Number.isFinite(value) ? value.toString() : isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity';
  }
  return JSON.stringify(value instanceof Uint8Array ? { hex: Buffer.from(value).toString('hex') } : value);
}

const table = ({ columns, rows }) =>
  `{"columns":${JSON.stringify(columns)},"rows":[${rows.map(row => `[${row.map(cell)}]`)}]}`;

// After an error of its own it is in no state to be asked again.
function begin_anew() {
  tp = new TraceProcessor(tp.module);
  loaded = null;
}

function answer_one(sql) {
  try {
    return table(tp.query(sql));
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) begin_anew();
    return JSON.stringify({ error: error.message });
  }
}

function answer({ trace, queries }) {
  try {
    if (trace !== loaded) {
      if (tp.heap_bytes() > HEAP_LIMIT) begin_anew();
      loaded = null;
      tp.load(readFileSync(trace));
      loaded = trace;
    }
  } catch (error) {
    begin_anew();
    return JSON.stringify({ error: error.message });
  }
  return `{"answers":[${queries.map(answer_one)}]}`;
}

let connections = 0, idle;
const server = createServer(connection => {
  clearTimeout(idle);
  connections++;
  connection.on('error', () => {});
  connection.on('close', () => {
    if (--connections === 0) wait();
  });
  createInterface({ input: connection }).on('line', line => connection.write(answer(JSON.parse(line)) + '\n'));
});
const wait = () => { idle = setTimeout(() => process.exit(0), 1000 * idle_seconds); };
server.listen(socket, wait);
