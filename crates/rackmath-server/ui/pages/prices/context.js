// A price in two steps, the context at which memory overtakes compute, and the cache bytes the step would betray.

import { setting, settingFlags } from "../../lib/controls.js";
import { el } from "../../lib/dom.js";
import { bytes, count, digits, perMtok, percent, seconds, tex } from "../../lib/format.js";
import { card, CARDS, evidence } from "./sheets.js";

const FROM = 1000;
const TO = 2_000_000;
const threshold = (s) => card(s)?.tiers[0]?.threshold ?? 200_000;
const kilo = (v) => count(Number(v.toPrecision(3)));

export const context = {
  requests: (s) => ({
    curve: ["curve", { setting: setting(s), over: "context", batch: Number(s.batch), from: FROM, to: TO, points: 120 }],
    step: ["step", { setting: setting(s), batch: Number(s.batch), context: threshold(s) }],
    closed: s.sheet && ["deduce", evidence(s)],
    lecture: ["lecture", {}],
  }),

  render(view, { curve, step, closed, lecture }, s, { requests, change }) {
    const sheet = card(s);
    const tier = sheet?.tiers[0];
    const kink = curve.kinks.find((k) => k.meaning.startsWith("memory-bound"));
    const betrayed = closed?.closed.find((c) => c.id === "kv_from_step");
    const own = kink
      ? `${curve.model} turns memory-bound at ${kilo(kink.x)} tokens of context with this batch; from there every token of context costs more.`
      : curve.rows[0].binding === "compute"
        ? `${curve.model} stays compute-bound at every context drawn here, so a longer context costs the seller hardly more.`
        : `${curve.model} is memory-bound at every context drawn here with this batch${step.balanced_context > FROM ? "; a larger one would move the crossover into view" : step.balanced_context ? `; its cache outweighs compute from ${kilo(step.balanced_context)} tokens on in any batch` : ""}.`;
    const sold = tier
      ? ` ${sheet.name} raises its price at ${kilo(tier.threshold)}, ${digits(tier.input_usd_per_mtok / sheet.input_usd_per_mtok)} times for input and ${digits(tier.output_usd_per_mtok / sheet.output_usd_per_mtok)} times for output.`
      : sheet ? ` ${sheet.name} has one price for every context.` : "";
    view.reading(own + sold);
    view.numbers("numbers", [
      ["Crossover, tokens", kink ? kilo(kink.x) : "none drawn", `at batch ${count(step.batch)}`],
      ["L*, tokens", step.balanced_context ? kilo(step.balanced_context) : "none", "the same for an endless batch"],
      ["KV per token", bytes(step.memory.kv_bytes_per_token), curve.model],
      ["Price steps at, tokens", tier ? kilo(tier.threshold) : "no step", sheet?.name ?? "no sheet picked"],
      ["KV the step betrays", betrayed ? bytes(betrayed.value) : "–", betrayed ? "a token, if the step is cost" : "no step, nothing betrayed"],
      ["Cost there", step.cost_usd_per_mtok === null ? "no price" : perMtok(step.cost_usd_per_mtok), `a decoded token at ${kilo(step.context)}`],
    ]);
    const explain = (x) => {
      const row = curve.rows.reduce((a, b) => (Math.abs(Math.log(b.x / x)) < Math.abs(Math.log(a.x / x)) ? b : a));
      return `${row.binding} binds${row.mfu < 0.995 ? `, ${percent(row.mfu)} of the peak is used` : ""}${row.fits ? "" : "; this batch does not fit in memory"}`;
    };
    if (curve.cost) view.chart("context-cost", sheet ? stepped(curve.cost, sheet, tier) : curve.cost, { source: sheet ? undefined : [...requests.curve, "/cost"], at: tier ? undefined : step.context, explain, title: `What a token costs, and what it is sold for: ${curve.model} on ${curve.system}`, subtitle: `${curve.cost.subtitle}${sheet ? `; prices of ${sheet.name}` : ""}`, alt: own + sold });
    else view.chart("context-time", curve.time, { source: [...requests.curve, "/time"], at: step.context, explain, alt: own });
    view.equation("cost-context", {
      title: "Cost of a decoded token against its context",
      tex: String.raw`\text{cost}(L) = p \,\max\Bigl(\,\underbrace{\tfrac{2 N_{\text{act}} + \dots}{F}}_{\text{compute}},\ \underbrace{\tfrac{w N_{\text{read}}}{B\,W}}_{\text{weights}} + \underbrace{\tfrac{kv\,L}{W}}_{\text{cache}}\Bigr)`,
      values: String.raw`t_{\text{step}} = \max\bigl(${tex(seconds(step.compute_s))},\ ${tex(seconds(step.weights_s))} + ${tex(seconds(step.kv_s))}\bigr) = ${tex(seconds(step.time_s))}\ \text{for}\ B = ${tex(count(step.batch))},\ L = ${tex(kilo(step.context))}`,
      note: "p dollars per second of the machine, F multiplies and W memory bandwidth of all its chips. Flat while compute binds, then rising with the slope kv/W. A seller who charges one price earns less from some context on; a price in two steps follows the bend.",
    });
    view.equation("kv-step", {
      title: "Turned round: what the step says about the cache",
      tex: String.raw`kv = \frac{w}{R}\cdot\frac{N_{\text{act}}}{L^{*}}, \qquad R = \frac{F}{2}\cdot\frac{w}{W}`,
      values: betrayed ? String.raw`kv = ${tex(`${bytes(betrayed.value)} per token at L* = ${kilo(tier.threshold)}`)}` : undefined,
      note: betrayed ? `${betrayed.note[0].toUpperCase()}${betrayed.note.slice(1)}. Beside it: ${curve.model} stores ${bytes(step.memory.kv_bytes_per_token)} per token.` : "Pick a sheet with a long-context price to turn it round.",
    });
    if (closed?.shapes.length) {
      view.table("shapes", {
        caption: `Shapes that store about as much (${closed.shapes_of})`,
        columns: [{ name: "Cache per token", align: "right" }, "Shape"],
        rows: closed.shapes.map((x) => [bytes(x.kv_bytes_per_token), x.shape]),
      });
    }
    const contradiction = closed?.closed.find((c) => c.id === "step_and_ratio");
    if (contradiction) view.note("contradiction", `Step and output price together: ${contradiction.note}.`);
    view.table("steps", sheets(s.sheet, change));
    view.claims("claims", lecture, ["D44", "D45", "D46", "D47"]);
    view.list("assumptions", "What the numbers assume", [...curve.assumptions, ...(sheet ? [`prices of ${sheet.name}: ${sheet.source}, list of ${sheet.list_from}, checked ${sheet.checked}`] : [])]);
  },

  command: (s) => ["rackmath curve", ...settingFlags(s), "--over context", "-b", s.batch, "--from", FROM, "--to", TO, "--points 120"].join(" "),
};

