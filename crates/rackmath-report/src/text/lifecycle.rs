//! Scaling laws, lifecycles, failures and published runs as text.

use super::prelude::*;
use rackmath::forensics::{self, Variable};
use rackmath::laws::{Band, Spread};
use rackmath::{goodput, lifecycle, scaling};

/// Tokens and parameters read better in billions and trillions.
fn big(x: f64) -> String {
    or_dash(Params::checked(x), |p| p.to_string())
}

fn usd(x: f64) -> String {
    or_dash(Dollars::checked(x), |d| d.to_string())
}

fn loss(x: Option<f64>) -> String {
    or_dash(x, |x| format!("{x:.4}"))
}

fn signed_percent(x: f64) -> String {
    format!("{:+.1} %", x * 100.0)
}

/// What a law says with its standard errors: "12.3 to 28.9", or both brackets where correlations are unknown.
fn doubt(law: &str, what: &str, s: Option<&Spread>, show: impl Fn(f64) -> String) -> Option<String> {
    let band = |b: &Band| format!("{} to {}", show(b.low), show(b.high));
    let s = s?;
    let spread = match &s.narrow {
        Some(narrow) => format!("between {} (coefficients tied) and {} (independent)", band(narrow), band(&s.wide)),
        None => band(&s.wide),
    };
    Some(format!("{law}: {what} {spread}, 80 %"))
}

/// What some laws have to say, each with its name.
fn listed<'a>(out: &mut Page, title: &str, laws: impl Iterator<Item = (&'a String, String)>) {
    let said = laws.filter(|(_, said)| !said.is_empty()).map(|(law, said)| format!("{law}: {said}"));
    out.list(title, &said.collect::<Vec<_>>());
}

pub(super) fn scaling(out: &mut Page, a: &scaling::Answer, figure: Option<&Figure>) {
    out.fold();
    out.head(format!("Scaling laws: {}", words(&a.question)));
    let point = a.laws.iter().any(|l| l.given.is_some());
    let best: Vec<_> = a.laws.iter().filter_map(|l| Some((l, l.optimum?))).collect();
    let money = best.iter().any(|(_, o)| o.usd.is_some());
    if let Some((low, high)) = ends(best.iter().map(|(_, o)| o.params)) {
        let tokens = ends(best.iter().map(|(_, o)| o.tokens)).unwrap_or_default();
        let [n, d] = [(low, high), tokens].map(|(low, high)| span(low, high, big));
        let cost = ends(best.iter().filter_map(|(_, o)| o.usd));
        let cost = or(cost, "", |(low, high)| format!(", {}", span(low, high, usd)));
        // Laws disagree by a factor of ten, and the one in their middle is what people take.
        let mut by_ratio: Vec<_> = best.iter().map(|(_, o)| o).collect();
        by_ratio.sort_by(|a, b| a.tokens_per_param.total_cmp(&b.tokens_per_param));
        let middle = by_ratio[(by_ratio.len() - 1) / 2];
        let (by, said) = if let [(one, _)] = best.as_slice() {
            (one.law.clone(), format!("{n} parameters on {d} tokens{cost}"))
        } else {
            let [params, tokens] = [middle.params, middle.tokens].map(big);
            let paid = or(middle.usd, "", |x| format!(", {}", usd(x)));
            let sizes = only(low < high, format!("{n} parameters on "));
            let each = three(middle.tokens_per_param);
            let about = format!("{params} parameters on {tokens} tokens{paid}, {each} a parameter");
            (format!("the middle of {} laws", best.len()), format!("{about}; all of them: {sizes}{d} tokens{cost}"))
        };
        let there = ends(best.iter().filter_map(|(l, _)| l.given?.loss)).filter(|_| point);
        let there = or(there, "", |(low, high)| format!("Loss {}. ", span(low, high, |x| format!("{x:.4}"))));
        let same = if there.is_empty() { "Best" } else { "The same for least compute" };
        let repeats = or(a.repeats.as_ref(), "", |r| format!("; {}", words(r)));
        out.verdict(format!("{there}{same} by {by}: {said}{repeats}"));
    }
    out.figures();
    if !best.is_empty() {
        out.each(&best).some(&[
            (true, ("law", &|(l, _)| l.law.clone())),
            (point, ("loss there", &|(l, _)| loss(l.given.and_then(|g| g.loss)))),
            (true, ("parameters", &|(_, o)| big(o.params))),
            (true, ("tokens", &|(_, o)| big(o.tokens))),
            (true, ("tok/param", &|(_, o)| three(o.tokens_per_param))),
            (true, ("FLOP", &|(_, o)| format!("{:.2e}", o.flop))),
            (true, ("loss", &|(_, o)| loss(o.loss))),
            (point, ("compute over least", &|(l, _)| or_dash(l.compute_over_least, times))),
            (money, ("cost", &|(_, o)| or_dash(o.usd, usd))),
        ]);
        out.gap();
    }
    // A dense size has no experts; it is worth itself.
    let dense = |c: &&scaling::RouterCard| {
        !best.is_empty() && a.request.params.is_some_and(|n| (c.effective_params / n - 1.0).abs() < 1e-9)
    };
    let routers = a.laws.iter().flat_map(|l| &l.routers).filter(|c| !dense(c));
    let worth = routers
        .map(|c| format!("{}: worth {} dense parameters, loss {:.3}", c.router, big(c.effective_params), c.loss));
    let worth: Vec<String> = worth.collect();
    if best.is_empty() {
        worth.iter().take(1).for_each(|w| out.verdict(w));
    }
    out.list("what the experts are worth (clark-2022, 130 B tokens)", &worth);
    out.working();
    let doubts = a.laws.iter().flat_map(|l| {
        let ratio = doubt(&l.law, "tokens per parameter", l.tokens_per_param_spread.as_ref(), three);
        [ratio, doubt(&l.law, "cost", l.usd_spread.as_ref(), usd)]
    });
    out.list("standard errors carried through", &doubts.flatten().collect::<Vec<_>>());
    out.advice();
    let there = a.laws.iter().map(|l| (&l.law, joined(&l.given_outside, ", ")));
    listed(out, "the point asked, outside the range a law was fitted on", there);
    let best = if point { "the best point, outside the range" } else { "outside the range it was fitted on" };
    listed(out, best, a.laws.iter().map(|l| (&l.law, joined(&l.outside, ", "))));
    out.working();
    listed(out, "left out", a.laws.iter().map(|l| (&l.law, or(l.left_out.as_ref(), "", words))));
    if let [one] = a.laws.as_slice() {
        out.list("about this law", &one.notes);
        out.sources(std::slice::from_ref(&one.source));
    }
    out.assumes(&a.assumptions);
    out.pictures(figure);
}

