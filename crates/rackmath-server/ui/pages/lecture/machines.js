// Steps 7 to 9: experts on a rack, layers in a row of racks, and what that does not save.

import { bytes, count, digits, many, percent, seconds, tex } from "../../lib/format.js";
import { Slots } from "../../lib/slots.js";
import { MODEL, noun, out, RACK, times, words } from "./batch.js";

const DOMAIN = 72;
const SHARED = 64;
const RACKS = [1, 2, 4];
const DEPTHS = [1, 2, 4, 8];
const COUNTS = [1, 2, 4, 8, 16, 32, 64];

const spread = (s, racks) => ["layout", { setting: { model: MODEL, on: RACK, chips: DOMAIN * racks }, batch: s.batch * racks, context: 4096, degrees: { dp: SHARED * racks, ep: SHARED * racks } }];
const exchange = (a) => a.traffic.filter((x) => /dispatch|combine/.test(x.what)).reduce((sum, x) => sum + (x.seconds ?? 0), 0);
const run = (s, more) => ["pipeline", { schedule: "gpipe", stages: s.stages, micro_batches: s.micro, ...more }];
const piped = (s, pp) => ["layout", { setting: { model: MODEL, on: RACK, chips: SHARED * pp }, degrees: { dp: SHARED, ep: SHARED, pp }, batch: s.batch * pp, context: s.context }];
const fullest = (a) => a.stages.reduce((x, y) => (y.total_bytes > x.total_bytes ? y : x));
// Experts are shared by the chips of a stage; the other weights every chip has a copy of.
const copied = (a) => { const f = fullest(a); return f.shared_bytes + f.attention_bytes + f.dense_bytes + f.embedding_bytes + f.other_bytes; };
const weights = (a) => fullest(a).routed_bytes + copied(a);
const rest = (a) => { const f = fullest(a); return f.activation_bytes + f.buffer_bytes + f.reserve_bytes; };
const where = (a) => { const n = a.stages.indexOf(fullest(a)); return n === 0 ? "the first stage" : n === a.stages.length - 1 ? "the last stage" : `stage ${n + 1} of ${a.stages.length}`; };
const added = (bytes) => String.raw`${tex(bytes[0])} + ${tex(bytes[1])} + ${tex(bytes[2])}`;
const held = (a) => added([fullest(a).routed_bytes, copied(a), fullest(a).kv_bytes].map(bytes));

let grid = null;

