// The board of a page: sections that keep their place while their numbers change.
//
// A page's render() names what it shows, in order; what it no longer names goes away.
//   view.reading("Memory-bound: the weights take 62 % of the step.")
//   view.equation("step", { tex: "t = ...", values: "= \\max(...)", note: "..." })
//   view.chart("time", answer.time, { source: ["curve", request, "/time"], at: batch })
//   view.table("kinks", { caption, columns, rows }), view.node("grid", element), view.heading("h", "Two racks")
//   view.numbers("n", [[label, value, note]]), view.note(key, text), view.list(key, title, sentences), view.claims(key, lecture, ["D1"])

import { Chart } from "./chart.js";
import { download, el } from "./dom.js";
import { drawn, exported, plain } from "./api.js";

export class View {
  constructor(root) {
    this.root = root;
    this.parts = new Map();
    this.charts = {};
  }

  begin() {
    this.before = this.order ?? [];
    this.order = [];
  }

  /** Takes away what was not named; while answers are pending it stays in its place, dimmed. */
  end(pending = false) {
    if (pending) {
      this.before.forEach((key, i) => {
        const part = this.parts.get(key);
        if (!part || this.order.includes(key)) return;
        part.box.classList.add("stale");
        this.order.splice(i === 0 ? 0 : this.order.indexOf(this.before[i - 1]) + 1, 0, key);
      });
    }
    for (const [key, part] of this.parts) {
      if (this.order.includes(key)) continue;
      part.chart?.destroy();
      delete this.charts[key];
      part.box.remove();
      this.parts.delete(key);
    }
    if (this.watch && !pending) this.reserve();
    // Nodes are moved only where the order differs, so that focus and scroll stay.
    this.order.forEach((key, i) => {
      const { box } = this.parts.get(key);
      if (this.root.children[i] !== box) this.root.insertBefore(box, this.root.children[i] ?? null);
    });
  }

  part(key, make) {
    let part = this.parts.get(key);
    if (!part) {
      part = make();
      part.box.dataset.part = key;
      this.parts.set(key, part);
    }
    this.order.push(key);
    part.box.classList.remove("stale");
    if (!part.box.isConnected) this.root.append(part.box);
    return part;
  }

  /** The one sentence that says what the picture means. */
  reading(text, key = "reading") {
    const part = this.part(key, () => ({ box: el("p", { class: "reading", "aria-live": "polite" }) }));
    part.box.textContent = text;
  }

  heading(key, text) {
    const part = this.part(key, () => ({ box: el("h2", { class: "section" }) }));
    part.box.textContent = text;
  }

  note(key, text) {
    const part = this.part(key, () => ({ box: el("p", { class: "note" }) }));
    part.box.textContent = text;
  }

  /** A handful of headline numbers: [[label, value, note], ...]. */
  numbers(key, list) {
    const part = this.part(key, () => ({ box: el("dl", { class: "numbers" }) }));
    part.box.replaceChildren(
      ...list.map(([label, value, note]) => el("div", {}, el("dt", {}, label), el("dd", {}, value, note ? el("small", {}, note) : null))),
    );
  }

  /** A sentence: texts, `{ out }` for a number that was answered, `{ node }` for a knob. Only what differs is written, so that a knob stays under the hand. */
  prose(key, parts) {
    const part = this.part(key, () => ({ box: el("p", { class: "prose" }), shape: "" }));
    const shape = parts.map((p) => (typeof p === "string" ? "t" : p.node ? "k" : p.href ? "a" : "o")).join("");
    if (shape !== part.shape) {
      part.shape = shape;
      part.nodes = parts.map((p) => {
        if (typeof p === "string") return document.createTextNode(p);
        if (p.href) return el("a", { href: p.href }, p.text);
        return p.node ?? el("b", { class: "out" }, p.out);
      });
      part.box.replaceChildren(...part.nodes);
      this.wide = null;
      this.watch ??= new ResizeObserver(() => this.reserve());
      this.watch.observe(this.root);
      return;
    }
    parts.forEach((p, i) => {
      const text = typeof p === "string" ? p : p.out;
      if (text !== undefined && part.nodes[i].textContent !== text) part.nodes[i].textContent = text;
    });
  }

  /** Sentences keep room for longer numbers, so that nothing under them moves while one is dragged. */
  reserve() {
    if (this.wide === this.root.clientWidth) return;
    this.wide = this.root.clientWidth;
    const boxes = [...this.parts.values()].filter((p) => p.nodes).map((p) => p.box);
    for (const box of boxes) { box.style.minHeight = ""; box.classList.add("widest"); }
    const heights = boxes.map((box) => Math.ceil(box.getBoundingClientRect().height));
    boxes.forEach((box, i) => { box.classList.remove("widest"); box.style.minHeight = `${heights[i]}px`; });
  }

