// Predicted against measured: every published figure we have, how far off we are, and how far the data sheet is.

import { Chart } from "../lib/chart.js";
import { el } from "../lib/dom.js";
import { count, digits, percent } from "../lib/format.js";

// The band drawn around equality.
const BAND = 1.25;
const WORST = 15;

const METRICS = {
  tpot_ms: "time per output token, ms", itl_ms: "time between tokens, ms", ttft_ms: "time to first token, ms", step_ms: "whole step, ms",
  output_tok_s: "output, tok/s", output_tok_s_per_gpu: "output per chip, tok/s", input_tok_s_per_gpu: "input per chip, tok/s", prefill_tok_s: "prompt, tok/s", decode_tok_s: "decode, tok/s",
  gemm_us: "matrix multiply, µs", decode_attention_us: "decode attention, µs", prefill_attention_us: "prefill attention, µs",
};
const metricName = (m) => METRICS[m] ?? m;

const KINDS = [
  ["single kernels", (m) => m.endsWith("_us")],
  ["time to first token", (m) => /ttft|first token|^prompt( seconds)?$/i.test(m)],
  ["whole requests", (m) => m === "E2E"],
  ["time per token or step", (m) => /tpot|itl|step|^token$/i.test(m)],
  ["throughput", (m) => /tok_s|tok\/s|tokens per second|^throughput$|^(prefill|decode)(, batched)?$|^(known batch|max load)$/.test(m)],
  ["memory, speed-ups and others", () => true],
];
const kind = (m) => KINDS.findIndex(([, is]) => is(m));

// Errors are logarithms; people read factors.
const factor = (e) => (e === null || e === undefined ? "–" : `×\u00a0${digits(Math.exp(e))}`);

let tell = null;
let tellMetrics = null;
const sources = new Promise((done) => { tell = done; });
const metrics = new Promise((done) => { tellMetrics = done; });

// The small charts, kept while the page is open.
let small = null;

