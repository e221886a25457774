// Pipelining: the grid slot by slot, what its bubble costs, and why stages save weights but not the cache.

import { ask } from "../lib/api.js";
import { KV, quote, WEIGHTS } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { bytes, count, digits, many, percent, seconds, tex } from "../lib/format.js";
import { Slots } from "../lib/slots.js";

const NAMES = {
  gpipe: ["GPipe", "all forwards, then all backwards"],
  "1f1b": ["1F1B", "one forward, one backward, so that few micro-batches are held"],
  interleaved: ["Interleaved 1F1B", "several chunks of the model on each stage, dealt out in turn"],
  "zb-h1": ["Zero-bubble H1", "weight gradients wait until a stage would be idle"],
  "zb-h2": ["Zero-bubble H2", "the same with more forwards in advance, in nearly twice the memory"],
  zbv: ["Zero-bubble V", "two chunks per stage, down and back up"],
  "v-half": ["V-Half", "down and back up in half the memory of 1F1B"],
  "v-min": ["V-Min", "down and back up in a third of the memory of 1F1B"],
  dualpipe: ["DualPipe", "micro-batches from both ends; the weights are held twice"],
  dualpipev: ["DualPipeV", "DualPipe folded in the middle; the weights are held once"],
};

// The quoted bubble of each schedule; which of them holds is the answer's to say.
const CLOSED = {
  gpipe: "(P-1)(F+B+W)",
  "1f1b": "(P-1)(F+B+W)",
  interleaved: "\\frac{(P-1)(F+B+W)}{v}",
  "zb-h1": "(P-1)(F+B-W)",
  "zb-h2": "(P-1)(F+B-2W)",
  zbv: "0",
  "v-half": "\\tfrac12 (P-1)(F+B+W)",
  "v-min": "\\tfrac23 (P-1)(F+B+W)",
  dualpipe: "\\bigl(\\tfrac{P}{2}-1\\bigr)(FB+B-2W)",
  dualpipev: "\\tfrac{P-1}{2}(FB+B-2W)",
};

const plain = (v) => (Number.isInteger(v) ? count(v) : digits(v));
const DEPTHS = [1, 2, 4, 8, 16];

// Which models have experts to share, so that only layouts they allow are asked for; a dropped file may be either.
const shapes = new Map();
for (const m of (await ask("models", {}).catch(() => ({ models: [] }))).models) {
  const shape = { experts: Number(/ of (\d+)/.exec(m.ffn)?.[1] ?? 0), layers: m.layers };
  for (const name of [m.id, m.hf, ...m.aliases]) shapes.set(name, shape);
}

function splits(s) {
  if (s.split) return [s.split];
  const shape = shapes.get(s.model);
  if (!shape) return SPLITS;
  return [shape.experts >= Number(s.per) ? "ep" : "tp"];
}

// Numbers of micro-batches that suit the schedule: some want multiples of the stages, or enough to meet in the middle.
const COUNTS = [0, 1, 2, 3, 4, 5, 6];
function counts(s) {
  const unit = ["interleaved", "dualpipe", "dualpipev"].includes(s.schedule) ? 2 * Number(s.stages) : 1;
  return COUNTS.map((i) => unit * 2 ** i).filter((m) => m <= 64);
}

function factors(s) {
  if (s.factors) return s.factors.split(/[\s,]+/).filter(Boolean).map(Number);
  const last = Number(s.last);
  if (last === 1) return [];
  return Array.from({ length: Number(s.stages) }, (_, i) => (i === Number(s.stages) - 1 ? last : 1));
}

const asked = (s, more) => ({
  schedule: s.schedule,
  stages: Number(s.stages),
  micro_batches: Number(s.micro),
  virtual_stages: Number(s.chunks),
  forward_s: Number(s.forward),
  input_grad_s: Number(s.input),
  weight_grad_s: Number(s.weight),
  hop_s: Number(s.hop),
  stage_factors: factors(s),
  activation_bytes: Number(s.activation),
  hidden: Number(s.hidden),
  ...more,
});

