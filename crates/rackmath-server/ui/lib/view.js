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

  /** An equation, the same with the values in it, and what the letters mean. */
  equation(key, { tex, values, note, title }) {
    const part = this.part(key, () => {
      const box = el("section", { class: "equation", tabindex: "0", "aria-label": title ?? "Equation" });
      const made = { box, title: el("h2"), tex: el("div", { class: "tex" }), values: el("div", { class: "tex live" }), note: el("p", { class: "note" }) };
      box.append(made.title, made.tex, made.values, made.note);
      return made;
    });
    const set = (node, text) => {
      node.hidden = !text;
      if (text && node.dataset.tex !== text) {
        katex.render(text, node, { displayMode: true, throwOnError: false, strict: "ignore", output: "htmlAndMathml" });
        node.dataset.tex = text;
      }
    };
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
      for (const format of ["SVG", "PNG", "CSV", "JSON"]) {
        made.tools.append(el("button", { type: "button", class: "quiet", "aria-label": `Save ${key} as ${format}`, onclick: () => save(key, made, format.toLowerCase()) }, format));
      }
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
        el("caption", {}, caption),
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
    const block = (label, text) => el("div", { class: "code" }, el("pre", { tabindex: "0", "aria-label": label }, text), el("button", {
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
    this.begin();
    this.end();
  }
}

async function save(key, { source, figure }, format) {
  if (!source) {
    // A figure the page put together is drawn by the same hand as the others.
    const give = format === "json" ? new Blob([JSON.stringify(figure, null, 2)], { type: "application/json" }) : await drawn(figure, format);
    download(`${key}.${format}`, give);
    return;
  }
  const [question, request, pointer] = source;
  if (format === "json") {
    download(`${question}.json`, await plain(question, request));
  } else {
    download(`${question}-${key}.${format}`, await exported(question, request, pointer, format));
  }
}

/** Rows as a CSV text. */
export function csv(rows) {
  return rows.map((row) => row.map((cell) => (/[",\n]/.test(String(cell ?? "")) ? `"${String(cell).replaceAll('"', '""')}"` : String(cell ?? ""))).join(",")).join("\n") + "\n";
}