export const page = {
  id: "validation",
  title: "Predicted against measured",
  lead: "Every published figure in the catalogue, predicted with the same equations as the other pages, beside what was measured and what the data sheet alone would say.",
  controls: [
    { kind: "select", key: "source", label: "Source", value: "", options: [["", "all"]], more: sources },
    { kind: "select", key: "metric", label: "Metric", value: "", options: [["", "all"]], more: metrics },
    { kind: "toggle", key: "roof", label: "Show the data sheet's roofline", value: "no" },
    { kind: "toggle", key: "missed", label: "Only rows outside their interval", value: "no" },
  ],
  later: ["validate", "lecture"],
  requests: () => ({ validate: ["validate", { rows: true }], lecture: ["lecture", {}] }),

  render(view, { validate, lecture }, s, { change }) {
    if (!validate) {
      view.reading("Predicting every published row. This takes some seconds.");
      return;
    }
    tell(validate.sources.map((x) => [x.id, x.name]));
    tellMetrics([...new Set(validate.sources.flatMap((x) => x.strata.map((t) => t.metric)))].map((m) => [m, metricName(m)]));
    const chosen = validate.sources.filter((x) => !s.source || x.id === s.source);
    const rows = chosen.flatMap((x) => x.rows.map((row) => ({ ...row, source: x }))).filter((r) => (!s.metric || r.metric === s.metric) && (s.missed !== "yes" || r.inside === false));
    const strata = chosen.flatMap((x) => x.strata.filter((t) => !s.metric || t.metric === s.metric).map((t) => ({ ...t, source: x })));
    if (!chosen.length) { view.reading(`There is no source "${s.source}".`); return; }
    if (!rows.length) { view.reading("No row is left: this source does not have this metric, or every row is inside its interval."); return; }

    const near = rows.filter((r) => Math.abs(r.error) <= Math.log(BAND)).length;
    const whole = !s.source && !s.metric && s.missed !== "yes";
    const one = strata.length === 1 && s.missed !== "yes" ? strata[0] : null;
    const scored = whole ? validate.total : one;
    view.reading(`${count(near)} of ${count(rows.length)} figures${s.source ? ` of ${chosen[0].name}` : ` from ${count(new Set(rows.map((r) => r.source.id)).size)} sources`} are predicted within a factor ${BAND}.${
      scored ? ` Half are within ${digits(Math.exp(scored.median))}, nine in ten within ${digits(Math.exp(scored.p90))}; the data sheet's roofline, the lecture's predictor, would be off by ${digits(Math.exp(scored.roofline_median))} and ${digits(Math.exp(scored.roofline_p90))}.${scored.n < rows.length ? ` These are of ${count(scored.n)}: the other ${count(rows.length - scored.n)}, such as memory and speed-ups, have no roofline.` : ""}` : ""}`);
    if (scored) {
      view.numbers("numbers", [
        ["Median error", factor(scored.median), "half are nearer"],
        ["90th percentile", factor(scored.p90), "nine in ten are nearer"],
        ["Bias", factor(scored.bias), scored.bias < 0 ? "predicted over measured: too low" : "predicted over measured: too high"],
        ["Inside the 80 % interval", scored.coverage === null ? "no interval" : percent(scored.coverage), "80 % would be right"],
        ["Data sheet alone", factor(scored.roofline_median), `nine in ten within ${digits(Math.exp(scored.roofline_p90))}`],
        ["Data sheet times one factor", factor(scored.constant_median), "fitted on the very rows it is scored on"],
      ]);
    }
    view.chart("scatter", scatter(rows, s, s.source ? byMetric(rows) : byKind(rows)), {
      title: s.source ? chosen[0].name : "All sources", subtitle: `${count(rows.length)} figures, predicted against measured, each in the unit of its metric; band: factor ${BAND}`, height: 480,
      explain: (x, i, point) => point && why(rows, point),
      alt: `${near} of ${rows.length} points lie inside the band.`,
    });
    view.equation("error", {
      tex: String.raw`e = \ln\frac{\hat x}{x}, \qquad \text{error} = \operatorname{med}|e|, \qquad \text{bias} = \operatorname{med} e, \qquad \text{inside} = \tfrac{1}{n}\,\#\{\,\text{low} \le x \le \text{high}\,\}`,
      values: scored ? String.raw`\operatorname{med}|e| = ${digits(scored.median)}\ (\times ${digits(Math.exp(scored.median))}), \quad \operatorname{med} e = ${digits(scored.bias)}, \quad n = ${scored.n}${scored.coverage === null ? "" : String.raw`, \quad \text{inside} = ${digits(scored.coverage * 100, 2)}\,\%`}` : undefined,
      note: "x as published, x̂ as predicted. Too high and too low by the same factor count the same. The tables below show factors: × 1.10 is off by a tenth.",
    });
    view.table("strata", {
      caption: "Errors by source and metric (factors; rows in all, not only those drawn)",
      columns: ["Source", "Metric", { name: "n", align: "right" }, { name: "Median", align: "right" }, { name: "p90", align: "right" }, { name: "Bias", align: "right" }, { name: "Inside 80 %", align: "right" }, { name: "Data sheet", align: "right" }, { name: "its p90", align: "right" }, { name: "One factor", align: "right" }, "In the fit"],
      rows: [...strata.map((t, i) => [
        strata[i - 1]?.source === t.source ? "" : el("button", { type: "button", class: "quiet", "aria-pressed": String(s.source === t.source.id), onclick: () => change("source", s.source === t.source.id ? "" : t.source.id, true) }, t.source.name),
        el("span", { class: "validation-metric" }, metricName(t.metric)), count(t.n), factor(t.median), factor(t.p90), factor(t.bias), t.coverage === null ? "–" : percent(t.coverage), factor(t.roofline_median), factor(t.roofline_p90), factor(t.constant_median), t.source.fitted.split(":")[0],
      ]), ...(whole ? [{ class: "best", cells: ["Together", "all", count(validate.total.n), factor(validate.total.median), factor(validate.total.p90), factor(validate.total.bias), percent(validate.total.coverage), factor(validate.total.roofline_median), factor(validate.total.roofline_p90), factor(validate.total.constant_median), ""] }] : [])],
    });
    if (s.source) this.one(view, chosen[0], rows);
    else this.all(view, chosen, rows, s, change);
    view.list("fit", "What is fitted and what is not", [
      "The equations have constants: what a kernel reaches of its chip, what a link reaches, what an engine's host adds. They are in the catalogue with the rows they were fitted on.",
      ...chosen.map((x) => `${x.name}: in the fit: ${x.fitted}.`),
      "The data sheet's roofline has no constants: full peak, full bandwidth, perfect overlap. One factor is the roofline times a constant for each source and metric, chosen on the very rows it is scored on.",
    ]);
    view.claims("claims", lecture, ["D1"]);
  },

  /** One source: where it is from, what was assumed, every row. */
  one(view, source, rows) {
    view.heading("cite-title", "Where it is from");
    view.node("cite", el("div", { class: "validation-cite" },
      el("p", {}, el("strong", {}, source.title), `. ${source.address}`),
      el("p", { class: "note" }, `${count(source.n)} figures, ${count(source.rows.length)} predicted. ${source.notes.length ? `Assumed: ${source.notes.join("; ")}.` : "Nothing had to be assumed to ask the question."}`),
      source.skipped.map((x) => el("p", { class: "note" }, `Left out ${count(x.n)}: ${x.reason} (${x.rows.join(", ")}).`))));
    view.table("rows", { caption: `Rows of ${source.name}`, ...columns(rows, false) });
  },

  /** All sources: each in its own small chart, then the rows that are furthest off. */
  all(view, sources, rows, s, change) {
    view.heading("each-title", "Source by source");
    small ??= { node: el("div", { class: "validation-grid" }), charts: new Map() };
    view.node("each", small.node);
    for (const source of sources) {
      const own = rows.filter((r) => r.source === source);
      let kept = small.charts.get(source.id);
      if (!kept) {
        const box = el("div", { class: "chart-box" });
        const words = el("span", { class: "sub" });
        const figure = el("figure", { "aria-label": `${source.name}: predicted against measured` }, el("figcaption", {}, el("button", { type: "button", class: "quiet", onclick: () => change("source", source.id, true) }, source.name), words), box);
        small.node.append(figure);
        kept = { chart: new Chart(box), words, figure };
        small.charts.set(source.id, kept);
      }
      kept.figure.hidden = !own.length;
      if (!own.length) continue;
      kept.words.textContent = `${own.filter((r) => Math.abs(r.error) <= Math.log(BAND)).length} of ${own.length} within a factor ${BAND}`;
      kept.chart.set(scatter(own, s, byMetric(own)), { height: 260, explain: (x, i, point) => point && why(own, point) });
    }
    view.table("worst", { caption: `The ${Math.min(WORST, rows.length)} figures furthest off`, ...columns([...rows].sort((a, b) => Math.abs(b.error) - Math.abs(a.error)).slice(0, WORST), true) });
  },

  leave() {
    for (const { chart } of small?.charts.values() ?? []) chart.destroy();
    small = null;
  },

  command: (s) => ["rackmath validate --rows", ...(s.source ? [`rackmath validate ${s.source} --rows`] : [])].join("\n"),
};

