// The slots of a pipeline: a row per stage, time across, a mark for every pass, what is bare is idle.
//
// Passes of one kind are one path, so that a thousand of them are drawn while a slider moves.

import { el, svg } from "./dom.js";
import { digits, many, percent, seconds } from "./format.js";

const KINDS = {
  F: ["forward", ""],
  BW: ["backward, to input and weights", "stripes"],
  B: ["backward, to the input", "stripes"],
  W: ["backward, to the weights", "dots"],
  token: ["a token of a micro-batch", ""],
};
const LEFT = 62;
const FOOT = 40;
let made = 0;

const rect = (x, y, w, h) => `M${x.toFixed(1)} ${y.toFixed(1)}h${w.toFixed(1)}v${h.toFixed(1)}h${(-w).toFixed(1)}z`;

/** Where the axis has its numbers: at most ten steps of 1, 2 or 5 times a power of ten. */
function steps(span) {
  const raw = span / 10;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw * 0.999);
  return Array.from({ length: Math.floor(span / step + 1e-9) + 1 }, (_, i) => i * step);
}

export class Slots {
  constructor(name) {
    this.id = `slots${made++}`;
    this.tip = el("div", { class: "tip", role: "presentation", hidden: true });
    this.scroll = el("div", { class: "pipeline-scroll", tabindex: "0", role: "group", "aria-label": `${name}, picture` });
    this.frame = el("div", { class: "pipeline-frame" }, this.scroll, this.tip);
    this.caption = el("p", { class: "pipeline-caption" });
    this.legend = el("ul", { class: "pipeline-legend" });
    this.words = el("ol", { class: "pipeline-words", start: "0" });
    this.node = el("div", { class: "pipeline-slots" }, this.caption, this.frame, this.legend, el("details", { class: "list" }, el("summary", {}, "The same in words: F forward, B backward, W weight gradient, and the micro-batch"), this.words));
    this.watch = new ResizeObserver(() => { if (this.run && Math.abs(this.scroll.clientWidth - this.width) > 1) this.draw(); });
    this.watch.observe(this.frame);
    this.scroll.addEventListener("pointermove", (event) => this.hover(event));
    this.scroll.addEventListener("pointerleave", () => { this.tip.hidden = true; });
  }

  /** `note` says what the picture shows; `chunks` what a second chunk is called. */
  show(run, { title, note, chunks }) {
    if (this.run === run && this.title === title) return;
    Object.assign(this, { run, title, note, chunks });
    this.rows = run.devices.map(() => []);
    for (const cell of run.cells) this.rows[cell.device].push(cell);
    for (const row of this.rows) row.sort((a, b) => a.start_s - b.start_s);
    this.caption.replaceChildren(el("strong", {}, title), " ", el("span", { class: "sub" }, note));
    this.draw();
    this.tell();
  }

