// One budget for pre-training, RL and serving: the rule of equal costs, and the exact optimum under each scaling law.

import { ask } from "../lib/api.js";
import { catalogue, quote } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { count, digits, params, percent, seconds, tex, usd } from "../lib/format.js";

// What the pickers offer, asked for once; the sliders work without.
const [laws, models, chips] = await Promise.all([
  ask("scaling", {}).then((a) => a.laws),
  ask("models", {}).then((a) => a.models),
  catalogue().then((a) => a.chips),
]).catch(() => [[{ law: "chinchilla-optimum", name: "Chinchilla, best fit" }], [], []]);
const sizes = new Map(models.map((m) => [m.id, m]));

const share = { show: (v) => percent(v), parse: (t) => Number.parseFloat(t) / 100, whole: false };
const tokens = (v) => `${params(v)} tokens`;
const times = (v) => `${digits(v)}x`;
const flop = (v) => `${digits(v)} FLOP`;
// A power of ten inside an equation.
const power = (v) => {
  const [m, e] = v.toExponential(2).split("e");
  return String.raw`${m}\times 10^{${Number(e)}}`;
};
const spread = (v, say) => { const s = v?.narrow ?? v?.wide; return s ? `${say(s.low)} to ${say(s.high)}` : "–"; };

const shape = (s, law) => {
  const model = sizes.get(s.model);
  return { params: model?.active_params ?? Number(s.params), law: { law, sparsity: model?.sparsity ?? Number(s.sparsity) } };
};

const machine = (s) => ({ on: s.on, train_mfu: Number(s.mfu), train_format: s.train, serve_format: s.serve, ...(s.price ? { price_usd_per_chip_hour: Number(s.price) } : {}) });

function life(s, law) {
  const r = {
    ...shape(s, law),
    rate_tokens_per_s: Number(s.rate),
    model_share: Number(s.part),
    lifetime_days: Number(s.days),
    survives: Number(s.survives),
    rl_factor: Number(s.factor),
    eta: Number(s.eta),
    split: s.split,
  };
  if (s.on) r.machine = machine(s);
  if (s.rl === "yes") r.rl = { prompts: Number(s.prompts), group: Number(s.group), sample_tokens: Number(s.sample), pass_rate: Number(s.pass) };
  if (s.fail === "yes") r.failures = { chip_mtbf_hours: Number(s.mtbf), chips: Number(s.chips), stall_s: Number(s.stall), restart_s: Number(s.restart) };
  return r;
}

const scale = (s, law) => {
  const { law: shaped } = shape(s, law);
  return { law: shaped, flop: Number(s.flop), ...(s.on ? { machine: machine(s) } : {}) };
};