// How the chips of one stage share its layers: experts over all of them, or tensors over eight.
function within(s, split) {
  const n = Number(s.per);
  const tp = Math.min(8, n);
  return split === "ep" ? { dp: n, ep: n } : { tp, dp: n / tp };
}

const serving = (s, split, pp) => ({
  setting: { model: s.model, on: s.on, chips: Number(s.per) * pp, ...(s.weights ? { weights: s.weights } : {}), ...(s.kv ? { kv: s.kv } : {}) },
  degrees: { ...within(s, split), pp },
  batch: Number(s.batch) * pp,
  context: Number(s.context),
});

function training(s, split, pp) {
  const { tp = 1, dp, ep = 1 } = within(s, split);
  return { model: s.model, on: s.on, chips: Number(s.per) * pp, tp, ep, pp, global_batch: dp * 4 * pp, sequence: Number(s.sequence), recompute: s.recompute };
}

const SPLITS = ["ep", "tp"];
const each = (make) => Object.fromEntries(SPLITS.flatMap((split) => DEPTHS.map((pp) => [pp, split])).map(([pp, split]) => make(split, pp)));

const grid = new Slots("Training step");
const pipe = new Slots("Inference");

export const page = {
  id: "pipeline",
  title: "Pipelining: layers in a row of racks",
  lead: "Cut the model by layers and give each stage its own chips. Training waits for the last backward pass, so stages idle in a bubble. Serving keeps the pipe full, but the full pipe holds so many sequences that the cache of each chip does not shrink.",
  controls: [
    { kind: "select", key: "schedule", label: "Schedule", options: Object.entries(NAMES).map(([id, [name]]) => [id, name]), value: "gpipe" },
    { kind: "range", key: "stages", label: "Stages", min: 1, max: 16, value: 4 },
    { kind: "range", key: "micro", label: "Micro-batches", min: 1, max: 64, value: 4 },
    { kind: "range", key: "chunks", label: "Virtual stages", unit: "if interleaved", min: 2, max: 8, value: 2 },
    { kind: "range", key: "forward", label: "Forward", min: 0.05, max: 4, step: 0.05, value: 1, show: seconds, whole: false },
    { kind: "range", key: "input", label: "Backward, to the input", min: 0, max: 4, step: 0.05, value: 0.5, show: seconds, whole: false },
    { kind: "range", key: "weight", label: "Backward, to weights", min: 0, max: 4, step: 0.05, value: 0.5, show: seconds, whole: false },
    { kind: "range", key: "hop", label: "Hop between stages", min: 0, max: 2, step: 0.02, value: 0, show: seconds, whole: false },
    { kind: "range", key: "last", label: "Last stage", unit: "times as long", min: 0.5, max: 3, step: 0.05, value: 1, show: (v) => digits(v), whole: false, help: "The head often makes it the longest." },
    { kind: "text", key: "factors", label: "All stages", unit: "times the mean", value: "", placeholder: "such as 1, 1, 1.2, 0.8" },
    { kind: "range", key: "hidden", label: "Hidden in a pair", unit: "DualPipe", min: 0, max: 1, step: 0.05, value: 0, show: (v) => percent(v), parse: (t) => Number.parseFloat(t) / 100, whole: false },
    { kind: "range", key: "activation", label: "Activations", unit: "of a stage and micro-batch", min: 1e7, max: 1e11, scale: "log", value: 1e9, show: bytes },
    { kind: "heading", label: "Serving" },
    { kind: "range", key: "inflight", label: "Micro-batches in the pipe", min: 1, max: 16, value: 4 },
    { kind: "heading", label: "Memory of a chip" },
    { kind: "model", key: "model", label: "Model", value: "deepseek-v3" },
    { kind: "machine", key: "on", label: "Machine", value: "gb200-nvl72" },
    { kind: "select", key: "per", label: "Chips of a stage", options: [1, 2, 4, 8, 16, 32, 64].map((n) => [String(n), String(n)]), value: "64" },
    { kind: "select", key: "split", label: "Sharing within a stage", options: [["", "experts, if there are any"], ["ep", "experts over all chips"], ["tp", "tensors over eight chips"]], value: "" },
    { kind: "range", key: "batch", label: "Micro-batch", unit: "sequences", min: 1, max: 65536, scale: "log", value: 2048 },
    { kind: "range", key: "context", label: "Context", unit: "tokens", min: 128, max: 1048576, scale: "log", value: 16384 },
    { kind: "select", key: "weights", label: "Weights", options: WEIGHTS, value: "" },
    { kind: "select", key: "kv", label: "KV cache", options: KV, value: "" },
    { kind: "range", key: "sequence", label: "Training sequence", unit: "tokens", min: 512, max: 131072, scale: "log", value: 4096 },
    { kind: "select", key: "recompute", label: "Recomputed in training", options: [["none", "nothing"], ["selective", "attention scores"], ["full", "whole layers"]], value: "none" },
  ],
  later: ["all", "lecture", ...COUNTS.flatMap((m) => [`m${m}`, `n${m}`]), ...SPLITS.flatMap((k) => DEPTHS.map((p) => `train-${k}${p}`))],
  optional: [...COUNTS.flatMap((m) => [`m${m}`, `n${m}`]), ...SPLITS.flatMap((k) => DEPTHS.flatMap((p) => [`train-${k}${p}`, `serve-${k}${p}`]))],
  requests(s) {
    const wanted = splits(s);
    const deep = (pp) => pp <= (shapes.get(s.model)?.layers ?? 16);
    return {
      grid: ["pipeline", asked(s)],
      pipe: ["pipeline", { schedule: "inference", stages: Number(s.stages), micro_batches: Number(s.inflight), forward_s: Number(s.forward) }],
      ...each((split, pp) => [`serve-${split}${pp}`, wanted.includes(split) && deep(pp) && ["layout", serving(s, split, pp)]]),
      all: ["pipeline", asked(s, { schedule: "all" })],
      ...Object.fromEntries(counts(s).flatMap((m, i) => [
        [`m${i}`, ["pipeline", asked(s, { micro_batches: m })]],
        [`n${i}`, s.schedule !== "1f1b" && s.schedule !== "gpipe" && ["pipeline", asked(s, { micro_batches: m, schedule: "1f1b" })]],
      ])),
      ...each((split, pp) => [`train-${split}${pp}`, wanted.includes(split) && deep(pp) && ["train", training(s, split, pp)]]),
      lecture: ["lecture", {}],
    };
  },
  render(view, answers, s, { change }) {
    const [run] = answers.grid.runs;
    const [name] = NAMES[run.schedule];
    const { stages: P, micro_batches: M } = answers.grid.request;
    view.reading(reading(run, name, P, M));
    view.numbers("numbers", [
      ["One step", seconds(run.makespan_s), `of ${count(M)} micro-batches`],
      ["Idle", percent(run.idle, 3), "of all stages and time"],
      ["Bubble", seconds(run.bubble_s), run.barrier_bubble_s > run.bubble_s ? `${seconds(run.barrier_bubble_s)} behind a barrier` : "the busiest stage waits"],
      ["Shortest possible", run.lower_bound_s === null ? "–" : seconds(run.lower_bound_s), `${kept(run)}`],
      ["Held at once", plain(run.peak_micro_batches), `micro-batches, ${bytes(run.peak_bytes)}`],
    ]);
    grid.show(run, {
      title: `${name}: ${many(P, "stage")}, ${many(M, "micro-batch", "micro-batches")}`,
      note: NAMES[run.schedule][1],
      chunks: run.schedule === "dualpipe" ? "from the other end" : run.schedule === "interleaved" ? "odd chunk of the stage" : "second chunk of the stage",
    });
    view.node("grid", grid.node);
    this.bubble(view, run, answers.grid.request);
    this.idle(view, answers, run, s, name);
    this.compare(view, answers.all, run, change);

    view.heading("serve-title", "Serving: no barrier, so the pipe stays full");
    const [flow] = answers.pipe.runs;
    const inflight = answers.pipe.request.micro_batches;
    pipe.show(flow, { title: `Writing tokens: ${many(P, "stage")}, ${many(inflight, "micro-batch", "micro-batches")} in turn`, note: "three rounds from an empty pipe", chunks: "odd token" });
    view.reading(flow.idle > 0
      ? `${inflight} of ${P} places are taken: every stage idles ${percent(flow.idle, 3)} of the time once the pipe has filled.`
      : `The pipe is full: no stage idles once it has filled. A token still passes every stage, so pipelining makes nobody's answer faster${inflight > P ? `, and ${inflight - P} micro-batches wait outside` : ""}.`, "pipe-reading");
    view.node("pipe", pipe.node);
    view.equation("pipe-idle", {
      title: "Idle share of a pipe that writes tokens",
      tex: String.raw`\text{idle} = \max\Bigl(0,\ \frac{P-M}{P}\Bigr) \qquad t_{\text{token}} = \sum_{i=1}^{P} t_i + n_{\text{hops}}\,h`,
      values: String.raw`\max\Bigl(0,\ \frac{${P}-${inflight}}{${P}}\Bigr) = ${tex(percent(flow.idle, 3))}`,
      note: "P stages, M micro-batches in the pipe, h the time of a hop. The time of a token is the sum over its stages, as without a pipeline, and the hops come on top.",
    });
    this.memory(view, answers, s);
    view.claims("claims", answers.lecture, ["D24", "D25", "D26", "D27", "D28", "D29", "D30", "D31", "D32", "D33", "D34", "D35", "D36", "D36B", "D36C"]);
    view.list("assumptions", "What the numbers assume", [
      "a stage does one thing at a time, except the overlapped pairs of DualPipe",
      "a transfer between stages takes the hop and no time of the stage; hops are not drawn in the inference grid",
      "recomputation lengthens the backward pass; gradient exchange and the optimizer are not in the grid",
      ...(this.layouts(answers, "serve")[0]?.[1].assumptions ?? []),
    ]);
  },
  bubble(view, run, r) {
    const simple = run.schedule === "gpipe" || run.schedule === "1f1b";
    const even = r.stage_factors.length === 0 && r.hop_s === 0;
    const clock = tex(seconds(run.bubble_s));
    view.equation("bubble", {
      title: "The bubble",
      tex: String.raw`\text{bubble} = ${CLOSED[run.schedule]}` + (simple ? String.raw` \qquad \text{idle} = \frac{P-1}{M+P-1}` : String.raw` \qquad T = M\,(F+B+W) + \text{bubble}`),
      values: (run.closed_bubble_s === null ? String.raw`\text{no closed form here; the clock says } ${clock}` : String.raw`\text{bubble} = ${tex(seconds(run.closed_bubble_s))}${run.closed_bubble_s === run.bubble_s ? "" : String.raw`\text{ as quoted; the clock says } ${clock}`}`)
        + (simple && even ? String.raw`\qquad \text{idle} = \frac{${r.stages}-1}{${r.micro_batches}+${r.stages}-1} = ${tex(percent(run.idle, 3))}` : String.raw`\qquad \text{idle} = ${tex(percent(run.idle, 3))}`),
      note: "P stages, M micro-batches, v chunks of a stage; F, B and W: a stage's time for one micro-batch forward, back to its input and back to its weights; FB an overlapped pair. The grid is run by a clock, so it also holds for unequal stages and hops, where no closed form does.",
    });
  },
  idle(view, answers, run, s, name) {
    const line = (letter) => COUNTS.map((i) => answers[`${letter}${i}`]).filter(Boolean).map((a) => [a.request.micro_batches, a.runs[0].idle]);
    const own = line("m");
    if (!own.length) return;
    const base = line("n");
    const series = [{ name, role: "envelope", points: own }];
    if (base.length) series.push({ name: "1F1B", role: "floor", points: base });
    view.chart("idle", {
      title: "Idle share against micro-batches",
      subtitle: `${s.stages} stages; more micro-batches hide the bubble, at a larger batch`,
      x: { label: "micro-batches of a step", unit: "count", scale: "log" },
      y: { label: "idle share", unit: "number", scale: "linear" },
      series,
      marks: [{ x: Number(s.micro), y: run.idle, label: `${percent(run.idle, 3)} now` }],
    }, { at: Number(s.micro), alt: own.map(([m, v]) => `${m} micro-batches ${percent(v, 3)}`).join(", "), explain: (m) => {
      const there = COUNTS.map((i) => answers[`m${i}`]).find((a) => a?.request.micro_batches === m);
      return there && `a step of ${seconds(there.runs[0].makespan_s)}, ${plain(there.runs[0].peak_micro_batches)} micro-batches held`;
    } });
  },
  compare(view, all, run, change) {
    if (!all) return;
    const least = Math.min(...all.runs.map((r) => r.makespan_s));
    view.table("schedules", {
      caption: `Schedules compared: ${many(all.request.stages, "stage")}, ${many(all.request.micro_batches, "micro-batch", "micro-batches")}`,
      columns: ["Schedule", ...["Step", "Idle", "Bubble", "Closed form", "With barrier", "Held", "Activations"].map((n) => ({ name: n, align: "right" })), "How"],
      rows: all.runs.map((r) => ({
        class: r.schedule === run.schedule ? "best" : null,
        cells: [
          el("button", { type: "button", class: "quiet pick", "aria-pressed": String(r.schedule === run.schedule), onclick: () => change("schedule", r.schedule, true) }, NAMES[r.schedule][0]),
          seconds(r.makespan_s) + (r.makespan_s === least ? " (shortest)" : ""), percent(r.idle, 3), seconds(r.bubble_s), r.closed_bubble_s === null ? "–" : seconds(r.closed_bubble_s), seconds(r.barrier_bubble_s), plain(r.peak_micro_batches), bytes(r.peak_bytes), el("span", { class: "pipeline-how" }, NAMES[r.schedule][1]),
        ],
      })),
    });
    view.note("schedules-note", "Bubble: idle time of the busiest stage when its next step starts as soon as it is done; with a barrier all wait for the last. Held: micro-batches whose activations the fullest stage keeps at once.");
    if (all.left_out.length) view.note("left-out", all.left_out.map(leftOut).join(" "));
  },
  /** What was answered for each number of stages, in the first way of sharing that the model allows. */
  layouts(answers, what) {
    for (const split of SPLITS) {
      const found = DEPTHS.map((pp) => [pp, answers[`${what}-${split}${pp}`]]).filter(([, a]) => a);
      if (found.length) return found;
    }
    return [];
  },
  memory(view, answers, s) {
    view.heading("memory-title", "Memory of a chip against stages");
    const found = this.layouts(answers, "serve");
    if (!found.length) {
      const why = Object.values(answers.refused)[0];
      view.note("memory-none", `No layout for these settings: ${[why?.message, why?.hint].filter(Boolean).join("; ")}.`);
      return;
    }
    const rows = found.map(([pp, a]) => {
      const full = a.stages.reduce((x, y) => (y.total_bytes > x.total_bytes ? y : x));
      const weights = full.routed_bytes + full.shared_bytes + full.attention_bytes + full.dense_bytes + full.embedding_bytes + full.other_bytes;
      return { pp, a, full, weights, rest: full.activation_bytes + full.buffer_bytes + full.reserve_bytes, hop: a.traffic.find((t) => t.what.startsWith("hop")) };
    });
    const [first, last] = [rows[0], rows[rows.length - 1]];
    const [{ a }] = rows;
    view.reading(`From ${first.pp} to ${last.pp} stages the weights of a chip go from ${bytes(first.weights)} to ${bytes(last.weights)}, its cache from ${bytes(first.full.kv_bytes)} to ${bytes(last.full.kv_bytes)}: ${last.pp} times the stages hold ${last.pp} times the sequences${rows.some((r) => !r.a.fits) ? `. ${rows.every((r) => !r.a.fits) ? "No number of stages fits" : `It fits from ${rows.find((r) => r.a.fits).pp} stages on`}` : ""}.`, "memory-reading");
    const of = (pick) => rows.map((r) => [r.pp, pick(r)]);
    view.chart("memory", {
      title: `Serving ${a.model}: memory of the fullest chip`,
      subtitle: `${s.per} chips a stage (${a.layout}), ${count(Number(s.batch))} sequences of ${count(Number(s.context))} tokens for every stage`,
      x: { label: "pipeline stages", unit: "count", scale: "log" },
      y: { label: "bytes on a chip", unit: "bytes", scale: "linear" },
      series: [
        { name: "weights", role: "weights", points: of((r) => r.weights) },
        { name: "KV cache", role: "kv", points: of((r) => r.full.kv_bytes) },
        { name: "activations, buffers, reserve", role: "compute", points: of((r) => r.rest) },
        { name: "all", role: "envelope", points: of((r) => r.full.total_bytes) },
        { name: "memory of a chip", role: "floor", points: of((r) => r.a.capacity_bytes) },
      ],
      marks: [],
    }, { at: Number(s.stages) <= 16 ? Number(s.stages) : undefined, alt: rows.map((r) => `${r.pp} stages: weights ${bytes(r.weights)}, cache ${bytes(r.full.kv_bytes)}, all ${bytes(r.full.total_bytes)}`).join("; "), explain: (pp) => rows.find((r) => r.pp === pp)?.a.verdict });
    view.equation("cancel", {
      title: "Why the stages cancel for the cache",
      tex: String.raw`c = \frac{N w + B\,L\,kv}{E\,P}, \quad B = P\,b \quad\Rightarrow\quad c = \underbrace{\frac{N w}{E\,P}}_{\text{falls with } P} + \underbrace{\frac{b\,L\,kv}{E}}_{\text{does not}}`,
      values: [...new Set([rows[0], rows[Math.floor(rows.length / 2)], rows[rows.length - 1]])].map((r) => String.raw`P=${r.pp}:\ ${tex(bytes(r.weights))} + ${tex(bytes(r.full.kv_bytes))}`).join(String.raw`\quad `),
      note: "N parameters of w bytes, B sequences of L tokens in flight, kv bytes of cache per token, E chips of a stage, b sequences of a micro-batch. A full pipe has as many micro-batches as stages: P times fewer layers, P times more sequences. The equation divides all weights; of attention shared by data every chip of a stage has a copy. Embeddings and layers without experts stay at the two ends, so the weights of a chip fall by more or by less than P, as it stands between them or there.",
    });
    const trained = this.layouts(answers, "train");
    if (trained.length > 1) this.trained(view, trained, s);
    view.table("hops", {
      caption: "Serving, by number of stages",
      columns: [{ name: "Stages", align: "right" }, { name: "Chips", align: "right" }, { name: "Weights", align: "right" }, { name: "Cache", align: "right" }, { name: "All", align: "right" }, "Fits", { name: "One hop sends", align: "right" }, { name: "at full bandwidth", align: "right" }, { name: "predicted", align: "right" }, "over"],
      rows: rows.map((r) => [String(r.pp), count(r.a.chips), bytes(r.weights), bytes(r.full.kv_bytes), bytes(r.full.total_bytes), r.a.fits ? "yes" : "no", r.hop ? bytes(r.hop.bytes) : "–", r.hop?.seconds ? seconds(r.hop.seconds) : "–", r.hop?.predicted_s ? seconds(r.hop.predicted_s) : "–", r.hop?.network ?? "–"]),
    });
  },
  trained(view, found, s) {
    const rows = found.map(([pp, a]) => ({ pp, a, full: a.stages.reduce((x, y) => (y.total_bytes > x.total_bytes ? y : x)) }));
    const of = (pick) => rows.map((r) => [r.pp, pick(r)]);
    const [{ a }] = rows;
    view.chart("train-memory", {
      title: `Training ${a.model}: memory of the fullest chip`,
      subtitle: `1F1B, sequences of ${count(Number(s.sequence))} tokens, four micro-batches a stage, recomputing ${{ none: "nothing", selective: "attention scores", full: "whole layers" }[s.recompute]}`,
      x: { label: "pipeline stages", unit: "count", scale: "log" },
      y: { label: "bytes on a chip", unit: "bytes", scale: "linear" },
      series: [
        { name: "weights, gradients, optimizer", role: "weights", points: of((r) => r.full.weight_bytes + r.full.gradient_bytes + r.full.optimizer_bytes) },
        { name: "activations in flight", role: "kv", points: of((r) => r.full.activation_bytes) },
        { name: "all", role: "envelope", points: of((r) => r.full.total_bytes) },
        { name: "memory of a chip", role: "floor", points: of((r) => r.a.capacity_bytes) },
      ],
      marks: [],
    }, { at: Number(s.stages), alt: rows.map((r) => `${r.pp} stages: ${bytes(r.full.total_bytes)}, of which activations ${bytes(r.full.activation_bytes)}`).join("; "), explain: (pp) => { const r = rows.find((x) => x.pp === pp); return r && `${r.a.layout}: ${r.a.fits ? "fits" : "does not fit"}, a step takes ${seconds(r.a.step_s)}`; } });
    view.note("train-note", "The same happens in training: the first stage holds as many micro-batches as there are stages, so activations stay while weights, gradients and optimizer states are divided.");
  },
  command(s) {
    const f = factors(s);
    const time = (v) => `${Number(v)}s`;
    return ["rackmath pipeline", "-s", s.schedule, "--stages", s.stages, "-m", s.micro, "--virtual-stages", s.chunks, "--forward", time(s.forward), "--input-grad", time(s.input), "--weight-grad", time(s.weight),
      ...(Number(s.hop) ? ["--hop", time(s.hop)] : []), ...(f.length ? ["--stage-factors", quote(f.join(","))] : []), "--activation", `${Number(s.activation)}B`, ...(Number(s.hidden) ? ["--hidden", s.hidden] : [])].join(" ");
  },
};

