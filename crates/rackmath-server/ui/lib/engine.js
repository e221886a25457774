// The engine in a worker: bytes in, bytes out, as `rackmath-wasm` says.

let calls;

function put(bytes) {
  const at = calls.room(bytes.length);
  new Uint8Array(calls.memory.buffer, at, bytes.length).set(bytes);
}

const given = (length) => new Uint8Array(calls.memory.buffer, calls.given(), length).slice();

onmessage = ({ data }) => {
  if (data.module) {
    calls = new WebAssembly.Instance(data.module, {}).exports;
    return;
  }
  if (data.catalogue) {
    put(new Uint8Array(data.catalogue));
    if (!calls.stock()) throw new Error("the catalogue cannot be read");
    return;
  }
  put(new TextEncoder().encode(`${data.path}\n${data.body}`));
  const answer = given(calls.respond());
  const end = answer.indexOf(10);
  const [status, mime] = new TextDecoder().decode(answer.subarray(0, end)).split(/ (.*)/);
  const bytes = answer.slice(end + 1).buffer;
  postMessage({ status: Number(status), mime, bytes }, [bytes]);
};