pub(super) fn lifecycle(out: &mut Page, a: &lifecycle::Answer) {
    out.fold();
    let [size, served] = [a.request.params, a.served_tokens].map(big);
    out.head(format!("{size} active parameters, {served} tokens served in expectation"));
    let (d, rl) = (big(a.rule.pretrain_tokens), big(a.rule.rl_tokens));
    let over = times(a.rule.over_training);
    let cost = or(a.rule.usd, "", |x| format!(", {}", usd(x)));
    let best: Vec<_> = a.laws.iter().filter_map(|l| Some((l, l.optimum?))).collect();
    let extra = ends(best.iter().filter_map(|(l, _)| l.rule_extra)).map(|(low, high)| {
        let percent = |x: f64| format!("{:.1} %", x * 100.0);
        span(low, high, percent)
    });
    let spans = [ends(best.iter().map(|(_, o)| o.params)), ends(best.iter().map(|(_, o)| o.tokens))];
    if let ([Some(n), Some(d_best)], Some(extra)) = (spans, extra) {
        let by = if let [(one, _)] = best.as_slice() { one.law.clone() } else { format!("{} laws", best.len()) };
        let [n, d_best] = [n, d_best].map(|(low, high)| span(low, high, big));
        let rule = format!("the lecture's rule, {size} on {d} and RL on {rl}{cost}, costs {extra} more");
        let repeats =
            a.laws.iter().filter(|l| l.left_out.as_ref().is_some_and(|r| r.says == "repeats_as_fresh")).count();
        let repeats =
            only(repeats > 0, format!("; laws left out since they count repeated tokens as fresh: {repeats}"));
        out.verdict(format!(
            "By {by}, the same loss costs least with {n} parameters on {d_best} tokens; {rule}{repeats}"
        ));
    } else {
        out.verdict(format!("Pre-train on {d} tokens and RL on {rl}: {over} the data of Chinchilla{cost}"));
    }
    out.figures();
    rule(out, a);
    out.gap();
    out.above("the exact optimum at the same loss, under each law");
    out.each(&best).some(&[
        (true, ("law", &|(l, _)| l.law.clone())),
        (true, ("own D/N", &|(l, _)| or_dash(l.own_tokens_per_param, three))),
        (true, ("D at share", &|(l, _)| or_dash(l.tokens_at_share, big))),
        (true, ("D/20N", &|(l, _)| or_dash(l.over_training_at_share, times))),
        (true, ("best N", &|(_, o)| big(o.params))),
        (true, ("best D", &|(_, o)| big(o.tokens))),
        (true, ("share", &|(_, o)| percent(o.share))),
        (true, ("D/20N", &|(_, o)| times(o.over_training))),
        (true, ("rule costs", &|(l, _)| or_dash(l.rule_extra, signed_percent))),
        (a.rule.usd.is_some(), ("cost", &|(_, o)| or_dash(o.usd, usd))),
    ]);
    out.working();
    out.note("own D/N: compute-optimal at this size; D/20N: over-training");
    out.note("D at share: data for which the rule's split would be an optimum at this size");
    if let Some((low, high)) = a.over_training_over_laws.filter(|(low, high)| low < high) {
        let range = out.style.bold(&format!("{} to {}", times(low), times(high)));
        out.gap();
        out.row("over-training", format!("{range} over these laws"));
    }
    let doubts = a.laws.iter().flat_map(|l| {
        let over = doubt(&l.law, "over-training", l.over_training_spread.as_ref(), times);
        let cost = doubt(&l.law, "cost", l.usd_spread.as_ref(), usd);
        [over, cost, doubt(&l.law, "the rule costs", l.rule_extra_spread.as_ref(), signed_percent)]
    });
    out.gap();
    out.list("standard errors carried through", &doubts.flatten().collect::<Vec<_>>());
    let outside = a.laws.iter().map(|l| (&l.law, joined(&l.outside, ", ")));
    listed(out, "optimum outside the range the law was fitted on", outside);
    listed(out, "left out", a.laws.iter().map(|l| (&l.law, or(l.left_out.as_ref(), "", words))));
    if let [one] = a.laws.as_slice() {
        out.sources(std::slice::from_ref(&one.source));
    }
    out.assumes(&a.assumptions);
    out.pictures(&a.figure);
}

