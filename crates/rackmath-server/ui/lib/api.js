// Questions to the server. The page computes nothing itself.

/** What the library says when it refuses. */
export class Refused extends Error {
  constructor(error, hint) {
    super(error);
    this.hint = hint;
  }
}

const kept = new Map();
const MOST = 200;

async function post(path, body, signal) {
  let response;
  try {
    response = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body, signal });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Refused("The server does not answer.", "Is `rackmath web` still running?");
  }
  if (!response.ok) {
    const said = await response.json().catch(() => ({ error: `status ${response.status}` }));
    throw new Refused(said.error, said.hint);
  }
  return response;
}

/** The answer to a request; the latest are kept, since the same request has the same answer. */
export async function ask(question, request, signal) {
  const body = JSON.stringify(request);
  const key = `${question} ${body}`;
  const before = kept.get(key);
  if (before) {
    kept.delete(key);
    kept.set(key, before);
    return before;
  }
  const answer = await (await post(`api/${question}`, body, signal)).json();
  kept.set(key, answer);
  if (kept.size > MOST) kept.delete(kept.keys().next().value);
  return answer;
}

/** Whether the answer is already here. */
export function known(question, request) {
  return kept.has(`${question} ${JSON.stringify(request)}`);
}

/** A picture of an answer as a file. */
export async function exported(question, request, pointer, format) {
  const path = `export/${question}?figure=${encodeURIComponent(pointer)}&format=${format}`;
  return (await post(path, JSON.stringify(request))).blob();
}
