//! A page of text in the making, and the words for its numbers.

use super::compose::{Form, Kind, Piece, compose};
use crate::reply::Detail;
use crate::style::Style;
use crate::terminal;
use crate::words::{Words, of_one};
use comfy_table::{Row, Table};
use rackmath::figure::Figure;
use rackmath_units::{
    ByteRate, Bytes, DollarRate, DollarsPerToken, FlopRate, Fraction, Params, Seconds, TokenRate, Watts, significant,
};

/// A column of a table: its title, and what stands in it.
pub(super) type Column<'a, T> = (&'a str, &'a dyn Fn(&T) -> String);

/// Where the value of a row begins.
const ROW: usize = 25;

/// A page in pieces, each with what it is for; [`compose`] puts them in order.
pub(super) struct Page {
    pub style: Style,
    /// What is written now is for.
    kind: Kind,
    whole: bool,
    /// Whether values longer than the page is wide go on under themselves.
    folds: bool,
    pieces: Vec<Piece>,
}

impl Page {
    pub fn new(style: Style) -> Self {
        Self { style, kind: Kind::Subject, whole: false, folds: false, pieces: Vec::new() }
    }

    /// Values longer than the page is wide go on under themselves from here on.
    pub fn fold(&mut self) {
        self.folds = true;
    }

    /// As much of it as was asked for.
    pub fn text(&self, detail: Detail) -> String {
        compose(&self.pieces, self.whole, detail, self.style)
    }

    /// What follows is of this kind; what it was before.
    pub fn turn(&mut self, kind: Kind) -> Kind {
        std::mem::replace(&mut self.kind, kind)
    }

    pub fn figures(&mut self) {
        self.kind = Kind::Figures;
    }

    pub fn advice(&mut self) {
        self.kind = Kind::Advice;
    }

    pub fn working(&mut self) {
        self.kind = Kind::Working;
    }

    /// Something of a kind, whatever is written around it.
    pub fn within(&mut self, kind: Kind, write: impl FnOnce(&mut Self)) {
        let before = self.turn(kind);
        write(self);
        self.kind = before;
    }

    /// A list that was asked for as such is not cut.
    pub fn uncut(&mut self) {
        self.whole = true;
        self.figures();
    }

    /// The answer in a sentence.
    pub fn verdict(&mut self, text: impl Words) {
        let said = sentence(&of_one(&text.words()));
        self.within(Kind::Verdict, |out| out.paragraph("", out.style.bold(&said)));
    }

    /// What has to be known beside it.
    pub fn further(&mut self, text: impl Words) {
        let said = sentence(&of_one(&text.words()));
        self.within(Kind::Verdict, |out| out.paragraph("", said));
    }

    /// The same, where it is good news or bad.
    pub fn judged(&mut self, good: bool, text: impl Words) {
        let said = sentence(&of_one(&text.words()));
        self.within(Kind::Verdict, |out| {
            out.paragraph("", if good { out.style.good(&said) } else { out.style.bad(&said) });
        });
    }

    /// What to be careful about, before the figures.
    pub fn caution(&mut self, text: impl Words) {
        self.within(Kind::Caution, |out| out.wrapped("! ", "  ", text));
    }

    fn push(&mut self, form: Form, text: &str) {
        for (i, line) in text.split('\n').enumerate() {
            // Empty lines inside a text are gaps; others of it are its next lines.
            if line.trim().is_empty() {
                self.gap();
            } else if i > 0 && self.pieces.last().is_some_and(|p| p.form == form && p.kind == self.kind) {
                if let Some(last) = self.pieces.last_mut() {
                    last.text.push('\n');
                    last.text.push_str(line);
                }
            } else {
                self.pieces.push(Piece::new(self.kind, form, line));
            }
        }
    }

    pub fn line(&mut self, text: impl Words) {
        self.push(Form::Line, &of_one(&text.words()));
    }

    pub fn gap(&mut self) {
        self.pieces.push(Piece::new(self.kind, Form::Gap, ""));
    }

