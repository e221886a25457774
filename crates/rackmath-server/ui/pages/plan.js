// What to deploy: the best plan for a workload and its targets, the frontier, what each limit costs, two machines side by side.

import { between, breakdown } from "../lib/breakdown.js";
import { KV, setting, settingFlags, WEIGHTS } from "../lib/controls.js";
import { download, el } from "../lib/dom.js";
import { count, digits, percent, perMtok, rate, seconds, tex, typed, usd } from "../lib/format.js";
import { csv } from "../lib/view.js";

const ms = (v) => seconds(v / 1e3);
const tokens = (v) => rate(v, "tok/s");
const money = (v) => (v === null || v === undefined ? "no price" : perMtok(v));
const given = (text) => (text === "" || text === undefined ? undefined : Number.isNaN(typed(String(text))) ? text : typed(String(text)));
const pruned = (fields) => Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== undefined));

// A slider whose end means that there is no such limit.
const FREE = { ttft: 60000, tpot: 1000, e2e: 600000, user: 1, rate: 0.1 };
const limit = (key, label, unit, min, max, value, show) => ({
  kind: "range", key, label, unit, min, max, scale: "log", value, whole: false,
  show: (v) => (v === FREE[key] ? "none" : show(v)),
  parse: (t) => (/^\s*(none|no|any)?\s*$/i.test(t) ? FREE[key] : typed(t.replace(/(ms|\/s)\s*$/, ""))),
});
const asked = (s, key) => (Number(s[key]) === FREE[key] ? undefined : Number(s[key]));

function request(s, on) {
  const own = s.scenario === "";
  return {
    setting: { ...setting({ ...s, on, weights: "", kv: "", chips: "" }), ...pruned({ chips: given(s.chips) }) },
    engines: s.engines.split(","),
    objective: s.objective,
    top: 8,
    ...pruned({
      scenario: own ? undefined : s.scenario,
      isl: own ? Number(s.isl) : undefined,
      osl: own ? Number(s.osl) : undefined,
      rate_per_s: s.users ? undefined : asked(s, "rate"),
      users: given(s.users),
      think_s: s.users ? given(s.think) : undefined,
      cost_usd_per_mtok: given(s.cost),
      sure: s.sure ? Number(s.sure) / 100 : undefined,
      availability: s.availability ? Number(s.availability) / 100 : undefined,
      ttft_ms: asked(s, "ttft"),
      tpot_ms: asked(s, "tpot"),
      e2e_ms: asked(s, "e2e"),
      speed_tok_s: asked(s, "user"),
      budget_usd_per_hour: given(s.budget),
      weights: s.weights ? [s.weights] : undefined,
      kvs: s.kv ? [s.kv] : undefined,
      disaggregated: s.shared === "yes" ? false : undefined,
      drafts: Number(s.drafts) > 0 ? [0, Number(s.drafts)] : undefined,
      acceptance: Number(s.drafts) > 0 ? Number(s.acceptance) : undefined,
    }),
  };
}

