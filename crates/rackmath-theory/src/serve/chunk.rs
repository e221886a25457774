//! The chunk law: how a prompt is spread over passes that hold only so many of its tokens.
//!
//! $$ k = \max(1, N / R) \qquad s = N / k \qquad b = \frac{N}{2}\,\frac{k - 1}{k} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | N, R | new, room | tokens | tokens to compute, tokens of it a pass holds |
//! | k | passes | 1 | passes it takes; rounded up where the rest of the last one stays empty |
//! | s | tokens | tokens | its tokens in each of them |
//! | b | before | tokens | its own tokens already computed, on average: later chunks see the earlier ones |
//!
//! Source: ours; chunked prefill of vLLM and SGLang.

/// What happens to the rest of a prompt's last chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The next prompt fills it.
    Shared,
    /// It stays empty: the prompt is alone.
    Empty,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chunks {
    pub passes: f64,
    pub tokens: f64,
    pub before: f64,
}

impl Chunks {
    pub fn of(new: f64, room: f64, rest: Rest) -> Self {
        let wanted = new / room;
        let passes = if rest == Rest::Empty { wanted.ceil() } else { wanted }.max(1.0);
        let before = if passes > 1.0 { new * (passes - 1.0) / (2.0 * passes) } else { 0.0 };
        Self { passes, tokens: new / passes, before }
    }

    pub fn several(&self) -> bool {
        self.passes > 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ten_thousand_tokens_by_hand() {
        // 8,192 and the rest, shared; or two passes of 5,000 of which the second sees 5,000, alone.
        let (shared, alone) = (Chunks::of(1e4, 8192.0, Rest::Shared), Chunks::of(1e4, 8192.0, Rest::Empty));
        assert_eq!((shared.passes, shared.tokens), (1e4 / 8192.0, 8192.0));
        assert_eq!(alone, Chunks { passes: 2.0, tokens: 5000.0, before: 2500.0 });
    }

    proptest! {
        #[test]
        fn tokens_and_the_pairs_they_form_are_conserved(new in 1.0f64..1e6, room in 64.0f64..1e5) {
            for rest in [Rest::Shared, Rest::Empty] {
                let c = Chunks::of(new, room, rest);
                prop_assert!((c.passes * c.tokens / new - 1.0).abs() < 1e-12 && c.tokens <= room.max(new) * (1.0 + 1e-12));
                // Every token sees half of the prompt on average, however it is cut.
                let pairs = c.passes * c.tokens * (c.before + c.tokens / 2.0);
                prop_assert!((pairs / (new * new / 2.0) - 1.0).abs() < 1e-9);
            }
            prop_assert!(Chunks::of(new, room, Rest::Empty).passes >= Chunks::of(new, room, Rest::Shared).passes);
        }
    }
}
