// The problem at the end of a step: made by the library, checked by it, worked by it. What is typed stays in this browser.

import { el } from "../../lib/dom.js";
import { digits, typed } from "../../lib/format.js";
import { keep, kept } from "../../lib/keep.js";

/** The box of a claim's problem; `change(key, value, final)` sets `seed` and `answer`. */
export function problem({ claim }, change) {
  const id = `lecture-answer-${claim}`;
  const text = el("p", {});
  const input = el("input", { type: "text", id, inputmode: "decimal", autocomplete: "off" });
  const unit = el("span", { class: "sub" });
  const verdict = el("span", { role: "status" });
  const steps = el("div", {});
  const worked = el("details", {}, el("summary", {}, "Worked answer"), steps);
  let draft = null;
  let seed = 1;
  // What was said of another answer does not stay beside this one.
  input.addEventListener("input", () => { if (draft) keep(draft, input.value); input.setCustomValidity(""); verdict.textContent = ""; });
  const check = () => {
    const value = typed(input.value);
    if (!Number.isFinite(value)) { input.setCustomValidity("a number above zero, such as 250, 11.7 or 2.8k"); input.reportValidity(); return; }
    change("answer", value, true);
  };
  const another = () => {
    input.value = "";
    worked.open = false;
    change("answer", "", false);
    change("seed", seed + 1, true);
  };
  const node = el("section", { class: "problem", "aria-label": "A problem" },
    el("h2", {}, "Try it"), text,
    el("form", { class: "practice-answer", onsubmit: (event) => { event.preventDefault(); check(); } },
      el("label", { for: id }, "Answer"), input, unit, el("button", { type: "submit" }, "Check"), el("button", { type: "button", class: "quiet", onclick: another }, "Another"), verdict),
    worked);
  return {
    node,
    show(p, s) {
      seed = Number(s.seed);
      const name = `answer.${claim}.${seed}`;
      if (draft !== name) {
        draft = name;
        input.value = kept(name, s.answer ?? "");
      }
      text.textContent = p.question;
      unit.textContent = p.unit;
      verdict.className = p.right ? "practice-right" : "practice-wrong";
      verdict.textContent = p.right === null ? "" : p.right ? "✓ right" : `✗ not ${digits(p.given, 4)}`;
      steps.replaceChildren(el("p", {}, el("code", {}, p.equation)), ...p.working.map((line) => el("p", {}, el("code", {}, line))), el("p", { class: "sub" }, "An answer within two percent is right."));
      if (p.right) worked.open = true;
    },
  };
}
