// A figure of the library, drawn by uPlot: components thin, the envelope bold, kinks marked, a hover that explains.

import { show, tick } from "./format.js";
import { el } from "./dom.js";

const CHOICES = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const cloud = (name, shape) => ({ stroke: () => colour(name), fill: () => `${colour(name)}55`, name, width: 1.3, dots: true, shape: shape % 4 });

// Circle, square, triangle, diamond.
const SHAPES = [
  (p, x, y, r) => { p.moveTo(x + r, y); p.arc(x, y, r, 0, 2 * Math.PI); },
  (p, x, y, r) => p.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r),
  (p, x, y, r) => { p.moveTo(x, y - 1.2 * r); p.lineTo(x + 1.1 * r, y + 0.9 * r); p.lineTo(x - 1.1 * r, y + 0.9 * r); p.closePath(); },
  (p, x, y, r) => { p.moveTo(x, y - 1.3 * r); p.lineTo(x + 1.3 * r, y); p.lineTo(x, y + 1.3 * r); p.lineTo(x - 1.3 * r, y); p.closePath(); },
];

function look(role) {
  if (typeof role === "object") {
    const name = CHOICES[role.choice % CHOICES.length];
    // { choice: 1, dots: true } is a cloud of points; their shape tells them apart without colour.
    return role.dots ? cloud(name, role.choice) : { stroke: () => colour(name), name, width: 2, dash: role.choice >= CHOICES.length ? [9, 4] : undefined };
  }
  return {
    envelope: { stroke: () => colour("--ink"), name: "--ink", width: 3 },
    weights: { stroke: () => colour("--weights"), name: "--weights", width: 1.5 },
    kv: { stroke: () => colour("--kv"), name: "--kv", width: 1.5 },
    compute: { stroke: () => colour("--compute"), name: "--compute", width: 1.5 },
    floor: { stroke: () => colour("--muted"), name: "--muted", width: 1.5, dash: [6, 5] },
    points: cloud("--c0", 0),
  }[role] ?? { stroke: () => colour("--ink"), name: "--ink", width: 2 };
}

// All series over one set of abscissae; uPlot wants them aligned. Two points over one x would be one: the second is moved by a hair.
function aligned(figure) {
  const tables = figure.series.map((s) => {
    const sorted = [...s.points].sort((a, b) => a[0] - b[0]);
    const xs = sorted.map((p) => p[0]);
    for (let i = 1; i < xs.length; i += 1) if (xs[i] <= xs[i - 1]) xs[i] = xs[i - 1] + Math.abs(xs[i - 1]) * 1e-12;
    return [xs, sorted.map((p) => p[1])];
  });
  return tables.length ? uPlot.join(tables) : [[]];
}

// A line that turns back in x: the outline of a region.
function turns(points) {
  const way = (sign) => points.every((p, i) => i === 0 || sign * (p[0] - points[i - 1][0]) >= 0);
  return !way(1) && !way(-1);
}

// Round values of a logarithmic axis; uPlot counts on from the lower end, which need not be round.
function rounds(min, max) {
  const out = [];
  for (let e = Math.floor(Math.log10(min)); 10 ** e <= max; e += 1) {
    for (let k = 1; k < 10; k += 1) {
      const v = Number((k * 10 ** e).toPrecision(6));
      if (v >= min && v <= max) out.push(v);
    }
  }
  if (out.length > 2) return out;
  const step = 10 ** Math.floor(Math.log10((max - min) / 2));
  return Array.from({ length: Math.floor(max / step) - Math.ceil(min / step) + 1 }, (_, i) => Number(((Math.ceil(min / step) + i) * step).toPrecision(6)));
}

