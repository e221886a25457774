//! Scaling laws and lifecycles as text.

use super::{Page, or_dash, percent, three, times};
use crate::style::Style;
use rackmath::figure::Figure;
use rackmath::laws::Spread;
use rackmath::{lifecycle, scaling};
use rackmath_units::{Dollars, Params};

/// Tokens and parameters read better in billions and trillions.
pub(super) fn big(x: f64) -> String {
    Params::checked(x).map_or_else(|| "-".into(), |p| p.to_string())
}

pub(super) fn usd(x: f64) -> String {
    Dollars::checked(x).map_or_else(|| "-".into(), |d| d.to_string())
}

/// "12.3 to 28.9", or both brackets where correlations are unknown.
fn spread(s: &Spread, show: impl Fn(f64) -> String) -> String {
    let band = |b: &rackmath::laws::Band| format!("{} to {}", show(b.low), show(b.high));
    match &s.narrow {
        Some(narrow) => format!("between {} (coefficients tied) and {} (independent)", band(narrow), band(&s.wide)),
        None => band(&s.wide),
    }
}

pub(super) fn notes(out: &mut Page, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        out.list(title, lines);
    }
}

/// `rackmath scaling`
pub fn scaling(a: &scaling::Answer, figure: Option<&Figure>, style: Style) -> String {
    let mut out = Page::new(style);
    out.head(format!("Scaling laws: {}", a.question));
    let point = a.laws.iter().any(|l| l.given.is_some());
    let money = a.laws.iter().any(|l| l.optimum.is_some_and(|o| o.usd.is_some()));
    let mut header = vec!["law"];
    if point {
        header.push("loss there");
    }
    header.extend(["parameters", "tokens", "tok/param", "FLOP", "loss"]);
    if point {
        header.push("compute over least");
    }
    if money {
        header.push("cost");
    }
    let mut table = style.table(&header);
    for l in a.laws.iter().filter(|l| l.optimum.is_some()) {
        let o = l.optimum.expect("filtered");
        let mut row = vec![l.law.clone()];
        if point {
            row.push(or_dash(l.given.and_then(|g| g.loss), |x| format!("{x:.4}")));
        }
        row.extend([
            big(o.params),
            big(o.tokens),
            three(o.tokens_per_param),
            format!("{:.2e}", o.flop),
            or_dash(o.loss, |x| format!("{x:.4}")),
        ]);
        if point {
            row.push(or_dash(l.compute_over_least, times));
        }
        if money {
            row.push(or_dash(o.usd, usd));
        }
        table.add_row(row);
    }
    if a.laws.iter().any(|l| l.optimum.is_some()) {
        out.finish(&table);
        out.gap();
    }
    let experts: Vec<String> = a
        .laws
        .iter()
        .flat_map(|l| &l.routers)
        .map(|c| format!("{}: worth {} dense parameters, loss {:.3}", c.router, big(c.effective_params), c.loss))
        .collect();
    notes(&mut out, "what the experts are worth (clark-2022, 130 B tokens)", &experts);
    let mut doubts = Vec::new();
    for l in &a.laws {
        if let Some(s) = &l.tokens_per_param_spread {
            doubts.push(format!("{}: tokens per parameter {}, 80 %", l.law, spread(s, three)));
        }
        if let Some(s) = &l.usd_spread {
            doubts.push(format!("{}: cost {}, 80 %", l.law, spread(s, usd)));
        }
    }
    notes(&mut out, "standard errors carried through", &doubts);
    let outside = |l: &&scaling::LawCard| !l.outside.is_empty();
    let far: Vec<String> =
        a.laws.iter().filter(outside).map(|l| format!("{}: {}", l.law, l.outside.join(", "))).collect();
    notes(&mut out, "outside the range it was fitted on", &far);
    let left: Vec<String> =
        a.laws.iter().filter_map(|l| Some(format!("{}: {}", l.law, l.left_out.as_ref()?))).collect();
    notes(&mut out, "left out", &left);
    if let [one] = a.laws.as_slice() {
        notes(&mut out, "about this law", &one.notes);
        out.list("source", std::slice::from_ref(&one.source));
    }
    out.list("assumes", &a.assumptions);
    if let Some(figure) = figure {
        out.gap();
        out.draw(figure);
    }
    out.text()
}

