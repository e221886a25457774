// The price sheets of the catalogue, asked for once, and how one becomes evidence.

import { ask, Refused } from "../../lib/api.js";
import { catalogue, quote } from "../../lib/controls.js";
import { typed } from "../../lib/format.js";

const [names, { cards }, { known: fast }] = await Promise.all([catalogue(), ask("price", {}), ask("fastmode", {})])
  .catch(() => [{ prices: [], vendors: [], hosted: [] }, { cards: [] }, { known: [] }]);

export const FAST = fast;
export const CARDS = cards;
export const SHEETS = names.prices.map(({ id, name }) => {
  const seller = cards.find((c) => c.id === id)?.provider;
  return [id, seller ? `${name} (${seller})` : name];
});

/** The card of the sheet picked; nothing where none is. */
export function card(s) {
  if (!s.sheet) return null;
  const found = cards.find((c) => c.id === s.sheet);
  if (!found) throw new Refused(`no price sheet "${s.sheet}"`, "pick one from the list");
  return found;
}

// Sellers whose price habits are counted, and open models whose hosts' prices are.
export const VENDORS = names.vendors;
export const HOSTED = names.hosted;

// What may be typed: its key in the address, its name in a request, its flag, its label and unit.
export const TYPED = [
  ["in", "input_usd_per_mtok", "--input", "Input", "$/Mtok"],
  ["out", "output_usd_per_mtok", "--output", "Output", "$/Mtok"],
  ["hit", "cached_usd_per_mtok", "--cached", "Cached read", "$/Mtok"],
  ["w5m", "write_5m_usd_per_mtok", "--write-5m", "Cache write, 5 min", "$/Mtok"],
  ["w1h", "write_1h_usd_per_mtok", "--write-1h", "Cache write, 1 h", "$/Mtok"],
  ["keep", "storage_usd_per_mtok_hour", "--storage", "Cache storage", "$/Mtok-h"],
  ["above", "long_above_tokens", "--long-above", "Long context above", "tokens"],
  ["lin", "long_input_usd_per_mtok", "--long-input", "Input above", "$/Mtok"],
  ["lout", "long_output_usd_per_mtok", "--long-output", "Output above", "$/Mtok"],
  ["fp", "fast_price_multiple", "--fast-price", "Fast mode, price", "times"],
  ["fs", "fast_speed_multiple", "--fast-speed", "Fast mode, speed", "times"],
  ["tps", "tokens_per_s", "--tokens-per-s", "Measured speed", "tok/s for a user"],
];

// No list has more than nine places; the rest is the way through dollars per token.
const plain = (v) => Math.round(v * 1e9) / 1e9;

/** What a sheet gives to deduce from. */
function listed(found) {
  if (!found) return {};
  const input = plain(found.input_usd_per_mtok);
  const reads = found.caches.map((c) => plain(c.read_usd_per_mtok));
  const write = (name) => {
    const offer = found.caches.find((c) => c.name === name);
    const price = offer ? plain(offer.write_usd_per_mtok) : 0;
    return price > input ? price : null;
  };
  const step = found.tiers[0];
  const mode = fast.find((f) => f.sheet === found.id);
  return {
    model: found.name,
    vendor: VENDORS.includes(found.provider) ? found.provider : null,
    input_usd_per_mtok: input,
    output_usd_per_mtok: plain(found.output_usd_per_mtok),
    cached_usd_per_mtok: reads.length ? Math.min(...reads) || null : null,
    write_5m_usd_per_mtok: write("5m"),
    write_1h_usd_per_mtok: write("1h"),
    storage_usd_per_mtok_hour: found.caches.find((c) => c.storage_usd_per_mtok_hour)?.storage_usd_per_mtok_hour ?? null,
    long_above_tokens: step?.threshold ?? null,
    long_input_usd_per_mtok: step ? plain(step.input_usd_per_mtok) : null,
    long_output_usd_per_mtok: step ? plain(step.output_usd_per_mtok) : null,
    fast_price_multiple: mode?.price ?? null,
    fast_speed_multiple: mode?.speed ?? null,
  };
}

function number(s, [key, , , label]) {
  if (!s[key]) return null;
  const value = typed(String(s[key]).replace(/^\$/, ""));
  if (!Number.isFinite(value)) throw new Refused(`${label} = ${s[key]}`, "expected a number, such as 5 or 0.25");
  return value;
}

/** The sheet as evidence, as a command with only its name would have it. */
export function evidence(s) {
  return Object.fromEntries(Object.entries(listed(card(s))).filter(([, v]) => v !== null));
}

/** The sheet with what is typed in its place; or an open model whose makings are hidden. */
export function deduceRequest(s) {
  if (s.blind) return { blind: s.blind };
  const out = evidence(s);
  for (const t of TYPED) {
    const value = number(s, t);
    if (value !== null) out[t[1]] = value;
  }
  if (s.vendor) out.vendor = s.vendor;
  return out;
}

export function deduceFlags(s) {
  if (s.blind) return ["--blind", s.blind];
  const flags = s.sheet ? [s.sheet] : [];
  for (const t of TYPED) {
    const value = number(s, t);
    if (value !== null) flags.push(t[2], quote(t[4].startsWith("$") ? `${value}${t[4]}` : String(value)));
  }
  if (s.vendor) flags.push("--vendor", s.vendor);
  return flags;
}
