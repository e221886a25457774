//! The cache as an engine cuts it: layers in groups, groups in pages of one size, sequences in whole pages.
//!
//! $$ n = \left\lfloor \frac{C}{g\,p} \right\rfloor \qquad
//!    q(L) = \sum_k m_k \begin{cases} \lceil L / t_k \rceil & \text{whole contexts} \\ \lceil \min(L, w_k - 1 + T) / t_k \rceil + 1 & \text{windows} \\
//!    s & \text{states} \end{cases} \qquad X(L) = n / q(L) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | C | room | B | memory that is left for the cache on one chip |
//! | g, p | page | layers, B | layers of a group, bytes of one layer's page; the code's page is their product |
//! | n | blocks | 1 | pages there are; a page holds the same tokens for all layers of a group |
//! | m_k, t_k | groups, block | 1, tokens | groups of a kind of layer, tokens one of its pages holds |
//! | w_k, T | span, pass | tokens | its window, tokens of the longest pass |
//! | s | states | 1 | pages that a sequence's state takes: one, two where prefixes are kept, and one for each draft |
//! | X(L) | concurrency | 1 | sequences of L tokens that fit, as the engine prints it |
//!
//! Layers that are all alike, or that all keep whole contexts, are one group. Otherwise a group has as many layers as the rarest
//! kind, or as the commonest where that is less than half as many again, and the last group of a kind is filled up with layers
//! that are not there. Pages of all kinds are as large as the largest: narrower layers put more tokens in a page. Where layers
//! keep a state, a page of attention is made long enough to hold one.
//!
//! A cache folded along its tokens (DeepSeek V4) has one group of whole contexts, whose page holds two entries of the highest ratio
//! or more, and groups of windows and of values not yet folded, each with as many tokens as its page holds.
//!
//! Source: vllm-project/vllm, vllm/v1/core/kv_cache_utils.py and vllm/v1/kv_cache_interface.py (commit 001cabc1, read 2026-11-16).
//! Ignores: cross-attention, which only encoders feed.

use crate::deployment::Deployment;
use crate::drafter::Drafter;
use crate::kv;
use crate::placement::cache_shards;
use rackmath_spec::Dtype;
use rackmath_spec::memory::{MemoryRule, Way};
use rackmath_spec::model::{Attention, Block, Compressed, KvSource, Linear, Mixer, Shape, Span};

/// Kinds of layers that a model can mix at most; what is beyond is taken for the last of them.
const KINDS: usize = 6;

/// Layers that keep the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Kind {
    /// Layers of the whole model, and those of the stage.
    layers: u64,
    here: u64,
    /// Bytes of one layer for each token, on one chip.
    entry: f64,
    /// Tokens it keeps; all when none.
    span: Option<u64>,
    /// Bytes of its state, if it keeps one instead.
    state: f64,
    /// Tokens of a page, and groups, once they are known.
    block: u64,
    groups: u64,
}

/// Layers whose cache is folded along the tokens.
#[derive(Clone, Copy, Debug, Default)]
struct Folds {
    layers: u64,
    window: u64,
    entry: f64,
    ratios: [Ratio; KINDS - 2],
    n: usize,
}

/// Layers that fold so many tokens into an entry: bytes of an entry's index key, tokens that are not yet folded and bytes of one.
#[derive(Clone, Copy, Debug, Default)]
struct Ratio {
    tokens: u64,
    layers: u64,
    key: f64,
    span: u64,
    unfolded: f64,
}

impl Folds {
    fn add(&mut self, a: &Compressed, dtype: Dtype, layers: u64) {
        (self.window, self.entry) = (a.window, kv::entry_bytes(a, dtype));
        self.layers += layers;
        let Some(ratio) = a.ratio else { return };
        if let Some(known) = self.ratios[..self.n].iter_mut().find(|r| r.tokens == ratio) {
            known.layers += layers;
        } else if self.n < self.ratios.len() {
            let (span, unfolded) = kv::unfolded(a, ratio);
            let key = a.indexer.map_or(0.0, |i| kv::index_key(i.dim));
            self.ratios[self.n] = Ratio { tokens: ratio, layers, key, span, unfolded };
            self.n += 1;
        }
    }
}

/// How the cache of one chip is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pages {
    kinds: [Kind; KINDS],
    n: usize,
    /// Bytes of one page of all layers of a group.
    pub page: f64,
    /// Tokens of the shortest page.
    pub block: u64,
    /// Bytes that do not come in pages: what a sequence keeps for each token, where a cache is compressed along them.
    folded: Option<f64>,
    fixed: f64,
    /// Chips over which a sequence's tokens are dealt.
    dealt: u64,
    /// Tokens of the longest pass.
    pass: f64,
    /// Pages of a state.
    states: u64,
}

