// Serving, request by request: percentiles, where the time goes, the slowest requests, and the queue played back.

import { bar } from "../lib/breakdown.js";
import { KV, setting, settingFlags, WEIGHTS } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { count, digits, percent, perMtok, rate, seconds, typed } from "../lib/format.js";

const ms = (v) => (v === null || v === undefined ? "–" : seconds(v / 1e3));
const given = (text) => (text === "" || text === undefined ? undefined : Number.isNaN(typed(String(text))) ? text : typed(String(text)));
const pruned = (fields) => Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== undefined));

const METRICS = { queue: "Queueing", ttft: "Time to first token", tpot: "Time per output token", itl: "Gap between tokens", e2e: "Whole request" };
const WAITS = {
  queue: "waiting to be scheduled", prompt: "its prompt", decode: "its tokens, decodes alone", "others-prompts": "its tokens, beside prompts of others",
  evicted: "evicted and computed again", transfer: "cache on its way", outside: "outside the engine", retried: "tried again", fetch: "fetched from memory below the chips",
};
const PARTS = [["queue_ms", "queue"], ["prompt_ms", "prompt"], ["decode_ms", "decode"], ["others_prompts_ms", "prompts of others"], ["evicted_ms", "evicted"], ["transfer_ms", "transfer"], ["outside_ms", "outside"], ["retried_ms", "tried again"], ["fetch_ms", "fetched"]];

// Queue and batch over the time of the run, at any moment or as it passes.
const player = (() => {
  const words = el("p", { "aria-live": "off" });
  const row = (name, tone) => {
    const fill = el("span", { class: `stack-piece fill-${tone}` });
    const rest = el("span", { class: "play-rest" });
    return { fill, rest, node: el("div", { class: "play-row" }, el("span", { class: "play-name" }, name), el("div", { class: "stack-bar", "aria-hidden": "true" }, fill, rest)) };
  };
  const rows = [row("running", "c0"), row("waiting", "c1")];
  const slider = el("input", { type: "range", min: 0, max: 1, step: 1, value: 0, "aria-label": "Time of the run", oninput: () => { stop(); draw(); } });
  const button = el("button", { type: "button", class: "quiet", onclick: () => (timer ? stop() : play()) }, "Play");
  const node = el("div", { class: "play" }, words, ...rows.map((r) => r.node), el("div", { class: "play-tools" }, button, slider));
  let timer = null;
  let series = [];
  let shown = null;
  const draw = () => {
    const at = Number(slider.value);
    const values = series.map((points) => points[at]?.[1] ?? 0);
    const most = Math.max(1, ...series.flat().map((p) => p[1]));
    rows.forEach((r, i) => {
      r.fill.style.flexGrow = String(values[i] / most);
      r.rest.style.flexGrow = String(1 - values[i] / most);
    });
    const time = series[0]?.[at]?.[0] ?? 0;
    words.textContent = `At ${seconds(time)}: ${count(Math.round(values[0]))} running, ${count(Math.round(values[1]))} waiting.`;
    slider.setAttribute("aria-valuetext", words.textContent);
  };
  const stop = () => { clearInterval(timer); timer = null; button.textContent = "Play"; };
  const play = () => {
    if (Number(slider.value) >= Number(slider.max)) slider.value = 0;
    button.textContent = "Pause";
    timer = setInterval(() => {
      slider.value = String(Number(slider.value) + 1);
      draw();
      if (Number(slider.value) >= Number(slider.max)) stop();
    }, 60);
  };
  return {
    node,
    show(figure) {
      if (shown === figure) return;
      shown = figure;
      stop();
      series = figure.series.slice(0, 2).map((s) => s.points);
      slider.max = String(Math.max(0, (series[0]?.length ?? 1) - 1));
      slider.value = "0";
      draw();
    },
    stop,
  };
})();

function traffic(s) {
  const own = {
    rate: { rate_per_s: Number(s.rate) },
    bursts: { rate_per_s: Number(s.rate), cv: 3 },
    users: { users: Number(s.users), ...pruned({ think_s: given(s.think) }) },
  }[s.load];
  return {
    ...own,
    isl: Number(s.isl),
    osl: Number(s.osl),
    requests: Number(s.requests),
    ...pruned({
      seed: given(s.seed),
      isl_sigma: Number(s.spread) > 0 ? Number(s.spread) : undefined,
      osl_sigma: Number(s.spread) > 0 ? Number(s.spread) : undefined,
      prefixes: given(s.prefixes),
      prefix_tokens: given(s.prefixes) ? Number(s.prefix) : undefined,
      turns: Number(s.turns) > 1 ? Number(s.turns) : undefined,
    }),
  };
}

