// Experts on a rack: which chip holds which experts, what a token's exchange moves, and why one rack is not like two.

import { KV, setting, settingFlags, WEIGHTS } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { bytes, count, digits, params, percent, rate, seconds, tex } from "../lib/format.js";
import { degrees, picture } from "./racks/picture.js";

const DEGREE = [["", "chosen"], ...[1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32, 36, 48, 64, 72, 96, 128, 144, 192, 256, 288, 320, 384, 512].map((n) => [String(n), String(n)])];
const TOUR = ["hgx-a100", "hgx-h100", "hgx-h200", "hgx-b200", "gb200-nvl72", "gb300-nvl72", "vr-nvl144", "rubin-ultra-nvl576", "tpu-v5e-256", "tpu-v7-9216"];

const plain = (v) => (Number.isInteger(v) ? count(v) : digits(v));
const given = (s) => {
  const out = {};
  for (const key of ["tp", "pp", "dp", "ep"]) if (s[key]) out[key] = Number(s[key]);
  if (Number(s.redundant)) out.redundant = Number(s.redundant);
  return out;
};
const ask = (s, wanted, times = 1, chips = s.chips) => ({ setting: setting({ ...s, chips }), batch: Number(s.batch) * times, context: Number(s.context), degrees: wanted, ...(s.routing === "uniform" ? {} : { routing: s.routing }) });

// The machine in the catalogue: a system with its networks, or the chip it is made of.
function machine(s, layout, systems, chips) {
  const system = systems.systems.find((m) => m.id === s.on || m.name === layout.system) ?? null;
  const word = s.on.replace(/^\d+x/, "");
  const chip = chips.chips.find((c) => (system ? c.id === system.chip : c.id === word || c.aliases.includes(word))) ?? null;
  return { system, chip, domain: system?.levels[0]?.chips ?? (chip?.domain > 1 ? chip.domain : layout.chips_available) };
}