/** The cost figure with the prices of a sheet drawn as stairs. */
export function stepped(figure, sheet, tier) {
  const stairs = (low, high) => (tier ? [[FROM, low], [tier.threshold, low], [tier.threshold, high], [TO, high]] : [[FROM, low], [TO, low]]);
  return {
    ...figure,
    series: [
      ...figure.series,
      { name: "output price", role: { choice: 1 }, points: stairs(sheet.output_usd_per_mtok, tier?.output_usd_per_mtok) },
      { name: "input price", role: { choice: 5 }, points: stairs(sheet.input_usd_per_mtok, tier?.input_usd_per_mtok) },
    ],
    marks: [...figure.marks, ...(tier ? [{ x: tier.threshold, y: tier.output_usd_per_mtok, label: `price steps up (${kilo(tier.threshold)})` }] : [])],
  };
}

// Made anew only when another sheet is picked.
let made = null;

function sheets(picked, change) {
  if (made?.picked === picked) return made;
  made = {
    picked,
    caption: "Sheets with a long-context price",
    columns: ["Sheet", { name: "Above", align: "right" }, { name: "Input", align: "right" }, { name: "Output", align: "right" }],
    rows: CARDS.filter((c) => c.tiers.length).map((c) => ({
      class: c.id === picked ? "best" : undefined,
      cells: [
        el("button", { type: "button", class: "quiet", onclick: () => change("sheet", c.id, true), "aria-pressed": String(c.id === picked) }, c.name),
        kilo(c.tiers[0].threshold),
        `${perMtok(c.input_usd_per_mtok)} → ${perMtok(c.tiers[0].input_usd_per_mtok)}`,
        `${perMtok(c.output_usd_per_mtok)} → ${perMtok(c.tiers[0].output_usd_per_mtok)}`,
      ],
    })),
  };
  return made;
}
