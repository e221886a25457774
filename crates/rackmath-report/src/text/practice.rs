//! Practice as text.

use crate::style::Style;
use rackmath::practice::Answer;
use rackmath_units::significant;
use std::fmt::Write as _;

/// `rackmath practice`: the cards, or the problems with what was answered; the working where `worked`.
pub fn practice(a: &Answer, cards: bool, worked: bool, style: Style) -> String {
    let mut out = String::new();
    if cards {
        for (i, card) in a.cards.iter().enumerate() {
            out.push_str(&style.wrapped(&format!("{:2}. ", i + 1), "    ", &card.front));
            out.push_str(&style.wrapped(
                "    ",
                "    ",
                &style.dim(&format!("{} ({}, {})", card.back, card.topic, card.claim)),
            ));
        }
        return out;
    }
    for (i, p) in a.problems.iter().enumerate() {
        out.push_str(&style.wrapped(&format!("{:2}. ", i + 1), "    ", &p.question));
        let _ = writeln!(out, "    {}", style.dim(&format!("answer in {}; {}, {}", p.unit, p.topic, p.claim)));
        let verdict = match (p.given, p.right) {
            (Some(given), Some(true)) => format!("{} is right", significant(given, 4)),
            (Some(given), _) => format!("{} is not right", significant(given, 4)),
            _ => String::new(),
        };
        if !verdict.is_empty() {
            let _ = writeln!(out, "    {}", style.bold(&verdict));
        }
        if worked || p.given.is_some() {
            let _ = writeln!(out, "    {}", p.equation);
            for line in &p.working {
                out.push_str(&style.wrapped("    ", "      ", line));
            }
        }
        out.push('\n');
    }
    let _ = match (a.answered, worked) {
        (0, false) => {
            writeln!(out, "check yours with --answers 250,2810,...; see the working with --worked; seed {}", a.seed)
        }
        (0, true) => writeln!(out, "seed {}", a.seed),
        (n, _) => writeln!(out, "{} of {n} right", a.right),
    };
    out
}