export const page = {
  id: "racks",
  title: "Experts on a rack",
  lead: "A mixture of experts is cut along its experts: every chip holds a few, and every layer sends each token to the chips of its experts and back. Inside a rack every chip reaches every other quickly. The network between racks is many times slower, so one rack bounds an expert layer.",
  controls: [
    { kind: "model", key: "model", label: "Model", value: "deepseek-v3" },
    { kind: "machine", key: "on", label: "Machine", value: "gb200-nvl72" },
    { kind: "number", key: "chips", label: "Chips", value: "", placeholder: "all of the machine" },
    { kind: "range", key: "batch", label: "Batch", unit: "sequences", min: 1, max: 131072, scale: "log", value: 8192 },
    { kind: "range", key: "context", label: "Context", unit: "tokens", min: 128, max: 1048576, scale: "log", value: 4096 },
    { kind: "select", key: "weights", label: "Weights", options: WEIGHTS, value: "" },
    { kind: "select", key: "kv", label: "KV cache", options: KV, value: "" },
    { kind: "heading", label: "Degrees" },
    { kind: "select", key: "ep", label: "Expert parallel (ep)", options: DEGREE, value: "", help: "chips that share the experts of a layer" },
    { kind: "select", key: "dp", label: "Data parallel (dp)", options: DEGREE, value: "", help: "groups with sequences of their own" },
    { kind: "select", key: "tp", label: "Tensor parallel (tp)", options: DEGREE, value: "", help: "chips that share each matrix" },
    { kind: "select", key: "pp", label: "Pipeline stages (pp)", options: DEGREE, value: "", help: "once one is set, the others count as 1" },
    { kind: "select", key: "redundant", label: "Second copies of experts", options: [["0", "none"], ["8", "8"], ["16", "16"], ["32", "32"], ["64", "64"]], value: "0" },
    { kind: "select", key: "routing", label: "Routing", options: [["uniform", "even"], ["power:0.5", "uneven"], ["power:1", "very uneven"]], value: "uniform", help: "how tokens choose experts" },
  ],
  later: ["lecture"],
  requests: (s) => ({
    layout: ["layout", ask(s, given(s))],
    systems: ["systems", {}],
    chips: ["chips", {}],
    lecture: ["lecture", {}],
  }),
  // Twice the chips and twice the sequences, cut in two ways; and the scale-up domains of ten machines and of this one.
  follow({ layout, systems }, s) {
    const now = degrees(layout.layout);
    const twice = layout.chips_available * 2;
    const across = layout.experts ? { ...now, dp: (now.dp ?? 1) * 2, ep: (now.ep ?? 1) * 2 } : { ...now, tp: (now.tp ?? 1) * 2 };
    const own = systems.systems.find((m) => m.id === s.on);
    return {
      two: [["layout", ask(s, across, 2, twice)], ["layout", ask(s, { ...now, pp: (now.pp ?? 1) * 2 }, 2, twice)]],
      racks: ["racks", { model: s.model, ...(s.weights ? { weights: s.weights } : {}), ...(own && !TOUR.includes(own.id) ? { systems: [...TOUR, own.id] } : {}) }],
    };
  },
  render(view, { layout, two, systems, chips, racks, lecture }, s, { change }) {
    const here = machine(s, layout, systems, chips);
    const word = here.domain > 1024 ? "pod" : here.domain >= 32 ? "rack" : "node";
    const e = layout.experts;
    const inside = layout.chips <= here.domain;
    const cases = [
      { id: "one", name: inside ? `One ${word}` : "As set", answer: layout },
      { id: "across", name: `${inside ? `Two ${word}s` : "Twice the chips"}, ${e ? "experts" : "shards"} ${inside && !(two[0].experts?.slowdown <= 1) ? "across both" : "over all of them"}`, answer: two[0] },
      { id: "stages", name: `${inside ? `Two ${word}s` : "Twice the chips"}, a pipeline`, answer: two[1] },
    ];
    const fine = (c) => Boolean(c.answer.stages);
    const exchange = layout.traffic.filter((t) => /dispatch/.test(t.what));
    const own = racks.racks.find((r) => r.system === s.on);
    const slow = fine(cases[1]) ? cases[1].answer.experts?.slowdown : null;

    const double = own?.two_domain_slowdown ?? (slow > 1 ? slow : null);

    view.reading(`${layout.model} as ${layout.layout} on ${count(layout.chips)} of ${count(layout.chips_available)} chips ${layout.verdict}.${e && exchange.length ? ` Each chip holds ${plain(e.slots_per_chip)} of ${e.experts} experts; a token goes to ${plain(e.destinations)} chips, and the exchange takes at least ${seconds(exchange.reduce((a, t) => Math.max(a, t.seconds ?? 0), 0))} of a step.` : ""}${slow > 1 && inside ? ` Spread over two ${word}s it would be ${plain(slow)} times slower.` : ""}${layout.first_change ? ` First change that would make it fit: ${layout.first_change}.` : ""}${layout.warning ? ` ${layout.warning[0].toUpperCase()}${layout.warning.slice(1)}.` : ""}`);

    const stage = layout.stages[0];
    const weight = (st) => st.routed_bytes + st.shared_bytes + st.attention_bytes + st.dense_bytes + st.embedding_bytes + st.other_bytes;
    view.numbers("numbers", [
      ["Layout", layout.layout, layout.layout_chosen ? "chosen by the library" : "as set"],
      ...(e ? [["Experts per chip", plain(e.slots_per_chip), `${e.top_k} of ${e.experts} per token`], ["Tokens per expert", plain(e.tokens_per_expert), `busiest chip ${plain(e.imbalance)}× the mean, ${digits(e.fluctuation)}× by chance`], ["Chips a token visits", plain(e.destinations), `of ${count(stage.chips)} in a stage`]] : []),
      ["Weights per chip", bytes(weight(stage)), `of ${bytes(layout.capacity_bytes)}`],
      ["Cache per chip", bytes(stage.kv_bytes), `${count(Math.round(layout.batch_max))} sequences would fit`],
      ...(here.chip?.beta ? [["Scale-up : scale-out", `${plain(here.chip.beta)}×`, `${bytes(here.chip.scale_up_bytes_per_s)}/s against ${bytes(here.chip.scale_out_bytes_per_s)}/s per chip`]] : []),
    ]);

    const shown = cases.find((c) => c.id === s.view && fine(c)) ?? cases[0];
    view.node("picture", board.node(cases, shown, here.domain, word, Number(s.token ?? 1), change, fine));

    if (e) {
      view.equation("experts-eq", {
        title: "Experts on chips, and where a token goes",
        tex: String.raw`\text{experts per chip} = \frac{E_x}{n} \qquad k' = n\left(1 - \binom{E_x - E_x/n}{k_x} \Big/ \binom{E_x}{k_x}\right)`,
        values: String.raw`\frac{${e.slots}}{${degrees(layout.layout).ep ?? 1}} = ${tex(plain(e.slots_per_chip))} \qquad k' = ${tex(plain(e.destinations))}`,
        note: "E_x routed experts of a layer (with second copies), k_x of them for each token, n chips that share them; k' different chips hold the experts of a token, on average.",
      });
      view.equation("slow-eq", {
        title: `Crossing ${word}s`,
        tex: String.raw`\frac{t_{\text{across}}}{t_{\text{inside}}} = \beta\,\frac{R - 1}{R} \qquad \rho = \frac{(b_d + b_c)\,k'\,l_s}{b_h\,\beta} \ge 1`,
        values: [
          here.chip?.beta && inside && double ? String.raw`R = 2:\ ${tex(plain(here.chip.beta))} \times \tfrac12 = ${tex(plain(double))}` : here.chip?.beta && e.slowdown > 1 ? String.raw`\beta = ${tex(plain(here.chip.beta))}:\ ${tex(plain(e.slowdown))} \text{ times slower}` : "",
          fine(cases[2]) && cases[2].answer.experts?.up_to_out ? String.raw`\rho = ${tex(digits(cases[2].answer.experts.up_to_out))}` : "",
        ].filter(Boolean).join(String.raw` \qquad `),
        note: `R domains share a layer's experts, so (R - 1)/R of the exchange leaves; β is scale-up over scale-out bandwidth. A pipeline sends each token once per stage instead: ρ is the time of the exchange on the fast network over the time of the hop on the slow one, with l_s layers in a stage and b bytes per value of dispatch, combine and hop. At 1 or more the slow network is not what binds.`,
      });
    }

    view.heading("two-title", inside ? `One ${word} against two` : "The same on twice the chips");
    view.node("traffic", trafficBars(cases, fine));
    view.table("compare", compare(cases, fine, weight));
    view.note("compare-note", "Two get twice the sequences, so each chip carries the same load. A pipeline halves the weights per chip but not the cache: twice the sequences are in flight.");

    view.heading("memory-title", "Memory of a chip");
    view.node("memory", memoryBars(cases, fine));
    view.table("pieces", {
      caption: "The same in numbers, for a chip of the first stage",
      columns: ["What", ...cases.filter(fine).map((c) => ({ name: c.name, align: "right" }))],
      rows: [...PIECES.filter(([key]) => cases.some((c) => fine(c) && c.answer.stages[0][key] > 0)).map(([key, what]) => [what, ...cases.filter(fine).map((c) => bytes(c.answer.stages[0][key]))]), ["all of it", ...cases.filter(fine).map((c) => `${bytes(c.answer.stages[0].total_bytes)} of ${bytes(c.answer.capacity_bytes)}`)]],
    });

    view.heading("domains-title", "Scale-up domains compared");
    const all = kept([racks, s.on], () => domainFigures(racks, s.on));
    view.chart("floor", all.floor, { alt: "Time to read all weights once over chips in the domain.", explain: (x) => all.names.get(x) ?? "" });
    view.equation("floor-eq", {
      title: "Latency floor",
      tex: String.raw`t_w = \frac{N_{\text{tot}}\,w}{G_{\text{up}}\,W}`,
      values: own ? String.raw`\frac{${tex(bytes(racks.weights_bytes))}}{${count(own.packages)} \text{ chips}: ${tex(`${bytes(own.bandwidth_bytes_per_s)}/s`)}} = ${tex(seconds(own.weights_s))}` : "",
      note: "No large batch is faster than one reading of all weights by the G_up chips of a domain, each with bandwidth W. Pipeline stages work one after the other, so they add memory but do not lower this floor; a larger domain does.",
    });
    view.chart("largest", all.largest, { alt: "Largest model over chips in the domain.", explain: (x) => all.names.get(x) ?? "" });
    view.table("domains", {
      caption: `Scale-up domains, for ${racks.model} (${bytes(racks.weights_bytes)} of weights)`,
      columns: ["Machine", ...["Chips", "Dies", "Memory", "Bandwidth", "Reads weights", "Needs", "Largest model", "Experts", "β", "Over two", "Power"].map((name) => ({ name, align: "right" }))],
      rows: racks.racks.map((r) => ({
        class: r.system === s.on ? "best" : undefined,
        cells: [
          el("button", { type: "button", class: "racks-pick", "aria-pressed": String(r.system === s.on), onclick: () => change("on", r.system, true) }, r.system),
          count(r.packages), count(r.dies), bytes(r.capacity_bytes), `${bytes(r.bandwidth_bytes_per_s)}/s`, seconds(r.weights_s), count(r.domains_for_weights), params(r.largest_params), count(r.experts),
          r.beta ? `${plain(r.beta)}×` : null, r.two_domain_slowdown ? `${plain(r.two_domain_slowdown)}×` : null, r.power_w ? rate(r.power_w, "W") : null,
        ],
      })),
    });
    view.note("domains-note", "Reads weights: all of them once, with the whole domain. Needs: domains to hold them. Largest model: weights in half of the memory, the other half for caches. Experts: the largest expert layer at one expert per chip. β: scale-up over scale-out bandwidth. Over two: how much slower an expert layer is when spread over two domains.");
    if (here.system) view.table("networks", {
      caption: `Networks of ${here.system.name}, innermost first`,
      columns: ["Network", { name: "Joins", align: "right" }, { name: "Each chip, one way", align: "right" }, "Topology", "Source"],
      rows: here.system.levels.map((l) => [l.name, `${count(l.chips)} chips`, `${bytes(l.bandwidth_bytes_per_s)}/s`, l.topology, l.source]),
    });
    if (here.system?.facts.length) view.list("facts", `What else is known of ${here.system.name}`, here.system.facts.map(([what, value, source]) => `${what}: ${value} (${source})`));
    view.table("tools", { caption: "The layout in other tools", columns: ["Tool", "Flags"], rows: layout.commands.map((c) => [c.tool, c.flags ? el("code", {}, c.flags) : c.cannot]) });
    view.claims("claims", lecture, ["D17", "D18", "D19", "D20", "D21", "D22", "D23", "D24", "D25", "D34", "D35", "D36"]);
    view.list("assumptions", "What the numbers assume", [...layout.assumptions, "the picture numbers experts in order and fills chips one after the other; the example token's experts are drawn at random"]);
  },
  leave() { board.forget(); figures = null; },
  command: (s) => ["rackmath layout", ...settingFlags(s), "-b", s.batch, "-c", s.context, ...["tp", "pp", "dp", "ep"].filter((k) => s[k]).map((k) => `--${k} ${s[k]}`), ...(Number(s.redundant) ? [`--redundant-experts ${s.redundant}`] : []), ...(s.routing === "uniform" ? [] : [`--routing ${s.routing}`])].join(" "),
};

