// Every question with all its settings, made from what the library declares: a new question has its page at once.

import { fetched } from "../lib/api.js";
import { quote } from "../lib/controls.js";
import { el } from "../lib/dom.js";

// Fields by question, and what the questions are.
const declared = new Map();
let questions = null;

const FIRST = 8;

// First what is typed without a flag, then the machine, then the rest as it is declared.
const rank = (f) => f.place ?? (f.file === "model" ? 90 : f.file === "machine" ? 91 : 99);

function control(f) {
  const base = { key: f.flag, label: f.flag.replaceAll("-", " "), help: f.doc, value: "" };
  if (f.file === "model" || f.file === "machine") return { ...base, kind: f.file === "model" ? "model" : "machine", value: f.shown };
  if (f.switch) return { ...base, kind: "toggle", label: f.doc, value: f.shown === "true" ? "yes" : "no" };
  if (f.words.length && !f.list) return { ...base, kind: "select", options: [["", f.shown || "not set"], ...f.words.filter((w) => w !== f.shown).map((w) => [w])] };
  return { ...base, kind: "text", placeholder: f.shown || f.none || "" };
}

// What differs from the defaults, in the words of the terminal.
function typed(s) {
  const words = {};
  for (const f of declared.get(s.question) ?? []) {
    const value = s[f.flag];
    if (value === undefined || value === null || value === control(f).value) continue;
    words[f.flag] = f.switch ? String(value === "yes") : String(value);
  }
  return words;
}

// What a short answer leaves out stands in its last line, each part in parentheses after the flag of the terminal that shows it.
const MORE = /\n*more: (.*)\n*$/;
let opened = false;

/** The sentence an answer begins with, where it begins with one. */
const verdict = (short) => /^\s*([A-Z0-9$][^]{0,500}?\.)\n/.exec(short)?.[1].replace(/\s+/g, " ");

function words({ short, text }) {
  const pre = (label, said) => el("pre", { class: "text", tabindex: "0", "aria-label": label }, said);
  const left = short.match(MORE)?.[1];
  const answer = pre("The answer in words", short.replace(MORE, "\n").replaceAll(" with --explain", ", below"));
  if (!left) return answer;
  const parts = [...left.matchAll(/--(\w+) \(([^)]*)\)/g)].map(([, flag, what]) => (flag === "sources" ? `sources (${what})` : what));
  const all = el("details", { class: "list", open: opened || null, ontoggle: () => { opened = all.open; } },
    el("summary", {}, `All of it: ${parts.join(", ")}`), pre("The whole answer in words", text));
  return el("div", {}, answer, all);
}

export const page = {
  id: "ask",
  title: "Any question",
  lead: "Every question of the command line with every setting it has. Values are typed as in a terminal: 4k, 30ms, 50%, $2/h.",
  /** The controls of a question: they come from its fields. */
  async controls(values) {
    questions ??= await fetched("api");
    const question = questions.some((q) => q.question === values.question) ? values.question : "step";
    if (!declared.has(question)) declared.set(question, (await fetched(`api/${question}/fields`)).toSorted((a, b) => rank(a) - rank(b)));
    const all = declared.get(question).map(control);
    const more = all.length > FIRST ? [{ kind: "heading", label: "More settings", fold: true }, ...all.slice(FIRST)] : [];
    const about = questions.find((q) => q.question === question).about;
    return [{ kind: "select", key: "question", label: "Question", options: questions.map((q) => [q.question]), value: "step", help: about, renews: true }, ...all.slice(0, FIRST), ...more];
  },
  requests: (s) => ({ typed: [`${s.question}/typed`, typed(s)] }),
  asked: ({ typed: answer }, s) => [[s.question, answer.request]],
  render(view, { typed: answer }, s) {
    view.reading(verdict(answer.short) ?? `${questions.find((q) => q.question === s.question).about}.`);
    for (const [i, figure] of answer.figures.entries()) view.chart(`figure-${i}`, figure);
    view.node("text", words(answer));
  },
  command(s) {
    const fields = new Map((declared.get(s.question) ?? []).map((f) => [f.flag, f]));
    const word = ([flag, text]) => {
      const f = fields.get(flag);
      if (f.place !== null) return quote(text);
      return f.switch ? `--${flag}` : `--${flag}=${quote(text)}`;
    };
    const words = Object.entries(typed(s)).sort(([a], [b]) => (fields.get(a).place ?? 99) - (fields.get(b).place ?? 99));
    return ["rackmath", s.question, ...words.map(word)].join(" ");
  },
};
