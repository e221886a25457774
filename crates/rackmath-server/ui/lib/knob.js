// A number in a sentence that can be dragged, sideways with a mouse or a thumb, or moved with the arrow keys.
//
//   { kind: "knob", key: "batch", label: "sequences in the batch", min: 1, max: 16384, scale: "log", value: 256, show }
//   { kind: "knob", key: "racks", label: "racks", of: [1, 2, 4], value: 1 }

import { toStep, toValue } from "./controls.js";
import { el } from "./dom.js";
import { count } from "./format.js";

const STEPS = 1000;
// How far a hand moves for all of the range, in pixels.
const REACH = 320;
const KEYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };

const place = (c, value) => (c.of ? (c.of.indexOf(value) / (c.of.length - 1)) * STEPS : toStep(c, value));
const at = (c, step) => {
  const inside = Math.min(Math.max(step, 0), STEPS);
  return c.of ? c.of[Math.round((inside / STEPS) * (c.of.length - 1))] : toValue(c, inside);
};

// The next value that differs, a key press away.
function moved(c, value, by) {
  const stride = c.of ? STEPS / (c.of.length - 1) : 10;
  let step = place(c, value);
  for (let tries = 0; tries < STEPS; tries += 1) {
    step += by * stride;
    const next = at(c, step);
    if (next !== value || step <= 0 || step >= STEPS) return next;
  }
  return value;
}

/** The number as a node, and `set` to show another value. */
export function knob(c, change) {
  const show = c.show ?? count;
  const [least, most] = c.of ? [c.of[0], c.of.at(-1)] : [c.min, c.max];
  const node = el("span", { class: "knob", role: "slider", tabindex: "0", "aria-label": c.label, "aria-valuemin": least, "aria-valuemax": most, "data-knob": c.key, title: "Drag sideways, or use the arrow keys" });
  let now = c.value;
  let held = null;
  const set = (value) => {
    if (node.dataset.value === String(value)) return;
    now = value;
    node.dataset.value = String(value);
    node.textContent = show(value);
    node.setAttribute("aria-valuenow", value);
    node.setAttribute("aria-valuetext", `${show(value)} ${c.label}`);
  };
  const move = (value, final) => {
    if (value === now && !final) return;
    set(value);
    change(c.key, value, final);
  };
  node.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = { x: event.clientX, step: place(c, now), began: now };
    node.setPointerCapture(event.pointerId);
    node.classList.add("held");
  });
  node.addEventListener("pointermove", (event) => {
    if (held) move(at(c, held.step + ((event.clientX - held.x) / REACH) * STEPS), false);
  });
  const release = () => {
    if (!held) return;
    const { began } = held;
    held = null;
    node.classList.remove("held");
    if (now !== began) move(now, true);
  };
  node.addEventListener("pointerup", release);
  node.addEventListener("pointercancel", release);
  let typed = false;
  node.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const ends = { Home: least, End: most };
    if (event.key in KEYS) move(moved(c, now, KEYS[event.key]), false);
    else if (event.key in ends) move(ends[event.key], false);
    else return;
    typed = true;
    event.preventDefault();
  });
  const settle = () => { if (typed) { typed = false; move(now, true); } };
  node.addEventListener("keyup", settle);
  node.addEventListener("blur", settle);
  set(c.value);
  return { node, set };
}