  draw() {
    const { run, rows } = this;
    const shown = this.scroll.clientWidth || 800;
    this.width = shown;
    const height = rows.length <= 8 ? 30 : rows.length <= 12 ? 24 : 20;
    // As wide as its shortest pass needs for its number, so that a small grid is seen whole on a phone.
    const least = Math.min(...rows.flat().map((c) => c.end_s - c.start_s).filter((d) => d > 0));
    const wide = Math.max(shown, Math.min(520, LEFT + 14 + (12 * run.makespan_s) / least));
    this.scroll.classList.toggle("wide", wide > shown);
    const scale = (wide - LEFT - 14) / run.makespan_s;
    const tall = rows.length * height + FOOT;
    Object.assign(this, { scale, height });
    const paths = {};
    const put = (key, d) => { (paths[key] ??= []).push(d); };
    const texts = [];
    rows.forEach((row, device) => {
      const top = device * height + 2;
      const inner = height - 4;
      for (const cell of row) {
        const x = LEFT + cell.start_s * scale;
        const room = (cell.end_s - cell.start_s) * scale;
        const w = Math.max(room - (room > 4 ? 1 : 0), 0.5);
        const y = cell.paired && cell.kind !== "F" ? top + inner / 2 : top;
        const h = cell.paired ? inner / 2 : inner;
        put(cell.kind, rect(x, y, w, h));
        if (cell.chunk % 2 === 1) put("foot", rect(x, y + h - 3, w, 3));
        if (room >= (cell.micro_batch > 9 ? 18 : 11)) {
          texts.push(svg("text", { x: (x + w / 2).toFixed(1), y: (y + h / 2 + (h < 14 ? 3 : 4)).toFixed(1), class: h < 14 ? "small" : null }, String(cell.micro_batch)));
        }
      }
    });
    const ends = steps(run.makespan_s);
    this.scroll.replaceChildren(svg("svg", { width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": this.alt(), class: "pipeline-picture" },
      svg("defs", {},
        svg("pattern", { id: `${this.id}stripes`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 1.4, height: 6, class: "over" })),
        svg("pattern", { id: `${this.id}dots`, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, svg("circle", { cx: 2, cy: 2, r: 1.1, class: "over" }))),
      rows.map((_, device) => [
        svg("rect", { x: LEFT, y: device * height + 2, width: (run.makespan_s * scale).toFixed(1), height: height - 4, class: "idle" }),
        svg("text", { x: LEFT - 8, y: device * height + height / 2 + 4, class: "side" }, `stage ${device}`),
      ]).flat(),
      Object.entries(KINDS).flatMap(([kind, [, over]]) => {
        const d = paths[kind]?.join("");
        return d ? [svg("path", { d, class: `kind-${kind}` }), over ? svg("path", { d, fill: `url(#${this.id}${over})` }) : null] : [];
      }),
      paths.foot ? svg("path", { d: paths.foot.join(""), class: "foot-bar" }) : null,
      svg("g", { class: "labels" }, texts),
      svg("g", { class: "axis" }, ends.flatMap((t) => {
        const x = (LEFT + t * scale).toFixed(1);
        return [svg("line", { x1: x, x2: x, y1: tall - FOOT, y2: tall - FOOT + 5 }), svg("text", { x, y: tall - FOOT + 18 }, seconds(t).replace(/\.0+(?= )/, ""))];
      }), svg("text", { x: LEFT + (wide - LEFT) / 2, y: tall - 4 }, "time")),
    ));
    const kinds = Object.keys(KINDS).filter((kind) => paths[kind]);
    this.legend.replaceChildren(
      ...kinds.map((kind) => el("li", {}, this.swatch(kind), KINDS[kind][0])),
      el("li", {}, this.swatch("idle"), "idle"),
      ...(paths.foot ? [el("li", {}, this.swatch("foot"), this.chunks ?? "second chunk of the model")] : []),
      el("li", { class: "sub" }, "numbers: the micro-batch"),
    );
  }

  swatch(kind) {
    const over = KINDS[kind]?.[1];
    return svg("svg", { width: 22, height: 14, "aria-hidden": "true", class: "pipeline-picture" },
      svg("rect", { width: 22, height: 14, class: kind === "idle" || kind === "foot" ? "idle" : `kind-${kind}` }),
      over ? svg("rect", { width: 22, height: 14, fill: `url(#${this.id}${over})` }) : null,
      kind === "foot" ? svg("rect", { width: 22, height: 14, class: `kind-${this.run.cells[0].kind}` }) : null,
      kind === "foot" ? svg("rect", { y: 11, width: 22, height: 3, class: "foot-bar" }) : null);
  }

  alt() {
    const { run } = this;
    return `${this.title}: ${many(run.devices.length, "stage")}, ${run.cells.length} passes in ${seconds(run.makespan_s)}, idle ${percent(run.idle, 3)}. The passes of every stage are listed below the picture.`;
  }

  // Every stage as a sentence, cut where nobody would read on.
  tell() {
    const names = { F: "F", BW: "B", B: "B", W: "W", token: "" };
    this.words.replaceChildren(...this.rows.map((row) => {
      let now = 0;
      const said = [];
      for (const cell of row.slice(0, 48)) {
        if (cell.start_s > now + 1e-9) said.push(`idle ${seconds(cell.start_s - now)}`);
        said.push(`${names[cell.kind]}${cell.micro_batch}${cell.paired ? "*" : ""}`);
        now = Math.max(now, cell.end_s);
      }
      if (row.length > 48) said.push(`and ${row.length - 48} more`);
      else if (now < this.run.makespan_s - 1e-9) said.push(`idle ${seconds(this.run.makespan_s - now)}`);
      return el("li", {}, said.join(", "));
    }));
  }

  hover(event) {
    const box = this.scroll.getBoundingClientRect();
    const x = event.clientX - box.left + this.scroll.scrollLeft;
    const y = event.clientY - box.top;
    const device = Math.floor(y / this.height);
    const at = (x - LEFT) / this.scale;
    const row = this.rows?.[device];
    this.tip.hidden = !row || at < 0 || at > this.run.makespan_s;
    if (this.tip.hidden) return;
    const here = row.filter((c) => c.start_s <= at && at < c.end_s);
    const before = row.filter((c) => c.end_s <= at).reduce((t, c) => Math.max(t, c.end_s), 0);
    const after = row.find((c) => c.start_s > at)?.start_s ?? this.run.makespan_s;
    const times = (from, to) => `${seconds(from)} to ${seconds(to)}`;
    this.tip.replaceChildren(
      el("strong", {}, `stage ${device}`),
      ...(here.length
        ? here.map((c) => el("div", {}, `${KINDS[c.kind][0].replace("a token of a micro-batch", `token ${c.chunk}`)} of micro-batch ${c.micro_batch}: ${times(c.start_s, c.end_s)}`))
        : [el("div", {}, `idle: ${times(before, after)}`)]),
      el("em", {}, `works ${digits(100 * (1 - this.run.devices[device].idle))} % of the time`),
    );
    const left = event.clientX - box.left;
    const right = left > box.width / 2;
    this.tip.style.left = right ? "auto" : `${left + 14}px`;
    this.tip.style.right = right ? `${box.width - left + 14}px` : "auto";
    this.tip.style.top = `${Math.max(0, y + 14)}px`;
  }
}
