// The board: which page, what is set on it, what was answered, in the address so that a link brings it back.

import { ask, known, Refused } from "./api.js";
import { controls } from "./controls.js";
import { el } from "./dom.js";
import { address, read, unpack } from "./state.js";
import { View } from "./view.js";
import { PAGES } from "../pages/index.js";

const main = document.getElementById("main");
const status = document.getElementById("status");

// How long settings stand still before a slow question is asked.
const REST_MS = 100;

// What tests and the curious may look at.
const board = { page: null, values: {}, asked: {}, answers: {}, charts: {}, drawn: 0, error: null, settled: false };
window.rackmath = board;

let page = null;
let view = null;
let panel = null;
let shown = [];
let busy = false;
let again = false;
// How far in this tab undo and redo reach: an entry of the history has its depth, and the site begins at 0.
let depth = history.state?.depth ?? 0;
let top = depth;
history.replaceState({ depth }, "");

function reached() {
  document.getElementById("undo").disabled = depth <= 0;
  document.getElementById("redo").disabled = depth >= top;
}
const undo = () => { if (depth > 0) history.back(); };
const redo = () => { if (depth < top) history.forward(); };

function defaults() {
  return Object.fromEntries(shown.filter((c) => c.key).map((c) => [c.key, c.value]));
}

function change(key, value, final) {
  board.values = { ...board.values, [key]: value };
  if (key === "model" && !final) return;
  // Another question has other controls: what was set for the last one goes.
  if (shown.some((c) => c.key === key && c.renews)) board.values = { [key]: value };
  const models = shown.some((c) => c.kind === "model");
  if (models && key === "model" && !value?.endsWith(".json")) delete board.values.config;
  const to = address(page.id, board.values, defaults());
  if (final) {
    const from = before ?? (location.hash || `#/${page.id}`);
    if (to !== from) {
      // The drag replaced the address as it went; what stood before it is one step back.
      history.replaceState({ depth }, "", from);
      history.pushState({ depth: ++depth }, "", to);
      top = depth;
      reached();
    }
    before = null;
    if (shown.some((c) => c.key === key && c.renews)) { open(); return; }
  } else {
    before ??= location.hash || `#/${page.id}`;
    history.replaceState({ depth }, "", to);
  }
  panel?.set(board.values);
  update();
}
let before = null;
let interrupt = null;
let slowest = Promise.resolve();

/** Asks and draws; while one round is under way only the latest wish waits. */
async function update() {
  if (busy) { again = true; interrupt?.(); return; }
  busy = true;
  board.settled = false;
  do {
    again = false;
    await round();
  } while (again);
  busy = false;
  board.settled = true;
}

// A request is [question, request]; a list of them is answered by a list, in which a refusal stands in its place.
const list = (a) => Array.isArray(a[0]);
const spared = (problem) => { if (problem instanceof Refused) return problem; throw problem; };

/** Answers by name. A question the page can do without gives null when refused, and the reason in `refused`. */
async function get(some, optional = [], refused = {}) {
  const one = async ([name, a]) => {
    if (list(a)) return [name, await Promise.all(a.map((each) => ask(...each).catch(spared)))];
    return [name, await ask(...a).catch((problem) => {
      if (!(problem instanceof Refused && optional.includes(name))) throw problem;
      refused[name] = problem;
      return null;
    })];
  };
  return Object.fromEntries(await Promise.all(some.map(one)));
}

