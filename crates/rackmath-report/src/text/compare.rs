//! Plans side by side, frontiers one over the other, and hardware ranked for a workload, as text.

use super::estimate::{evidence, graded};
use super::plan::{aim, deployed, points, relaxed, show};
use super::prelude::*;
use rackmath::compare::{Answer, Column, Flip, Win};
use rackmath::frontier::{self, Lead};
use rackmath::hardware;
use rackmath::plan::Best;
use std::collections::BTreeMap;

pub(super) fn compare(out: &mut Page, a: &Answer, figure: &Figure) {
    out.title(match (a.over.as_str(), a.columns.first()) {
        ("models", Some(c)) => format!("models on {}", c.curve.system),
        ("engines", Some(c)) => format!("engines with {} on {}", c.curve.model, c.curve.system),
        (_, Some(c)) => format!("{} on {} systems", c.curve.model, a.columns.len()),
        _ => String::new(),
    });
    aim(out, &a.workload, a.objective, &a.limits);
    out.verdict(words(&a.verdict));
    out.figures();
    table(out, a);
    for c in &a.columns {
        out.wrapped(
            &format!("  {:<14} ", c.curve.name),
            "                 ",
            or(c.plan.as_ref(), &words(&c.verdict), deployed),
        );
        for r in &c.relaxations {
            let said = format!("{}: {}", c.curve.name, relaxed(r));
            out.within(Kind::Advice, |out| out.item(said));
        }
    }
    out.working();
    if !a.wins.is_empty() {
        out.title("who wins on what");
        a.wins.iter().for_each(|w| out.line(win(w)));
        out.gap();
    }
    let rests = |c: &Column| Some(format!("{}: {}", c.curve.name, words(&c.plan.as_ref()?.evidence.as_ref()?.says)));
    out.section("what that rests on", a.columns.iter().filter_map(rests));
    out.advice();
    out.section("price of a chip at which the cheapest changes", a.flips.iter().map(flip));
    out.working();
    if !figure.series.is_empty() {
        out.draw(figure);
        out.gap();
    }
    out.assumes(&a.assumptions);
}

/// Rows of numbers and a column for each; the other way round where they are many.
fn table(out: &mut Page, a: &Answer) {
    let with: Vec<&Column> = a.columns.iter().filter(|c| c.plan.is_some()).collect();
    if with.is_empty() {
        return;
    }
    let cell = |c: &Column, m: Measure| {
        let Some(n) = c.numbers.iter().find(|n| n.measure == m) else { return "-".to_owned() };
        let ratio = n.ratio.filter(|r| (r.value - 1.0).abs() > 5e-4);
        show(m, n.value.value) + &or(ratio, "", |r| format!(" (x{})", significant(r.value, 2)))
    };
    if with.len() <= 4 {
        let bound = with.iter().map(|c| or(c.plan.as_ref(), "", |p| p.bound_by.clone()));
        let numbers = Measure::ALL.iter().map(|m| led(m.name(), with.iter().map(|c| cell(c, *m))));
        out.table(&led("", with.iter().map(|c| c.curve.name.clone())), numbers.chain([led("steps bound by", bound)]));
    } else {
        let shown = [Measure::UsdPerMtok, Measure::TokSPerChip, Measure::TokSPerUser, Measure::TtftMs, Measure::Chips];
        let rows = with.iter().map(|c| led(&c.curve.name, shown.map(|m| cell(c, m))));
        out.table(&led("", shown.map(|m| m.name().to_owned())), rows);
    }
    out.gap();
}

fn win(w: &Win) -> String {
    let by = if w.by < 1.0005 {
        format!("{} level with {}", w.name, w.next)
    } else {
        let close = if w.too_close { format!(", not sure below x{}", three(w.within)) } else { String::new() };
        format!("{} ahead of {} by x{}{close}", w.name, w.next, three(w.by))
    };
    format!("  {:<24} {by}", w.measure.name())
}

fn flip(f: &Flip) -> String {
    let at = f.flips_at_usd_per_chip_hour;
    let side = if f.cheapest_now { "loses above" } else { "wins below" };
    let [price, low, high, now] = [at.value, at.low, at.high, f.now_usd_per_chip_hour].map(hourly);
    format!("{}: {side} {price} against {} (80 %: {low} to {high}); now {now}", f.name, f.against)
}

