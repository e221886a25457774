//! How fast one chip reads prompts and writes answers, and where that number comes from.
//!
//! $$ v_p = \frac{\mu P}{n} \qquad v_d = \frac{g\,b}{n\,T(b, L)} \qquad \text{or} \qquad v = \eta\,v_{board} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | v_p, v_d | prefill, decode | token/s | prompt and output tokens of one chip |
//! | μ, P | prompts_per_s, prompt | 1/s, tokens | prompts a second of chips that do nothing else, passes full; tokens of each |
//! | n, g | chips, groups | 1 | chips of the layout, and groups in it that hold their own sequences |
//! | b, L | batch, context | 1, tokens | sequences of a group, as many as memory, engine and the time per token allow; their mean context |
//! | T | [`rackmath_theory::pass`] | s | one decode step, operator by operator |
//! | η | efficiency | 1 | share of the board's bound, assumed |
//!
//! The engine's prediction is used for a model known layer by layer, the board for one known by its totals. The interval of
//! v_p is the engine's of first tokens, that of v_d the engine's of throughput: what measurements were compared with.
//! Of many layouts the fastest per chip is taken, for prompts and answers each.
//! Assumes: prefill and decode have chips of their own, so that neither disturbs the other. A whole machine (`served`) has so many
//! chips and no part of one: instances that do both, or whole instances for each, whichever carries more.

use crate::desk::cut;
use crate::desk::evidence::{Evidence, Scale};
use crate::desk::prelude::*;
use crate::layout::{self, DegreesRequest};
use crate::setting::ready;
use crate::support::{self, Asked};
use rackmath_theory::cost::Rates;
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::layout::{check, domain};
use rackmath_theory::pass::{KernelSet, Work};
use rackmath_theory::steady::{Load, Requests};

/// Rates given, predicted for an engine, or the board's lower bound with an efficiency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct RatesRequest {
    /// Prompt tokens per second of one chip, as known.
    #[schemars(extend("x-flag" = "prefill-tok-s"))]
    pub prefill_tok_s: Option<f64>,
    /// Output tokens per second of one chip, as known.
    #[schemars(extend("x-flag" = "decode-tok-s"))]
    pub decode_tok_s: Option<f64>,
    /// Where the others come from; `auto` is predicted where the model is known layer by layer, it fits, and nothing that
    /// belongs to the board was asked for.
    #[educe(Default = RatesFrom::Auto)]
    pub rates: RatesFrom,
    /// The engine, with a version where it matters: `vllm`, `sglang`, `trtllm`, `ideal`.
    #[schemars(extend("x-flag" = "engine backend"))]
    #[educe(Default = "vllm")]
    pub engine: String,
    /// How the model is cut; the fastest per chip of many layouts, for prompts and answers each, unless given.
    pub degrees: DegreesRequest,
    /// Share of the board's prefill rate that is reached; 0.4 unless given.
    #[schemars(extend("x-unit" = "share"))]
    pub prefill_efficiency: Option<f64>,
    /// Share of the board's decode rate that is reached; 0.5 unless given.
    #[schemars(extend("x-unit" = "share"))]
    pub decode_efficiency: Option<f64>,
    /// Sequences decoded together on the whole machine; what memory and engine hold unless given, 4,096 for the board.
    #[schemars(extend("x-flag" = "batch -b concurrency batch-size"))]
    pub batch: Option<f64>,
    /// Longest time per output token that is sold, for predicted rates where the batch is not given.
    #[schemars(extend("x-flag" = "tpot tpot-slo", "x-none" = "50 ms, or twice what one sequence alone takes where that is longer"))]
    pub tpot_ms: Option<f64>,
    /// Their mean context.
    #[schemars(extend("x-flag" = "context -c", "x-none" = "the prompt, and half of an answer whose length is known"))]
    pub context: Option<f64>,
    /// Tokens of a prompt.
    #[schemars(extend("x-flag" = "prompt isl"))]
    #[educe(Default = 4096.0)]
    pub prompt: f64,
}

impl RatesRequest {
    /// Tokens that a sequence holds while it decodes, on average.
    fn held(&self) -> f64 {
        self.context.unwrap_or(self.prompt)
    }