// The picture with its switches; drawn anew only when the placement is another.
const board = (() => {
  let parts = null;
  let drawn = "";
  let act = null;
  return {
    node(cases, shown, domain, word, token, change, fine) {
      act = change;
      parts ??= (() => {
        const tabs = el("div", { class: "racks-tabs", role: "group", "aria-label": "Which placement" });
        const another = el("button", { type: "button", class: "quiet" }, "Another token");
        const inner = el("div", {});
        return { tabs, another, inner, box: el("div", { class: "racks-board" }, el("div", { class: "racks-bar-top" }, tabs, another), inner) };
      })();
      parts.another.onclick = () => act("token", token + 1, true);
      parts.another.hidden = !shown.answer.experts;
      const key = JSON.stringify([cases.map((c) => [c.name, fine(c)]), shown.id, shown.answer.layout, shown.answer.system, shown.answer.experts?.slots, domain, token]);
      if (key === drawn) return parts.box;
      drawn = key;
      parts.tabs.replaceChildren(...cases.filter(fine).map((c) => el("button", { type: "button", class: "quiet", "aria-pressed": String(c === shown), onclick: () => act("view", c.id === "one" ? "" : c.id, true) }, c.name)));
      parts.inner.replaceChildren(picture(shown.answer, domain, word, token));
      return parts.box;
    },
    forget() { parts = null; drawn = ""; },
  };
})();

