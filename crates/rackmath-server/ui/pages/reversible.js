// Ciphers and reversible networks: the same step, how far one flipped bit spreads, and what memory it saves.

import { quote } from "../lib/controls.js";
import { el, svg } from "../lib/dom.js";
import { bytes, count, digits, percent, seconds, tex } from "../lib/format.js";

const WAYS = [["none", "ordinary"], ["selective", "recompute attention scores"], ["full", "recompute whole layers"], ["reversible", "reversible blocks"]];
const MIXERS = {
  "Feistel, 64 bits": "a cipher's rounds on two halves of 32 bits",
  "sign network": "random layers of signs, sign(Wx)",
  "tanh, gain 3": "random layers, steep: tanh(3Wx)",
  "tanh, gain 1": "random layers, tame: tanh(Wx)",
  "residual, pre-norm": "residual layers with norms, as in a transformer",
};

const small = (v) => (v === 0 ? "0, exact" : v < 0.01 ? `${Number((100 * v).toPrecision(2))} %` : percent(v));

function request(s) {
  return { model: s.model, tokens: Number(s.tokens), depth: Number(s.depth), steps: Number(s.steps), seed: Number(s.seed) };
}

export const page = {
  id: "reversible",
  title: "Ciphers and reversible networks",
  lead: "Ciphers and neural networks both mix every input into every output by many simple rounds. A cipher's step can be undone even though its inner function cannot. The same step makes a network whose activations need not be kept: they are computed again on the way back.",
  controls: [
    { kind: "model", key: "model", label: "Model", value: "llama-3.1-70b" },
    { kind: "machine", key: "on", label: "Machine", value: "hgx-h100", help: "Eight copies of a group of its chips train together." },
    { kind: "select", key: "tp", label: "Tensor parallel", options: [["1", "1 chip"], ["2", "2 chips"], ["4", "4 chips"], ["8", "8 chips"]], value: "8" },
    { kind: "select", key: "tokens", label: "Tokens in flight", options: [2048, 4096, 8192, 16384, 32768, 65536, 131072].map((n) => [String(n), count(n)]), value: "8192", help: "Sequence times batch of one chip." },
    { kind: "heading", label: "Measured network" },
    { kind: "select", key: "depth", label: "Blocks, at most", options: [4, 8, 16, 32].map((n) => [String(n), String(n)]), value: "16" },
    { kind: "select", key: "steps", label: "Training steps", options: [2, 20, 60, 100].map((n) => [String(n), String(n)]), value: "20" },
    { kind: "select", key: "seed", label: "Seed", options: [1, 2, 3, 4, 5].map((n) => [String(n), String(n)]), value: "1" },
    { kind: "heading", label: "Avalanche" },
    { kind: "range", key: "rounds", label: "Rounds shown", min: 4, max: 64, value: 24 },
  ],
  later: ["measured"],
  optional: WAYS.map(([way]) => way),
  requests: (s) => ({
    ...Object.fromEntries(WAYS.map(([way]) => [way, ["train", { model: s.model, on: s.on, chips: 8 * Number(s.tp), tp: Number(s.tp), sequence: Number(s.tokens), global_batch: 64, recompute: way }]])),
    measured: ["reversible", request(s)],
    lecture: ["lecture", {}],
  }),
  render(view, answers, s, { requests }) {
    const { measured: a, lecture } = answers;
    if (a) this.said(view, a);
    else view.reading("Measuring a small network here and now: this takes a few seconds. The equations and the model's table are there already.");
    pair.show(a);
    view.node("pair", pair.node);

    view.heading("avalanche-title", "Avalanche: how far one flipped bit spreads");
    if (a) this.avalanche(view, a, s, requests);
    else view.note("avalanche-wait", "Flipping bits and signs.");

    view.heading("memory-title", "Memory against depth");
    view.equation("memory", {
      title: "Activations kept between forward and backward",
      tex: String.raw`A_{\text{all}} = 34\,t h\,L \qquad A_{\text{inputs}} = 2\,t h\,L + 34\,t h \qquad A_{\text{reversible}} = 4\,t h + 34\,t h`,
      values: a ? ["ordinary", "full recompute", "reversible"].map((way) => tex(bytes(a.model.find((m) => m.way === way).activation_bytes))).join(String.raw` \qquad `) : "",
      note: `t tokens in flight, h the model's width, L its layers, bytes in 16-bit formats. A reversible network keeps two streams of 2 bytes and one layer while it walks back: nothing grows with L. The price is one more forward, 4 instead of 3. Values: ${s.model}, ${count(Number(s.tokens))} tokens.`,
    });
    if (a) {
      view.chart("depth", a.memory_figure, { source: [...requests.measured, "/memory_figure"], subtitle: `measured: ${a.network}`, alt: a.ways.map((w) => `${w.way} adds ${bytes(w.slope_bytes_per_block)} a block`).join("; "), explain: () => "every activation and its gradient, counted as it is made and freed" });
      view.table("ways", {
        caption: "Ways of keeping activations, measured on the small network",
        columns: ["Way", ...["A further block adds", `Peak at ${a.request.depth} blocks`, "Arithmetic", "by the formula", `Loss after ${a.request.steps} steps`].map((name) => ({ name, align: "right" }))],
        rows: a.ways.map((w) => [w.way, bytes(w.slope_bytes_per_block), bytes(w.peak_bytes[w.peak_bytes.length - 1][1]), `${digits(w.flop_over_ordinary)}x`, `${digits(w.formula)}x`, `${digits(w.losses[0], 4)} to ${digits(w.losses[1], 4)}`]),
      });
    }
    this.model(view, answers, s);

    view.heading("drift-title", "Drift: what comes back is not quite what went in");
    view.equation("drift", {
      title: "Why floating point drifts",
      tex: String.raw`\hat y = \operatorname{fl}\bigl(\operatorname{fl}(y + f(x)) - f(x)\bigr) \neq y`,
      values: a ? [64, 256].map((d) => a.drift.find((r) => r.depth === d)).filter(Boolean).map((r) => String.raw`${r.depth}\ \text{couplings:}\ ${tex(`f32 ${small(r.f32)}`)},\ ${tex(`bf16 ${small(r.bf16)}`)},\ ${tex(`fixed point ${small(r.fixed)}`)}`).join(String.raw` \qquad `) : "",
      note: "fl rounds to the format of the streams. Adding and subtracting the same number loses the last digits, and every coupling loses some more. Integers wrap and lose nothing, which is why ciphers come back exactly.",
    });
    if (a) {
      view.chart("drift-chart", a.drift_figure, { source: [...requests.measured, "/drift_figure"], alt: a.drift.map((r) => `${r.depth} couplings: f32 ${small(r.f32)}, bf16 ${small(r.bf16)}`).join("; "), explain: (x) => { const r = a.drift.find((d) => d.depth === x); return r && `fixed point: ${r.fixed === 0 ? "exact" : small(r.fixed)}`; } });
      view.table("gradients", {
        caption: `Gradients of the reversible network against ordinary ones, ${a.request.depth} blocks`,
        columns: ["Streams stored in", { name: "Largest distance of a tensor", align: "right" }, "All bits agree"],
        rows: a.gradients.map((g) => [g.stored, small(g.distance), g.exact ? "yes" : "no"]),
      });
    }
    view.claims("claims", lecture, ["D54", "D55", "D56", "D57"]);
    view.list("assumptions", "What the numbers assume", [
      ...(a?.assumptions ?? []),
      "the Feistel network here is an illustration, not a cipher to trust: almost every invented one is broken",
      "a network's avalanche flips one sign of 512 inputs of plus and minus one, and counts signs of the output that change",
      ...(answers.none ? [`training table: ${answers.none.stack}, ${answers.none.evidence}`] : []),
    ]);
  },
  said(view, a) {
    const ordinary = a.ways.find((w) => w.way === "ordinary");
    const reversible = a.ways.find((w) => w.way === "reversible");
    const deep = a.drift.find((r) => r.depth === 64) ?? a.drift[a.drift.length - 1];
    const last = (w) => w.peak_bytes[w.peak_bytes.length - 1][1];
    view.reading(`Compute for memory: at ${a.request.depth} blocks the reversible network keeps ${bytes(last(reversible))} instead of ${bytes(last(ordinary))} and a further block adds ${reversible.slope_bytes_per_block === 0 ? "nothing" : bytes(reversible.slope_bytes_per_block)}, for ${percent(reversible.flop_over_ordinary - 1)} more arithmetic. Rebuilt in bf16 the streams are ${small(deep.bf16)} off after ${deep.depth} couplings, in f32 ${small(deep.f32)}, in fixed point not at all.`);
    const feistel = a.avalanche[0];
    const half = feistel.share.findIndex((v) => v > 0.49);
    const by = (way) => a.model.find((m) => m.way === way);
    view.numbers("numbers", [
      ["Ordinary, a block adds", bytes(ordinary.slope_bytes_per_block), "small network"],
      ["Reversible, a block adds", reversible.slope_bytes_per_block === 0 ? "0 B" : bytes(reversible.slope_bytes_per_block), `${percent(a.slope_ratio)} of ordinary`],
      ["Arithmetic", `+${percent(reversible.flop_over_ordinary - 1)}`, `${by("reversible").forwards} forwards for ${by("ordinary").forwards}`],
      ["Cipher mixes in", half < 0 ? "–" : `${half} rounds`, "half the bits change"],
      ["The model, ordinary", bytes(by("ordinary").activation_bytes), "activations, by formula"],
      ["The model, reversible", bytes(by("reversible").activation_bytes), "activations, by formula"],
    ]);
  },
  avalanche(view, a, s, requests) {
    const rounds = Math.min(Number(s.rounds), a.avalanche[0].share.length - 1);
    map.show(a.avalanche, rounds);
    const end = (name) => a.avalanche.find((m) => m.mixer === name)?.share[rounds];
    view.reading(`After ${rounds} rounds one flipped bit has changed ${percent(end("Feistel, 64 bits") ?? 0)} of a cipher's output and ${percent(end("sign network") ?? 0)} of a random network's signs, but ${percent(end("residual, pre-norm") ?? 0)} of a residual network's: residuals and norms stop the avalanche.`, "avalanche-reading");
    view.node("map", map.node);
    view.equation("avalanche", {
      title: "Avalanche",
      tex: String.raw`\text{share}(r) = \Pr\bigl[\,\text{output bit } j \text{ changes after } r \text{ rounds} \mid \text{input bit } i \text{ flipped}\,\bigr] \ \longrightarrow\ \tfrac12`,
      values: a.avalanche.map((m) => tex(`${m.mixer}: ${percent(m.share[rounds])}`)).join(String.raw` \quad `),
      note: `Over all i and j; values after ${rounds} rounds or layers. One half is perfect mixing: the output tells nothing about the input. A cipher wants it, a network must not have it, or its derivatives would be useless.`,
    });
    view.chart("avalanche-chart", a.avalanche_figure, { source: [...requests.measured, "/avalanche_figure"], at: rounds });
  },
  model(view, answers, s) {
    const rows = WAYS.map(([way, name]) => [name, answers[way]]).filter(([, t]) => t);
    if (!rows.length) {
      const why = answers.refused.none;
      view.note("model-none", `No training of this model on this machine: ${[why?.message, why?.hint].filter(Boolean).join("; ")}.`);
      return;
    }
    const [, first] = rows[0];
    view.table("model", {
      caption: `Training ${first.model} on ${first.machine}: ${first.layout}, ${count(Number(s.tokens))} tokens in flight`,
      columns: ["Way", ...["Activations", "All memory of a chip", "Fits", "Step", "Compared", "MFU"].map((name) => ({ name, align: "right" }))],
      rows: rows.map(([name, t]) => {
        const full = t.stages.reduce((x, y) => (y.total_bytes > x.total_bytes ? y : x));
        return [name, bytes(full.activation_bytes), bytes(full.total_bytes), t.fits ? "yes" : "no", seconds(t.step_s), `${digits(t.step_s / first.step_s)}x`, percent(t.mfu, 3)];
      }),
    });
    view.note("model-note", "Reversible blocks save the layer inputs that full recompute still keeps, at the same arithmetic. Today memory is more often spent to save compute, as the KV cache does.");
  },
  command: (s) => ["rackmath reversible", quote(s.model), "--tokens", s.tokens, "--depth", s.depth, "--steps", s.steps, "--seed", s.seed].join(" "),
};

