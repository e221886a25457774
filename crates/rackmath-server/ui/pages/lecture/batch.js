// Steps 1 to 6: what a batch is, what it costs, and what fast mode buys.

import { bytes, count, digits, percent, perMtok, seconds, short, shortPercent, tex } from "../../lib/format.js";
import { balanceFigure } from "../balance.js";

export const MODEL = "deepseek-v3";
export const RACK = "gb200-nvl72";
/** A sentence with knobs, named by plain strings, and numbers that were answered. */
export const words = (strings, ...parts) => ({ strings, parts });
export const out = (text) => ({ out: text });
/** The word after a knob: one person, two people. */
export const noun = (v, one, more) => ({ word: v === 1 ? one : more });
export const times = (v) => `${digits(v)} times`;
export const whole = (v) => count(Math.round(v));
const MOST = 16_384;

const BATCH = { label: "sequences in the batch", min: 1, max: MOST, scale: "log", value: 256 };
const CONTEXT = { label: "tokens of context", min: 128, max: 262_144, scale: "log", value: 4096 };
const multiple = { scale: "log", whole: false, show: short };

const setting = { model: MODEL, on: RACK };
const step = (s) => ["step", { setting, batch: s.batch, context: s.context }];
const curve = (s, more) => ["curve", { setting: { ...setting, ...more }, batch: s.batch, context: s.context, over: "batch", from: 1, to: MOST, points: 100 }];
const terms = (a, bare) => String.raw`\max\bigl(${tex(seconds(bare.compute_s))} + ${tex(seconds(a.compute_s - bare.compute_s))},\ ${tex(seconds(a.weights_s))} + ${tex(seconds(a.kv_s))}\bigr) = ${tex(seconds(a.time_s))}`;
const bound = (a) => (a.compute_s >= a.weights_s + a.kv_s ? "compute" : a.weights_s >= a.kv_s ? "weights" : "cache");

/** What cannot be run has a verdict of its own; null where it fits. */
export function beyond({ memory: m }) {
  if (m.fits) return null;
  const most = m.batch_max === null ? "" : ` At most ${whole(Math.floor(m.batch_max))} such people fit.`;
  return `It does not fit: weights and caches are ${bytes(m.weights_bytes + m.kv_bytes)}, the memory is ${bytes(m.capacity_bytes)}.${most} What is said of more is arithmetic, not a machine.`;
}

const CONTEXTS = [128, 512, 2048, 8192, 16_384, 65_536, 262_144];
const LOADS = [0.1, 0.4, 0.7, 0.9, 0.95, 1, 1.02, 1.05, 1.1, 1.2];
const SEATS = 2000;
const ANSWER = 500;
const station = (s, load) => ["station", { interval_s: s.interval, seats: SEATS, rate_per_s: (load * SEATS) / (s.interval * ANSWER), tokens: ANSWER, requests: 4000 }];

