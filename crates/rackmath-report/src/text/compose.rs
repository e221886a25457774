//! A page put together from its pieces: the verdict first, then figures, then what to change; the rest where it is asked for.
//!
//! Renderers say what each piece is for ([`Kind`]) and how it hangs together ([`Form`]). Only this file decides in which order
//! pieces stand and which of them a short page leaves out. What is left out is named in the last line, with the flag that shows it.

use crate::reply::Detail;
use crate::style::Style;

/// Lines of a page that nobody asked more of.
pub const LINES: usize = 25;

/// Rows of a table on such a page.
const ROWS: usize = 12;

/// Lines kept for what binds and what to change, however many figures there are.
const ADVICE: usize = 9;

/// What a piece is for. Pages are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The answer, in a sentence.
    Verdict,
    /// Of what it is the answer.
    Subject,
    /// What one has to know before the figures are used.
    Caution,
    Figures,
    /// What binds, and what to change.
    Advice,
    /// How it came about.
    Working,
    Assumption,
    Source,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Verdict,
        Self::Subject,
        Self::Caution,
        Self::Figures,
        Self::Advice,
        Self::Working,
        Self::Assumption,
        Self::Source,
    ];

    fn shown(self, detail: Detail) -> bool {
        match self {
            Self::Verdict => true,
            Self::Subject | Self::Caution | Self::Figures | Self::Advice => detail != Detail::Verdict,
            Self::Working | Self::Assumption => matches!(detail, Detail::Page { explain: true, .. }),
            Self::Source => matches!(detail, Detail::Page { sources: true, .. }),
        }
    }
}

/// How a piece hangs together with its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An empty line.
    Gap,
    /// Belongs to what follows: a title, the head of a table.
    Head,
    /// A row of a table.
    Row,
    /// A line of a list, in as many lines as it takes.
    Item,
    Line,
}

#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub kind: Kind,
    pub form: Form,
    /// Its lines, without the end of the last.
    pub text: String,
    /// The same in fewer, for a short page.
    pub small: Option<String>,
}

impl Piece {
    pub fn new(kind: Kind, form: Form, text: impl Into<String>) -> Self {
        Self { kind, form, text: text.into(), small: None }
    }

    /// As a short page has it.
    fn short(&self) -> &str {
        self.small.as_deref().unwrap_or(&self.text)
    }

    fn lines(&self) -> usize {
        self.short().lines().count().max(1)
    }
}

/// What stands together: a head, and what is under it.
#[derive(Clone, Default)]
struct Group<'a> {
    head: Vec<&'a Piece>,
    body: Vec<&'a Piece>,
}

impl Group<'_> {
    fn lines(&self) -> usize {
        self.head.iter().chain(&self.body).map(|p| p.lines()).sum()
    }
}

fn groups<'a>(pieces: &'a [Piece], kind: Kind) -> Vec<Group<'a>> {
    let mut all: Vec<Group<'a>> = Vec::new();
    let mut open = false;
    for piece in pieces.iter().filter(|p| p.kind == kind) {
        let ends = piece.form == Form::Head && all.last().is_some_and(|g| !g.body.is_empty());
        if piece.form == Form::Gap {
            open = false;
            continue;
        }
        if !open || ends {
            all.push(Group::default());
            open = true;
        }
        if let Some(group) = all.last_mut() {
            if piece.form == Form::Head { group.head.push(piece) } else { group.body.push(piece) }
        }
    }
    all
}

/// Lines of a part of a page, and how many rows of it are not there.
#[derive(Default)]
struct Part {
    lines: Vec<String>,
    hidden: usize,
}

