//! Weights split over a chip and its host: what lies where, and what a pass takes for what lies in the host's memory.
//!
//! $$ t = t_{chip}\Big|_{L - h,\; L - h - e} + h\,t_{cpu} + e\,t_{cpu}^{exp} + n_x \Big(t_x + \frac{4 m d}{\beta}\Big)
//!    \qquad t_{cpu} = \max\Big(\frac{2 m N}{\eta_c F},\; \frac{w N'}{\eta_m B}\Big) $$
//! $$ t = t_{chip}\Big|_{L,\;L} + \frac{h\,w N' + e\,w N'_{exp}}{\lambda \beta} \quad\text{where weights are sent} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | L, h, e | layers, [`Split::layers`], [`Split::experts`] | 1 | layers; those whole in host memory; more of them with their routed experts alone |
//! | m, d | rows, hidden | 1 | tokens of a pass, width of a token |
//! | N, N', w | | 1, B | weights a token is multiplied by; those the pass reads, each expert once if anyone wants it; their width |
//! | F, B, η | `[processor]` of the engine | FLOP/s, B/s, 1 | vector peak and memory bandwidth of the processor, shares it reaches |
//! | β, λ | link, `[offload]` | B/s, 1 | the link between them one way, share that weights reach |
//! | n_x, t_x | crossings, cross | 1, s | one where the first h layers hand over, two for every layer whose experts lie apart |
//!
//! An engine multiplies on the processor what lies with it (llama.cpp, KTransformers), or sends it to the chip in every pass
//! (vLLM, and llama.cpp from 32 tokens on): the engine's file says which. Decoding one sequence reads of a mixture only the experts
//! its tokens choose, so that experts are the cheapest thing to leave with the host; a long prompt wants them all, and the link
//! binds. Where host memory is too small for its part, the missing share of what a pass reads comes from the disk.
//!
//! Further cards of the machine hold the layers after those (`--tensor-split`): a pass takes the sum of its stages, each at its own
//! card's rates, and one crossing more for every card.
//!
//! Layers go to the host from the first on, as `-ngl` and `--n-cpu-moe` do. Chip and processor take turns: nothing overlaps.
//! Ignores: sockets that read each other's memory beyond the engine's one factor for it, and pages that happen to be cached.
//! Source: ours; llama.cpp `-ngl`, `--n-cpu-moe` and `ggml_backend_offload_op`, vLLM `--cpu-offload-gb`, KTransformers
//! DeepseekR1_V3_tutorial.md.

use crate::budget;
use crate::count::Part;
use crate::deployment::{Deployment, Links};
use crate::placement::{self, Fit, Load, place};
use rackmath_spec::model::Shape;
use rackmath_spec::{Layout, System};
use rackmath_units::{ByteRate, Bytes};
use std::sync::Arc;

/// What of a model lies in the host's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// The processor with its memory.
    pub host: Arc<System>,
    /// One way between chip and host.
    pub link: ByteRate,
    /// The first layer that lies there.
    pub from: f64,
    /// Layers whole in host memory, up to this one; part of one where bytes were given.
    pub layers: f64,
    /// Layers from the first on whose routed experts lie there.
    pub experts: f64,
    /// Whether the head lies there too.
    pub head: bool,
    /// Whether the cache of such layers does.
    pub cache: bool,
    /// What comes from the disk: the share of the host's part that its memory does not hold, and the disk's rate.
    pub disk: Option<(f64, ByteRate)>,
    /// Further cards of the machine, which hold the next layers and compute them one after another.
    pub cards: Vec<Card>,
}

/// Another card of the same machine, and how many layers it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    pub system: Arc<System>,
    pub layers: f64,
}

/// How much of a layer lies in host memory, as shares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Away {
    pub whole: f64,
    pub experts: f64,
    pub cache: f64,
}

impl Away {
    pub fn of(self, part: Part) -> f64 {
        if part == Part::Routed { self.whole.max(self.experts) } else { self.whole }
    }
}

