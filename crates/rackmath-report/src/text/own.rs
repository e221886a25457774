//! Own machines against a provider as text: the verdict, both sides, the other hosts, a small model beside.

use super::prelude::*;
use rackmath::own::{Answer, Change, Routed};

pub(super) fn own(out: &mut Page, a: &Answer) {
    out.head(format!("{} on {}", a.model, a.system));
    let cheaper = a.cheaper_from_requests_per_day.is_some();
    out.judged(cheaper, words(&a.verdict));
    if let Some(there) = &a.there {
        out.within(Kind::Verdict, |out| out.paragraph("", format!("{}.", words(&there.says))));
    }
    let served = a.rates.nobody_serves().is_none();
    if let Some(why) = a.rates.because.as_ref().filter(|_| served) {
        out.caution(format!("{}.", words(why)));
    }
    super::cost::limit(out, &a.rates);
    if let Some(r) = &a.route {
        out.within(Kind::Advice, |out| out.paragraph("  ", format!("{}.", words(&r.says))));
    }
    out.figures();
    let [input, output] = a.request_tokens.map(count);
    out.field("a request is", format!("{input} tokens in, {output} out"));
    out.field("own machine", format!("{} a day ({} a chip)", usd(a.machine_usd_per_day), hourly(a.chip_usd_per_hour)));
    out.within(Kind::Working, |out| {
        out.wrapped("  price of a chip        ", "                         ", &a.basis);
        out.gap();
    });
    if served {
        let (most, full) = (count(a.machine_requests_per_day.floor()), count(a.full_requests_per_day.floor()));
        out.field("takes", format!("{most} requests a day; {full} if it never rested"));
        out.field("a request", format!("{} on a machine as full as it may be", usd(a.own_usd_per_request)));
    }
    out.field("provider", words(&a.provider));
    if let Some([input, output, cached]) = a.provider_usd_per_mtok {
        out.more(format!("{} in, {} out, {} cached", mtok(input), mtok(output), mtok(cached)));
    }
    out.more(format!("{} a request", usd(a.provider_usd_per_request)));
    changes(out, &a.changes);
    if !a.hosts.is_empty() {
        out.part("the same model elsewhere");
        out.each(&a.hosts).columns(&[
            ("host", &|h| h.host.clone()),
            ("$/Mtok in", &|h| usd(h.usd_per_mtok[0])),
            ("out", &|h| usd(h.usd_per_mtok[1])),
            ("cached", &|h| usd(h.usd_per_mtok[2])),
            ("$ a request", &|h| usd(h.usd_per_request)),
            ("own is cheaper from, requests a day", &|h| {
                or(h.cheaper_from_requests_per_day, "never", |x| count(x.ceil()))
            }),
        ]);
    }
    if let Some(r) = &a.route {
        routed(out, r);
    }
    if served {
        out.pictures([&a.figure]);
    }
    out.assumes(&a.assumptions);
}

fn changes(out: &mut Page, all: &[Change]) {
    if all.is_empty() {
        return;
    }
    out.part("where the cheaper side changes");
    out.each(all).columns(&[
        ("requests a day", &|c| count(c.requests_per_day.ceil())),
        ("above it", &|c| if c.own_above { "own" } else { "provider" }.into()),
        ("machines", &|c| c.machines.to_string()),
        ("own $/day", &|c| usd(c.own_usd_per_day)),
        ("provider $/day", &|c| usd(c.provider_usd_per_day)),
        ("", &|c| if c.equal { "both cost the same" } else { "one machine more" }.into()),
    ]);
}

fn routed(out: &mut Page, r: &Routed) {
    out.part(format!("easy questions to {}", r.model));
    let [before, after, small] = r.machines;
    out.field("before", format!("{} a day, {before} machine{}", usd(r.before_usd_per_day), plural(before)));
    let kept = format!("{after} machine{} and {small} x {}", plural(after), r.system);
    out.field("after", format!("{} a day, {kept}", usd(r.after_usd_per_day)));
}
