// How a question reaches who answers it where there is no server: a worker of this page computes the answers.
//
// One question at a time. Who aborts a question that is being worked on ends the worker; the next gets a new one, from the compiled engine kept here.

const place = (name) => new URL(`../engine/${name}`, import.meta.url);

/** A file that is kept packed, so that any host sends few bytes; unpacked while it comes. */
async function unpacked(name, type = "application/octet-stream") {
  const response = await fetch(place(name));
  if (!response.ok) throw new Error(`${name}: status ${response.status}`);
  return new Response(response.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "content-type": type } });
}

// Files, each fetched when something first needs it, and kept.
const kept = new Map();
function once(name, made) {
  if (!kept.has(name)) kept.set(name, made().catch((problem) => { kept.delete(name); throw problem; }));
  return kept.get(name);
}

const engine = () => once("rackmath.wasm.bin", () => WebAssembly.compileStreaming(unpacked("rackmath.wasm.bin", "application/wasm")));
const part = (name) => once(name, async () => (await unpacked(name)).arrayBuffer());

// Every page asks something: what all answers need is on its way before the first question is. Who asks is told what fails.
for (const early of [engine(), part("catalogue.json.bin")]) early.catch(() => {});

/** The parts of the catalogue that a question reads: published measurements are as large as all the rest. */
const parts = (path) => (/^\/?(api|export)\/validate\b/.test(path) ? ["catalogue.json.bin", "measured.json.bin"] : ["catalogue.json.bin"]);

let worker;
let stocked = new Set(); // parts of the catalogue that the worker has
let current; // the question being worked on
const waiting = [];

function next() {
  if (current || !waiting.length) return;
  current = waiting.shift();
  const mine = current;
  const names = parts(mine.path);
  Promise.all([engine(), ...names.map(part)]).then(([module, ...files]) => {
    if (current !== mine) return;
    if (!worker) {
      worker = new Worker(new URL("engine.js", import.meta.url));
      worker.onmessage = ({ data }) => done(data);
      worker.onerror = (event) => done({ failed: event.message || "the engine stopped" });
      worker.postMessage({ module });
      stocked = new Set();
    }
    for (const [i, name] of names.entries()) {
      if (stocked.has(name)) continue;
      worker.postMessage({ catalogue: files[i] });
      stocked.add(name);
    }
    worker.postMessage({ path: mine.path, body: mine.body });
  }).catch((problem) => { if (current === mine) done({ failed: String(problem.message ?? problem) }); });
}

function done({ status, mime, bytes, failed }) {
  const { resolve } = current;
  current = undefined;
  if (failed) {
    worker?.terminate();
    worker = undefined;
    const said = JSON.stringify({ problem: "The engine of this page stopped.", hint: failed });
    resolve(new Response(said, { status: 500, headers: { "content-type": "application/json" } }));
  } else resolve(new Response(bytes, { status, headers: { "content-type": mime } }));
  next();
}

/** The response to a path; with a body it is a question. */
export function send(path, body, signal) {
  return new Promise((resolve, reject) => {
    const asked = { path, body: body ?? "", resolve };
    const abort = () => {
      reject(new DOMException("aborted", "AbortError"));
      const at = waiting.indexOf(asked);
      if (at >= 0) waiting.splice(at, 1);
      else if (current === asked) {
        worker?.terminate();
        worker = undefined;
        current = undefined;
        next();
      }
    };
    if (signal?.aborted) return abort();
    signal?.addEventListener("abort", abort, { once: true });
    waiting.push(asked);
    next();
  });
}

/** Why nothing answers. */
export const silence = ["The engine of this page cannot be loaded.", "Are the files of the folder engine/ beside the page?"];