export const page = {
  id: "lifecycle",
  title: "One budget for a model's life",
  lead: "A model is pre-trained once, then trained by reinforcement (RL), then read by its users. When many will read it, a smaller model trained for longer is cheaper over its life. Equal costs are the rule of thumb; the scaling laws say where the least cost is.",
  controls: [
    { kind: "select", key: "law", label: "Scaling law", options: laws.map((l) => [l.law, l.name]), value: "chinchilla-optimum" },
    { kind: "select", key: "model", label: "Size of", options: [["", "the sliders below"], ...models.map((m) => [m.id, m.name])], value: "", help: "A model takes its active parameters and sparsity." },
    { kind: "range", key: "params", label: "Active parameters", min: 1e8, max: 1e13, scale: "log", value: 1e11, show: params },
    { kind: "range", key: "sparsity", label: "Sparsity", unit: "total over active", min: 1, max: 64, scale: "log", value: 1, whole: false, show: (v) => digits(v) },
    { kind: "heading", label: "Serving" },
    { kind: "range", key: "rate", label: "Family's traffic", unit: "tokens/s", min: 1e4, max: 1e10, scale: "log", value: 5e8, show: params },
    { kind: "range", key: "part", label: "This model's part", min: 0.01, max: 1, scale: "log", value: 0.1, ...share },
    { kind: "range", key: "days", label: "Served for", unit: "days", min: 7, max: 1000, scale: "log", value: 60 },
    { kind: "range", key: "survives", label: "Chance it is served", min: 0.05, max: 1, value: 1, ...share },
    { kind: "range", key: "eta", label: "Decode MFU", unit: "over training's", min: 0.05, max: 1, value: 1 / 3, ...share },
    { kind: "heading", label: "Reinforcement learning" },
    { kind: "range", key: "factor", label: "RL factor", unit: "FLOP per parameter and token", min: 2, max: 6, step: 0.1, value: 3, whole: false, show: (v) => digits(v) },
    { kind: "toggle", key: "rl", label: "RL in detail instead", value: "no" },
    { kind: "range", key: "prompts", label: "Prompts", min: 1e5, max: 1e10, scale: "log", value: 1e8, show: params },
    { kind: "range", key: "group", label: "Samples per prompt", min: 2, max: 256, scale: "log", value: 16 },
    { kind: "range", key: "sample", label: "Sample", unit: "tokens", min: 100, max: 1e6, scale: "log", value: 8000 },
    { kind: "range", key: "pass", label: "Samples that are right", min: 0.01, max: 0.99, value: 0.5, ...share },
    { kind: "heading", label: "Budget" },
    { kind: "select", key: "split", label: "Rule of thumb", options: [["thirds", "equal thirds"], ["quarters", "training equals serving"], ["40/20/40", "40 / 20 / 40"], ["20/20/60", "20 / 20 / 60"], ["60/10/30", "60 / 10 / 30"]], words: ["lifecycle", "split"], value: "thirds" },
    { kind: "select", key: "on", label: "Chip, for dollars", options: [["", "none: FLOP only"], ...chips.map((c) => [c.id, c.name])], value: "h100-sxm" },
    { kind: "text", key: "price", label: "Price", unit: "$ per chip and hour", value: "", placeholder: "the catalogue's" },
    { kind: "range", key: "mfu", label: "Training MFU", min: 0.05, max: 0.8, value: 0.4, ...share },
    { kind: "select", key: "train", label: "Trained in", options: [["bf16", "BF16"], ["fp8", "FP8"]], value: "bf16" },
    { kind: "select", key: "serve", label: "Served in", options: [["bf16", "BF16"], ["fp8", "FP8"], ["nvfp4", "NVFP4"]], value: "bf16" },
    { kind: "heading", label: "Scaling law alone" },
    { kind: "range", key: "flop", label: "Training compute", unit: "FLOP", min: 1e19, max: 1e28, scale: "log", value: 5.76e23, show: (v) => digits(v) },
    { kind: "heading", label: "Failures in training" },
    { kind: "toggle", key: "fail", label: "Count them in the budget", value: "no" },
    { kind: "range", key: "chips", label: "Chips together", min: 8, max: 1e6, scale: "log", value: 16384 },
    { kind: "range", key: "mtbf", label: "A chip fails every", unit: "hours", min: 1000, max: 1e6, scale: "log", value: 50677 },
    { kind: "range", key: "stall", label: "Checkpoint pause", min: 0.1, max: 600, scale: "log", value: 10, whole: false, show: seconds },
    { kind: "range", key: "restart", label: "Restart", min: 10, max: 7200, scale: "log", value: 480, whole: false, show: seconds },
  ],
  later: ["all", "every", "lecture"],
  requests: (s) => ({
    life: ["lifecycle", life(s, s.law)],
    scaling: ["scaling", scale(s, s.law)],
    goodput: ["goodput", { run: "llama-3-405b", chips: Number(s.chips), chip_mtbf_hours: Number(s.mtbf), stall_s: Number(s.stall), restart_s: Number(s.restart) }],
    all: ["lifecycle", life(s, "all")],
    every: ["scaling", scale(s, "all")],
    lecture: ["lecture", {}],
  }),
  render(view, { life: a, scaling, goodput, all, every, lecture }, s, { requests, change }) {
    const { rule, request: r } = a;
    const [card] = a.laws;
    const best = card?.optimum;
    const name = laws.find((l) => l.law === s.law)?.name ?? s.law;
    view.reading(`The rule trains ${params(r.params)} parameters on ${tokens(rule.pretrain_tokens)}, ${digits(rule.over_training)} times Chinchilla's 20 per parameter. `
      + (best
        ? `${name} reaches that loss most cheaply with ${params(best.params)} on ${tokens(best.tokens)}, ${digits(best.over_training)} times as many; the rule costs ${percent(card.rule_extra)} more.`
        : `${name} has no optimum to set beside it: ${card?.left_out ?? "it has no surface of loss"}.`));
    view.numbers("numbers", [
      ["Served", tokens(a.served_tokens), `expected over ${count(r.lifetime_days)} days`],
      ["Pre-training", tokens(rule.pretrain_tokens), `${count(Math.round(rule.tokens_per_param))} per active parameter`],
      ["RL", tokens(rule.rl_tokens), a.rl ? `${percent(a.rl.useful, 3)} of groups teach something` : `factor ${digits(r.rl_factor)}`],
      ["Over-training, rule", times(rule.over_training), "over 20 tokens per parameter"],
      ["Over-training, optimum", best ? times(best.over_training) : "–", best ? `${params(best.params)} on ${tokens(best.tokens)}` : "no optimum under this law"],
      ["All of it, rule", rule.usd === null ? flop(rule.pretrain_flop + rule.rl_flop + rule.served_flop) : usd(rule.usd), best?.usd ? `optimum ${usd(best.usd)}` : "at training speed"],
    ]);
    view.node("budget", budget(rule, best));
    view.equation("costs", {
      title: "Three costs, set equal",
      tex: String.raw`C_{\text{pt}} = 6\,N D_{\text{pt}} \qquad C_{\text{rl}} = \frac{f\,N D_{\text{rl}}}{\eta} \qquad C_{\text{inf}} = \frac{2\,N D_{\text{inf}}}{\eta}`,
      values: String.raw`${power(rule.pretrain_flop)} \qquad ${power(rule.rl_flop)} \qquad ${power(rule.served_flop)}\ ${tex("FLOP at training speed")}`,
      note: `N active parameters, D tokens of each phase, f FLOP per parameter and RL token (2 to generate, up to 6 when every sample is trained on), η the MFU of decoding over that of training. N is in all three and cancels.${a.train_cost === 1 ? "" : ` Here a training token costs ${digits(a.train_cost)} times 6 FLOP at plain training speed.`}`,
    });
    view.equation("equal", {
      title: "What equal costs say about tokens",
      tex: String.raw`D_{\text{pt}} = \alpha D_{\text{rl}} = \beta D_{\text{inf}}, \quad \alpha = \frac{f}{6\,\eta}, \quad \beta = \frac{2}{6\,\eta} \qquad \text{over-training} = \frac{D_{\text{pt}}}{20\,N}`,
      values: String.raw`\alpha = ${tex(digits(rule.alpha))}, \quad \beta = ${tex(digits(rule.beta))} \qquad \frac{${tex(params(rule.pretrain_tokens))}}{20 \times ${tex(params(r.params))}} = ${tex(digits(rule.over_training))}`,
      note: "α and β hold for equal thirds; another split scales the tokens of each phase by its share.",
    });
    view.equation("served", {
      title: "Tokens served",
      tex: String.raw`D_{\text{inf}} = \Pr(\text{served}) \cdot \text{traffic} \cdot \text{part} \cdot \text{lifetime}`,
      values: String.raw`${tex(percent(r.survives))} \times ${tex(`${params(r.rate_tokens_per_s)}/s`)} \times ${tex(percent(r.model_share))} \times ${tex(`${count(r.lifetime_days)} d`)} = ${tex(tokens(a.served_tokens))}`,
      note: "A model that may never be served is worth less training.",
    });
    view.chart("life", a.figure, {
      source: [...requests.life, "/figure"],
      at: r.params,
      alt: best ? `Cheapest at ${params(best.params)}, the rule at ${params(r.params)}.` : "",
      explain: (x) => (best ? (x < best.params ? "smaller than the cheapest: data dominates" : "larger than the cheapest: serving dominates") : ""),
    });
    if (best) {
      view.equation("optimum", {
        title: "The exact optimum",
        tex: String.raw`\min_{N, D}\ 6 N D + \frac{(f D_{\text{rl}} + 2 D_{\text{inf}})\,N}{\eta} \quad \text{with} \quad L(N, D) = L_0`,
        values: String.raw`L_0 = ${tex(digits(card.loss, 4))}: \quad N = ${tex(params(best.params))},\ D = ${tex(params(best.tokens))},\ \text{pre-training's share } ${tex(percent(best.share))}`,
        note: `L is the loss in nats under ${name}, L₀ that of the rule's point. Least of a rising and a falling power law, a x^m + b x^-n, has costs in the ratio n : m, so equal costs are exact only for equal exponents.${card.outside.length ? ` Outside the fitted range: ${card.outside.join("; ")}.` : ""}`,
      });
    }
    this.laws(view, all, a, s, change);
    this.scaling(view, scaling, every, s, requests, change);
    this.failures(view, goodput, s, requests);
    view.list("sources", "Where the laws come from", laws.map((l) => `${l.law}: ${l.name}. ${l.source ?? ""}`));
    view.claims("claims", lecture, ["D37", "D38", "D39", "D40", "D41", "D42", "D43"]);
    view.list("assumptions", "What the numbers assume", [...new Set([...a.assumptions, ...scaling.assumptions, ...goodput.assumptions])]);
  },
  laws(view, all, a, s, change) {
    if (!all) return;
    view.heading("laws-title", "The same budget under every law");
    const found = all.laws.filter((l) => l.optimum);
    if (all.over_training_over_laws) {
      const [low, high] = all.over_training_over_laws;
      view.reading(`The laws put the cheapest model between ${times(low)} and ${times(high)} over-training; the rule says ${times(a.rule.over_training)}. ${found.filter((l) => l.outside.length).length} of ${found.length} say so outside the data they were fitted on.`, "laws-reading");
    }
    view.chart("optima", {
      title: "Where each law puts the cheapest model",
      subtitle: "each at its own loss of the rule's point",
      x: { label: "active parameters", unit: "params", scale: "log" },
      y: { label: "training tokens", unit: "params", scale: "log" },
      series: [{ name: "cheapest under a law", role: "points", points: found.map((l) => [l.optimum.params, l.optimum.tokens]) }],
      marks: [...found.map((l) => ({ x: l.optimum.params, y: l.optimum.tokens, label: l.law })), { x: a.request.params, y: a.rule.pretrain_tokens, label: "the rule" }],
    }, { at: a.request.params, alt: found.map((l) => `${l.law}: ${params(l.optimum.params)} on ${tokens(l.optimum.tokens)}`).join("; "), explain: (x) => found.find((l) => l.optimum.params === x)?.law });
    view.table("laws", {
      caption: "Over-training and cost under every law",
      columns: ["Law", ...["Loss", "Cheapest", "Over-training", "10 to 90 %", "Pre-training", "Rule costs", "Cost"].map((name) => ({ name, align: "right" })), "Outside its data"],
      rows: all.laws.map((l) => ({
        class: l.law === s.law ? "best" : null,
        cells: [
          pick(l.law, s.law, change),
          l.loss === null ? "–" : digits(l.loss, 4), l.optimum ? `${params(l.optimum.params)} on ${params(l.optimum.tokens)}` : "–", l.optimum ? times(l.optimum.over_training) : "–", spread(l.over_training_spread, times),
          l.optimum ? percent(l.optimum.share) : "–", l.rule_extra === null ? "–" : `+${percent(l.rule_extra)}`, l.optimum?.usd ? usd(l.optimum.usd) : "–",
          el("span", { class: "lifecycle-source" }, l.left_out ? `No answer: ${l.left_out}.` : l.outside.join("; ") || "within its range"),
        ],
      })),
    });
    view.note("laws-note", "Cheapest: active parameters on training tokens. 10 to 90 %: what the law's published standard errors make of it, each weight tied to its exponent. Pre-training: its share of the lifetime cost.");
  },
  scaling(view, a, every, s, requests, change) {
    view.heading("scaling-title", "The scaling law alone: best size for a training compute");
    const [card] = a.laws;
    const best = card?.optimum;
    view.reading(best
      ? `For ${flop(best.flop)} ${card.name} trains ${params(best.params)} parameters on ${tokens(best.tokens)}: ${digits(best.tokens_per_param)} tokens per parameter${best.loss === null ? "" : ` and a loss of ${digits(best.loss, 4)} nats`}.`
      : `${card?.name ?? s.law} has no best size: ${card?.left_out ?? "no answer"}.`, "scaling-reading");
    view.equation("law", {
      title: "A law of the Chinchilla kind",
      tex: String.raw`L(N, D) = E + \frac{A}{N^{a}} + \frac{B}{D^{b}} \qquad C = 6 N D \qquad \frac{N_{\text{best}}}{C^{\,b/(a+b)}} = \text{const}`,
      values: best ? String.raw`C = ${power(best.flop)}: \quad N = ${tex(params(best.params))},\ D = ${tex(params(best.tokens))},\ D/N = ${tex(digits(best.tokens_per_param))}` : "",
      note: `E is the loss of endless data and size. Laws of mixtures and of repeated data have further terms.${card?.notes.length ? ` ${card.notes.join(" ")}` : ""}`,
    });
    view.chart("iso-flop", a.iso_flop, { source: [...requests.scaling, "/iso_flop"], at: best?.params, explain: () => "equal compute along a line: too small wastes data, too large lacks it" });
    view.chart("iso-loss", a.iso_loss, { source: [...requests.scaling, "/iso_loss"], at: best?.params, explain: () => "equal loss along a line: a smaller model needs ever more tokens" });
    if (!every) return;
    view.table("sizes", {
      caption: `Best size for ${flop(Number(s.flop))} under every law`,
      columns: ["Law", ...["Parameters", "Tokens", "Per parameter", "10 to 90 %", "Loss", "Cost"].map((name) => ({ name, align: "right" })), "Outside its data"],
      rows: every.laws.map((l) => ({
        class: l.law === s.law ? "best" : null,
        cells: [
          pick(l.law, s.law, change),
          l.optimum ? params(l.optimum.params) : "–", l.optimum ? params(l.optimum.tokens) : "–", l.optimum ? digits(l.optimum.tokens_per_param) : "–", spread(l.tokens_per_param_spread, (v) => digits(v)),
          l.optimum?.loss ? digits(l.optimum.loss, 4) : "–", l.optimum?.usd ? usd(l.optimum.usd) : "–",
          el("span", { class: "lifecycle-source" }, l.left_out ? `No answer: ${l.left_out}.` : l.outside.join("; ") || "within its range"),
        ],
      })),
    });
  },
  failures(view, g, s, requests) {
    view.heading("goodput-title", "What failures take from training");
    view.reading(`${count(g.chips)} chips stop every ${seconds(g.job_mtbf_s)}; with a checkpoint every ${seconds(g.interval_s)} ${percent(g.goodput, 3)} of the time is progress.`, "goodput-reading");
    view.equation("goodput", {
      title: "Progress under failures",
      tex: String.raw`\text{MTBF}_{\text{job}} = \frac{\text{MTBF}_{\text{chip}}}{\text{chips}} \qquad \tau_{\text{Young}} = \sqrt{2\,t_{\text{stall}}\,\text{MTBF}_{\text{job}}}`,
      values: String.raw`${tex(seconds(g.job_mtbf_s))} \qquad ${g.young_interval_s === null ? tex("none") : tex(seconds(g.young_interval_s))}${g.best_interval_s === null ? "" : String.raw`\ ${tex(`(exact: ${seconds(g.best_interval_s)})`)}`}`,
      note: "MTBF: mean time between failures. A checkpoint pauses the run; a failure loses the work since the last one and a restart. Young's interval is the first-order best.",
    });
    view.chart("interval", g.over_interval, { source: [...requests.goodput, "/over_interval"], at: g.interval_s });
    view.chart("chips", g.over_chips, { source: [...requests.goodput, "/over_chips"], at: Number(s.chips) });
  },
  command(s) {
    const r = life(s, s.law);
    const flags = ["-n", r.params, "--rate", r.rate_tokens_per_s, "--model-share", r.model_share, "--lifetime", `${r.lifetime_days}d`, "--survives", r.survives, "--rl-factor", r.rl_factor, "--eta", r.eta, "--split", r.split, "--law", r.law.law, "--sparsity", r.law.sparsity];
    if (r.machine) flags.push("--on", quote(r.machine.on), "--train-mfu", r.machine.train_mfu, "--train-format", r.machine.train_format, "--serve-format", r.machine.serve_format);
    if (r.machine?.price_usd_per_chip_hour !== undefined) flags.push("--price", `'$${r.machine.price_usd_per_chip_hour}/h'`);
    if (r.rl) flags.push("--rl", [r.rl.prompts, r.rl.group, r.rl.sample_tokens, r.rl.pass_rate].join(","));
    if (r.failures) flags.push("--chip-mtbf", `${r.failures.chip_mtbf_hours}h`, "--chips", r.failures.chips, "--stall", `${r.failures.stall_s}s`, "--restart", `${r.failures.restart_s}s`);
    return ["rackmath lifecycle", ...flags].join(" ");
  },
};