async function round() {
  const now = page;
  const values = { ...board.values };
  try {
    const config = values.config;
    if (config?.startsWith("!")) throw new Refused(config.slice(1));
    const files = config && values.model?.endsWith(".json") ? { [values.model]: await unpack(config).catch(() => { throw new Refused("the link's config.json is damaged"); }) } : undefined;
    const wanted = (some) => Object.entries(some ?? {}).filter(([, a]) => a).map(([name, a]) => [name, files ? (list(a) ? a.map(withFiles) : withFiles(a)) : a]);
    const withFiles = ([question, request]) => [question, { files, ...request }];
    // A page that opens shows its first answer before it asks for the rest.
    const behind = view.parts.size ? [] : now.opening ?? [];
    const waits = ([name, a]) => (now.later?.includes(name) || behind.includes(name)) && !(list(a) ? a : [a]).every((one) => known(...one));
    const asks = wanted(now.requests(values));
    const slow = setTimeout(() => { status.textContent = "computing…"; }, 150);
    const refused = {};
    const answered = (some) => get(some, now.optional, refused);
    let answers;
    try {
      answers = await answered(asks.filter((a) => !waits(a)));
      // What can be asked only now that these answers are here.
      const next = wanted(now.follow?.(answers, values));
      asks.push(...next);
      answers = { ...answers, ...await answered(next.filter((a) => !waits(a))) };
    } finally { clearTimeout(slow); }
    const late = asks.filter(([name]) => !(name in answers));
    if (now !== page) return undefined;
    draw(now, { refused, ...answers }, values, asks, late.length > 0);
    if (!late.length) return done();
    // What takes longer is asked when the hand rests and the slow questions before it are answered, so that they do not
    // pile up; it is drawn when it comes, unless something else is asked meanwhile.
    done();
    status.textContent = "computing…";
    let dropped = false;
    const woken = new Promise((wake) => { interrupt = () => { dropped = true; wake(); }; });
    const rest = new Promise((wake) => { setTimeout(wake, REST_MS); });
    const rested = Promise.all([rest, slowest.catch(() => {})]).then(() => {
      if (dropped) return undefined;
      let open = late.length;
      slowest = Promise.all(late.map(async (a) => {
        const answer = await answered([a]);
        if (dropped || now !== page) return;
        open -= 1;
        Object.assign(answers, answer);
        draw(now, { refused, ...answers }, values, asks, open > 0);
      }));
      return slowest;
    });
    await Promise.race([rested, woken]);
    if (dropped || now !== page) return undefined;
  } catch (problem) {
    if (now !== page) return undefined;
    if (!(problem instanceof Refused)) console.error(problem);
    board.error = problem.message;
    view.begin();
    view.refused(problem);
    view.end();
  }
  return done();
}

function draw(now, answers, values, asks, pending = false) {
  Object.assign(board, { asked: Object.fromEntries(asks), answers, error: null });
  view.begin();
  now.render(view, answers, values, { requests: Object.fromEntries(asks.map(([name, a]) => [name, a])), change });
  if (now.command || asks.length) view.command(now.command?.(values, answers) ?? "", now.asked?.(answers, values) ?? asks.filter(([name, a]) => name !== "lecture" && !list(a)).map(([, a]) => a));
  view.end(pending);
  if (sought && !pending) {
    const part = main.querySelector(`[data-part="${CSS.escape(sought)}"]`);
    sought = null;
    part?.scrollIntoView({ block: "center" });
  }
}
// A figure that a link names, until it is shown.
let sought = null;

function done() {
  board.charts = view.charts;
  board.drawn += 1;
  status.textContent = "";
  document.body.dataset.drawn = board.drawn;
}

