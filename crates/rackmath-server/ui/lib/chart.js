// A figure of the library, drawn by uPlot: components thin, the envelope bold, kinks marked, a hover that explains.

import { show, tick } from "./format.js";
import { el, svg } from "./dom.js";

const CHOICES = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function look(role) {
  if (typeof role === "object") {
    const name = CHOICES[role.choice % CHOICES.length];
    return { stroke: () => colour(name), name, width: 2 };
  }
  return {
    envelope: { stroke: () => colour("--ink"), name: "--ink", width: 3 },
    weights: { stroke: () => colour("--weights"), name: "--weights", width: 1.5 },
    kv: { stroke: () => colour("--kv"), name: "--kv", width: 1.5 },
    compute: { stroke: () => colour("--compute"), name: "--compute", width: 1.5 },
    floor: { stroke: () => colour("--muted"), name: "--muted", width: 1.5, dash: [6, 5] },
    points: { stroke: () => colour("--c0"), name: "--c0", width: 0, points: true },
  }[role] ?? { stroke: () => colour("--ink"), name: "--ink", width: 2 };
}

// All series over one set of abscissae; uPlot wants them aligned.
function aligned(figure) {
  const tables = figure.series.map((s) => {
    const sorted = [...s.points].sort((a, b) => a[0] - b[0]);
    return [sorted.map((p) => p[0]), sorted.map((p) => p[1])];
  });
  return tables.length ? uPlot.join(tables) : [[]];
}