/** The same question of every chip; the server ranks at most sixteen of each. */
function everyChip(plan) {
  return { ...plan, setting: { ...plan.setting, chips: Math.min(16, plan.setting.chips ?? 8) } };
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const signed = (v) => (Math.abs(v) < 0.0005 ? "no change" : `${v > 0 ? "+" : "−"}${percent(Math.abs(v))}`);

// The latest answers stay on the board, faded, while new ones are computed.
let last = null;
let root = null;

const OBJECTIVES = { cost: "dollars per million tokens", chips: "chips", energy: "joules per token", latency: "time of a whole request", throughput: "tokens per second", speed: "time per output token" };

export const page = {
  id: "plan",
  title: "Plan a deployment",
  lead: "Say what is to be served, how fast, and on what. Every layout, batch and split of prompts and answers is tried; the best that keeps the limits is shown with its rivals and with what each limit costs.",
  controls: [
    { kind: "model", key: "model", label: "Model", value: "qwen3-32b" },
    { kind: "machine", key: "on", label: "Machine", value: "hgx-h200", help: "Several with commas: the best of them is chosen" },
    { kind: "machine", key: "other", label: "Compare with", value: "hgx-b200", help: "Empty for none" },
    { kind: "number", key: "chips", label: "Chips of each", value: "", placeholder: "all of the machine" },
    { kind: "heading", label: "Workload" },
    { kind: "select", key: "scenario", label: "Lengths", options: [["", "my own"], ["chat", "chat"], ["rag", "retrieval (RAG)"], ["summarise", "summaries"], ["reasoning", "reasoning"], ["coding-agent", "coding agent"], ["hosted-api", "hosted API"], ["batch", "offline batch"]], words: ["names", "scenarios"], value: "chat" },
    { kind: "range", key: "isl", label: "Prompt", unit: "tokens", min: 16, max: 131072, scale: "log", value: 4000, when: (v) => v.scenario === "" },
    { kind: "range", key: "osl", label: "Answer", unit: "tokens", min: 1, max: 32768, scale: "log", value: 500, when: (v) => v.scenario === "" },
    { ...limit("rate", "Requests", "per second", 0.1, 2000, 0.1, (v) => digits(v)), show: (v) => (v === FREE.rate ? "all" : digits(v)), help: "All: as many as the chips serve" },
    { kind: "number", key: "users", label: "Users", unit: "instead of a rate", value: "", placeholder: "none" },
    { kind: "number", key: "think", label: "Pause of a user", unit: "seconds", value: "20", when: (v) => v.users !== "" },
    { kind: "heading", label: "Targets" },
    limit("ttft", "First token", "at most", 10, FREE.ttft, 1000, (v) => ms(v)),
    limit("tpot", "Per token", "at most", 1, FREE.tpot, 40, (v) => ms(v)),
    limit("e2e", "Request", "at most", 100, FREE.e2e, FREE.e2e, (v) => ms(v)),
    limit("user", "A user's tok/s", "at least", FREE.user, 1000, FREE.user, (v) => digits(v)),
    { kind: "select", key: "objective", label: "Best is", options: [["cost", "lowest cost"], ["chips", "fewest chips"], ["energy", "least energy"], ["latency", "fastest requests"], ["throughput", "most throughput"], ["speed", "fastest users"]], words: ["plan", "objective"], value: "cost" },
    { kind: "heading", label: "Choices", fold: true },
    { kind: "select", key: "engines", label: "Engine", options: [["vllm", "vLLM"], ["sglang", "SGLang"], ["trtllm", "TensorRT-LLM"], ["vllm,sglang,trtllm", "the best of the three"], ["ideal", "ideal: the roofline alone"]], value: "vllm" },
    { kind: "select", key: "weights", label: "Weights", options: WEIGHTS, value: "" },
    { kind: "select", key: "kv", label: "KV cache", options: KV, value: "" },
    { kind: "toggle", key: "shared", label: "Prompts and answers share chips", value: "no" },
    { kind: "range", key: "drafts", label: "Drafts", unit: "or none", min: 0, max: 8, whole: true, value: 0 },
    { kind: "range", key: "acceptance", label: "Accepted", unit: "each", min: 0.05, max: 1, value: 0.7, whole: false, show: (v) => percent(v), parse: (t) => Number.parseFloat(t) / 100 },
    { kind: "number", key: "cost", label: "Cost at most", unit: "$ per million tokens", value: "", placeholder: "none" },
    { kind: "number", key: "sure", label: "Sure", unit: "% that limits hold", value: "", placeholder: "as predicted" },
    { kind: "number", key: "availability", label: "Availability", unit: "% of the time", value: "", placeholder: "no spares" },
    { kind: "number", key: "budget", label: "Budget", unit: "$ per hour", value: "", placeholder: "none" },
    { kind: "number", key: "price", label: "Price", unit: "$ per chip and hour", value: "", placeholder: "the catalogue's" },
    { kind: "toggle", key: "simulate", label: "Simulate the best few, request by request", value: "no" },
    { kind: "toggle", key: "every", label: "Rank every chip of the catalogue", value: "no" },
  ],
  later: ["plan", "other", "outlook", "hardware", "lecture"],
  optional: ["outlook", "hardware"],
  requests: (s) => ({
    plan: ["plan", { ...request(s, s.on), ...(s.simulate === "yes" ? { simulate: true } : {}) }],
    other: s.other ? ["plan", request(s, s.other)] : null,
    outlook: ["outlook", { plan: request(s, s.on) }],
    hardware: s.every === "yes" ? ["hardware", { plan: everyChip(request(s, s.on)), flips: false }] : null,
    lecture: ["lecture", {}],
  }),
  render(view, answers, s, { requests, change }) {
    root = view.root;
    const ready = Boolean(answers.plan) && (!requests.other || Boolean(answers.other));
    if (answers.plan) last = { plan: answers.plan, other: requests.other ? answers.other : null, request: requests.plan };
    root.classList.toggle("plan-waiting", !ready);
    root.setAttribute("aria-busy", String(!ready));
    if (!last) {
      view.reading("Computing the plan: every layout of every machine, at every batch…");
      return;
    }
    const { plan, other } = last;
    const best = plan.plans[0];
    if (best) view.reading(`${plan.verdict}. ${plain(best.why)}`);
    else view.node("infeasible", infeasible(plan, other, s, change));
    view.note("space", `${plan.model} on ${plan.systems.join(", ")}: ${plan.workload}. ${count(plan.configurations)} configurations of ${count(plan.layouts_that_fit)} deployments that fit${plan.layouts_that_fit === plan.layouts ? "" : ` (of ${count(plan.layouts)})`}; limits: ${plan.limits.join("; ")}.`);
    if (best) {
      view.node("card", plan.parts?.length ? fleet(plan) : card(best));
      this.numbers(view, best);
      view.evidence("evidence", best?.evidence);
      if (plan.simulated) this.simulated(view, plan.simulated);
    }
    this.frontiers(view, plan, other, last.request, s);
    if (other) this.compare(view, plan, other);
    if (best) {
      if (plan.plans.length > 1) this.rivals(view, plan);
      this.shadows(view, plan);
      if (best.step) {
        view.heading("step-title", "Where the time of a step goes");
        view.node("step", breakdown(best.step));
      }
    }
    if (best) this.outlook(view, answers.outlook);
    if (s.every === "yes") this.hardware(view, answers.hardware, answers.refused?.hardware, change);
    this.equations(view, plan, best);
    view.claims("claims", answers.lecture, ["D6", "D7", "D8", "D14"]);
    view.list("assumptions", "What the numbers assume", plan.assumptions);
  },
  numbers(view, best) {
    const range = (r, show) => `80 %: ${between(r, show)}`;
    view.numbers("served", [
      ["Cost of output", money(best.usd_per_mtok?.value), best.usd_per_mtok ? `80 %: ${digits(best.usd_per_mtok.low)} to ${digits(best.usd_per_mtok.high)}` : ""],
      ["Time to first token", ms(best.ttft_ms.value), range(best.ttft_ms, ms)],
      ["Time per output token", ms(best.tpot_ms.value), range(best.tpot_ms, ms)],
      ["Whole request", ms(best.e2e_ms.value), range(best.e2e_ms, ms)],
      ["One user gets", tokens(best.tok_s_per_user.value), range(best.tok_s_per_user, (v) => digits(v))],
      ["One chip delivers", tokens(best.tok_s_per_chip.value), range(best.tok_s_per_chip, (v) => digits(v))],
      ["All together", tokens(best.throughput_tok_s), `${count(Math.round(best.concurrency))} requests in flight, ${percent(best.busy)} busy`],
      ["Chips", `${best.chips}`, `${best.usd_per_hour === null ? "" : `${usd(best.usd_per_hour)}/h, `}${digits(best.power_kw)} kW, ${digits(best.joules_per_token)} J/token`],
    ]);
  },
  simulated(view, { trials, assumptions }) {
    const names = { ttft: "First token", tpot: "Per token", e2e: "Whole request" };
    view.heading("simulated-title", "Under its traffic, request by request");
    view.table("simulated", {
      caption: "Simulated times of the best few",
      columns: ["Deployment", "Time", ...["Mean", "p50", "p90", "p99", "Limit"].map((name) => ({ name, align: "right" }))],
      rows: trials.flatMap((t) => (t.measured?.times ?? []).map((x) => ({
        class: x.limit_ms !== null && x.p99_ms > x.limit_ms ? "plan-binds" : null,
        cells: [t.deployment, names[x.metric], ms(x.mean_ms), ms(x.p50_ms), ms(x.p90_ms), ms(x.p99_ms), x.limit_ms === null ? "–" : ms(x.limit_ms)],
      }))),
    });
    view.list("simulated-verdicts", "What held", trials.map((t) => `${t.deployment}: ${t.verdict}`));
    view.list("simulated-assumptions", "What the simulations assume", assumptions);
  },
  frontiers(view, plan, other, [question, asked], s) {
    const answers = [plan, other].filter((p) => p?.frontier.length);
    if (!answers.length) return;
    const user = Number(s.user) === FREE.user ? undefined : Number(s.user);
    const two = answers.length > 1 || answers[0] !== plan;
    const explain = (x) => {
      const near = answers.flatMap((a) => a.frontier.map((p) => [a, p])).reduce((a, b) => (Math.abs(Math.log(b[1].tok_s_per_user / x)) < Math.abs(Math.log(a[1].tok_s_per_user / x)) ? b : a));
      const p = near[1];
      return `${two ? `${near[0].systems.join(", ")}: ` : ""}${p.deployment}, ${count(p.concurrency_per_group)} in flight per group; first token ${ms(p.ttft_ms)}, ${ms(p.tpot_ms)} per token, ${money(p.usd_per_mtok)}`;
    };
    const overlay = (title, y, of, at) => ({
      title, subtitle: plan.workload,
      x: plan.figure.x,
      y: { scale: "log", ...y },
      series: answers.map((a) => ({ name: a.systems.join(", "), role: two ? { choice: a === plan ? 0 : 1 } : "envelope", points: [...a.frontier].reverse().map((p) => [p.tok_s_per_user, of(p)]).filter(([, v]) => v > 0) })),
      marks: answers.filter((a) => a.plans.length && at(a.plans[0]) > 0).map((a) => ({ x: a.plans[0].tok_s_per_user.value, y: at(a.plans[0]), label: two ? "best plan" : "recommended" })),
    });
    view.heading("frontier-title", "The frontier");
    if (two) view.chart("frontier", overlay(`What users and chips get: ${plan.model}`, { label: plan.figure.y.label, unit: "tokens_per_s" }, (p) => p.tok_s_per_chip, (b) => b.tok_s_per_chip.value), { at: user, explain });
    else view.chart("frontier", plan.figure, { source: [question, asked, "/figure"], at: user, explain });
    view.chart("cost", overlay(`What speed costs: ${plan.model}`, { label: "dollars per million output tokens", unit: "usd_per_mtok" }, (p) => p.usd_per_mtok, (b) => b.usd_per_mtok?.value), { at: user, explain });
    view.note("frontier-note", "On the line no deployment is better for both the user and the chip. To the right each user is faster, further up each chip does more. Marks show the plans that keep all limits.");
  },
  compare(view, plan, other) {
    const pair = [plan, other];
    const best = pair.map((p) => p.plans[0]);
    const cells = (of) => best.map((b, i) => (b ? of(b) : i >= 0 ? "–" : ""));
    const numbers = (label, of, show) => {
      const [a, b] = best.map((x) => (x ? of(x) : null));
      return [label, ...[a, b].map((v) => (v === null || v === undefined ? "–" : show(v))), a > 0 && b > 0 ? `x ${digits(b / a)}` : "–"];
    };
    view.table("compare", {
      caption: "Side by side",
      columns: ["Best plan", ...pair.map((p) => ({ name: p.systems.join(", "), align: "right" })), { name: "second over first", align: "right" }],
      rows: [
        ["Plan", ...cells((b) => named(b)), ""],
        numbers("Cost of output", (b) => b.usd_per_mtok?.value, perMtok),
        numbers("Per chip", (b) => b.tok_s_per_chip.value, tokens),
        numbers("Per user", (b) => b.tok_s_per_user.value, tokens),
        numbers("First token", (b) => b.ttft_ms.value, ms),
        numbers("Per token", (b) => b.tpot_ms.value, ms),
        numbers("All together", (b) => b.throughput_tok_s, tokens),
        numbers("Chips", (b) => b.chips, count),
        numbers("Dollars per hour", (b) => b.usd_per_hour, usd),
        numbers("Power of the chips", (b) => b.power_kw, (v) => `${digits(v)} kW`),
        ["Limited by", ...cells((b) => b.bound_by), ""],
      ],
    });
    if (!other.plans.length) view.note("compare-note", `${other.systems.join(", ")}: ${other.verdict}.`);
  },
  rivals(view, plan) {
    view.table("rivals", {
      caption: "The best of every other deployment, and why it lost",
      columns: ["Deployment", { name: "Output", align: "right" }, { name: "Per user", align: "right" }, { name: "Per chip", align: "right" }, { name: "First token", align: "right" }, { name: "Per token", align: "right" }, { name: "Chips", align: "right" }, "Why", "Start"],
      rows: plan.plans.map((p, i) => ({
        class: i === 0 ? "best" : null,
        cells: [named(p), money(p.usd_per_mtok?.value), tokens(p.tok_s_per_user.value), tokens(p.tok_s_per_chip.value), ms(p.ttft_ms.value), ms(p.tpot_ms.value), String(p.chips), i === 0 ? `recommended: ${p.why}` : p.why,
          el("button", { type: "button", class: "quiet", "aria-label": `Copy how to start ${named(p)}`, title: p.launch.join("\n"), onclick: (event) => { navigator.clipboard?.writeText(p.launch.join("\n")); event.currentTarget.textContent = "Copied"; } }, "Copy")],
      })),
    });
    view.node("files", files(plan));
  },
  shadows(view, plan) {
    const said = (v, worse) => (v === null ? "nothing is left" : v === 0 ? "no change" : `${v > 0 ? "+" : "−"}${percent(Math.abs(v))}${worse}`);
    view.table("shadows", {
      caption: "What each limit costs",
      columns: ["Limit", { name: "A tenth tighter", align: "right" }, { name: "A tenth looser", align: "right" }],
      rows: plan.shadow_prices.map((p) => ({ class: p.tighter !== 0 || p.looser !== 0 ? "plan-binds" : null, cells: [p.limit, said(p.tighter, ""), said(p.looser, "")] })),
    });
    view.note("shadows-note", `Change of ${OBJECTIVES[plan.objective] ?? plan.objective} when one limit moves by a tenth and the rest stay. No change: the limit does not hold the plan back.`);
  },
  outlook(view, o) {
    if (!o) return;
    view.heading("outlook-title", "How sure it is, and what comes next");
    view.note("outlook-verdict", `${capital(o.verdict)}.`);
    const moved = (m) => (m ? `${m.value}: ${m.change === null ? "nothing fits" : signed(m.change)}${m.kept === "as_is" && m.regret > 0.005 ? `, today's deployment ${percent(m.regret)} behind` : ""}` : "–");
    view.table("outlook", {
      caption: "Uncertain inputs, a fifth lower and a fifth higher: change of the best",
      columns: ["Input", "Lower", "Higher"],
      rows: o.inputs.map((i) => [i.name, moved(i.low), moved(i.high)]),
    });
    view.table("stages", {
      caption: "The deployment as more requests are in flight, in one group",
      columns: [{ name: "In flight", align: "right" }, "Bound by", { name: "Per chip", align: "right" }, { name: "Per token", align: "right" }, "Breaks"],
      rows: o.stages.map((t) => [t.from === t.to ? count(t.from) : `${count(t.from)} to ${count(t.to)}`, t.bound_by, `up to ${tokens(t.tok_s_per_chip)}`, ms(t.tpot_ms), t.broken.join("; ") || "no limit"]),
    });
    const grows = o.most ? `As traffic grows these chips are full at ${digits(o.most.requests_per_s)} requests per second${o.most.times_now ? `, ${digits(o.most.times_now)} times what is asked` : ""}; ${o.most.reliefs.map((r) => `twice the room in ${r.limit} gives ${r.gain > 0.005 ? `${percent(r.gain)} more` : "nothing"}`).join(", ")}.` : "";
    view.note("outlook-most", `${grows}${o.ends_by ? ` The table ends where ${o.ends_by}.` : ""}`.trim());
  },
  hardware(view, h, refused, change) {
    view.heading("hardware-title", "Every chip with a price, at its own best plan");
    if (refused) { view.note("hardware-refused", `${refused.message}. ${refused.hint ?? ""}`); return; }
    if (!h) return;
    view.note("hardware-verdict", `${capital(h.verdict)}.`);
    view.table("hardware", {
      caption: `At most ${h.chips} chips of each, best first`,
      columns: ["Machine", { name: "Chip and hour", align: "right" }, { name: "Output", align: "right" }, { name: "Behind", align: "right" }, { name: "Draws level at", align: "right" }, { name: "Per user", align: "right" }, "Deployment"],
      rows: h.rows.map((r, i) => ({
        class: i === 0 ? "best" : null,
        cells: [
          el("button", { type: "button", class: "quiet", onclick: () => change("on", r.name, true) }, r.name),
          r.usd_per_chip_hour === null ? "–" : `${usd(r.usd_per_chip_hour)} ${r.price_basis ?? ""}`, money(r.plan.usd_per_mtok?.value),
          i === 0 ? "–" : `x ${digits(r.behind.value)}${r.too_close ? ", not to be told apart" : ""}`, r.flips_at_usd_per_chip_hour ? usd(r.flips_at_usd_per_chip_hour) : "–", tokens(r.plan.tok_s_per_user.value), r.plan.deployment,
        ],
      })),
    });
    view.list("hardware-out", `Left out: ${count(h.out.length)}`, h.out.map((x) => `${x.name}: ${x.why}`));
  },
  equations(view, plan, best) {
    const words = plan.limits.map((l) => tex(l));
    const shown = { cost: best?.usd_per_mtok ? money(best.usd_per_mtok.value) : null, chips: best && `${best.chips} chips`, energy: best && `${digits(best.joules_per_token)} J/token`, latency: best && ms(best.e2e_ms.value), throughput: best && tokens(best.throughput_tok_s) }[plan.objective];
    const extreme = plan.objective === "throughput" ? String.raw`\max` : String.raw`\min`;
    view.equation("programme", {
      title: "The question",
      tex: String.raw`\begin{aligned} &${extreme}_{\text{layout},\,B,\,\text{replicas}}\ ${tex(OBJECTIVES[plan.objective] ?? plan.objective)}\\ &\text{so that }${words.join(String.raw`\\ &\phantom{\text{so that }}`)}\end{aligned}`,
      values: best && shown ? String.raw`\rightarrow\ ${tex(shown)}` : undefined,
      note: "Memory holds the weights and the caches of B requests in flight; degrees are all that model, machine and engine allow.",
    });
    if (!best || best.usd_per_hour === null || !best.usd_per_mtok) return;
    view.equation("price", {
      title: "What a token costs",
      tex: String.raw`\frac{\$}{\text{Mtok}} = \frac{c_{\text{hour}}}{3600\ \text{s}}\cdot\frac{10^6}{X}`,
      values: String.raw`\frac{${tex(usd(best.usd_per_hour))}}{3600\ \text{s}}\cdot\frac{10^6}{${tex(tokens(best.throughput_tok_s))}} = ${tex(money(best.usd_per_mtok.value))}`,
      note: "c dollars per hour of all chips, X output tokens per second of all. Prompts are paid by output tokens.",
    });
  },
  leave() { root?.classList.remove("plan-waiting"); root?.removeAttribute("aria-busy"); last = null; },
  command: line,
};

/** The command that asks the same. */
function line(s) {
  const flags = settingFlags(s);
  flags.push("--engine", s.engines);
  if (s.scenario) flags.push("--scenario", s.scenario);
  else flags.push("--isl", s.isl, "--osl", s.osl);
  for (const [key, flag, unit] of [["rate", "--rate", ""], ["ttft", "--ttft", "ms"], ["tpot", "--tpot", "ms"], ["e2e", "--e2e", "ms"], ["user", "--user", ""]]) {
    if (asked(s, key) !== undefined && !(key === "rate" && s.users)) flags.push(flag, `${s[key]}${unit}`);
  }
  if (s.users) flags.push("--users", s.users, ...(s.think ? ["--think", `${s.think}s`] : []));
  if (s.cost) flags.push("--cost", s.cost);
  for (const key of ["sure", "availability"]) if (s[key]) flags.push(`--${key}`, `${s[key]}%`);
  if (s.budget) flags.push("--budget", `'$${s.budget}/h'`);
  if (s.shared === "yes") flags.push("--aggregated");
  if (Number(s.drafts) > 0) flags.push("--drafts", `0,${s.drafts}`, "--acceptance", s.acceptance);
  if (s.simulate === "yes") flags.push("--simulate");
  flags.push("--objective", s.objective, "--top 8");
  return ["rackmath plan", ...flags].join(" ");
}

const named = (p) => (p.replicas === 1 ? p.deployment : p.deployment.includes(" x ") ? `${p.replicas} x (${p.deployment})` : `${p.replicas} x ${p.deployment}`);
const plain = (why) => `${why.charAt(0).toUpperCase()}${why.slice(1)}.`;

/** A fleet of unlike machines: each part with its share of the traffic, and its own deployment. */
function fleet(plan) {
  return el("div", { class: "plan-fleet" }, plan.parts.map((part) => {
    const own = part.plan === null || part.plan === undefined ? null : plan.plans[part.plan];
    const share = `${part.machine}: ${percent(part.share)} of the traffic, ${digits(part.rate_per_s)} of at most ${digits(part.most_per_s)} requests per second`;
    return own ? card(own, share) : el("section", { class: "plan-card", "aria-label": `Part ${part.machine}` }, el("p", { class: "plan-kicker" }, share), el("p", {}, plain(part.why)));
  }));
}

/** The plan that is recommended, with the commands that start it. */
function card(best, kicker = "Recommended") {
  const pool = best.prefill;
  const of = pool
    ? `${pool.instances} x ${pool.layout} for prompts and ${pool.decode_instances} x ${best.layout} for answers, ${best.chips_per_replica} chips`
    : `${best.layout}, ${best.chips_per_replica} chip${best.chips_per_replica === 1 ? "" : "s"}`;
  return el("section", { class: "plan-card", "aria-label": kicker === "Recommended" ? "Recommended deployment" : kicker },
    el("p", { class: "plan-kicker" }, kicker),
    el("h2", {}, named(best)),
    el("dl", { class: "plan-facts" }, [
      ["Machine", `${best.chips} chips of ${best.system}, ${best.domains} scale-up domain${best.domains === 1 ? "" : "s"}`],
      ["A replica", of],
      ["Engine", `${best.engine}, up to ${count(best.chunk)} tokens in a pass${best.drafts > 0 ? `, ${digits(best.drafts, 1)} drafts` : ""}`],
      ["Formats", `weights ${best.weights}, KV cache ${best.kv}`],
      ["Load", `${count(Math.max(1, Math.round(best.concurrency_per_group)))} requests in flight per group${best.sequences > best.concurrency_per_group ? `, at most ${count(best.sequences)}` : ""}; ${percent(best.headroom)} of the cache memory free`],
      ["Limited by", best.bound_by],
      ["Held by", best.why.replace(/^held by /, "")],
    ].map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text)))),
    best.launch.map((line) => {
      const [, role, run] = /^(prefill|decode): (.*)$/.exec(line) ?? [null, "", line];
      return el("div", { class: "plan-launch" }, el("span", { class: "sub" }, role ? `Start each ${role} instance` : "Start each replica"), copied(run));
    }));
}