export const machines = [
  {
    id: "racks",
    title: "Why a rack is the size of a model's layer",
    practice: { claim: "D20" },
    knobs: { racks: { label: "racks share the experts", of: RACKS, value: 1, show: (v) => (v === 1 ? "one rack" : `${v} racks`) }, batch: { label: "sequences for each rack", min: 64, max: 16_384, scale: "log", value: 8192 } },
    requests: (s) => ({ now: spread(s, s.racks), all: RACKS.map((racks) => spread(s, racks)), chip: ["chips", { names: ["gb200"] }] }),
    tell(t, { now, all, chip }, s) {
      const { experts: e } = now;
      const beta = chip.chips[0]?.beta;
      t.say(words`Large models are made of experts: in every layer a token goes to a few of them only. ${out(now.model)} sends it to ${out(count(e.top_k))} of ${out(count(e.experts))}. Put a few experts on each chip, and every layer becomes an exchange: each chip sends its tokens to the chips of their experts and gets the results back.`);
      t.say(words`Let ${"racks"} share the experts, on ${out(String(SHARED))} of the ${out(String(DOMAIN))} chips of each, so that every chip gets as many. With ${"batch"} people for each rack, a chip holds ${out(many(e.slots_per_chip, "expert"))} of a layer, a token visits ${out(digits(e.destinations))} chips, and the exchange takes at least ${out(seconds(exchange(now)))} of a step.`);
      t.chart("exchange", exchanges(all), { at: s.racks, alt: all.map((a, i) => `${RACKS[i]} racks: ${seconds(exchange(a))}`).join(", ") });
      t.reading(s.racks === 1
        ? "Inside one rack every chip reaches every other at full speed, which is just what an exchange of all with all needs."
        : `${percent((s.racks - 1) / s.racks)} of the exchange now leaves the rack, over a network ${beta ? digits(beta) : "many"} times slower: ${times(exchange(now) / exchange(all[0]))} the time of one rack. That is why an expert layer ends where the rack ends.`);
      t.equation({
        tex: String.raw`\frac{t_{\text{across}}}{t_{\text{inside}}} = \beta\,\frac{R - 1}{R}`,
        values: s.racks === 1 ? String.raw`R = 1:\ ${tex("nothing leaves the rack")}` : String.raw`${tex(beta ? digits(beta) : "β")} \times \frac{${s.racks} - 1}{${s.racks}} = ${tex(digits(e.slowdown))}`,
        letters: [["R", "racks that share a layer", String(s.racks)], [String.raw`\beta`, "speed inside a rack over speed between racks, for a chip", beta ? digits(beta) : "not known"]],
        note: "The equation counts only what leaves the rack. The figure adds what stays inside, and that a token finds fewer of its experts on the same chip when there are more chips. A larger rack also reads faster: all its chips read their part of the weights at once. Stages in other racks add room, but they take turns.",
      });
    },
    command: (s) => `rackmath layout ${MODEL} --on ${RACK} --chips ${DOMAIN * s.racks} --dp ${SHARED * s.racks} --ep ${SHARED * s.racks} -b ${s.batch * s.racks} -c 4096`,
  },
  {
    id: "pipeline",
    title: "Layers in a row, and the bubble",
    practice: { claim: "D28" },
    knobs: { stages: { label: "stages", min: 1, max: 8, value: 4 }, micro: { label: "micro-batches", min: 1, max: 32, value: 4 } },
    requests: (s) => ({ grid: run(s), counts: COUNTS.map((micro_batches) => run(s, { micro_batches })) }),
    tell(t, { grid: now, counts }, s) {
      const [own] = now.runs;
      t.say(words`A model too large for one rack can be cut by layers: ${"stages"} ${noun(s.stages, "stage", "stages")}, each a rack of its own, one handing to the next. In training the batch is cut as well, into ${"micro"} ${noun(s.micro, "micro-batch", "micro-batches")} that follow each other down the row and come back up as gradients.`);
      grid ??= new Slots("Training step");
      grid.show(own, { title: `${many(s.stages, "stage")}, ${many(s.micro, "micro-batch", "micro-batches")}`, note: "time from left to right; what is bare is idle", chunks: "" });
      t.node("grid", grid.node);
      t.say(words`The first stage waits for the last to finish before the weights may change, so the corners of the picture stay empty. They are ${out(percent(own.idle, 3))} of all the time that is paid for.`);
      t.chart("idle", idle(counts, s), { at: s.micro, alt: counts.map((a) => `${a.request.micro_batches} micro-batches: ${percent(a.runs[0].idle, 3)} idle`).join(", ") });
      t.reading(own.idle > 0.2 ? "More micro-batches shrink the bubble, but they need a larger batch, and each stage must hold what it will need on the way back." : own.idle > 0 ? "With so many micro-batches the bubble hardly matters; what matters is that they are held until their gradients come back." : "With one stage there is nobody to wait for.");
      t.equation({
        tex: String.raw`\text{idle} = \frac{P - 1}{M + P - 1}`,
        values: String.raw`\frac{${s.stages} - 1}{${s.micro} + ${s.stages} - 1} = ${tex(percent(own.idle, 3))}`,
        letters: [["P", "stages", String(s.stages)], ["M", "micro-batches", String(s.micro)]],
        note: "Cleverer orders of the same passes (1F1B, zero bubble, DualPipe) are on the workbench.",
      });
    },
    command: (s) => `rackmath pipeline --schedule gpipe --stages ${s.stages} --micro-batches ${s.micro}`,
  },
  {
    id: "memory",
    title: "What stages cannot save",
    practice: { claim: "D33" },
    knobs: { batch: { label: "sequences of a stage", min: 64, max: 16_384, scale: "log", value: 2048 }, context: { label: "tokens of context", min: 1024, max: 131_072, scale: "log", value: 16_384 } },
    requests: (s) => ({ depths: DEPTHS.map((pp) => piped(s, pp)) }),
    tell(t, { depths }, s) {
      const [one] = depths;
      const last = depths.at(-1);
      t.say(words`When a model serves people there is no barrier: a full pipeline always has work in every stage. Then each of ${out(count(DEPTHS.at(-1)))} stages holds an eighth of the layers, and yet a chip does not get by with an eighth of the memory.`);
      t.say(words`Give every stage ${"batch"} people with ${"context"} tokens. From one stage to eight, the weights of the fullest chip go from ${out(bytes(weights(one)))} to ${out(bytes(weights(last)))}; its caches from ${out(bytes(fullest(one).kv_bytes))} to ${out(bytes(fullest(last).kv_bytes))}.`);
      t.chart("stages", stages(depths, s), { alt: depths.map((a, i) => `${DEPTHS[i]} stages: weights ${bytes(weights(a))}, cache ${bytes(fullest(a).kv_bytes)}`).join("; ") });
      t.reading(!depths.some((a) => a.fits)
        ? `This fits with no number of stages: the fullest chip would hold ${bytes(Math.min(...depths.map((a) => fullest(a).total_bytes)))} or more, and it has ${bytes(one.capacity_bytes)}.`
        : fullest(one).kv_bytes > weights(one)
        ? "The caches are the larger part here, and stages leave them as they are: fewer layers on each chip, but as many more people in the pipe."
        : "The weights shrink, the caches stay: fewer layers on each chip, but as many more people in the pipe.");
      t.equation({
        tex: String.raw`\frac{X}{E\,P} + \frac{C}{P} + \frac{(P\,b)\,L\,kv}{E\,P} = \frac{X}{E\,P} + \frac{C}{P} + \frac{b\,L\,kv}{E}`,
        values: String.raw`P = 1:\ ${held(one)}, \quad P = ${DEPTHS.at(-1)}:\ ${held(last)}`,
        letters: [["P", "stages", "1 to 8"], ["X", "weights of all experts, shared by the chips of a stage", bytes(fullest(one).routed_bytes * SHARED)], ["C", "the other weights, of which every chip has a copy", bytes(copied(one))], ["E", "chips of a stage", String(SHARED)], ["b", "people for each stage", count(s.batch)], ["L", "tokens of context", count(s.context)]],
        note: `So caches can be shared neither by a larger batch nor by more stages. The weights of a chip fall by eight only on average, since the embeddings and the first layers, which have no experts, stay at the two ends. With eight stages the fullest chip is in ${where(last)}: its weights fall by ${digits(weights(one) / weights(last))}. A chip holds ${bytes(rest(last))} more for what passes through it and in reserve.`,
      });
    },
    command: (s) => `rackmath layout ${MODEL} --on ${RACK} --chips ${SHARED * 8} --dp ${SHARED} --ep ${SHARED} --pp 8 -b ${s.batch * 8} -c ${s.context}`,
  },
];

