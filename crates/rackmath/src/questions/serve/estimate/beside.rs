//! Pictures and sound in an estimate, and requests that want a vector instead of an answer.

use super::met::Met;
use super::work::Case;
use super::{Answer, Breakdown, Range, Slo, breakdown, words};
use crate::desk::media;
use crate::desk::prelude::*;
use crate::simulate::Percentiles;
use rackmath_spec::tower::Sense;
use rackmath_theory::embed::{self, embed};
use rackmath_theory::pass::Spread;
use rackmath_theory::pools::{Loading, Outcome, Serving};
use rackmath_theory::steady::{Requests, Steady};
use rackmath_theory::towers;

/// What requests bring beside text, and what it takes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Brought {
    /// Tokens of a prompt that are text.
    pub text_tokens: f64,
    /// Tokens that its pictures and frames are.
    pub picture_tokens: f64,
    /// Tokens that its sound is.
    pub sound_tokens: f64,
    /// Patches that encoders see of it.
    pub patches: f64,
    /// Parameters of the encoders.
    pub encoder_params: f64,
    /// What they and the tokens they keep hold on each chip that serves.
    pub encoder_bytes: f64,
    /// Encoding what one request brings.
    pub encode_ms: f64,
    /// Chips that only encode, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoders: Option<EncoderPool>,
    /// In words.
    pub says: Remark,
}

/// Chips that only encode.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EncoderPool {
    /// How many.
    pub chips: f64,
    /// How many would be exactly busy.
    pub balanced_chips: f64,
    /// Share of the time they work.
    pub busy: f64,
    /// Waiting for one of them.
    pub wait_ms: f64,
    /// Sending what they encoded.
    pub send_ms: f64,
}

/// Requests of one pass: vectors, or scores.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Embedded {
    /// From arrival to the vector; nothing where the queue grows without end.
    pub latency_ms: Option<Range>,
    /// Texts per second of the deployment.
    pub requests_per_s: Range,
    /// Tokens per second of the deployment.
    pub input_tok_s: Range,
    /// The same of a chip.
    pub input_tok_s_per_chip: Range,
    /// Texts in a pass of one group.
    pub together: f64,
    /// Share of the time that passes run.
    pub busy: f64,
    /// Dollars per million tokens.
    pub usd_per_mtok_input: Option<f64>,
    /// Whether targets are met, where any were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slo: Option<Slo>,
    /// What users meet, text by text: at a rate, or where targets are percentiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentiles: Option<Percentiles>,
    /// Where the time of a pass goes.
    pub step: Breakdown,
    /// The distance from the limit, in a sentence.
    pub reading: Remark,
}

/// What requests bring, where they bring anything.
pub(super) fn brought(case: &Case, p: &Serving, outcome: &Outcome) -> Option<Brought> {
    let on = &case.ask.on;
    let (senses, shape) = (on.senses.as_deref()?, on.model.shape()?);
    let of = |sense: Sense| senses.seen.iter().filter(|(s, _)| *s == sense).map(|(_, s)| s.tokens as f64).sum::<f64>();
    let flow = outcome.encoders.as_ref();
    let time = flow.map_or_else(|| p.main.pass.encoder().get() * senses.prompt, |f| f.each);
    let media = case.request.media.clone().unwrap_or_default();
    let said = says("pictures_brought")
        .with("pictures", Some(media.images as f64).filter(|n| *n > 0.0))
        .with("frames", Some(media.frames as f64).filter(|n| *n > 0.0))
        .with("size", Some(media.image_size.as_str()).filter(|_| media.images + media.frames > 0))
        .with("sound", Some(media.audio_s).filter(|s| *s > 0.0))
        .with("tokens", senses.tokens())
        .with("share", senses.tokens() / senses.prompt.max(1.0));
    Some(Brought {
        text_tokens: senses.prompt - senses.tokens(),
        picture_tokens: of(Sense::Sight),
        sound_tokens: of(Sense::Hearing),
        patches: senses.seen.iter().map(|(_, s)| s.all_patches() as f64).sum(),
        encoder_params: towers::towers_params(shape) as f64,
        encoder_bytes: on.beside().get() - on.side.get(),
        encode_ms: time * 1e3,
        encoders: flow.map(|f| EncoderPool {
            chips: f.chips,
            balanced_chips: f.exact,
            busy: f.busy,
            wait_ms: f.wait * 1e3,
            send_ms: f.send * 1e3,
        }),
        says: said,
    })
}

