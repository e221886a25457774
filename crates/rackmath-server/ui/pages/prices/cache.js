// Where to keep a prefix and for how long: hold it, fetch it, or compute it anew.

import { setting, settingFlags } from "../../lib/controls.js";
import { el } from "../../lib/dom.js";
import { bytes, count, digits, perMtok, seconds, tex, usd } from "../../lib/format.js";
import { card, CARDS } from "./sheets.js";

const bill = (s) => ({ input: Number(s.prefix), suffix: 500, output: 500, uses: Number(s.uses), gap_s: Number(s.gap) });

const money = (v) => (v === null ? "no price" : v ? perMtok(v) : "$0");

export const cache = {
  requests: (s) => ({
    cache: ["cache", { setting: setting(s) }],
    bill: s.sheet && ["price", { sheets: [s.sheet], workload: bill(s) }],
    lecture: ["lecture", {}],
  }),

  render(view, { cache: answer, bill: bills, lecture }, s, { requests, change }) {
    const gap = Number(s.gap);
    const short = (id) => ({ rematerialise: "compute it anew" })[id] ?? id;
    const named = (id) => answer.lines.find((l) => l.id === id)?.name ?? id;
    const now = answer.envelope.find((e) => gap >= e.from_s && (e.to_s === null || gap < e.to_s)) ?? answer.envelope.at(-1);
    const best = answer.lines.find((l) => l.id === now.id);
    const anew = answer.lines.find((l) => l.id === "rematerialise");
    view.reading(now.id === "rematerialise"
      ? `After ${seconds(gap)} it is cheapest to compute the prefix anew: ${perMtok(anew.retrieve_usd_per_mtok)}.`
      : `A prefix wanted again after ${seconds(gap)} is cheapest in ${named(now.id)}${best.recompute_cheaper_after_s === null ? "" : `; there, holding beats computing it anew (${perMtok(anew.retrieve_usd_per_mtok)}) for ${seconds(best.recompute_cheaper_after_s)}`}.`);
    const sheet = card(s);
    const offers = sheet?.caches ?? [];
    view.numbers("numbers", [
      ["Cheapest at this gap", short(now.id), `from ${seconds(now.from_s)}${now.to_s === null ? " on" : ` to ${seconds(now.to_s)}`}`],
      ["Cache per token", bytes(answer.kv_bytes_per_token), answer.model],
      ["Computing it anew", perMtok(anew.retrieve_usd_per_mtok), "at the machine's cost"],
      ["Sold as a cached read", offers.length ? perMtok(Math.min(...offers.map((c) => c.read_usd_per_mtok))) : "–", sheet?.name ?? "no sheet picked"],
      ["Storage the writes imply", sheet?.implied_storage_usd_per_mtok_hour ? `$${digits(sheet.implied_storage_usd_per_mtok_hour)}/Mtok-h` : "–", "an hour's write less a short one's"],
    ]);
    view.chart("tiers", answer.figure, {
      source: [...requests.cache, "/figure"], at: gap, height: 460,
      explain: (x) => { const e = answer.envelope.find((p) => x >= p.from_s && (p.to_s === null || x < p.to_s)); return e ? `cheapest: ${named(e.id)}` : ""; },
      alt: `The cheapest tier by time: ${answer.envelope.map((e) => `${short(e.id)} from ${seconds(e.from_s)}`).join(", ")}.`,
    });
    const dollars = best.id === "rematerialise" ? "" : String.raw`${tex(best.id)}: ${tex(perMtok(best.retrieve_usd_per_mtok))} + ${tex(`${usd(best.hold_usd_per_mtok_hour)}/Mtok-h`)} \times ${tex(seconds(gap))}`;
    view.equation("hold", {
      title: "Retrieve, and hold for a time",
      tex: String.raw`\text{cost}(T) = \underbrace{kv\,\frac{p_{\text{tier}}}{W_{\text{tier}}}}_{\text{retrieve}} + \underbrace{kv\,\frac{p_{\text{tier}}}{C_{\text{tier}}}\,T}_{\text{hold}} \qquad\Rightarrow\qquad T_{\text{equal}} = \frac{C_{\text{tier}}}{W_{\text{tier}}}`,
      values: best.drain_s === null ? dollars : String.raw`${dollars}${dollars ? String.raw`, \quad` : ""} C/W = ${tex(seconds(best.drain_s))}`,
      note: "C bytes the tier holds, W bytes per second it reads, p its price per second. Holding costs as much as fetching after C/W, the time to drain the tier: prices cancel. A published lifetime near a tier's drain time points at that tier.",
    });
    view.table("lines", {
      caption: "Ways to have the cache again",
      columns: ["Tier", "What it is", { name: "Retrieve", align: "right" }, { name: "Hold, an hour", align: "right" }, { name: "Drains in", align: "right" }, { name: "Anew is cheaper after", align: "right" }],
      rows: answer.lines.map((l) => ({
        class: l.id === now.id ? "best" : undefined,
        cells: [short(l.id), l.name, money(l.retrieve_usd_per_mtok), money(l.hold_usd_per_mtok_hour), l.drain_s === null ? "–" : seconds(l.drain_s), l.recompute_cheaper_after_s === null ? "–" : seconds(l.recompute_cheaper_after_s)],
      })),
    });
    view.table("durations", {
      caption: "Published lifetimes, placed",
      columns: ["Lifetime", "Cheapest there", "Nearest drain times (lifetime over drain time)"],
      rows: answer.durations.map((d) => [seconds(d.duration_s), named(d.cheapest), d.candidates.slice(0, 3).map((c) => `${c.id} ${seconds(c.drain_s)} (${digits(c.ratio)})`).join(", ")]),
    });
    const billed = bills?.cards[0];
    if (billed?.policies.length) {
      const least = Math.min(...billed.policies.map((p) => p.total_usd));
      view.table("bill", {
        caption: `${billed.name}: the bill of ${bills.workload}`,
        columns: ["Cache", { name: "Total", align: "right" }, { name: "New input", align: "right" }, { name: "Written", align: "right" }, { name: "Read", align: "right" }, { name: "Storage", align: "right" }, { name: "Output", align: "right" }],
        rows: billed.policies.map((p) => ({ class: p.total_usd === least ? "best" : undefined, cells: [p.policy + (p.lifetime_assumed ? " (lifetime assumed)" : ""), ...[p.total_usd, p.fresh_usd, p.written_usd, p.read_usd, p.storage_usd, p.output_usd].map(usd)] })),
      });
    }
    view.table("offers", offered(s.sheet, change));
    view.claims("claims", lecture, ["D50", "D51", "D52", "D53"]);
    view.list("assumptions", "What the numbers assume", [...answer.assumptions, "prices in dollars per million tokens; \"pays from\" counts uses of the prefix, the first included"]);
    view.list("sources", "Where the tiers come from", answer.sources);
  },

  command: (s) => [
    ["rackmath cache", ...settingFlags(s)].join(" "),
    ...(s.sheet ? [["rackmath price", s.sheet, "-i", count(Number(s.prefix)).replaceAll(",", ""), "--suffix 500 -o 500 --uses", s.uses, "--gap", `${s.gap}s`].join(" ")] : []),
  ].join("\n"),
};

// The long table of all offers is made anew only when another sheet is picked.
let made = null;

function offered(picked, change) {
  if (made?.picked === picked) return made;
  made = {
    picked,
    caption: "Cache offers of the price sheets",
    columns: ["Sheet", "Offer", "Lifetime", { name: "Input", align: "right" }, { name: "Write", align: "right" }, { name: "Read", align: "right" }, { name: "Storage, an hour", align: "right" }, { name: "Pays from", align: "right" }],
    rows: CARDS.flatMap((c) => c.caches.map((o, i) => ({
      class: c.id === picked ? "best" : undefined,
      cells: [i ? "" : el("button", { type: "button", class: "quiet", onclick: () => change("sheet", c.id, true), "aria-pressed": String(c.id === picked) }, c.name), o.name, o.lifetime, usd(c.input_usd_per_mtok), usd(o.write_usd_per_mtok), usd(o.read_usd_per_mtok), o.storage_usd_per_mtok_hour === null ? "–" : usd(o.storage_usd_per_mtok_hour), `${digits(o.break_even_uses)} uses`],
    }))),
  };
  return made;
}