    pub fn title(&mut self, text: impl Words) {
        // The subject is a line like others: nothing is under it.
        let form = if self.kind == Kind::Subject { Form::Line } else { Form::Head };
        self.push(form, &self.style.bold(&of_one(&text.words())));
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

    /// A line in the background above what it speaks of.
    pub fn above(&mut self, text: impl Words) {
        self.push(Form::Head, &self.style.dim(&of_one(&text.words())));
    }

    /// The same in as many lines as it takes, as it is.
    pub fn over(&mut self, text: impl Words) {
        self.hung(Form::Head, "", "  ", text);
    }

    /// A labelled value.
    pub fn row(&mut self, label: &str, value: impl Words) {
        self.rowed(label, &value.words(), |_, text| text.to_owned());
    }

    /// A labelled value that matters.
    pub fn field(&mut self, label: &str, value: impl Words) {
        self.rowed(label, &value.words(), Style::bold);
    }

    fn rowed(&mut self, label: &str, value: &str, shown: fn(Style, &str) -> String) {
        let (style, first, indent) = (self.style, format!("  {label:<22} "), " ".repeat(ROW));
        let long = first.chars().count() + value.chars().count() > style.width;
        // What is coloured has letters that take no room, what has lines of its own keeps them.
        if !self.folds || !long || value.contains(['\u{1b}', '\n']) {
            return self.line(format!("{first}{}", shown(style, value)));
        }
        let folded = style.wrapped(&first, &indent, value);
        let lines = folded.lines().enumerate().map(|(i, line)| {
            let before = if i == 0 { &first } else { &indent };
            format!("{before}{}", shown(style, line.strip_prefix(before.as_str()).unwrap_or(line)))
        });
        self.line(lines.collect::<Vec<_>>().join("\n"));
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

    pub fn wrapped(&mut self, first: &str, indent: &str, text: impl Words) {
        self.hung(Form::Line, first, indent, text);
    }

    fn hung(&mut self, form: Form, first: &str, indent: &str, text: impl Words) {
        let text = self.style.wrapped(first, indent, &of_one(&text.words()));
        self.pieces.push(Piece::new(self.kind, form, text.trim_end_matches('\n')));
    }

    pub fn paragraph(&mut self, indent: &str, text: impl Words) {
        self.wrapped(indent, indent, text);
    }

    pub fn item(&mut self, text: impl Words) {
        self.hung(Form::Item, "  - ", "    ", text);
    }

    /// A list under its title, where there is anything in it.
    pub fn list(&mut self, title: &str, items: &[impl Words]) {
        if !items.is_empty() {
            self.above(title);
        }
        for item in items {
            self.item(item);
        }
    }

    /// What the answer assumes; what one has to be careful about stands before the figures.
    pub fn assumes(&mut self, items: &[impl Words]) {
        let (careful, others): (Vec<_>, Vec<_>) = items.iter().partition(|item| Words::careful(*item));
        for item in careful {
            self.caution(item);
        }
        self.within(Kind::Assumption, |out| out.list("assumes", &others));
    }

    /// Where its numbers come from.
    pub fn sources(&mut self, items: &[impl Words]) {
        self.within(Kind::Source, |out| out.list("sources", items));
    }

    /// A source, indented.
    pub fn cited(&mut self, indent: &str, text: impl Words) {
        self.hung(Form::Item, indent, indent, text);
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

    /// Rows of a table; what did not fit into a line belongs to the row above it, and the first row is its head.
    fn finish(&mut self, table: &Table) {
        let mut form = Form::Head;
        for line in table.to_string().lines() {
            let text = format!(" {}", line.trim_end());
            match self.pieces.last_mut().filter(|_| form == Form::Row && line.starts_with("  ")) {
                Some(above) => above.text = format!("{}\n{text}", above.text),
                None => self.pieces.push(Piece::new(self.kind, form, text)),
            }
            form = Form::Row;
        }
    }

    /// A chart: how the numbers of the answer came about, or what was asked for.
    pub fn draw(&mut self, figure: &Figure) {
        let drawn = |rows| terminal::draw(figure, rows, self.style).trim_end_matches('\n').to_owned();
        // Only figures are shown on a short page.
        let small = (self.kind == Kind::Figures).then(|| drawn(terminal::FEW));
        self.pieces.push(Piece { small, ..Piece::new(self.kind, Form::Line, drawn(terminal::ROWS)) });
    }

    /// Pictures, each after a gap, for who wants to see how the numbers lie.
    pub fn pictures<'a>(&mut self, figures: impl IntoIterator<Item = &'a Figure>) {
        self.within(Kind::Working, |out| {
            for figure in figures {
                out.gap();
                out.draw(figure);
                out.gap();
            }
        });
    }
}

/// With a capital and a full stop, where it begins with a word and not with a name.
pub fn sentence(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    let word = first.trim_end_matches([',', ':', ';', '.']);
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    let mut said = if plain { text[..1].to_ascii_uppercase() + &text[1..] } else { text.to_owned() };
    if !said.ends_with(['.', '?', '!', ':']) {
        said.push('.');
    }
    said
}

/// A table of which the columns are still to be told.
pub(super) struct Each<'a, T> {
    page: &'a mut Page,
    all: &'a [T],
}

impl<T> Each<'_, T> {
    pub fn columns(self, columns: &[Column<'_, T>]) {
        let header: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
        let line = |one: &T| columns.iter().map(|(_, cell)| of_one(&cell(one)).into_owned()).collect::<Vec<_>>();
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