function copied(text) {
  return el("div", { class: "code" }, el("pre", { tabindex: "0", "aria-label": "launch command" }, text), el("button", {
    type: "button", class: "quiet", "aria-label": "Copy the launch command",
    onclick: (event) => { navigator.clipboard?.writeText(text); event.currentTarget.textContent = "Copied"; },
  }, "Copy"));
}

// Which setting a limit of the library is.
const SETTINGS = { "time to first token": "ttft", "time per output token": "tpot", "whole request": "e2e", chips: "chips", "dollars per hour": "budget" };

/** Nothing keeps all limits: which ones stand, and the least move of each that would do. */
function infeasible(plan, other, s, change) {
  const set = (r) => {
    const key = SETTINGS[r.limit];
    const now = { chips: Number(r.asked.replaceAll(",", "")), budget: Number(s.budget), ttft: asked(s, "ttft"), tpot: asked(s, "tpot") ?? Infinity, e2e: asked(s, "e2e") }[key];
    // A user's speed and the time per token are one limit; the tighter one is moved.
    const fromUser = key === "tpot" && asked(s, "user") !== undefined && 1000 / asked(s, "user") < now;
    if (fromUser) return () => change("user", Math.floor((asked(s, "user") / r.factor) * 1000) / 1000, true);
    const to = now * r.factor;
    return () => change(key, key === "chips" ? Math.ceil(to - 1e-9) : Number((to * 1.0005).toPrecision(4)), true);
  };
  const drops = Object.entries({ ttft: "first token", tpot: "per token", e2e: "request", user: "a user's speed", rate: "requests per second" }).filter(([key]) => asked(s, key) !== undefined);
  const button = (text, key, value) => [el("button", { type: "button", class: "quiet", onclick: () => change(key, value, true) }, text), " "];
  const chips = Number(/^chips at most ([\d,]+)$/.exec(plan.limits.find((l) => l.startsWith("chips")) ?? "")?.[1].replaceAll(",", ""));
  const moves = [...plan.relaxations].sort((a, b) => Math.abs(Math.log(a.factor)) - Math.abs(Math.log(b.factor)));
  const fits = plan.layouts_that_fit > 0;
  return el("section", { class: "plan-none", role: "status" },
    el("h2", {}, fits ? `No plan on ${plan.systems.join(", ")} keeps all limits` : `It does not fit on ${plan.systems.join(", ")}`),
    fits ? el("ul", { class: "plan-limits" }, plan.limits.map((l) => el("li", {}, l))) : null,
    el("p", {}, plain(plan.verdict), moves.length || !fits ? "" : " Give up one to see how near the rest can be met."),
    moves.length ? el("ul", { class: "plan-moves" }, moves.map((r) => el("li", {},
      el("strong", {}, `${plain(r.limit).slice(0, -1)}: ${r.asked} → ${r.needed}`), ` (x ${digits(r.factor)}), reached by ${r.by} `,
      SETTINGS[r.limit] ? el("button", { type: "button", class: "quiet", onclick: set(r) }, "Use it") : null))) : null,
    fits && !moves.length ? el("p", {}, drops.map(([key, name]) => button(`Drop: ${name}`, key, FREE[key])).flat()) : null,
    fits ? null : el("p", {}, chips ? button(`Twice the chips: ${count(2 * chips)}`, "chips", 2 * chips) : null, s.weights === "" ? button("Weights in FP8", "weights", "fp8") : null, s.weights === "nvfp4" ? null : button("Weights in NVFP4", "weights", "nvfp4")),
    other?.plans.length ? el("p", {}, el("strong", {}, `${other.systems.join(", ")} can: `), `${other.verdict}. `, el("button", { type: "button", class: "quiet", onclick: () => { change("other", s.on, false); change("on", s.other, true); } }, "Use that machine")) : null);
}

