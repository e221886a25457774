// Steps 10 to 12: one budget for training and serving, and what price lists say.

import { bytes, count, digits, params, percent, perMtok, seconds, tex } from "../../lib/format.js";
import { stepped } from "../prices/context.js";
import { card } from "../prices/sheets.js";
import { beyond, noun, out, RACK, times, whole, words } from "./batch.js";

const FRONTIER = "lecture-frontier";
const SHEET = "google-gemini-3.1-pro";
const setting = { model: FRONTIER, on: RACK };
const LAW = "chinchilla-optimum";
const FROM = 1000;
const TO = 2_000_000;
const tokens = (v) => `${params(v)} tokens`;

export const prices = [
  {
    id: "budget",
    title: "One budget for training and serving",
    practice: { claim: "D42" },
    knobs: {
      rate: { label: "tokens a second are served", min: 1e6, max: 1e9, scale: "log", value: 5e7, show: params },
      days: { label: "days of service", min: 7, max: 365, scale: "log", value: 60 },
      size: { label: "parameters used by a token", min: 1e9, max: 1e12, scale: "log", value: 1e11, show: params },
    },
    requests: (s) => ({ life: ["lifecycle", { params: s.size, rate_tokens_per_s: s.rate, model_share: 1, lifetime_days: s.days, law: { law: LAW } }] }),
    tell(t, { life }, s) {
      const { rule } = life;
      const best = life.laws[0]?.optimum;
      t.say(words`A model is trained once and then read by everybody. If ${"rate"} tokens a second are served for ${"days"} days, that is ${out(tokens(life.served_tokens))}. A rule of thumb says that money is well spent when its parts are about equal: as much on training as on reinforcement learning as on serving.`);
      t.say(words`Training costs six operations for each parameter and token, serving two, and serving uses the chips about a third as well. The parameters cancel, and what is left is a rule about tokens: train on ${out(tokens(rule.pretrain_tokens))}. For ${"size"} parameters that is ${out(times(rule.over_training))} the twenty tokens a parameter that would be best if nobody ever used the model.`);
      t.chart("life", life.figure, { from: ["life", "/figure"], at: s.size, ySize: 92, alt: best ? `Cheapest at ${params(best.params)} parameters.` : "" });
      t.reading(best
        ? `${best.params > 1.1 * s.size ? "The scaling law would have a larger model" : best.params < s.size / 1.1 ? "The scaling law would have a smaller model" : life.laws[0].rule_extra < 0.05 ? "The scaling law agrees" : "The scaling law agrees on the size only"}: the same quality comes cheapest with ${params(best.params)} parameters on ${tokens(best.tokens)}. Following the rule costs ${percent(life.laws[0].rule_extra)} more.`
        : "The law has no optimum for these numbers; the rule is all there is.");
      t.equation({
        tex: String.raw`6 N D_{\text{train}} = \frac{2 N D_{\text{serve}}}{\eta} \;\Rightarrow\; D_{\text{train}} = \frac{D_{\text{serve}}}{3\,\eta}`,
        values: String.raw`\frac{${tex(params(life.served_tokens))}}{3 \times ${digits(life.request.eta)}} = ${tex(params(rule.pretrain_tokens))}`,
        letters: [[String.raw`D_{\text{serve}}`, "tokens served", params(life.served_tokens)], [String.raw`\eta`, "how well serving uses the chips, over training", digits(life.request.eta)], [String.raw`D_{\text{train}}`, "tokens to train on", params(rule.pretrain_tokens)], [String.raw`D / 20N`, "over-training", times(rule.over_training)]],
        note: "Equal parts are exact only for costs that rise and fall alike; the curve above is the exact answer of one law, and the workbench has the others.",
      });
    },
    command: (s) => `rackmath lifecycle -n ${params(s.size).replace(" ", "")} --rate ${params(s.rate).replace(" ", "")} --model-share 1 --lifetime-days ${s.days} --law ${LAW}`,
  },
  {
    id: "context",
    title: "Where a price steps up",
    practice: { claim: "D45" },
    knobs: { batch: { label: "sequences in the batch", min: 256, max: 262_144, scale: "log", value: 32_000 }, context: { label: "tokens of context", min: 1000, max: 1_000_000, scale: "log", value: 200_000 } },
    requests: (s) => ({
      curve: ["curve", { setting, over: "context", batch: s.batch, from: FROM, to: TO, points: 100 }],
      step: ["step", { setting, batch: s.batch, context: s.context }],
      shape: ["models", { names: [FRONTIER] }],
    }),
    tell(t, { curve, step, shape }, s) {
      const active = params(shape.models[0].active_params);
      const sheet = card({ sheet: SHEET });
      const [tier] = sheet.tiers;
      // The equation below with the numbers that stand beside it: weights of one byte, this model and this machine.
      const kv = shape.models[0].active_params / (step.ridge * s.context);
      t.say(words`${out(sheet.name)} charges one price up to ${out(count(tier.threshold))} tokens of context and a higher one beyond. Cost has such a bend of its own. As long as multiplying binds, the context costs nothing; once reading the cache takes longer, every token of context does.`);
      t.say(words`Take a model like the lecture's, ${out(active)} parameters in use, in a batch of ${"batch"}. At ${"context"} tokens a token costs ${out(perMtok(step.cost_usd_per_mtok))}, and the machine uses ${out(percent(step.mfu))} of its arithmetic.`);
      t.chart("stairs", stepped(curve.cost, sheet, tier), { at: s.context, alt: "Cost is flat, then rises with the context; the price is a stair." });
      const bend = curve.kinks.find((k) => k.meaning.startsWith("memory-bound"));
      t.reading(beyond(step) ?? (bend ? `For this model the bend lies at ${whole(Number(bend.x.toPrecision(3)))} tokens. A seller with one price for all earns less on everyone to the right of it.` : "With this batch there is no bend in sight: reading binds from the first token on. Try a larger batch."));
      t.say(words`Now turn it round. If a seller of this model on this machine put the step where the cost bends, and that were at ${out(count(Math.round(s.context)))} tokens, a token of context would take about ${out(bytes(kv))} of memory. It is a hint about a model whose makings are secret.`);
      t.equation({
        tex: String.raw`kv = \frac{w}{R}\cdot\frac{N}{L^{*}}`,
        values: String.raw`\frac{${tex("1 byte")}}{${digits(step.ridge)}}\cdot\frac{${tex(active)}}{${tex(count(Math.round(s.context)))}} = ${tex(bytes(kv))}`,
        letters: [["L^{*}", "context at which the price steps up", count(Math.round(s.context))], ["N", "parameters that a token uses, a guess", active], ["w", "bytes of a weight", "1"], ["R", "multiplications in the time of reading one weight", digits(step.ridge)], ["kv", "bytes of cache of a token", bytes(kv)]],
        note: `It takes a very large batch for granted. Prices also follow habit: several sellers have the same two steps. The workbench guesses N from the prices as well, for another chip, and so comes to a somewhat other size.`,
      });
    },
    command: (s) => `rackmath curve ${FRONTIER} --on ${RACK} --over context -b ${s.batch} --from ${FROM} --to ${TO}`,
  },
  {
    id: "lists",
    title: "Reading a price list",
    practice: { claim: "D48" },
    knobs: {
      pass: { label: "tokens of a prompt in one pass", min: 1, max: 16_384, scale: "log", value: 2048 },
      gap: { label: "until the prompt comes again", min: 1, max: 604_800, scale: "log", whole: false, value: 300, show: seconds },
    },
    requests: (s) => ({
      passes: ["curve", { setting, batch: 1024, context: 20_000, over: "pass", from: 1, to: 16_384, points: 100 }],
      decode: ["step", { setting, batch: 1024, context: 20_000 }],
      prompt: ["step", { setting, batch: 1024, context: 20_000, pass: Math.round(s.pass) }],
      cache: ["cache", { setting }],
      first: ["fastmode", { price: 6, speed: 2.5 }],
    }),
    tell(t, { passes, decode, prompt, cache, first }, s) {
      const sheet = card({ sheet: SHEET });
      t.say(words`Three prices stand on every list: for what you send, for what is written, and for what was sent before. ${out(sheet.name)} asks ${out(perMtok(sheet.input_usd_per_mtok))} for input and ${out(digits(sheet.output_usd_per_mtok / sheet.input_usd_per_mtok))} times that for output. Written tokens come one by one, and each needs a step of reading. A prompt goes through ${"pass"} ${noun(Math.round(s.pass), "token", "tokens")} in a pass, and they share it.`);
      t.chart("pass", passes.cost, { from: ["passes", "/cost"], at: s.pass, alt: "Cost of a token falls with the length of the pass to the cost of multiplying." });
      t.reading(`A written token costs ${digits(decode.cost_usd_per_mtok / prompt.cost_usd_per_mtok)} times as much machine time as one of such a pass. Sellers who ask three to six times as much say that their writing is held up by memory.`);
      const now = cache.envelope.find((e) => s.gap >= e.from_s && (e.to_s === null || s.gap < e.to_s)) ?? cache.envelope.at(-1);
      const anew = cache.lines.find((l) => l.id === "rematerialise");
      const name = (id) => cache.lines.find((l) => l.id === id)?.name ?? id;
      t.say(words`The third price is for memory. If the same prompt comes again after ${"gap"}, its cache can wait for it somewhere: in fast and dear memory, in slow and cheap, or nowhere, to be computed anew for ${out(perMtok(anew.retrieve_usd_per_mtok))}. Cheapest at that time: ${out(now.id === "rematerialise" ? "computing it anew" : name(now.id))}.`);
      t.chart("tiers", cache.figure, { from: ["cache", "/figure"], at: s.gap, alt: cache.envelope.map((e) => `${name(e.id)} from ${seconds(e.from_s)}`).join(", ") });
      t.equation({
        tex: String.raw`\frac{P_{\text{out}}}{P_{\text{in}}} = \frac{\text{use in prefill}}{\text{use in decode}}, \qquad T_{\text{hold}} = \frac{C}{W}`,
        values: String.raw`\frac{${tex(perMtok(decode.cost_usd_per_mtok))}}{${tex(perMtok(prompt.cost_usd_per_mtok))}} = ${tex(digits(decode.cost_usd_per_mtok / prompt.cost_usd_per_mtok))}, \qquad ${tex(cache.lines.filter((l) => l.drain_s !== null).slice(0, 3).map((l) => `${l.id} ${seconds(l.drain_s)}`).join(", "))}`,
        letters: [["C/W", "time to read all of a memory once: about as long as it is worth keeping something there", cache.lines.filter((l) => l.drain_s !== null).slice(0, 2).map((l) => `${l.id}: ${seconds(l.drain_s)}`).join("; ")]],
        note: "Five minutes and an hour, the lifetimes that are sold, lie near the drain times of flash and of disks.",
      });
      t.say(words`And the question we began with? Six times the price for two and a half times the speed is a batch ${out(digits(first.batch_ratio))} times smaller, on a machine that in its usual batch reads ${out(digits(first.x))} times as long in caches as in weights. It is a step on a machine, seen through a price.`);
    },
    command: (s) => `rackmath curve ${FRONTIER} --on ${RACK} --over pass -b 1024 -c 20000\nrackmath step ${FRONTIER} --on ${RACK} -b 1024 -c 20000 -p ${Math.round(s.pass)}\nrackmath cache ${FRONTIER} --on ${RACK}`,
  },
];
