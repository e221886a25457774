//! Remarks in words: a template for each, with its values filled in.
//!
//! A template stands on a line of `words/*.txt`, after its name and ` = `. `{x}` is a value as it is, `{x:FORMAT}` one in a
//! format of the list below, to so many digits (`{x:3}`) or so many after the point (`{x:.2}`, `{x:.1%}`, `{x:.2e}`), or a
//! list with something between its items (`{x| and }`, a comma unless given). What stands in brackets is said where all its
//! values are known; `{x:-}` only asks whether one is. Nouns after a number stand for several; of one they lose their ending
//! ([`of_one`]).

use rackmath::figure::count;
use rackmath::remark::{Part, Remark};
use rackmath_units::{
    ByteRate, Bytes, BytesPerToken, DollarRate, Dollars, DollarsPerToken, Flop, FlopRate, Fraction, HoldPrice,
    Intensity, Params, Seconds, TokenRate, Tokens, Watts, grouped, significant,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const CHAPTERS: [&str; 9] = [
    include_str!("words/catalogue.txt"),
    include_str!("words/evidence.txt"),
    include_str!("words/board.txt"),
    include_str!("words/serve.txt"),
    include_str!("words/plan.txt"),
    include_str!("words/train.txt"),
    include_str!("words/money.txt"),
    include_str!("words/tuning.txt"),
    include_str!("words/measure.txt"),
];

/// Every remark that has words, with its template.
pub fn templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    CHAPTERS.iter().flat_map(|chapter| chapter.lines()).filter_map(|line| line.split_once(" = "))
}

static TEMPLATES: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| templates().collect());

type Format = (&'static str, fn(f64) -> String);

/// Formats of numbers in base units.
const FORMATS: &[Format] = &[
    ("count", count),
    ("hundredths", |x| count(x * 100.0)),
    ("grouped", grouped),
    ("times", |x| format!("{}x", significant(x, 3))),
    ("percent", |x| Fraction::checked(x).map_or_else(|| "more than 100%".into(), |f| f.to_string())),
    ("size", |x| if x < 1e16 { Params::new(x).to_string() } else { format!("{x:e}") }),
    ("share", |x| format!("{} %", significant(x * 100.0, 3))),
    ("share2", |x| format!("{} %", significant(x * 100.0, 2))),
    ("time", |x| Seconds::s(x).to_string()),
    ("bytes", |x| Bytes::b(x).to_string()),
    ("gib", |x| format!("{} GiB", significant(x / 1_073_741_824.0, 3))),
    ("bytes_per_token", |x| BytesPerToken::new(x).to_string()),
    ("byte_rate", |x| ByteRate::b_per_s(x).to_string()),
    ("flop", |x| Flop::flop(x).to_string()),
    ("flop_rate", |x| FlopRate::flop_per_s(x).to_string()),
    ("intensity", |x| Intensity::new(x).to_string()),
    ("params", |x| Params::new(x).to_string()),
    ("tokens", |x| Tokens::new(x).to_string()),
    ("token_rate", |x| TokenRate::per_s(x).to_string()),
    ("watts", |x| Watts::w(x).to_string()),
    ("usd", |x| Dollars::usd(x).to_string()),
    ("hourly", |x| DollarRate::usd_per_s(x).to_string()),
    ("mtok", |x| DollarsPerToken::usd_per_token(x).to_string()),
    ("mtok_hour", |x| HoldPrice::usd_per_token_s(x).to_string()),
    ("-", |_| String::new()),
];

/// Remarks within a remark are said this deep; ours are not deeper.
const DEPTH: usize = 8;

/// What can be said: a remark, or a text as it is.
pub trait Words {
    fn words(&self) -> Cow<'_, str>;

    /// Whether a reader has to know it before the numbers are used.
    fn careful(&self) -> bool {
        false
    }
}

/// Assumptions that something asked for is taken as something else.
const CAREFUL: [&str; 17] = [
    "whole_hosts_ranked",
    "percentiles_in_step",
    "simulated_in_step",
    "version_not_covered",
    "weights_expanded",
    "check_split",
    "check_fitted",
    "check_format_open",
    "check_slot_capped",
    "check_drafter_unknown",
    "check_undrafted",
    "flags_aside",
    "flags_no_acceptance",
    "flags_other_model",
    "flags_no_prefixes",
    "flag_unmodelled",
    "flag_of_another_version",
];

impl Words for Remark {
    fn words(&self) -> Cow<'_, str> {
        words(self).into()
    }

    fn careful(&self) -> bool {
        CAREFUL.contains(&&*self.says)
    }
}

impl Words for str {
    fn words(&self) -> Cow<'_, str> {
        self.into()
    }
}

impl Words for String {
    fn words(&self) -> Cow<'_, str> {
        self.into()
    }
}

