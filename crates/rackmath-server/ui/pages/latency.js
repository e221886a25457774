// Why batch size rules inference cost: one step against the batch, then the trains that leave on time.

import { KV, setting, settingFlags, WEIGHTS } from "../lib/controls.js";
import { el } from "../lib/dom.js";
import { count, digits, percent, perMtok, seconds, tex } from "../lib/format.js";

const board = (s) => ({ setting: setting(s), batch: Number(s.batch), context: Number(s.context) });

// A train leaves every step; what is on it was waiting when it left. Slowed down so that a person sees it.
const trains = (() => {
  const track = el("div", { class: "track", "aria-hidden": "true" });
  const words = el("p", {});
  const node = el("div", { class: "platform" }, words, track);
  let timer = null;
  let shown = "";
  const leave = (fill) => {
    const train = el("div", { class: "train" }, ...Array.from({ length: 8 }, (_, i) => el("i", { class: (i + 0.5) / 8 < fill ? "full" : null })));
    track.append(train);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const end = track.clientWidth;
    if (still) { while (track.children.length > 1) track.firstChild.remove(); return; }
    train.animate([{ transform: "translateX(-170px)" }, { transform: "translateX(8px)", offset: 0.3, easing: "ease-out" }, { transform: "translateX(8px)", offset: 0.45, easing: "ease-in" }, { transform: `translateX(${end}px)` }], { duration: 3200 }).onfinish = () => train.remove();
  };
  return {
    node,
    show(station, step) {
      const key = JSON.stringify(station.request);
      if (key === shown) return;
      shown = key;
      words.textContent = `A train leaves every ${seconds(step)} with up to ${count(station.request.seats)} seats, full or not. A request waits ${seconds(station.mean_wait_s)} on average and ${seconds(station.worst_wait_s)} at worst for its train, then rides one step to its first token: ${seconds(station.mean_first_token_s)} on average. At ${count(station.request.rate_per_s)} requests per second seats are ${percent(station.fill)} taken${station.stable ? "" : "; more arrive than seats leave, so the queue grows"}.`;
      clearInterval(timer);
      track.replaceChildren();
      leave(station.fill);
      timer = setInterval(() => { if (!document.hidden) leave(station.fill); }, 2400);
    },
    stop() { clearInterval(timer); shown = ""; },
  };
})();