// Round numbers of a logarithmic axis: one to nine of every power of ten, or equal steps where it is short.
function rounds(min, max) {
  const out = [];
  if (max / min < 3) {
    const raw = (max - min) / 5;
    const decade = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find((m) => m * decade >= raw) * decade;
    for (let k = Math.ceil(min / step); k * step <= max; k += 1) out.push(Number((k * step).toPrecision(12)));
    return out;
  }
  for (let e = Math.floor(Math.log10(min)); 10 ** e <= max; e += 1) {
    for (const m of max / min < 20 ? [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9] : [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
      const v = Number((m * 10 ** e).toPrecision(12));
      if (v >= min && v <= max) out.push(v);
    }
  }
  return out;
}

function axis(spec, side, size) {
  const log = spec.scale === "log";
  return {
    scale: side === "x" ? "x" : "y",
    label: spec.label,
    labelSize: 22,
    labelFont: "13px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    size: side === "x" ? 42 : size ?? 70,
    gap: 4,
    stroke: () => colour("--soft"),
    grid: { stroke: () => colour("--grid"), width: 1 },
    ticks: { stroke: () => colour("--grid"), width: 1, size: 5 },
    ...(log ? { splits: (u, i, min, max) => rounds(min, max), filter: (u, splits) => splits } : {}),
    // On a logarithmic axis the powers of ten carry the labels; where there is room their halves and fifths, or all.
    values: (u, splits) => {
      if (!log) return splits.map((v) => (v === null ? "" : tick(spec.unit, v)));
      const { min, max } = u.scales[side === "x" ? "x" : "y"];
      const room = (side === "x" ? u.width - 90 : 2.4 * (u.height - 70)) / Math.log10(max / min);
      const leads = splits.map((v) => Number(v.toExponential(6).split("e")[0]));
      const sets = [[1], [1, 2, 5], [1, 2, 3, 5], leads];
      let wanted = max / min < 3 || room > 700 ? 3 : room > 330 ? 2 : room > 210 ? 1 : 0;
      while (wanted < 3 && leads.filter((l) => sets[wanted].includes(l)).length < 2) wanted += 1;
      return splits.map((v, i) => (sets[wanted].includes(leads[i]) ? tick(spec.unit, v) : ""));
    },
  };
}

function range(spec) {
  if (spec.scale === "log") {
    return (u, min, max) => {
      if (!(min > 0) || !Number.isFinite(max)) return [0.1, 10];
      const pad = Math.max((max / min) ** 0.04, 1.02);
      return [min / pad, max * pad];
    };
  }
  return (u, min, max) => {
    if (min === null || max === null) return [0, 1];
    const from = min >= 0 && min < 0.4 * max ? 0 : min;
    const pad = (max - from) * 0.05 || Math.abs(max) * 0.1 || 1;
    return [from === 0 ? 0 : from - pad, max + pad];
  };
}

/** A chart in a box. `explain(x)` adds a sentence to the hover; `at` marks where the slider stands. */
export class Chart {
  constructor(box) {
    this.box = box;
    this.tip = el("div", { class: "tip", role: "presentation", hidden: true });
    this.canvas = el("div", { class: "plot" });
    this.legend = el("ul", { class: "legend" });
    this.box.append(this.canvas, this.legend);
    this.watch = new ResizeObserver(() => this.fit());
    this.watch.observe(this.box);
    this.repaint = () => this.plot?.redraw();
    document.addEventListener("themechange", this.repaint);
  }

  fit() {
    const width = this.canvas.clientWidth;
    if (this.plot && width && Math.abs(width - this.plot.width) > 1) this.plot.setSize({ width, height: this.height(width) });
  }

  height(width) {
    return this.options?.height ?? Math.round(Math.max(290, Math.min(400, width * 0.52)));
  }

  /** Draws a figure, or redraws with new values. */
  set(figure, options = {}) {
    this.figure = figure;
    this.options = options;
    const shape = JSON.stringify([figure.x, figure.y, figure.series.map((s) => [s.name, s.role]), options.height]);
    this.data = aligned(figure);
    if (this.plot && shape === this.shape) {
      this.plot.setData(this.data);
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    const width = Math.max(this.canvas.clientWidth, 280);
    const looks = figure.series.map((s) => look(s.role));
    this.plot = new uPlot(
      {
        width,
        height: this.height(width),
        legend: { show: false },
        pxAlign: 0,
        cursor: { points: { size: 7 }, drag: { x: true, y: true, uni: 30 }, focus: { prox: 30 } },
        scales: {
          x: { time: false, distr: figure.x.scale === "log" ? 3 : 1, range: range(figure.x) },
          y: { distr: figure.y.scale === "log" ? 3 : 1, range: range(figure.y) },
        },
        axes: [axis(figure.x, "x"), axis(figure.y, "y", options.ySize)],
        series: [
          {},
          ...figure.series.map((s, i) => ({
            label: s.name,
            stroke: looks[i].stroke,
            width: looks[i].width,
            dash: looks[i].dash,
            spanGaps: true,
            paths: looks[i].points ? () => null : undefined,
            points: { show: Boolean(looks[i].points), size: 7, width: 1.5, stroke: looks[i].stroke, fill: looks[i].stroke },
          })),
        ],
        hooks: { draw: [(u) => this.marks(u)], setCursor: [(u) => this.hover(u)] },
      },
      this.data,
      this.canvas,
    );
    this.plot.over.append(this.tip);
    this.plot.over.addEventListener("mouseleave", () => { this.tip.hidden = true; });
    this.legend.replaceChildren(
      ...figure.series.map((s, i) =>
        el("li", {}, el("button", {
          type: "button", class: "quiet", "aria-pressed": "true", title: "Show or hide",
          onclick: (event) => {
            const shown = !this.plot.series[i + 1].show;
            this.plot.setSeries(i + 1, { show: shown });
            event.currentTarget.setAttribute("aria-pressed", String(shown));
          },
        }, el("span", { class: `swatch role-${looks[i].name.slice(2)}${looks[i].dash ? " dashed" : ""}`, "aria-hidden": "true" }), s.name)),
      ),
    );
  }

  // Kinks and other labelled points, and a line where the slider stands.
  marks(u) {
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    if (this.options.at > 0 || this.options.at === 0) {
      const x = u.valToPos(this.options.at, "x", true);
      ctx.strokeStyle = colour("--accent");
      ctx.setLineDash([4 * ratio, 4 * ratio]);
      ctx.lineWidth = 1.5 * ratio;
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      ctx.setLineDash([]);
    }
    const taken = [];
    for (const mark of this.figure.marks ?? []) {
      const x = u.valToPos(mark.x, "x", true);
      const y = u.valToPos(mark.y, "y", true);
      if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
      ctx.beginPath();
      ctx.arc(x, y, 4.5 * ratio, 0, 2 * Math.PI);
      ctx.fillStyle = colour("--board");
      ctx.fill();
      ctx.lineWidth = 2 * ratio;
      ctx.strokeStyle = colour("--accent");
      ctx.stroke();
      const w = ctx.measureText(mark.label).width;
      let tx = Math.min(Math.max(x - w / 2, left + 4 * ratio), left + width - w - 4 * ratio);
      let ty = y - 12 * ratio;
      while (taken.some((t) => Math.abs(t.y - ty) < 15 * ratio && tx < t.x + t.w + 6 * ratio && t.x < tx + w + 6 * ratio)) ty -= 15 * ratio;
      if (ty < top + 12 * ratio) ty = y + 20 * ratio;
      while (taken.some((t) => Math.abs(t.y - ty) < 15 * ratio && tx < t.x + t.w + 6 * ratio && t.x < tx + w + 6 * ratio)) ty += 15 * ratio;
      taken.push({ x: tx, y: ty, w });
      ctx.lineWidth = 4 * ratio;
      ctx.strokeStyle = colour("--board");
      ctx.strokeText(mark.label, tx, ty);
      ctx.fillStyle = colour("--ink");
      ctx.fillText(mark.label, tx, ty);
    }
    ctx.restore();
  }

  hover(u) {
    const { idx, left, top } = u.cursor;
    if (idx === null || idx === undefined || left < 0) {
      this.tip.hidden = true;
      return;
    }
    const x = this.data[0][idx];
    const { figure } = this;
    const rows = figure.series.map((s, i) => [s.name, this.data[i + 1][idx]]).filter(([, v]) => v !== null && v !== undefined);
    const said = this.options.explain?.(x, idx);
    this.tip.replaceChildren(
      el("strong", {}, `${figure.x.label}: ${show(figure.x.unit, x)}`),
      ...rows.map(([name, v]) => el("div", {}, `${name}: ${show(figure.y.unit, v)}`)),
      said ? el("em", {}, said) : null,
    );
    this.tip.hidden = false;
    const room = u.over.clientWidth;
    const right = left > room / 2;
    this.tip.style.left = right ? "auto" : `${left + 14}px`;
    this.tip.style.right = right ? `${room - left + 14}px` : "auto";
    this.tip.style.top = `${Math.max(4, Math.min(top, u.over.clientHeight - this.tip.clientHeight - 4))}px`;
  }

  /** What is drawn, with its title and legend, as an SVG text. */
  svg() {
    const { plot, figure } = this;
    const left = plot.bbox.left / devicePixelRatio;
    const [top, width, height] = [plot.bbox.top / devicePixelRatio + 30, plot.bbox.width / devicePixelRatio, plot.bbox.height / devicePixelRatio];
    const X = (v) => left + plot.valToPos(v, "x");
    const Y = (v) => top + plot.valToPos(v, "y");
    const text = (x, y, said, more = {}) => svg("text", { x, y, fill: colour("--ink"), ...more }, said);
    const ticks = (i, at) => plot.axes[i]._splits.map((v, k) => [v, plot.axes[i]._values[k]]).filter(([v]) => v !== null).flatMap(([v, said]) => at(v, said));
    const grid = { stroke: colour("--grid") };
    const lines = figure.series.map((s) => {
      const { name, dash, points, width: w } = look(s.role);
      const sorted = [...s.points].sort((a, b) => a[0] - b[0]).filter(([x, y]) => Number.isFinite(X(x)) && Number.isFinite(Y(y)));
      if (points) return svg("g", { fill: colour(name) }, sorted.map(([x, y]) => svg("circle", { cx: X(x), cy: Y(y), r: 3.5 })));
      return svg("polyline", { points: sorted.map(([x, y]) => `${X(x).toFixed(2)},${Y(y).toFixed(2)}`).join(" "), fill: "none", stroke: colour(name), "stroke-width": w, "stroke-dasharray": dash?.join(" ") });
    });
    let along = left;
    const bottom = top + height;
    const legend = figure.series.map((s) => {
      const x = along;
      along += 42 + s.name.length * 6.6;
      return svg("g", {}, svg("line", { x1: x, x2: x + 18, y1: bottom + 62, y2: bottom + 62, stroke: colour(look(s.role).name), "stroke-width": 3, "stroke-dasharray": look(s.role).dash?.join(" ") }), text(x + 24, bottom + 66, s.name));
    });
    const whole = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${plot.width} ${bottom + 80}`, "font-family": "system-ui, sans-serif", "font-size": 12 },
      svg("rect", { width: "100%", height: "100%", fill: colour("--board") }),
      text(12, 20, this.options.title ?? figure.title, { "font-size": 15, "font-weight": 600 }),
      ticks(0, (v, said) => [svg("line", { x1: X(v), x2: X(v), y1: top, y2: bottom, ...grid }), text(X(v), bottom + 18, said, { "text-anchor": "middle" })]),
      ticks(1, (v, said) => [svg("line", { x1: left, x2: left + width, y1: Y(v), y2: Y(v), ...grid }), text(left - 8, Y(v) + 4, said, { "text-anchor": "end" })]),
      text(left + width / 2, bottom + 40, figure.x.label, { "text-anchor": "middle" }),
      text(0, 0, figure.y.label, { "text-anchor": "middle", transform: `translate(14 ${top + height / 2}) rotate(-90)` }),
      lines,
      (figure.marks ?? []).map((m) => svg("g", {}, svg("circle", { cx: X(m.x), cy: Y(m.y), r: 4.5, fill: colour("--board"), stroke: colour("--accent"), "stroke-width": 2 }), text(X(m.x), Y(m.y) - 10, m.label, { "text-anchor": "middle" }))),
      legend);
    return new XMLSerializer().serializeToString(whole);
  }

  /** What is drawn, with its title and legend, as a PNG. */
  png() {
    const ratio = devicePixelRatio;
    const from = this.plot.ctx.canvas;
    const [head, foot] = [34 * ratio, 30 * ratio];
    const canvas = el("canvas", { width: from.width, height: from.height + head + foot });
    const ctx = canvas.getContext("2d");
    ctx.fillStyle = colour("--board");
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.drawImage(from, 0, head);
    ctx.fillStyle = colour("--ink");
    ctx.font = `600 ${15 * ratio}px system-ui, sans-serif`;
    ctx.fillText(this.options.title ?? this.figure.title, 10 * ratio, 22 * ratio, canvas.width - 20 * ratio);
    ctx.font = `${13 * ratio}px system-ui, sans-serif`;
    let x = 12 * ratio;
    this.figure.series.forEach((s) => {
      const y = head + from.height + 16 * ratio;
      ctx.fillStyle = colour(look(s.role).name);
      ctx.fillRect(x, y - 5 * ratio, 18 * ratio, 3 * ratio);
      ctx.fillStyle = colour("--ink");
      ctx.fillText(s.name, x + 24 * ratio, y);
      x += 44 * ratio + ctx.measureText(s.name).width;
    });
    return new Promise((done) => { canvas.toBlob(done, "image/png"); });
  }

  destroy() {
    this.watch.disconnect();
    document.removeEventListener("themechange", this.repaint);
    this.plot?.destroy();
  }
}
