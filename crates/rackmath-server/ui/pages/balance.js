// The balance batch: how many sequences must share one reading of the weights before multiplying takes as long.
// Beside it what sparsity buys, and every machine of the catalogue with its ridge, balanced context and drain time.

import { KV, quote, setting, settingFlags, WEIGHTS } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { bytes, count, digits, params, seconds, tex } from "../lib/format.js";

const CONTEXTS = Array.from({ length: 27 }, (_, i) => Math.round(128 * 2 ** (i / 2)));
const NEAR = [0.6, 0.75, 0.85, 0.92, 0.96, 0.98];
const EXPERTS = [1, 3, 8, 24, 64, 160, 512];
const MODELS = ["llama-3.1-8b", "llama-3.1-405b", "mixtral-8x7b", "gpt-oss-20b", "llama-4-scout", "glm-4.5-air", "qwen3-30b-a3b", "glm-4.5", "qwen3-235b-a22b", "deepseek-v2", "qwen3-coder-480b-a35b", "glm-5", "deepseek-v3", "longcat-flash", "qwen3-next-80b-a3b", "gpt-oss-120b", "minimax-m2.5", "llama-4-maverick", "kimi-k2", "deepseek-v4-pro"];
const ROUTERS = [["s-base", "S-BASE"], ["rl-r", "RL-R"], ["hash", "hash"]];

const whole = (v) => count(Math.round(v));
const at = (s, context) => ({ setting: setting(s), context });
const nearest = (rows, x) => rows.reduce((a, b) => (Math.abs(Math.log(b.x / x)) < Math.abs(Math.log(a.x / x)) ? b : a));

