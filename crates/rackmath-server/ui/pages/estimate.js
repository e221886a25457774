// What a server delivers: one deployment under load, its step opened, its curve over concurrency, and what would help.

import { bar, between, breakdown } from "../lib/breakdown.js";
import { KV, quote, setting, settingFlags, WEIGHTS } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { bytes, count, digits, percent, perMtok, rate, seconds, tex, typed } from "../lib/format.js";

const DEGREES = ["tp", "pp", "dp", "cp", "ep", "etp", "redundant"];
const ms = (v) => seconds(v / 1e3);
const tokens = (v) => rate(v, "tok/s");
// What is typed: a number where it is one, else as it is, for the library to refuse.
const given = (text) => (text === "" || text === undefined ? undefined : Number.isNaN(typed(String(text))) ? text : typed(String(text)));
const pruned = (fields) => Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== undefined));

function layout(s) {
  if (s.flags) return pruned({ flags: s.flags, tool: s.tool || undefined });
  const degrees = pruned(Object.fromEntries(DEGREES.map((d) => [d, given(s[d])])));
  return Object.keys(degrees).length ? { degrees } : {};
}

function load(s) {
  if (s.load === "rate") return { rate_per_s: Number(s.rate) };
  if (s.load === "max") return { max_load: true };
  return { concurrency: Number(s.concurrency) };
}

function deployment(s) {
  return {
    setting: { ...setting({ ...s, chips: "" }), ...pruned({ chips: given(s.chips) }) },
    ...layout(s),
    engine: s.engine,
    isl: Number(s.isl),
    osl: Number(s.osl),
    ...pruned({
      prefix_hit: Number(s.prefix) > 0 ? Number(s.prefix) : undefined,
      speculation: Number(s.drafts) > 0 ? { drafts: Number(s.drafts), acceptance: Number(s.acceptance) } : undefined,
      disaggregated: s.disaggregated === "yes" ? pruned({ prefill_chips: given(s.prefill) }) : undefined,
      max_num_batched_tokens: given(s.batched),
      max_num_seqs: given(s.seqs),
      memory_utilisation: given(s.memory),
      ttft_ms: given(s.ttft),
      tpot_ms: given(s.tpot),
    }),
  };
}

const nearest = (rows, x, of) => rows.reduce((a, b) => (Math.abs(Math.log(of(b) / x)) < Math.abs(Math.log(of(a) / x)) ? b : a));

/** Where what binds changes along the sweep, and where requests begin to wait. */
function turns(rows, y) {
  const marks = [];
  let bound = rows[0].binding;
  for (let i = 1; i < rows.length; i += 1) {
    // A limit that binds at a single point is no regime.
    const lasting = rows[i + 1]?.binding === rows[i].binding;
    if (lasting && rows[i].binding !== bound) marks.push({ x: rows[i].concurrency, y: y(rows[i]), label: `${rows[i].binding} binds from ${count(rows[i].concurrency)}` });
    if (lasting) bound = rows[i].binding;
    if (rows[i].waiting > 0 && !(rows[i - 1].waiting > 0)) marks.push({ x: rows[i].concurrency, y: y(rows[i]), label: "memory is full: requests wait" });
  }
  return marks.slice(0, 5);
}

const over = (sweep, title, y, series, marks) => ({
  title: `${title}: ${sweep.model} on ${sweep.system}`,
  subtitle: `${sweep.engine}, ${sweep.layout}`,
  x: { label: "concurrency (requests in flight)", unit: "count", scale: "log" },
  y: { scale: "log", ...y },
  series: series.map(([name, role, of]) => ({ name, role, points: sweep.rows.map((r) => [r.concurrency, of(r)]).filter(([, v]) => v > 0) })),
  marks,
});

function flat(sweep, name, value) {
  const xs = [sweep.rows[0].concurrency, sweep.rows.at(-1).concurrency];
  return { name, role: "floor", points: xs.map((x) => [x, value]) };
}