impl Part {
    fn whole(groups: &[Group<'_>], gaps: bool) -> Self {
        let mut part = Self::default();
        for (i, group) in groups.iter().enumerate() {
            if i > 0 && gaps {
                part.lines.push(String::new());
            }
            group.head.iter().chain(&group.body).for_each(|p| part.lines.extend(p.text.lines().map(str::to_owned)));
        }
        part
    }

    fn add(&mut self, piece: &Piece) {
        self.lines.extend(piece.short().lines().map(str::to_owned));
    }

    /// As much as there is room for: from the top, no table longer than its share, and a line for what is missing of it.
    fn cut(groups: &[Group<'_>], room: usize, style: Style) -> Self {
        let longest = |g: &Group<'_>| g.body.iter().filter(|p| p.form == Form::Row).count();
        let drawn = groups.iter().any(|g| g.body.iter().any(|p| p.small.is_some()));
        if groups.iter().all(|g| longest(g) <= ROWS) && !drawn {
            for gaps in [true, false] {
                let whole = Self::whole(groups, gaps);
                if whole.lines.len() <= room {
                    return whole;
                }
            }
        }
        let mut part = Self::default();
        for group in groups {
            let left = room.saturating_sub(part.lines.len());
            let head: usize = group.head.iter().map(|p| p.lines()).sum();
            if group.lines() <= left && longest(group) <= ROWS {
                group.head.iter().chain(&group.body).for_each(|p| part.add(p));
                continue;
            }
            // A head, a row and the line for the rest, or nothing of it.
            let first = group.body.first().map_or(0, |p| p.lines());
            if left < head + first + 1 || (part.hidden > 0 && left < head + first + 2) {
                part.hidden += group.body.len();
                continue;
            }
            group.head.iter().for_each(|p| part.add(p));
            let mut rows = 0;
            let mut missing = 0;
            for piece in &group.body {
                let fits = part.lines.len() + piece.lines() < room;
                let few = piece.form != Form::Row || rows < ROWS;
                if missing == 0 && fits && few {
                    rows += usize::from(piece.form == Form::Row);
                    part.add(piece);
                } else {
                    missing += 1;
                }
            }
            part.hidden += missing;
            let what = if rows > 0 { "row" } else { "line" };
            let s = if missing == 1 { "" } else { "s" };
            part.lines.push(style.dim(&format!("  ... {missing} more {what}{s} with --explain")));
        }
        part
    }
}

/// Lines down to the first item of the last group, and one for what follows it.
fn first_of_last(groups: &[Group<'_>]) -> usize {
    let Some((last, before)) = groups.split_last() else { return 0 };
    let first = last.body.first().map_or(0, |p| p.lines() + 1);
    before.iter().map(Group::lines).sum::<usize>() + last.head.iter().map(|p| p.lines()).sum::<usize>() + first
}

/// A page, as much of it as was asked for; `whole` for lists, which are what was asked for.
pub(super) fn compose(pieces: &[Piece], whole: bool, detail: Detail, style: Style) -> String {
    let of = |kind| groups(pieces, kind);
    let verdict = of(Kind::Verdict);
    // Where nothing is said in a sentence, the list is the answer.
    let detail = if detail == Detail::Verdict && verdict.is_empty() { Detail::default() } else { detail };
    let explain = matches!(detail, Detail::Page { explain: true, .. });
    let mut parts: Vec<(Kind, Part)> = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|k| k.shown(detail)) {
        parts.push((kind, Part::whole(&of(kind), true)));
    }
    let more = if detail == Detail::Verdict { None } else { Some(detail) };
    let mut hidden = 0;
    if !explain && !whole && more.is_some() {
        let length = |kind: Kind| parts.iter().find(|(k, _)| *k == kind).map_or(0, |(_, p)| p.lines.len());
        // An empty line before figures, before advice and before the last line.
        let taken = length(Kind::Verdict) + length(Kind::Subject) + length(Kind::Caution) + 4;
        let room = LINES.saturating_sub(taken);
        let least = ADVICE.max(first_of_last(&of(Kind::Advice)));
        let advice = length(Kind::Advice).min(least.max(room.saturating_sub(length(Kind::Figures))));
        for (kind, part) in &mut parts {
            let room = match kind {
                Kind::Figures => room.saturating_sub(advice),
                Kind::Advice => advice,
                _ => continue,
            };
            *part = Part::cut(&of(*kind), room, style);
            hidden += part.hidden;
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for (kind, part) in parts.into_iter().filter(|(_, p)| !p.lines.is_empty()) {
        if !lines.is_empty() && !matches!(kind, Kind::Subject | Kind::Caution) {
            lines.push(String::new());
        }
        lines.extend(part.lines);
    }
    if let Some(said) = more.and_then(|detail| rest(pieces, hidden, detail)) {
        lines.push(String::new());
        lines.push(style.dim(&said));
    }
    lines.iter().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// What more there is, and how to see it.
fn rest(pieces: &[Piece], hidden: usize, detail: Detail) -> Option<String> {
    let has = |kind: Kind| pieces.iter().any(|p| p.kind == kind && p.form != Form::Gap);
    let items =
        |kind: Kind| pieces.iter().filter(|p| p.kind == kind && matches!(p.form, Form::Item | Form::Row)).count();
    let mut explain: Vec<String> = Vec::new();
    if !Kind::Working.shown(detail) {
        if hidden > 0 {
            explain.push("all rows".to_owned());
        }
        if has(Kind::Working) {
            explain.push("working".to_owned());
        }
        match items(Kind::Assumption) {
            0 => {}
            1 => explain.push("1 assumption".to_owned()),
            n => explain.push(format!("{n} assumptions")),
        }
    }
    let mut said = Vec::new();
    if !explain.is_empty() {
        said.push(format!("--explain ({})", explain.join(", ")));
    }
    if has(Kind::Source) && !Kind::Source.shown(detail) {
        said.push(format!("--sources ({})", items(Kind::Source).max(1)));
    }
    if said.is_empty() { None } else { Some(format!("more: {}", said.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Form::{Gap, Head, Item, Line, Row};
    use Kind::{Advice, Assumption, Figures, Source, Subject, Verdict, Working};

    fn page(all: &[(Kind, Form, usize)]) -> Vec<Piece> {
        let each = |(at, (kind, form, n)): (usize, &(Kind, Form, usize))| {
            let (kind, form) = (*kind, *form);
            (0..*n).map(move |i| Piece::new(kind, form, format!("{kind:?} {form:?} {at}.{i}"))).collect::<Vec<_>>()
        };
        all.iter().enumerate().flat_map(each).collect()
    }

    fn long() -> Vec<Piece> {
        page(&[
            (Subject, Line, 2),
            (Figures, Head, 1),
            (Figures, Row, 40),
            (Figures, Line, 2),
            (Figures, Gap, 1),
            (Figures, Line, 9),
            (Working, Line, 50),
            (Advice, Item, 30),
            (Verdict, Line, 2),
            (Assumption, Head, 1),
            (Assumption, Item, 14),
            (Source, Item, 9),
        ])
    }

    const FULL: Detail = Detail::FULL;

    #[test]
    fn the_verdict_comes_first_and_a_short_page_is_short() {
        let text = compose(&long(), false, Detail::default(), Style::default());
        assert!(text.starts_with("Verdict"), "{text}");
        assert!(text.lines().count() <= LINES, "{text}");
        assert!(text.ends_with("more: --explain (all rows, working, 14 assumptions), --sources (9)\n"), "{text}");
        assert!(text.contains("more rows with --explain") && text.contains("Advice"), "{text}");
    }

    #[test]
    fn the_first_piece_of_advice_stands_under_its_head() {
        let mut pieces = page(&[(Verdict, Line, 2), (Figures, Line, 12), (Advice, Line, 5), (Advice, Gap, 1)]);
        pieces.push(Piece::new(Advice, Head, "what would help"));
        pieces.push(Piece::new(Advice, Line, "first\nin three\nlines"));
        pieces.extend(page(&[(Advice, Line, 3)]));
        let text = compose(&pieces, false, Detail::default(), Style::default());
        assert!(text.contains("what would help\nfirst\nin three\nlines\n"), "{text}");
        assert!(text.lines().count() <= LINES, "{text}");
    }

    #[test]
    fn nothing_is_lost_where_all_is_asked_for() {
        let all = long();
        let text = compose(&all, false, FULL, Style::default());
        for piece in all.iter().filter(|p| p.form != Gap) {
            assert!(text.contains(&piece.text), "{}", piece.text);
        }
        assert!(!text.contains("more:") && !text.contains("more rows"), "{text}");
    }

    #[test]
    fn each_flag_shows_its_part() {
        let of = |explain, sources| compose(&long(), false, Detail::Page { explain, sources }, Style::default());
        assert!(of(true, false).contains("Working") && !of(true, false).contains("Source"));
        assert!(of(true, false).ends_with("more: --sources (9)\n"));
        assert!(of(false, true).contains("Source Item") && !of(false, true).contains("Working"));
    }

    #[test]
    fn only_the_verdict_where_nothing_else_is_asked_for() {
        let text = compose(&long(), false, Detail::Verdict, Style::default());
        assert_eq!(text.lines().filter(|l| l.starts_with("Verdict")).count(), text.lines().count());
        let list = page(&[(Figures, Row, 60)]);
        assert_eq!(compose(&list, true, Detail::Verdict, Style::default()).lines().count(), 60);
    }
}