/** What the shortest time takes for granted: how the passes are cut, and what a stage holds. */
function kept(run) {
  const whole = run.cells.some((c) => c.kind === "BW") || !run.cells.some((c) => c.kind === "W");
  const chunks = 1 + Math.max(...run.cells.map((c) => c.chunk));
  return `with backward passes ${whole ? "in one piece" : "cut in two"} and ${chunks === 1 ? "one run of layers on a stage" : "these runs of layers on a stage"}`;
}

/** A schedule that does not take these numbers, in words. */
function leftOut(text) {
  const [, id, given, wanted] = /^(\S+) with (.+); expected (.+)$/.exec(text) ?? [];
  return id ? `${NAMES[id]?.[0] ?? id} is left out: with ${given} it cannot run; it takes ${wanted.replace("devices", "stages")}.` : `Left out: ${text}.`;
}

function reading(run, name, P, M) {
  const idle = percent(run.idle, 3);
  if (run.idle === 0) return `${name} with ${P} stage${P === 1 ? "" : "s"} idles never: there is nobody to wait for.`;
  const hold = `It holds ${plain(run.peak_micro_batches)} micro-batch${run.peak_micro_batches === 1 ? "" : "es"} at once.`;
  const bound = run.lower_bound_s === null || run.makespan_s > run.lower_bound_s * 1.001 ? "" : ` No order is shorter ${kept(run)}; the table below has those that change this.`;
  return `${name} idles ${idle} of the time: ${many(P, "stage")} ${P === 1 ? "waits" : "wait"} for the first micro-batch to come and for the last gradients to go back${M < P ? `, and ${many(M, "micro-batch", "micro-batches")} cannot fill ${P} stages` : ""}. ${hold}${bound}`;
}
