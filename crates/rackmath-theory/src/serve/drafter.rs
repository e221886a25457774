//! Speculation from the drafter's side: who guesses tokens ahead, what that costs, how many guesses are best, and from which
//! number of requests on they lose.
//!
//! $$ a(k) = 1 + \sum_{i=1}^{k} \prod_{j=1}^{i} \alpha \delta^{j - 1} \qquad \mathrm{TPOT}_k(c) = \frac{V(c\,(1 + k)) + k\,d(c)}{a(k)}
//!    \qquad c^* = 1 + \max\{c : \mathrm{TPOT}_k(c) < \mathrm{TPOT}_0(c)\} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | k, α | drafts, acceptance | 1 | tokens guessed for a sequence and step; chance that a guess holds when all before it did |
//! | a | [`expected`] | 1 | tokens a step yields; [`crate::steady::yielded`] where guesses do not fade |
//! | δ | fade | 1 | by which each later guess holds less often, given those before it |
//! | V | [`crate::pass::Pass`] | s | the pass that checks the guesses: 1 + k rows for each sequence |
//! | d | [`Drafter`] | s | one guess for every sequence: a pass of a small model, a layer and the head, or a look-up by the host |
//! | c* | [`loses_from`] | 1 | requests in flight from which on a token takes as long as without guesses |
//!
//! While weights bind a pass, V hardly grows with k and every accepted guess is won. When arithmetic binds, V grows as fast as
//! its rows: then a(k) < 1 + k says that guesses lose, whoever makes them. A drafter with a cost of its own loses before that.
//!
//! A pass of a draft model waits for the host, which prepares each. The model reads every prompt as well, in the pass in which the model does; its cache stands beside the model's. A
//! look-up costs the host a time for each token it searches. Assumes: chances do not depend on each other.
//! Ignores: trees of guesses. Source: Leviathan, Kalman, Matias, Fast Inference from Transformers via
//! Speculative Decoding (arXiv 2211.17192), for a(k); the rest ours.

use crate::deployment::Deployment;
use crate::placement::{self, Load};
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::{Block, Body, Ffn, Formats, Mlp, Run, Shape};
use rackmath_spec::{Dtype, Layout, Model};
use rackmath_units::{Bytes, Seconds};
use std::sync::Arc;

/// Who guesses.
#[derive(Clone, Debug, Default)]
pub enum Drafter {
    /// The layer the model brings along for it, or one like its last.
    #[default]
    Layer,
    /// A model of its own on the same chips; a head of one layer is one.
    Model(Arc<DraftModel>),
    /// The text itself: the host looks for the last tokens in what was written before, in so long for each token searched.
    Lookup(Seconds),
}

/// A model that guesses for another one.
#[derive(Clone, Debug)]
pub struct DraftModel {
    pub model: Arc<Model>,
    pub formats: Formats,
    pub kv: Dtype,
    /// Chips it is cut over; as many as the other unless given.
    pub tp: Option<u64>,
    /// The host's time for each of its passes.
    pub prepare: Seconds,
}

impl DraftModel {
    /// The drafter as it runs beside a model: on the same chips, by the same engine.
    pub fn beside(&self, main: &Deployment) -> Deployment {
        let tp = self.tp.unwrap_or(main.layout.degrees().tp);
        let etp = if self.model.shape().is_some_and(|s| s.moe().is_some()) { tp } else { 1 };
        let layout = Layout::new(Degrees { tp, etp, ..Degrees::default() }).unwrap_or_else(|_| Layout::single());
        Deployment {
            model: self.model.clone(),
            formats: self.formats,
            kv: self.kv,
            layout,
            side: Bytes::ZERO,
            drafter: Drafter::Layer,
            senses: None,
            split: None,
            adapters: None,
            ..main.clone()
        }
    }
}

/// What one sequence holds on the fullest chip, and the weights there.
fn held(on: &Deployment, load: &Load) -> (f64, Bytes) {
    let one = Load { batch: on.groups(), ..*load };
    let stages = placement::place(on, &one).stages;
    let most = |of: fn(&placement::Held) -> f64| stages.iter().map(|s| of(&s.held)).fold(0.0, f64::max);
    (most(|h| h.kv), Bytes::b(most(|h| h.all_weights().get())))
}

impl Drafter {
    /// Weights it adds to each chip.
    pub fn weights(&self, main: &Deployment) -> Bytes {
        let load = main.load(&crate::steady::Requests::of(1.0, 1.0), 1.0, 1.0);
        match self {
            Self::Model(draft) => held(&draft.beside(main), &load).1,
            Self::Layer | Self::Lookup(_) => Bytes::ZERO,
        }
    }

    /// The share of cache memory that is left for the model itself.
    pub fn leaves(&self, main: &Deployment, load: &Load) -> f64 {
        let Self::Model(draft) = self else { return 1.0 };
        let (own, other) = (held(main, load).0, held(&draft.beside(main), load).0);
        if own > 0.0 { own / (own + other) } else { 1.0 }
    }
}

