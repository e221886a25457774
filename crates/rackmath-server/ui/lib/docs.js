// The HTTP interface to read and to try, made from openapi.json alone.

import { download, el } from "./dom.js";
import { bytes, count, seconds } from "./format.js";

const main = document.getElementById("main");
const status = document.getElementById("status");
const MOST_SHOWN = 200_000;

let spec = null;

const schemaOf = (ref) => spec.components.schemas[ref.split("/").at(-1)];

/** A schema without references and without the null beside it. */
function plain(schema) {
  if (schema.$ref) return { ...schemaOf(schema.$ref), ...(schema.description ? { description: schema.description } : {}) };
  const some = (schema.anyOf ?? []).filter((s) => s.type !== "null");
  if (some.length === 1) return { ...plain(some[0]), ...(schema.description ? { description: schema.description } : {}), optional: true };
  return schema;
}

/** What a field takes, in words. */
function kind(schema) {
  const s = plain(schema);
  const types = [s.type].flat().filter((t) => t && t !== "null");
  const none = s.optional || [s.type].flat().includes("null");
  let text = types.join(" or ");
  if (s.oneOf?.every((o) => o.const !== undefined)) text = s.oneOf.map((o) => JSON.stringify(o.const)).join(" | ");
  else if (s.enum) text = s.enum.map((v) => JSON.stringify(v)).join(" | ");
  else if (s.oneOf) text = "one of several objects";
  else if (s.anyOf) text = s.anyOf.map(kind).join(" or ");
  else if (types.includes("array")) text = s.items ? `list of ${s.items.$ref && plain(s.items).properties ? "objects" : kind(s.items)}` : s.prefixItems ? `list of ${s.prefixItems.length}` : "list";
  return `${text || "any"}${none ? ", or null" : ""}`;
}

/** All fields of an object, those of objects inside it after it, by their paths. */
function fields(schema, path = [], seen = []) {
  const at = plain(schema);
  return Object.entries(at.properties ?? {}).flatMap(([name, field]) => {
    const inner = plain(field);
    const of = inner.type === "array" || [inner.type].flat().includes("array") ? plain(inner.items ?? {}) : inner;
    const here = { path: [...path, name], name, type: kind(field), about: field.description ?? inner.description ?? "", fallback: field.default, nested: Boolean(inner.properties) };
    const key = field.$ref ?? inner.items?.$ref ?? field.anyOf?.find((s) => s.$ref)?.$ref;
    if (seen.includes(key)) return [here];
    const kinds = (of.oneOf ?? []).filter((o) => o.properties);
    if (kinds.length) return [here, ...kinds.map((o) => ({ ...here, path: [...here.path, "…"], type: `object with ${Object.keys(o.properties).join(", ")}`, about: o.description ?? "", fallback: undefined, inList: true }))];
    if (!of.properties) return [here];
    const list = of !== inner;
    return [here, ...fields(of, [...path, list ? `${name}[]` : name], [...seen, key]).map((f) => ({ ...f, inList: f.inList || list }))];
  });
}

/** Every field with its default. */
function defaults(schema) {
  return Object.fromEntries(Object.entries(plain(schema).properties ?? {}).map(([name, field]) => [name, field.default ?? null]));
}

/** Where pictures are in an answer, as JSON pointers. */
function pictures(schema, path = "", seen = []) {
  return Object.entries(plain(schema).properties ?? {}).flatMap(([name, field]) => {
    const ref = field.$ref ?? field.anyOf?.find((s) => s.$ref)?.$ref;
    if (!ref || seen.includes(ref)) return [];
    return ref.endsWith(".Figure") ? [`${path}/${name}`] : pictures(field, `${path}/${name}`, [...seen, ref]);
  });
}

/** A sentence whose `words` in backticks are code. */
function marked(text) {
  return text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));
}

/** A default without what it leaves open. */
function shortened(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const kept = Object.entries(value).map(([k, v]) => [k, shortened(v)]).filter(([, v]) => v !== null && !(typeof v === "object" && !Array.isArray(v) && !Object.keys(v).length));
  return Object.fromEntries(kept);
}

function cut(text) {
  return text.length > 90 ? `${text.slice(0, 88)}…` : text;
}

