// Cards that come again when they are due, and problems whose answers are checked by the functions that answer everything else.

import { el } from "../lib/dom.js";
import { digits, typed } from "../lib/format.js";
import { due, keep, kept, looked, until } from "../lib/keep.js";

const TOPICS = [["", "all chapters"], ["batch", "batch size"], ["racks", "racks"], ["pipeline", "pipelines"], ["lifecycle", "lifecycle"], ["prices", "prices"], ["reversible", "ciphers and reversible networks"]];

// One answer per problem, a dash where there is none; kept in the address so that a link shows the same state.
const answers = (s) => (s.answers ? s.answers.split("~").map((a) => (a === "-" || a === "" ? null : Number(a))) : []);
const numbers = (s) => { const list = answers(s).map((a) => (Number.isFinite(a) ? a : null)).slice(0, Number(s.count)); return list.some((a) => a !== null) ? { given: list } : {}; };

// A problem is known by its words: the same seed may give others when the library learns new kinds.
const draft = (p) => `draft.${p.question}`;

export const page = {
  id: "practice",
  title: "Practice",
  lead: "Twenty-seven cards, which come again when you are about to forget them, and as many problems as you like. Numbers are made at random; the answers come from the library, and so does the verdict on yours. What you know and what you have typed stay in this browser.",
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
    view.heading("cards-title", "Cards");
    deck.of(cards);
    view.node("cards", deck.node);
    view.heading("problems-title", "Problems");
    const given = answers(s);
    const sign = JSON.stringify(problems);
    if (made.sign !== sign) Object.assign(made, { sign, node: el("ol", { class: "practice-list" }, problems.map((p, i) => problem(p, i, given, change))) });
    view.node("problems", made.node);
    view.node("new", el("div", {}, el("button", { type: "button", onclick: () => { change("answers", "", false); change("seed", (Number(s.seed) * 31 + 17) % 9999 + 1, true); } }, "New problems")));
  },
  leave() { deck.forget(); made.sign = ""; },
  command: (s) => ["rackmath practice", s.topic ? `--topic ${s.topic}` : "", `--seed ${s.seed}`, `-n ${s.count}`, numbers(s).given ? `--answers=${numbers(s).given.map((a) => a ?? "-").join(",")}` : ""].filter(Boolean).join(" "),
};

// The list is made anew only when a problem or a verdict is another.
const made = { sign: "", node: null };

function problem(p, i, given, change) {
  const id = `answer-${i}`;
  const input = el("input", { type: "text", id, inputmode: "decimal", autocomplete: "off", value: kept(draft(p), given[i] ?? "") });
  // What was said of another answer does not stay beside this one.
  input.addEventListener("input", () => { keep(draft(p), input.value); input.setCustomValidity(""); verdict?.remove(); });
  const check = () => {
    const value = typed(input.value);
    if (input.value.trim() && !Number.isFinite(value)) { input.setCustomValidity("a number above zero, such as 250, 11.7 or 2.8k"); input.reportValidity(); return; }
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

// One card at a time: think, turn, say whether you knew. Known cards come again after a day, then ever later.
const deck = (() => {
  let cards = [];
  let now = null;
  let turned = false;
  const node = el("div", { class: "deck" });
  const learnt = () => kept("cards", {});
  const say = (knew) => {
    const all = learnt();
    all[now.front] = looked(all[now.front], knew, Date.now());
    keep("cards", all);
    // A card that was not known goes behind the others of this round.
    if (!knew) cards = [...cards.filter((c) => c !== now), now];
    [now, turned] = [null, false];
    draw(true);
  };
  function draw(focus) {
    const all = learnt();
    const time = Date.now();
    const waiting = cards.filter((c) => due(all[c.front], time));
    if (!waiting.includes(now)) now = waiting[0] ?? null;
    const next = cards.map((c) => all[c.front]).filter((c) => c && !due(c, time)).sort((a, b) => a.due - b.due)[0];
    const state = el("p", { class: "sub", role: "status" }, now ? `${waiting.length} of ${cards.length} cards to look at${all[now.front] ? `; this one was looked at ${all[now.front].seen} times` : "; this one is new"}.` : `Nothing is due. The next card comes ${next ? until(next, time) : "later"}.`);
    if (!now) {
      node.replaceChildren(state, el("div", {}, el("button", { type: "button", class: "quiet", onclick: () => { keep("cards", null); draw(true); } }, "Begin again with all cards")));
      return;
    }
    const turn = el("button", { type: "button", onclick: () => { turned = true; draw(true); } }, "Turn the card");
    const knew = el("button", { type: "button", onclick: () => say(true) }, "I knew it");
    const not = el("button", { type: "button", class: "quiet", onclick: () => say(false) }, "Not yet");
    node.replaceChildren(state,
      el("div", { class: "deck-card" }, el("p", { class: "sub" }, `${now.topic}, claim ${now.claim}`), el("p", { class: "deck-front" }, now.front), el("p", { class: "deck-back", hidden: !turned }, now.back)),
      el("div", { class: "deck-tools" }, turned ? [knew, not] : turn));
    if (focus) (turned ? knew : turn).focus({ preventScroll: true });
  }
  return {
    node,
    of(list) {
      if (cards.length === list.length && list.every((c) => cards.some((d) => d.front === c.front))) return;
      cards = list;
      [now, turned] = [null, false];
      draw(false);
    },
    forget() { cards = []; },
  };
})();
