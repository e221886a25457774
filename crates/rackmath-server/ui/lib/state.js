// What is set on a page, kept in the address: a link reproduces the view, and going back is undo.
//
//   #/latency?model=qwen3-32b&batch=256
//
// A dropped config.json travels in the link too, deflated, so that it opens elsewhere.

/** Page and settings of an address. */
export function read() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { page: path || "lecture", values: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of page and settings; what equals its default is left out. */
export function address(page, values, defaults) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined || value === null || String(value) === String(defaults[key] ?? "")) continue;
    query.set(key, String(value));
  }
  const text = query.toString();
  return `#/${page}${text ? `?${text}` : ""}`;
}

/** A text squeezed into an address. */
export async function pack(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** And back. */
export async function unpack(packed) {
  const binary = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}
