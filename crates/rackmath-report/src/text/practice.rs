//! Practice as text.

use super::page::Page;
use crate::reply::Part;
use rackmath::practice::Answer;
use rackmath_units::significant;

/// `rackmath practice`: the cards, or the problems with what was answered and, where asked for, the working.
pub(super) fn practice(out: &mut Page, a: &Answer, part: Part) {
    if part == Part::Cards {
        for (i, card) in a.cards.iter().enumerate() {
            out.wrapped(&format!("{:2}. ", i + 1), "    ", &card.front);
            out.paragraph("    ", out.style.dim(&format!("{} ({}, {})", card.back, card.topic, card.claim)));
        }
        return;
    }
    let worked = part == Part::Worked;
    for (i, p) in a.problems.iter().enumerate() {
        out.wrapped(&format!("{:2}. ", i + 1), "    ", &p.question);
        out.line(format!("    {}", out.style.dim(&format!("answer in {}; {}, {}", p.unit, p.topic, p.claim))));
        if let Some(given) = p.given {
            let verdict = if p.right == Some(true) { "is right" } else { "is not right" };
            out.line(format!("    {}", out.style.bold(&format!("{} {verdict}", significant(given, 4)))));
        }
        if worked || p.given.is_some() {
            out.line(format!("    {}", p.equation));
            for line in &p.working {
                out.wrapped("    ", "      ", line);
            }
        }
        out.gap();
    }
    let seed = a.seed;
    out.line(match (a.answered, worked) {
        (0, false) => format!("check yours with --answers 250,2810,...; see the working with --worked; seed {seed}"),
        (0, true) => format!("seed {seed}"),
        (n, _) => format!("{} of {n} right", a.right),
    });
}
