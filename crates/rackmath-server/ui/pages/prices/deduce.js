// What a price sheet says about the model behind it: prior, posterior, and what cannot be told apart.

import { el } from "../../lib/dom.js";
import { bytes, count, digits, params, percent, perMtok, tex } from "../../lib/format.js";
import { intervals, share } from "./bars.js";
import { deduceFlags, deduceRequest } from "./sheets.js";

const SHOW = { parameters: params, "B/token": bytes, sequences: (v) => count(Number(v.toPrecision(3))) };
const shown = (u, v) => (u.id === "mfu" ? percent(v, 3) : (SHOW[u.unit] ?? digits)(v));
const whole = (text) => el("span", { class: "prices-whole" }, text);
const closedValue = (c) => (c.unit === "B/token" ? `${bytes(c.value)}/token` : `${digits(c.value)} ${c.unit}`.trimEnd());

export const deduce = {
  requests: (s) => ({ deduce: ["deduce", deduceRequest(s)], lecture: ["lecture", {}] }),

  render(view, { deduce: answer, lecture }, s, { requests }) {
    const active = answer.unknowns.find((u) => u.id === "active");
    const markup = answer.unknowns.find((u) => u.id === "markup");
    const mfu = answer.unknowns.find((u) => u.id === "mfu");
    if (answer.refused || !active) {
      view.reading(answer.refused ?? "There is no posterior.");
      return;
    }
    if (!answer.data.length) view.reading("No price is given, so nothing is learned: pick a sheet or type a price. Prior and posterior are the same.");
    else {
      view.reading(`${answer.title}: ${params(active.p50)} active parameters, 80 % between ${params(active.p10)} and ${params(active.p90)}; ${digits(active.bits)} bits were learned.${
        active.truth ? ` The true number is ${params(active.truth)}, ${active.inside ? "inside" : "outside"} the interval.` : ` Size and mark-up trade against each other (correlation ${digits(answer.ridge.active_with_markup, 2).replace("-", "−")}).`}`);
    }
    if (answer.blind) view.note("blind", `The median price of ${answer.blind.hosts} hosts: ${perMtok(answer.blind.input_usd_per_mtok)} for input, ${perMtok(answer.blind.output_usd_per_mtok)} for output. The model's architecture was not looked at.`);
    view.numbers("numbers", [
      ["Active parameters", params(active.p50), `80 %: ${params(active.p10)} to ${params(active.p90)}`],
      ["Total parameters", params(answer.unknowns[1].p50), `80 %: ${params(answer.unknowns[1].p10)} to ${params(answer.unknowns[1].p90)}`],
      ["Mark-up on cost", `${digits(markup.p50)} times`, `80 %: ${digits(markup.p10)} to ${digits(markup.p90)}`],
      ["Sold by", answer.seller, ""],
    ]);
    if (answer.warnings.length) view.note("warnings", `Careful: ${answer.warnings.join("; ")}.`);
    view.table("unknowns", {
      caption: "Every unknown: after seeing the prices (thick), and before (thin); the tick is the median, the bar holds 80 %",
      columns: ["Unknown", "Picture", { name: "After: median (80 %)", align: "right" }, { name: "Before: median (80 %)", align: "right" }, { name: "Bits learned", align: "right" }, ...(answer.blind ? ["Truth"] : [])],
      rows: answer.unknowns.map((u) => {
        const words = (m, l, h) => `${shown(u, m)} (${shown(u, l)} to ${shown(u, h)})`;
        const after = words(u.p50, u.p10, u.p90);
        const before = words(u.prior_p50, u.prior_p10, u.prior_p90);
        return [u.name, intervals({ log: true, before: [u.prior_p10, u.prior_p50, u.prior_p90], after: [u.p10, u.p50, u.p90], truth: u.truth, label: `${u.name}: ${after}, before ${before}${u.truth ? `, truth ${shown(u, u.truth)}` : ""}` }),
          whole(after), whole(before), digits(u.bits, 2), ...(answer.blind ? [u.truth === null ? "–" : `${shown(u, u.truth)}, ${u.inside ? "inside" : "outside"}`] : [])];
      }),
    });
    view.chart("active", answer.figure, { source: [...requests.deduce, "/figure"], title: "Active parameters, before and after the prices", alt: answer.figure.marks[0]?.label });
    view.chart("ridge", answer.ridge_figure, { source: [...requests.deduce, "/ridge_figure"], explain: () => "along the line of the same input price, a larger model with a smaller mark-up fits as well", title: "The ridge: active parameters against mark-up", alt: `Regions that hold 80 %; ${answer.ridge_figure.marks[0]?.label ?? ""}` });
    view.equation("ridge-eq", {
      title: "Why the ridge is there",
      tex: String.raw`P_{\text{in}} = m \cdot \frac{p_{\text{chip}}}{u}\cdot\frac{2 N_{\text{act}}}{\text{MFU}\cdot F}, \qquad p(\theta \mid \text{prices}) \propto p(\text{prices} \mid \theta)\,p(\theta)`,
      values: String.raw`m = ${tex(digits(markup.p50))},\quad N_{\text{act}} = ${tex(params(active.p50))},\quad \text{MFU} = ${tex(percent(mfu.p50, 3))}\quad\text{(medians, each by itself)}`,
      note: "Mark-up m, chip price p, share of time that serves u, MFU (share of the peak that is used) and active parameters enter the input price as one product. Prices alone leave the ridge; what hosts of open models charge cuts it.",
    });
    if (answer.data.length) {
      view.table("data", {
        caption: "What each price taught",
        columns: ["Price", { name: "Bits on active parameters", align: "right" }, { name: "Bits on KV bytes", align: "right" }, { name: "Chance it is habit", align: "right" }, "Cannot tell"],
        rows: answer.data.map((d) => [d.name, digits(d.bits_active < 1e-6 ? 0 : d.bits_active, 2), digits(d.bits_kv < 1e-6 ? 0 : d.bits_kv, 2), d.policy === null ? "–" : percent(d.policy), d.cannot_tell]),
      });
    }
    if (answer.closed.length) {
      view.table("closed", {
        caption: "What the lecture's formulas would read off",
        columns: ["What", "Formula", { name: "Value", align: "right" }, "Holds if"],
        rows: answer.closed.map((c) => [c.what, c.formula, closedValue(c), c.note]),
      });
    }
    const shares = [...answer.widths.map((w) => [`weights in ${w.name}`, w]), ...answer.tiers.map((t) => [`cache kept in ${t.name}`, t]), ["dense, not a mixture of experts", answer.dense]];
    view.table("shares", {
      caption: "Either, or: chance after (bar) and before (line)",
      columns: ["What", "Picture", { name: "After", align: "right" }, { name: "Before", align: "right" }],
      rows: shares.map(([what, w]) => [what, share({ before: w.prior, after: w.posterior, label: `${what}: ${percent(w.posterior)}, before ${percent(w.prior)}` }), percent(w.posterior, 3), percent(w.prior, 3)]),
    });
    if (answer.shapes.length) {
      view.table("shapes", {
        caption: `Shapes that store about as much (${answer.shapes_of})`,
        columns: [{ name: "Cache per token", align: "right" }, "Shape"],
        rows: answer.shapes.map((x) => [bytes(x.kv_bytes_per_token), x.shape]),
      });
    }
    if (answer.policies.length) view.list("policies", "Habits of the seller, which say nothing about the model", answer.policies);
    view.list("cannot", "What prices cannot tell", answer.cannot_tell);
    view.claims("claims", lecture, ["D45", "D46", "D48", "D53"]);
    view.list("assumptions", "What the numbers assume", [...answer.assumptions, `${count(answer.sampler.points)} points drawn from the prior, worth ${count(Math.round(answer.sampler.ess))} after weighing`]);
    view.list("sources", "Where it comes from", answer.sources);
  },

  command: (s) => ["rackmath deduce", ...deduceFlags(s)].join(" "),
};