export const page = {
  id: "balance",
  title: "Balance batch, sparsity and hardware",
  lead: "Reading a weight costs the same for one sequence or for thousands. The balance batch B* is where the multiplying that a batch needs takes as long as the reading it shares: about R times the model's sparsity S.",
  controls: [
    { kind: "model", key: "model", label: "Model", value: "deepseek-v3" },
    { kind: "machine", key: "on", label: "Machine", value: "gb200-nvl72", help: "or click a row of the hardware table" },
    { kind: "range", key: "context", label: "Context", unit: "tokens", min: 128, max: 1048576, scale: "log", value: 4096 },
    { kind: "select", key: "weights", label: "Weights", options: WEIGHTS, value: "" },
    { kind: "select", key: "kv", label: "KV cache", options: KV, value: "" },
    { kind: "select", key: "counting", label: "Counting", options: [["strict", "strict"], ["lecture", "as on the board"]], words: ["step", "counting"], value: "strict" },
    { kind: "heading", label: "Sparsity against quality" },
    { kind: "range", key: "base", label: "Active parameters", min: 1e7, max: 1e11, scale: "log", value: 370e6, show: params },
    { kind: "range", key: "experts", label: "Experts", min: 1, max: 512, scale: "log", value: 64 },
    { kind: "select", key: "router", label: "Router", options: ROUTERS, value: "s-base", help: "how a token chooses its expert" },
  ],
  later: ["lecture", "machines", "models"],
  requests: (s) => ({
    explain: ["explain", { what: "all", ...at(s, Number(s.context)) }],
    step: ["step", at(s, Number(s.context))],
    bare: ["step", at(s, 0)],
    quality: ["scaling", { params: Number(s.base), law: { law: "clark-2022", sparsity: Number(s.experts) } }],
    qualities: EXPERTS.map((sparsity) => ["scaling", { params: Number(s.base), law: { law: "clark-2022", sparsity } }]),
    chips: ["chips", {}],
    systems: ["systems", {}],
    models: MODELS.map((model) => ["step", { setting: setting({ ...s, model }), context: 0 }]),
    lecture: ["lecture", {}],
  }),
  follow({ step, chips, systems }, s) {
    const turn = step.balanced_context ?? 0;
    const contexts = [...CONTEXTS, ...NEAR.map((part) => Math.round(turn * part)).filter((c) => c > 128 && c < 1048576)].sort((a, b) => a - b);
    return {
      sweep: contexts.map((context) => ["step", at(s, context)]),
      machines: shown(machines(chips, systems), s).filter(asked).map(({ id }) => ["step", at({ ...s, on: id }, 0)]),
    };
  },
  render(view, { step, bare, explain, quality, qualities, chips, systems, sweep, machines: steps, models, lecture }, s, { change }) {
    const context = Number(s.context);
    const batch = step.balance_batch;
    const most = step.memory.batch_max;
    const work = Object.fromEntries(explain.workings.map((w) => [w.symbol, w]));
    const opens = (symbol, text) => el("button", { type: "button", class: "balance-open", title: "Open the equation", "aria-label": `${text}: open the equation of ${symbol}`, onclick: () => book.open(symbol) }, text);

    view.reading(batch === null
      ? step.balanced_context === 0 ? `Never balanced: reading what ${step.model} keeps of a sequence takes longer than multiplying its token, at any context and any batch.` : `Never balanced at ${count(context)} tokens: from L* = ${whole(step.balanced_context)} on, reading a sequence's cache takes longer than multiplying its token, so the machine stays memory-bound at any batch.`
      : `${step.model} on ${step.system} balances at ${whole(batch)} sequences of ${count(context)} tokens: below that reading binds, above it multiplying does. ${most === null ? "Their memory does not run out." : most < 1 ? `But not even one sequence fits beside the weights: it takes at least ${count(step.memory.chips_min)} such chips.` : batch > most ? `But only ${whole(most)} fit, so memory runs out first and it stays memory-bound.` : `${whole(most)} would fit.`}`);

    view.numbers("numbers", [
      ["Balance batch B*", batch === null ? "never" : opens("B*", whole(batch)), `sequences, at ${count(context)} tokens`],
      ["Without cache", bare.balance_batch === null ? "never" : whole(bare.balance_batch), "about R × S"],
      ["Ridge R", opens("R", digits(step.ridge)), "tokens per weight read; the lecture's 300"],
      ["Sparsity S", opens("S", step.sparsity === 1 ? "1" : digits(step.sparsity)), step.experts ? `${step.experts.top_k} of ${step.experts.routed} experts` : step.sparsity > 1 ? "read over multiplied" : "dense: every weight is used"],
      ["Context L*", opens("L*", step.balanced_context === null ? "none" : whole(step.balanced_context)), step.balanced_context === null ? "compute keeps pace at any length" : "tokens; no batch balances beyond"],
      ["Drain time", opens("T_drain", seconds(step.memory.drain_s)), "to read all of the memory once"],
      ...(step.experts ? [["Per expert", digits(step.experts.tokens_each), `tokens, in a batch of ${whole(step.batch)}`]] : []),
    ]);

    view.chart("balance", kept("balance", [step, ...sweep], () => balanceFigure(step, bare, sweep, context)), {
      at: context, alt: "Balance batch over context.",
      explain: (x) => {
        const row = nearest(sweep.filter((a) => a.context).map((a) => ({ x: a.context, a })), x).a;
        if (row.balance_batch === null) return "beyond L*: memory-bound at any batch";
        return row.memory.batch_max !== null && row.balance_batch > row.memory.batch_max ? "so many do not fit: memory runs out before balance" : "below B* reading binds, above it multiplying";
      },
    });
    const value = (symbol, show) => (work[symbol] ? tex(show(work[symbol].value)) : "");
    view.equation("balance-eq", {
      title: "Balance batch",
      tex: String.raw`B^{*} = \frac{t_w}{c - k(L)} \approx \frac{R\,S}{1 - L/L^{*}} \qquad R = \frac{F}{2}\,\frac{w}{W} \qquad S = \frac{N_{\text{tot}}}{N_{\text{act}}}`,
      values: String.raw`\begin{aligned} &${batch === null ? String.raw`c - k(L) = ${value("c", seconds)} - ${value("k", seconds)} \le 0 \text{: no batch balances}` : String.raw`B^{*} = \frac{${value("t_w", seconds)}}{${value("c", seconds)} - ${value("k", seconds)}} = ${tex(whole(batch))}`} \\[4pt] &L \to 0:\ B^{*} = ${tex(bare.balance_batch === null ? "never" : whole(bare.balance_batch))} \quad \text{on the board: } R\,S = ${tex(digits(step.ridge))} \times ${tex(digits(step.sparsity))} \end{aligned}`,
      note: "t_w reads the weights a batch touches, c multiplies one token, k reads one sequence's cache of L tokens. F dense peak, W memory bandwidth, w bytes per weight, N parameters. The first form is exact; R × S is the board's, and differs where parts of the model are stored in another format. B counts sequences that get one token each in this step: not tokens of text, not users.",
    });
    view.equation("drain-eq", {
      title: "Balanced context and drain time",
      tex: String.raw`c(L^{*}) = k(L^{*}) \;\Rightarrow\; L^{*} = \frac{2\,N_{\text{act}}\,W}{F\,kv} \text{ without attention's arithmetic} \qquad T_{\text{drain}} = \frac{C}{W}`,
      values: String.raw`L^{*} = ${step.balanced_context === null ? tex("none") : tex(`${whole(step.balanced_context)} tokens`)} \qquad T_{\text{drain}} = ${tex(bytes(step.memory.capacity_bytes))}\,/\,W = ${tex(seconds(step.memory.drain_s))}`,
      note: "A memory-bound step that lasts longer than the drain time would read some of the memory twice, so the drain time is the longest useful one. With absorbed latent attention the arithmetic grows with the context as well, and L* moves out or vanishes.",
    });
    view.node("workings", book.node(explain));

    view.heading("sparsity-title", "Sparsity against quality");
    view.note("sparsity-note", "More experts enlarge what is read, not what is multiplied: the batch pays for them, so sparsity is a win for the machine as long as there are users and memory. What it is worth in quality is a question of training.");
    view.chart("quality", kept("quality", [s.router, ...qualities], () => qualityFigure(qualities, s)), {
      alt: "Dense parameters of the same loss over experts.", at: Number(s.experts),
      explain: (x) => { const a = nearest(qualities.map((q, i) => ({ x: EXPERTS[i], q })), x); return `loss ${a.q.laws[0].routers.map((r) => `${r.router} ${digits(r.loss)}`).join(", ")} nats`; },
    });
    const router = quality.laws[0].routers.find((r) => r.router === s.router) ?? quality.laws[0].routers[0];
    view.equation("quality-eq", {
      title: "What experts are worth (Clark et al. 2022)",
      tex: String.raw`\log L = a \log N + b \log \hat E + c \log N \log \hat E + d \qquad \frac1{\hat E} = \frac1{E - 1 + \bigl(\frac1{E_s} - \frac1{E_m}\bigr)^{-1}} + \frac1{E_m}`,
      values: String.raw`N = ${tex(params(Number(s.base)))},\ E = ${tex(count(Number(s.experts)))} \;\Rightarrow\; L = ${tex(digits(router.loss))}\ \text{nats, as a dense model of } ${tex(params(router.effective_params))}`,
      note: `Logarithms are base 10; a, b, c, d, E_s and E_m were fitted for each router. ${quality.laws[0].source}. ${quality.laws[0].notes.join(" ")}${quality.laws[0].outside.length ? ` Outside the fit: ${quality.laws[0].outside.join("; ")}.` : ""}`,
    });
    if (models) last.models = models;
    if (last.models) view.chart("models", kept("models", [bare, ...last.models], () => modelsFigure(step, bare, last.models)), { alt: "Balance batch of catalogue models over sparsity.", explain: (x) => names(last.models, x) });

    view.heading("hardware-title", "Hardware: ridge, balanced context, drain");
    view.chart("ridges", kept("ridges", [chips, s.on], () => ridgeFigure(chips, systems, s)), { alt: "Ridge of data-centre chips over memory bandwidth.", explain: (x) => ridgeNames.get(x) ?? "" });
    view.node("hardware", hardware.node(machines(chips, systems), steps, step, s, change));

    view.claims("claims", lecture, ["D9", "D10", "D11", "D13", "D15", "D16"]);
    view.list("assumptions", "What the numbers assume", [...step.assumptions, ...quality.assumptions]);
    view.list("sources", "Where they come from", step.sources);
  },
  leave() { book.forget(); hardware.forget(); last.models = null; },
  command: (s) => ["rackmath explain all", ...settingFlags(s), "-c", quote(String(s.context))].join(" "),
};

