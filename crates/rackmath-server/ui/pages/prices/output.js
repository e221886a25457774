// Why output costs more than input: one pass over a prompt shares the reading, one decoded token does not.

import { setting, settingFlags } from "../../lib/controls.js";
import { count, digits, percent, perMtok, seconds, tex } from "../../lib/format.js";
import { swing } from "./bars.js";
import { card, evidence } from "./sheets.js";

const LONGEST = 16_384;
const at = (s) => ({ setting: setting(s), batch: Number(s.batch), context: Number(s.context) });
const cost = (s) => ({ setting: setting(s), utilisation: Number(s.use), hit: Number(s.hits), ...(s.sheet ? { sheet: s.sheet } : {}) });

// The last answer stays on the board while the next is on its way.
let last = null;

export const output = {
  requests: (s) => ({
    passes: ["curve", { ...at(s), over: "pass", from: 1, to: LONGEST, points: 120 }],
    decode: ["step", at(s)],
    prefill: ["step", { ...at(s), pass: Number(s.pass) }],
    contexts: ["curve", { setting: setting(s), batch: Number(s.batch), pass: Number(s.pass), over: "context", from: 1000, to: 10_000_000, points: 100 }],
    cost: ["cost", cost(s)],
    closed: s.sheet && ["deduce", evidence(s)],
    lecture: ["lecture", {}],
  }),

  render(view, { passes, decode, prefill, contexts, cost: fresh, closed, lecture }, s, { requests }) {
    const sheet = card(s);
    last = fresh ?? last;
    const sold = sheet ? sheet.output_usd_per_mtok / sheet.input_usd_per_mtok : null;
    const priced = decode.cost_usd_per_mtok !== null;
    const ratio = priced ? decode.cost_usd_per_mtok / prefill.cost_usd_per_mtok : decode.time_s * Number(s.pass) / prefill.time_s;
    const bend = passes.kinks.find((k) => k.meaning.startsWith("compute-bound"));
    view.reading(`A decoded token takes ${digits(ratio)} times the machine time of a prompt token in a pass of ${count(Number(s.pass))}: decoding is ${decode.binding.startsWith("memory") ? "memory-bound" : "compute-bound"}, the pass over the prompt ${prefill.binding.startsWith("memory") ? "memory-bound" : "compute-bound"}.${sheet ? ` ${sheet.name} charges ${digits(sold)} times.` : ""}`);
    const mfu = closed?.closed.find((c) => c.id === "mfu_from_ratio");
    const pair = closed?.closed.find((c) => c.id === "batch_from_ratio");
    view.numbers("numbers", [
      ["Decoded token", priced ? perMtok(decode.cost_usd_per_mtok) : seconds(decode.time_s), `at best, batch ${count(decode.batch)}, context ${count(decode.context)}`],
      ["Prompt token", priced ? perMtok(prefill.cost_usd_per_mtok) : seconds(prefill.time_s), `at best, pass of ${count(Number(s.pass))}`],
      ["Pass where it bends", bend ? `${digits(bend.x)} tokens` : decode.binding === "compute" ? "below one" : "beyond", "compute binds from there"],
      ["Decode MFU", percent(decode.mfu), "of the dense peak"],
      ["Sold at", sold ? `${digits(sold)} times` : "–", sheet ? `${perMtok(sheet.output_usd_per_mtok)} out, ${perMtok(sheet.input_usd_per_mtok)} in` : "no sheet picked"],
      ["MFU the prices imply", mfu ? percent(mfu.value) : "–", mfu ? "of prefill's, if prices were cost" : ""],
    ]);
    const explain = (from) => (x) => {
      const row = from.rows.reduce((a, b) => (Math.abs(Math.log(b.x / x)) < Math.abs(Math.log(a.x / x)) ? b : a));
      return `${row.binding} binds${row.mfu < 0.995 ? `, ${percent(row.mfu)} of the peak is used` : ""}`;
    };
    view.chart("pass", passes.cost ?? passes.time, { source: [...requests.passes, passes.cost ? "/cost" : "/time"], at: Number(s.pass), explain: explain(passes), title: "Cost of a token against the length of the pass", alt: "Reading weights and cache is shared by all tokens of a pass, multiplying is not." });
    view.equation("pass-eq", {
      tex: String.raw`t_{\text{token}}(q) = \max\Bigl(\,\underbrace{\tfrac{2 N_{\text{act}} + \dots}{F}}_{\text{compute}},\ \tfrac{1}{q}\Bigl(\underbrace{\tfrac{w N_{\text{read}}}{B\,W}}_{\text{weights}} + \underbrace{\tfrac{kv\,L}{W}}_{\text{cache}}\Bigr)\Bigr), \qquad r = \frac{P_{\text{out}}}{P_{\text{in}}}`,
      values: String.raw`q = 1: \max\bigl(${tex(seconds(decode.compute_s))},\ ${tex(seconds(decode.weights_s))} + ${tex(seconds(decode.kv_s))}\bigr); \quad q = ${tex(count(Number(s.pass)))}: \max\bigl(${tex(seconds(prefill.compute_s))},\ ${tex(seconds(prefill.weights_s))} + ${tex(seconds(prefill.kv_s))}\bigr)${sold ? String.raw`; \quad r = ${tex(digits(sold))}` : ""}`,
      note: `q tokens of each of B sequences go through in one pass; q = 1 decodes. The times are of whole passes, for all B sequences. If both prices were cost, decode would run at 1/r of prefill's MFU, the share of the peak that is used.${pair ? ` Then the batch would be ${digits(pair.value)} B*: ${pair.note}.` : ""}`,
    });
    view.chart("quadratic", contexts.cost ?? contexts.time, { source: [...requests.contexts, contexts.cost ? "/cost" : "/time"], at: Number(s.context), explain: explain(contexts), title: `A prompt token against the context before it, in passes of ${count(Number(s.pass))}`, alt: "Attention arithmetic grows with the context and in the end dominates." });
    view.note("quadratic-note", `Each new token looks at every token before it, so multiplying grows with the context too. ${contexts.model.startsWith("The lecture") ? "This model is known by its totals only, so its attention arithmetic is not counted: pick a model with layers to see the rise." : "Where the multiply line starts to rise, attention takes as much as everything else."}`);
    if (last) {
      view.heading("serve-title", "What serving costs in practice");
      view.note("serve-note", `${last.model} on ${last.system}: ${perMtok(last.input_usd_per_mtok)} for a computed prompt token, ${perMtok(last.blended_input_usd_per_mtok)} with cache hits, ${perMtok(last.output_usd_per_mtok)} for output; ${digits(last.output_j_per_token)} J for each output token. ${percent(Number(s.use))} of the held time serves.`);
      if (last.margins.length) {
        view.table("margins", {
          caption: "List prices over this cost",
          columns: ["What", { name: "Price", align: "right" }, { name: "Cost", align: "right" }, { name: "Mark-up", align: "right" }, { name: "Gross margin", align: "right" }],
          rows: last.margins.map((m) => [m.what, perMtok(m.price_usd_per_mtok), perMtok(m.cost_usd_per_mtok), `${digits(m.markup)} times`, percent(m.gross_margin, 3)]),
        });
      }
      const ends = last.tornado.flatMap((t) => [t.at_low_usd_per_mtok, t.at_high_usd_per_mtok]).filter((v) => v > 0);
      view.table("tornado", {
        caption: `Which assumption matters most (all tokens together: ${perMtok(last.all_usd_per_mtok)})`,
        columns: ["Assumption", "From, to", "Cost it leads to", { name: "At the first", align: "right" }, { name: "At the second", align: "right" }],
        rows: last.tornado.map((t) => [t.name, `${digits(t.low)} to ${digits(t.high)}`,
          swing({ low: t.at_low_usd_per_mtok, high: t.at_high_usd_per_mtok, at: last.all_usd_per_mtok, least: Math.min(...ends), most: Math.max(...ends), label: `from ${perMtok(t.at_low_usd_per_mtok)} to ${perMtok(t.at_high_usd_per_mtok)}` }),
          perMtok(t.at_low_usd_per_mtok), perMtok(t.at_high_usd_per_mtok)]),
      });
      view.chart("utilisation", last.figure, { source: fresh ? [...requests.cost, "/figure"] : undefined, at: Number(s.use), alt: "Held chips cost the same whether they serve or not." });
    } else {
      view.note("serve-note", "Computing what serving costs…");
    }
    view.claims("claims", lecture, ["D48", "D49"]);
    view.list("assumptions", "What the numbers assume", [...passes.assumptions, ...(last?.assumptions ?? [])]);
  },

  command: (s) => [
    ["rackmath curve", ...settingFlags(s), "--over pass", "-b", s.batch, "-c", s.context, "--from 1 --to", LONGEST, "--points 120"].join(" "),
    ["rackmath cost", ...settingFlags(s), "-u", s.use, "--hit", s.hits, ...(s.sheet ? ["--sheet", s.sheet] : [])].join(" "),
  ].join("\n"),
};
