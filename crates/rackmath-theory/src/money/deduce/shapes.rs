//! Architectures that give a cache size.
//!
//! $$ kv = \frac{l \cdot 2\,h\,d\,b}{s} \qquad kv_{latent} = \frac{l\,(512 + 64)\,b}{s} $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | l | layers | layers with a cache of their own |
//! | h, d | heads, head_dim | KV heads and their width; the 2 is for keys and values |
//! | b | bytes | bytes of an element |
//! | s | sparsity | compression, or layers that share or window their cache |
//!
//! Source: lecture D46, D47 and 1c.9; the latent of 512 + 64 is DeepSeek V3's.

use crate::crossover::kv_of_shape;

/// Layers models are built with, and one for a cache shared by all.
const LAYERS: [u32; 16] = [1, 4, 8, 12, 16, 24, 28, 32, 36, 48, 61, 64, 78, 80, 94, 126];
const HEADS: [u32; 5] = [1, 2, 4, 8, 16];
const HEAD_DIMS: [u32; 3] = [64, 128, 256];
const LATENT: u32 = 576;
const BYTES: [f64; 3] = [2.0, 1.0, 0.5];
const SPARSITIES: [u32; 5] = [1, 2, 4, 8, 16];

/// One way to store a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KvShape {
    pub layers: u32,
    /// KV heads; `None` is a latent shared by all heads.
    pub heads: Option<u32>,
    pub head_dim: u32,
    pub bytes: f64,
    pub sparsity: u32,
}

impl KvShape {
    /// D46: bytes per token.
    pub fn kv(&self) -> f64 {
        // A latent is key and value at once: half a head.
        let heads = self.heads.map_or(0.5, f64::from);
        kv_of_shape(f64::from(self.layers), heads, f64::from(self.head_dim), self.bytes).get()
            / f64::from(self.sparsity)
    }
}

/// Every shape within a relative tolerance of a cache size, plainest and nearest first.
pub fn shapes(kv: f64, tolerance: f64) -> Vec<KvShape> {
    let mut found = Vec::new();
    for layers in LAYERS {
        for bytes in BYTES {
            for sparsity in SPARSITIES {
                let mut consider = |heads, head_dim| {
                    let shape = KvShape { layers, heads, head_dim, bytes, sparsity };
                    if (shape.kv() / kv - 1.0).abs() <= tolerance {
                        found.push(shape);
                    }
                };
                consider(None, LATENT);
                for heads in HEADS {
                    for head_dim in HEAD_DIMS {
                        consider(Some(heads), head_dim);
                    }
                }
            }
        }
    }
    // Unusual parts count against a shape: compression, few layers, odd heads.
    let oddity = |s: &KvShape| {
        let plain = u32::from(s.sparsity > 1) * 2 + u32::from(s.layers < 24) * 2 + u32::from(s.bytes < 1.0);
        plain
            + u32::from(s.head_dim == 256 || s.head_dim == 64)
            + u32::from(s.heads.is_some_and(|h| !(4..=8).contains(&h)))
    };
    found.sort_by(|a, b| {
        let off = |s: &KvShape| (s.kv() / kv - 1.0).abs();
        oddity(a).cmp(&oddity(b)).then(off(a).total_cmp(&off(b)))
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decoder_finds_real_models() {
        let shape = |layers, heads, head_dim, bytes| KvShape { layers, heads, head_dim, bytes, sparsity: 1 };
        assert!(shapes(35_136.0, 0.001).contains(&shape(61, None, 576, 1.0)));
        assert_eq!(shapes(327_680.0, 0.01)[0], shape(80, Some(8), 128, 2.0));
        assert!(shapes(2_048.0, 0.001).contains(&shape(1, Some(8), 128, 1.0)));
        assert!(shapes(1e9, 0.01).is_empty());
        assert!(shapes(20e3, 0.05).iter().all(|s| (s.kv() / 20e3 - 1.0).abs() <= 0.05));
    }
}