fn rule(out: &mut Page, a: &lifecycle::Answer) {
    let r = &a.rule;
    out.above(format!("the lecture's rule, {}", a.request.split));
    out.field("tokens", format!("pre-train on {}, RL on {}", big(r.pretrain_tokens), big(r.rl_tokens)));
    let [rl, served] = [r.alpha, r.beta].map(|x| three(1.0 / x));
    out.more(format!("at equal costs one pre-training token for {rl} of RL and {served} served"));
    let flop = format!("{:.2e} pre-training, {:.2e} RL, {:.2e} serving", r.pretrain_flop, r.rl_flop, r.served_flop);
    out.field("FLOP, training speed", flop);
    let (each, over) = (three(r.tokens_per_param), times(r.over_training));
    out.field("over-training", format!("{each} tokens per parameter, {over} the 20 of Chinchilla"));
    out.maybe("cost", r.usd.map(usd));
    let rl = a.rl.as_ref().map(|rl| {
        let (tokens, useful, factor) = (big(rl.generated_tokens), percent(rl.useful), three(rl.factor));
        format!("{tokens} tokens generated, {useful} of groups teach, {factor} FLOP per parameter and token")
    });
    out.maybe("RL", rl);
    if a.goodput < 1.0 {
        out.field("failures", format!("{} of training time is progress", percent(a.goodput)));
    }
}