const last = { models: null };

// A figure is made anew only when what it shows has changed.
const figures = new Map();
function kept(name, from, make) {
  const old = figures.get(name);
  if (old && old.from.length === from.length && old.from.every((v, i) => v === from[i])) return old.figure;
  const figure = make();
  figures.set(name, { from, figure });
  return figure;
}

// Charts. The points are the answers' own; beside them stand the lines they are read against.

export function balanceFigure(step, bare, sweep, context) {
  const rows = sweep.filter((a) => a.context);
  const line = (name, role, of) => ({ name, role, points: rows.filter((a) => of(a) !== null && of(a) > 0).map((a) => [a.context, Math.round(of(a))]) });
  const series = [line("balance batch B*", "envelope", (a) => a.balance_batch), line("most that fit in memory", { choice: 1 }, (a) => a.memory.batch_max)];
  if (bare.balance_batch !== null) series.push(line("without the cache: about R × S", "floor", () => bare.balance_batch));
  const top = series[0].points.at(-1);
  const marks = [];
  if (step.balance_batch !== null) marks.push({ x: context, y: step.balance_batch, label: `${whole(step.balance_batch)} sequences` });
  if (top && step.balanced_context && step.balanced_context <= 1048576 && rows.some((a) => a.balance_batch === null)) marks.push({ x: step.balanced_context, y: top[1], label: `L* ${whole(step.balanced_context)}: never balanced from here` });
  return {
    title: `Balance batch: ${step.model} on ${step.system}`, subtitle: "above the bold line multiplying binds, below it reading",
    x: { label: "context (tokens)", unit: "count", scale: "log" }, y: { label: "sequences", unit: "count", scale: "log" }, series, marks,
  };
}