// Which of them have room for a label across: all, the ones, twos and fives, or the powers of ten, every one or every few.
function across(u, splits) {
  const lead = (v) => Number(v.toExponential(0)[0]);
  const roomy = (list) => list.length > 1 && list.every((v, i) => i === 0 || u.valToPos(v, "x") - u.valToPos(list[i - 1], "x") >= (v >= 1e6 ? 70 : 54));
  const powers = splits.filter((v) => lead(v) === 1);
  const thinned = (list) => [2, 3, 4, 5, 6].map((n) => list.filter((v, i) => i % n === 0));
  const shown = [splits, splits.filter((v) => [1, 2, 5].includes(lead(v))), powers, ...thinned(powers), ...thinned(splits)].find(roomy) ?? splits.slice(0, 1);
  return splits.map((v) => (shown.includes(v) ? v : null));
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
    splits: log ? (u, i, min, max) => rounds(min, max) : undefined,
    filter: log && side === "x" ? across : undefined,
    // On a logarithmic axis the powers of ten carry the labels; on a short one their halves and fifths as well.
    values: (u, splits) => {
      if (!log || side === "x") return splits.map((v) => (v === null ? "" : tick(spec.unit, v)));
      const scale = u.scales[side === "x" ? "x" : "y"];
      const span = Math.log10(scale.max / scale.min);
      return splits.map((v) => {
        if (v === null) return "";
        const lead = Number(v.toExponential(0).split("e")[0]);
        const wanted = span > 2.5 ? lead === 1 : span > 1.2 ? lead === 1 || lead === 2 || lead === 5 : true;
        return wanted ? tick(spec.unit, v) : "";
      });
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

// A label in as many lines as the picture is narrow.
function wrapped(ctx, label, room) {
  const lines = [];
  for (const word of label.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && ctx.measureText(longer).width <= room) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** A chart in a box. `explain(x, index, near)` adds a sentence to the hover (`near`: the point of a cloud); `at` marks where the slider stands. */
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
    // The same figure needs no new data, only the slider's line where that moved; a short one may have been put together anew.
    const short = figure.series.reduce((n, s) => n + s.points.length, 0) < 200 ? JSON.stringify(figure) : null;
    if (this.plot && (figure === this.figure || (short !== null && short === this.short)) && options.height === this.options.height) {
      const moved = options.at !== this.options.at;
      Object.assign(this, { figure, options });
      if (moved) this.plot.redraw(false, false);
      return;
    }
    Object.assign(this, { figure, options, short });
    const shape = JSON.stringify([figure.x, figure.y, figure.series.map((s) => [s.name, s.role, turns(s.points)]), options.height]);
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
        cursor: { points: { size: 7, show: !looks.some((l) => l.dots) }, drag: { x: true, y: true, uni: 30 }, focus: { prox: 30 } },
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
            fill: looks[i].fill,
            paths: looks[i].dots || turns(s.points) ? (u) => this.path(u, i, looks[i]) : undefined,
            points: { show: false },
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
        }, el("span", { class: `swatch role-${looks[i].name.slice(2)}${looks[i].dash ? " dashed" : ""}${looks[i].dots ? ` dot dot-${looks[i].shape}` : ""}`, "aria-hidden": "true" }), s.name)),
      ),
    );
  }

  // Points as they are given, each by itself or joined in their order.
  path(u, i, { dots, shape }) {
    const path = new Path2D();
    this.figure.series[i].points.forEach(([x, y], n) => {
      const at = [u.valToPos(x, "x", true), u.valToPos(y, "y", true)];
      if (dots) SHAPES[shape](path, ...at, 3.6 * devicePixelRatio);
      else if (n) path.lineTo(...at);
      else path.moveTo(...at);
    });
    return dots ? { stroke: path, fill: path } : { stroke: path };
  }

  // The point of a cloud under the cursor, if one is near: { series, index, x, y }.
  nearest(u) {
    let best = null;
    let least = 18;
    this.figure.series.forEach((s, series) => {
      if (!look(s.role).dots || !u.series[series + 1].show) return;
      s.points.forEach(([x, y], index) => {
        const away = Math.hypot(u.valToPos(x, "x") - u.cursor.left, u.valToPos(y, "y") - u.cursor.top);
        if (away < least) { least = away; best = { series, index, x, y }; }
      });
    });
    return best;
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
    if (this.options.at != null && this.options.at >= 0) {
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
      const lines = wrapped(ctx, mark.label, width - 8 * ratio);
      const w = Math.max(...lines.map((line) => ctx.measureText(line).width));
      const h = 15 * ratio * lines.length;
      const hit = (t) => t.y - t.h < ty && ty - h < t.y && tx < t.x + t.w + 6 * ratio && t.x < tx + w + 6 * ratio;
      const tx = Math.min(Math.max(x - w / 2, left + 4 * ratio), left + width - w - 4 * ratio);
      let ty = y - 12 * ratio;
      while (taken.some(hit)) ty -= 15 * ratio;
      if (ty - h < top - 3 * ratio) ty = y + 5 * ratio + h;
      while (taken.some(hit)) ty += 15 * ratio;
      taken.push({ x: tx, y: ty, w, h });
      ctx.lineWidth = 4 * ratio;
      ctx.strokeStyle = colour("--board");
      ctx.fillStyle = colour("--ink");
      const place = (line, i) => [line, tx, ty - 15 * ratio * (lines.length - 1 - i)];
      lines.forEach((line, i) => ctx.strokeText(...place(line, i)));
      lines.forEach((line, i) => ctx.fillText(...place(line, i)));
    }
    ctx.restore();
  }

  hover(u) {
    const { idx, left, top } = u.cursor;
    if (idx === null || idx === undefined || left < 0) {
      this.tip.hidden = true;
      return;
    }
    const { figure } = this;
    const near = this.nearest(u);
    const curves = figure.series.some((s) => !look(s.role).dots && s.points.length > 2);
    if (!near && !curves) {
      this.tip.hidden = true;
      return;
    }
    const x = near ? near.x : this.data[0][idx];
    const rows = near ? [[figure.y.label, near.y]] : figure.series.map((s, i) => [s.name, this.data[i + 1][idx]]).filter(([, v]) => v !== null && v !== undefined);
    const said = this.options.explain?.(x, idx, near);
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

  destroy() {
    this.watch.disconnect();
    document.removeEventListener("themechange", this.repaint);
    this.plot?.destroy();
  }
}