  /** An equation that opens into its values: the same with numbers in it, and each letter with its meaning and its number. */
  opening(key, { tex, values, letters, note }) {
    const part = this.part(key, () => {
      const made = { tex: el("span", { class: "tex" }), live: el("div", { class: "tex live", tabindex: "0", role: "group", "aria-label": "The same with its values" }), letters: el("dl", { class: "letters" }), note: el("p", { class: "note" }) };
      made.box = el("details", { class: "opening" }, el("summary", {}, made.tex, el("span", { class: "opens" }, "values")), made.live, made.letters, made.note);
      return made;
    });
    set(part.tex, tex);
    set(part.live, values);
    const rows = JSON.stringify(letters ?? []);
    if (part.rows !== rows) {
      part.rows = rows;
      part.letters.replaceChildren(...(letters ?? []).map(([letter, meaning, value]) => {
        const dt = el("dt", {});
        set(dt, letter, false);
        return el("div", {}, dt, el("dd", {}, el("b", {}, value), ` ${meaning}`));
      }));
    }
    part.note.textContent = note ?? "";
    part.note.hidden = !note;
  }

  /** An equation, the same with the values in it, and what the letters mean. */
  equation(key, { tex, values, note, title }) {
    const part = this.part(key, () => {
      const box = el("section", { class: "equation", tabindex: "0", "aria-label": title ?? "Equation" });
      const made = { box, title: el("h2"), tex: el("div", { class: "tex" }), values: el("div", { class: "tex live" }), note: el("p", { class: "note" }) };
      box.append(made.title, made.tex, made.values, made.note);
      return made;
    });
    part.title.textContent = title ?? "";
    part.title.hidden = !title;
    set(part.tex, tex);
    set(part.values, values);
    part.note.textContent = note ?? "";
    part.note.hidden = !note;
  }

  /** A chart; `source: [question, request, pointer]` says where its figure is from, for its files. */
  chart(key, figure, options = {}) {
    if (!figure) return;
    const part = this.part(key, () => {
      const made = { title: el("figcaption"), sub: el("span", { class: "sub" }), inner: el("div", { class: "chart-box" }), tools: el("div", { class: "tools" }) };
      made.box = el("figure", { class: "chart" }, made.title, made.inner, made.tools);
      made.chart = new Chart(made.inner);
      const row = (verb, formats, act) => el("span", { class: "tool-row" }, el("span", { class: "sub" }, verb), formats.map((format) =>
        el("button", { type: "button", class: "quiet", "aria-label": `${verb} ${key} as ${format}`, onclick: (event) => act(key, made, format.toLowerCase(), event.currentTarget) }, format)));
      made.tools.append(row("Copy", ["SVG", "PNG", "CSV", "Link"], copy), row("Save", ["SVG", "PNG", "CSV", "JSON"], save));
      return made;
    });
    part.title.replaceChildren(el("strong", {}, options.title ?? figure.title), " ", el("span", { class: "sub" }, options.subtitle ?? figure.subtitle));
    part.source = options.source;
    part.figure = figure;
    part.box.setAttribute("aria-label", `${figure.title}. ${options.alt ?? ""}`);
    part.chart.set(figure, options);
    this.charts[key] = part.chart;
  }

  /** A table: columns [{ name, align }], rows of texts or nodes; `row.class` may be given as rows[i].class. The same object is not drawn twice. */
  table(key, spec) {
    const part = this.part(key, () => ({ box: el("div", { class: "table", tabindex: "0", role: "region" }) }));
    if (part.spec === spec) return;
    part.spec = spec;
    const { caption, columns, rows } = spec;
    part.box.setAttribute("aria-label", caption);
    part.box.replaceChildren(
      el("table", {},
        el("caption", {}, el("span", {}, caption)),
        el("thead", {}, el("tr", {}, columns.map((c) => el("th", { scope: "col", class: c.align === "right" ? "right" : null }, c.name ?? c)))),
        el("tbody", {}, rows.map((row) => el("tr", { class: row.class }, [...(row.cells ?? row)].map((cell, i) =>
          i === 0 && cell !== "" ? el("th", { scope: "row", class: columns[0]?.align === "right" ? "right" : null }, cell) : el("td", { class: columns[i]?.align === "right" ? "right" : null }, cell ?? "–"))))),
      ),
    );
  }

  /** Sentences under a title: assumptions, sources. */
  list(key, title, items) {
    const part = this.part(key, () => ({ box: el("details", { class: "list" }) }));
    part.box.replaceChildren(el("summary", {}, title), el("ul", {}, items.map((text) => el("li", {}, text))));
  }

  /** What an answer rests on: a mark with its grade that opens to every part. */
  evidence(key, known) {
    if (!known) return;
    const names = { measured: "measured", transferred: "carried over", never_checked: "never checked" };
    const mark = (grade) => el("span", { class: `grade ${grade}` }, names[grade] ?? grade);
    const part = this.part(key, () => ({ box: el("details", { class: "list evidence" }) }));
    part.box.replaceChildren(
      el("summary", {}, "Evidence: ", mark(known.grade)),
      el("p", {}, known.says),
      el("ul", {}, known.parts.map((p) => el("li", {}, mark(p.grade), ` ${p.part}: ${p.says}`))),
    );
  }

