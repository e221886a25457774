//! Many low-rank adapters beside one model: what they hold, what they add to a pass, and what one costs that is not there.
//!
//! $$ M = s \sum_t 2\,r\,\Big(\frac{i_t}{c_i} + \frac{o_t}{c_o}\Big) \qquad
//!    t(m, b) = n\,t_0 + \frac{D(b)\,a + m\,x}{\eta W} \qquad D(b) = \min\Big(s, \sum_{j=1}^{k} 1 - (1 - p_j)^b\Big) \qquad p_j \propto j^{-z} $$
//! $$ t_{load} = \frac{a}{W_h} + 2\,n_t\,t_c \qquad h = \sum_j p_j\,(1 - e^{-p_j T}), \quad \sum_j (1 - e^{-p_j T}) = s
//!    \qquad n_{run} = \min(n,\; T + (n - T)\,h) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | s, r | slots, rank | 1 | adapters a chip has room for, and the largest rank: slots are as large as that |
//! | i, o, c | d_in, d_out, shards | 1 | sides of a matrix with an adapter; of the factor that faces a cut side, a chip holds its share, of the other all |
//! | n, t_0 | launches, floor | 1, s | two kernels for each group of matrices that runs as one (shrink, expand) |
//! | k, p, z | served, popularity, skew | 1 | adapters that requests ask for, how often; z = 0 is evenly |
//! | D | distinct | 1 | adapters in a pass of b sequences |
//! | a | bytes of one | B | one adapter on this chip |
//! | m, x | rows, moved | 1, B | tokens of the pass; activations that both kernels read and write for a token |
//! | η, W | memory | 1, B/s | share of the bandwidth that these kernels reach |
//! | h, T | hit, filling | 1 | chance that an adapter is on the chip, which keeps those used last, and requests after which its places are full (Che's approximation) |
//! | n, n_run | in flight, running | 1 | requests of one server, and those of them that have a slot |
//! | W_h, t_c | host, copy | B/s, s | link to the host; each tensor is a copy |
//!
//! Experts have a pair each: of an adapter a pass reads those its tokens are routed to. Requests of one adapter that wait
//! together share its loading. Slots go to requests in order of arrival: until they are full everybody runs, from then on
//! whoever shares an adapter that has one, and the others wait ([`Adapters::running`]). No adapters, or rank 0, is the model
//! alone, exactly.
//!
//! Assumes: kernels run one after another with the products they belong to; loading stops the pass, as vLLM and SGLang
//! (without its overlapped loading) do. Ignores: adapters of a rank below the slots' (they are padded: vLLM's
//! documentation on LoRA says so), embeddings of their own. Source: slots stacked as `lora_a_stacked` and `lora_b_stacked`
//! in vllm-project/vllm `vllm/lora/layers` and as buffers in sgl-project/sglang `lora/mem_pool.py` (both read 2026-11); SGMV:
//! Chen 2023, Punica, arXiv 2310.18547; S-LoRA, arXiv 2311.03285; Che 2002; constants in `catalog/kernels/small`.

use crate::count::lora::{Pair, Targets, pairs};
use crate::count::{Cut, experts_run};
use crate::layout::stage_layers;
use rackmath_spec::AdapterKernels;
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::{Block, Ffn, Shape};
use rackmath_units::{ByteRate, Bytes, Seconds, float};

/// Bytes of a value of an adapter or an activation, and of what lies between the two kernels.
const WIDE: f64 = 2.0;
const BETWEEN: f64 = 4.0;

/// Adapters that a server is started with and asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adapters {
    pub slots: u64,
    pub rank: u64,
    pub targets: Targets,
    /// Whether both factors are cut by tensor parallelism, not one of them.
    pub sharded: bool,
    /// Adapters that requests ask for.
    pub served: u64,
    pub skew: f64,
    pub kernels: AdapterKernels,
    /// Seconds that loading adapters takes for each prompt token.
    pub stall: f64,
}

impl Adapters {
    pub fn is_none(&self) -> bool {
        self.slots == 0 || self.rank == 0
    }

    fn of_block(&self, shape: &Shape, block: &Block, d: &Degrees) -> f64 {
        let rank = self.rank as f64;
        let here = |p: &Pair| p.params_cut(rank, shards(p.cut, d), self.sharded) / experts_apart(p.cut, d);
        WIDE * pairs(shape, block, self.targets).iter().map(here).sum::<f64>()
    }

