// A whole cut into pieces: a bar with a list that says the same in words. Colours follow names, so they stay as settings change.

import { el } from "./dom.js";
import { percent, seconds } from "./format.js";

const TONES = {
  "matrix products": "c3", experts: "c1", attention: "c2", "small kernels": "c7", collectives: "c4", "head and sampling": "c5", host: "c6", drafting: "c0",
  arithmetic: "compute", "memory bandwidth": "weights", "kernel latency": "c7", links: "c1",
  "at the roofline": "c0", "kernels slower than their roofline": "c2", "kernel launches and floors": "c7",
};

/** A bar of pieces [{ what, share, text, tone }], shares of one. */
export function bar(title, pieces, note) {
  const shown = pieces.filter((p) => p.share > 0);
  const tone = (p, i) => p.tone ?? TONES[p.what] ?? (p.what.startsWith("collectives") ? "c4" : `c${i % 8}`);
  const strip = el("div", { class: "stack-bar", role: "img", "aria-label": `${title}: ${shown.map((p) => `${p.what} ${percent(p.share)}`).join(", ")}` },
    shown.map((p, i) => {
      const piece = el("span", { class: `stack-piece fill-${tone(p, i)}`, title: `${p.what}: ${p.text}, ${percent(p.share)}` }, el("span", {}, percent(p.share)));
      piece.style.flexGrow = String(p.share);
      return piece;
    }));
  return el("div", { class: "stack" },
    el("h3", {}, title, note ? el("span", { class: "sub" }, ` ${note}`) : null),
    strip,
    el("ul", { class: "stack-list" }, shown.map((p, i) => el("li", {}, el("span", { class: `dot fill-${tone(p, i)}`, "aria-hidden": "true" }), `${p.what} `, el("b", {}, p.text)))));
}

/** Where the time of the mean step goes, three ways. */
export function breakdown(step) {
  const pieces = (list) => list.map((p) => ({ what: p.what, share: p.share, text: seconds(p.ms / 1e3) }));
  const time = seconds(step.step_ms / 1e3);
  return el("div", { class: "stacks" },
    bar("By part", pieces(step.parts), `of ${time}`),
    bar("By what limits", pieces(step.limits)),
    bar("Above the roofline", [{ what: "at the roofline", share: step.of_limit, text: seconds(step.ideal_ms / 1e3) }, ...pieces(step.losses)], "what lies between the ideal and the step"));
}

/** Low to high of an 80 % interval, with its own unit. */
export function between({ low, high }, show) {
  return `${show(low)} to ${show(high)}`;
}