impl Split {
    /// Nothing yet.
    pub fn none(host: Arc<System>, link: ByteRate, cache: bool) -> Self {
        Self { host, link, from: 0.0, layers: 0.0, experts: 0.0, head: false, cache, disk: None, cards: Vec::new() }
    }

    /// Of so many layers after the first ones: how many lie in host memory whole, and how many more with their experts.
    pub fn among(&self, first: f64, n: f64) -> (f64, f64) {
        let to = self.layers + self.cards.iter().map(|card| card.layers).sum::<f64>();
        let whole = ((to.min(first + n)) - self.from.max(first)).clamp(0.0, n);
        (whole, (self.experts - first).clamp(0.0, n).max(whole) - whole)
    }

    /// Host and cards apart, each with the layers that lie there.
    pub fn places(&self) -> Vec<Self> {
        let host = Self { cards: Vec::new(), ..self.clone() };
        let mut all =
            if self.layers > self.from || self.experts > 0.0 || self.head { vec![host.clone()] } else { Vec::new() };
        let mut from = self.layers;
        for card in &self.cards {
            let layers = from + card.layers;
            let (host_of, head, disk) = (card.system.clone(), false, None);
            all.push(Self { host: host_of, from, layers, experts: 0.0, head, disk, ..host.clone() });
            from = layers;
        }
        all
    }

    pub fn away(&self, layer: u64) -> Away {
        let (whole, experts) = self.among(layer as f64, 1.0);
        Away { whole, experts: whole + experts, cache: if self.cache { whole } else { 0.0 } }
    }

    /// The model as it runs in this one place.
    pub fn on_host(&self, d: &Deployment) -> Deployment {
        let (system, layout, split) = (self.host.clone(), Layout::single(), Some(Arc::new(self.clone())));
        Deployment { system, layout, links: Links::default(), split, ..d.clone() }
    }
}

/// Bytes of weights and of cache that do not lie on the chips: in host memory, and on further cards.
pub fn on_host(on: &Deployment, load: &Load) -> (Bytes, Bytes) {
    let sum = |on: &Deployment| {
        let chips = |s: &placement::Stage| s.chips as f64;
        placement::main(on, load).iter().fold((0.0, 0.0), |(weights, kv), s| {
            (weights + s.held.all_weights().get() * chips(s), kv + s.held.kv * chips(s))
        })
    };
    let ((all, kv), (here, kv_here)) = (sum(&Deployment { split: None, ..on.clone() }), sum(on));
    (Bytes::b((all - here).max(0.0)), Bytes::b((kv - kv_here).max(0.0)))
}

/// What each further card holds: weights and cache of its layers, with the work space of a pass.
pub fn on_cards(on: &Deployment, load: &Load) -> Vec<(Bytes, Bytes)> {
    let Some(split) = on.split.as_deref().filter(|split| !split.cards.is_empty()) else { return Vec::new() };
    let main = &placement::main(on, load)[0].held;
    let space = main.activations + main.buffers;
    let share = 1.0 - main.reserve / budget::found(on).get();
    let cards = split.places().into_iter().filter(|place| !place.host.chip.processor);
    cards
        .map(|place| {
            let card = Deployment { system: place.host.clone(), ..on.clone() };
            let room = budget::found(&card) * share.max(0.0);
            let (weights, kv) = on_host(&Deployment { split: Some(place.into()), ..on.clone() }, load);
            (weights + kv + Bytes::b(space), room)
        })
        .collect()
}

/// Layers that hold so many bytes of weights, from the first on.
pub fn layers_of(on: &Deployment, load: &Load, empty: &Split, bytes: Bytes) -> f64 {
    let layers = on.model.shape().map_or(0, Shape::n_layers);
    let held = |n: f64| {
        let split = Split { layers: n, ..empty.clone() };
        on_host(&Deployment { split: Some(split.into()), ..on.clone() }, load).0.get() / on.layout.chips() as f64
    };
    // Bytes are a line within each layer.
    let whole = (0..layers).take_while(|n| held((n + 1) as f64) <= bytes.get()).count() as f64;
    let (low, high) = (held(whole), held((whole + 1.0).min(layers as f64)));
    if high > low { whole + ((bytes.get() - low) / (high - low)).clamp(0.0, 1.0) } else { whole }
}

