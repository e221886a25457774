//! Tokens guessed ahead: who guesses, how often guesses hold, how many are best, and from how many requests on they lose.
//!
//! The law stands in `rackmath_theory::drafter`; here its words and numbers are found, and what came of it is put in a card.

use super::Request;
use super::work::{Ask, Case};
use crate::desk::prelude::*;
use crate::desk::words::other_words;
use crate::setting::formats;
use rackmath_spec::acceptance::{DrafterKind, Workload};
use rackmath_theory::count::count;
use rackmath_theory::deployment::{Deployment, usual_cache};
use rackmath_theory::drafter::{DraftModel, Drafter, expected, loses_from, one_layer};
use rackmath_theory::pass::{Limit, Part};
use rackmath_theory::pools::{Loading, Outcome, Serving};
use rackmath_theory::steady::{Requests, yielded};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserializer, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Tokens guessed ahead and checked together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Speculation {
    /// Tokens drafted for each sequence and step, or `auto` for as many as are best.
    #[schemars(extend("x-flag" = "drafts num-speculative-tokens speculative-num-draft-tokens"))]
    #[educe(Default(expression = Drafts::Number(3.0)))]
    pub drafts: Drafts,
    /// Tokens a step yields, the checked one included.
    pub accepted: Option<f64>,
    /// Chance that a draft is accepted when all before it were, instead.
    #[schemars(extend("x-unit" = "share"))]
    pub acceptance: Option<f64>,
    /// Who drafts: `mtp` (the model's own layers), `eagle3` (a head of one layer), `ngram` (a look-up in the text), or a smaller
    /// model by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flag" = "drafter draft-model speculative-model speculative-draft-model-path", "x-file" = "model"))]
    pub drafter: Option<String>,
    /// Chips a draft model is cut over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flag" = "draft-tp speculative-draft-tensor-parallel-size", "x-none" = "as many as the model"))]
    pub draft_tp: Option<u64>,
    /// What is written: how often drafts hold then, as published, where no acceptance is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = closed::<Workload>, extend("x-none" = "chat"))]
    pub workload: Option<String>,
}

/// How many tokens are drafted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drafts {
    /// So many.
    Number(f64),
    /// As many as are best.
    Auto,
}

impl Serialize for Drafts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(n) => to.serialize_f64(*n),
            Self::Auto => to.serialize_str("auto"),
        }
    }
}

impl<'de> Deserialize<'de> for Drafts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a number of tokens, or \"auto\"")]
        enum Given {
            Number(f64),
            Text(String),
        }
        match Given::deserialize(from)? {
            Given::Number(n) => Ok(Self::Number(n)),
            Given::Text(word) if word.eq_ignore_ascii_case("auto") => Ok(Self::Auto),
            Given::Text(word) => Err(serde::de::Error::custom(format!("drafts {word:?}: a number of tokens, or auto"))),
        }
    }
}

impl JsonSchema for Drafts {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Drafts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"], "x-unit": "drafts" })
    }
}

/// What guessing ahead does here.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Speculated {
    /// What it comes to, in a sentence.
    pub verdict: Remark,
    /// Who guesses.
    pub drafter: Remark,
    /// Tokens guessed for each sequence and step.
    pub drafts: f64,
    /// As many as would be best here: those with the shortest whole request; 0 where it is shorter without any.
    pub best_drafts: u64,
    /// Tokens a step yields.
    pub accepted: f64,
    /// Where that is from.
    pub acceptance: Remark,
    /// Weights it adds to each chip.
    pub weight_bytes_per_chip: f64,
    /// Time per output token without it.
    pub tpot_without_ms: f64,
    /// That over the time with it.
    pub speedup: f64,
    /// Requests per second with it over those without.
    pub throughput_gain: f64,
    /// Time of a whole request without it over that with it.
    pub request_gain: f64,
    /// From so many requests in flight on a token takes as long as without; nothing where it always wins.
    pub loses_from: Option<u64>,
    /// From so many on no more requests are served than without.
    pub throughput_loses_from: Option<u64>,
    /// As many as were looked at: those that memory and the engine hold.
    pub looked_up_to: u64,
    /// What changes there.
    pub why: Option<Remark>,
}

/// How often drafts hold.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Chance {
    /// So many tokens a step, as measured with that many drafts.
    Tokens(f64),
    Each(f64),
    Fading(f64, f64),
}

impl Chance {
    fn accepted(self, drafts: f64) -> f64 {
        match self {
            Self::Tokens(a) => a,
            Self::Each(alpha) => yielded(drafts, alpha),
            Self::Fading(first, fade) => expected(drafts, first, fade),
        }
    }
}

/// Speculation as asked for, with everything found.
#[derive(Clone, Debug)]
pub(crate) struct Guess {
    chance: Chance,
    auto: bool,
    /// Who drafts.
    pub drafter: Remark,
    /// Where the chance is from.
    pub source: Remark,
    side: Bytes,
    named: bool,
}