pub(super) fn goodput(out: &mut Page, a: &goodput::Answer, figure: &Figure) {
    out.fold();
    out.head(format!("{} chips, a failure every {}", grouped(a.chips), seconds(a.job_mtbf_s)));
    let every = format!("with a checkpoint every {}", seconds(a.interval_s));
    let days = format!("{} days become {}", three(a.work_days), three(a.wall_days));
    let cost = or(a.usd, "", |x| format!(", {}", usd(x)));
    let ends = a.wall_days < 1e9;
    let progress = format!("{} of all time is progress {every}: {days}{cost}", percent(a.goodput));
    out.judged(ends, if ends { progress } else { format!("the run never ends {every}") });
    out.figures();
    // Days of a size and its tokens rest on how MFU is counted.
    if a.request.params.is_some()
        && let Some(work) = a.assumptions.iter().find(|r| r.says == "work_is")
    {
        out.field("work", format!("{} days: {}", three(a.work_days), words(work)));
    }
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

/// The least and the most of some numbers.
fn ends(all: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    all.fold(None, |ends: Option<(f64, f64)>, x| {
        let (low, high) = ends.unwrap_or((x, x));
        Some((low.min(x), high.max(x)))
    })
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

/// Ends of a figure that lie so far apart were written with one digit.
const COARSE: f64 = 1.2;

pub(super) fn forensics(out: &mut Page, a: &forensics::Answer) {
    out.fold();
    let known = |what: Variable, k: forensics::Known| range(what, Some(k.low), Some(k.high));
    let title = a.request.run.as_deref().map_or("A training run".to_owned(), |r| format!("The run {r}"));
    out.head(format!("{title}: what is known and what follows"));
    let follows = a.findings.iter().filter(|f| f.given.is_none()).filter_map(|f| {
        let (x, k) = (f.estimate?, f.likely?);
        let (middle, range) = (show(f.what, x), known(f.what, k));
        let range = only(range != middle, format!(" ({range})"));
        Some(format!("{} {middle}{range}", f.what))
    });
    let follows: Vec<String> = follows.collect();
    match &a.contradiction {
        Some(c) => {
            let said = format!("these figures contradict each other by {}: {}", times(c.gap), c.relation);
            let others = or(a.mfu_of_the_others, "", |u| {
                format!("; without the MFU that is given, the others make it {}", percent(u))
            });
            let lost = or(a.lost_share, "", |share| {
                format!(
                    "; they agree if {} of the hours were lost to stops, which the MFU of steps leaves out",
                    percent(share)
                )
            });
            out.judged(false, format!("{said}{others}{lost}"));
        }
        None if follows.is_empty() => out.verdict("too little is known for anything to follow"),
        None => out.verdict(format!("The figures agree; it follows: {}", follows.join(", "))),
    }
    out.figures();
    out.each(&a.findings).columns(&[
        ("", &|f| f.what.to_string()),
        ("estimate", &|f| or_dash(f.estimate, |x| show(f.what, x))),
        ("90 %", &|f| or_dash(f.likely, |k| known(f.what, k))),
        // What cannot be follows from figures that agree; else each is shown as it was given.
        (
            if a.contradiction.is_some() { "given, or possible" } else { "cannot be outside" },
            &|f| match a.contradiction {
                Some(_) if let Some(k) = f.given => known(f.what, k),
                _ => range(f.what, f.at_least, f.at_most),
            },
        ),
        ("", &|f| if f.given.is_some() { "given".into() } else { String::new() }),
    ]);
    // One digit says little; who wrote it is told what it was read as.
    let coarse = a.findings.iter().filter(|_| a.request.run.is_none());
    let coarse = coarse.filter_map(|f| Some((f.what, f.given.filter(|k| k.high > COARSE * k.low)?)));
    for (what, k) in coarse {
        out.note(format!("{what} as typed are read as {}: more digits or a range (a..b) say more", known(what, k)));
    }
    out.gap();
    let achieved =
        |(x, low, high)| format!("{} ({})", show(Variable::Peak, x), range(Variable::Peak, Some(low), Some(high)));
    out.maybe("achieved per chip", a.achieved_flop_per_s.map(achieved));
    out.wrapped("  MFU counts             ", "                         ", &a.counted);
    if let Some(c) = &a.contradiction {
        out.advice();
        out.row("contradiction", out.style.bad(c.relation));
        let [demanded, is] = [c.demanded, c.known].map(|k| known(c.at, k));
        out.more(format!("demands {demanded} of {}, but it is {is}", c.at));
        out.more("estimates above make peace between them and are not to be trusted");
    }
    out.assumes(&a.assumptions);
    out.sources(&a.sources);
}