export const page = {
  id: "latency",
  title: "Latency and cost against batch",
  lead: "A step reads every weight once for the whole batch, reads each sequence's own cache, and multiplies. The slower of memory and compute sets the time; the batch decides which.",
  controls: [
    { kind: "model", key: "model", label: "Model", value: "deepseek-v3" },
    { kind: "machine", key: "on", label: "Machine", value: "gb200-nvl72" },
    { kind: "range", key: "batch", label: "Batch", unit: "sequences", min: 1, max: 131072, scale: "log", value: 2048 },
    { kind: "range", key: "context", label: "Context", unit: "tokens", min: 128, max: 1048576, scale: "log", value: 4096 },
    { kind: "select", key: "weights", label: "Weights", options: WEIGHTS, value: "" },
    { kind: "select", key: "kv", label: "KV cache", options: KV, value: "" },
    { kind: "select", key: "counting", label: "Counting", options: [["strict", "strict"], ["lecture", "as on the board"]], words: ["step", "counting"], value: "strict" },
    { kind: "heading", label: "Trains" },
    { kind: "range", key: "load", label: "Load", unit: "of what fits", min: 0.05, max: 1.2, value: 0.75, show: (v) => percent(v), parse: (t) => Number.parseFloat(t) / 100, whole: false },
    { kind: "range", key: "answer", label: "Answer", unit: "tokens", min: 1, max: 10000, scale: "log", value: 500 },
  ],
  later: ["lecture", "station"],
  requests: (s) => ({
    curve: ["curve", { ...board(s), over: "batch", from: 1, to: 131072, points: 140 }],
    step: ["step", board(s)],
    lecture: ["lecture", {}],
  }),
  render(view, { curve, step, station, lecture }, s, { requests, change }) {
    const part = (t) => percent(t / step.time_s);
    const binding = step.compute_s >= step.weights_s + step.kv_s ? "compute" : step.weights_s >= step.kv_s ? "weights" : "cache";
    view.reading({
      compute: `Compute-bound: multiplying takes all of the ${seconds(step.time_s)}; a larger batch makes every user wait longer and saves nothing more.`,
      weights: `Memory-bound: reading the weights takes ${part(step.weights_s)} of the ${seconds(step.time_s)}; more users in the batch share that reading and each token gets cheaper.`,
      cache: `Memory-bound by the cache: reading ${count(step.batch)} caches of ${count(step.context)} tokens takes ${part(step.kv_s)} of the ${seconds(step.time_s)}; a larger batch no longer helps.`,
    }[binding] + (step.memory.fits ? "" : ` It does not fit: ${digits(step.memory.missing_bytes / 1e9)} GB are missing.`));
    view.numbers("numbers", [
      ["One step", seconds(step.time_s), `${digits(step.tokens_per_s_user)} tok/s for each user`],
      ["Throughput", `${count(Math.round(step.tokens_per_s))} tok/s`, `${step.chips} chips`],
      ["Cost", step.cost_usd_per_mtok === null ? "no price" : perMtok(step.cost_usd_per_mtok), step.cost_floor_usd_per_mtok ? `floor ${perMtok(step.cost_floor_usd_per_mtok)}` : ""],
      ["Balance batch", step.balance_batch ? count(Math.round(step.balance_batch)) : "never", "where compute meets memory"],
      ["Latency floor", seconds(step.latency_floor_s), "one sequence, no context"],
      ["Memory", step.memory.fits ? "fits" : "does not fit", `${digits((step.memory.weights_bytes + step.memory.kv_bytes) / 1e9)} of ${digits(step.memory.capacity_bytes / 1e9)} GB`],
    ]);
    const explain = (x) => {
      const row = curve.rows.reduce((a, b) => (Math.abs(Math.log(b.x / x)) < Math.abs(Math.log(a.x / x)) ? b : a));
      return `${row.binding} binds${row.fits ? "" : "; does not fit"}`;
    };
    view.chart("time", curve.time, { source: [...requests.curve, "/time"], at: Number(s.batch), explain });
    view.equation("step", {
      tex: String.raw`t_{\text{step}} = \max\Bigl(\,\underbrace{\tfrac{2\,B\,N_{\text{act}} + \dots}{F}}_{\text{compute}},\ \underbrace{\tfrac{w N_{\text{read}}}{W}}_{\text{weights}} + \underbrace{\tfrac{B\,L\,kv}{W}}_{\text{cache}}\Bigr)`,
      values: String.raw`\max\bigl(${tex(seconds(step.compute_s))},\ ${tex(seconds(step.weights_s))} + ${tex(seconds(step.kv_s))}\bigr) = ${tex(seconds(step.time_s))}`,
      note: "B sequences of L tokens each; F multiplies and W memory bandwidth of all chips together; compute counts attention's arithmetic too. Weights count the experts this batch touches.",
    });
    view.chart("cost", curve.cost, { source: [...requests.curve, "/cost"], at: Number(s.batch), explain });
    view.node("modes", modes(step, change));
    view.table("kinks", {
      caption: "Where the lines change",
      columns: [{ name: "Batch", align: "right" }, "From here"],
      rows: curve.kinks.map((k) => [count(Math.round(k.x)), k.meaning]),
    });
    view.heading("trains-title", "Trains that leave on time");
    if (station) trains.show(station, step.time_s);
    view.node("trains", trains.node);
    view.claims("claims", lecture, ["D1", "D2", "D3", "D5", "D6", "D7", "D8", "D12"]);
    view.list("assumptions", "What the numbers assume", curve.assumptions);
  },
  // The trains run at the speed of the step.
  follow({ step }, s) {
    const seats = Math.max(1, Math.round(step.batch));
    const rate = (Number(s.load) * seats) / (step.time_s * Number(s.answer));
    return { station: ["station", { interval_s: step.time_s, seats, rate_per_s: rate, tokens: Number(s.answer), requests: 20000 }] };
  },
  leave() { trains.stop(); },
  command: (s) => ["rackmath curve", ...settingFlags(s), "--over batch", "-b", s.batch, "-c", s.context].join(" "),
};

/** Fast and slow mode: the same machine at another batch. */
function modes(step, change) {
  const batches = [["Fast mode", Math.max(1, Math.round((step.balance_batch ?? 4096) / 16))], ["Balanced", Math.round(step.balance_batch ?? 4096)], ["Slow mode", Math.round(Math.min(step.memory.batch_max ?? 131072, (step.balance_batch ?? 4096) * 4))]];
  return el("div", { class: "modes" },
    el("p", {}, el("strong", {}, "Fast and slow mode. "), "The same machine sells speed by running small batches, and cheapness by running large ones: "),
    el("p", {}, batches.map(([name, batch]) => [el("button", { type: "button", class: "quiet", onclick: () => change("batch", batch, true) }, `${name}: batch ${count(batch)}`), " "]).flat()));
}