    /// Bytes of one adapter on the chip that holds most of it.
    pub fn one(&self, shape: &Shape, d: &Degrees) -> Bytes {
        let all: f64 = shape.runs.iter().map(|run| run.n as f64 * self.of_block(shape, &run.block, d)).sum();
        let most = stage_layers(shape.n_layers(), d.pp).into_iter().max().unwrap_or(0);
        Bytes::b(all * most as f64 / shape.n_layers().max(1) as f64)
    }

    /// Bytes of all slots on a chip.
    pub fn held(&self, shape: &Shape, d: &Degrees) -> Bytes {
        self.one(shape, d) * self.slots as f64
    }

    /// One adapter as it is stored, whole.
    pub fn stored(&self, shape: &Shape) -> Bytes {
        Bytes::b(WIDE * crate::count::lora::params(shape, self.targets, self.rank as f64))
    }

    /// Chances that a request asks for each adapter, most popular first.
    fn popularity(&self) -> impl Iterator<Item = f64> + Clone + use<> {
        let (n, z) = (self.served.max(1), self.skew);
        let weight = move |j: u64| if z == 0.0 { 1.0 } else { float::pow(j as f64, -z) };
        let sum: f64 = (1..=n).map(weight).sum();
        (1..=n).map(move |j| weight(j) / sum)
    }

    /// Adapters among so many sequences, on average.
    pub fn distinct(&self, sequences: f64) -> f64 {
        let (n, b) = (self.served.max(1) as f64, sequences.max(0.0));
        let all = if self.skew == 0.0 {
            n * (1.0 - float::pow(1.0 - 1.0 / n, b))
        } else {
            self.popularity().map(|p| 1.0 - float::pow(1.0 - p, b)).sum()
        };
        all.min(self.slots as f64).min(b.max(1.0))
    }

    /// Chance that a request's adapter is on a chip with this many places, of which those used last are kept.
    pub fn hit(&self, places: u64) -> f64 {
        if places >= self.served {
            return 1.0;
        }
        if places == 0 {
            return 0.0;
        }
        if self.skew == 0.0 {
            return places as f64 / self.served as f64;
        }
        let filling = self.filling(places);
        self.popularity().map(|p| p * (1.0 - float::exp(-p * filling))).sum()
    }

    /// Requests after which so many places, fewer than adapters, are full.
    fn filling(&self, places: u64) -> f64 {
        let n = self.served as f64;
        if self.skew == 0.0 {
            return -n * float::ln(1.0 - places as f64 / n);
        }
        let held = |t: f64| self.popularity().map(|p| 1.0 - float::exp(-p * t)).sum::<f64>();
        let (mut low, mut high) = (0.0, n);
        while held(high) < places as f64 && high < 1e15 {
            high *= 2.0;
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if held(middle) < places as f64 { low = middle } else { high = middle }
        }
        high
    }

    /// Of so many requests in flight at one server, those that run: who comes before the slots are full, and who shares theirs.
    pub fn running(&self, in_flight: f64) -> f64 {
        if self.slots >= self.served {
            return in_flight;
        }
        let first = self.filling(self.slots).min(in_flight);
        first + (in_flight - first) * self.hit(self.slots)
    }

    /// Loads for each request: misses, shared by those of one adapter that are in flight together.
    pub fn loads(&self, places: u64, concurrency: f64) -> f64 {
        let together = (concurrency / self.served.max(1) as f64).max(1.0);
        (1.0 - self.hit(places)) / together
    }

    /// Time to bring one adapter to a chip over a link.
    pub fn load(&self, shape: &Shape, d: &Degrees, rate: ByteRate) -> Seconds {
        let tensors: f64 = shape.runs.iter().map(|run| run.n as f64 * self.tensors(shape, &run.block)).sum();
        self.one(shape, d) / rate + self.kernels.copy * (tensors / d.pp as f64)
    }

    /// Tensors of an adapter in a block: two for each matrix; experts' are stacked.
    fn tensors(&self, shape: &Shape, block: &Block) -> f64 {
        pairs(shape, block, self.targets).iter().map(|p| 2.0 * p.slices).sum()
    }