    /// The same where answers are so long: half of one is there on average.
    pub(crate) fn answering(&self, answer: f64) -> Self {
        Self { context: Some(self.context.unwrap_or(self.prompt + answer / 2.0)), ..self.clone() }
    }
}

/// Where rates that are not given come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RatesFrom {
    /// A prediction where there can be one, else the board.
    Auto,
    /// An engine, operator by operator.
    Predicted,
    /// The board's bound times an efficiency.
    Board,
}

/// Where a rate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The request.
    Given,
    /// An engine, operator by operator.
    Predicted,
    /// The board's bound times an efficiency.
    Board,
}

/// One rate of a chip.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RateCard {
    /// Tokens per second, with the 80 % interval of a prediction; the ends meet where none is known.
    pub tok_s: Range,
    /// Where it comes from.
    pub source: Origin,
    /// How it was found.
    pub words: Remark,
    /// Whether even one sequence takes longer per token than asked for.
    pub late: bool,
    /// The limit on the time per token where none can be met as it stands, and what is taken instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Remark>,
    /// What a prediction rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl RateCard {
    fn point(rate: TokenRate, source: Origin, words: Remark) -> Self {
        let value = rate.get();
        Self {
            tok_s: Range { value, low: value, high: value },
            source,
            words,
            late: false,
            limit: None,
            evidence: None,
        }
    }

    fn rate(&self) -> TokenRate {
        TokenRate::per_s(self.tok_s.value)
    }
}

/// Both rates of a chip.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RatesCard {
    /// Reading prompts.
    pub prefill: RateCard,
    /// Writing answers.
    pub decode: RateCard,
    /// Why they are not predicted, where nobody asked for the board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<Remark>,
    /// What the engine runs otherwise than asked for, and what is not known of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supported: Vec<Remark>,
    /// What one machine carries of requests whose lengths are known, where that is predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<Served>,
}

/// Requests that a machine carries when it is always full.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Served {
    /// A second.
    pub requests_per_s: f64,
    /// In which layout.
    pub words: Remark,
}

impl RatesCard {
    /// Why nobody serves the model there: it does not fit, or no engine runs it. Rates are then the board's.
    pub fn nobody_serves(&self) -> Option<&Remark> {
        self.because.as_ref().filter(|why| why.says != "known_by_totals")
    }

    pub(crate) fn rates(&self) -> Rates {
        Rates { prefill: self.prefill.rate(), decode: self.decode.rate() }
    }
}

/// Where rates that are not given come from.
enum Source {
    /// Layouts that hold the model, with the sequences a group of each has room for; what is said of the engine.
    Predicted(Vec<(Ready, f64)>, Vec<Remark>),
    /// With the reason, where it was not asked for.
    Board(Option<Remark>),
}

pub(crate) fn rates(catalog: &Catalog, setting: &Setting, r: &Resolved, q: &RatesRequest) -> Result<RatesCard, Error> {
    rates_of(catalog, setting, r, q, None)
}

/// The same with what a machine carries of such requests.
pub(crate) fn rates_of(
    catalog: &Catalog,
    setting: &Setting,
    r: &Resolved,
    q: &RatesRequest,
    requests: Option<&Requests>,
) -> Result<RatesCard, Error> {
    let given = |field: &'static str, value: f64| {
        let rate = TokenRate::checked(value).filter(|v| (1e-6..=1e9).contains(&v.get()));
        rate.ok_or_else(|| Error::value(field, value, "tokens per second of one chip, 1e-6 to 1e9"))
    };
    let as_given = |field: &'static str, id: &'static str, value: Option<f64>| {
        let card = |v| given(field, v).map(|v| RateCard::point(v, Origin::Given, says(id)));
        value.map(card).transpose()
    };
    let prefill = as_given("prefill_tok_s", "prefill_as_given", q.prefill_tok_s)?;
    let decode = as_given("decode_tok_s", "decode_as_given", q.decode_tok_s)?;
    if let (Some(prefill), Some(decode)) = (&prefill, &decode) {
        let (prefill, decode) = (prefill.clone(), decode.clone());
        return Ok(RatesCard { prefill, decode, because: None, supported: Vec::new(), served: None });
    }
    let scale = Scale::of(catalog)?;
    let ((more_prefill, more_decode), because, supported, carried) = match source(catalog, setting, r, q)? {
        Source::Predicted(cuts, supported) => {
            let prefill = best(&cuts, |d, _| prefill_of(d, &scale, q))?;
            let (decode, patience) = decoding(&cuts, &scale, q)?;
            let known = requests.filter(|_| q.batch.is_none());
            let carried = known.and_then(|requests| served(&cuts, r.system.n_chips, requests, patience));
            ((prefill, decode), None, supported, carried)
        }
        Source::Board(why) => (board(r, q, why.clone())?, why, Vec::new(), None),
    };
    let served = carried.filter(|_| prefill.is_none() && decode.is_none());
    let (prefill, decode) = (prefill.unwrap_or(more_prefill), decode.unwrap_or(more_decode));
    Ok(RatesCard { prefill, decode, because, supported, served })
}