/// `rackmath lifecycle`
pub fn lifecycle(a: &lifecycle::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.head(format!(
        "{} active parameters, {} tokens served in expectation",
        big(a.request.params),
        big(a.served_tokens)
    ));
    rule(&mut out, a);
    let money = a.rule.usd.is_some();
    let mut header = vec!["law", "own D/N", "D at share", "D/20N", "best N", "best D", "share", "D/20N", "rule costs"];
    if money {
        header.push("cost");
    }
    let mut table = style.table(&header);
    for l in a.laws.iter().filter(|l| l.optimum.is_some()) {
        let o = l.optimum.expect("filtered");
        let mut row = vec![
            l.law.clone(),
            or_dash(l.own_tokens_per_param, three),
            or_dash(l.tokens_at_share, big),
            or_dash(l.over_training_at_share, times),
            big(o.params),
            big(o.tokens),
            percent(o.share),
            times(o.over_training),
            or_dash(l.rule_extra, |x| format!("{:+.1} %", x * 100.0)),
        ];
        if money {
            row.push(or_dash(o.usd, usd));
        }
        table.add_row(row);
    }
    out.line(format!("\n{}", style.dim("the exact optimum at the same loss, under each law")));
    out.finish(&table);
    for line in [
        "own D/N: compute-optimal at this size; D/20N: over-training",
        "D at share: data for which the rule's split would be an optimum at this size",
    ] {
        out.note(line);
    }
    if let Some((low, high)) = a.over_training_over_laws.filter(|(low, high)| low < high) {
        let range = format!("{}x to {}x", three(low), three(high));
        out.line(format!("\n  {:<22} {} over these laws", "over-training", style.bold(&range)));
    }
    let mut doubts = Vec::new();
    for l in &a.laws {
        if let Some(s) = &l.over_training_spread {
            doubts.push(format!("{}: over-training {}, 80 %", l.law, spread(s, times)));
        }
        if let Some(s) = &l.usd_spread {
            doubts.push(format!("{}: cost {}, 80 %", l.law, spread(s, usd)));
        }
        if let Some(s) = &l.rule_extra_spread {
            doubts.push(format!("{}: the rule costs {}, 80 %", l.law, spread(s, |x| format!("{:+.1} %", x * 100.0))));
        }
    }
    out.gap();
    notes(&mut out, "standard errors carried through", &doubts);
    let outside = |l: &&lifecycle::LawCard| !l.outside.is_empty();
    let far: Vec<String> =
        a.laws.iter().filter(outside).map(|l| format!("{}: {}", l.law, l.outside.join(", "))).collect();
    notes(&mut out, "optimum outside the range the law was fitted on", &far);
    let left: Vec<String> =
        a.laws.iter().filter_map(|l| Some(format!("{}: {}", l.law, l.left_out.as_ref()?))).collect();
    notes(&mut out, "left out", &left);
    if let [one] = a.laws.as_slice() {
        out.list("source", std::slice::from_ref(&one.source));
    }
    out.list("assumes", &a.assumptions);
    if let Some(figure) = &a.figure {
        out.gap();
        out.draw(figure);
    }
    out.text()
}

fn rule(out: &mut Page, a: &lifecycle::Answer) {
    let r = &a.rule;
    out.line(out.style.dim(&format!("the lecture's rule, {}", a.request.split)));
    let tokens = format!("pre-train on {}, RL on {}", big(r.pretrain_tokens), big(r.rl_tokens));
    out.field("tokens", tokens);
    out.more(format!(
        "at equal costs one pre-training token for {} of RL and {} served",
        three(1.0 / r.alpha),
        three(1.0 / r.beta)
    ));
    let flop = format!("{:.2e} pre-training, {:.2e} RL, {:.2e} serving", r.pretrain_flop, r.rl_flop, r.served_flop);
    out.field("FLOP, training speed", flop);
    let over =
        format!("{} tokens per parameter, {}x the 20 of Chinchilla", three(r.tokens_per_param), three(r.over_training));
    out.field("over-training", over);
    if let Some(x) = r.usd {
        out.field("cost", usd(x));
    }
    if let Some(rl) = &a.rl {
        let text = format!(
            "{} tokens generated, {} of groups teach, {} FLOP per parameter and token",
            big(rl.generated_tokens),
            percent(rl.useful),
            three(rl.factor)
        );
        out.field("RL", text);
    }
    if a.goodput < 1.0 {
        let text = format!("{} of training time is progress", percent(a.goodput));
        out.field("failures", text);
    }
}