/** The cipher's step and the network's, side by side. */
const pair = (() => {
  const card = (title, lines, note) => {
    const live = el("div", { class: "tex reversible-live" });
    const node = el("section", { class: "reversible-card", "aria-label": title, tabindex: "0" }, el("h3", {}, title));
    for (const line of lines) {
      const box = el("div", { class: "tex" });
      katex.render(line, box, { displayMode: true, throwOnError: false, output: "htmlAndMathml" });
      node.append(box);
    }
    node.append(live, el("p", { class: "note" }, note));
    return { node, live };
  };
  const feistel = card("A cipher's round (Feistel)", [
    String.raw`(x,\ y) \;\to\; \bigl(y + f_k(x),\ x\bigr) \bmod 2^{32}`,
    String.raw`(z,\ x) \;\to\; \bigl(x,\ z - f_k(x)\bigr) \bmod 2^{32}`,
  ], "f_k may be any function: it is only ever run forwards. Values: sixteen rounds of f(x) = x² on (7, 5), there and back.");
  const revnet = card("A reversible layer (RevNet)", [
    String.raw`x_{i+1} = y_i + f_i(x_i) \qquad y_{i+1} = x_i`,
    String.raw`x_i = y_{i+1} \qquad\ y_i = x_{i+1} - f_i(y_{i+1})`,
  ], "f_i is attention or the feed-forward network. The residual comes from two layers back, so the whole stack runs backwards. Values: how far 64 couplings there and back miss.");
  const node = el("div", { class: "reversible-pair" }, feistel.node, revnet.node);
  const put = (box, text) => {
    box.hidden = !text;
    if (text && box.dataset.tex !== text) katex.render(text, box, { displayMode: true, throwOnError: false, output: "htmlAndMathml" });
    box.dataset.tex = text;
  };
  return {
    node,
    show(a) {
      const [from, there, back] = a?.feistel ?? [];
      put(feistel.live, a ? String.raw`(${from}) \to (${there}) \to (${back})`.replaceAll(",", ",\\,") : "");
      const d = a?.drift.find((r) => r.depth === 64);
      put(revnet.live, d ? String.raw`${tex(`f32: ${small(d.f32)}`)} \quad ${tex(`bf16: ${small(d.bf16)}`)} \quad ${tex(`fixed point: ${small(d.fixed)}`)}` : "");
    },
  };
})();