    /// What the adapters add to passes of one layout.
    pub fn pass(&self, shape: &Shape, d: &Degrees, bandwidth: ByteRate, peak: f64) -> AdapterPass {
        let mut all = AdapterPass::default();
        if self.is_none() {
            return all;
        }
        let (rank, rate) = (self.rank as f64, bandwidth.get());
        for run in &shape.runs {
            let n = run.n as f64;
            for p in pairs(shape, &run.block, self.targets) {
                let cut = shards(p.cut, d);
                let bytes = WIDE * p.params_cut(rank, cut, self.sharded) / experts_apart(p.cut, d);
                let (down, up) = if p.by_rows { (p.d_in / cut, p.d_out) } else { (p.d_in, p.d_out / cut) };
                // The input is read once; what lies between is written and read; outputs are read and written.
                let moved = WIDE * down + 2.0 * BETWEEN * rank * p.slices + 2.0 * WIDE * up;
                let flop = 2.0 * rank * (p.slices * down + up);
                let rows = match &run.block.ffn {
                    Ffn::Moe(moe) if p.cut == Cut::Experts => experts_run(moe) / d.ep as f64,
                    _ => 1.0,
                };
                all.launches += n * 2.0;
                all.row_bytes += n * rows * moved;
                all.row_flop += n * rows * flop;
                match &run.block.ffn {
                    Ffn::Moe(moe) if p.cut == Cut::Experts => {
                        all.expert_bytes += n * bytes;
                        all.expert_share = experts_run(moe) / moe.experts as f64;
                        // Tokens are sorted by adapter and expert.
                        all.launches += n;
                    }
                    _ => all.bytes += n * bytes,
                }
            }
        }
        all.floor = all.launches * self.kernels.floor.get();
        all.per_byte = 1.0 / (self.kernels.memory.get() * rate);
        all.ideal_per_byte = 1.0 / rate;
        all.per_flop = 1.0 / peak;
        all.stall = self.stall;
        all
    }
}

/// What adapters add to a pass of one layout: straight lines in its rows and in the adapters it meets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AdapterPass {
    pub launches: f64,
    pub floor: f64,
    /// Bytes of one adapter's pairs that every one of its tokens reads, and of its experts'.
    bytes: f64,
    expert_bytes: f64,
    /// Share of the experts that a token goes to.
    expert_share: f64,
    row_bytes: f64,
    row_flop: f64,
    per_byte: f64,
    ideal_per_byte: f64,
    per_flop: f64,
    stall: f64,
}

