// Numbers as people read them: three digits and a unit. Values come in base units; nothing is computed here.

const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const COUNTS = [[1e15, "Q"], [1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]];

/** Three significant digits, thousands grouped, no superfluous exponent. */
export function digits(value, n = 3) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : Number.isNaN(value) ? "–" : "−∞";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-4) {
    const [m, e] = value.toExponential(n - 1).split("e");
    return `${m}e${Number(e)}`;
  }
  const places = Math.max(0, n - 1 - Math.floor(Math.log10(size)));
  const rounded = Number(value.toPrecision(n));
  return rounded.toLocaleString("en-US", { minimumFractionDigits: Math.min(places, 8), maximumFractionDigits: Math.min(places, 8) });
}

function scaled(value, steps, unit) {
  const size = Math.abs(value);
  for (const [scale, prefix] of steps) {
    if (size >= scale * 0.9995) return `${digits(value / scale)} ${prefix}${unit}`.trimEnd();
  }
  return `${digits(value)} ${unit}`.trimEnd();
}

export function seconds(value) {
  const size = Math.abs(value);
  if (value === 0) return "0 s";
  if (size < 1e-6) return `${digits(value * 1e9)} ns`;
  if (size < 1e-3) return `${digits(value * 1e6)} µs`;
  if (size < 1) return `${digits(value * 1e3)} ms`;
  if (size < 120) return `${digits(value)} s`;
  if (size < 7200) return `${digits(value / 60)} min`;
  if (size < 2 * 86400) return `${digits(value / 3600)} h`;
  return `${digits(value / 86400)} d`;
}

export const bytes = (v) => scaled(v, PREFIXES, "B");
export const params = (v) => scaled(v, COUNTS, "");
export const rate = (v, unit) => scaled(v, PREFIXES, unit);
export const usd = (v) => (Math.abs(v) >= 1e6 ? `$${scaled(v, COUNTS, "")}` : `$${digits(v)}`);
export const perMtok = (v) => `$${digits(v)}/Mtok`;
export const percent = (v, n = 2) => `${digits(v * 100, n)} %`;
export const count = (v) => (Number.isInteger(v) && Math.abs(v) < 1e7 ? v.toLocaleString("en-US") : scaled(v, COUNTS, ""));

/** A number of things: 1 person, 4 people, 2.5 stages. */
export const many = (v, one, more = `${one}s`) => `${Number.isInteger(v) ? count(v) : digits(v)} ${v === 1 ? one : more}`;
/** Two digits where they say all, three where a step of a slider needs them. */
export const short = (v) => digits(v, Number(v.toPrecision(2)) === Number(v.toPrecision(3)) ? 2 : 3);
/** The same for a share. */
export const shortPercent = (v) => `${short(v * 100)} %`;

const UNITS = {
  seconds,
  usd_per_mtok: perMtok,
  count,
  tokens_per_s: (v) => rate(v, "tok/s"),
  bytes,
  bytes_per_token: (v) => `${bytes(v)}/tok`,
  flop_per_byte: (v) => `${digits(v)} FLOP/B`,
  number: (v) => digits(v),
  params,
  usd,
  flop: (v) => `${digits(v)} FLOP`,
};

/** A value of a figure's axis. */
export function show(unit, value) {
  if (value === null || value === undefined) return "–";
  return (UNITS[unit] ?? ((v) => digits(v)))(value);
}

/** The same for a tick: no trailing zeros, no unit that the axis label has. */
export function tick(unit, value) {
  if (unit === "seconds" && value >= 120 && value < 1e7 && Number.isInteger(value)) return `${count(value)} s`;
  return show(unit, value).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "").replace("/Mtok", "").replace(/ ?tok\/s/, "").replace(" FLOP/B", "");
}

/** A number inside an equation. */
export function tex(text) {
  return `\\text{${String(text).replace(/([%$&#_{}])/g, "\\$1").replaceAll("µ", "$\\mu$").replaceAll("∞", "$\\infty$")}}`;
}

/** A number typed by a person: 4096, 128k, 1M, 1,234.5 with commas between thousands, or 11,7 with one for the decimals. */
export function typed(text) {
  const plain = /^\s*[1-9][0-9]{0,2}(,[0-9]{3})+(?![0-9,])/.test(text) ? text.replaceAll(",", "") : text.replace(/^(\s*[0-9]+),([0-9]+(?:e[+-]?[0-9]+)?\s*[A-Za-z]*\s*)$/, "$1.$2");
  const match = /^\s*([0-9][0-9_]*\.?[0-9]*(?:e[+-]?[0-9]+)?)\s*(Ki|k|K|M|B|G|T)?\s*$/.exec(plain);
  if (!match) return NaN;
  const scale = { Ki: 1024, k: 1e3, K: 1e3, M: 1e6, B: 1e9, G: 1e9, T: 1e12 }[match[2]] ?? 1;
  return Number(match[1].replaceAll("_", "")) * scale;
}
