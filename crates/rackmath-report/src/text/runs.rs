//! Failures and published runs as text.

use super::lifecycle::{big, usd};
use super::page::{Page, or_dash, percent, seconds, span, three, times};
use rackmath::figure::Figure;
use rackmath::forensics::{self, Variable};
use rackmath::goodput;
use rackmath_units::{FlopRate, grouped};

pub(super) fn goodput(out: &mut Page, a: &goodput::Answer, figure: &Figure) {
    out.head(format!("{} chips, a failure every {}", grouped(a.chips), seconds(a.job_mtbf_s)));
    out.field("per failure", format!("{} chip-hours", grouped(a.chip_hours_per_failure)));
    out.field("checkpoint every", format!("{} of work", seconds(a.interval_s)));
    let [best, young] = [a.best_interval_s, a.young_interval_s].map(|t| or_dash(t, seconds));
    out.more(format!("best {best}; Young's rule says {young}"));
    out.field("progress", format!("{} of all time", percent(a.goodput)));
    let first = if a.first_order < 0.0 { "nothing left".into() } else { percent(a.first_order) };
    out.more(format!("to first order {first}"));
    if let Some(s) = &a.simulated {
        let [progress, stalls, lost, restarts] = [s.goodput, s.stalls, s.lost, s.restarts].map(percent);
        out.field("simulated", format!("{progress}: {stalls} stalls, {lost} undone, {restarts} restarts"));
        let [failures, checkpoints] = [s.failures, s.checkpoints].map(|n| grouped(n as f64));
        out.more(format!("{failures} failures, {checkpoints} checkpoints, {} days", three(s.wall_days)));
    } else {
        out.field("simulated", "not played: it would take more than two million events");
    }
    if a.wall_days < 1e9 {
        let ([wall, work], hours) = ([a.wall_days, a.work_days].map(three), big(a.chip_hours));
        out.field("run", format!("{wall} days instead of {work}, {hours} chip-hours"));
    } else {
        out.field("run", "never ends at this interval");
    }
    out.maybe("effective MFU", a.effective_mfu.map(|(low, high)| span(low, high, percent)));
    out.maybe("cost", a.usd.map(usd));
    out.assumes(&a.assumptions);
    out.pictures([figure]);
}

fn show(what: Variable, x: f64) -> String {
    match what {
        Variable::Mfu => format!("{} %", three(x * 100.0)),
        Variable::Peak => or_dash(FlopRate::checked(x), |f| f.to_string()),
        Variable::Dollars => usd(x),
        Variable::Price => format!("${}/h", three(x)),
        Variable::Flop => format!("{x:.2e}"),
        Variable::Chips => grouped(x),
        Variable::Days => three(x),
        _ => big(x),
    }
}

/// Between two ends, each of which may be missing.
fn range(what: Variable, low: Option<f64>, high: Option<f64>) -> String {
    let ends = [low.filter(|x| *x > 0.0), high.filter(|x| *x < f64::MAX)].map(|x| x.map(|x| show(what, x)));
    match ends {
        [Some(l), Some(h)] if l == h => l,
        [Some(l), Some(h)] => format!("{l} to {h}"),
        [Some(l), None] => format!("at least {l}"),
        [None, Some(h)] => format!("at most {h}"),
        [None, None] => "-".into(),
    }
}

pub(super) fn forensics(out: &mut Page, a: &forensics::Answer) {
    let known = |what: Variable, k: forensics::Known| range(what, Some(k.low), Some(k.high));
    let title = a.request.run.as_deref().map_or("A training run".to_owned(), |r| format!("The run {r}"));
    out.head(format!("{title}: what is known and what follows"));
    out.columns(
        &a.findings,
        &[
            ("", &|f| f.what.to_string()),
            ("estimate", &|f| or_dash(f.estimate, |x| show(f.what, x))),
            ("90 %", &|f| or_dash(f.likely, |k| known(f.what, k))),
            ("cannot be outside", &|f| range(f.what, f.at_least, f.at_most)),
            ("", &|f| if f.given.is_some() { "given".into() } else { String::new() }),
        ],
    );
    out.gap();
    let achieved =
        |(x, low, high)| format!("{} ({})", show(Variable::Peak, x), range(Variable::Peak, Some(low), Some(high)));
    out.maybe("achieved per chip", a.achieved_flop_per_s.map(achieved));
    if let Some(c) = &a.contradiction {
        let line = format!("these figures contradict each other by {}", times(c.gap));
        out.row("contradiction", out.style.bad(&line));
        out.more(c.relation);
        let [demanded, is] = [c.demanded, c.known].map(|k| known(c.at, k));
        out.more(format!("demands {demanded} of {}, but it is {is}", c.at));
        out.more("estimates above make peace between them and are not to be trusted");
    }
    out.assumes(&a.assumptions);
    out.list("sources", &a.sources);
}
