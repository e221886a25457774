//! How a pass is launched: as one captured graph, piece by piece, or kernel by kernel.
//!
//! $$ t_{launch} = \begin{cases} 0 & r \le g,\ \text{no prompts} \\ l\,t_p & r \le g,\ \text{prompts in pieces} \\ l\,t_k + l_e\,t_e + l_m\,t_m & r > g \end{cases}
//!    \qquad \hat r = \min\{c : c \ge r\} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | r, \hat r | rows | 1 | tokens of the pass; the captured size c it is padded to |
//! | g | most | 1 | the largest captured size |
//! | l, l_e, l_m | layers, experts, latent | 1 | layers of the model, those of them with experts that are more than one call, those with latent attention |
//! | t_p, t_k, t_e, t_m | piece, each, expert, latent | s | host time for a layer replayed in pieces, launched kernel by kernel, and for its experts and its latent attention beyond that |
//!
//! The host runs ahead of the chips, so that the longer of its time and theirs counts ([`super::Pass`]). A graph that holds the
//! whole pass is one launch, which the time to prepare a pass covers. A launch kernel by kernel is longer or shorter from pass
//! to pass, evenly within a share of itself. Assumes: a layer is launched in the same time whatever it holds. Ignores: padding of passes in which each sequence checks drafts, captured by sequences.
//! Source: vLLM, design document on CUDA graphs (modes FULL_AND_PIECEWISE and PIECEWISE); times in `catalog/engines`.

use rackmath_spec::engine::{Overhead, Replay, Schedule};
use rackmath_units::Seconds;

/// Layers whose kernels the host launches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Launches {
    pub(super) layers: u64,
    pub(super) experts: u64,
    /// What experts of one of them take.
    pub(super) expert: Seconds,
    pub(super) latent: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Replays {
    most: f64,
    steps: Vec<(f64, f64)>,
    /// Seconds of a pass with prompts up to the largest size, and of any larger pass.
    pieces: f64,
    each: f64,
    spread: f64,
    latent: bool,
    /// Whether passes with prompts are replayed.
    prompts: bool,
}

impl Replays {
    pub(super) fn of(s: &Schedule, o: &Overhead, l: Launches) -> Self {
        let (layers, experts, latent) = (l.layers as f64, l.experts as f64, l.latent as f64);
        let pieces = match s.graph_prompts {
            Replay::Whole | Replay::Never => 0.0,
            Replay::Pieces => layers * o.launch_piece.get(),
        };
        // What is launched in pieces is launched no slower than one by one.
        let each = layers * o.launch.get() + experts * l.expert.get() + latent * o.launch_latent.get();
        Self {
            most: s.graph,
            steps: s.graph_steps.clone(),
            pieces,
            each: each.max(pieces),
            spread: o.launch_spread,
            latent: l.latent > 0,
            prompts: s.graph_prompts != Replay::Never,
        }
    }

    /// Whether attention is latent in any layer.
    pub(super) fn latent(&self) -> bool {
        self.latent
    }

    pub(super) fn most(&self) -> f64 {
        self.most
    }

    /// Rows are whole in a pass; a mean between two whole numbers is padded as often to the size of either as it lies near it.
    pub(super) fn padded(&self, rows: f64) -> f64 {
        let (below, above) = (rows.floor(), rows.ceil());
        if below < above && below > 0.0 {
            self.size(below) * (above - rows) + self.size(above) * (rows - below)
        } else {
            self.size(above)
        }
    }

    fn size(&self, rows: f64) -> f64 {
        let Some((first, _)) = self.steps.first().filter(|_| rows <= self.most) else { return rows };
        if rows < *first {
            let mut size = 1.0;
            while size < rows {
                size *= 2.0;
            }
            return size.min(*first);
        }
        let next = |(step, most): &(f64, f64)| Some((rows / step).ceil() * step).filter(|size| size <= most);
        self.steps.iter().find_map(next).unwrap_or(rows)
    }

    pub(super) fn captured(&self, rows: f64) -> bool {
        rows <= self.most
    }

