//! Failures and published runs as text.

use super::lifecycle::{big, notes, usd};
use super::{Page, or_dash, percent, seconds, three};
use crate::style::Style;
use rackmath::figure::Figure;
use rackmath::forensics::Variable;
use rackmath::{forensics, goodput};
use rackmath_units::{FlopRate, grouped};

/// `rackmath goodput`
pub fn goodput(a: &goodput::Answer, figure: &Figure, style: Style) -> String {
    let mut out = Page::new(style);
    out.head(format!("{} chips, a failure every {}", grouped(a.chips), seconds(a.job_mtbf_s)));
    let per = format!("{} chip-hours", grouped(a.chip_hours_per_failure));
    out.field("per failure", per);
    out.field("checkpoint every", format!("{} of work", seconds(a.interval_s)));
    out.more(format!(
        "best {}; Young's rule says {}",
        or_dash(a.best_interval_s, seconds),
        or_dash(a.young_interval_s, seconds)
    ));
    out.field("progress", format!("{} of all time", percent(a.goodput)));
    let first = if a.first_order < 0.0 { "nothing left".into() } else { percent(a.first_order) };
    out.more(format!("to first order {first}"));
    match &a.simulated {
        Some(s) => {
            let line = format!(
                "{}: {} stalls, {} undone, {} restarts",
                percent(s.goodput),
                percent(s.stalls),
                percent(s.lost),
                percent(s.restarts)
            );
            out.field("simulated", line);
            out.more(format!(
                "{} failures, {} checkpoints, {} days",
                grouped(s.failures as f64),
                grouped(s.checkpoints as f64),
                three(s.wall_days)
            ));
        }
        None => out.field("simulated", "not played: it would take more than two million events"),
    }
    if a.wall_days < 1e9 {
        let days =
            format!("{} days instead of {}, {} chip-hours", three(a.wall_days), three(a.work_days), big(a.chip_hours));
        out.field("run", days);
    } else {
        out.field("run", "never ends at this interval");
    }
    if let Some((low, high)) = a.effective_mfu {
        let text = if low == high { percent(low) } else { format!("{} to {}", percent(low), percent(high)) };
        out.field("effective MFU", text);
    }
    if let Some(x) = a.usd {
        out.field("cost", usd(x));
    }
    out.gap();
    out.list("assumes", &a.assumptions);
    out.gap();
    out.draw(figure);
    out.text()
}

fn show(what: Variable, x: f64) -> String {
    match what {
        Variable::Mfu => format!("{} %", three(x * 100.0)),
        Variable::Peak => FlopRate::checked(x).map_or("-".into(), |f| f.to_string()),
        Variable::Dollars => usd(x),
        Variable::Price => format!("${}/h", three(x)),
        Variable::Flop => format!("{x:.2e}"),
        Variable::Chips => grouped(x),
        Variable::Days => three(x),
        _ => big(x),
    }
}

fn range(what: Variable, low: f64, high: f64) -> String {
    if low <= 0.0 {
        return format!("at most {}", show(what, high));
    }
    if high >= f64::MAX {
        return format!("at least {}", show(what, low));
    }
    let (l, h) = (show(what, low), show(what, high));
    if l == h { l } else { format!("{l} to {h}") }
}

/// `rackmath forensics`
pub fn forensics(a: &forensics::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    let title = a.request.run.as_deref().map_or("A training run".to_owned(), |r| format!("The run {r}"));
    out.head(format!("{title}: what is known and what follows"));
    let mut table = style.table(&["", "estimate", "90 %", "cannot be outside", ""]);
    for f in &a.findings {
        let bounds = match (f.at_least, f.at_most) {
            (Some(l), Some(h)) => range(f.what, l, h),
            (Some(l), None) => format!("at least {}", show(f.what, l)),
            (None, Some(h)) => format!("at most {}", show(f.what, h)),
            (None, None) => "-".into(),
        };
        table.add_row([
            f.what.to_string(),
            or_dash(f.estimate, |x| show(f.what, x)),
            or_dash(f.likely, |k| range(f.what, k.low, k.high)),
            bounds,
            if f.given.is_some() { "given".into() } else { String::new() },
        ]);
    }
    out.finish(&table);
    out.gap();
    if let Some((x, low, high)) = a.achieved_flop_per_s {
        let text = format!("{} ({})", show(Variable::Peak, x), range(Variable::Peak, low, high));
        out.field("achieved per chip", text);
    }
    if let Some(c) = &a.contradiction {
        let line = format!("these figures contradict each other by {}x", three(c.gap));
        out.row("contradiction", style.bad(&line));
        out.more(c.relation);
        out.more(format!(
            "demands {} of {}, but it is {}",
            range(c.at, c.demanded.low, c.demanded.high),
            c.at,
            range(c.at, c.known.low, c.known.high)
        ));
        out.more("estimates above make peace between them and are not to be trusted");
    }
    out.gap();
    out.list("assumes", &a.assumptions);
    notes(&mut out, "sources", &a.sources);
    out.text()
}