function qualityFigure(qualities, s) {
  const worth = (answer, router) => answer.laws[0].routers.find((r) => r.router === router)?.effective_params;
  const series = ROUTERS.map(([id, name], i) => ({ name: `${name} router`, role: id === s.router ? "envelope" : { choice: i }, points: qualities.map((q, j) => [EXPERTS[j], worth(q, id)]) }));
  series.push({ name: "the dense model itself", role: "floor", points: EXPERTS.map((e) => [e, Number(s.base)]) });
  return {
    title: `What experts add to ${params(Number(s.base))} active parameters`, subtitle: "dense parameters that reach the same loss",
    x: { label: "experts, of which a token uses one", unit: "count", scale: "log" }, y: { label: "dense parameters", unit: "params", scale: "log" }, series, marks: [],
  };
}

// Two points of the same abscissa would hide each other; a hair's breadth keeps both.
function apart(points) {
  const taken = new Set();
  return points.map(([x, y, name]) => {
    let free = x;
    while (taken.has(free)) free *= 1 + 1e-9;
    taken.add(free);
    return [free, y, name];
  });
}

const modelPoints = (models) => apart(models.filter((a) => a.sparsity && a.balance_batch).map((a) => [a.sparsity, a.balance_batch, `${a.model}: R ${digits(a.ridge)}`]));

function names(models, x) {
  return modelPoints(models).find(([at]) => at === x)?.[2] ?? "";
}

function modelsFigure(step, bare, models) {
  const points = modelPoints(models);
  return {
    title: `Sparsity wants batch: models on ${step.system}`, subtitle: "balance batch without context, weights as set",
    x: { label: "sparsity (read over multiplied)", unit: "number", scale: "log" }, y: { label: "sequences", unit: "count", scale: "log" },
    series: [{ name: "models of the catalogue", role: "points", points: points.map(([x, y]) => [x, y]) }],
    marks: bare.balance_batch === null ? [] : [{ x: step.sparsity, y: bare.balance_batch, label: step.model }],
  };
}

const ridgeNames = new Map();

function ridgeFigure(chips, systems, s) {
  const of = (c) => (c.peaks.find((p) => p.math === "bf16") ?? c.peaks.find((p) => p.math === "fp16"))?.ridge;
  const points = apart(chips.chips.filter((c) => c.memory.startsWith("HBM") && of(c) && !c.id.startsWith("lecture")).map((c) => [c.bandwidth_bytes_per_s, of(c), c.name]));
  ridgeNames.clear();
  for (const [x, , name] of points) ridgeNames.set(x, name);
  const ends = [Math.min(...points.map((p) => p[0])), Math.max(...points.map((p) => p[0]))];
  const system = systems.systems.find((m) => m.id === s.on);
  const here = chips.chips.find((c) => c.id === (system?.chip ?? s.on.replace(/^\d+x/, "")));
  return {
    title: "Is R a constant of the hardware?", subtitle: "data-centre chips with stacked memory, 16-bit weights and arithmetic",
    x: { label: "memory bandwidth of a chip (per s)", unit: "bytes", scale: "log" }, y: { label: "ridge R", unit: "number", scale: "log" },
    series: [{ name: "chips", role: "points", points: points.map(([x, y]) => [x, y]) }, { name: "the lecture's 300", role: "floor", points: ends.map((x) => [x, 300]) }],
    marks: here && of(here) ? [{ x: here.bandwidth_bytes_per_s, y: of(here), label: here.name }] : [],
  };
}

