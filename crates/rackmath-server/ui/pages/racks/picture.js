// Chips in their scale-up domains: which experts each holds, and where the exchange of one token goes.

import { el, svg } from "../../lib/dom.js";
import { count } from "../../lib/format.js";

const MOST_CHIPS = 576;
const MOST_IDLE = 32;
const CELL = { w: 54, h: 36, gap: 3 };

/** The degrees of a layout written in short, such as "tp8 pp2 dp64 ep64". */
export function degrees(text) {
  return Object.fromEntries([...text.matchAll(/\b(tp|pp|cp|dp|ep|etp|redundant)(\d+)\b/g)].map(([, key, n]) => [key, Number(n)]));
}

/** Which chip is where: stages fill domains one after the other, a stage larger than a domain is spread evenly. */
export function placement(layout, domain) {
  const { ep = 1, etp = 1, tp = 1 } = degrees(layout.layout);
  const size = layout.stages[0].chips;
  const chips = layout.stages.flatMap((stage) => Array.from({ length: stage.chips }, (_, rank) => ({
    stage: stage.stage, rank, part: Math.floor(rank / etp) % ep, shard: rank % etp, copy: Math.floor(rank / (ep * etp)), tp: rank % tp,
  })));
  const room = Math.max(1, domain);
  let each = chips.length;
  if (chips.length > room) each = size <= room ? Math.floor(room / size) * size : Math.ceil(size / Math.ceil(size / room));
  const domains = [];
  for (let from = 0; from < chips.length; from += each) domains.push(chips.slice(from, from + each));
  chips.forEach((chip, i) => { chip.number = i; chip.domain = Math.floor(i / each); });
  const idle = Math.max(0, Math.min(room, layout.chips_available) - each);
  return { chips, domains, idle, ep, etp, tp };
}

// The same token has the same experts every time; another one has others.
function chosen(token, of, k) {
  let state = (token * 2654435761 + 12345) >>> 0;
  const next = () => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return state / 2 ** 32; };
  const picked = new Set();
  while (picked.size < Math.min(k, of)) picked.add(Math.floor(next() * of));
  return { experts: [...picked].sort((a, b) => a - b), at: next() };
}

/** Where an example token starts and which chips hold its experts. */
export function journey(layout, placed, token) {
  const e = layout.experts;
  if (!e || placed.chips.length < 2) return null;
  const { experts, at } = chosen(token, e.experts, e.top_k);
  const first = placed.chips.filter((c) => c.stage === 0);
  const from = first[Math.floor(at * first.length)];
  const parts = new Set(experts.map((x) => Math.floor(x / e.slots_per_chip)));
  const to = first.filter((c) => c.copy === from.copy && parts.has(c.part));
  const hop = placed.chips.find((c) => c.stage === 1 && c.rank === from.rank) ?? null;
  return { experts, from, to, hop, near: to.filter((c) => c.domain === from.domain && c !== from), far: to.filter((c) => c.domain !== from.domain), own: to.includes(from) };
}

const span = (a, b) => (b > a ? `${a}–${b}` : `${a}`);

function held(layout, placed, chip) {
  const e = layout.experts;
  if (!e) return placed.tp > 1 ? `${chip.tp + 1}/${placed.tp}` : "all";
  const from = chip.part * e.slots_per_chip;
  return span(from, from + e.slots_per_chip - 1);
}

