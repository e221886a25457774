// Flashcards, and problems whose answers are checked by the functions that answer everything else.

import { el } from "../lib/dom.js";
import { digits, typed } from "../lib/format.js";

const TOPICS = [["", "all chapters"], ["batch", "batch size"], ["racks", "racks"], ["pipeline", "pipelines"], ["lifecycle", "lifecycle"], ["prices", "prices"], ["reversible", "ciphers and reversible networks"]];

// One answer per problem, a dash where there is none; kept in the address so that a link shows the same state.
const answers = (s) => (s.answers ? s.answers.split("~").map((a) => (a === "-" || a === "" ? null : Number(a))) : []);
const numbers = (s) => { const list = answers(s).map((a) => (Number.isFinite(a) ? a : null)).slice(0, Number(s.count)); return list.some((a) => a !== null) ? { given: list } : {}; };

let turned = new Set();

export const page = {
  id: "practice",
  title: "Practice",
  lead: "Twenty-seven cards and as many problems as you like. Numbers are made at random; the answers come from the library, and so does the verdict on yours.",
  controls: [
    { kind: "select", key: "topic", label: "Chapter", options: TOPICS, words: ["practice", "topic"], value: "" },
    { kind: "range", key: "count", label: "Problems", min: 1, max: 20, value: 6 },
    { kind: "range", key: "seed", label: "Set", min: 1, max: 9999, value: 1, help: "The same number gives the same problems, to you and to whoever opens the link." },
  ],
  requests: (s) => ({
    practice: ["practice", { ...(s.topic ? { topic: s.topic } : {}), seed: Number(s.seed), count: Number(s.count), ...numbers(s) }],
  }),
  render(view, { practice }, s, { change }) {
    const { answered, right, problems, cards } = practice;
    view.reading(answered
      ? `${right} of ${answered} right so far; ${problems.length - answered} left open. Right means within two percent.`
      : `${problems.length} problems wait for an answer. Two percent off still counts as right: the equation matters, not the third digit.`);
    const given = answers(s);
    view.node("problems", el("ol", { class: "practice-list" }, problems.map((p, i) => problem(p, i, given, change))));
    view.node("new", el("div", {}, el("button", { type: "button", onclick: () => { change("answers", "", false); change("seed", (Number(s.seed) * 31 + 17) % 9999 + 1, true); } }, "New problems")));
    view.heading("cards-title", "Cards");
    view.note("cards-note", "Think of the answer, then turn the card.");
    view.node("cards", el("div", { class: "practice-cards" }, cards.map(card)));
  },
  leave() { turned = new Set(); },
  command: (s) => ["rackmath practice", s.topic ? `--topic ${s.topic}` : "", `--seed ${s.seed}`, `-n ${s.count}`, numbers(s).given ? `--answers=${numbers(s).given.map((a) => a ?? "-").join(",")}` : ""].filter(Boolean).join(" "),
};

function problem(p, i, given, change) {
  const id = `answer-${i}`;
  const input = el("input", { type: "text", id, inputmode: "decimal", autocomplete: "off", value: given[i] ?? "" });
  const check = () => {
    const value = typed(input.value);
    if (input.value.trim() && !Number.isFinite(value)) { input.setCustomValidity("a number, such as 250 or 2.8k"); input.reportValidity(); return; }
    input.setCustomValidity("");
    const next = [...given];
    while (next.length <= i) next.push(null);
    next[i] = input.value.trim() ? value : null;
    change("answers", next.map((a) => a ?? "-").join("~"), true);
  };
  const verdict = p.right === null ? null
    : el("span", { class: p.right ? "practice-right" : "practice-wrong" }, p.right ? "✓ right" : `✗ not ${digits(p.given, 4)}`);
  return el("li", {},
    el("p", {}, p.question),
    el("form", { class: "practice-answer", onsubmit: (event) => { event.preventDefault(); check(); } },
      el("label", { for: id }, "Answer"), input, el("span", { class: "sub" }, p.unit), el("button", { type: "submit", class: "quiet" }, "Check"), verdict),
    el("details", { open: p.right === true ? true : null },
      el("summary", {}, "Worked answer"),
      el("p", {}, el("code", {}, p.equation)),
      ...p.working.map((line) => el("p", {}, el("code", {}, line))),
      el("p", { class: "sub" }, `Claim ${p.claim} of the lecture, ${p.topic}.`)));
}

function card(c) {
  const key = c.front;
  const shown = turned.has(key);
  const back = el("p", { hidden: !shown }, c.back, el("span", { class: "sub" }, ` ${c.claim}`));
  const button = el("button", {
    type: "button", class: "practice-card", "aria-expanded": String(shown),
    onclick: () => {
      back.hidden = !back.hidden;
      button.setAttribute("aria-expanded", String(!back.hidden));
      if (back.hidden) turned.delete(key); else turned.add(key);
    },
  }, el("span", { class: "sub" }, c.topic), el("span", {}, c.front));
  return el("div", { class: "practice-slot" }, button, back);
}