/// Most drafts that are tried.
const MOST_DRAFTS: u32 = 16;
/// Most requests in flight at which a loss is looked for.
const MOST_FLIGHT: f64 = 65_536.0;

/// Reads who drafts and puts it beside the model; the drafts go into the requests.
pub(super) fn put(
    catalog: &Catalog,
    request: &Request,
    on: &mut Deployment,
    requests: &mut Requests,
) -> Result<Option<Guess>, Error> {
    let Some(s) = &request.speculation else { return Ok(None) };
    let (drafts, auto) = match s.drafts {
        Drafts::Number(n) => (tokens("drafts", n, 0.0)?.get(), false),
        Drafts::Auto => (1.0, true),
    };
    refuse_if(drafts > 64.0, "drafts", drafts, "0 to 64 tokens, or auto")?;
    let kind = s.drafter.as_deref().map(|word| kind(catalog, word)).transpose()?;
    let words = drafter(catalog, s, kind, on)?;
    let side = on.drafter.weights(on) + own_layers(kind, on);
    on.side += side;
    let most = drafts + 1.0;
    let (chance, source) = match (s.accepted, s.acceptance) {
        (Some(_), None) if auto => {
            let expected = "acceptance instead: tokens a step depend on how many are drafted";
            return Err(Error::value("accepted", "with drafts auto", expected));
        }
        (Some(a), None) if (1.0..=most).contains(&a) => (Chance::Tokens(a), says("as_given")),
        (Some(a), None) => return Err(Error::value("accepted", a, format!("1 to {most} tokens a step"))),
        (None, Some(alpha)) => (Chance::Each(super::work::share("acceptance", alpha)?), says("as_given")),
        (None, None) => seen(catalog, s, kind)?,
        (Some(_), Some(_)) => return Err(Error::value("speculation", "accepted and acceptance", "one of them")),
    };
    (requests.drafts, requests.accepted) = (drafts, chance.accepted(drafts));
    Ok(Some(Guess { chance, auto, drafter: words, source, side, named: kind.is_some() }))
}

fn kind(catalog: &Catalog, word: &str) -> Result<DrafterKind, Error> {
    let plain = word.trim().to_ascii_lowercase().replace(['-', '_', ' '], "");
    match plain.as_str() {
        "mtp" | "nextn" | "own" | "self" => Ok(DrafterKind::Mtp),
        "eagle" | "eagle2" | "eagle3" | "head" => Ok(DrafterKind::Eagle3),
        "ngram" | "[ngram]" | "promptlookup" | "lookup" | "pld" | "suffix" => Ok(DrafterKind::Ngram),
        _ => catalog.model(word.trim()).map(|_| DrafterKind::Model).map_err(|_| {
            Error::value("drafter", format!("\"{word}\""), "mtp, eagle3, ngram, or the name of a smaller model")
        }),
    }
}

/// Puts the drafter beside the model, and says who it is.
fn drafter(
    catalog: &Catalog,
    s: &Speculation,
    kind: Option<DrafterKind>,
    on: &mut Deployment,
) -> Result<Remark, Error> {
    let refuse_tp = |n: Option<u64>| {
        refuse_if(n.is_some(), "draft_tp", n.unwrap_or(0), "a draft model with it, such as --drafter qwen3-0.6b")
    };
    let own = on.model.shape().is_some_and(|shape| shape.mtp.is_some());
    let acceptances = catalog.acceptances()?;
    let prepare = Seconds::s(acceptances.pass.host_s);
    Ok(match kind {
        None => {
            refuse_tp(s.draft_tp)?;
            says(if own { "drafter_own_layer" } else { "drafter_extra_layer" })
        }
        Some(DrafterKind::Mtp) => {
            refuse_tp(s.draft_tp)?;
            let given = format!("\"mtp\" for {}", on.model.name);
            let expected = "a model with prediction layers of its own; here eagle3, ngram or a smaller model";
            refuse_if(!own, "drafter", given, expected)?;
            says("drafter_own_layer")
        }
        Some(DrafterKind::Ngram) => {
            refuse_tp(s.draft_tp)?;
            on.drafter = Drafter::Lookup(Seconds::s(acceptances.lookup.s_per_token));
            says("drafter_lookup")
        }
        Some(DrafterKind::Eagle3) => {
            let head = one_layer(&on.model, acceptances.head.words);
            let head =
                head.ok_or_else(|| Error::value("model", format!("\"{}\"", on.model.id), crate::setting::LAYERED))?;
            let formats = head.formats();
            on.drafter = Drafter::Model(
                DraftModel { kv: head.cache_dtype(), model: head.into(), formats, tp: s.draft_tp, prepare }.into(),
            );
            says("drafter_head").with("words", acceptances.head.words as f64)
        }
        Some(DrafterKind::Model) => {
            let model = catalog.model(s.drafter.as_deref().unwrap_or_default().trim()).map_err(|e| e.at("drafter"))?;
            let large = count(&model).multiplied().get() >= count(&on.model).multiplied().get();
            let expected = format!("a smaller model than {}", on.model.name);
            refuse_if(large, "drafter", format!("\"{}\"", model.id), expected)?;
            refuse_if(model.shape().is_none(), "drafter", format!("\"{}\"", model.id), crate::setting::LAYERED)?;
            if let Some(other) = other_words(catalog, on, &model)? {
                let given = format!("\"{}\" with {} words", model.id, grouped(other.drafted as f64));
                return Err(Error::value("drafter", given, other.expected(&on.model.name)));
            }
            let tp = s.draft_tp.unwrap_or(1);
            let most = on.layout.degrees().tp;
            let expected = format!("1 to the {most} chips the model is cut over");
            refuse_if(tp == 0 || tp > most, "draft_tp", tp, expected)?;
            let formats = formats(&model, None)?;
            let words = says("drafter_model").with("name", &model.name).with("chips", s.draft_tp.map(|n| n as f64));
            on.drafter = Drafter::Model(
                DraftModel { kv: usual_cache(&model, formats, &on.engine), model, formats, tp: s.draft_tp, prepare }
                    .into(),
            );
            words
        }
    })
}