function trafficBars(cases, fine) {
  const rows = cases.filter(fine).flatMap((c) => c.answer.traffic.map((t) => ({ ...t, name: c.name })));
  const longest = Math.max(...rows.map((t) => Math.max(t.seconds ?? 0, t.predicted_s ?? 0)), 1e-12);
  const line = (t) => {
    const out = t.network === "scale-out";
    const bar = el("span", { class: `racks-time ${out ? "racks-out" : "racks-up"}`, "aria-hidden": "true" });
    bar.style.width = `${(100 * (t.seconds ?? 0)) / longest}%`;
    return el("li", {},
      el("span", { class: "racks-what" }, `${t.what}, over ${t.network}`),
      el("span", { class: "racks-track" }, bar),
      el("span", { class: "racks-says" }, `${bytes(t.bytes)} in ${t.seconds === null || t.seconds === undefined ? "unknown time" : seconds(t.seconds)}${t.predicted_s ? `, predicted ${seconds(t.predicted_s)}` : ""}`));
  };
  return el("div", { class: "racks-traffic" },
    el("h3", {}, "What the busiest chip sends in one step"),
    cases.map((c) => el("section", {}, el("h4", {}, c.name), !fine(c)
      ? el("p", { class: "refused" }, `${c.answer.message}${c.answer.hint ? `; ${c.answer.hint}` : ""}`)
      : c.answer.traffic.length ? el("ul", {}, c.answer.traffic.map(line)) : el("p", { class: "note" }, "Nothing: one chip works alone."))),
    el("p", { class: "note" }, "Bars: time at full bandwidth; blue with stripes is the network between domains. Predicted adds measured latencies and efficiencies."));
}