/// What the cache of a start depends on, beside model and chips.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub block: u64,
    pub pass: f64,
    pub drafts: u64,
    pub prefixes: bool,
    /// Layers of a draft beside the model's own, with caches like its last layer's.
    pub draft_layers: u64,
    /// Whether layers of a model that drafts are kept beside, where the deployment has one.
    pub drafter: bool,
    /// Formats of keys and of values, where they differ.
    pub halves: Option<(Dtype, Dtype)>,
}

impl Pages {
    /// The groups of `layers` (first, count) of a model: those of one stage of a pipeline.
    pub fn of(on: &Deployment, rule: &MemoryRule, shape: &Shape, stage: (u64, u64), kept: Kept) -> Self {
        let d = on.layout.degrees();
        let stage = here(on, stage);
        let mut all = Self {
            kinds: [Kind::default(); KINDS],
            n: 0,
            page: 0.0,
            block: kept.block.max(1),
            folded: None,
            fixed: 0.0,
            dealt: d.dcp * d.cp,
            pass: kept.pass,
            states: 1 + u64::from(kept.prefixes) + kept.drafts,
        };
        let (mut first, mut folded, mut folds) = (0, 0.0, Folds::default());
        for run in &shape.runs {
            let here = (first + run.n).min(stage.0 + stage.1).saturating_sub(first.max(stage.0));
            first += run.n;
            if let Mixer::Compressed(a) = &run.block.mixer {
                if rule.way == Way::Share {
                    folds.add(a, on.kv, here);
                    continue;
                }
                // Entries of several tokens beside windows: a sequence is charged by the token.
                let cache = kv::layer(&run.block.mixer, on.kv);
                folded += cache.stored_per_token().get() * here as f64;
                all.fixed += cache.stored_fixed().get() * here as f64;
            } else {
                all.add(Kind { layers: run.n, here, ..kind(on, rule, &run.block, &kept) });
            }
        }
        if kept.draft_layers > 0 {
            let draft = shape.mtp.as_ref().map(|mtp| &mtp.block).or_else(|| shape.runs.last().map(|run| &run.block));
            let layers = kept.draft_layers;
            let here = if stage.0 + stage.1 == shape.n_layers() { layers } else { 0 };
            if let Some(block) = draft {
                all.add(Kind { layers, here, ..kind(on, rule, block, &kept) });
            }
        }
        if let (true, Drafter::Model(draft)) = (kept.drafter, &on.drafter) {
            let beside = draft.beside(on);
            let last = stage.0 + stage.1 == shape.n_layers();
            for run in beside.model.shape().iter().flat_map(|shape| &shape.runs) {
                let here = if last { run.n } else { 0 };
                all.add(Kind { layers: run.n, here, ..kind(&beside, rule, &run.block, &kept) });
            }
        }
        if folded > 0.0 {
            all.folded = Some(folded);
        } else if folds.layers > 0 {
            all.fold(&folds);
        } else {
            all.cut(rule);
        }
        all
    }

    /// A cache known only by what a token adds.
    pub fn plain(entry: f64, block: u64) -> Self {
        let mut all = Self {
            kinds: [Kind::default(); KINDS],
            n: 0,
            page: entry * block as f64,
            block,
            folded: None,
            fixed: 0.0,
            dealt: 1,
            pass: 0.0,
            states: 1,
        };
        all.add(Kind { layers: 1, here: 1, entry, block, groups: 1, ..Kind::default() });
        all
    }

    fn add(&mut self, kind: Kind) {
        if kind.entry <= 0.0 && kind.state <= 0.0 {
            return;
        }
        let alike = |k: &Kind| k.entry == kind.entry && k.span == kind.span && k.state == kind.state;
        let n = self.n;
        match self.kinds[..n].iter_mut().find(|k| alike(k)) {
            Some(k) => (k.layers, k.here) = (k.layers + kind.layers, k.here + kind.here),
            None if n < KINDS => {
                self.kinds[n] = kind;
                self.n += 1;
            }
            None => self.kinds[n - 1].here += kind.here,
        }
    }