function exchanges(all) {
  const of = (pick) => all.map((a, i) => [RACKS[i], pick(a)]);
  return {
    title: `Exchange of a step: ${all[0].model}`, subtitle: "experts spread evenly over the racks, the same people for each rack",
    x: { label: "racks", unit: "count", scale: "log" }, y: { label: "time of the exchange", unit: "seconds", scale: "log" },
    series: [{ name: "sending and fetching, at full bandwidth", role: "envelope", points: of(exchange) }],
    marks: all.map((a, i) => ({ x: RACKS[i], y: exchange(a), label: seconds(exchange(a)) })),
  };
}

function idle(counts, s) {
  return {
    title: "Idle share against micro-batches", subtitle: `${many(s.stages, "stage")}, all forwards and then all backwards`,
    x: { label: "micro-batches of a step", unit: "count", scale: "log" }, y: { label: "idle share", unit: "number", scale: "linear" },
    series: [{ name: "idle", role: "envelope", points: counts.map((a) => [a.request.micro_batches, a.runs[0].idle]) }], marks: [],
  };
}

function stages(depths, s) {
  const of = (pick) => depths.map((a, i) => [DEPTHS[i], pick(a)]);
  return {
    title: `Memory of the fullest chip: ${depths[0].model}`, subtitle: `${SHARED} chips a stage, ${count(s.batch)} people of ${count(s.context)} tokens for every stage`,
    x: { label: "pipeline stages", unit: "count", scale: "log" }, y: { label: "bytes on a chip", unit: "bytes", scale: "linear" },
    series: [
      { name: "weights", role: "weights", points: of(weights) },
      { name: "caches", role: "kv", points: of((a) => fullest(a).kv_bytes) },
      { name: "activations, buffers, reserve", role: "compute", points: of(rest) },
      { name: "all", role: "envelope", points: of((a) => fullest(a).total_bytes) },
      { name: "memory of a chip", role: "floor", points: of((a) => a.capacity_bytes) },
    ],
    marks: [],
  };
}