fn source(catalog: &Catalog, setting: &Setting, r: &Resolved, q: &RatesRequest) -> Result<Source, Error> {
    if q.rates == RatesFrom::Board {
        return Ok(Source::Board(None));
    }
    let must = q.rates == RatesFrom::Predicted;
    let usual = Setting::default();
    let boards = q.prefill_efficiency.is_some()
        || q.decode_efficiency.is_some()
        || setting.math.is_some()
        || setting.counting != usual.counting
        || setting.overlap != usual.overlap;
    let expected = "no efficiency, math, counting or overlap; they belong to the board";
    refuse_if(boards && must, "rates", "\"predicted\" and the board's settings", expected)?;
    if boards {
        return Ok(Source::Board(None));
    }
    if r.model.shape().is_none() && !must {
        return Ok(Source::Board(Some(says("known_by_totals").with("model", &r.model.name))));
    }
    let engine = catalog.engine(&q.engine)?.0.suited(&r.system.chip);
    let held = Requests::of(tokens("context", q.held(), 0.0)?.get().max(1.0), 0.0);
    let mut on = Deployment { engine, ..r.deployment.clone() };
    let (asked, longest) = (Asked::by(setting.weights.as_deref()), q.held().max(q.prompt));
    let standing = support::stand_for(catalog, &on, asked, support::version(&q.engine), longest)?;
    if let Some(refusal) = &standing.refusal {
        let expected = "what an engine runs; {rates} board asks for none";
        refuse_if(must, "rates", format!("\"predicted\" of what no engine runs: {}", refusal.given()), expected)?;
        return Ok(Source::Board(Some(refusal.why.clone())));
    }
    standing.apply(&mut on.formats, &mut on.kv, &mut on.system);
    let kernels = KernelSet::of(catalog)?;
    let mut cuts = Vec::new();
    for layout in layouts(r, &q.degrees)? {
        if !standing.cuts(&layout) {
            continue;
        }
        let d = ready(&kernels, &Deployment { layout, ..on.clone() })?;
        let room = d.room(&held);
        if room >= 1.0 {
            cuts.push((d, room));
        }
    }
    if !cuts.is_empty() {
        return Ok(Source::Predicted(cuts, standing.remarks));
    }
    let expected = "more or larger chips, or narrower weights; {rates} board does not look at memory";
    refuse_if(must, "on", format!("{} does not fit on {}", r.model.name, r.system.name), expected)?;
    Ok(Source::Board(Some(r.titled("board_only"))))
}

fn board(r: &Resolved, q: &RatesRequest, why: Option<Remark>) -> Result<(RateCard, RateCard), Error> {
    let efficiency = |field: &'static str, value: Option<f64>, usual: f64| {
        let share = Fraction::checked(value.unwrap_or(usual)).filter(|f| f.get() >= 1e-6);
        let how = says(if value.is_some() { "as_given" } else { "assumed" });
        share.map(|s| (s, how)).ok_or_else(|| Error::value(field, value.unwrap_or(usual), "a share from 1e-6 to 1"))
    };
    let chips = r.system.n_chips as f64;
    let prompt = tokens("prompt", q.prompt, 1.0)?;
    let (share, how) = efficiency("prefill_efficiency", q.prefill_efficiency, 0.4)?;
    let step = r.board.step(Tokens::new(1.0), Tokens::ZERO, prompt);
    let words = says("prefill_of_board").with("share", share).with("how", how).with("prompt", prompt);
    let words = words.with("because", why.clone());
    let prefill = RateCard::point(step.rate() / chips * share.get(), Origin::Board, words);
    let batch = tokens("batch", q.batch.unwrap_or(4096.0), 1.0)?;
    let context = tokens("context", q.held(), 0.0)?;
    let (share, how) = efficiency("decode_efficiency", q.decode_efficiency, 0.5)?;
    let step = r.board.step(batch, context, Tokens::new(1.0));
    let words = says("decode_of_board").with("share", share).with("how", how).with("batch", batch);
    let words = words.with("context", context).with("chips", r.system.n_chips).with("because", why);
    Ok((prefill, RateCard::point(step.rate() / chips * share.get(), Origin::Board, words)))
}