export const page = {
  id: "simulate",
  title: "Simulate a server",
  lead: "Every request and every step as the engine schedules them: what users meet at p99, in bursts, behind a router, when the cache is full, and why the slowest requests were slow.",
  controls: [
    { kind: "model", key: "model", label: "Model", value: "llama-3.1-8b" },
    { kind: "machine", key: "on", label: "Machine of a replica", value: "1xh200", help: "A system, a chip, or so many: 2xh200" },
    { kind: "range", key: "replicas", label: "Replicas", unit: "", min: 1, max: 64, scale: "log", value: 1 },
    { kind: "select", key: "router", label: "Router", options: [["round-robin", "in turn"], ["random", "at random"], ["connections", "by kept connections"], ["two-choices", "the better of two"], ["least-loaded", "least loaded"], ["session", "by session"], ["prefix-hash", "by prefix"], ["kv", "by cache and load"]], value: "round-robin" },
    { kind: "select", key: "load", label: "Traffic", options: [["rate", "at random, so many a second"], ["bursts", "in bursts, so many a second"], ["users", "users who wait for answers"]], value: "rate" },
    { kind: "range", key: "rate", label: "Rate", unit: "requests/s", min: 0.05, max: 1000, scale: "log", value: 8, show: (v) => digits(v) },
    { kind: "range", key: "users", label: "Users", unit: "", min: 1, max: 4096, scale: "log", value: 64 },
    { kind: "range", key: "isl", label: "Prompt", unit: "tokens", min: 16, max: 65536, scale: "log", value: 1000 },
    { kind: "range", key: "osl", label: "Answer", unit: "tokens", min: 1, max: 8192, scale: "log", value: 250 },
    { kind: "range", key: "spread", label: "Spread of lengths", unit: "of the logarithm", min: 0, max: 1.5, value: 0, whole: false, show: (v) => digits(v, 2) },
    { kind: "range", key: "requests", label: "Requests", unit: "", min: 100, max: 100000, scale: "log", value: 5000 },
    { kind: "heading", label: "What requests share", fold: true },
    { kind: "number", key: "prefixes", label: "Prefixes", value: "", placeholder: "none" },
    { kind: "range", key: "prefix", label: "Tokens of a prefix", unit: "tokens", min: 16, max: 32768, scale: "log", value: 1000 },
    { kind: "range", key: "turns", label: "Turns of a conversation", unit: "", min: 1, max: 32, whole: true, value: 1 },
    { kind: "number", key: "think", label: "Time to think", unit: "s", value: "", placeholder: "0" },
    { kind: "heading", label: "Targets", fold: true, grid: 2 },
    { kind: "number", key: "ttft", label: "First token", unit: "ms", value: "", placeholder: "none, 500 or p90=1s" },
    { kind: "number", key: "tpot", label: "Per token", unit: "ms", value: "", placeholder: "none, 500 or p90=1s" },
    { kind: "heading", label: "Engine", fold: true },
    { kind: "number", key: "seqs", label: "Most sequences (max-num-seqs)", value: "", placeholder: "the engine's" },
    { kind: "number", key: "batched", label: "Most tokens in a step (max-num-batched-tokens)", value: "", placeholder: "the engine's" },
    { kind: "number", key: "blocks", label: "Blocks of the cache", value: "", placeholder: "what memory holds" },
    { kind: "toggle", key: "uncached", label: "Without prefix caching", value: "no" },
    { kind: "select", key: "weights", label: "Weights", options: WEIGHTS, value: "" },
    { kind: "select", key: "kv", label: "KV cache", options: KV, value: "" },
    { kind: "number", key: "seed", label: "Seed", value: "", placeholder: "42" },
  ],
  requests: (s) => ({
    run: ["simulate", {
      setting: setting(s),
      traffic: traffic(s),
      fleet: { replicas: Number(s.replicas), router: s.router },
      flags: pruned({ max_num_seqs: given(s.seqs), max_num_batched_tokens: given(s.batched), num_gpu_blocks_override: given(s.blocks), no_enable_prefix_caching: s.uncached === "yes" || undefined }),
      ...pruned({ ttft_ms: given(s.ttft), tpot_ms: given(s.tpot) }),
    }],
  }),
  render(view, { run }, s, { requests }) {
    view.reading(`${run.verdict}.`);
    if (run.warnings.length) view.node("warnings", el("ul", { class: "warnings" }, run.warnings.map((w) => el("li", {}, `${w}.`))));
    const { served } = run;
    view.numbers("served", [
      ["Requests", `${digits(served.requests_per_s)} /s`, `${count(run.requests)} count, ${count(run.warm_up)} warm up`],
      ["Output", rate(served.output_tok_s, "tok/s"), `${rate(served.output_tok_s_per_chip, "tok/s")} a chip`],
      run.goodput ? ["Meet the limits", percent(run.goodput.share, 3), `${digits(run.goodput.requests_per_s)} requests/s`] : ["Busy", percent(Math.min(1, served.busy)), `${percent(Math.min(1, served.with_prompts))} of it with prompts`],
      ["Found in the cache", percent(served.cached), `cache at most ${percent(Math.min(1, served.cache_peak))} full`],
      ["Evictions", count(served.preemptions), `${count(served.recomputed_tokens)} tokens computed again`],
      ["Output costs", served.usd_per_mtok_output === null ? "no price" : perMtok(served.usd_per_mtok_output), `${run.chips} chip${run.chips > 1 ? "s" : ""}${run.price_basis?.length ? `, ${run.price_basis.join(" and ")} prices` : ""}`],
    ]);
    const right = (name) => ({ name, align: "right" });
    view.table("percentiles", {
      caption: "Percentiles, with 95 % intervals of batches of requests",
      columns: ["Metric", right("mean"), right("p50"), right("p90"), right("p95"), right("p99"), right("p99.9"), right("p50 ±"), right("p99 ±")],
      rows: run.metrics.map((m) => [METRICS[m.metric] ?? m.metric, ms(m.mean_ms), ms(m.p50_ms), ms(m.p90_ms), ms(m.p95_ms), ms(m.p99_ms), ms(m.p999_ms), ms(m.p50_plus_minus_ms), ms(m.p99_plus_minus_ms)]),
    });
    if (run.goodput?.held?.length) {
      view.table("limits", {
        caption: "Limits on percentiles",
        columns: ["Metric", right("percentile"), right("limit"), right("came to"), "holds"],
        rows: run.goodput.held.map((h) => [METRICS[h.metric] ?? h.metric, `p${h.percentile}`, ms(h.limit_ms), ms(h.ms), h.holds ? "yes" : "no"]),
      });
    }
    view.heading("parts-title", "What a request waits for");
    view.node("parts", el("div", { class: "stacks" }, bar("Where the time of a request goes", run.parts.map((p, i) => ({ what: WAITS[p.what] ?? p.what, share: p.share, text: ms(p.ms), tone: `c${i % 8}` })), "mean")));
    view.heading("time-title", "Over the time of the run");
    view.chart("queue", run.figure, { source: [...requests.run, "/figure"] });
    player.show(run.figure);
    view.node("player", player.node);
    view.chart("tokens", run.throughput, { source: [...requests.run, "/throughput"] });
    view.table("worst", {
      caption: "The slowest requests, and why",
      columns: [right("Request"), right("Came at"), right("Prompt"), right("Answer"), right("Took"), "Made of"],
      rows: run.worst.map((w) => [count(w.request), seconds(w.arrival_s), count(w.prompt), count(w.output), ms(w.e2e_ms), PARTS.filter(([key]) => w[key] > 0).map(([key, name]) => `${name} ${ms(w[key])}`).join(" + ")]),
    });
    view.evidence("evidence", run.evidence);
    view.list("assumptions", "What the numbers assume", run.assumptions);
  },
  leave() { player.stop(); },
  command(s) {
    const flag = (name, value) => (value === undefined || value === "" ? [] : [`--${name}`, String(value)]);
    // A bare number is in milliseconds; a percentile says its unit.
    const limit = (text) => (text && !Number.isNaN(typed(String(text))) ? `${text}ms` : text);
    const load = s.load === "users" ? [...flag("users", s.users), ...flag("think", s.think)] : [...flag("rate", s.rate), ...(s.load === "bursts" ? ["--cv", "3"] : [])];
    const spread = Number(s.spread) > 0 ? [...flag("isl-sigma", s.spread), ...flag("osl-sigma", s.spread)] : [];
    return ["rackmath simulate", ...settingFlags(s), ...load, ...flag("isl", s.isl), ...flag("osl", s.osl), ...spread, ...flag("requests", s.requests),
      ...(Number(s.replicas) > 1 ? ["--replicas", s.replicas, "--router", s.router] : []), ...flag("prefixes", s.prefixes), ...(given(s.prefixes) ? flag("prefix-tokens", s.prefix) : []),
      ...(Number(s.turns) > 1 ? flag("turns", s.turns) : []), ...flag("ttft", limit(s.ttft)), ...flag("tpot", limit(s.tpot)), ...flag("max-num-seqs", s.seqs), ...flag("max-num-batched-tokens", s.batched),
      ...flag("num-gpu-blocks-override", s.blocks), ...(s.uncached === "yes" ? ["--no-enable-prefix-caching"] : []), ...flag("seed", s.seed)].join(" ");
  },
};
