// Small pictures inside table cells.

import { svg } from "../../lib/dom.js";

const WIDE = 220;

/** Two intervals [low, middle, high] over one axis: before thin, after thick; `truth` is a diamond. */
export function intervals({ before, after, truth, log, label }) {
  const all = [...before, ...after, ...(truth ? [truth] : [])].filter(Number.isFinite);
  const scale = log ? Math.log : (v) => v;
  const [from, to] = [scale(Math.min(...all)), scale(Math.max(...all))];
  const x = (v) => 8 + ((scale(v) - from) / (to - from || 1)) * (WIDE - 16);
  const line = (kind, [low, middle, high], y, thick) => [
    svg("rect", { class: kind, x: x(low), y: y - thick / 2, width: Math.max(1, x(high) - x(low)), height: thick, rx: thick / 2 }),
    svg("line", { class: `${kind} middle`, x1: x(middle), x2: x(middle), y1: y - 6, y2: y + 6 }),
  ];
  const t = truth ? x(truth) : 0;
  return svg("svg", { class: "prices-bar", viewBox: `0 0 ${WIDE} 32`, role: "img", "aria-label": label },
    line("before", before, 24, 3), line("after", after, 10, 8),
    truth ? svg("path", { class: "truth", d: `M${t},3 l5,7 l-5,7 l-5,-7 z` }) : null);
}

/** From one value to another, on an axis shared by all rows, with a line at what is set. */
export function swing({ low, high, at, least, most, label }) {
  const x = (v) => 8 + ((Math.log(v) - Math.log(least)) / (Math.log(most) - Math.log(least) || 1)) * (WIDE - 16);
  const [a, b] = [Math.min(low, high), Math.max(low, high)];
  return svg("svg", { class: "prices-bar", viewBox: `0 0 ${WIDE} 22`, role: "img", "aria-label": label },
    svg("rect", { class: "after", x: x(a), y: 6, width: Math.max(1, x(b) - x(a)), height: 10, rx: 3 }),
    svg("line", { class: "at", x1: x(at), x2: x(at), y1: 1, y2: 21 }));
}

/** A share from 0 to 1, with a tick for what it was before. */
export function share({ before, after, label }) {
  const x = (v) => 4 + v * (WIDE - 8);
  return svg("svg", { class: "prices-bar", viewBox: `0 0 ${WIDE} 22`, role: "img", "aria-label": label },
    svg("rect", { class: "empty", x: 4, y: 6, width: WIDE - 8, height: 10, rx: 3 }),
    svg("rect", { class: "after", x: 4, y: 6, width: Math.max(1, x(after) - 4), height: 10, rx: 3 }),
    svg("line", { class: "at", x1: x(before), x2: x(before), y1: 1, y2: 21 }));
}