/// The least of 0 to `most` for which something fits, where more never fits worse.
fn least(most: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (0, most);
    if !fits(high) {
        return None;
    }
    while low < high {
        let middle = u64::midpoint(low, high);
        if fits(middle) { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

fn fits(on: &Deployment, load: &Load, split: Split) -> bool {
    let on = Deployment { split: Some(split.into()), ..on.clone() };
    matches!(place(&on, load).fit, Fit::Fits { .. })
}

/// Fewest layers in host memory with which the chip holds the rest; none where not even an empty chip does.
pub fn fewest_layers(on: &Deployment, load: &Load, empty: &Split) -> Option<u64> {
    let layers = on.model.shape()?.n_layers();
    least(layers, |n| fits(on, load, Split { layers: n as f64, ..empty.clone() }))
}

/// Fewest layers whose experts lie in host memory with which the chip holds the rest.
pub fn fewest_expert_layers(on: &Deployment, load: &Load, empty: &Split) -> Option<u64> {
    let shape = on.model.shape()?;
    shape.moe()?;
    least(shape.n_layers(), |n| fits(on, load, Split { experts: n as f64, ..empty.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::{KernelSet, Pass, Work};
    use crate::timer::Part as Piece;
    use proptest::prelude::*;
    use rackmath_spec::{Catalog, Dtype, Gguf};
    use rackmath_units::{Fraction, Tokens};
    use std::sync::LazyLock;

    static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);

    fn on(model: &str, card: &str) -> Deployment {
        let one = Deployment::named(&CATALOG, model, card, "llamacpp").unwrap();
        let formats = one.model.formats_in(Dtype::Gguf(Gguf::Q4KM));
        Deployment { formats, kv: Dtype::Fp16, ..one }
    }

    fn empty(host: &str) -> Split {
        Split::none(CATALOG.system(host).unwrap(), ByteRate::gb_per_s(32.0), true)
    }

    fn with(on: &Deployment, split: Split) -> Deployment {
        Deployment { split: Some(split.into()), ..on.clone() }
    }

    fn load(context: f64) -> Load {
        Load { batch: 1.0, context: Tokens::new(context), tokens: 512.0, utilisation: Some(Fraction::new(0.95)) }
    }

    fn time(on: &Deployment, work: &Work) -> f64 {
        let kernels = KernelSet::of_model(&CATALOG, &on.model).unwrap();
        Pass::prepare(on, &kernels, false, None).unwrap().cost(work).time().get()
    }

    #[test]
    fn a_token_takes_the_hosts_bytes_at_the_hosts_rate() {
        // Llama 3.1 8B: 16 of 32 layers of 218 M weights at 4.84 bits are 2.11 GB, at the share of 83.2 GB/s the engine reaches.
        let one = on("llama-3.1-8b", "rtx-4090");
        let half = with(&one, Split { layers: 16.0, ..empty("ryzen-9-7950x") });
        let kernels = KernelSet::of_model(&CATALOG, &one.model).unwrap();
        let cost = Pass::prepare(&half, &kernels, false, None).unwrap().cost(&Work::decode(1.0, 512.0));
        let bytes = 16.0 * 218.1e6 * 4.84 / 8.0;
        let share = one.engine.processor.unwrap().memory;
        let least = bytes / (83.2e9 * share);
        let took = cost.part(Piece::Offloaded).get();
        assert!((1.0..1.25).contains(&(took / least)), "{took} for {least}");
    }

    #[test]
    fn bytes_are_somewhere_and_solved_splits_just_fit() {
        let one = on("qwen3-30b-a3b", "rtx-4060");
        let load = load(8192.0);
        let (nothing, host) = (empty("ryzen-9-7950x"), empty("ryzen-9-7950x"));
        let n = fewest_expert_layers(&one, &load, &nothing).unwrap();
        assert!(n > 0 && fits(&one, &load, Split { experts: n as f64, ..host.clone() }));
        assert!(!fits(&one, &load, Split { experts: (n - 1) as f64, ..host.clone() }));
        let h = fewest_layers(&one, &load, &nothing).unwrap();
        assert!(h > 0 && !fits(&one, &load, Split { layers: (h - 1) as f64, ..host.clone() }));
        // All that is left of a mixture with its experts away is small.
        let away = with(&one, Split { experts: 48.0, ..host.clone() });
        let (bytes, cache) = on_host(&away, &load);
        assert!((bytes.as_gb() / 17.5 - 1.0).abs() < 0.03 && cache == Bytes::ZERO, "{bytes}");
        let layers = layers_of(&one, &load, &host, Bytes::gb(5.0));
        let (bytes, _) = on_host(&with(&one, Split { layers, ..host }), &load);
        assert!((bytes.as_gb() - 5.0).abs() < 1e-6, "{bytes}");
    }

    #[test]
    fn two_equal_cards_take_as_long_as_one_and_a_crossing() {
        // Llama 3.1 8B on one RTX 4090, and with half of its layers on another: the same products, handed over once.
        let one = on("llama-3.1-8b", "rtx-4090");
        let card = Card { system: CATALOG.system("rtx-4090").unwrap(), layers: 16.0 };
        let two = with(&one, Split { cards: vec![card], ..empty("ryzen-9-7950x") });
        let work = Work::decode(1.0, 512.0);
        let cross = one.engine.offload.as_ref().unwrap().cross.get() + 4.0 * 4096.0 / 32e9;
        let (alone, both) = (time(&one, &work), time(&two, &work));
        assert!((both - alone - cross).abs() < 1e-6 * alone, "{both} {alone} {cross}");
        let load = load(8192.0);
        let held = on_cards(&two, &load);
        let main = place(&two, &load).stages[0].held;
        // Half of the layers and their caches each; embedding and head stay with the main card.
        let layers = main.part(Part::Mixer) + main.part(Part::Dense);
        let other = layers.get() + main.kv + main.activations;
        assert!(held.len() == 1 && (held[0].0.get() / other - 1.0).abs() < 1e-3, "{main:?} {held:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// More in host memory is never faster for a token, and experts alone cost less than whole layers.
        #[test]
        fn what_lies_with_the_host_takes_longer(h in 0u64..48, more in 1u64..8, rows in 1u64..6) {
            let one = on("qwen3-30b-a3b", "rtx-4090");
            let work = Work::decode(rows as f64, 2048.0);
            let host = empty("epyc-9654");
            let at = |layers: u64| time(&with(&one, Split { layers: layers as f64, ..host.clone() }), &work);
            let spilled = |n: u64| time(&with(&one, Split { experts: n as f64, ..host.clone() }), &work);
            let next = (h + more).min(48);
            prop_assert!(at(next) >= at(h) * 0.9999);
            prop_assert!(spilled(next) >= spilled(h) * 0.9999);
            let none = time(&one, &work);
            prop_assert!((at(0) / none - 1.0).abs() < 1e-9 && (spilled(0) / none - 1.0).abs() < 1e-9);
        }

        #[test]
        fn every_layer_lies_in_one_place(layers in 0.0f64..40.0, experts in 0.0f64..40.0, first in 0u64..32, n in 1u64..9) {
            let split = Split { layers, experts, ..empty("ryzen-9-7950x") };
            let (whole, spilled) = split.among(first as f64, n as f64);
            prop_assert!(whole >= 0.0 && spilled >= 0.0 && whole + spilled <= n as f64 + 1e-9);
            let sum: f64 = (first..first + n).map(|i| split.away(i).whole).sum();
            prop_assert!((sum - whole).abs() < 1e-9);
        }
    }
}