    /// Groups are made of all layers of a model; a page holds those of the stage.
    fn cut(&mut self, rule: &MemoryRule) {
        let block = self.block;
        let kinds = &mut self.kinds[..self.n];
        let Some(first) = kinds.first().copied() else { return };
        let same = kinds.iter().all(|k| k.span == first.span && k.state <= 0.0);
        let stateless = kinds.iter().all(|k| k.state <= 0.0);
        // An engine with a pool for states of its own has one group for the rest, unless it keeps windows apart.
        let one_pool = rule.way != Way::Share && !(rule.way == Way::Asked && rule.windows && stateless);
        if same || kinds.len() == 1 || one_pool {
            // One group, whose layers may be of different width.
            for kind in kinds.iter_mut() {
                (kind.block, kind.groups) = (block, 0);
            }
            let main = kinds.iter().position(|k| k.entry > 0.0 && k.span.is_none()).unwrap_or(0);
            kinds[main].groups = 1;
            self.page = if first.state > 0.0 && kinds.len() == 1 {
                first.state * first.here as f64
            } else {
                kinds.iter().map(|k| k.entry * k.here as f64).sum::<f64>() * block as f64
            };
            return;
        }
        let state = kinds.iter().map(|k| k.state).fold(0.0, f64::max);
        let widest = kinds.iter().map(|k| k.entry).fold(0.0, f64::max);
        let align = rule.align_tokens.max(1) as f64;
        let long = (state / (align * widest)).ceil() * align;
        let block = if state > 0.0 { (long as u64).max(block) } else { block };
        let page = widest * block as f64;
        let (least, most) = kinds.iter().fold((u64::MAX, 0), |(a, b), k| (a.min(k.layers), b.max(k.layers)));
        let size = if (most as f64) < least as f64 * rule.pad_share { most } else { least };
        for kind in kinds.iter_mut() {
            let ratio = if kind.entry > 0.0 { (widest / kind.entry).round().max(1.0) as u64 } else { 1 };
            (kind.block, kind.groups) = (block * ratio, kind.layers.div_ceil(size));
        }
        let here = kinds.iter().map(|k| k.here.div_ceil(k.groups)).max().unwrap_or(0);
        self.page = page * here as f64;
        self.block = block;
    }

    /// A cache folded along its tokens: entries of the commonest ratio and their index keys fill a page; windows, and what is not
    /// yet folded, take pages of the same size, with as many tokens (a power of two) as there is room for beside the keys.
    fn fold(&mut self, folds: &Folds) {
        let ratios = &folds.ratios[..folds.n];
        let block = ratios.iter().map(|r| r.tokens).max().map_or(self.block, |most| self.block.max(2 * most));
        let of = |r: &Ratio, bytes: f64| bytes * (block / r.tokens) as f64;
        let main = ratios.iter().map(|r| of(r, folds.entry)).reduce(f64::max).unwrap_or(folds.entry * block as f64);
        let keys = ratios.iter().map(|r| of(r, r.key)).fold(0.0, f64::max);
        let side_by_side = ratios.iter().map(|r| r.layers).max().unwrap_or(folds.layers).max(1);
        let fit = |bytes: f64| 1_u64 << ((main / bytes).max(1.0) as u64).ilog2();
        let groups = |layers: u64| layers.div_ceil(side_by_side);
        let whole = Kind { block, groups: 1, ..Kind::default() };
        let window =
            Kind { span: Some(folds.window), block: fit(folds.entry), groups: groups(folds.layers), ..Kind::default() };
        (self.kinds[0], self.kinds[1], self.n) = (whole, window, 2);
        for r in ratios {
            self.kinds[self.n] =
                Kind { span: Some(r.span), block: fit(r.unfolded), groups: groups(r.layers), ..Kind::default() };
            self.n += 1;
        }
        self.block = block;
        self.page = (main + keys) * side_by_side as f64;
    }

    /// Bytes of all states of one sequence.
    pub fn state(&self) -> f64 {
        self.kinds[..self.n].iter().map(|k| k.state * k.here as f64).sum()
    }

    /// Whether what a sequence keeps comes in pages.
    pub fn paged(&self) -> bool {
        self.folded.is_none() && self.page > 0.0
    }

    pub fn groups(&self) -> u64 {
        self.kinds[..self.n].iter().map(|k| k.groups).sum::<u64>().max(1)
    }

    /// Pages that so much memory holds.
    pub fn blocks(&self, room: f64) -> u64 {
        if let Some(entry) = self.folded {
            return (room / (entry * self.block as f64)).floor().max(0.0) as u64;
        }
        if self.page > 0.0 { (room / self.page).floor().max(0.0) as u64 } else { 0 }
    }

    /// Pages one sequence takes at most on its way to so many tokens, as engines reckon before they start.
    pub fn most(&self, tokens: f64) -> f64 {
        self.sum(tokens, |kind, tokens| {
            let window = kind.span.map_or(f64::INFINITY, |span| span as f64 - 1.0 + self.pass);
            let kept = tokens.min(window);
            // A window may begin within a page.
            (kept / kind.block as f64).ceil() + f64::from(u8::from(kind.span.is_some()))
        })
    }