export const batch = [
  {
    id: "question",
    title: "Why does fast mode cost six times as much?",
    practice: { claim: "D7" },
    knobs: {
      speed: { label: "times the speed", min: 1.1, max: 6, value: 2.5, ...multiple },
      price: { label: "times the price", min: 1.2, max: 20, value: 6, ...multiple },
    },
    requests: (s) => ({ fast: ["fastmode", { price: s.price, speed: s.speed }] }),
    tell(t, { fast }, s) {
      t.say(words`Some sellers of language models have a fast mode: the same model, writing ${"speed"} times as many tokens a second to you, at ${"price"} times the price of a token. It is not a better chip, and not a smaller model. So what is it that you buy?`);
      t.say(words`A first answer, which the next eleven steps will earn: you buy fewer neighbours. A machine writes for many people at once, and they share its rent. To write faster it must take fewer of them. If the price follows the cost, the fast batch is ${out(digits(fast.batch_ratio))} times smaller than the usual one, price times speed.`);
      t.chart("modes", fast.figure, { from: ["fast", "/figure"], alt: `A speed of ${short(s.speed)} costs ${short(s.price)} times.` });
      t.reading(`Read from left to right, more speed costs ever more, and there is a wall: with these two numbers no price buys more than ${digits(1 + fast.x)} times the speed.`);
      t.say(words`Drag the two numbers above, or put the cursor on one and use the arrow keys. The wall moves: a mode that is dear for little speed is near it.`);
      t.equation({
        tex: String.raw`\frac{B_{\text{usual}}}{B_{\text{fast}}} = m\,s`,
        values: String.raw`${short(s.price)} \times ${short(s.speed)} = ${tex(digits(fast.batch_ratio))}`,
        letters: [["m", "price over the usual price", short(s.price)], ["s", "speed over the usual speed", short(s.speed)], ["B", "people who are written for in one step; their ratio", digits(fast.batch_ratio)]],
        note: "A token's cost is the machine's time for a step over the batch. A step s times shorter at m times the cost has a batch m s times smaller.",
      });
      t.say(words`Why should a smaller batch be faster at all, and why is there a wall? Both follow from one equation.`);
    },
    command: (s) => `rackmath fastmode --price ${s.price} --speed ${s.speed}`,
  },
  {
    id: "equation",
    title: "One equation: the slower of two things",
    practice: { claim: "D1" },
    knobs: { batch: BATCH, context: CONTEXT },
    // Without context only the weights are multiplied; what a step takes beyond that is attention's own arithmetic.
    requests: (s) => ({ curve: curve(s), step: step(s), bare: step({ ...s, context: 0 }) }),
    tell(t, { curve: a, step: now, bare }, s) {
      t.say(words`To write one token for everybody, a machine reads all the weights of the model from its memory, reads what each person has said so far (the cache), and multiplies. Reading and multiplying go on side by side, so a step takes as long as the slower of the two.`);
      t.say(words`Take ${out(a.model)} on ${out(a.system)} with ${"batch"} ${noun(s.batch, "person", "people")}, each with ${"context"} tokens behind them. Multiplying takes ${out(seconds(now.compute_s))}, reading ${out(seconds(now.weights_s))} for the weights and ${out(seconds(now.kv_s))} for the caches: one step, ${out(seconds(now.time_s))}.`);
      t.chart("time", a.time, { from: ["curve", "/time"], at: s.batch, alt: "Weights are a flat line, cache and compute rise with the batch; the bold line is the slower of reading and multiplying." });
      t.reading(beyond(now) ?? {
        weights: now.weights_s > 0.9 * now.all_weights_s
          ? "Here the weights bind. They are read once however many people there are, so the next person costs almost no time: the bold line is flat."
          : "Here the weights bind, and not all of them: so few people touch only some of the model's experts. Each newcomer brings a few more to read.",
        cache: "Here the caches bind. Each person brings a cache that has to be read in every step, so every further person makes everyone wait.",
        compute: "Here multiplying binds. The machine does all it can; a larger batch makes a step longer by as much as it adds.",
      }[bound(now)]);
      t.equation({
        tex: String.raw`t = \max\Bigl(\tfrac{2 B N + B L\,a}{F},\ \tfrac{w N_{\text{all}} + B L\,kv}{W}\Bigr)`,
        values: terms(now, bare),
        letters: [["B", "people in the batch", count(s.batch)], ["L", "tokens each has behind them", count(s.context)], ["2BN/F", "multiply by the weights: two operations for each parameter that is used", seconds(bare.compute_s)], [String.raw`BL\,a/F`, "multiply by the caches: what attention does with every token behind", seconds(now.compute_s - bare.compute_s)], [String.raw`wN_{\text{all}}/W`, "read the weights that the batch touches", seconds(now.weights_s)], [String.raw`BL\,kv/W`, "read the caches", seconds(now.kv_s)], ["t", "one step: a token for everybody", seconds(now.time_s)]],
        note: "F is what all chips multiply in a second, about half of it for the few weights kept in 16 bits; W is what they read. It is a lower bound: real machines take 1.4 to 4 times as long, for reasons the workbench goes into.",
      });
      t.say(words`The flat part of the bold line, ${out(seconds(now.all_weights_s))}, is one reading of all the weights. A machine that serves many cannot be faster than that, whatever they pay: it is the wall of step 1. Only somebody quite alone gets further down, to ${out(seconds(now.latency_floor_s))}, since one token touches few of the experts.`);
    },
    command: (s) => `rackmath curve ${MODEL} --on ${RACK} --over batch -b ${s.batch} -c ${s.context}`,
  },
  {
    id: "cost",
    title: "What a token costs",
    practice: { claim: "D6" },
    knobs: { batch: BATCH, context: CONTEXT, rent: { label: "dollars per chip and hour", min: 0.5, max: 20, scale: "log", whole: false, value: 4, show: short } },
    requests: (s) => ({ curve: curve(s, { price_usd_per_chip_hour: s.rent }), step: ["step", { setting: { ...setting, price_usd_per_chip_hour: s.rent }, batch: s.batch, context: s.context }] }),
    tell(t, { curve: a, step: now }, s) {
      t.say(words`Rent the rack for ${"rent"} dollars an hour for each of its ${out(count(now.chips))} chips. A step costs the same whoever is on it, so a token costs the step divided by the batch. With ${"batch"} ${noun(s.batch, "person", "people")} at ${"context"} tokens that is ${out(perMtok(now.cost_usd_per_mtok))} (dollars for a million tokens).`);
      t.chart("cost", a.cost, { from: ["curve", "/cost"], at: s.batch, alt: "Cost of a token falls with the batch to a floor." });
      t.reading(beyond(now) ?? (now.cost_usd_per_mtok > 1.5 * now.cost_floor_usd_per_mtok
        ? `Most of that is weights read for too few: the floor is ${perMtok(now.cost_floor_usd_per_mtok)}, ${digits(now.cost_usd_per_mtok / now.cost_floor_usd_per_mtok)} times lower, where only what each person needs for themselves is left.`
        : `This is near the floor of ${perMtok(now.cost_floor_usd_per_mtok)}: what is left is each person's own multiplying and cache, and no company makes that cheaper.`));
      t.equation({
        tex: String.raw`\text{cost} = p\,\frac{t(B)}{B} = p\,\max\Bigl(c,\ \frac{t_w}{B} + k\Bigr)`,
        values: String.raw`${tex(perMtok(now.cost_usd_per_mtok))} = ${tex(`$${short(s.rent)}/h × ${count(now.chips)}`)} \times \frac{${tex(seconds(now.time_s))}}{${tex(count(s.batch))}}`,
        letters: [["p", "rent of all chips", `$${digits(s.rent * now.chips)}/h`], ["t", "one step", seconds(now.time_s)], ["t_w", "reading the weights, shared by all", seconds(now.weights_s)], [String.raw`c B`, "multiplying for everybody, attention's own arithmetic with it", seconds(now.compute_s)], [String.raw`k B`, "reading every cache", seconds(now.kv_s)]],
        note: "Two things are each person's own and cannot be shared: multiplying their token (c) and reading their cache (k).",
      });
      t.say(words`So speed and cost pull on the same lever. A small batch is quick and dear, a large one slow and cheap, and beyond some size a larger one is only slow.`);
    },
    command: (s) => `rackmath curve ${MODEL} --on ${RACK} --over batch -b ${s.batch} -c ${s.context} --price '$${s.rent}/h'`,
  },
  {
    id: "balance",
    title: "How many people fill a machine",
    practice: { claim: "D9" },
    knobs: { context: { ...CONTEXT, value: 1024 } },
    requests: (s) => ({
      step: ["step", { setting, context: s.context }],
      bare: ["step", { setting, context: 0 }],
    }),
    follow({ bare }) {
      const turn = bare.balanced_context;
      const near = turn ? [0.5, 0.7, 0.85, 0.93, 0.97].map((part) => Math.round(turn * part)) : [];
      return { sweep: [...CONTEXTS, ...near].sort((a, b) => a - b).map((context) => ["step", { setting, context }]) };
    },
    tell(t, { step: now, bare, sweep }, s) {
      const product = count(Number((now.ridge * now.sparsity).toPrecision(3)));
      t.say(words`Where multiplying takes as long as reading, nothing idles: that is the batch a seller wants. Without caches it depends on two numbers only. One belongs to the chip: how many multiplications it does in the time it reads one weight, here ${out(digits(now.ridge))}. The other belongs to the model: how many weights it has for each that a token uses, here ${out(digits(now.sparsity))}.`);
      t.say(words`Their product says about ${out(product)} people; it is ${out(bare.balance_batch === null ? "none" : whole(bare.balance_batch))}, since the few weights kept in 16 bits multiply more slowly. Give each ${"context"} tokens of context and their caches are read too: ${out(now.balance_batch === null ? "none is enough" : `${whole(now.balance_batch)} people`)}.`);
      t.chart("balance", balanceFigure(now, bare, sweep, s.context), { at: s.context, alt: "The balance batch rises with the context until no batch balances; memory sets a limit that falls." });
      t.reading(now.balance_batch === null
        ? `At ${count(s.context)} tokens reading a cache takes longer than multiplying its token, so this machine is never full, however many come.`
        : now.memory.batch_max !== null && now.balance_batch > now.memory.batch_max
          ? `Only ${whole(now.memory.batch_max)} such people fit into the memory, fewer than would fill the arithmetic: the machine runs out of room first.`
          : `${whole(now.memory.batch_max ?? Infinity)} such people would fit, more than fill it. A seller with fewer visitors pays for a machine that mostly reads; a large seller has them always.`);
      t.equation({
        tex: String.raw`B^{*} = R\,S,\quad R = \frac{F\,w}{2\,W},\quad S = \frac{N_{\text{all}}}{N}`,
        values: String.raw`${tex(digits(now.ridge))} \times ${tex(digits(now.sparsity))} \approx ${tex(product)}`,
        letters: [["R", "multiplications in the time of reading one weight", digits(now.ridge)], ["S", "weights of the model over weights a token uses", digits(now.sparsity)], ["B^{*}", "people, without caches; less than the product as the weights kept in 16 bits multiply more slowly", bare.balance_batch === null ? "never" : whole(bare.balance_batch)], ["B^{*}(L)", `with ${count(s.context)} tokens each`, now.balance_batch === null ? "never" : whole(now.balance_batch)]],
        note: "The lecture says 300 times the sparsity: R has stayed near 300 for several generations of chips. It counts people who each get one token now, not tokens of text.",
      });
    },
    command: (s) => `rackmath explain balance ${MODEL} --on ${RACK} -c ${s.context}`,
  },
  {
    id: "trains",
    title: "Trains that leave on time",
    practice: { claim: "D12" },
    knobs: { interval: { label: "seconds from train to train", min: 0.002, max: 0.2, scale: "log", whole: false, value: 0.02, show: seconds }, load: { label: "of the seats are asked for", min: 0.1, max: 1.2, whole: false, value: 0.75, show: shortPercent } },
    requests: (s) => ({ now: station(s, s.load), loads: LOADS.map((load) => station(s, load)), step: ["step", { setting, context: 0 }] }),
    tell(t, { now, loads, step: machine }, s) {
      t.say(words`A step is a train. One leaves every ${"interval"}, full or not, with ${out(count(SEATS))} seats, and each passenger gets a token for the ride. Who has just missed one waits for the next and then rides: two intervals at worst, ${out(seconds(now.worst_with_seats_s))}, and one and a half on average, as long as seats are free.`);
      t.say(words`Answers are ${out(count(ANSWER))} tokens long, so a passenger stays for as many trains. When ${"load"} of the seats are asked for, a first token comes after ${out(seconds(now.mean_first_token_s))} on average, and after ${out(seconds(now.p99_first_token_s))} for one in a hundred.`);
      t.chart("waits", waits(loads), { at: now.request.rate_per_s, alt: loads.map((a) => `${digits(a.request.rate_per_s)} requests a second: ${seconds(a.mean_first_token_s)}`).join(", ") });
      t.reading(now.stable
        ? `Up to ${digits(now.sustainable_rate_per_s)} requests a second can be carried for ever; here ${digits(now.request.rate_per_s)} come. Batching costs a request at most one train.`
        : `More come than seats leave: ${digits(now.request.rate_per_s)} a second against ${digits(now.sustainable_rate_per_s)}. The queue grows without end.`);
      t.equation({
        tex: String.raw`\text{rate} = \frac{\text{seats}}{t \times \text{tokens}}, \qquad T_{\text{drain}} = \frac{C}{W}`,
        values: String.raw`\frac{${count(SEATS)}}{${tex(seconds(s.interval))} \times ${ANSWER}} = ${tex(`${digits(now.sustainable_rate_per_s)}/s`)}, \qquad T_{\text{drain}} = ${tex(seconds(machine.memory.drain_s))}`,
        letters: [["t", "from train to train", seconds(s.interval)], [String.raw`T_{\text{drain}}`, "to read all of the rack's memory once", seconds(machine.memory.drain_s)]],
        note: "Why about twenty milliseconds? A step that only reads cannot use more time than it takes to read the whole memory once.",
      });
    },
    command: (s) => `rackmath station --interval ${digits(s.interval * 1e3)}ms --seats ${SEATS} --tokens ${ANSWER} --rate ${digits((s.load * SEATS) / (s.interval * ANSWER))}`,
  },
  {
    id: "fast",
    title: "What fast mode buys on this rack",
    practice: { claim: "D8" },
    knobs: { batch: { ...BATCH, value: 2048 }, context: { ...CONTEXT, value: 16_384 }, price: { label: "times the price", min: 1.2, max: 20, value: 6, ...multiple } },
    requests: (s) => ({ step: step(s), sold: ["fastmode", { price: 6, speed: 2.5 }] }),
    follow: ({ step: now }, s) => ({ fast: ["fastmode", { price: s.price, x: now.kv_s / now.weights_s }] }),
    tell(t, { step: now, sold, fast }, s) {
      t.say(words`Now the first question can be worked out. Say the usual batch on our rack is ${"batch"} ${noun(s.batch, "person", "people")} with ${"context"} tokens each. Reading their caches takes ${out(seconds(now.kv_s))}, reading the weights ${out(seconds(now.weights_s))}. Call the ratio of the two x: ${out(digits(now.kv_s / now.weights_s))}.`);
      t.say(words`Whoever pays ${"price"} times as much gets a batch in which there is less cache to read, and so ${out(times(fast.speed))} the speed. The weights have to be read all the same, and now by fewer: that is what the money is for.`);
      t.chart("buys", fast.figure, { from: ["fast", "/figure"], alt: `Speed saturates at ${digits(1 + fast.x)}.` });
      t.reading(beyond(now) ?? `At most ${digits(1 + fast.x)} times the speed, whatever is paid; and patience is worth little the other way: waiting for ever saves at most ${percent(fast.slow_saving)} of the usual price.`);
      t.equation({
        tex: String.raw`s = 1 + x\Bigl(1 - \frac1m\Bigr), \qquad x = \frac{B\,L\,kv}{w\,N_{\text{all}}}`,
        values: String.raw`s = 1 + ${digits(fast.x)}\,\Bigl(1 - \frac{1}{${short(s.price)}}\Bigr) = ${tex(digits(fast.speed))}`,
        letters: [["x", "reading the caches over reading the weights, in the usual batch", digits(fast.x)], ["m", "price over the usual price", short(s.price)], ["s", "speed over the usual speed", digits(fast.speed)], ["1 + x", "the wall", digits(1 + fast.x)]],
        note: "It holds while memory binds in both modes and price follows cost. A seller may also buy speed with more chips or with drafts (speculative decoding), or price by what people will pay.",
      });
      t.say(words`Turn it round, and a price list tells about the machine: six times the price for two and a half times the speed says that x is ${out(digits(sold.x))}. The last steps read whole price lists this way.`);
    },
    command: (s, { step: now }) => `rackmath step ${MODEL} --on ${RACK} -b ${s.batch} -c ${s.context}\nrackmath fastmode --price ${s.price} --x ${digits(now.kv_s / now.weights_s, 6).replaceAll(",", "")}`,
  },
];

function waits(loads) {
  const line = (name, role, of) => ({ name, role, points: loads.map((a) => [a.request.rate_per_s, of(a)]) });
  return {
    title: "Time to the first token against the load", subtitle: `${count(SEATS)} seats, answers of ${count(ANSWER)} tokens, arrivals at random`,
    x: { label: "requests per second", unit: "number", scale: "linear" }, y: { label: "time to first token", unit: "seconds", scale: "log" },
    series: [line("mean", "envelope", (a) => a.mean_first_token_s), line("one in a hundred", { choice: 1 }, (a) => a.p99_first_token_s), line("with a free seat, mean", "floor", (a) => a.mean_with_seats_s)],
    marks: [],
  };
}
