//! Rates predicted operator by operator: which layouts are tried, and what each reads and writes.

use super::{RateCard, RatesRequest};
use crate::Error;
use crate::estimate::Range;
use crate::figure::count;
use crate::layout::{self, DegreesRequest};
use crate::setting::{Resolved, tokens};
use rackmath_spec::Layout;
use rackmath_spec::layout::Degrees;
use rackmath_theory::deployment::Ready;
use rackmath_theory::layout::{check, domain};
use rackmath_theory::pass::Work;
use rackmath_theory::steady::Requests;
use rackmath_units::Seconds;

/// The layout asked for, or all that are worth a try: so many chips, attention cut or copied, experts spread or cut.
pub(super) fn layouts(r: &Resolved, wanted: &DegreesRequest) -> Result<Vec<Layout>, Error> {
    if *wanted != DegreesRequest::default() {
        return Ok(vec![layout::pick(wanted, None, r)?.0]);
    }
    let powers = |limit: u64| (0..MOST_DOUBLINGS).map(|i| 1u64 << i).take_while(move |n| *n <= limit);
    let mut all = vec![layout::usual(&r.model, &r.system)];
    for n in powers(r.system.n_chips) {
        for tp in powers(n.min(domain(&r.system))) {
            for ep in [1, n] {
                let d = Degrees { tp, dp: n / tp, ep, etp: n / ep, ..Degrees::default() };
                let legal = Layout::new(d).ok().filter(|l| check(&r.model, &r.system, l).is_ok());
                all.extend(legal.filter(|l| !all.contains(l)));
            }
        }
    }
    Ok(all)
}

/// Up to 256 chips.
const MOST_DOUBLINGS: u32 = 9;

/// The fastest of some cuts, per chip.
pub(super) fn best(
    cuts: &[(Ready, f64)],
    of: impl Fn(&Ready, f64) -> Result<RateCard, Error>,
) -> Result<RateCard, Error> {
    let (first, rest) = cuts.split_first().ok_or_else(|| Error::value("layout", "none", "one that holds the model"))?;
    let mut best = of(&first.0, first.1)?;
    for (d, room) in rest {
        let card = of(d, *room)?;
        // A cut that keeps its users waiting is no match for one that does not.
        if (!card.late, card.tok_s.value) > (!best.late, best.tok_s.value) {
            best = card;
        }
    }
    Ok(best)
}

fn predicted_for(d: &Ready) -> String {
    let layout = d.deployment.layout;
    format!("predicted for {} with {layout} on {} chips", d.deployment.engine.name, layout.chips())
}

/// Prompts alone, passes full.
pub(super) fn prefill_of(d: &Ready, q: &RatesRequest) -> Result<RateCard, Error> {
    let prompt = tokens("prompt", q.prompt, 1.0)?.get();
    let rate = d.prompts(&Requests::of(prompt, 1.0)).service * prompt / d.deployment.layout.chips() as f64;
    Ok(RateCard {
        tok_s: Range::of(rate, d.deployment.engine.spread.ttft * d.pass.wider()),
        source: "predicted".into(),
        words: format!("prefill: {}, passes full of prompts of {}", predicted_for(d), count(prompt)),
        late: false,
    })
}

/// Answers alone, as many as memory, engine and patience allow.
pub(super) fn decode_of(d: &Ready, room: f64, q: &RatesRequest) -> Result<RateCard, Error> {
    let (layout, engine) = (d.deployment.layout, &d.deployment.engine);
    let (chips, groups, stages) = (layout.chips() as f64, layout.degrees().dp as f64, d.deployment.stages());
    let context = tokens("context", q.context, 0.0)?.get();
    let patience = Seconds::checked(q.tpot_ms / 1e3).filter(|t| (1e-6..=1e3).contains(&t.get()));
    let patience = patience.ok_or_else(|| Error::value("tpot_ms", q.tpot_ms, "milliseconds, 0.001 to 1e6"))?;
    let step = |b: f64| d.pass.cost(&Work::decode(b / stages, context)).time();
    let most = room.min(engine.schedule.sequences * stages).max(1.0);
    let (b, why) = match q.batch {
        // The machine's sequences are spread over as many replicas as it has room for.
        Some(batch) => {
            let b = (tokens("batch", batch, 1.0)?.get() * chips / d.deployment.system.n_chips as f64 / groups).max(1.0);
            if b <= most { (b, "as given") } else { (most, "all that memory and engine hold") }
        }
        None if step(most) > patience => (latest(&step, most, patience), "as many as the time per token allows"),
        None if most < room => (most, "what the engine holds"),
        None => (most, "what memory holds"),
    };
    let step = step(b);
    Ok(RateCard {
        tok_s: Range::of(b * groups / step.get() / chips, engine.spread.throughput * d.pass.wider()),
        source: "predicted".into(),
        words: format!(
            "decode: {}, {} sequences ({why}) of context {}, a token each in {step}",
            predicted_for(d),
            count((b * groups).floor()),
            count(context),
        ),
        late: q.batch.is_none() && step > patience * 1.001,
    })
}

/// The largest batch, at least 1, whose step takes no longer.
fn latest(step: &impl Fn(f64) -> Seconds, most: f64, patience: Seconds) -> f64 {
    let (mut low, mut high) = (1.0, most);
    // Thirty halvings of at most a million sequences: far below one.
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        if step(middle) > patience { high = middle } else { low = middle }
    }
    low
}
