//! Files of llama.cpp of models whose rows are no whole number of blocks: there a wider type stands in, whose blocks are shorter.
//!
//! $$ b = \frac{\sum_t n_t\,b(\tau_t)}{\sum_t n_t} \qquad \tau_t = \begin{cases} \text{chosen} & v \mid r_t \\ \text{fallback} & \text{otherwise} \end{cases} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | n, r | values, row | 1 | values of a tensor, and those of a row, which is what the matrix is multiplied by |
//! | τ, v | [`TensorType`] | - | the type of a tensor, and values of a block of it |
//! | b | [`Mix::bits`] | bit | mean width of the tensors of a part of the model |
//!
//! K-quants have blocks of 256 values. Qwen2.5 72B has down projections of rows of 29,568 = 115.5 x 256, which its Q4_K_M keeps in
//! Q5_0 and Q8_0 instead of `Q4_K` and `Q6_K`: 47.4 GB instead of 43.9.
//!
//! Source: llama.cpp `src/llama-quant.cpp` (`tensor_type_fallback`, `llama_tensor_get_type_impl`; github.com/ggml-org/llama.cpp), read
//! 2026-11. Ignores: what mixes do with single tensors of models of 8 experts and of Falcon, and, for names with IQ, with single
//! tensors at all; the shapes of mixers other than attention, of which every row is taken to be as long as the hidden vector.

use crate::ggml::TensorType;
use crate::gguf::Mix;
use crate::model::{Attention, Ffn, Formats, Mixer, Mlp, Moe, Shape};
use crate::{Dtype, Gguf};

/// Values of a block of the wide types.
const WIDE: u64 = 256;
/// Query heads to a cached one from which values are kept wider.
const GROUPED: u64 = 4;
/// Layers of the models that llama.cpp calls 70B: their values are kept wider again.
const LAYERS_OF_70B: u64 = 80;

/// What mixes tell apart in a layer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Value,
    Out,
    Down,
    Rest,
}

/// Where a tensor stands.
#[derive(Clone, Copy)]
struct Place {
    part: Part,
    layer: u64,
    layers: u64,
    grouped: bool,
}

/// The type of most tensors of a mix whose blocks are wide.
fn base(mix: Gguf) -> Option<&'static str> {
    Some(match mix {
        Gguf::Q6K => "Q6_K",
        Gguf::Q5K | Gguf::Q5KM | Gguf::Q5KS => "Q5_K",
        Gguf::Q4K | Gguf::Q4KM | Gguf::Q4KS => "Q4_K",
        Gguf::Q3KL | Gguf::Q3KM | Gguf::Q3KS => "Q3_K",
        Gguf::Q2K | Gguf::Q2KS => "Q2_K",
        Gguf::Iq4Xs => "IQ4_XS",
        Gguf::Iq3M | Gguf::Iq3S | Gguf::Iq3Xs => "IQ3_S",
        Gguf::Iq3Xxs => "IQ3_XXS",
        Gguf::Iq2M => "IQ2_S",
        Gguf::Iq2S | Gguf::Iq2Xs => "IQ2_XS",
        Gguf::Iq2Xxs => "IQ2_XXS",
        Gguf::Iq1M => "IQ1_M",
        Gguf::Iq1S => "IQ1_S",
        Gguf::Tq2_0 => "TQ2_0",
        Gguf::Tq1_0 => "TQ1_0",
        _ => return None,
    })
}