function pick(law, now, change) {
  return el("button", { type: "button", class: "quiet pick", "aria-pressed": String(law === now), onclick: () => change("law", law, true) }, law);
}

/** The budget as two bars: the rule's three costs, and the optimum's share of pre-training. */
function budget(rule, best) {
  const bar = (label, parts) => {
    const all = parts.reduce((sum, [, v]) => sum + v, 0);
    const row = el("div", { class: "lifecycle-bar", role: "img", "aria-label": `${label}: ${parts.map(([n, v]) => `${n} ${percent(v / all)}`).join(", ")}` });
    for (const [name, value, kind] of parts) {
      const piece = el("span", { class: `lifecycle-${kind}` }, value / all > 0.07 ? `${name} ${percent(value / all)}` : "");
      piece.style.flexGrow = String(value / all);
      row.append(piece);
    }
    return el("div", { class: "lifecycle-row" }, el("span", { class: "lifecycle-name" }, label), row);
  };
  return el("div", { class: "lifecycle-budget" },
    el("p", {}, el("strong", {}, "Where the money goes"), " ", el("span", { class: "sub" }, "shares of the lifetime cost")),
    bar("rule of thumb", [["pre-training", rule.pretrain_flop, "pre"], ["RL", rule.rl_flop, "rl"], ["serving", rule.served_flop, "serve"]]),
    best ? bar("optimum", [["pre-training", best.share, "pre"], ["RL and serving", 1 - best.share, "rest"]]) : null);
}