/// A head of one layer on top of a model, as EAGLE's: attention like the model's last layer, a dense network as wide as what a
/// token passes there, and a head over the words it may guess. Ignores: the matrix that joins states of three layers, and the
/// wider input of its attention.
pub fn one_layer(model: &Model, words: u64) -> Option<Model> {
    let shape = model.shape()?;
    let last = &shape.runs.last()?.block;
    let ffn = match &last.ffn {
        Ffn::Moe(moe) => {
            let width = moe.top_k * moe.expert.width + moe.shared.map_or(0, |s| s.width);
            Ffn::Dense(Mlp { width, ..moe.expert })
        }
        other => other.clone(),
    };
    let block = Block { ffn, side: Vec::new(), ..last.clone() };
    let shape = Shape {
        vocab: words.min(shape.vocab),
        // The table of words is the model's own.
        tied: true,
        runs: vec![Run { n: 1, block }],
        mtp: None,
        side: Vec::new(),
        streams: None,
        ..shape.clone()
    };
    let name = format!("a head of one layer on {}", model.name);
    Some(Model {
        id: format!("{}-head", model.id),
        name,
        hf: None,
        body: Body::Layers(shape.into()),
        published: None,
        ..model.clone()
    })
}

/// Tokens a step yields when the first of k drafts holds with a chance, and each later one so many times as often as the one before it.
pub fn expected(drafts: f64, first: f64, fade: f64) -> f64 {
    let (mut sum, mut all, mut next) = (1.0, 1.0, first);
    let whole = drafts.max(0.0).floor();
    for _ in 0..whole as u32 {
        all *= next;
        sum += all;
        next *= fade;
    }
    // Part of a draft counts in part.
    sum + (drafts.max(0.0) - whole) * all * next
}

/// Up to here every number is tried.
const EACH: u64 = 256;

/// The number from 1 to `most` from which on something wins no more: one above the largest at which it wins, nothing where it wins at
/// the last. Above `EACH` steps are a thirty-second part, and between two that differ the place is found by halving.
pub fn loses_from(most: u64, mut wins: impl FnMut(u64) -> bool) -> Option<u64> {
    if wins(most) {
        return None;
    }
    let mut lost = most;
    while lost > EACH {
        let next = (lost - lost / 32).max(EACH);
        if wins(next) {
            let (mut low, mut high) = (next, lost);
            while high - low > 1 {
                let middle = u64::midpoint(low, high);
                if wins(middle) { low = middle } else { high = middle }
            }
            return Some(high);
        }
        lost = next;
    }
    Some((1..lost).rev().find(|c| wins(*c)).map_or(1, |c| c + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_begins_where_counting_finds_it() {
        for most in [1, 2, 255, 256, 257, 1000, 5000] {
            for at in [1, 2, 100, 256, 257, 300, 999, 1000, 4999, 6000] {
                let counted = (1..=most).rev().find(|c| *c < at).map_or(1, |c| c + 1);
                assert_eq!(loses_from(most, |c| c < at), (counted <= most).then_some(counted), "{most} {at}");
            }
            // What wins again later has not lost yet.
            assert_eq!(loses_from(most, |c| c == most), None);
        }
        assert_eq!(loses_from(200, |c| c != 50 && c < 90), Some(90));
    }

    /// Published for heads on Qwen3 8B, by number of drafts: github.com/vllm-project/speculators, issue 563.
    #[test]
    fn guesses_that_fade_yield_what_was_printed() {
        for (first, fade, printed) in [
            (0.80, 0.93, [1.80, 2.375, 2.755, 2.97, 3.11, 3.18, 3.215]),
            (0.82, 0.94, [1.82, 2.46, 2.91, 3.20, 3.375, 3.515, 3.565]),
            (0.68, 0.88, [1.68, 2.08, 2.30, 2.395, 2.435, 2.45, 2.455]),
        ] {
            for (k, seen) in (1_u32..).zip(printed) {
                crate::close(expected(f64::from(k), first, fade), seen, 0.05);
            }
        }
        for k in [0.0, 1.0, 3.0, 7.0] {
            crate::close(expected(k, 0.7, 1.0), crate::steady::yielded(k, 0.7), 1e-12);
        }
    }

    #[test]
    fn a_head_is_a_layer_and_its_words() {
        let catalog = rackmath_catalog::embedded();
        let count = |m: &Model| crate::count::count(m).total();
        // Qwen3 8B: 36 layers of 192,946,432 parameters, and tables of 151,936 words of 4,096.
        let model = catalog.model("qwen3-8b").unwrap();
        let head = one_layer(&model, 32_000).unwrap();
        let layer = (count(&model) - 4096 - 2 * 151_936 * 4096) / 36;
        assert_eq!(count(&head), layer + 32_000 * 4096 + 4096);
        let sparse = one_layer(&catalog.model("qwen3-30b-a3b").unwrap(), 32_000).unwrap();
        assert!(sparse.shape().unwrap().moe().is_none());
    }
}