/// Weights of the prediction layers, evenly over the chips of the deployment; counted where they are asked for by name.
fn own_layers(kind: Option<DrafterKind>, on: &Deployment) -> Bytes {
    if kind != Some(DrafterKind::Mtp) {
        return Bytes::ZERO;
    }
    let params = count(&on.model).mtp as f64;
    on.formats.routed.width() * Params::new(params) / on.layout.chips() as f64
}

fn seen(catalog: &Catalog, s: &Speculation, kind: Option<DrafterKind>) -> Result<(Chance, Remark), Error> {
    let expected =
        "accepted or acceptance, as measured, or a drafter whose acceptance is published: mtp, eagle3, ngram";
    if kind.is_none() && s.workload.is_none() {
        return Err(Error::value("speculation", "no acceptance", expected));
    }
    let kind = kind.unwrap_or(DrafterKind::Eagle3);
    let workload = s.workload.as_deref().map_or(Ok(Workload::Chat), str::parse::<Workload>);
    let workload = workload.map_err(|e| e.at("workload"))?;
    let all = catalog.acceptances()?;
    let found = all.of(kind, workload).ok_or_else(|| Error::value("workload", workload, expected))?;
    let other = (found.workload != workload).then(|| found.workload.to_string());
    let source = says("acceptance_seen").with("first", found.first).with("low", found.low).with("high", found.high);
    let source = source.with("workload", workload.to_string()).with("other", other).with("note", &found.note);
    Ok((Chance::Fading(found.first, found.fade), source.with("source", &found.source)))
}

/// What a load costs its users: the time of a whole request; of a server that is always full, the time of one more.
fn cost(o: &Outcome, requests: &Requests, load: Loading) -> f64 {
    if load == Loading::Full || !o.serves() { 1.0 / o.rate.max(1e-300) } else { o.e2e(requests) }
}

impl Guess {
    fn requests(&self, of: &Requests, drafts: f64) -> Requests {
        Requests { drafts, accepted: self.chance.accepted(drafts), ..*of }
    }

    /// As many drafts as give the shortest whole request, and what that costs; where memory is always full, the most requests.
    fn best(&self, p: &Serving, ask: &Ask) -> (u64, f64) {
        let of = |drafts: f64| {
            let requests = self.requests(&ask.requests, drafts);
            cost(&p.under(&requests, ask.load), &requests, ask.load)
        };
        let tried = match self.chance {
            // What was measured with so many drafts says nothing of others.
            Chance::Tokens(_) => {
                return (
                    ask.requests.drafts.round() as u64,
                    cost(&p.under(&ask.requests, ask.load), &ask.requests, ask.load),
                );
            }
            _ => (1..=MOST_DRAFTS).map(|k| (u64::from(k), of(f64::from(k)))),
        };
        tried.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((1, f64::INFINITY))
    }

    /// What is assumed of it, where it was named.
    pub(super) fn assumed(&self, r: &Requests) -> Option<Remark> {
        let said = says("drafts_by").with("drafts", r.drafts).with("drafter", self.drafter.clone());
        self.named
            .then(|| said.with("accepted", r.accepted).with("side", (self.side.get() > 0.0).then_some(self.side.get())))
    }

    /// Takes the best number of drafts where that was asked for.
    pub(super) fn settle(&self, p: &Serving, ask: &mut Ask) {
        if self.auto {
            ask.requests = self.requests(&ask.requests, self.best(p, ask).0 as f64);
        }
    }
}