pub(super) fn frontier(out: &mut Page, a: &frontier::Answer, figure: &Figure) {
    if figure.series.is_empty() {
        out.title(&figure.title);
        out.judged(false, "no frontier: fewer than two points; does the model fit?");
    } else {
        ends(out, a);
        out.title(&figure.title);
        out.pictures([figure]);
    }
    out.figures();
    // Those that the verdict names stand first.
    let mut curves: Vec<&frontier::Curve> = a.curves.iter().collect();
    let most =
        |c: &&frontier::Curve, of: fn(&rackmath::plan::Point) -> f64| c.points.iter().map(of).fold(0.0, f64::max);
    curves.sort_by(|x, y| most(y, |p| p.tok_s_per_user).total_cmp(&most(x, |p| p.tok_s_per_user)));
    for c in curves {
        out.title(format!("{}: {} on {}", c.name, c.model, c.system));
        if c.points.is_empty() {
            out.paragraph("  ", or(c.none.as_ref(), "nothing fits", words));
        }
        // Some points show the shape; the file has all.
        let step = c.points.len().div_ceil(if a.curves.len() > 1 { 3 } else { 16 }).max(1);
        let some = c.points.iter().enumerate().filter(|(i, _)| i % step == 0 || i + 1 == c.points.len());
        points(out, some.map(|(_, p)| p));
        out.gap();
    }
    out.advice();
    if a.curves.len() > 1 {
        for (title, all) in [("most tokens per chip", &a.leads_per_chip), ("cheapest", &a.leads_per_dollar)] {
            out.section(format!("{title}, by the speed a user is promised"), all.iter().map(lead));
        }
    }
    out.assumes(&a.assumptions);
}

/// The fastest and the cheapest ends of all curves.
fn ends(out: &mut Page, a: &frontier::Answer) {
    let all = || a.curves.iter().flat_map(|c| c.points.iter().map(move |p| (c, p)));
    let named = |c: &frontier::Curve| only(a.curves.len() > 1, format!(" on {}", c.name));
    let fastest = all().max_by(|(_, a), (_, b)| a.tok_s_per_user.total_cmp(&b.tok_s_per_user));
    let fullest = all().max_by(|(_, a), (_, b)| a.tok_s_per_chip.total_cmp(&b.tok_s_per_chip));
    if let (Some((fast, f)), Some((full, p))) = (fastest, fullest) {
        let [user, chip, least] = [f.tok_s_per_user, p.tok_s_per_chip, p.tok_s_per_user].map(tok_s);
        let fast = format!("a user gets up to {user} ({}){}", mtok(f.usd_per_mtok), named(fast));
        let full = format!("a chip gives up to {chip} ({}){}", mtok(p.usd_per_mtok), named(full));
        out.verdict(format!("{fast}; {full}, where each user gets {least}"));
    }
}

fn lead(l: &Lead) -> String {
    let [from, to] = [l.from_tok_s_per_user, l.to_tok_s_per_user].map(tok_s);
    let by = match (&l.next, l.ahead) {
        (Some(next), Some((low, high))) => {
            let (low, high) = (three(low), three(high));
            let range = if low == high { low } else { format!("{low} to {high}") };
            let close = match (l.too_close, &l.decides) {
                (true, Some(run)) => {
                    format!(", not to be told apart from this evidence; measuring {} would decide it", words(run))
                }
                (true, None) => ", not to be told apart from this evidence".into(),
                (false, _) => String::new(),
            };
            format!("ahead of {next} by x{range}{close}")
        }
        _ => "nobody else is that fast".into(),
    };
    format!("{from} to {to}: {}, {by}", l.name)
}

pub(super) fn hardware(out: &mut Page, a: &hardware::Answer) {
    out.title(format!("{}: the best hardware, at most {} chip{} of each", a.model, a.chips, plural(a.chips)));
    if let Some(workload) = &a.workload {
        aim(out, workload, a.objective, &a.limits);
    }
    out.verdict(words(&a.verdict));
    out.figures();
    if let Some(best) = a.rows.first() {
        ranking(out, a);
        out.paragraph("  ", deployed(&best.plan));
        out.within(Kind::Working, |out| {
            evidence(out, best.plan.evidence.as_ref());
            out.gap();
        });
        // They start the best alone, and take more lines than the ranking.
        out.within(Kind::Working, |out| out.commands(&best.plan.launch));
    }
    out.advice();
    // Where many are ranked, the next ones alone: the ranking is what was asked for.
    let near = if a.rows.len() > 3 { a.flips.len().min(2) } else { a.flips.len() };
    out.section("where the answer changes", a.flips[..near].iter().map(changed));
    out.within(Kind::Working, |out| out.section("where else it changes", a.flips[near..].iter().map(changed)));
    if !a.figure.series.is_empty() {
        out.pictures([&a.figure]);
    }
    // What cannot do it, by reason.
    let mut by: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for o in &a.out {
        by.entry(words(&o.why)).or_default().push(&o.name);
    }
    let left: Vec<String> = by.iter().map(|(why, names)| format!("{}: {why}", names.join(", "))).collect();
    out.working();
    out.list("left out", &left);
    out.assumes(&a.assumptions);
}

