//! A Feistel network on integers: invertible for any round function whatever.
//!
//! $$ (x, y) \to (y + f_k(x),\ x) \pmod{2^{32}} $$
//!
//! Ciphers use XOR where this adds; both have exact inverses. This is an illustration, not a cipher to trust: almost every
//! invented one is broken. Source: lecture D54, D55, G82.

pub fn forward(mut x: u32, mut y: u32, rounds: usize, f: impl Fn(usize, u32) -> u32) -> (u32, u32) {
    for round in 0..rounds {
        (x, y) = (y.wrapping_add(f(round, x)), x);
    }
    (x, y)
}

/// And back: the second half was the input of the function.
pub fn back(mut x: u32, mut y: u32, rounds: usize, f: impl Fn(usize, u32) -> u32) -> (u32, u32) {
    for round in (0..rounds).rev() {
        (x, y) = (y, x.wrapping_sub(f(round, y)));
    }
    (x, y)
}

/// A round function that mixes well: multiply, fold, multiply (after MurmurHash3's finaliser), with the round as key.
pub fn mixing(round: usize, x: u32) -> u32 {
    let mut z = x ^ (round as u32 + 1).wrapping_mul(0x9e37_79b9);
    z = (z ^ (z >> 16)).wrapping_mul(0x85eb_ca6b);
    z = (z ^ (z >> 13)).wrapping_mul(0xc2b2_ae35);
    z ^ (z >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn g82_squares_come_back() {
        let f = |_: usize, x: u32| x.wrapping_mul(x);
        let (x, y) = forward(7, 5, 16, f);
        assert_ne!((x, y), (7, 5));
        assert_eq!(back(x, y, 16, f), (7, 5));
        // One round by hand: 5 + 49 = 54.
        assert_eq!(forward(7, 5, 1, f), (54, 7));
    }

    proptest! {
        #[test]
        fn any_function_comes_back(x: u32, y: u32, rounds in 0usize..40, a: u32, b: u32) {
            let f = |round: usize, x: u32| (x ^ a).wrapping_mul(b).rotate_left(round as u32) & (x >> 3);
            let (u, v) = forward(x, y, rounds, f);
            prop_assert_eq!(back(u, v, rounds, f), (x, y));
        }
    }
}