impl Case<'_> {
    /// The deployment without any guesses.
    pub(super) fn unguessed(&self, guess: &Guess) -> Ask {
        let on = &self.ask.on;
        let on = Deployment { drafter: Drafter::Layer, side: on.side.less(guess.side), ..on.clone() };
        let requests = Requests { drafts: 0.0, accepted: 1.0, ..self.ask.requests };
        Ask { on, requests, ..self.ask.clone() }
    }

    /// What guessing ahead does to this deployment.
    pub(super) fn speculated(&self, p: &Serving, o: &Outcome, load: Loading) -> Result<Option<Speculated>, Error> {
        let Some(guess) = self.guess.as_ref().filter(|_| self.ask.requests.drafts > 0.0 && o.fits) else {
            return Ok(None);
        };
        let plain = self.unguessed(guess);
        let bare = self.ready_like(&plain, Some(p))?;
        let without = bare.under(&plain.requests, load);
        let held = |s: &Serving| s.main.server(s.room).most() * s.groups();
        // Beyond what it holds with a drafter beside it, fewer sequences decode than without: a token is then compared with another.
        let whole = |n: f64| n.clamp(1.0, MOST_FLIGHT).floor() as u64;
        let (most, all) = (whole(held(p)), whole(held(p).max(held(&bare))));
        let mut known: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        let mut won = |c: u64| {
            *known.entry(c).or_insert_with(|| {
                let at = Loading::Concurrency(c as f64);
                let (a, b) = (p.under(&self.ask.requests, at), bare.under(&plain.requests, at));
                (b.tpot() / a.tpot(), a.rate / b.rate)
            })
        };
        let from = loses_from(most, |c| won(c).0 > 1.0);
        let rate_from = loses_from(all, |c| won(c).1 > 1.0);
        let (drafts, accepted) = (self.ask.requests.drafts, self.ask.requests.accepted);
        let (speedup, gain) = (without.tpot() / o.tpot(), o.rate / without.rate);
        let why = from.map(|from| {
            let at = Loading::Concurrency(from as f64);
            let (a, b) = (p.under(&self.ask.requests, at).steady, bare.under(&plain.requests, at).steady);
            let (long, short) = (a.step().get(), b.step().get());
            let (with, alone) = (a.mean_pass(), b.mean_pass());
            let more = |l: &Limit| with.limited(*l).get() - alone.limited(*l).get();
            let limit = Limit::ALL.into_iter().max_by(|x, y| more(x).total_cmp(&more(y))).unwrap_or(Limit::Compute);
            let drafting = with.part(Part::Draft).get() / long;
            says("speculation_why")
                .with("from", from as f64)
                .with("times", long / short)
                .with("accepted", accepted)
                .with("limit", limit.name())
                .with("drafting", drafting)
        });
        let (best, least) = guess.best(p, &Ask { load, ..self.ask.clone() });
        let alone = cost(&without, &plain.requests, load);
        let best = if alone < least { 0 } else { best };
        let whole = alone / cost(o, &self.ask.requests, load);
        // A token may come sooner and the request later: beside a drafter memory holds fewer, and the others wait.
        let said = says(match (speedup > 1.0, whole >= 1.0) {
            (true, true) => "speculation_wins",
            (true, false) => "speculation_waits",
            (false, _) => "speculation_loses",
        });
        let said = said.with("longer", 1.0 / whole).with("rate", gain).with("held", held(p).floor());
        let said = said.with("bare", held(&bare).floor());
        // Of more than are held, what a token takes beside fewer others says nothing.
        let here = if let Loading::Concurrency(c) = load { c } else { 0.0 };
        let from_here = from.filter(|c| speedup <= 1.0 || (*c as f64) > here);
        let said = said.with("drafts", drafts).with("drafter", guess.drafter.clone()).with("speedup", speedup);
        let said = said.with("slower", 1.0 / speedup).with("from", from_here.filter(|c| *c > 1).map(|c| c as f64));
        let said =
            said.with("never", from.is_none().then_some(most as f64)).with("always", (from == Some(1)).then_some(1.0));
        let better = (best as f64 != drafts && best > 0).then_some(best as f64);
        let said = said.with("without", (best == 0).then_some(0.0));
        Ok(Some(Speculated {
            verdict: said.with("better", better),
            drafter: guess.drafter.clone(),
            drafts,
            best_drafts: best,
            accepted,
            acceptance: guess.source.clone(),
            weight_bytes_per_chip: guess.side.get(),
            tpot_without_ms: without.tpot() * 1e3,
            speedup,
            throughput_gain: gain,
            request_gain: whole,
            loses_from: from,
            throughput_loses_from: rate_from,
            looked_up_to: most,
            why,
        }))
    }
}
