// What a fast mode's price says about the batch.

import { digits, percent, tex } from "../../lib/format.js";
import { FAST } from "./sheets.js";

const request = (s) => (s.mode ? { sheet: s.mode } : { price: Number(s.fastprice), speed: Number(s.fastspeed) });
const times = (v) => `${digits(v)} times`;

export const MODES = [["", "as set below"], ...FAST.map((f) => [f.sheet, `${f.sheet} (${digits(f.price)}x at ${digits(f.speed)}x)`])];

export const fast = {
  requests: (s) => ({ fast: ["fastmode", request(s)], lecture: ["lecture", {}] }),

  render(view, { fast: answer, lecture }, s, { requests }) {
    view.reading(`${times(answer.price)} the price for ${times(answer.speed)} the speed: if the batch is the only lever, it is ${times(answer.batch_ratio)} smaller, and no price buys more than ${times(answer.speed_limit)} the speed on this machine.`);
    view.numbers("numbers", [
      ["Batch", `1 in ${digits(answer.batch_ratio)}`, "of the standard mode's"],
      ["x", digits(answer.x), "cache reads over weight reads, standard mode"],
      ["Fastest possible", times(answer.speed_limit), "at any price: 1 + x"],
      ["Slow mode could save", percent(answer.slow_saving), "at most, with an endless batch"],
    ]);
    view.chart("fast", answer.figure, { source: [...requests.fast, "/figure"], explain: (x) => `${times(x)} the speed; the limit is ${times(answer.speed_limit)}`, alt: `The price rises without bound towards ${times(answer.speed_limit)} the speed.` });
    view.equation("fast-eq", {
      title: "Fast mode: you pay for a smaller batch",
      tex: String.raw`s(m) = 1 + x\Bigl(1 - \frac{1}{m}\Bigr), \qquad x = \frac{B\,kv\,L}{w N_{\text{tot}}} = \frac{s-1}{1 - 1/m}, \qquad \frac{B_{\text{std}}}{B_{\text{fast}}} = m\,s`,
      values: String.raw`x = \frac{${digits(answer.speed)} - 1}{1 - 1/${digits(answer.price)}} = ${digits(answer.x)}, \qquad \frac{B_{\text{std}}}{B_{\text{fast}}} = ${digits(answer.price)} \times ${digits(answer.speed)} = ${digits(answer.batch_ratio)}`,
      note: "m is the price and s the speed, both over the standard mode; it holds while memory binds and price follows cost. A small batch still reads every weight, so the weights are what is paid for.",
    });
    view.equation("slow-eq", {
      title: "Slow mode: little is left to save",
      tex: String.raw`\text{saving} \le 1 - \frac{k}{t_w/B + k} = \frac{1}{1 + x}`,
      values: String.raw`\frac{1}{1 + ${digits(answer.x)}} = ${tex(percent(answer.slow_saving, 3))}`,
      note: "Reading the cache and multiplying belong to each sequence; waiting longer shares only the weights.",
    });
    view.table("instead", {
      caption: "What else could explain the same price and speed",
      columns: ["Instead of a smaller batch", { name: "Needs", align: "right" }, "Meaning"],
      rows: [
        ["More chips for the same batch", times(answer.chips_instead), `${percent(answer.scaling_instead, 3)} of their speed-up arrives`],
        ["Better drafts (speculative decoding)", times(answer.accepted_instead), `the tokens per step; the price would pay for ${times(answer.work_instead)} the work of a step`],
        ["Policy", "–", "the multiple says nothing about the machine"],
      ],
    });
    view.table("known", {
      caption: "Fast modes on the price sheets",
      columns: ["Sheet", { name: "Price", align: "right" }, { name: "Speed", align: "right" }, { name: "x", align: "right" }],
      rows: answer.known.map((k) => ({ class: k.sheet === answer.of ? "best" : undefined, cells: [`${k.sheet}, ${k.mode}`, times(k.price), times(k.speed), digits(k.x)] })),
    });
    view.claims("claims", lecture, ["D7", "D8"]);
    view.list("assumptions", "What the numbers assume", ["price follows cost on the same machine", "both modes are memory-bound: compute hides behind reading", "the standard mode's speed is one; sheets state speeds as \"up to\""]);
  },

  command: (s) => (s.mode ? `rackmath fastmode ${s.mode}` : `rackmath fastmode --price ${s.fastprice} --speed ${s.fastspeed}`),
};