function compare(cases, fine, weight) {
  const cell = (of) => cases.map((c) => (fine(c) ? of(c.answer) : null));
  const rows = [
    ["Layout", ...cell((a) => a.layout)],
    ["Chips used", ...cell((a) => `${count(a.chips)} of ${count(a.chips_available)}`)],
    ["Experts per chip", ...cell((a) => (a.experts ? plain(a.experts.slots_per_chip) : null))],
    ["Chips a token visits", ...cell((a) => (a.experts ? plain(a.experts.destinations) : null))],
    ["Exchange slower than in one domain by", ...cell((a) => (a.experts ? `${plain(a.experts.slowdown)}×` : null))],
    ["Narrowest expert that hides its travel", ...cell((a) => (a.experts?.least_width ? `${count(Math.round(a.experts.least_width))}, has ${count(a.experts.width)}` : null))],
    ["Weights per chip, first stage", ...cell((a) => bytes(weight(a.stages[0])))],
    ["Cache per chip, first stage", ...cell((a) => bytes(a.stages[0].kv_bytes))],
    ["Fits", ...cell((a) => a.verdict)],
    ["Largest batch", ...cell((a) => count(Math.round(a.batch_max)))],
    ["Longest context", ...cell((a) => (a.context_max === null ? null : count(Math.round(a.context_max))))],
  ];
  return { caption: "Side by side", columns: ["Of each", ...cases.map((c) => c.name)], rows: rows.filter((r) => r.slice(1).some((v) => v !== null)) };
}

const PIECES = [["routed_bytes", "routed experts", "weights"], ["shared_bytes", "shared experts", "c1"], ["attention_bytes", "attention", "c0"], ["dense_bytes", "dense networks", "c5"], ["embedding_bytes", "embedding and head", "c6"], ["other_bytes", "routers and norms", "c7"], ["kv_bytes", "KV cache", "kv"], ["activation_bytes", "activations", "compute"], ["buffer_bytes", "buffers", "muted"], ["reserve_bytes", "left alone by the engine", "reserve"]];

