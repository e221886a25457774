//! A plan that still holds at the pessimistic end of its intervals.
//!
//! $$ f_p = \exp\Big( s\,\frac{z_p}{z_{0.9}} \Big) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | s | `desk::evidence` | 1 | logarithm of the factor that holds 80 % of measurements, so that nine in ten lie on the good side of its bad end |
//! | p, z | share | 1 | how sure, and the normal quantile of it |
//! | f_p | [`Slower`] | 1 | factor by which times are longer, and throughput is less |
//!
//! Every deployment is made so much worse, each by its own spread, and the search is that of the worse space: what it finds keeps
//! the limits there. Half sure is the prediction itself. Assumes: times and throughput are bad together; errors are log-normal
//! between the ends that were measured. Users of a closed population ask less often when answers take longer, so that for them
//! throughput is made to fall with the slowest of the times (Little's law).

use super::{Choice, Request, Worked, as_percent};
use crate::desk::prelude::*;
use rackmath_spec::evidence::Widths;
use rackmath_theory::plan::{Estimate, Ranked, Slower, Traffic};
use rackmath_theory::stats::normal_quantile;

/// A plan at the pessimistic end.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sure {
    /// How sure.
    pub share: f64,
    /// Time per output token there.
    pub tpot_ms: f64,
    /// Time to first token.
    pub ttft_ms: f64,
    /// A whole request.
    pub e2e_ms: f64,
    /// Dollars per million output tokens.
    pub usd_per_mtok: f64,
    /// Output tokens per second of all.
    pub throughput_tok_s: f64,
}

impl Sure {
    /// In a few words.
    pub(super) fn words(&self) -> Remark {
        let [ttft, tpot] = [self.ttft_ms, self.tpot_ms].map(Seconds::ms);
        let said = says("sure_holds").with("share", self.share).with("ttft", ttft).with("tpot", tpot);
        said.with("cost", DollarsPerToken::per_mtok(self.usd_per_mtok))
    }
}

pub(super) fn asked(r: &Request) -> Result<Option<f64>, Error> {
    let Some(share) = r.sure else { return Ok(None) };
    refuse_if(!(0.5..=0.999).contains(&share), "sure", as_percent(share), "a share from 50% to 99.9%, such as 90%")?;
    Ok(Some(share))
}

/// How many half-widths of the intervals the pessimistic end lies off.
fn beyond(share: f64) -> f64 {
    if share == 0.5 { 0.0 } else { normal_quantile(share) / normal_quantile(0.9) }
}

impl Worked {
    /// By what factor the steps of a configuration are slower at the pessimistic end, and by which further one first tokens come
    /// later; none where that was not asked for. Steps so slow that both times per token and throughput are as bad as that.
    pub(super) fn pessimism(&self, choice: &Choice) -> Option<(f64, f64)> {
        let scale = beyond(self.ask.sure?);
        let widths = [choice.row, choice.first()].map(|row| self.ask.scale.widths(&row.of.ready));
        let worst = |of: fn(&Widths) -> f64| float::exp(widths.iter().map(of).fold(0.0, f64::max) * scale);
        let slower = worst(|s| s.tpot).max(worst(|s| s.throughput));
        Some((slower, (worst(|s| s.ttft) / slower).max(1.0)))
    }

    /// The same space at its pessimistic end.
    pub(crate) fn surely(&self, share: f64) -> Self {
        let plain = self.predicted.as_ref().unwrap_or(&self.space).clone();
        let scale = beyond(share);
        let users = matches!(self.question.traffic, Traffic::Users { .. });
        let slower = |row: usize| {
            let s = self.ask.scale.widths(&self.made.rows[row].of.ready);
            let [tpot, ttft, rate] = [s.tpot, s.ttft, s.throughput].map(|s| float::exp(s * scale));
            Slower { tpot, ttft, rate: if users { rate.max(tpot).max(ttft) } else { rate } }
        };
        let space = Arc::new(plain.slower(slower));
        Self { space, predicted: Some(plain), ..self.clone() }
    }

    /// A configuration as predicted, with the replicas it was given.
    pub(crate) fn likely(&self, r: &Ranked) -> Estimate {
        let Some(space) = &self.predicted else { return r.estimate };
        let q = &self.question;
        space.with_replicas(r.index, q.output, q.traffic, r.estimate.replicas).unwrap_or(r.estimate)
    }

    /// The pessimistic end of a configuration.
    pub(super) fn sure(&self, r: &Ranked) -> Option<Sure> {
        let (share, e) = (self.ask.sure?, &r.estimate);
        let [tpot_ms, ttft_ms, e2e_ms] = [e.tpot, e.ttft, e.e2e].map(|s| s * 1e3);
        Some(Sure { share, tpot_ms, ttft_ms, e2e_ms, usd_per_mtok: e.usd_per_mtok, throughput_tok_s: e.throughput })
    }
}
