// What prices say: the step at long context, input against output, caches, fast modes, and all of them together.

import { Refused } from "../lib/api.js";
import { KV, WEIGHTS } from "../lib/controls.js";
import { digits, percent, seconds } from "../lib/format.js";
import { cache } from "./prices/cache.js";
import { context } from "./prices/context.js";
import { deduce } from "./prices/deduce.js";
import { fast, MODES } from "./prices/fast.js";
import { output } from "./prices/output.js";
import { HOSTED, SHEETS, TYPED, VENDORS } from "./prices/sheets.js";

const SECTIONS = { context, output, cache, fast, deduce };
const section = (s) => SECTIONS[s.view] ?? context;
const on = (...views) => (s) => views.includes(s.view in SECTIONS ? s.view : "context");
const share = { show: (v) => percent(v), parse: (t) => Number.parseFloat(t) / 100, whole: false };
const multiple = { show: (v) => digits(v), parse: Number.parseFloat, whole: false };

export const page = {
  id: "prices",
  title: "What prices betray",
  lead: "A price list is a set of hints about the machine behind it. Each section takes one hint, turns the lecture's equation round, and says how far it carries.",
  controls: [
    { kind: "choice", key: "view", label: "Section", value: "context", options: [["context", "Price steps with context"], ["output", "Input against output"], ["cache", "Cache tiers and lifetimes"], ["fast", "Fast mode"], ["deduce", "All prices together"]] },
    { kind: "select", key: "sheet", label: "Price sheet", value: "google-gemini-3.1-pro", options: [["", "none"], ...SHEETS], when: (s) => on("context", "output", "cache", "deduce")(s) && !(on("deduce")(s) && s.blind) },
    { kind: "model", key: "model", label: "Model", value: "lecture-frontier", when: on("context", "output", "cache") },
    { kind: "machine", key: "on", label: "Machine", value: "gb200-nvl72", when: on("context", "output", "cache") },
    { kind: "range", key: "batch", label: "Batch", unit: "sequences", min: 1, max: 1048576, scale: "log", value: 32768, when: on("context", "output") },
    { kind: "range", key: "context", label: "Context", unit: "tokens", min: 128, max: 1048576, scale: "log", value: 200000, when: on("output") },
    { kind: "range", key: "pass", label: "Pass over a prompt", unit: "tokens", min: 1, max: 16384, scale: "log", value: 2048, when: on("output") },
    { kind: "select", key: "weights", label: "Weights", options: WEIGHTS, value: "", when: on("context", "output", "cache") },
    { kind: "select", key: "kv", label: "KV cache", options: KV, value: "", when: on("context", "output", "cache") },
    { kind: "text", key: "price", label: "Chip price", unit: "$/h", value: "", placeholder: "the catalogue's", when: on("context", "output", "cache") },
    { kind: "heading", label: "Serving", when: on("output") },
    { kind: "range", key: "use", label: "Held time that serves", min: 0.05, max: 1, value: 0.5, ...share, when: on("output") },
    { kind: "range", key: "hits", label: "Input found in a cache", min: 0, max: 1, value: 0.5, ...share, when: on("output") },
    { kind: "range", key: "gap", label: "Time between two uses", unit: "s", min: 0.001, max: 2592000, scale: "log", value: 300, show: seconds, parse: duration, whole: false, when: on("cache") },
    { kind: "range", key: "prefix", label: "Prefix", unit: "tokens", min: 1000, max: 1000000, scale: "log", value: 100000, when: on("cache") },
    { kind: "range", key: "uses", label: "Uses of it", min: 1, max: 1000, scale: "log", value: 10, when: on("cache") },
    { kind: "select", key: "mode", label: "Fast mode of", value: "", options: MODES, when: on("fast") },
    { kind: "range", key: "fastprice", label: "Price", unit: "times the standard", min: 1.05, max: 20, scale: "log", value: 6, ...multiple, when: (s) => on("fast")(s) && !s.mode },
    { kind: "range", key: "fastspeed", label: "Speed", unit: "times the standard", min: 1.05, max: 10, scale: "log", value: 2.5, ...multiple, when: (s) => on("fast")(s) && !s.mode },
    { kind: "select", key: "blind", label: "Or an open model, hidden", value: "", options: [["", "no"], ...HOSTED.map((h) => [h])], help: "Deduce a known model from its hosts' prices, then look at the truth.", when: on("deduce") },
    { kind: "select", key: "vendor", label: "Seller", value: "", options: [["", "as on the sheet"], ...VENDORS.map((v) => [v])], when: (s) => on("deduce")(s) && !s.blind },
    { kind: "heading", label: "Typed, in place of the sheet's", when: (s) => on("deduce")(s) && !s.blind },
    ...TYPED.map(([key, , , label, unit]) => ({ kind: "text", key, label, unit, half: true, value: "", placeholder: "as listed", when: (s) => on("deduce")(s) && !s.blind })),
  ],
  later: ["lecture", "closed", "cost"],
  requests(s) {
    if (s.price && !(Number(s.price) > 0)) throw new Refused(`Chip price = ${s.price}`, "expected dollars per hour, such as 2.10");
    return section(s).requests(s);
  },
  render(view, answers, s, tools) { section(s).render(view, answers, s, tools); },
  command: (s) => section(s).command(s),
};

/** A time as typed: 300, 5min, 1h, 20ms. */
function duration(text) {
  const [, value, unit] = /^\s*([0-9.]+)\s*(ms|s|min|h|d)?\s*$/.exec(text) ?? [];
  return Number(value) * { ms: 0.001, s: 1, min: 60, h: 3600, d: 86400 }[unit ?? "s"];
}