impl AdapterPass {
    /// Seconds of launches, of memory and of loading, and the roofline's two sides, for so many rows of so many adapters.
    pub fn time(&self, rows: f64, adapters: f64, prompt_tokens: f64) -> AdapterTime {
        let each = rows / adapters.max(1.0);
        let touched = if self.expert_bytes > 0.0 { 1.0 - float::pow(1.0 - self.expert_share, each) } else { 0.0 };
        let bytes = adapters * (self.bytes + touched * self.expert_bytes) + rows * self.row_bytes;
        let compute = rows * self.row_flop * self.per_flop;
        AdapterTime {
            floor: self.floor,
            moved: (bytes * self.per_byte).max(compute),
            load: prompt_tokens * self.stall,
            compute,
            memory: bytes * self.ideal_per_byte,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AdapterTime {
    pub floor: f64,
    pub moved: f64,
    pub load: f64,
    pub compute: f64,
    pub memory: f64,
}

fn shards(cut: Cut, d: &Degrees) -> f64 {
    match cut {
        Cut::Whole => 1.0,
        // A query and its keys run as one; beyond the key-value heads keys are copied, which is little.
        Cut::Tensor | Cut::KvHeads(_) => d.tp as f64,
        Cut::Experts => d.etp as f64,
    }
}

fn experts_apart(cut: Cut, d: &Degrees) -> f64 {
    if cut == Cut::Experts { d.ep as f64 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some(served: u64, skew: f64, slots: u64) -> Adapters {
        let kernels = rackmath_catalog::embedded().small_kernels().unwrap().adapters;
        Adapters { slots, rank: 16, targets: Targets::All, sharded: false, served, skew, kernels, stall: 0.0 }
    }

    #[test]
    fn both_kernels_take_what_they_took_on_an_h200() {
        // Tokens, adapters, rank, sides, and microseconds of shrink and expand together, as `catalog/kernels/small` says.
        let kernels = some(1, 0.0, 1).kernels;
        for (m, n, r, i, o, us) in [
            (1.0, 1.0, 16.0, 4096.0, 6144.0, 5.24),
            (64.0, 16.0, 16.0, 4096.0, 28_672.0, 13.2),
            (64.0, 64.0, 16.0, 4096.0, 6144.0, 14.66),
            (256.0, 16.0, 64.0, 4096.0, 28_672.0, 31.4),
            (64.0, 64.0, 64.0, 14_336.0, 4096.0, 45.3),
            (2048.0, 8.0, 16.0, 4096.0, 4096.0, 19.7),
            (8192.0, 1.0, 16.0, 4096.0, 28_672.0, 291.6),
        ] {
            let pass = AdapterPass {
                floor: 2.0 * kernels.floor.get(),
                bytes: WIDE * r * (i + o),
                row_bytes: WIDE * i + 2.0 * BETWEEN * r + 2.0 * WIDE * o,
                per_byte: 1.0 / (kernels.memory.get() * 4.8e12),
                ..AdapterPass::default()
            };
            let t = pass.time(m, n, 0.0);
            let took = (t.floor + t.moved) * 1e6;
            assert!((took / us - 1.0).abs() < 0.2, "{m} tokens of {n} adapters: {took} us, not {us}");
        }
    }

    #[test]
    fn adapters_in_a_batch_by_hand() {
        // Two of equal popularity, three sequences: 2 (1 - 1/8).
        assert!((some(2, 0.0, 8).distinct(3.0) - 1.75).abs() < 1e-12);
        // Popularity 2/3 and 1/3: (1 - 1/27) + (1 - 8/27).
        assert!((some(2, 1.0, 8).distinct(3.0) - 45.0 / 27.0).abs() < 1e-12);
        assert_eq!((some(100, 0.0, 8).hit(8), some(8, 1.0, 8).hit(8), some(8, 1.0, 8).hit(0)), (0.08, 1.0, 0.0));
    }

    #[test]
    fn who_finds_the_slots_full_runs_only_with_those_who_have_one() {
        // Eight of a hundred: full after 100 ln(100 / 92) = 8.34 requests, of the others 8 in 100 share: 8.34 + 55.66 x 0.08.
        assert!((some(100, 0.0, 8).running(64.0) - 12.79).abs() < 0.01);
        // Eight requests ask for eight adapters at most: nobody waits.
        assert_eq!((some(100, 0.0, 8).running(8.0), some(8, 1.0, 8).running(64.0)), (8.0, 64.0));
    }

    #[test]
    fn slots_taken_in_order_of_arrival_run_what_drawing_them_says() {
        // Drawn a thousand times: the first adapters that differ take the slots, and who asks for one of them runs.
        for (served, skew, slots, n) in [(100, 0.0, 8, 64), (64, 0.0, 8, 64), (200, 0.0, 8, 64), (100, 1.0, 8, 64)] {
            let a = some(served, skew, slots);
            let chances: Vec<f64> = a.popularity().collect();
            let (mut seed, mut ran, draws) = (1u64, 0u64, 1000);
            for _ in 0..draws {
                let mut there: Vec<usize> = Vec::new();
                for _ in 0..n {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let mut left = (seed >> 11) as f64 / (1u64 << 53) as f64;
                    let mut j = 0;
                    while j + 1 < chances.len() && left >= chances[j] {
                        left -= chances[j];
                        j += 1;
                    }
                    if !there.contains(&j) && (there.len() as u64) < slots {
                        there.push(j);
                    }
                    ran += u64::from(there.contains(&j));
                }
            }
            let (mean, said) = (ran as f64 / f64::from(draws), a.running(f64::from(n)));
            assert!((said / mean - 1.0).abs() < 0.05, "{served} adapters, skew {skew}: {said}, drawn {mean}");
        }
    }

    proptest! {
        #[test]
        fn a_batch_meets_no_more_adapters_than_there_are(
            served in 1u64..300, skew in 0.0f64..3.0, slots in 1u64..64, b in 1.0f64..500.0
        ) {
            let a = some(served, skew, slots);
            let d = a.distinct(b);
            prop_assert!(d >= 1.0 - 1e-9 && d <= b + 1e-9 && d <= slots as f64 && d <= served as f64 + 1e-9);
            prop_assert!(a.distinct(b + 1.0) >= d - 1e-9 && some(served, 0.0, slots).distinct(b) >= d - 1e-9);
            let (hit, more) = (a.hit(slots), a.hit(slots + 1));
            prop_assert!((0.0..=1.0).contains(&hit) && more >= hit - 1e-9);
            prop_assert!(hit >= some(served, 0.0, slots).hit(slots) - 1e-6);
            // As many run as there are slots, or as there are requests.
            let run = a.running(b);
            prop_assert!(run >= b.min(slots as f64) - 1e-6 && run <= b + 1e-9 && a.running(b + 1.0) >= run - 1e-9);
        }
    }
}
