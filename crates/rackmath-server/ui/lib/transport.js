// How a question reaches who answers it: over HTTP. A page without a server has `transport-static.js` under this name.

/** The response to a path; with a body it is a question. */
export const send = (path, body, signal) =>
  fetch(path, body === undefined ? { signal } : { method: "POST", headers: { "content-type": "application/json" }, body, signal });

/** Why nothing answers. */
export const silence = ["The server does not answer.", "Is `rackmath web` still running?"];
