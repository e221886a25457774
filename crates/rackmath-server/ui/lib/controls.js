// Sliders and pickers. A control is described by a page and owns one setting (its key) in the address.
//
//   { kind: "model", key: "model", label: "Model", value: "deepseek-v3" }
//   { kind: "machine", key: "on", label: "Machine", value: "gb200-nvl72" }
//   { kind: "range", key: "batch", label: "Batch", min: 1, max: 1e5, scale: "log", value: 2000, unit: "sequences", show, whole }
//   { kind: "select", key: "kv", label: "KV cache", options: [["", "as published"], ["fp8", "FP8"]], value: "" };
//     `more`, a promise of further options, may follow later; `words: ["names", "engines"]` or `words: ["plan", "objective"]`
//     adds what the catalogue, or that field of the question, lists and the page has no words of its own for
//   { kind: "choice", key: "view", label: "Section", options, value } shows all options at once, as radio buttons
//   { kind: "number" | "text", key, label, value, placeholder, half: true for two in a row }, { kind: "toggle", key, label, value: "no" }
//   { kind: "heading", label, fold: true, grid: 3, help } puts what follows, up to the next heading, into a drawer
//
// Any of them may have `when(values)`: it is hidden while that is false.

import { count, typed } from "./format.js";
import { el } from "./dom.js";
import { ask, fetched } from "./api.js";
import { pack } from "./state.js";

const STEPS = 1000;

/** The value of a place 0 to 1000 along a control, and back. */
export const toValue = (c, step) => {
  const part = step / STEPS;
  const raw = c.scale === "log" ? c.min * (c.max / c.min) ** part : c.min + (c.max - c.min) * part;
  if (part === 0) return c.min;
  if (part === 1) return c.max;
  const whole = c.whole ?? c.min >= 1;
  if (c.step) return Number((Math.round(raw / c.step) * c.step).toPrecision(12));
  if (c.scale === "log") {
    const nice = Number(raw.toPrecision(3));
    return whole ? Math.round(nice) : nice;
  }
  return whole ? Math.round(raw) : Number(raw.toPrecision(3));
};

export const toStep = (c, value) => {
  const inside = Math.min(Math.max(value, c.min), c.max);
  const part = c.scale === "log" ? Math.log(inside / c.min) / Math.log(c.max / c.min) : (inside - c.min) / (c.max - c.min);
  return Math.round(part * STEPS);
};

let lists = null;

/** What the catalogue holds, asked for once: { models: [{ id, name }], systems, chips, prices, engines: [id], laws, runs, stacks, tiers, scenarios }. */
export function catalogue() {
  lists ??= ask("names", {});
  return lists;
}

async function names(kind) {
  const found = await catalogue();
  if (kind === "model") return found.models;
  return [...found.systems, ...found.chips.flatMap(({ id, name }) => [{ id, name }, { id: `8x${id}`, name: `8 x ${name}` }])];
}

async function unsaid({ words: [of, name], options }) {
  const all = of === "names" ? (await catalogue())[name] : (await fetched(`api/${of}/fields`)).find((f) => f.flag === name)?.words;
  return (all ?? []).filter((word) => options.every(([said]) => said !== word)).map((word) => [word]);
}