impl<T: Words + ?Sized> Words for &T {
    fn words(&self) -> Cow<'_, str> {
        (**self).words()
    }

    fn careful(&self) -> bool {
        (**self).careful()
    }
}

pub fn words(remark: &Remark) -> String {
    of_one(&said(remark, DEPTH)).into_owned()
}

/// What is counted in our sentences, and what may stand before it.
const COUNTED: &str = "attempt block chip conversation day deployment draft expert failure figure gap group host \
    hour layer layout machine micro-batch minute model month replica request round run sequence stage stop token turn user \
    week year";
const BEFORE: [&str; 14] = [
    "attention",
    "decode",
    "free",
    "further",
    "more",
    "output",
    "other",
    "pipeline",
    "prefill",
    "prompt",
    "published",
    "simulated",
    "spare",
    "unexpected",
];

/// A text in which one of something is said of one: "1 users" as "1 user".
pub fn of_one(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices("1 ") {
        let alone = text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(');
        let rest = &text[at + 2..];
        let word = |text: &str| text.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(text.len());
        let mut start = 0;
        let first = &rest[..word(rest)];
        if BEFORE.contains(&first) && rest[first.len()..].starts_with(' ') {
            start = first.len() + 1;
        }
        let noun = &rest[start..start + word(&rest[start..])];
        let known = |one: &&str| alone && COUNTED.split(' ').any(|known| known == *one);
        // Batches of one are a batch.
        let single = ["s", "es"].into_iter().find_map(|end| noun.strip_suffix(end).filter(known));
        let Some(one) = single else { continue };
        let end = at + 2 + start + one.len();
        out.push_str(&text[from..end]);
        from = at + 2 + start + noun.len();
    }
    if from == 0 { text.into() } else { (out + &text[from..]).into() }
}

/// Several, with something between them.
pub fn joined(all: &[impl Words], between: &str) -> String {
    all.iter().map(Words::words).collect::<Vec<_>>().join(between)
}

fn said(remark: &Remark, depth: usize) -> String {
    match TEMPLATES.get(&*remark.says) {
        Some(template) if depth > 0 => filled(template, remark, depth).0,
        // A name without words is said as it is, with all its values.
        _ => {
            let value = |(name, part): (&Cow<'_, str>, &Part)| format!(" {name} {}", shown(part, "", ", ", 0));
            remark.says.to_string() + &remark.with.iter().map(value).collect::<String>()
        }
    }
}

/// A template with its values, and whether all of them are known.
fn filled(template: &str, remark: &Remark, depth: usize) -> (String, bool) {
    let (mut out, mut all, mut rest) = (String::new(), true, template);
    while let Some(at) = rest.find(['{', '[']) {
        out.push_str(&rest[..at]);
        let end = if rest[at..].starts_with('[') { ']' } else { '}' };
        let (inner, after) = rest[at + 1..].split_once(end).unwrap_or((&rest[at + 1..], ""));
        rest = after;
        if end == ']' {
            let (text, known) = filled(inner, remark, depth);
            out.push_str(if known { &text } else { "" });
            continue;
        }
        let (inner, between) = inner.split_once('|').unwrap_or((inner, ", "));
        let (name, format) = inner.split_once(':').unwrap_or((inner, ""));
        match remark.with.get(name) {
            Some(part) => out.push_str(&shown(part, format, between, depth)),
            None => all = false,
        }
    }
    (out + rest, all)
}

/// So many significant digits, or so many after the point: of the number, of its hundredth, or before a power of ten.
fn digits(x: f64, format: &str) -> String {
    let Some(after) = format.strip_prefix('.') else {
        return significant(x, format.parse().unwrap_or(3).clamp(1, 15));
    };
    let n = after.trim_end_matches(['e', '%']).parse().unwrap_or(2_usize).min(15);
    match after.chars().last() {
        Some('e') => format!("{x:.n$e}"),
        Some('%') => format!("{:.n$} %", x * 100.0),
        _ => format!("{x:.n$}"),
    }
}

fn shown(part: &Part, format: &str, between: &str, depth: usize) -> String {
    match part {
        Part::Number(x) if x.is_finite() && *x < 0.0 => {
            format!("-{}", shown(&Part::Number(-x), format, between, depth))
        }
        Part::Number(x) if x.is_finite() && !format.is_empty() => {
            let known = FORMATS.iter().find(|(name, _)| *name == format);
            known.map_or_else(|| digits(*x, format), |(_, show)| show(*x))
        }
        Part::Number(x) => x.to_string(),
        _ if format == "-" => String::new(),
        Part::Text(text) => text.clone(),
        Part::Remark(inner) => said(inner, depth.saturating_sub(1)),
        Part::List(all) => all.iter().map(|part| shown(part, format, ", ", depth)).collect::<Vec<_>>().join(between),
    }
}