/// What is assumed of pictures and sound, or that none are counted.
pub(super) fn assumed(case: &Case) -> Vec<Remark> {
    let on = &case.ask.on;
    let Some(senses) = on.senses.as_deref() else {
        return media::unasked(&on.model).into_iter().collect();
    };
    let lies = says(match senses.spread {
        Spread::Cut => "encoder_cut",
        Spread::Copied => "encoder_copied",
        Spread::Apart => "encoder_apart",
    });
    let films = case.request.media.as_ref().is_some_and(|m| m.frames > 0);
    [Some(says("encoder_unmeasured")), Some(lies), films.then(|| says("frames_as_pictures"))]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether vectors are wanted: asked for, or all the model gives.
pub(super) fn embeds(request: &super::Request, on: &rackmath_theory::deployment::Deployment) -> bool {
    request.embed || request.osl == 0.0 || on.model.shape().is_some_and(|shape| shape.encodes() || shape.headless)
}

/// Passes of texts under a load, and how many groups share it.
fn vectors(p: &Serving, requests: &Requests, load: Loading) -> (embed::Embedded, f64) {
    let groups = p.groups();
    let (one, busy) = match load {
        Loading::Concurrency(c) => (Loading::Concurrency(c / groups.min(c)), groups.min(c)),
        Loading::Rate(rate) => (Loading::Rate(rate / groups), groups),
        Loading::Full => (Loading::Full, groups),
    };
    let Ok(one) = embed(&p.main.server(p.room), requests, one);
    (one, busy)
}

impl Case<'_> {
    /// What a load comes to; of vectors, passes of their texts and nothing else.
    pub(super) fn under(&self, p: &Serving, requests: &Requests, load: Loading) -> Outcome {
        let found = p.under(requests, load);
        if !self.embeds {
            return found;
        }
        let (one, groups) = vectors(p, requests, load);
        let steady = Steady {
            ttft: Seconds::s(one.latency),
            rate: one.rate,
            running: one.rate * one.latency,
            prompt_share: 1.0,
            prompt_size: one.together * requests.input,
            mixed: one.pass,
            decode: one.pass,
            overloaded: one.overloaded,
            ..Steady::default()
        };
        let rate = one.rate * groups;
        Outcome { steady, groups, ttft: one.latency, queue: 0.0, rate, overloaded: one.overloaded, ..found }
    }
}

/// The same deployment, asked for vectors.
pub(super) fn embedded(case: &Case, p: &Serving, outcome: &Outcome, met: &Met, answer: Answer) -> Answer {
    let requests = &case.ask.requests;
    let (one, _) = vectors(p, requests, case.ask.load);
    let stable = !words::overloaded(outcome, met);
    let widths = case.scale.widths(&p.main);
    let rate = match case.ask.load {
        Loading::Rate(rate) if stable => Range { value: rate, low: rate, high: rate },
        _ => Range::of(outcome.rate, widths.throughput),
    };
    let chips = p.main.deployment.chips();
    let input_tok_s = rate.times(requests.input);
    let step = breakdown(&outcome.steady);
    let price = case.ask.price.map(|usd| usd * chips / input_tok_s.value * 1e6);
    // Where requests are simulated, what they met; else the mean of the passes.
    let [queue, first, _] = words::means(outcome, met);
    let embedding = answer.served.map(|served| Embedded {
        latency_ms: stable.then(|| Range::of(queue + first, widths.ttft)),
        requests_per_s: rate,
        input_tok_s,
        input_tok_s_per_chip: input_tok_s.times(1.0 / chips),
        together: one.together,
        busy: one.busy,
        usd_per_mtok_input: price,
        slo: served.slo,
        percentiles: served.percentiles,
        reading: words::reading(&step, case.ask.on.engine.ideal),
        step,
    });
    // Whoever wants vectors is not told about tokens of an answer.
    let mut assumptions: Vec<Remark> = answer.assumptions;
    let idle = ["replaced_at_once", "means_in_steady_state", "goodput_all_or_none", "price_split"];
    assumptions.retain(|said| !idle.contains(&&*said.says));
    assumptions.push(says("embeds_unmeasured"));
    Answer { embedding, served: None, osl: 0.0, assumptions, ..answer }
}