/** The avalanche as a map: a row per mixer, a column per round, darker where more has changed. */
const map = (() => {
  const scroll = el("div", { class: "reversible-scroll", tabindex: "0", role: "group", "aria-label": "Avalanche map" });
  const table = el("div", {});
  const node = el("div", { class: "reversible-map" },
    el("p", {}, el("strong", {}, "Share of the output that has changed, in percent"), " ", el("span", { class: "sub" }, "one bit or sign of the input flipped; 50 is perfect mixing")),
    scroll,
    el("p", { class: "note" }, "Rows: what mixes. Columns: rounds or layers, from none."));
  node.append(table);
  const LEFT = 150;
  const ROW = 34;
  let last = [];
  const draw = () => {
    const [mixers, rounds] = last;
    if (!mixers) return;
    const wide = Math.max(scroll.clientWidth || 800, LEFT + (rounds + 1) * 11);
    const cell = (wide - LEFT - 2) / (rounds + 1);
    const tall = mixers.length * ROW + 26;
    const every = cell >= 22 ? 1 : cell >= 12 ? 4 : 8;
    const parts = mixers.flatMap((m, row) => [
      svg("text", { x: LEFT - 8, y: row * ROW + ROW / 2 + 4, class: "side" }, m.mixer),
      ...m.share.slice(0, rounds + 1).flatMap((v, i) => {
        const strength = Math.min(1, v / 0.5);
        const x = LEFT + i * cell;
        return [
          svg("rect", { x: x.toFixed(1), y: row * ROW + 2, width: (cell - 1).toFixed(1), height: ROW - 4, "fill-opacity": (0.04 + 0.96 * strength).toFixed(3), class: "heat" }, svg("title", {}, `${m.mixer}, ${i} rounds: ${percent(v, 3)}`)),
          cell >= 20 ? svg("text", { x: (x + cell / 2 - 0.5).toFixed(1), y: row * ROW + ROW / 2 + 4, class: strength > 0.72 ? "on" : "off" }, v < 0.095 ? digits(100 * v, 1) : digits(100 * v, 2)) : null,
        ];
      }),
    ]);
    const axis = Array.from({ length: rounds + 1 }, (_, i) => i).filter((i) => i % every === 0).map((i) => svg("text", { x: (LEFT + (i + 0.5) * cell).toFixed(1), y: tall - 8 }, String(i)));
    scroll.replaceChildren(svg("svg", { width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "img", class: "reversible-picture", "aria-label": `Avalanche after 0 to ${rounds} rounds. ${mixers.map((m) => `${m.mixer}: ${percent(m.share[1])} after 1, ${percent(m.share[rounds])} after ${rounds}`).join("; ")}.` }, parts, axis));
  };
  new ResizeObserver(draw).observe(node);
  return {
    node,
    show(mixers, rounds) {
      last = [mixers, rounds];
      draw();
      const at = [0, 1, 2, 3, 4, 8, 16, 32, 64].filter((i) => i <= rounds);
      table.replaceChildren(el("details", { class: "list" }, el("summary", {}, "The same as a table"),
        el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Rounds"), ...at.map((i) => el("th", { scope: "col", class: "right" }, String(i))))),
          el("tbody", {}, mixers.map((m) => el("tr", {}, el("th", { scope: "row", title: MIXERS[m.mixer] }, m.mixer), ...at.map((i) => el("td", { class: "right" }, percent(m.share[i], 2))))))),
        el("ul", {}, mixers.filter((m) => MIXERS[m.mixer]).map((m) => el("li", {}, `${m.mixer}: ${MIXERS[m.mixer]}`)))));
    },
  };
})();