async function open() {
  const { page: id, values } = read();
  const entry = PAGES.find((p) => p.id === id);
  const found = entry ?? PAGES[0];
  const bench = !found.learn;
  nav(bench);
  for (const link of document.querySelectorAll("#nav a")) {
    const here = link.dataset.page === found.id;
    if (here || (bench && link.dataset.way === "bench")) link.setAttribute("aria-current", here ? "page" : "true");
    else link.removeAttribute("aria-current");
  }
  inView();
  const module = await import(`../pages/${found.id}.js`);
  // A page may make its controls from what is set.
  const list = typeof module.page.controls === "function" ? await module.page.controls(values) : module.page.controls ?? [];
  if (page?.id !== found.id || list.length !== shown.length || list.some((c, i) => c.key !== shown[i].key)) {
    page?.leave?.();
    view?.clear();
    page = module.page;
    slowest = Promise.resolve();
    board.page = page.id;
    document.title = `${page.name?.(values) ?? page.title} · rackmath`;
    // A page that tells its own story has its own headings.
    const title = page.lead ? el("div", { class: "lead" }, el("h1", {}, page.title), el("p", {}, page.lead)) : "";
    const content = el("div", { class: "content" });
    shown = list;
    // Numbers in the text are settings too, without a panel.
    const beside = shown.filter((c) => c.kind !== "knob");
    panel = beside.length ? controls(beside, () => board.values, change) : null;
    const side = panel ? el("form", { class: "panel", "aria-label": "Settings", onsubmit: (e) => e.preventDefault() }, panel.nodes) : null;
    main.replaceChildren(title, el("div", { class: panel ? "columns" : "single" }, side, content));
    view = new View(content);
  }
  const { figure, ...others } = values;
  sought = figure ?? null;
  const { fine, odd } = numbers(others);
  board.values = { ...defaults(), ...fine };
  const unknown = !entry && id ? `There is no page "${id}"; this is ${found.name}. ` : "";
  ignored.textContent = unknown + odd.join(" ");
  ignored.hidden = !ignored.textContent;
  if (ignored.parentNode !== main) main.prepend(ignored);
  panel?.set(board.values);
  await update();
}

/** The workbench's menu shows where the reader is, where it is too narrow for all of it. */
function inView() {
  const here = document.querySelector("#nav .bench [aria-current=page]");
  const menu = here?.closest("ul");
  if (menu) menu.scrollLeft += here.getBoundingClientRect().left - menu.getBoundingClientRect().left - (menu.clientWidth - here.offsetWidth) / 2;
}

// What a link says and the page cannot use, in words above it.
const ignored = el("p", { class: "ignored", role: "alert", hidden: true });

/** Settings of a link without those that should be numbers and are not, and what is said of them. */
function numbers(given) {
  const fine = { ...given };
  const odd = [];
  for (const c of shown) {
    const text = given[c.key];
    const numeric = c.kind === "range" || (c.kind === "knob" && typeof c.value === "number");
    if (!numeric || text === undefined || (text !== "" && Number.isFinite(Number(text)))) continue;
    delete fine[c.key];
    odd.push(`The link says ${c.key} = "${text}", which is no number and is ignored: ${c.value} is taken.`);
  }
  return { fine, odd };
}

/** The ways in, and on the workbench its pages. */
function nav(bench) {
  const box = document.getElementById("nav");
  if (box.dataset.bench === String(bench)) return;
  box.dataset.bench = String(bench);
  const link = (p, text, more) => el("li", {}, el("a", { href: `#/${p.id}`, title: p.about, ...more }, text));
  const first = PAGES.find((p) => !p.learn);
  box.replaceChildren(
    el("ul", { class: "ways" }, PAGES.filter((p) => p.learn).map((p) => link(p, p.name, { "data-page": p.id })), link({ ...first, about: "Every chapter and tool with all its settings" }, "Workbench", { "data-way": "bench" })),
    ...(bench ? [el("ul", { class: "bench", "aria-label": "Workbench" }, PAGES.filter((p) => !p.learn).map((p) => link(p, p.name, { "data-page": p.id })))] : []),
  );
}
document.getElementById("undo").addEventListener("click", undo);
document.getElementById("redo").addEventListener("click", redo);
document.getElementById("link").addEventListener("click", (event) => {
  navigator.clipboard?.writeText(location.href);
  status.textContent = "The link is in the clipboard.";
  event.currentTarget.blur();
});
document.getElementById("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("theme", theme); } catch { /* storage may be off */ }
  document.dispatchEvent(new Event("themechange"));
});
addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  if (event.target.matches?.("input[type=text], textarea")) return;
  event.preventDefault();
  if (event.shiftKey) redo(); else undo();
});
addEventListener("popstate", (event) => {
  // A link that was followed is a new entry, without a depth yet.
  if (event.state?.depth === undefined) { top = depth + 1; history.replaceState({ depth: top }, ""); }
  depth = event.state?.depth ?? top;
  reached();
  open();
});
addEventListener("hashchange", open);
reached();
open();