    /// Pages a sequence of so many tokens holds while it is answered.
    pub fn held(&self, tokens: f64) -> f64 {
        self.sum(tokens, |kind, tokens| {
            let kept = kind.span.map_or(tokens, |span| tokens.min(span as f64));
            (kept / kind.block as f64).ceil()
        })
    }

    fn sum(&self, tokens: f64, pages: impl Fn(&Kind, f64) -> f64) -> f64 {
        let tokens = (tokens / self.dealt as f64).ceil();
        if let Some(entry) = self.folded {
            return (tokens + self.fixed / entry) / self.block as f64;
        }
        let each = self.kinds[..self.n].iter().map(|kind| {
            let own = if kind.state > 0.0 { self.states as f64 } else { pages(kind, tokens) };
            own * kind.groups as f64
        });
        each.sum()
    }

    /// Tokens of all blocks as an engine counts them, every group by itself.
    pub fn tokens(&self, blocks: u64) -> u64 {
        blocks / self.groups() * self.block * self.dealt
    }

    /// Bytes of so many pages.
    pub fn bytes(&self, pages: f64) -> f64 {
        pages * self.folded.map_or(self.page, |entry| entry * self.block as f64)
    }

    /// The longest sequence whose pages are there.
    pub fn longest(&self, blocks: u64, most: u64) -> u64 {
        let fits = |tokens: u64| self.most(tokens as f64) <= blocks as f64;
        if most == 0 || !fits(1) {
            return 0;
        }
        let (mut low, mut high) = (1, most);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if fits(middle) { low = middle } else { high = middle - 1 }
        }
        low
    }
}

/// The layers of a stage whose cache lies on the chip: those after the ones that the host computes.
fn here(on: &Deployment, (first, n): (u64, u64)) -> (u64, u64) {
    let away = on.split.as_ref().filter(|split| split.cache).map_or(0, |split| split.layers as u64);
    let from = first.max(away).min(first + n);
    (from, first + n - from)
}

/// What a layer keeps on one chip.
fn kind(on: &Deployment, rule: &MemoryRule, block: &Block, kept: &Kept) -> Kind {
    let d = on.layout.degrees();
    // Tokens are dealt to chips by the page; what is left cuts an entry.
    let dealt = if matches!(block.mixer, Mixer::Attention(_) | Mixer::Latent(_)) { d.cp * d.dcp } else { d.cp };
    let shards = (cache_shards(&block.mixer, &d) / dealt) as f64;
    let entry = |mixer: &Mixer| kv::layer(mixer, on.kv).stored_per_token().get() / shards;
    match &block.mixer {
        Mixer::Attention(Attention { kv: KvSource::Shared, .. }) | Mixer::None | Mixer::Compressed(_) => {
            Kind::default()
        }
        Mixer::Attention(a) => {
            let span = match a.span {
                Span::Window(w) | Span::Chunk(w) => Some(w).filter(|_| rule.windows),
                _ => None,
            };
            let entry = match kept.halves {
                // Keys and values of a head take their parts of an entry.
                Some((keys, values)) => {
                    let of = |format| kv::layer(&block.mixer, format).stored_per_token().get() / shards;
                    (of(keys) * a.qk_dim as f64 + of(values) * a.v_dim as f64) / (a.qk_dim + a.v_dim) as f64
                }
                None => entry(&block.mixer),
            };
            Kind { entry, span, ..Kind::default() }
        }
        Mixer::Latent(a) if a.indexer.is_some() && on.kv.bits() < 12.0 => {
            // Sparse latent attention keeps 8-bit latents with a 32-bit scale for each 128, and 16-bit rotary keys.
            let plain = (a.kv_rank + a.rope_dim) as f64 * on.kv.width().get();
            let own = a.kv_rank as f64 + 4.0 * a.kv_rank.div_ceil(128) as f64 + 2.0 * a.rope_dim as f64;
            Kind { entry: entry(&block.mixer) + (own - plain) / shards, ..Kind::default() }
        }
        Mixer::Latent(_) => Kind { entry: entry(&block.mixer), ..Kind::default() },
        Mixer::Linear(linear) => {
            // vLLM keeps states in the model's 16 bits unless the model asks for more (pull request 34489, 2026-02); others in 32.
            let narrow = rule.way == Way::Share && matches!(linear, Linear::GatedDelta { wide: false, .. });
            let bytes = if narrow { 2 } else { 4 };
            Kind { state: kv::state_in(linear, kept.drafts, bytes) / shards, ..Kind::default() }
        }
    }
}