function memoryBars(cases, fine) {
  const MOST = 4;
  const used = new Set();
  const over = cases.filter(fine).some((c) => c.answer.stages.some((st) => st.total_bytes > c.answer.capacity_bytes));
  const bar = (answer, st) => {
    const whole = Math.max(answer.capacity_bytes, st.total_bytes);
    const parts = PIECES.filter(([key]) => st[key] > 0).map(([key, name, tone]) => {
      used.add(key);
      const share = st[key] / whole;
      const piece = el("span", { class: `racks-piece racks-fill-${tone}`, title: `${name}: ${bytes(st[key])}` }, share > 0.1 ? `${name} ${bytes(st[key])}` : "");
      piece.style.width = `${100 * share}%`;
      return piece;
    });
    const edge = el("span", { class: "racks-edge" });
    edge.style.left = `${(100 * answer.capacity_bytes) / whole}%`;
    const words = `${PIECES.filter(([key]) => st[key] > 0).map(([key, name]) => `${name} ${bytes(st[key])}`).join(", ")}; ${bytes(st.total_bytes)} of ${bytes(answer.capacity_bytes)}`;
    return el("div", { class: "racks-memory" }, el("span", { class: "racks-what" }, answer.stages.length > 1 ? `stage ${st.stage}, layers ${st.first_layer} to ${st.first_layer + st.layers - 1}` : `all ${st.layers} layers`, el("small", {}, ` ${bytes(st.total_bytes)} of ${bytes(answer.capacity_bytes)} (${percent(st.total_bytes / answer.capacity_bytes)})`)),
      el("div", { class: "racks-stack", role: "img", "aria-label": words }, parts, st.total_bytes > answer.capacity_bytes ? edge : null));
  };
  const sections = cases.filter(fine).map((c) => el("section", {}, el("h3", {}, `${c.name}: ${c.answer.verdict}`), c.answer.stages.slice(0, MOST).map((st) => bar(c.answer, st)), c.answer.stages.length > MOST ? el("p", { class: "note" }, `and ${c.answer.stages.length - MOST} more stages`) : null));
  return el("div", { class: "racks-memories" }, sections,
    el("ul", { class: "racks-legend" }, PIECES.filter(([key]) => used.has(key)).map(([, name, tone]) => el("li", {}, el("i", { class: `racks-fill-${tone}`, "aria-hidden": "true" }), name)), el("li", {}, el("i", { class: "racks-fill-free", "aria-hidden": "true" }), "free"), over ? el("li", {}, el("i", { class: "racks-fill-edge", "aria-hidden": "true" }), "where the chip's memory ends") : null));
}

let figures = null;
function kept(from, make) {
  if (figures?.from.every((v, i) => v === from[i])) return figures.made;
  figures = { from, made: make() };
  return figures.made;
}

// Machines that stand for their kind; the others have their names under the cursor.
const LABELLED = ["hgx-h100", "gb200-nvl72", "vr-nvl144", "rubin-ultra-nvl576", "tpu-v5e-256", "tpu-v7-9216"];

function domainFigures(racks, on) {
  const names = new Map();
  const taken = new Set();
  const rows = racks.racks.map((r) => {
    let x = r.packages;
    while (taken.has(x)) x *= 1 + 1e-9;
    taken.add(x);
    names.set(x, r.system);
    return { x, r };
  });
  const figure = (title, subtitle, label, unit, of) => ({
    title, subtitle, x: { label: "chips in the scale-up domain", unit: "count", scale: "log" }, y: { label, unit, scale: "log" },
    series: [{ name: "machines", role: "points", points: rows.map(({ x, r }) => [x, of(r)]) }],
    marks: rows.filter(({ r }) => r.system === on || LABELLED.includes(r.system)).map(({ x, r }) => ({ x, y: of(r), label: r.system })),
  });
  return {
    names,
    floor: figure(`Latency floor: ${racks.model}`, "time to read all weights once with one domain", "time", "seconds", (r) => r.weights_s),
    largest: figure("Largest model of a domain", "weights in half of its memory, in this model's format", "parameters", "params", (r) => r.largest_params),
  };
}