/// Units stand under the table.
fn ranking(out: &mut Page, a: &hardware::Answer) {
    if a.objective == Best::Energy {
        return by_energy(out, a);
    }
    out.each(&a.rows).columns(&[
        ("", &|r| r.name.clone()),
        ("price", &priced),
        ("cost", &|r| or_dash(Measure::UsdPerMtok.of(&r.plan), |cost| usd(cost.value))),
        ("behind", &behind),
        ("flips at", &|r| or_dash(r.flips_at_usd_per_chip_hour, usd)),
        ("chip", &|r| three(r.plan.tok_s_per_chip.value)),
        ("user", &|r| three(r.plan.tok_s_per_user.value)),
        ("evidence", &|r| graded(r.plan.evidence.as_ref()).to_owned()),
        ("deployment", &deployment),
    ]);
    let note = "price and flip in $ per chip and hour (od: on demand); cost in $/Mtok; chip and user in output tok/s; ~ not to be told apart from the best; (prompts | answers) where they have chips of their own; \
               flips at: the price at which it costs what the best does, for the best what the second does";
    out.paragraph("  ", out.style.dim(note));
    out.gap();
}

/// The same where energy decides: joules and the kind of power they rest on, instead of what prices would turn.
fn by_energy(out: &mut Page, a: &hardware::Answer) {
    out.each(&a.rows).columns(&[
        ("", &|r| r.name.clone()),
        ("J/token", &|r| or_dash(Measure::JoulesPerToken.of(&r.plan), |j| three(j.value))),
        ("power", &|r| if r.power_basis == "all in" { "all in".to_owned() } else { "TDP".to_owned() }),
        ("behind", &behind),
        ("cost", &|r| or_dash(Measure::UsdPerMtok.of(&r.plan), |cost| usd(cost.value))),
        ("chip", &|r| three(r.plan.tok_s_per_chip.value)),
        ("user", &|r| three(r.plan.tok_s_per_user.value)),
        ("evidence", &|r| graded(r.plan.evidence.as_ref()).to_owned()),
        ("deployment", &deployment),
    ]);
    let note = "J/token: joules for an output token, its prompt included; power: what they rest on, all in (with its share of host and cooling) or TDP (thermal design power of the chip alone); cost in $/Mtok; \
               chip and user in output tok/s; ~ not to be told apart from the best; (prompts | answers) where they have chips of their own";
    out.paragraph("  ", out.style.dim(note));
    out.gap();
}

fn priced(r: &hardware::Row) -> String {
    let basis = if r.price_basis == "on-demand" { "od" } else { &r.price_basis };
    format!("{} {basis}", usd(r.usd_per_chip_hour))
}

fn behind(r: &hardware::Row) -> String {
    match r.behind.value {
        b if b <= 1.0 => "-".to_owned(),
        b => format!("x{}{}", three(b), if r.too_close { "~" } else { "" }),
    }
}

fn deployment(r: &hardware::Row) -> String {
    format!("{} x {}", r.plan.replicas, words(&short(&r.plan.deployment)))
}

/// Pools without their words.
fn short(deployment: &Remark) -> Remark {
    Remark { says: "deployed_short".into(), ..deployment.clone() }
}

fn axis(flip: &hardware::Flip, x: f64) -> String {
    match flip.axis.as_str() {
        "tok_s_per_user" => format!("{} a user", tok_s(x)),
        "requests_per_s" => format!("{} requests/s", three(x)),
        _ => format!("prompts of {} tokens", count(x.round())),
    }
}

fn changed(f: &hardware::Flip) -> String {
    let at = |x| axis(f, x);
    let place = span(f.at, f.until.unwrap_or(f.at), at);
    let [below, above] = [&f.below, &f.above].map(|who| who.as_deref().unwrap_or("nothing here"));
    let turns = format!(", with {} taking turns in between", f.between.join(", "));
    let between = only(!f.between.is_empty(), turns);
    let now = or(f.now, "", |now| format!(" (asked: {})", at(now)));
    let close = f.close_from.zip(f.close_to);
    let close = or(close, "", |(from, to)| format!("; too close to call at {}", span(from, to, at)));
    format!("{place}: from {below} to {above}{between}{now}{close}")
}