export const page = {
  id: "estimate",
  title: "Estimate a server",
  lead: "One deployment under load: how long users wait, what a chip delivers, what a token costs, where the time of a step goes, and which change would help most.",
  controls: [
    { kind: "model", key: "model", label: "Model", value: "deepseek-v3" },
    { kind: "machine", key: "on", label: "Machine", value: "hgx-h200", help: "A system, a chip, or so many: 8xh200" },
    { kind: "select", key: "engine", label: "Engine", options: [["vllm", "vLLM"], ["sglang", "SGLang"], ["trtllm", "TensorRT-LLM"], ["atom", "ATOM"], ["llamacpp", "llama.cpp"], ["torch", "plain PyTorch"], ["ideal", "ideal: the roofline alone"], ["vllm-0.10", "vLLM 0.10"], ["vllm-0", "vLLM, older"], ["trtllm-0.10", "TensorRT-LLM 0.10"], ["trtllm-0.9", "TensorRT-LLM 0.9"]], words: ["names", "engines"], value: "vllm" },
    { kind: "select", key: "load", label: "Load", options: [["concurrency", "requests in flight"], ["rate", "requests per second, at random"], ["max", "as many as memory and engine hold"]], value: "concurrency" },
    { kind: "range", key: "concurrency", label: "Concurrency", unit: "requests", min: 1, max: 8192, scale: "log", value: 64 },
    { kind: "range", key: "rate", label: "Rate", unit: "requests/s", min: 0.05, max: 500, scale: "log", value: 2, show: (v) => digits(v) },
    { kind: "range", key: "isl", label: "Prompt", unit: "tokens", min: 16, max: 131072, scale: "log", value: 1000 },
    { kind: "range", key: "osl", label: "Answer", unit: "tokens", min: 1, max: 32768, scale: "log", value: 1000 },
    { kind: "select", key: "weights", label: "Weights", options: WEIGHTS, value: "" },
    { kind: "select", key: "kv", label: "KV cache", options: KV, value: "" },
    { kind: "heading", label: "Layout degrees", fold: true, grid: 3, help: "How many ways each is split: tensors (TP), layers into stages (PP), requests (DP), contexts (CP), experts over chips (EP) and each expert (ETP). Copies: redundant experts per layer." },
    { kind: "number", key: "tp", label: "TP", value: "", placeholder: "auto" },
    { kind: "number", key: "pp", label: "PP", value: "", placeholder: "auto" },
    { kind: "number", key: "dp", label: "DP", value: "", placeholder: "auto" },
    { kind: "number", key: "cp", label: "CP", value: "", placeholder: "auto" },
    { kind: "number", key: "ep", label: "EP", value: "", placeholder: "auto" },
    { kind: "number", key: "etp", label: "ETP", value: "", placeholder: "auto" },
    { kind: "number", key: "redundant", label: "Copies", value: "", placeholder: "0" },
    { kind: "number", key: "chips", label: "Chips", value: "", placeholder: "all" },
    { kind: "heading", label: "Paste launch flags", fold: true },
    { kind: "text", key: "flags", label: "Command line", value: "", placeholder: "vllm serve … --tensor-parallel-size 8", help: "The layout is read from it; the degrees above are then left aside." },
    { kind: "select", key: "tool", label: "Whose", options: [["", "the engine's"], ["vllm", "vLLM"], ["sglang", "SGLang"], ["trtllm", "TensorRT-LLM"], ["megatron", "Megatron"]], value: "" },
    { kind: "heading", label: "Speculation", fold: true },
    { kind: "range", key: "drafts", label: "Drafts", unit: "tokens a step", min: 0, max: 8, whole: true, value: 0 },
    { kind: "range", key: "acceptance", label: "Accepted", unit: "each, given those before", min: 0, max: 1, value: 0.7, whole: false, show: (v) => percent(v), parse: (t) => Number.parseFloat(t) / 100 },
    { kind: "heading", label: "Targets", fold: true, grid: 2 },
    { kind: "number", key: "ttft", label: "First token", unit: "ms", value: "", placeholder: "none" },
    { kind: "number", key: "tpot", label: "Per token", unit: "ms", value: "", placeholder: "none" },
    { kind: "heading", label: "Engine and price", fold: true },
    { kind: "range", key: "prefix", label: "Prefix cache", unit: "share found", min: 0, max: 0.99, value: 0, whole: false, show: (v) => percent(v), parse: (t) => Number.parseFloat(t) / 100 },
    { kind: "toggle", key: "disaggregated", label: "Prompts on chips of their own", value: "no" },
    { kind: "number", key: "prefill", label: "Prefill chips", value: "", placeholder: "what balances" },
    { kind: "number", key: "batched", label: "Most tokens in a pass", value: "", placeholder: "the engine's" },
    { kind: "number", key: "seqs", label: "Most sequences of a group", value: "", placeholder: "the engine's" },
    { kind: "number", key: "memory", label: "Memory it takes", unit: "share, 0 to 1", value: "", placeholder: "the engine's" },
    { kind: "number", key: "price", label: "Price", unit: "$ per chip and hour", value: "", placeholder: "the catalogue's" },
  ],
  later: ["lecture"],
  opening: ["sweep", "memory"],
  requests(s) {
    const what = deployment(s);
    const { ttft_ms: _, tpot_ms: __, ...swept } = what;
    return {
      estimate: ["estimate", { ...what, ...load(s) }],
      sweep: ["estimate-sweep", { estimate: { ...swept, changes: false }, from: 1, to: 8192, points: 53 }],
      memory: ["layout", {
        setting: what.setting, ...layout(s), ...(s.flags && !s.tool ? { tool: { sglang: "sglang", trtllm: "trtllm" }[s.engine.split("-")[0]] ?? "vllm" } : {}),
        context: what.isl + what.osl,
        ...pruned({ batch: s.load === "concurrency" ? Number(s.concurrency) : undefined, max_num_batched_tokens: what.max_num_batched_tokens, memory_utilisation: what.memory_utilisation }),
      }],
      lecture: ["lecture", {}],
    };
  },
  render(view, { estimate: e, sweep, memory, lecture }, s, { requests }) {
    const served = e.served;
    const chosen = e.layout_chosen ? "chosen here" : s.flags ? "read from the flags" : "as given";
    if (e.problem) view.refused({ message: `${served ? "" : "It cannot serve: "}${e.problem.what}.`, hint: e.problem.first_change ? `The first change that would do: ${e.problem.first_change}.` : null });
    if (served) view.reading(`Limited by ${served.binding}. ${served.reading}`);
    if (served) {
      const range = (r, show) => `80 %: ${between(r, show)}`;
      view.numbers("served", [
        ["Time to first token", served.ttft_ms ? ms(served.ttft_ms.value) : "no end", served.ttft_ms ? range(served.ttft_ms, ms) : "the queue grows"],
        ["Time per output token", ms(served.tpot_ms.value), range(served.tpot_ms, ms)],
        ["One user gets", tokens(served.output_tok_s_per_user.value), range(served.output_tok_s_per_user, (v) => digits(v))],
        ["One chip delivers", tokens(served.output_tok_s_per_chip.value), range(served.output_tok_s_per_chip, (v) => digits(v))],
        ["Output costs", served.usd_per_mtok_output === null ? "no price" : perMtok(served.usd_per_mtok_output), served.usd_per_mtok_input === null ? "" : `prompts ${perMtok(served.usd_per_mtok_input)}`],
        ["Whole request", served.e2e_ms ? ms(served.e2e_ms.value) : "no end", served.e2e_ms ? range(served.e2e_ms, ms) : "the queue grows"],
        ["All chips together", tokens(served.output_tok_s.value), `${digits(served.requests_per_s.value)} requests/s on ${e.chips} chips`],
        ["In flight", count(Math.round(served.running)), `${served.waiting > 0 ? `${count(Math.round(served.waiting))} wait; ` : ""}memory holds ${count(served.room)}`],
      ]);
      if (served.slo) view.node("slo", slo(served));
    }
    view.node("what", el("p", { class: "estimate-what" }, el("strong", {}, e.layout), ` (${chosen}) on ${e.chips <= e.chips_available ? `${e.chips} of ${e.chips_available} chips of ${e.system}` : `${e.chips} chips like those of ${e.system}`}, ${e.engine}; weights ${e.weights}, KV ${e.kv}; ${e.load}; prompts ${count(e.isl)}, answers ${count(e.osl)} tokens.`));
    if (served) {
      view.evidence("evidence", e.evidence);
      view.heading("step-title", "Where the time of a step goes");
      view.node("step", breakdown(served.step));
      this.equations(view, e, s);
    }
    if (e.changes.length) {
      view.table("changes", {
        caption: "What would help most, one change at a time",
        columns: ["Change", { name: "Gain", align: "right" }, { name: "First token", align: "right" }, { name: "Per token", align: "right" }, { name: "Per chip", align: "right" }, { name: "Output", align: "right" }, "Mind"],
        rows: e.changes.map((c) => [c.what, c.gain === null ? "serves" : `+${percent(c.gain)}`, ms(c.ttft_ms), ms(c.tpot_ms), tokens(c.output_tok_s_per_chip), c.usd_per_mtok_output === null ? "–" : perMtok(c.usd_per_mtok_output),
          [c.rescues ? "meets the targets that are missed" : null, c.apart ? `within the error of the comparison (a factor of ${digits(c.apart)})` : null, c.caution].filter(Boolean).join("; ") || "–"]),
      });
      view.note("changes-note", `Judged by ${e.changes[0].judged_by}.`);
    }
    this.pools(view, e.pools);
    if (sweep) this.curves(view, sweep, e, s, requests);
    if (memory) {
      view.heading("memory-title", "What a chip holds");
      view.node("memory", held(memory, e));
    }
    view.claims("claims", lecture, ["D4", "D13", "D31", "D48"]);
    view.list("assumptions", "What the numbers assume", e.assumptions);
    view.list("sources", "Where they come from", e.sources);
  },
  equations(view, e, s) {
    const { step, prompt_share: share, tpot_ms: tpot, ttft_ms: ttft, e2e_ms: e2e, requests_per_s: arrivals, output_tok_s_per_chip: chip } = e.served;
    view.equation("step-equation", {
      title: "A step is a mixture of passes",
      tex: String.raw`t_{\text{step}} = (1-\pi)\,t_{\text{decode}} + \pi\,t_{\text{mixed}}${Number(s.drafts) > 0 ? String.raw`,\qquad \text{TPOT} = t_{\text{step}} / \bar a` : String.raw` \approx \text{TPOT}`}`,
      values: e.pools ? undefined : String.raw`(1 - ${digits(share)})\cdot ${tex(ms(step.decode_ms))} + ${digits(share)}\cdot ${tex(ms(step.mixed_ms))} = ${tex(ms(step.step_ms))}${Number(s.drafts) > 0 ? String.raw`,\qquad \text{TPOT} = ${tex(ms(tpot.value))}` : ""}`,
      note: `TPOT is the time per output token after the first; π is the share of passes that carry prompt tokens${e.pools ? "; here prompts have chips of their own" : ""}.${Number(s.drafts) > 0 ? " ā is the number of tokens a step yields with its drafts." : ""}`,
    });
    view.equation("request-equation", {
      title: "A request, and what a chip delivers",
      tex: String.raw`t_{\text{request}} = \text{TTFT} + (O-1)\,\text{TPOT},\qquad y = \frac{\lambda\,O}{G}`,
      values: ttft === null ? undefined : String.raw`${tex(ms(ttft.value))} + (${tex(count(e.osl))} - 1)\cdot ${tex(ms(tpot.value))} = ${tex(ms(e2e.value))},\qquad \frac{${tex(`${digits(arrivals.value)}/s`)}\cdot ${tex(count(e.osl))}}{${e.chips}} = ${tex(tokens(chip.value))}`,
      note: "TTFT is the time to the first token; O tokens of an answer, λ requests finished per second, G chips, y output tokens per second and chip.",
    });
  },
  pools(view, pools) {
    if (!pools) return;
    view.table("pools", {
      caption: "Prompts on chips of their own",
      columns: ["Part", { name: "Amount", align: "right" }],
      rows: [
        ["Chips for prompts", `${pools.prefill_chips} (${digits(pools.prefill_instances)} x ${pools.prefill_layout})`],
        ["Chips for answers", String(pools.decode_chips)],
        ["Balanced, prompts to answers", digits(pools.balanced_ratio)],
        ["Prefill chips busy", percent(pools.prefill_busy)],
        ["Wait for a prefill instance", ms(pools.prefill_wait_ms)],
        ["Compute a prompt", ms(pools.prefill_ms)],
        [`Send its cache (${bytes(pools.transfer_bytes)}, ${pools.network})`, ms(pools.transfer_ms)],
      ],
    });
  },
  curves(view, sweep, e, s, requests) {
    if (!sweep.rows.length) return;
    view.heading("sweep-title", "Over concurrency");
    const at = e.served ? (s.load === "concurrency" ? Number(s.concurrency) : e.served.running + e.served.waiting) : undefined;
    const explain = (x) => {
      const row = nearest(sweep.rows, x, (r) => r.concurrency);
      return `${row.binding} binds; ${percent(row.of_limit)} of the roofline${row.waiting > 0 ? `; ${count(Math.round(row.waiting))} wait for memory` : ""}`;
    };
    const times = over(sweep, "Waiting", { label: "time", unit: "seconds" }, [
      ["time to first token", { choice: 3 }, (r) => r.ttft_ms / 1e3],
      ["whole request", { choice: 2 }, (r) => r.e2e_ms / 1e3],
      ["time per output token", "envelope", (r) => r.tpot_ms / 1e3],
    ], turns(sweep.rows, (r) => r.tpot_ms / 1e3));
    const slo = e.served?.slo;
    if (slo?.ttft_ms) times.series.push(flat(sweep, "target of the first token", slo.ttft_ms / 1e3));
    if (slo?.tpot_ms) times.series.push(flat(sweep, "target per token", slo.tpot_ms / 1e3));
    view.chart("waiting", times, { at, explain });
    view.chart("speed", over(sweep, "Speed", { label: "output tokens per second", unit: "tokens_per_s" }, [
      ["one user gets", { choice: 3 }, (r) => r.output_tok_s_per_user],
      ["one chip delivers", "envelope", (r) => r.output_tok_s_per_chip],
    ], turns(sweep.rows, (r) => r.output_tok_s_per_chip)), { at, explain });
    view.chart("frontier", sweep.figure, {
      source: [...requests.sweep, "/figure"], at: e.served?.output_tok_s_per_user.value,
      explain: (x) => { const row = nearest(sweep.rows, x, (r) => r.output_tok_s_per_user); return `near concurrency ${count(row.concurrency)}; ${row.binding} binds`; },
    });
    if (sweep.rows[0].usd_per_mtok_output !== null) {
      view.chart("cost", over(sweep, "Cost of output", { label: "dollars per million output tokens", unit: "usd_per_mtok" }, [["cost of output", "envelope", (r) => r.usd_per_mtok_output]], turns(sweep.rows, (r) => r.usd_per_mtok_output)), { at, explain });
    }
  },
  command(s) {
    const flags = settingFlags(s);
    if (s.flags) flags.push("--flags", quote(s.flags), ...(s.tool ? ["--tool", s.tool] : []));
    else for (const d of DEGREES) if (s[d]) flags.push(d === "redundant" ? "--redundant-experts" : `--${d}`, quote(s[d]));
    flags.push("--engine", s.engine);
    if (s.load === "rate") flags.push("--request-rate", s.rate);
    else if (s.load === "max") flags.push("--max-load");
    else flags.push("--concurrency", s.concurrency);
    flags.push("--isl", s.isl, "--osl", s.osl);
    if (Number(s.prefix) > 0) flags.push("--prefix-hit", s.prefix);
    if (Number(s.drafts) > 0) flags.push("--drafts", s.drafts, "--acceptance", s.acceptance);
    if (s.disaggregated === "yes") flags.push("--disaggregated", ...(s.prefill ? ["--prefill-chips", s.prefill] : []));
    if (s.batched) flags.push("--max-num-batched-tokens", s.batched);
    if (s.seqs) flags.push("--max-num-seqs", s.seqs);
    if (s.memory) flags.push("--gpu-memory-utilization", s.memory);
    if (s.ttft) flags.push("--ttft-slo", quote(`${given(s.ttft)}ms`));
    if (s.tpot) flags.push("--tpot-slo", quote(`${given(s.tpot)}ms`));
    return ["rackmath estimate", ...flags].join(" ");
  },
};

