// Questions to the engine. The page computes nothing itself.

import { send, silence } from "./transport.js";

/** What the library says when it refuses. */
export class Refused extends Error {
  constructor(problem, hint) {
    super(problem);
    this.hint = hint;
  }
}

// Answers by request, the longest unused first; what they weigh together is bounded.
const kept = new Map();
const MOST = 16e6;
let weight = 0;

async function post(path, body, signal) {
  let response;
  try {
    response = await send(path, body, signal);
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Refused(...silence);
  }
  if (!response.ok) {
    const said = await response.json().catch(() => ({ problem: `status ${response.status}` }));
    throw Object.assign(new Refused(said.problem, said.hint), { answered: response.status < 500 });
  }
  return response;
}

/** An answer with its sentences, which are values there, in the server's words. */
async function worded(answer, signal) {
  const found = [];
  const walk = (at) => {
    for (const [key, value] of Object.entries(at)) {
      if (typeof value?.says === "string") found.push([at, key, JSON.stringify(value)]);
      else if (value && typeof value === "object") walk(value);
    }
  };
  walk(answer);
  const remarks = [...new Set(found.map(([, , remark]) => remark))];
  if (!remarks.length) return answer;
  const said = await (await post("api/words", `[${remarks}]`, signal)).json();
  const words = new Map(remarks.map((remark, i) => [remark, said[i]]));
  for (const [at, key, remark] of found) at[key] = words.get(remark);
  return answer;
}

/** The answer to a request, or its refusal, if it is still known. */
export function known(question, request) {
  const key = `${question} ${JSON.stringify(request)}`;
  const found = kept.get(key);
  if (!found) return undefined;
  kept.delete(key);
  kept.set(key, found);
  return found.answer;
}

/** The answer to a request; the latest are kept, since the same request has the same answer. */
export async function ask(question, request, signal) {
  const before = known(question, request);
  if (before instanceof Refused) throw before;
  if (before) return before;
  const body = JSON.stringify(request);
  const keep = (answer, size) => {
    const key = `${question} ${body}`;
    weight += size - (kept.get(key)?.size ?? 0);
    kept.set(key, { answer, size });
    for (const [oldest, old] of kept) {
      if (weight <= MOST || oldest === key) break;
      kept.delete(oldest);
      weight -= old.size;
    }
    return answer;
  };
  try {
    const text = await (await post(`api/${question}`, body, signal)).text();
    return keep(await worded(JSON.parse(text), signal), text.length + body.length);
  } catch (problem) {
    if (problem.answered) keep(problem, 500);
    throw problem;
  }
}

/** A picture of an answer as a file. */
export async function exported(question, request, pointer, format) {
  const path = `export/${question}?figure=${encodeURIComponent(pointer)}&format=${format}`;
  return (await post(path, JSON.stringify(request))).blob();
}

/** A figure as a file. */
export async function drawn(figure, format) {
  const role = (r) => (r.dots ? "points" : r);
  const series = figure.series.map((s) => ({ ...s, role: role(s.role) }));
  return (await post(`draw?format=${format}`, JSON.stringify({ marks: [], ...figure, series }))).blob();
}

/** An answer as it is, as a file. */
export const plain = async (question, request) => (await post(`api/${question}`, JSON.stringify(request))).blob();

/** What the server lists: a JSON document that does not depend on a request. */
export async function fetched(path) {
  const response = await send(path).catch(() => { throw new Refused(...silence); });
  if (!response.ok) throw new Refused(`${path}: status ${response.status}`);
  return response.json();
}
