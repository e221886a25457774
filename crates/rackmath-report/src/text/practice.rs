//! Practice as text.

use super::Page;
use crate::style::Style;
use rackmath::practice::Answer;
use rackmath_units::significant;

/// `rackmath practice`: the cards, or the problems with what was answered; the working where `worked`.
pub fn practice(a: &Answer, cards: bool, worked: bool, style: Style) -> String {
    let mut out = Page::new(style);
    if cards {
        for (i, card) in a.cards.iter().enumerate() {
            out.wrapped(&format!("{:2}. ", i + 1), "    ", &card.front);
            out.wrapped("    ", "    ", &style.dim(&format!("{} ({}, {})", card.back, card.topic, card.claim)));
        }
        return out.text();
    }
    for (i, p) in a.problems.iter().enumerate() {
        out.wrapped(&format!("{:2}. ", i + 1), "    ", &p.question);
        out.line(format!("    {}", style.dim(&format!("answer in {}; {}, {}", p.unit, p.topic, p.claim))));
        let verdict = match (p.given, p.right) {
            (Some(given), Some(true)) => format!("{} is right", significant(given, 4)),
            (Some(given), _) => format!("{} is not right", significant(given, 4)),
            _ => String::new(),
        };
        if !verdict.is_empty() {
            out.line(format!("    {}", style.bold(&verdict)));
        }
        if worked || p.given.is_some() {
            out.line(format!("    {}", p.equation));
            for line in &p.working {
                out.wrapped("    ", "      ", line);
            }
        }
        out.gap();
    }
    out.line(match (a.answered, worked) {
        (0, false) => {
            format!("check yours with --answers 250,2810,...; see the working with --worked; seed {}", a.seed)
        }
        (0, true) => format!("seed {}", a.seed),
        (n, _) => format!("{} of {n} right", a.right),
    });
    out.text()
}