/** Whether the targets are met. */
function slo({ slo: { met, verdict, ttft_ms: ttft, tpot_ms: tpot, goodput_requests_per_s: good } }) {
  const asked = [ttft === null ? null : `first token within ${ms(ttft)}`, tpot === null ? null : `${ms(tpot)} per token`].filter(Boolean).join(", ");
  return el("p", {}, el("strong", { class: met ? "estimate-met" : "estimate-missed" }, met ? "✓ Targets met" : "✗ Targets missed"), ` (${asked}): ${verdict}. Requests that count: ${digits(good)} per second.`);
}

/** Memory of the fullest chip. */
function held(memory, e) {
  const stage = memory.stages.reduce((a, b) => (b.total_bytes > a.total_bytes ? b : a));
  const whole = Math.max(memory.capacity_bytes, stage.total_bytes);
  const pieces = [
    ["routed experts", stage.routed_bytes, "c1"], ["shared experts", stage.shared_bytes, "c6"], ["attention", stage.attention_bytes, "c3"], ["dense networks", stage.dense_bytes, "c0"],
    ["embedding, head, routers and norms", stage.embedding_bytes + stage.other_bytes, "c5"], ["KV cache", stage.kv_bytes, "kv"], ["activations", stage.activation_bytes, "compute"],
    ["communication buffers", stage.buffer_bytes, "c7"], ["left alone by the engine", stage.reserve_bytes, "muted"], ["free", memory.spare_bytes, "free"],
  ].map(([what, size, tone]) => ({ what, share: size / whole, text: bytes(size), tone }));
  const load = `${count(memory.batch)} sequences of ${count(memory.context)} tokens (prompt and whole answer)`;
  return el("div", { class: "stacks" },
    bar(memory.stages.length > 1 ? `A chip of stage ${stage.stage}, the fullest` : "Each chip", pieces, `${memory.fits ? "of" : `needs ${bytes(stage.total_bytes)}, has`} ${bytes(memory.capacity_bytes)}; ${load} on ${memory.layout}`),
    el("p", { class: "note" }, `${memory.verdict}. At most ${count(memory.batch_max)} such sequences fit${e.served?.room > memory.batch_max ? `; ${count(e.served.room)} requests do on their way, when not each has its whole answer yet` : ""}.${memory.first_change ? ` First change that would make it fit: ${memory.first_change}.` : ""}${memory.warning ? ` ${memory.warning}.` : ""}${memory.layout === e.layout ? "" : ` The estimate above uses ${e.layout}.`}`));
}