    /// Seconds, and how many more or fewer from pass to pass.
    pub(super) fn launch(&self, rows: f64, prompts: bool) -> (f64, f64) {
        match prompts {
            _ if !self.captured(rows) || prompts && !self.prompts => (self.each, self.each * self.spread),
            true => (self.pieces, 0.0),
            false => (0.0, 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replays() -> Replays {
        let (engine, _) = rackmath_catalog::embedded().engine("vllm").unwrap();
        Replays::of(
            &engine.schedule,
            &engine.overhead,
            Launches { layers: 32, experts: 0, expert: Seconds::ZERO, latent: 0 },
        )
    }

    /// vLLM 0.25 captures 1, 2, 4, 8 to 256 by 8 and 272 to 512 by 16: 51 sizes.
    #[test]
    fn a_batch_is_padded_to_the_next_captured_size() {
        let r = replays();
        let padded = |rows: f64| r.padded(rows);
        let told = [(1.0, 1.0), (3.0, 4.0), (5.0, 8.0), (9.0, 16.0), (250.0, 256.0), (257.0, 272.0), (512.0, 512.0)];
        for (rows, size) in told {
            assert_eq!(padded(rows), size, "{rows}");
        }
        assert_eq!(padded(513.0), 513.0);
        // One pass in four of nine rows, padded to 16: 8 x 3/4 + 16 / 4.
        assert_eq!(padded(8.25), 10.0);
        assert_eq!(padded(0.25), 1.0);
        let mut sizes: Vec<u64> = (1..=512).map(|rows| padded(f64::from(rows)) as u64).collect();
        assert!(sizes.is_sorted() && sizes.iter().zip(1..).all(|(size, rows)| *size >= rows));
        sizes.dedup();
        assert_eq!(sizes.len(), 51);
    }

    #[test]
    fn each_kind_of_pass_has_its_floor() {
        let (r, (engine, _)) = (replays(), rackmath_catalog::embedded().engine("vllm").unwrap());
        let o = &engine.overhead;
        assert_eq!(r.launch(512.0, false), (0.0, 0.0));
        assert_eq!(r.launch(512.0, true).0, 32.0 * o.launch_piece.get());
        assert_eq!(r.launch(513.0, true).0, 32.0 * o.launch.get());
        assert_eq!(r.launch(513.0, false), r.launch(513.0, true));
        assert!(o.launch_piece < o.launch);
        // SGLang launches the experts of a layer apart: 61 layers, 58 of them with experts, are 61 x 0.06 + 58 x 2.2 ms.
        let (sglang, _) = rackmath_catalog::embedded().engine("sglang").unwrap();
        let deepseek = Launches { layers: 61, experts: 58, expert: sglang.overhead.launch_expert, latent: 61 };
        let sglang = Replays::of(&sglang.schedule, &sglang.overhead, deepseek);
        let launch = sglang.launch(4096.0, true).0;
        assert!((launch - (61.0 * 60e-6 + 58.0 * 2200e-6)).abs() < 1e-9, "{launch}");
        // It captures passes without prompts alone, however few tokens a prompt has.
        assert_eq!((sglang.launch(16.0, true).0, sglang.launch(16.0, false).0), (launch, 0.0));
        // Experts whose rule states a launch of their own take that.
        let (trtllm, _) = rackmath_catalog::embedded().engine("trtllm@1.2").unwrap();
        let rule = |format: &str| trtllm.experts("hopper", format.parse().unwrap(), false).and_then(|rule| rule.launch);
        assert!(rule("mxfp4-a16").unwrap() > trtllm.overhead.launch_expert && rule("fp8-block").is_none());
        // TensorRT-LLM: generated experts are one call, latent attention is not.
        let one_call = Replays::of(&trtllm.schedule, &trtllm.overhead, Launches { experts: 0, ..deepseek });
        let launch = one_call.launch(1024.0, true).0;
        assert!((launch - 61.0 * (60e-6 + 1600e-6)).abs() < 1e-9, "{launch}");
    }
}
