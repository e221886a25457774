//! What activations a training step keeps, and what it pays for not keeping them.
//!
//! $$ A_{all} = 34\, s b h\, L \qquad A_{inputs} = 2\, s b h\, L + A_1 \qquad A_{spaced} = \min_k\ 2\, s b h\, L/k + k A_1
//!    \qquad A_{rev} = 4\, s b h + A_1 $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | s, b, h, L | tokens, hidden, layers | 1 | sequence x batch, width, layers |
//! | A_1 | - | B | one layer in full, 34 s b h bytes |
//!
//! 34 bytes per token and width is one layer in 16-bit formats with attention that does not store its scores; 2 is its input
//! alone. A reversible network keeps two streams of 2 bytes each, and one layer while it is walked back. In units of one
//! forward, ordinary training costs 3 (backward is two), and everything that recomputes a forward costs 4: a third more. So
//! reversible blocks save the layer inputs that full recompute keeps, and nothing else.
//! Ignores: embeddings, logits, the norm's statistics. Sources: Korthikanti et al. 2022 (arXiv 2205.05198); Gomez et al.
//! 2017; lecture D57.

use rackmath_units::Bytes;
use strum::Display;

/// Values of 2 bytes that a layer keeps for each token and width: 34 bytes.
pub const VALUES: f64 = 17.0;

/// What is kept between forward and backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display)]
pub enum Keep {
    #[strum(to_string = "ordinary")]
    Everything,
    #[strum(to_string = "full recompute")]
    Inputs,
    /// The inputs of every k-th layer, the k layers between recomputed together; the best k.
    #[strum(to_string = "spaced recompute")]
    Spaced,
    /// Nothing but the output: layers are inverted.
    #[strum(to_string = "reversible")]
    Reversible,
}

impl Keep {
    pub const ALL: [Self; 4] = [Self::Everything, Self::Inputs, Self::Spaced, Self::Reversible];

    /// Cost of a step in forwards: backward is two, recomputing is one.
    pub fn forwards(self) -> f64 {
        if self == Self::Everything { 3.0 } else { 4.0 }
    }

    /// Bytes of activations at the peak: `tokens` in flight (sequence times batch).
    pub fn activations(self, layers: f64, tokens: f64, hidden: f64) -> Bytes {
        self.activations_of(VALUES, (layers, tokens, hidden))
    }

    /// The same where a layer keeps so many values of 2 bytes for each token and width.
    pub fn activations_of(self, values: f64, (layers, tokens, hidden): (f64, f64, f64)) -> Bytes {
        let element = tokens * hidden;
        let (layer, input) = (2.0 * values * element, 2.0 * element);
        let spaced = |k: f64| input * (layers / k).ceil() + layer * k;
        Bytes::b(match self {
            Self::Everything => layer * layers,
            Self::Inputs => input * layers + layer,
            // 2 L/k + 34 k is least near the root of 2 L / 34, far below the layers there are; near that of L with one value.
            Self::Spaced => (1..=layers.sqrt().ceil() as u64).map(|k| spaced(k as f64)).fold(f64::INFINITY, f64::min),
            Self::Reversible => 2.0 * input + layer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;

    #[test]
    fn eighty_layers_of_eight_thousand() {
        // 8,192 tokens x width 8,192 = 67.1 M; 34 bytes x 80 layers = 182.5 GB, 2 x 80 + 34 = 13.0 GB, 2 x 2 + 34 = 2.55 GB.
        let gb = |keep: Keep| keep.activations(80.0, 8192.0, 8192.0).as_gb();
        for (keep, expected) in [(Keep::Everything, 182.5), (Keep::Inputs, 13.02), (Keep::Reversible, 2.55)] {
            close(gb(keep), expected, 2e-3);
        }
        // Every second input: 2 x 40 + 34 x 2 = 148 bytes.
        close(gb(Keep::Spaced), 148.0 * 67.108_864e-3, 1e-3);
        // Eight values instead of 17: 16 bytes x 80 layers.
        close(Keep::Everything.activations_of(8.0, (80.0, 8192.0, 8192.0)).as_gb(), 16.0 * 80.0 * 67.108_864e-3, 1e-9);
        // Only reversible is flat in depth.
        let grows = |keep: Keep| keep.activations(1000.0, 1.0, 1.0) > keep.activations(10.0, 1.0, 1.0);
        assert!(!grows(Keep::Reversible) && grows(Keep::Inputs));
    }
}