/** The plans as files. */
function files(plan) {
  const rows = () => [
    ["deployment", "system", "engine", "replicas", "chips", "usd_per_mtok", "usd_per_mtok_low", "usd_per_mtok_high", "tok_s_per_user", "tok_s_per_chip", "ttft_ms", "tpot_ms", "e2e_ms", "throughput_tok_s", "usd_per_hour", "power_kw", "bound_by", "why", "launch"],
    ...plan.plans.map((p) => [p.deployment, p.system, p.engine, p.replicas, p.chips, p.usd_per_mtok?.value, p.usd_per_mtok?.low, p.usd_per_mtok?.high, p.tok_s_per_user.value, p.tok_s_per_chip.value, p.ttft_ms.value, p.tpot_ms.value, p.e2e_ms.value, p.throughput_tok_s, p.usd_per_hour, p.power_kw, p.bound_by, p.why, p.launch.join(" ; ")]),
  ];
  const save = (name, type, text) => download(name, new Blob([text], { type }));
  return el("p", { class: "plan-files" }, "Keep these plans: ",
    el("button", { type: "button", class: "quiet", "aria-label": "Save the plans as CSV", onclick: () => save("plans.csv", "text/csv", csv(rows())) }, "CSV"), " ",
    el("button", { type: "button", class: "quiet", "aria-label": "Save the whole answer as JSON", onclick: () => save("plan.json", "application/json", JSON.stringify(plan, null, 2)) }, "JSON"));
}
