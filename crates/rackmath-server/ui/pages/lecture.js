// The lecture: twelve steps from one equation to prices. A step is prose with numbers that can be dragged, a figure under its
// sentence, equations that open into their values, and a problem. Every number is an answer of the library.

import { Refused } from "../lib/api.js";
import { el } from "../lib/dom.js";
import { knob } from "../lib/knob.js";
import { batch } from "./lecture/batch.js";
import { machines } from "./lecture/machines.js";
import { prices } from "./lecture/prices.js";
import { problem } from "./lecture/problem.js";

const STEPS = [...batch, ...machines, ...prices];
const number = (s) => Number(s.step ?? 1);
const wanted = (s) => {
  const step = STEPS[number(s) - 1];
  if (!step) throw new Refused(`step = ${s.step}`, `expected 1 to ${STEPS.length}`);
  return step;
};
const link = (n) => `#/lecture${n === 1 ? "" : `?step=${n}`}`;

// What stays while the numbers of a step change: its knobs and its problem.
let stage = null;
// The step that was read last: another one has other knobs, for which the board is made anew.
let read = null;

function staged(s, change) {
  const step = wanted(s);
  if (stage?.step === step) return stage;
  stage = { step, knobs: new Map(), change, problem: problem(step.practice, (...set) => stage.change(...set)) };
  for (const [key, c] of Object.entries(step.knobs)) stage.knobs.set(key, knob({ ...c, key }, (...set) => stage.change(...set)));
  // A reader who turns the page begins at its head.
  const turned = read && read !== step;
  read = step;
  if (turned) requestAnimationFrame(() => { scrollTo(0, 0); document.querySelector(".lecture-head h1")?.focus({ preventScroll: true }); });
  return stage;
}

const settings = (step, s) => Object.fromEntries(Object.entries(step.knobs).map(([key, c]) => [key, Number(s[key] ?? c.value)]));

export const page = {
  id: "lecture",
  title: "The lecture",
  name: (s) => STEPS[number(s) - 1]?.title ?? "The lecture",
  controls(s) {
    const step = STEPS[number(s) - 1] ?? STEPS[0];
    const knobs = Object.entries(step.knobs).map(([key, c]) => ({ kind: "knob", key, value: c.value }));
    return [{ kind: "knob", key: "step", value: "1" }, ...knobs, { kind: "knob", key: "seed", value: step.practice.seed ?? "1" }, { kind: "knob", key: "answer", value: "" }];
  },
  later: ["practice"],
  requests(s) {
    const step = wanted(s);
    const given = s.answer === "" || s.answer === undefined ? {} : { given: [Number(s.answer)] };
    return { ...step.requests(settings(step, s)), practice: ["practice", { claim: step.practice.claim, seed: Number(s.seed), count: 1, ...given }] };
  },
  follow: (answers, s) => wanted(s).follow?.(answers, settings(wanted(s), s)),
  render(view, answers, s, { requests, change }) {
    const at = staged(s, change);
    at.change = change;
    const { step } = at;
    const set = settings(step, s);
    for (const [key, { set: put }] of at.knobs) put(set[key]);
    view.node(`${step.id}-head`, (at.head ??= head(step)));
    step.tell(new Telling(view, at, requests), answers, set);
    if (answers.practice) at.problem.show(answers.practice.problems[0], s);
    view.node(`${step.id}-problem`, at.problem.node);
    view.node(`${step.id}-foot`, (at.foot ??= foot(step)));
  },
  leave() { stage = null; },
  command: (s, answers) => wanted(s).command?.(settings(wanted(s), s), answers) ?? "",
  // Practice is not part of what the step asks.
  asked: (answers, s) => Object.entries(wanted(s).requests(settings(wanted(s), s))).filter(([, a]) => !Array.isArray(a[0])).map(([, a]) => a),
};

/** What a step is told with. */
class Telling {
  constructor(view, stage, requests) {
    Object.assign(this, { view, stage, requests, count: 0 });
  }

  key(name) {
    this.count += 1;
    return `${this.stage.step.id}-${name ?? this.count}`;
  }

  /** say(words`With ${"batch"} sequences a step takes ${out(...)}`): a plain string names a knob. */
  say({ strings, parts }) {
    const some = parts.map((p) => (typeof p === "string" ? { node: this.stage.knobs.get(p).node } : p.word ?? p));
    this.view.prose(this.key(), strings.flatMap((text, i) => [text, some[i]]).filter((p) => p !== undefined && p !== ""));
  }

  heading(text) { this.view.heading(this.key(), text); }

  /** What the numbers come to, in a box that keeps its height. */
  reading(text) { this.view.reading(text, this.key("reading")); }

  /** A figure of an answer: `from` names the request and the place in its answer. */
  chart(name, figure, { from, ...options } = {}) {
    const source = from ? [...this.requests[from[0]], from[1]] : undefined;
    this.view.chart(this.key(name), figure, { source, ...options });
  }

  equation(spec) { this.view.opening(this.key(), spec); }

  node(name, node) { this.view.node(this.key(name), node); }
}

function head(step) {
  const n = STEPS.indexOf(step) + 1;
  return el("header", { class: "lecture-head" },
    el("nav", { "aria-label": "Steps of the lecture" }, el("ol", { class: "steps" }, STEPS.map((other, i) =>
      el("li", {}, el("a", { href: link(i + 1), title: other.title, "aria-label": `Step ${i + 1}: ${other.title}`, "aria-current": other === step ? "step" : null }, String(i + 1)))))),
    el("p", { class: "lecture-kicker" }, `Step ${n} of ${STEPS.length}`),
    el("h1", { tabindex: "-1" }, step.title));
}

function foot(step) {
  const n = STEPS.indexOf(step) + 1;
  const way = (to, word, cls) => STEPS[to - 1] && el("a", { class: cls, href: link(to), rel: word === "Next" ? "next" : "prev" }, el("small", {}, word), el("span", {}, STEPS[to - 1].title));
  const last = el("a", { class: "way-next", href: "#/practice" }, el("small", {}, "Then"), el("span", {}, "Practise what you have read"));
  return el("nav", { class: "ways-on", "aria-label": "Next and previous step" },
    way(n - 1, "Back", "way-back") ?? el("a", { class: "way-back", href: "#/latency" }, el("small", {}, "Or"), el("span", {}, "Go straight to the workbench")),
    way(n + 1, "Next", "way-next") ?? last);
}