const byKind = (rows) => KINDS.map(([name], i) => [name, i, rows.filter((r) => kind(r.metric) === i)]).filter(([, , of]) => of.length);
const byMetric = (rows) => [...new Set(rows.map((r) => r.metric))].map((m, i) => [metricName(m), i, rows.filter((r) => r.metric === m)]);

/** The diagonal, its band, and a cloud for each group of rows. */
function scatter(rows, s, groups) {
  const values = rows.flatMap((r) => [r.measured, r.predicted, ...(s.roof === "yes" ? [r.roofline] : [])]);
  const [low, high] = [Math.min(...values) / BAND, Math.max(...values) * BAND];
  const line = (name, role, by) => ({ name, role, points: [[low, low * by], [high, high * by]] });
  const cloud = (name, choice, of, y) => ({ name, role: { choice, dots: true }, points: of.map((r) => [r.measured, y(r)]) });
  return {
    title: "Predicted against measured",
    subtitle: "",
    x: { label: "measured", unit: "number", scale: "log" },
    y: { label: "predicted", unit: "number", scale: "log" },
    series: [
      line("equal", "envelope", 1),
      line(`${BAND} times`, "floor", BAND),
      line(`1/${BAND}`, "floor", 1 / BAND),
      ...(s.roof === "yes" ? [cloud("data sheet's roofline", 7, rows, (r) => r.roofline)] : []),
      ...groups.map(([name, choice, of]) => cloud(name, choice, of, (r) => r.predicted)),
    ],
    marks: [],
  };
}

/** The row under the cursor in words. */
function why(rows, { x, y }) {
  const row = rows.find((r) => r.measured === x && (r.predicted === y || r.roofline === y));
  return row && `${row.source.name}, ${row.place}: ${row.what}; ${metricName(row.metric)}; ${row.predicted === y ? "predicted" : "data sheet"} ${digits(y / x)} of measured${row.inside === false ? ", outside its interval" : ""}`;
}

function columns(rows, named) {
  const right = (name) => ({ name, align: "right" });
  return {
    columns: ["Row", "What ran", "Metric", right("Measured"), right("Predicted"), right("80 % interval"), right("Predicted over measured"), right("Data sheet"), "Why it may be off"],
    rows: rows.map((r) => ({
      cells: [named ? `${r.source.name}, ${r.place}` : r.place.replace(" ", "\u00a0"), el("span", { class: "validation-what" }, r.what), el("span", { class: "validation-metric" }, metricName(r.metric)), digits(r.measured), digits(r.predicted),
        r.low === null ? "–" : `${digits(r.low)} to ${digits(r.high)}`.replaceAll(" ", "\u00a0"), digits(r.ratio), digits(r.roofline),
        el("span", { class: "validation-why" }, r.assumed.length ? `assumed: ${r.assumed.join("; ")}` : r.inside === false ? "nothing was assumed; the prediction itself misses" : r.inside ? "inside its interval" : "single kernels have no interval")],
    })),
  };
}