/// The type that a mix wants for a tensor, whatever its rows.
fn chosen(mix: Gguf, base: &'static str, at: Place) -> &'static str {
    let Place { part, layer, layers, grouped } = at;
    // An eighth at either end, and every third between.
    let more = layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
    let wanted = match (mix, part) {
        (Gguf::Q2K | Gguf::Q2KS, Part::Value) if grouped => "Q4_K",
        (Gguf::Q2K, Part::Value | Part::Out | Part::Down) => "Q3_K",
        (Gguf::Q2KS, Part::Down) if layer < layers / 8 => "Q4_K",
        (Gguf::Q3KM, Part::Value) if layer < 2 => "Q5_K",
        (Gguf::Q3KM, Part::Down) if layer < layers / 16 => "Q5_K",
        (Gguf::Q3KM, Part::Value | Part::Out | Part::Down) => "Q4_K",
        (Gguf::Q3KL, Part::Value | Part::Out | Part::Down) => "Q5_K",
        (Gguf::Q4KS, Part::Value) if layer < 4 => "Q5_K",
        (Gguf::Q4KS, Part::Down) if layer < layers / 8 => "Q5_K",
        (Gguf::Q4KM | Gguf::Q5KM, Part::Value | Part::Down) if more => "Q6_K",
        _ => base,
    };
    let large = part == Part::Value && layers == LAYERS_OF_70B && grouped;
    if large && ["Q3_K", "Q4_K"].contains(&wanted) { "Q5_K" } else { wanted }
}

/// Values and the bits they take.
#[derive(Clone, Copy, Default)]
struct Sum {
    values: f64,
    bits: f64,
}

impl Sum {
    fn add(&mut self, wanted: &str, row: u64, values: f64) {
        let Some(wanted) = TensorType::named(wanted) else { return };
        let kind = if row.is_multiple_of(wanted.values) { wanted } else { wanted.fallback(row) };
        self.values += values;
        self.bits += values * (8 * kind.bytes) as f64 / kind.values as f64;
    }

    fn format(self, like: Gguf) -> Dtype {
        if self.values > 0.0 { Dtype::Mixed(Mix::new(like, self.bits / self.values)) } else { Dtype::Gguf(like) }
    }
}

/// The widths of a file's parts, as one after another of its tensors is looked at.
struct File {
    mix: Gguf,
    base: &'static str,
    hidden: u64,
    routed: Sum,
    linear: Sum,
    mixer: Sum,
}

impl File {
    fn attention(&mut self, a: &Attention, at: impl Fn(Part) -> Place) {
        let (h, query, out) = (self.hidden, a.heads * a.qk_dim, a.heads * a.v_dim);
        for (part, row, across) in [
            (Part::Rest, h, query + a.kv_heads * a.qk_dim),
            (Part::Value, h, a.kv_heads * a.v_dim),
            (Part::Out, out, h),
        ] {
            self.mixer.add(chosen(self.mix, self.base, at(part)), row, (row * across) as f64);
        }
    }

    /// Gate, up and down of a network that so many of stand side by side.
    fn network(&self, sum: &mut Sum, mlp: Mlp, from: u64, n: u64, at: impl Fn(Part) -> Place) {
        let one = (n * from * mlp.width) as f64;
        let up = if mlp.gated { 2.0 } else { 1.0 };
        sum.add(chosen(self.mix, self.base, at(Part::Rest)), from, one * up);
        sum.add(chosen(self.mix, self.base, at(Part::Down)), mlp.width, one);
    }

    fn experts(&mut self, moe: &Moe, at: impl Fn(Part) -> Place) {
        let (mut routed, mut linear) = (self.routed, self.linear);
        let from = moe.latent.map_or(self.hidden, |latent| latent.width);
        self.network(&mut routed, moe.expert, from, moe.experts, &at);
        if let Some(shared) = moe.shared {
            self.network(&mut linear, shared, self.hidden, 1, &at);
        }
        (self.routed, self.linear) = (routed, linear);
    }
}

/// Whether every row of a model is a whole number of wide blocks.
fn whole(shape: &Shape) -> bool {
    let fits = |n: u64| n.is_multiple_of(WIDE);
    let mixes = |mixer: &Mixer| match mixer {
        Mixer::Attention(a) => fits(a.heads * a.v_dim),
        _ => true,
    };
    let transforms = |ffn: &Ffn| match ffn {
        Ffn::None => true,
        Ffn::Dense(mlp) => fits(mlp.width),
        Ffn::Moe(moe) => fits(moe.expert.width) && moe.shared.is_none_or(|shared| fits(shared.width)),
    };
    fits(shape.hidden) && shape.runs.iter().all(|run| mixes(&run.block.mixer) && transforms(&run.block.ffn))
}

/// The formats of a file of this name where some of its tensors fall back; none where no row asks for it.
pub(crate) fn formats(shape: &Shape, mix: Gguf) -> Option<Formats> {
    let base = base(mix)?;
    if whole(shape) {
        return None;
    }
    let empty = Sum::default();
    let mut file = File { mix, base, hidden: shape.hidden, routed: empty, linear: empty, mixer: empty };
    let layers = shape.runs.iter().map(|run| run.n).sum();
    let blocks = shape.runs.iter().flat_map(|run| (0..run.n).map(move |_| &run.block));
    for (layer, block) in (0..).zip(blocks) {
        let grouped =
            if let Mixer::Attention(a) = &block.mixer { a.heads >= GROUPED * a.kv_heads.max(1) } else { false };
        let at = |part| Place { part, layer, layers, grouped };
        match &block.mixer {
            Mixer::Attention(a) => file.attention(a, at),
            Mixer::None => {}
            // As many as of attention, near enough: none of them is told apart.
            _ => file.mixer.add(base, shape.hidden, 4.0 * (shape.hidden * shape.hidden) as f64),
        }
        match &block.ffn {
            Ffn::None => {}
            Ffn::Dense(mlp) => {
                let mut linear = file.linear;
                file.network(&mut linear, *mlp, shape.hidden, 1, at);
                file.linear = linear;
            }
            Ffn::Moe(moe) => file.experts(moe, at),
        }
    }
    let linear = if file.linear.values > 0.0 { file.linear } else { file.routed };
    let routed = if file.routed.values > 0.0 { file.routed } else { linear };
    let other = other(shape, mix, base).format(mix);
    Some(Formats { routed: routed.format(mix), linear: linear.format(mix), mixer: file.mixer.format(mix), other })
}

/// Embedding and head. A head is wider than the rest, and so is a table that is both.
fn other(shape: &Shape, mix: Gguf, base: &'static str) -> Sum {
    let narrow = base.starts_with("IQ1") || base.starts_with("IQ2") || mix == Gguf::Iq3Xxs;
    let head = if narrow { "Q5_K" } else { "Q6_K" };
    let (mut sum, table) = (Sum::default(), (shape.hidden * shape.vocab) as f64);
    if !shape.tied {
        sum.add(base, shape.hidden, table);
    }
    if !shape.headless {
        // Whatever the width, a head that falls back does so to 8 bits.
        let head = if shape.hidden.is_multiple_of(WIDE) { head } else { "Q8_0" };
        sum.add(head, shape.hidden, table);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dense model of `layers` alike, with heads of 128 (64 for the smallest).
    fn dense(hidden: u64, width: u64, layers: u64, heads: [u64; 2], dim: u64, vocab: u64, tied: bool) -> Shape {
        let attention =
            Attention { heads: heads[0], kv_heads: heads[1], qk_dim: dim, v_dim: dim, ..Attention::default() };
        let ffn = Ffn::Dense(Mlp { width, gated: true, bias: false });
        let block = crate::model::Block { mixer: Mixer::Attention(attention), ffn, norms: 2, side: Vec::new() };
        let runs = vec![crate::model::Run { n: layers, block }];
        Shape { hidden, vocab, tied, runs, ..Shape::default() }
    }

    fn gigabytes(shape: &Shape, mix: Gguf) -> f64 {
        let f = formats(shape, mix).expect("rows that are no whole number of blocks");
        let Mixer::Attention(a) = &shape.runs[0].block.mixer else { panic!() };
        let Ffn::Dense(mlp) = shape.runs[0].block.ffn else { panic!() };
        let layers = shape.runs[0].n as f64;
        let mixer = shape.hidden * a.qk_dim * 2 * (a.heads + a.kv_heads);
        let tables = shape.hidden * shape.vocab * if shape.tied { 1 } else { 2 };
        let bits = layers * (mixer as f64 * f.mixer.bits() + (3 * shape.hidden * mlp.width) as f64 * f.linear.bits());
        (bits + tables as f64 * f.other.bits()) / 8e9
    }

    /// Qwen2.5-72B-Instruct-Q4_K_M.gguf of bartowski has 47,415,707,136 bytes, as its repository on Hugging Face states, 6 MB of them
    /// vocabulary.
    #[test]
    fn a_file_whose_down_projections_fall_back_has_its_published_size() {
        let shape = dense(8192, 29_568, 80, [64, 8], 128, 152_064, false);
        let size = gigabytes(&shape, Gguf::Q4KM);
        assert!((47.35..47.42).contains(&size), "{size}");
        // Of 5.5 and 8.5 bits half each; gate and up stay as they are.
        let f = formats(&shape, Gguf::Q4KM).unwrap();
        assert!((f.linear.bits() - (2.0 * 4.5 + 7.0) / 3.0).abs() < 1e-3, "{}", f.linear.bits());
    }

    #[test]
    fn rows_of_whole_blocks_are_left_alone() {
        let shape = dense(8192, 28_672, 80, [64, 8], 128, 128_256, false);
        assert!(Gguf::all().all(|mix| formats(&shape, mix).is_none()));
        // Blocks of 32 divide every row.
        let shape = dense(896, 4864, 24, [14, 2], 64, 151_936, true);
        assert!(
            [Gguf::Q8_0, Gguf::Q4_0, Gguf::Iq4Nl, Gguf::Mlx4].into_iter().all(|mix| formats(&shape, mix).is_none())
        );
    }

    #[test]
    fn what_stands_in_is_never_narrower() {
        let shape = dense(896, 4864, 24, [14, 2], 64, 151_936, true);
        for mix in Gguf::all() {
            let Some(f) = formats(&shape, mix) else { continue };
            let least = TensorType::named(base(mix).unwrap()).unwrap();
            let least = (8 * least.bytes) as f64 / least.values as f64;
            assert!([f.linear, f.mixer, f.other].iter().all(|d| d.bits() >= least), "{mix:?}");
        }
    }
}