  /** Anything else: a node made once and changed by the page, or made anew. */
  node(key, node) {
    const part = this.part(key, () => ({ box: el("div", { class: "custom" }) }));
    if (part.box.firstChild !== node) part.box.replaceChildren(node);
  }

  /** Claims of the lecture by id: its number, ours, and why they differ; nothing until the lecture is there. */
  claims(key, lecture, ids) {
    if (!lecture) return;
    const sign = ids.join();
    if (this.told?.lecture !== lecture || this.told.sign !== sign) {
      const claims = ids.map((id) => lecture.claims.find((c) => c.id === id)).filter(Boolean);
      const rows = claims.flatMap((c) => c.numbers.map((n, i) => [i === 0 ? `${c.id} ${c.title}` : "", n.inputs, n.lecture, n.ours, n.why]));
      this.told = { lecture, sign, spec: { caption: "The lecture's numbers beside ours", columns: ["Claim", "For", "Lecture", "Ours", "Why"], rows } };
    }
    this.table(key, this.told.spec);
  }

  /** What the library said instead of an answer. */
  refused(problem) {
    const part = this.part("refused", () => ({ box: el("div", { class: "refused", role: "alert" }) }));
    part.box.replaceChildren(el("strong", {}, problem.message), problem.hint ? el("p", {}, problem.hint) : "");
  }

  /** The same question in a terminal, and as JSON. */
  command(line, asks) {
    const part = this.part("command", () => ({ box: el("section", { class: "command", "aria-label": "On the command line" }) }));
    const json = asks.map(([question, request]) => `echo '${JSON.stringify(request).replaceAll("'", "'\\''")}' | rackmath ask ${question}`).join("\n");
    const key = `${line}\n${json}`;
    if (part.box.dataset.key === key) return;
    part.box.dataset.key = key;
    const block = (label, text) => el("div", { class: "code" }, el("pre", { tabindex: "0", "aria-label": label }, unbroken(text)), el("button", {
      type: "button", class: "quiet", "aria-label": `Copy: ${label}`,
      onclick: (event) => { navigator.clipboard?.writeText(text); event.currentTarget.textContent = "Copied"; },
    }, "Copy"));
    part.box.replaceChildren(
      el("h2", { class: "section" }, "The same in a terminal"),
      line ? block("command line", line) : "",
      el("details", {}, el("summary", {}, "as JSON, the same bytes as over HTTP"), block("JSON request", json)),
    );
  }

  clear() {
    this.watch?.disconnect();
    this.begin();
    this.end();
  }
}

/** Sets an equation, unless it stands there already. */
function set(node, text, display = true) {
  node.hidden = !text;
  if (!text || node.dataset.tex === text) return;
  katex.render(text, node, { displayMode: display, throwOnError: false, strict: "ignore", output: "htmlAndMathml" });
  node.dataset.tex = text;
}

// The file of a figure: the server draws it, so that it is the same as from the command line.
async function file({ source, figure }, format) {
  if (!source) return format === "json" ? new Blob([JSON.stringify(figure, null, 2)], { type: "application/json" }) : drawn(figure, format);
  const [question, request, pointer] = source;
  return format === "json" ? plain(question, request) : exported(question, request, pointer, format);
}

const say = (text) => { document.getElementById("status").textContent = text; };

async function save(key, made, format) {
  const question = made.source?.[0];
  const name = !question ? key : format === "json" ? question : `${question}-${key}`;
  download(`${name}.${format}`, await file(made, format));
}

// Where a page may not write to the clipboard, it hands the file over instead.
async function copy(key, made, format) {
  const what = format === "link" ? "The link to this figure" : `The figure as ${format.toUpperCase()}`;
  try {
    if (format === "link") {
      await navigator.clipboard.writeText(linked(key));
    } else if (format === "png") {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": file(made, "png").then((blob) => new Blob([blob], { type: "image/png" })) })]);
    } else {
      await navigator.clipboard.writeText(await (await file(made, format)).text());
    }
    say(`${what} is in the clipboard.`);
  } catch {
    if (format === "link") { say(linked(key)); return; }
    await save(key, made, format);
    say("The clipboard is closed to this page; the figure was saved as a file.");
  }
}

/** The address of this view that opens at a figure. */
function linked(key) {
  const [path, query = ""] = location.hash.split("?");
  const values = new URLSearchParams(query);
  values.set("figure", key);
  return `${location.href.split("#")[0]}${path || "#/lecture"}?${values}`;
}

/** The words of a command, each kept whole where the line has room for it: "--on" has places to break in it otherwise. */
const unbroken = (text) => text.split(/(\s+)/).map((word) => (word.trim() ? el("span", { class: "word" }, word) : word));

/** Rows as a CSV text. */
export function csv(rows) {
  return rows.map((row) => row.map((cell) => (/[",\n]/.test(String(cell ?? "")) ? `"${String(cell).replaceAll('"', '""')}"` : String(cell ?? ""))).join(",")).join("\n") + "\n";
}
