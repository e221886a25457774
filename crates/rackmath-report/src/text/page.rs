//! A page of text in the making, and the words for its numbers.

use crate::style::Style;
use crate::terminal;
use crate::words::{Words, of_one};
use comfy_table::{Row, Table};
use rackmath::figure::Figure;
use rackmath_units::{
    ByteRate, Bytes, DollarRate, DollarsPerToken, FlopRate, Fraction, Params, Seconds, TokenRate, Watts, significant,
};
use std::fmt::Write as _;

/// A column of a table: its title, and what stands in it.
pub(super) type Column<'a, T> = (&'a str, &'a dyn Fn(&T) -> String);

pub(super) struct Page {
    pub text: String,
    pub style: Style,
}

impl Page {
    pub fn new(style: Style) -> Self {
        Self { text: String::new(), style }
    }

    pub fn line(&mut self, text: impl Words) {
        let _ = writeln!(self.text, "{}", of_one(&text.words()));
    }

    pub fn gap(&mut self) {
        self.text.push('\n');
    }

    pub fn title(&mut self, text: impl Words) {
        self.line(self.style.bold(&text.words()));
    }

    /// A title and an empty line.
    pub fn head(&mut self, text: impl Words) {
        self.title(text);
        self.gap();
    }

    /// An empty line and a title.
    pub fn part(&mut self, text: impl Words) {
        self.gap();
        self.title(text);
    }

    /// A line in the background.
    pub fn dim(&mut self, text: impl Words) {
        self.line(self.style.dim(&text.words()));
    }

    /// The same, indented.
    pub fn note(&mut self, text: impl Words) {
        self.line(format!("  {}", self.style.dim(&text.words())));
    }

    pub fn row(&mut self, label: &str, value: impl Words) {
        self.line(format!("  {label:<22} {}", value.words()));
    }

    /// A labelled value that matters.
    pub fn field(&mut self, label: &str, value: impl Words) {
        self.row(label, self.style.bold(&value.words()));
    }

    /// The same, where there is one.
    pub fn maybe(&mut self, label: &str, value: Option<impl Words>) {
        if let Some(value) = value {
            self.field(label, value);
        }
    }

    /// More about the row above.
    pub fn more(&mut self, value: impl Words) {
        self.row("", value);
    }

    /// The same, in as many lines as it takes.
    pub fn below(&mut self, text: impl Words) {
        self.paragraph("                         ", text);
    }

    pub fn wrapped(&mut self, first: &str, indent: &str, text: impl Words) {
        self.text.push_str(&self.style.wrapped(first, indent, &of_one(&text.words())));
    }

    pub fn paragraph(&mut self, indent: &str, text: impl Words) {
        self.wrapped(indent, indent, text);
    }

    pub fn item(&mut self, text: impl Words) {
        self.wrapped("  - ", "    ", text);
    }

    /// A list under its title, where there is anything in it.
    pub fn list(&mut self, title: &str, items: &[impl Words]) {
        if !items.is_empty() {
            self.dim(title);
        }
        for item in items {
            self.item(item);
        }
    }

    /// What the answer assumes, after a gap.
    pub fn assumes(&mut self, items: &[impl Words]) {
        self.gap();
        self.list("assumes", items);
    }

    /// Items under a title and a gap after them, where there are any.
    pub fn section(&mut self, title: impl Words, items: impl IntoIterator<Item = impl Words>) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_some() {
            self.title(title);
            items.for_each(|item| self.item(item));
            self.gap();
        }
    }

    pub fn commands(&mut self, all: &[impl Words]) {
        for command in all {
            self.wrapped("  $ ", "      ", command);
        }
    }

    pub fn table<R: Into<Row>>(&mut self, header: &[impl AsRef<str>], rows: impl IntoIterator<Item = R>) {
        let mut table = self.style.table(header);
        table.add_rows(rows);
        self.finish(&table);
    }

    /// A table with a line for each thing.
    pub fn each<'a, T>(&'a mut self, all: &'a [T]) -> Each<'a, T> {
        Each { page: self, all }
    }

    fn finish(&mut self, table: &Table) {
        for line in table.to_string().lines() {
            let _ = writeln!(self.text, " {}", line.trim_end());
        }
    }

    pub fn draw(&mut self, figure: &Figure) {
        self.text.push_str(&terminal::draw(figure, self.style));
    }

    /// Pictures, each after a gap.
    pub fn pictures<'a>(&mut self, figures: impl IntoIterator<Item = &'a Figure>) {
        for figure in figures {
            self.gap();
            self.draw(figure);
        }
    }
}

/// A table of which the columns are still to be told.
pub(super) struct Each<'a, T> {
    page: &'a mut Page,
    all: &'a [T],
}

impl<T> Each<'_, T> {
    pub fn columns(self, columns: &[Column<'_, T>]) {
        let header: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
        let line = |one: &T| columns.iter().map(|(_, cell)| cell(one)).collect::<Vec<_>>();
        self.page.table(&header, self.all.iter().map(line));
    }

    /// Only those columns that are to be shown.
    pub fn some(self, columns: &[(bool, Column<'_, T>)]) {
        let shown: Vec<Column<'_, T>> = columns.iter().filter(|(shown, _)| *shown).map(|(_, column)| *column).collect();
        self.columns(&shown);
    }
}

/// A line of a table that begins with a name.
pub(super) fn led(first: impl Into<String>, rest: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(first.into()).chain(rest).collect()
}

pub(super) fn seconds(s: f64) -> String {
    Seconds::s(s).to_string()
}

pub(super) fn ms(x: f64) -> String {
    Seconds::ms(x).to_string()
}

pub(super) fn bytes(x: f64) -> String {
    Bytes::b(x).to_string()
}

pub(super) fn byte_rate(x: f64) -> String {
    ByteRate::b_per_s(x).to_string()
}

pub(super) fn flop_rate(x: f64) -> String {
    FlopRate::flop_per_s(x).to_string()
}

pub(super) fn params(x: f64) -> String {
    Params::new(x).to_string()
}

pub(super) fn tok_s(x: f64) -> String {
    TokenRate::per_s(x).to_string()
}

pub(super) fn mtok(x: f64) -> String {
    DollarsPerToken::per_mtok(x).to_string()
}

pub(super) fn hourly(x: f64) -> String {
    or(DollarRate::checked(x / 3600.0), "", |d| d.to_string())
}

pub(super) fn watts(x: f64) -> String {
    Watts::w(x).to_string()
}

pub(super) fn three(x: f64) -> String {
    significant(x, 3)
}

pub(super) fn usd(x: f64) -> String {
    format!("${}", three(x))
}

/// A factor: "1.5x".
pub(super) fn times(x: f64) -> String {
    format!("{}x", three(x))
}

pub(super) fn percent(share: f64) -> String {
    or(Fraction::checked(share), "more than 100%", |f| f.to_string())
}

/// The end of a word for several.
pub(super) fn plural(n: u64) -> &'static str {
    if n == 1 { "" } else { "s" }
}

pub(super) fn only(holds: bool, text: impl Into<String>) -> String {
    if holds { text.into() } else { String::new() }
}

/// From one end to the other, once where they are the same.
pub(super) fn span(from: f64, to: f64, show: impl Fn(f64) -> String) -> String {
    if from == to { show(from) } else { format!("{} to {}", show(from), show(to)) }
}

pub(super) fn or<T>(value: Option<T>, none: &str, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| none.to_owned(), show)
}

pub(super) fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    or(value, "-", show)
}
