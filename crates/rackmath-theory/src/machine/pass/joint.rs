//! What joining the parts of a cut cache costs: decode context parallel.
//!
//! Each of D chips of a tensor-parallel group keeps 1/D of the tokens of every sequence, and attends to them for the heads
//! of all D. Before, the queries are gathered; after, the log-sum-exps are gathered and the outputs, rescaled by them, are
//! summed and scattered to the chips whose heads they belong to:
//!
//! $$ t = t_{AG}(m\,D h\,d_q\,w) + t_{AG}(m\,D h\,D\cdot 4) + t_{RS}(m\,D h\,d_o\,w) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | m | rows | 1 | tokens that attend |
//! | D | dcp | 1 | chips that share the tokens of a sequence |
//! | h | heads | 1 | query heads of a chip: heads / tp |
//! | d_q, d_o | query, output | 1 | values of a query and of an output: those of a head, or r + d_r and r of a latent |
//! | w | [`WIDE`] | B | bytes of a value that travels |
//!
//! Prompts: grouped attention joins all its rows in the same way; latent attention gathers the tokens cached before the
//! prompt and attends with its own heads. Assumes: tokens are dealt evenly. Ignores: the small kernel that rescales.
//! Source: vLLM's `cp_lse_ag_out_rs` (gather, rescale, reduce-scatter) and the context parallel design of vllm-ascend 0.23.
//! Prompts follow the same design; none of this was scored against measured runs.

use super::layers::{Prep, WIDE};
use super::links::add_network;
use super::{Cost, Table, Work};
use crate::network::Collective;
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::Mixer;
use rackmath_units::Bytes;

const LSE: f64 = 4.0;

/// Costs of joining; empty, and nothing, where the cache is not cut along its tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Joints {
    decode: Table,
    prompt: Table,
    /// By tokens cached before prompts.
    past: Table,
}

impl Joints {
    pub(super) fn add(&self, work: &Work, cost: &mut Cost) {
        self.decode.add(work.sequences() * work.queries(), cost);
        self.prompt.add(work.prompt_tokens(), cost);
        self.past.add(work.chunks.iter().map(|c| c.prompts * c.past).sum(), cost);
    }
}

/// Heads of the model, and values of a query and of an output of one of them.
fn widths(mixer: &Mixer) -> Option<(f64, f64, f64)> {
    match mixer {
        Mixer::Attention(a) => Some((a.heads as f64, a.qk_dim as f64, a.v_dim as f64)),
        Mixer::Latent(a) => Some((a.heads as f64, (a.kv_rank + a.rope_dim) as f64, a.kv_rank as f64)),
        Mixer::Compressed(_) | Mixer::Linear(_) | Mixer::None => None,
    }
}

/// Bytes of the three collectives for one token: queries, log-sum-exps, outputs.
fn messages(mixer: &Mixer, d: &Degrees) -> Option<[f64; 3]> {
    let (heads, query, output) = widths(mixer)?;
    let n = d.dcp as f64;
    let all = n * heads / d.tp as f64;
    Some([all * query * WIDE, all * n * LSE, all * output * WIDE])
}

/// Bytes a chip sends to join the parts of one token in one layer: all but its own share of each message.
pub fn joined_bytes(mixer: &Mixer, d: &Degrees) -> f64 {
    if d.dcp <= 1 {
        return 0.0;
    }
    let share = (d.dcp - 1) as f64 / d.dcp as f64;
    messages(mixer, d).map_or(0.0, |all| all.iter().sum::<f64>() * share)
}

impl Prep<'_> {
    pub(super) fn joints(&self) -> Joints {
        let d = self.d.layout.degrees();
        if d.dcp <= 1 || self.d.engine.ideal {
            return Joints::default();
        }
        // A table of what each layer's mixer adds to a cost.
        let table = |add: &dyn Fn(&Mixer, f64, f64, &mut Cost)| {
            Table::new(|rows| {
                let mut all = Cost::default();
                self.shape.runs.iter().for_each(|run| add(&run.block.mixer, rows, run.n as f64, &mut all));
                all
            })
        };
        let join = |mixer: &Mixer, rows: f64, times: f64, cost: &mut Cost| {
            let kinds = [Collective::AllGather, Collective::AllGather, Collective::ReduceScatter];
            for (kind, bytes) in kinds.into_iter().zip(messages(mixer, &d).into_iter().flatten()) {
                self.collective(kind, rows * bytes, d.dcp, times, cost);
            }
        };
        Joints {
            decode: table(&join),
            prompt: table(&|mixer, rows, n, cost| {
                if matches!(mixer, Mixer::Attention(_)) {
                    join(mixer, rows, n, cost);
                }
            }),
            past: table(&|mixer, tokens, n, cost| {
                if let Mixer::Latent(a) = mixer {
                    let bytes = tokens * (a.kv_rank + a.rope_dim) as f64 * self.d.kv.width().get();
                    self.collective(Collective::AllGather, bytes, d.dcp, n, cost);
                }
            }),
        }
    }

    fn collective(&self, kind: Collective, bytes: f64, n: u64, times: f64, cost: &mut Cost) {
        let skew = self.d.overhead().skew.get();
        let (latency, transfer) = self.reach(n).map_or((0.0, 0.0), |group| {
            let time = group.time(kind, Bytes::b(bytes));
            (time.latency.get(), time.transfer.get())
        });
        add_network((latency + skew, transfer), times, cost);
    }
}