// Every number opened into its equation; what is open stays open while the numbers change.
const book = (() => {
  const ORDER = ["B*", "R", "S", "L*", "T_drain", "t_w", "c", "k", "kv(L)"];
  const entries = new Map();
  let box = null;
  let now = null;
  const fill = (entry, w) => entry.body.replaceChildren(
    el("p", { class: "balance-formula" }, `${w.symbol} = ${w.equation}`),
    el("p", { class: "balance-formula live" }, `= ${w.substituted} = ${w.result}`),
    el("dl", { class: "balance-inputs" }, w.inputs.flatMap((i) => [
      el("dt", {}, entries.has(i.symbol) && i.source === "derived below" ? el("button", { type: "button", class: "quiet", onclick: () => api.open(i.symbol), "aria-label": `Open the equation of ${i.symbol}` }, i.symbol) : i.symbol),
      el("dd", {}, el("strong", {}, i.value), ` ${i.meaning}`, el("small", {}, i.source)),
    ])));
  const working = (symbol) => now?.workings.find((w) => w.symbol === symbol);
  const api = {
    node(explain) {
      now = explain;
      if (!box) {
        for (const symbol of ORDER) {
          const entry = { head: el("summary", {}), body: el("div", {}) };
          entry.box = el("details", { ontoggle: () => { const w = working(symbol); if (entry.box.open && w) fill(entry, w); } }, entry.head, entry.body);
          entries.set(symbol, entry);
        }
        box = el("div", { class: "balance-book" }, el("h3", {}, "Each number, opened into its equation"), [...entries.values()].map((e) => e.box));
      }
      for (const [symbol, entry] of entries) {
        const w = working(symbol);
        entry.box.hidden = !w;
        if (!w) continue;
        entry.head.replaceChildren(el("strong", {}, `${w.symbol} = ${w.result}`), ` ${w.meaning}`);
        if (entry.box.open) fill(entry, w);
      }
      return box;
    },
    open(symbol) {
      const entry = entries.get(symbol);
      if (!entry) return;
      entry.box.open = true;
      entry.box.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
      entry.head.focus({ preventScroll: true });
    },
    forget() { box = null; entries.clear(); },
  };
  return api;
})();

// Machines of the catalogue: systems, then single chips.
let listed = null;
function machines(chips, systems) {
  if (listed?.chips === chips) return listed.rows;
  const cards = new Map(chips.chips.map((c) => [c.id, c]));
  const ridge = (c, ...maths) => maths.map((m) => c.peaks.find((p) => p.math === m)?.ridge).find(Boolean) ?? null;
  const row = (id, name, kind, number, capacity, bandwidth, drain, c) => ({
    id, name, kind, chips: number, capacity, bandwidth, drain, vendor: c.vendor, memory: c.memory,
    r16: ridge(c, "bf16", "fp16"), r8: ridge(c, "fp8"), r4: ridge(c, "fp4"), i8: ridge(c, "int8"),
  });
  const rows = [
    ...systems.systems.map((m) => row(m.id, m.name, "system", m.chips, m.capacity_bytes, m.bandwidth_bytes_per_s, m.drain_s, cards.get(m.chip))),
    ...chips.chips.map((c) => row(c.id, c.name, "chip", 1, c.usable_bytes ?? c.capacity_bytes, c.bandwidth_bytes_per_s, c.drain_s, c)),
  ];
  listed = { chips, rows };
  return rows;
}

// Norms and embeddings are in 16 bits, so a machine without such a peak has no step.
const asked = (m) => m.r16 !== null;

