//! Chapter 7: ciphers and reversible networks (D54 to D57).

use super::{Claim, claim};
use rackmath_reversible::avalanche::Mixer;
use rackmath_reversible::drift::Stack;
use rackmath_reversible::step::{Keep, Stored, step};
use rackmath_reversible::{Config, Weights, feistel};
use rackmath_units::{Bytes, significant};

const SEED: u64 = 1;

#[rustfmt::skip] // a table
pub(super) fn claims() -> Vec<Claim> {
    let mixed = |mixer: Mixer, rounds: usize| {
        format!("{} % of the output", significant(mixer.spread(rounds, SEED)[rounds] * 100.0, 3))
    };
    let square = |_: usize, x: u32| x.wrapping_mul(x);
    let there = feistel::forward(7, 5, 16, square);
    let back = feistel::back(there.0, there.1, 16, square);
    let stack = Stack::new(128, 64, SEED);
    let off = |stored| format!("{:.0e} off", stack.error(stored, SEED + 1));
    let fixed = if stack.error(Stored::Fixed, SEED + 1) == 0.0 { "exact" } else { "not exact" };
    let of = |depth: usize, keep| {
        let c = Config::small(depth);
        step(&c, &Weights::new(&c, SEED), keep, Stored::F32, SEED + 1)
    };
    let peaks = |keep| {
        let bytes = |depth| Bytes::b(of(depth, keep).peak_bytes as f64);
        format!("{} at 4 blocks, {} at 16", bytes(4), bytes(16))
    };
    let block = |keep| (of(3, keep).flop - of(2, keep).flop) as f64;
    let extra = block(Keep::Nothing) / block(Keep::Everything) - 1.0;
    vec![
        claim("D54", "Convergent design", "flip one bit of the input; share of the output that changes",
            "ciphers want the avalanche, networks must not have it")
            .number("Feistel network, 3 rounds", "small differences become large", mixed(Mixer::Feistel, 3),
                "half is perfect")
            .number("random network of signs, 16 layers", "\"passable mixer\"", mixed(Mixer::Signs, 16), "it is")
            .number("residual network with norms, 16 layers", "derivatives kept tame", mixed(Mixer::Residual, 16),
                "residuals and norms are what stops the avalanche"),
        claim("D55", "Feistel step", "(x, y) -> (y + f(x), x); back: y = z - f(x)",
            "an invertible layer from any function")
            .number("f(x) = x^2 mod 2^32, (7, 5), 16 rounds and back", "identity", format!("{there:?}, then {back:?}"),
                "bit for bit; squaring alone has no inverse"),
        claim("D56", "RevNet layer", "x' = y + f(x), y' = x",
            "the stack is invertible end to end, if the arithmetic is")
            .number("64 layers back in f32", "invertible", off(Stored::F32), "a few last digits")
            .own("the same in bf16", off(Stored::Bf16), "not invertible in practice")
            .own("the same in fixed point", fixed, "as ciphers do it"),
        claim("D57", "Activation memory", "kept: L layers, or 2 streams and one layer",
            "compute for memory, the reverse of the KV cache")
            .number("small transformer, ordinary", "linear in layers", peaks(Keep::Everything), "measured")
            .number("the same, reversible", "flat", peaks(Keep::Nothing), "measured")
            .number("what it costs", "compute", format!("{:+.1} % FLOP", extra * 100.0),
                "4 forwards instead of 3; full recompute costs the same, so what is saved beyond it \
                 is the layer inputs"),
    ]
}