/** The picture, with a sentence that says the same. */
export function picture(layout, domain, name, token) {
  const placed = placement(layout, domain);
  const trip = journey(layout, placed, token);
  const shownDomains = [];
  let total = 0;
  for (const d of placed.domains) {
    if (total && total + d.length > MOST_CHIPS) break;
    shownDomains.push(d.slice(0, MOST_CHIPS));
    total += d.length;
  }
  const idle = placed.idle <= MOST_IDLE ? placed.idle : 0;
  const longest = Math.max(...shownDomains.map((d) => d.length)) + idle;
  const columns = longest <= 8 ? Math.max(longest, 2) : longest <= 80 ? 8 : 16;
  const beside = columns <= 8 && shownDomains.length > 1 ? 2 : 1;
  const box = { w: columns * (CELL.w + CELL.gap) + 20, h: Math.ceil(longest / columns) * (CELL.h + CELL.gap) + 40 };
  const spot = (d, i) => ({ x: (d % beside) * (box.w + 16) + 12 + (i % columns) * (CELL.w + CELL.gap), y: Math.floor(d / beside) * (box.h + 14) + 32 + Math.floor(i / columns) * (CELL.h + CELL.gap) });
  const width = beside * box.w + (beside - 1) * 16;
  const height = Math.ceil(shownDomains.length / beside) * (box.h + 14);
  // Boxes lie below the lines, words above them.
  const parts = [];
  const words = [];
  const centre = new Map();
  const stages = layout.stages.length;
  shownDomains.forEach((d, n) => {
    const corner = spot(n, 0);
    const layers = [...new Set(d.map((c) => c.stage))].map((i) => layout.stages[i]);
    const title = stages > 1 ? `: ${layers.length > 1 ? `stages ${layers[0].stage} to ${layers.at(-1).stage}` : `stage ${layers[0].stage}`}, layers ${layers[0].first_layer} to ${layers.at(-1).first_layer + layers.at(-1).layers - 1}` : "";
    parts.push(svg("rect", { x: corner.x - 12, y: corner.y - 32, width: box.w, height: box.h, rx: 10, class: "racks-domain" }));
    parts.push(svg("text", { x: corner.x, y: corner.y - 12, class: "racks-domain-name" }, `${name} ${n + 1}${title}`));
    d.forEach((chip, i) => {
      const { x, y } = spot(n, i);
      centre.set(chip.number, [x + CELL.w / 2, y + CELL.h / 2]);
      const role = trip ? (chip === trip.from ? " racks-from" : chip === trip.hop ? " racks-hop" : trip.to.includes(chip) ? (chip.domain === trip.from.domain ? " racks-near" : " racks-far") : "") : "";
      const look = `racks-chip${role}`;
      parts.push(svg("g", { class: look }, svg("rect", { x, y, width: CELL.w, height: CELL.h, rx: 5 })));
      words.push(svg("g", { class: look },
        svg("title", {}, `chip ${chip.number}${layout.experts ? `: experts ${held(layout, placed, chip)}` : `: shard ${held(layout, placed, chip)}`}${placed.etp > 1 ? `, shard ${chip.shard + 1} of ${placed.etp}` : ""}${stages > 1 ? `, stage ${chip.stage}` : ""}`),
        svg("rect", { x, y, width: CELL.w, height: CELL.h, rx: 5, class: "racks-target" }),
        svg("text", { x: x + CELL.w / 2, y: y + 15, class: "racks-held" }, held(layout, placed, chip)),
        svg("text", { x: x + CELL.w / 2, y: y + 29, class: "racks-chip-name" }, chip === trip?.from ? "token" : layers.length > 1 ? `stage ${chip.stage}` : placed.etp > 1 ? `${chip.shard + 1} of ${placed.etp}` : `chip ${chip.number}`)));
    });
    for (let i = d.length; i < d.length + idle; i += 1) {
      const { x, y } = spot(n, i);
      parts.push(svg("g", { class: "racks-idle" }, svg("rect", { x, y, width: CELL.w, height: CELL.h, rx: 5 }), svg("text", { x: x + CELL.w / 2, y: y + 22 }, "idle")));
    }
  });
  if (trip && centre.has(trip.from.number)) {
    const [x0, y0] = centre.get(trip.from.number);
    for (const [chips, kind] of [[trip.near, "near"], [trip.far, "far"], [trip.hop ? [trip.hop] : [], trip.hop?.domain === trip.from.domain ? "hop" : "hop racks-line-far"]]) {
      for (const chip of chips) {
        const to = centre.get(chip.number);
        if (to) parts.push(svg("line", { x1: x0, y1: y0, x2: to[0], y2: to[1], class: `racks-line racks-line-${kind}` }));
      }
    }
  }
  const left = placed.domains.length - shownDomains.length;
  const cut = left > 0 ? `${count(left)} more like these are not drawn.` : "";
  const said = sentence(layout, placed, trip, name);
  return el("div", { class: "racks-view" },
    el("div", { class: "racks-scroll", tabindex: "0", role: "region", "aria-label": "Placement" },
      svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Placement of ${layout.layout} on ${layout.system}. ${said}` }, parts, words)),
    el("p", {}, said, cut ? ` ${cut}` : ""));
}

function sentence(layout, placed, trip, name) {
  const e = layout.experts;
  const rest = placed.idle ? ` ${count(placed.idle)} chips of ${placed.domains.length > 1 ? "each" : "the"} ${name} hold nothing.` : "";
  if (!e) return placed.tp === 1 ? `A dense model: every chip of a stage holds all of its layers.${rest}` : `A dense model: every chip of a stage holds one of ${placed.tp} shards of each layer, and all of them work on every token.${rest}`;
  const copies = e.slots > e.experts ? ` Numbers from ${e.experts} on are second copies of busy experts.` : "";
  if (!trip) return `One chip holds all ${e.experts} experts of every layer.`;
  const ways = [trip.own ? "one stays on the chip itself" : "", trip.near.length ? `${trip.near.length} inside the ${name}, over the scale-up network (solid lines)` : "", trip.far.length ? `${trip.far.length} in another ${name}, over the slow scale-out network (dashed lines)` : ""].filter(Boolean);
  return `In each chip stand the experts of every layer that it holds. This example token on chip ${trip.from.number} wants experts ${trip.experts.join(", ")}; they live on ${trip.to.length} chips: ${ways.join("; ")}. Dispatch sends its values out along these lines, combine brings the results back, in every expert layer.${trip.hop ? ` After its last layer of the stage the token hops once, to chip ${trip.hop.number} of the next stage (thick dotted line).` : ""}${copies}${rest}`;
}