/** Builds the controls; `change(key, value, final)` is called on every move, final when it is let go. */
export function controls(list, values, change) {
  const sync = {};
  const nodes = list.map((c) => {
    const id = `c-${c.key}`;
    if (c.kind === "heading") return el("h2", { class: "group" }, c.label);
    if (c.kind === "range") {
      const show = c.show ?? count;
      const slider = el("input", { type: "range", id, min: 0, max: STEPS, step: 1, "aria-describedby": c.help ? `${id}-help` : null });
      const box = el("input", { type: "text", inputmode: "decimal", class: "value", "aria-label": `${c.label}, typed`, spellcheck: "false" });
      const set = (value) => {
        slider.value = toStep(c, Number(value));
        slider.setAttribute("aria-valuetext", `${show(Number(value))} ${c.unit ?? ""}`.trim());
        if (document.activeElement !== box) box.value = show(Number(value));
      };
      slider.addEventListener("input", () => { const v = toValue(c, Number(slider.value)); set(v); change(c.key, v, false); });
      slider.addEventListener("change", () => change(c.key, toValue(c, Number(slider.value)), true));
      box.addEventListener("focus", () => { box.value = String(values()[c.key]); box.select(); });
      box.addEventListener("change", () => {
        const v = (c.parse ?? typed)(box.value);
        if (Number.isFinite(v)) { box.setCustomValidity(""); change(c.key, v, true); set(v); } else { box.setCustomValidity("a number, such as 4096 or 128k"); box.reportValidity(); }
      });
      box.addEventListener("blur", () => set(values()[c.key]));
      sync[c.key] = set;
      return el("div", { class: "control" }, el("label", { for: id }, c.label, c.unit ? el("span", { class: "unit" }, ` ${c.unit}`) : null), box, slider, c.help ? el("p", { class: "help", id: `${id}-help` }, c.help) : null);
    }
    if (c.kind === "select") {
      const select = el("select", { id, onchange: () => change(c.key, select.value, true) }, c.options.map(([value, text]) => el("option", { value }, text ?? value)));
      sync[c.key] = (value) => { select.value = value; };
      const later = c.more ?? (c.words ? unsaid(c).catch(() => []) : null);
      later?.then((found) => { select.append(...found.map(([value, text]) => el("option", { value }, text ?? value))); select.value = values()[c.key]; });
      return el("div", { class: "control" }, el("label", { for: id }, c.label), select, c.help ? el("p", { class: "help" }, c.help) : null);
    }
    if (c.kind === "choice") {
      const boxes = c.options.map(([value, text]) => [value, text, el("input", { type: "radio", name: id, value, onchange: () => change(c.key, value, true) })]);
      sync[c.key] = (value) => { for (const [own, , box] of boxes) box.checked = own === value; };
      return el("fieldset", { class: "control choice" }, el("legend", {}, c.label), boxes.map(([, text, box]) => el("label", {}, box, el("span", {}, text))));
    }
    if (c.kind === "toggle") {
      const box = el("input", { type: "checkbox", id, onchange: () => change(c.key, box.checked ? "yes" : "no", true) });
      sync[c.key] = (value) => { box.checked = value === "yes"; };
      return el("div", { class: "control inline" }, box, el("label", { for: id }, c.label));
    }
    if (c.kind === "model" || c.kind === "machine") {
      const input = el("input", { type: "text", id, list: `${id}-list`, autocomplete: "off", spellcheck: "false", onchange: () => change(c.key, input.value.trim(), true), onfocus: () => input.select() });
      const options = el("datalist", { id: `${id}-list` });
      names(c.kind).then((found) => options.replaceChildren(...found.map(({ id: value, name }) => el("option", { value }, name)))).catch(() => {});
      sync[c.key] = (value) => { if (document.activeElement !== input) input.value = value; };
      return el("div", { class: "control" }, el("label", { for: id }, c.label), input, options, c.kind === "model" ? drop(change, c.key) : null, c.help ? el("p", { class: "help" }, c.help) : null);
    }
    const input = el("input", { type: "text", id, placeholder: c.placeholder, spellcheck: "false", autocomplete: "off", onchange: () => change(c.key, input.value.trim(), true) });
    sync[c.key] = (value) => { if (document.activeElement !== input) input.value = value ?? ""; };
    return el("div", { class: c.half ? "control half" : "control" }, el("label", { for: id }, c.label, c.unit ? el("span", { class: "unit" }, ` ${c.unit}`) : null), input, c.help ? el("p", { class: "help" }, c.help) : null);
  });
  const { out, drawers } = folded(list, nodes);
  const set = (now) => {
    for (const [key, put] of Object.entries(sync)) put(now[key]);
    list.forEach((c, i) => { if (c.when) nodes[i].hidden = !c.when(now); });
    // A drawer in which a link has set something opens once.
    for (const drawer of drawers.splice(0)) drawer.box.open = drawer.held.some((c) => String(now[c.key] ?? "") !== String(c.value));
  };
  return { nodes: out, set };
}

function folded(list, nodes) {
  const out = [];
  const drawers = [];
  let into = null;
  list.forEach((c, i) => {
    if (c.kind === "heading") {
      into = c.fold ? { held: [], grid: el("div", { class: c.grid ? `drawer grid-${c.grid}` : "drawer" }, c.help ? el("p", { class: "help wide" }, c.help) : null) } : null;
      if (into) {
        into.box = el("details", { class: "fold" }, el("summary", { class: "group" }, c.label), into.grid);
        drawers.push(into);
      }
      out.push(into ? into.box : nodes[i]);
    } else if (into) {
      into.held.push(c);
      into.grid.append(nodes[i]);
    } else {
      out.push(nodes[i]);
    }
  });
  return { out, drawers };
}

/** Where a config.json is dropped or chosen. */
function drop(change, key) {
  const file = el("input", { type: "file", accept: ".json,application/json", class: "file", id: `c-${key}-file`, "aria-label": "A config.json of your own" });
  const take = async (chosen) => {
    if (!chosen) return;
    if (chosen.size > 500_000) { change("config", `!${chosen.name} is larger than 500 kB; expected a config.json of a few kilobytes`, true); return; }
    change("config", await pack(await chosen.text()), false);
    change(key, chosen.name, true);
  };
  file.addEventListener("change", () => take(file.files[0]));
  const zone = el("label", { class: "drop", for: `c-${key}-file` }, "or drop a ", el("code", {}, "config.json"), file);
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => { event.preventDefault(); zone.classList.remove("over"); take(event.dataTransfer.files[0]); });
  return zone;
}

/** The setting every question shares, from the usual keys of a page. */
export function setting(s) {
  const out = { model: s.model, on: s.on };
  if (s.chips) out.chips = Number(s.chips);
  if (s.weights) out.weights = s.weights;
  if (s.kv) out.kv = s.kv;
  if (s.price) out.price_usd_per_chip_hour = Number(s.price);
  if (s.counting && s.counting !== "strict") out.counting = s.counting;
  if (s.overlap && s.overlap !== "max") out.overlap = s.overlap;
  return out;
}

/** The same as flags of the command. */
export function settingFlags(s) {
  const flags = [quote(s.model), "--on", quote(s.on)];
  if (s.chips) flags.push("--chips", String(s.chips));
  if (s.weights) flags.push("-q", s.weights);
  if (s.kv) flags.push("--kv", s.kv);
  if (s.price) flags.push("--price", `'$${s.price}/h'`);
  if (s.counting && s.counting !== "strict") flags.push("--counting", s.counting);
  if (s.overlap && s.overlap !== "max") flags.push("--overlap", s.overlap);
  return flags;
}

export function quote(word) {
  return /^[A-Za-z0-9_./:,+=@-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`;
}

export const WEIGHTS = [["", "as published"], ["bf16", "BF16"], ["fp8", "FP8"], ["nvfp4", "NVFP4"], ["mxfp4", "MXFP4"], ["int4", "INT4"]];
export const KV = [["", "16 bit"], ["fp8", "FP8"], ["nvfp4", "NVFP4"]];