function copyable(label, read) {
  const pre = el("pre", { tabindex: "0", "aria-label": label }, read());
  const button = el("button", { type: "button", class: "quiet", "aria-label": `Copy: ${label}`, onclick: () => { navigator.clipboard?.writeText(pre.textContent); button.textContent = "Copied"; status.textContent = `${label}: in the clipboard.`; } }, "Copy");
  return { node: el("div", { class: "code" }, pre, button), renew: () => { pre.textContent = read(); button.textContent = "Copy"; } };
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const base = () => new URL(".", location.href).href;
const compact = (text) => { try { return JSON.stringify(JSON.parse(text)); } catch { return text.trim(); } };

function heading(name, text, ...more) {
  return el("div", { class: "docs-head" }, el(name, {}, text), ...more);
}

function table(caption, columns, rows) {
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, columns.map((c) => el("th", { scope: "col" }, c)))), el("tbody", {}, rows)));
}

// What was typed for each question stays while the page is open.
const typed = new Map();

function question(name, { post }) {
  const ask = schemaOf(post.requestBody.content["application/json"].schema.$ref);
  const answer = schemaOf(post.responses["200"].content["application/json"].schema.$ref);
  const [about, limits] = post.description.split(" Limits: ");
  const body = el("textarea", { id: "body", rows: "10", spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-describedby": "body-help" });
  body.value = typed.get(name) ?? JSON.stringify(post.requestBody.content["application/json"].example ?? {}, null, 2);
  const curl = copyable("curl line", () => `curl -s ${base()}api/${name} -H 'content-type: application/json' -d ${quoted(compact(body.value))}`);
  const line = copyable("command line", () => `echo ${quoted(compact(body.value))} | rackmath ask ${name}`);
  const renew = () => { typed.set(name, body.value); curl.renew(); line.renew(); picture?.renew(); };
  body.addEventListener("input", renew);
  const put = (text) => { body.value = text; renew(); };
  const places = pictures(answer);
  const picture = places.length ? copyable("curl line of a picture", () => `curl -s '${base()}export/${name}?figure=${places[0]}&format=svg' -H 'content-type: application/json' -d ${quoted(compact(body.value))} > ${name}.svg`) : null;

  const said = el("p", { class: "docs-said", role: "status" }, "Nothing sent yet. Send asks this server; nothing leaves this machine.");
  const answered = el("pre", { tabindex: "0", "aria-label": "Response", class: "docs-answer", hidden: true });
  const after = el("p", { class: "docs-after", hidden: true });
  const button = el("button", { type: "button" }, "Send");
  let turn = 0;
  const send = async () => {
    const mine = ++turn;
    button.disabled = true;
    said.className = "docs-said";
    said.textContent = "Waiting for the answer…";
    const start = performance.now();
    try {
      const response = await fetch(`api/${name}`, { method: "POST", headers: { "content-type": "application/json" }, body: body.value });
      const text = await response.text();
      if (mine !== turn) return;
      const took = (performance.now() - start) / 1e3;
      said.classList.add(response.ok ? "ok" : "no");
      said.textContent = `${response.ok ? "✓" : "✗"} ${response.status}${response.statusText ? ` ${response.statusText}` : ""} · ${seconds(took)} · ${bytes(new Blob([text]).size)}`;
      answered.hidden = false;
      answered.textContent = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}\n…` : text;
      const answer = response.ok ? JSON.parse(text) : {};
      const drawn = places.filter((place) => place.slice(1).split("/").reduce((at, step) => at?.[step], answer));
      after.hidden = false;
      after.replaceChildren(
        el("button", { type: "button", class: "quiet", onclick: (event) => { navigator.clipboard?.writeText(text); event.currentTarget.textContent = "Copied"; } }, "Copy the response"), " ",
        el("button", { type: "button", class: "quiet", onclick: () => download(`${name}.json`, new Blob([text], { type: "application/json" })) }, "Save it"),
        text.length > MOST_SHOWN ? ` The first ${count(MOST_SHOWN)} of ${count(text.length)} characters are shown.` : "",
        ...drawn.map((place) => [" ", el("button", { type: "button", class: "quiet", onclick: () => picked(name, place, body.value) }, `Picture ${place} as SVG`)]).flat());
    } catch {
      said.classList.add("no");
      said.textContent = "✗ The server does not answer. Is `rackmath web` still running?";
    }
    button.disabled = false;
  };
  button.addEventListener("click", send);
  body.addEventListener("keydown", (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "Enter") { event.preventDefault(); send(); } });

  const add = (f) => {
    let now;
    try { now = JSON.parse(body.value || "{}"); } catch { said.textContent = "The body is not JSON yet; nothing was added."; return; }
    // An object that is given in part has its own defaults, so it starts from those it would have had.
    let into = now;
    f.path.slice(0, -1).forEach((step, i) => {
      into = into[step] ??= shortened(asked.find((g) => g.path.join() === f.path.slice(0, i + 1).join())?.fallback ?? {});
    });
    into[f.name] ??= shortened(f.fallback ?? null);
    put(JSON.stringify(now, null, 2));
    status.textContent = `${f.path.join(".")} is in the body.`;
  };
  const row = (f, adding) => el("tr", { class: f.path.length > 1 ? "docs-inner" : null },
    el("th", { scope: "row" }, el("code", {}, f.path.flatMap((step, i) => (i ? [".", el("wbr"), step] : [step])))),
    el("td", {}, marked(f.about)),
    el("td", {}, f.type),
    adding ? el("td", {}, f.fallback === undefined ? "" : el("code", { class: "docs-default" }, cut(JSON.stringify(shortened(f.fallback)).replaceAll(",", ", ")))) : null,
    adding ? el("td", {}, f.inList ? "" : el("button", { type: "button", class: "quiet", "aria-label": `Add ${f.path.join(".")} to the body`, onclick: () => add(f) }, "Add")) : null);

  const asked = fields(ask);
  const given = fields(answer);
  return [
    heading("h1", name, el("code", {}, `POST /api/${name}`)),
    el("p", { class: "docs-lead" }, marked(about)),
    el("section", { class: "docs-try", "aria-label": "Try it" },
      el("div", {},
        el("label", { for: "body" }, "Request body"), body,
        el("p", { class: "help", id: "body-help" }, "JSON; what is left out has its default. Ctrl+Enter sends."),
        el("p", { class: "docs-buttons" }, button, " ",
          el("button", { type: "button", class: "quiet", onclick: () => put(JSON.stringify(defaults(ask), null, 2)) }, "Fill in all defaults"), " ",
          el("button", { type: "button", class: "quiet", onclick: () => put("{}") }, "Empty"))),
      el("div", {}, el("h2", {}, "Response"), said, answered, after)),
    el("section", { class: "docs-lines", "aria-label": "The same elsewhere" }, el("h2", { class: "section" }, "The same elsewhere"), curl.node, line.node, picture?.node),
    asked.length ? table("Fields of the request", ["Field", "What it is", "Takes", "Default", "Body"], asked.map((f) => row(f, true))) : el("p", { class: "note" }, "The request has no fields."),
    limits ? el("section", {}, el("h2", { class: "section" }, "Limits of the server"), el("ul", { class: "docs-bullets" }, limits.replace(/\.$/, "").split("; ").map((l) => el("li", {}, l))), el("p", { class: "note" }, "The command line has no such limits.")) : null,
    el("details", { class: "list" }, el("summary", {}, `Fields of the answer (${count(given.length)})`), table("Fields of the answer", ["Field", "What it is", "Type"], given.map((f) => row(f, false)))),
    el("details", { class: "list" }, el("summary", {}, "When it is refused"), table("Refusals", ["Status", "When"], Object.entries(post.responses).filter(([code]) => code !== "200").map(([code, r]) => el("tr", {}, el("th", { scope: "row" }, code), el("td", {}, r.description))))),
  ];
}

async function picked(name, place, body) {
  const response = await fetch(`export/${name}?figure=${encodeURIComponent(place)}&format=svg`, { method: "POST", headers: { "content-type": "application/json" }, body });
  if (response.ok) download(`${name}${place.replaceAll("/", "-")}.svg`, await response.blob());
  else status.textContent = (await response.json().catch(() => ({}))).problem ?? `status ${response.status}`;
}

function overview() {
  const routes = [
    ["POST /api/QUESTION", "a question; the request and the answer are JSON"],
    ["GET /api", "all questions with a line about each"],
    ["GET /api/QUESTION/schema", "JSON Schema of its request and its answer"],
    ["POST /export/QUESTION?figure=/PLACE&format=svg", "a picture of the answer as svg, png or csv"],
    ["GET /openapi.json", "all of this as an OpenAPI document"],
  ];
  return [
    heading("h1", "HTTP interface", el("code", {}, `version ${spec.info.version}`)),
    el("p", { class: "docs-lead" }, marked(spec.info.description)),
    table("Routes", ["Route", "What it gives"], routes.map(([route, about]) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, route)), el("td", {}, about)))),
    table("Questions", ["Question", "What it answers"], Object.entries(spec.paths).map(([path, { post }]) => el("tr", {}, el("th", { scope: "row" }, el("a", { href: `#${path.split("/").at(-1)}` }, path.split("/").at(-1))), el("td", {}, post.summary)))),
    table("Statuses", ["Status", "Meaning"], [["200", "the answer, byte for byte that of the command line"], ["400", "the body is not a JSON object"], ["404", "there is no such question"], ["413", "the body is too large"], ["422", "it cannot be asked: what was given, what was expected, the nearest valid thing"], ["503", "too many requests at once; ask again"]].map(([code, about]) => el("tr", {}, el("th", { scope: "row" }, code), el("td", {}, about)))),
  ];
}

const content = el("div", { class: "content docs-content" });

function open(moved) {
  const name = decodeURIComponent(location.hash.slice(1));
  if (name === "main") return;
  const found = spec.paths[`/api/${name}`];
  for (const link of main.querySelectorAll(".docs-list a")) {
    if (link.hash.slice(1) === (found ? name : "")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${found ? name : "HTTP interface"} · rackmath`;
  content.replaceChildren(...(found ? question(name, found) : overview()).filter(Boolean));
  if (name && !found) status.textContent = `There is no question "${name}".`;
  if (moved) {
    const narrow = matchMedia("(max-width: 860px)").matches;
    if (narrow) { main.querySelector(".docs-list").open = false; content.scrollIntoView(); } else scrollTo(0, 0);
  }
  document.body.dataset.drawn = Number(document.body.dataset.drawn ?? 0) + 1;
}

function list() {
  const filter = el("input", { type: "text", id: "filter", placeholder: "Filter", spellcheck: "false", autocomplete: "off", "aria-label": "Filter the questions" });
  const items = [["", "Overview", ""], ...Object.entries(spec.paths).map(([path, { post }]) => [path.split("/").at(-1), path.split("/").at(-1), post.summary])]
    .map(([hash, text, about]) => ({ about: `${text} ${about}`.toLowerCase(), node: el("li", {}, el("a", { href: `#${hash}`, title: about }, text)) }));
  const none = el("p", { class: "note", hidden: true }, "No question has these words.");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const i of items) i.node.hidden = !words.every((w) => i.about.includes(w));
    none.hidden = items.some((i) => !i.node.hidden);
  });
  filter.addEventListener("keydown", (event) => {
    const first = items.find((i) => !i.node.hidden);
    if (event.key === "Enter" && first) location.hash = first.node.firstChild.hash;
  });
  const narrow = matchMedia("(max-width: 860px)").matches;
  return el("details", { class: "panel docs-list", open: !narrow }, el("summary", {}, "Questions"), el("nav", { "aria-label": "Questions" }, filter, el("ul", {}, items.map((i) => i.node)), none));
}

document.getElementById("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("theme", theme); } catch { /* storage may be off */ }
});
addEventListener("hashchange", () => open(true));

try {
  const response = await fetch("openapi.json");
  if (!response.ok) throw new Error(`status ${response.status}`);
  spec = await response.json();
  main.replaceChildren(el("div", { class: "columns docs-columns" }, list(), content));
  open(false);
} catch (problem) {
  main.replaceChildren(el("div", { class: "refused", role: "alert" }, el("strong", {}, "openapi.json cannot be read."), el("p", {}, String(problem.message))));
  document.body.dataset.drawn = 1;
}