function shown(rows, s) {
  const words = (s.find ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const kind = { hbm: (m) => m.kind === "chip" && m.memory.startsWith("HBM"), chips: (m) => m.kind === "chip", all: () => true }[s.show] ?? ((m) => m.kind === "system");
  return rows.filter((m) => kind(m) && words.every((w) => `${m.id} ${m.name} ${m.vendor} ${m.memory}`.toLowerCase().includes(w)));
}

const COLUMNS = [
  ["name", "Machine", null], ["chips", "Chips", count], ["capacity", "Memory", bytes], ["bandwidth", "Bandwidth", (v) => `${bytes(v)}/s`], ["drain", "Drain C/W", seconds],
  ["r16", "R 16-bit", digits], ["r8", "R FP8", digits], ["r4", "R FP4", digits], ["i8", "R INT8", digits], ["here", "R here", digits], ["turn", "L* here", whole],
];

const hardware = (() => {
  let parts = null;
  let drawn = "";
  let found = new Map();
  let act = null;
  const build = (change) => {
    act = change;
    if (parts) return;
    const find = el("input", { type: "text", id: "balance-find", placeholder: "name, maker or memory", spellcheck: "false", autocomplete: "off", oninput: () => act("find", find.value, false), onchange: () => act("find", find.value, true) });
    const show = el("select", { id: "balance-show", onchange: () => act("show", show.value, true) }, [["", "Systems"], ["hbm", "Data-centre chips"], ["chips", "All chips"], ["all", "Everything"]].map(([value, text]) => el("option", { value }, text)));
    const head = el("tr", {}, COLUMNS.map(([key, name], i) => el("th", { scope: "col", class: i ? "right" : null, "data-key": key }, el("button", { type: "button", class: "balance-sort", onclick: () => act("sort", parts.sort === key ? `-${key}` : parts.sort === `-${key}` ? "" : key, true) }, name, el("span", { "aria-hidden": "true" })))));
    const body = el("tbody", {});
    const table = el("div", { class: "balance-scroll", tabindex: "0", role: "region", "aria-label": "Hardware table" }, el("table", {}, el("thead", {}, head), body));
    const note = el("p", { class: "note" });
    parts = { find, show, head, body, note, sort: "", box: el("div", { class: "balance-hardware" }, el("div", { class: "balance-filter" }, el("label", { for: "balance-find" }, "Filter"), find, el("label", { for: "balance-show" }, "Show"), show), table, note) };
  };
  return {
    node(rows, steps, step, s, change) {
      build(change);
      if (document.activeElement !== parts.find) parts.find.value = s.find ?? "";
      parts.show.value = s.show ?? "";
      parts.sort = s.sort ?? "";
      const visible = shown(rows, s);
      // What was asked of each machine arrives later; until then its two columns are empty.
      found = new Map(visible.filter(asked).map((m, i) => [m.id, steps?.[i]]));
      const key = JSON.stringify([s.find, s.show, s.sort, s.on, [...found].map(([id, a]) => [id, a?.ridge, a?.balanced_context]), visible.length]);
      if (key === drawn) return parts.box;
      drawn = key;
      const list = visible.map((m) => { const a = found.get(m.id); return { ...m, here: a?.ridge ?? null, turn: a?.balanced_context ?? null, answer: a }; });
      const by = parts.sort.replace(/^-/, "");
      if (by) {
        const sign = parts.sort.startsWith("-") ? -1 : 1;
        list.sort((a, b) => (a[by] === null ? 1 : b[by] === null ? -1 : sign * (typeof a[by] === "string" ? a[by].localeCompare(b[by]) : a[by] - b[by])));
      }
      for (const th of parts.head.children) {
        const on = th.dataset.key === by;
        th.setAttribute("aria-sort", on ? (parts.sort.startsWith("-") ? "descending" : "ascending") : "none");
        th.querySelector("span").textContent = on ? (parts.sort.startsWith("-") ? " ▼" : " ▲") : "";
      }
      const cell = (m, key, show) => {
        if (key === "turn" && m.answer && !m.answer.message && m.turn === null) return "none";
        return m[key] === null || m[key] === undefined ? (m.answer?.message && key === "here" ? el("span", { title: m.answer.message }, "no peak") : "–") : show(m[key]);
      };
      parts.body.replaceChildren(...list.map((m) => el("tr", { class: m.id === s.on ? "best" : null, onclick: () => { if (asked(m)) act("on", m.id, true); } },
        el("th", { scope: "row" }, el("button", { type: "button", class: "balance-pick", disabled: !asked(m), title: asked(m) ? null : "No 16-bit peak is known, so it cannot run a whole step", "aria-pressed": String(m.id === s.on), onclick: (event) => { event.stopPropagation(); act("on", m.id, true); } }, m.name), el("small", {}, m.id === s.on ? `${m.id}, on the board` : m.id)),
        COLUMNS.slice(1).map(([key, , show]) => el("td", { class: "right" }, cell(m, key, show))))));
      parts.note.textContent = `${list.length} of ${rows.length} machines; click one to put it on the board. R is for weights as wide as the arithmetic; "R here" and "L* here" are for ${step.model} with the formats set. L* none: attention's arithmetic keeps pace with the cache at any length.`;
      return parts.box;
    },
    forget() { parts = null; drawn = ""; found = new Map(); },
  };
})();