/// The layout asked for, or all that are worth a try: so many chips, attention cut or copied, experts spread or cut.
fn layouts(r: &Resolved, wanted: &DegreesRequest) -> Result<Vec<Layout>, Error> {
    if *wanted != DegreesRequest::default() {
        return Ok(vec![cut::pick(wanted, None, r)?.0]);
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
fn best(cuts: &[(Ready, f64)], of: impl Fn(&Ready, f64) -> Result<RateCard, Error>) -> Result<RateCard, Error> {
    let mut best: Option<RateCard> = None;
    for (d, room) in cuts {
        let card = of(d, *room)?;
        // A cut that keeps its users waiting is no match for one that does not.
        let better = |best: &RateCard| (!card.late, card.tok_s.value) > (!best.late, best.tok_s.value);
        if best.as_ref().is_none_or(better) {
            best = Some(card);
        }
    }
    best.ok_or_else(|| Error::value("layout", "none", "one that holds the model"))
}

fn predicted(id: &'static str, d: &Ready) -> Remark {
    let layout = &d.deployment.layout;
    says(id).with("engine", &d.deployment.engine.name).with("layout", layout).with("chips", layout.chips())
}

/// Prompts alone, passes full.
fn prefill_of(d: &Ready, scale: &Scale, q: &RatesRequest) -> Result<RateCard, Error> {
    let prompt = tokens("prompt", q.prompt, 1.0)?.get();
    let rate = d.prompts(&Requests::of(prompt, 1.0)).service * prompt / d.deployment.layout.chips() as f64;
    Ok(RateCard {
        tok_s: Range::of(rate, scale.widths(d).ttft),
        source: Origin::Predicted,
        words: predicted("prefill_predicted", d).with("prompt", prompt),
        late: false,
        limit: None,
        evidence: scale.card(d, false, None),
    })
}

/// The limit on the time per token where none is given: 20 to 22 tokens per second and user on DeepSeek's published day.
const USUAL_MS: f64 = 50.0;

/// Answers by the fastest cut, within the limit on their tokens, and the limit that was taken. Where nobody asked for one it leaves room for
/// batches: it is never below twice the time of one sequence alone.
fn decoding(cuts: &[(Ready, f64)], scale: &Scale, q: &RatesRequest) -> Result<(RateCard, Seconds), Error> {
    let context = tokens("context", q.held(), 0.0)?.get();
    let usual = Seconds::ms(USUAL_MS);
    let fastest = cuts.iter().map(|(d, _)| step(d, 1.0, context)).reduce(Seconds::min).unwrap_or(usual);
    let ms = q.tpot_ms.unwrap_or_else(|| usual.max(fastest * 2.0).get() * 1e3);
    let patience = Seconds::checked(ms / 1e3).filter(|t| (1e-6..=1e3).contains(&t.get()));
    let patience = patience.ok_or_else(|| Error::value("tpot_ms", ms, "milliseconds, 0.001 to 1e6"))?;
    let card = best(cuts, |d, room| decode_of(d, room, scale, q, patience))?;
    let limit = if q.tpot_ms.is_none() && patience > usual {
        Some(says("usual_limit_raised").with("usual", usual).with("fastest", fastest).with("took", patience))
    } else {
        card.late.then(|| says("limit_unmet").with("asked", patience).with("fastest", fastest))
    };
    Ok((RateCard { limit, ..card }, patience))
}

/// What a machine of so many chips carries: instances that read prompts and write answers in the same passes, or whole instances for
/// each, whichever is more.
fn served(cuts: &[(Ready, f64)], chips: u64, requests: &Requests, patience: Seconds) -> Option<Served> {
    // Of each cut: what an instance takes of both together, of prompts alone and of answers alone.
    let each = cuts.iter().map(|(d, _)| {
        let (prompts, groups) = (d.prompts(requests).service, d.deployment.layout.degrees().dp as f64);
        let room = d.room(requests);
        let most = d.server(room).most().floor();
        if most < 1.0 {
            return (d, 0.0, prompts, 0.0);
        }
        let at = |n: f64| d.steady(room, requests, Load::even(n));
        let context = requests.context();
        let (both, alone) = (latest(&|n| at(n).tpot, most, patience), latest(&|b| step(d, b, context), most, patience));
        (d, at(both).rate * groups, prompts, alone * groups / step(d, alone, context).get() / requests.output)
    });
    let each: Vec<(&Ready, f64, f64, f64)> = each.collect();
    let size = |d: &Ready| d.deployment.layout.chips();
    let shared = each.iter().map(|(d, rate, ..)| {
        let copies = chips / size(d);
        (copies as f64 * rate, says("served_together").with("copies", copies).with("layout", &d.deployment.layout))
    });
    let apart = each.iter().flat_map(|(p, _, reads, _)| {
        each.iter().flat_map(move |(d, _, _, writes)| {
            (1..=chips / size(p)).map(move |n| {
                let m = (chips - n * size(p)) / size(d);
                let said = says("served_apart").with("prompts", n).with("layout", &p.deployment.layout);
                let said = said.with("answers", m).with("other", &d.deployment.layout);
                ((n as f64 * reads).min(m as f64 * writes), said)
            })
        })
    });
    let best = shared.chain(apart).max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(rate, _)| *rate > 0.0);
    best.map(|(requests_per_s, words)| Served { requests_per_s, words })
}

/// One step of so many sequences of an attention group.
fn step(d: &Ready, batch: f64, context: f64) -> Seconds {
    d.pass.cost(&Work::decode(batch / d.deployment.stages(), context)).time()
}

/// Answers alone, as many as memory, engine and patience allow.
fn decode_of(d: &Ready, room: f64, scale: &Scale, q: &RatesRequest, patience: Seconds) -> Result<RateCard, Error> {
    let (layout, engine) = (d.deployment.layout, &d.deployment.engine);
    let (chips, groups, stages) = (layout.chips() as f64, layout.degrees().dp as f64, d.deployment.stages());
    let context = tokens("context", q.held(), 0.0)?.get();
    let step = |b: f64| step(d, b, context);
    let most = room.min(engine.schedule.sequences * stages).max(1.0);
    let (b, why) = match q.batch {
        // The machine's sequences are spread over as many replicas as it has room for.
        Some(batch) => {
            let b = (tokens("batch", batch, 1.0)?.get() * chips / d.deployment.system.n_chips as f64 / groups).max(1.0);
            if b <= most { (b, "as_given") } else { (most, "all_held") }
        }
        None if step(most) > patience => (latest(&step, most, patience), "time_allows"),
        None if most < room => (most, "engine_holds"),
        None => (most, "memory_holds"),
    };
    let step = step(b);
    let words = predicted("decode_predicted", d).with("sequences", (b * groups).floor()).with("why", says(why));
    Ok(RateCard {
        tok_s: Range::of(b * groups / step.get() / chips, scale.widths(d).throughput),
        source: Origin::Predicted,
        words: words.with("context", context).with("step", step),
        late: q.batch.is_none() && step > patience * 1.001,
        limit: None,
        evidence: scale.card(d, false, None),
    })
}

/// The largest batch, at least 1, whose step takes no longer.
fn latest(step: &impl Fn(f64) -> Seconds, most: f64, patience: Seconds) -> f64 {
    if step(most) <= patience {
        return most;
    }
    let (mut low, mut high) = (1.0, most);
    // Thirty halvings of at most a million sequences: far below one.
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        if step(middle) > patience { high = middle } else { low = middle }
    }
    low
}

#[cfg(test)]
mod tests;
