//! Fine-tuning: what is trained, what the optimizer keeps, memory at its peaks, and the largest micro-batch.

use super::changes::weigh;
use super::{Request, StageCard};
use crate::desk::prelude::*;
use rackmath_spec::TrainingStack;
use rackmath_spec::training::MemoryRecipe;
use rackmath_theory::count::count;
use rackmath_theory::count::lora;
use rackmath_theory::train::machine::Machine;
use rackmath_theory::train::peaks::{Moment, peaks};
use rackmath_theory::train::step::Prepared;
use rackmath_theory::train::{Cut, Job, Tuning};
use strum::{Display, VariantArray};

/// Rank of adapters unless given: PEFT's examples and vLLM's default for serving.
const RANK: u64 = 16;

/// Chunks of a loss that is computed in chunks: torchtune's documentation of `CEWithChunkedOutputLoss` (read 2026-11).
const CHUNKS: f64 = 8.0;

/// What an optimizer keeps for each trained parameter.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, VariantArray, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Optimizer {
    /// As the program does: with most, a copy of the weights and both moments in 32 bits.
    #[serde(alias = "adam")]
    Adamw,
    /// Weights, gradients and both moments in 16 bits, no copy.
    #[serde(alias = "adam-bf16")]
    AdamwBf16,
    /// Both moments in 8 bits, gradients in 16, no copy.
    #[serde(rename = "adamw-8bit", alias = "adam-8bit", alias = "adamw_8bit")]
    #[strum(serialize = "adamw-8bit")]
    Adamw8bit,
    /// Gradients in 16 bits alone.
    Sgd,
}

impl Optimizer {
    /// Bytes of gradients and of states for each parameter.
    fn apply(self, recipe: &mut MemoryRecipe) {
        let (gradient, states) = match self {
            Self::Adamw => return,
            Self::AdamwBf16 => (2.0, 4.0),
            Self::Adamw8bit => (2.0, 2.0),
            Self::Sgd => (2.0, 0.0),
        };
        (recipe.gradient_bytes, recipe.optimizer_bytes) = (gradient, states);
    }
}

/// A fine-tuning run: what is trained and what memory it takes when.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TunedCard {
    /// In a sentence.
    pub says: Remark,
    /// Parameters that are trained.
    pub trained_params: f64,
    /// As a share of the model's.
    pub trained_share: f64,
    /// Adapters as they are saved, in 16 bits.
    pub adapter_bytes: Option<f64>,
    /// Memory of the fullest chip with all weights trained, as the page of that says; nothing where it does not fit.
    pub full_memory_bytes: Option<f64>,
    /// Seconds of its step.
    pub full_step_s: Option<f64>,
    /// How all weights train in less time, where they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quicker: Option<Remark>,
    /// What the program itself asks for on the fullest chip: without context and libraries.
    pub allocated_bytes: f64,
    /// The largest micro-batch that fits, all else as it is.
    pub largest_micro_batch: Option<u64>,
    /// Memory at moments outside the steady step, and in it.
    pub peaks: Vec<PeakCard>,
    /// Tokens per second that are not padding, where sequences are shorter than they may be and not packed.
    pub useful_tokens_per_s: Option<f64>,
}

/// The fullest chip at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PeakCard {
    /// When.
    pub when: Remark,
    /// Memory of the fullest chip.
    pub chip_bytes: f64,
    /// Memory of the host, for each process.
    pub host_bytes: f64,
    /// Whether the chip holds it.
    pub fits: bool,
}

/// What is trained, from the flags.
pub(super) fn tuning(r: &Request) -> Result<Tuning, Error> {
    let targets = r.lora_targets;
    if r.lora.is_none() && !r.qlora {
        let none = targets.is_none();
        refuse_if(!none, "lora_targets", targets.unwrap_or_default(), "{lora} or {qlora} as well")?;
        return Ok(Tuning::Full);
    }
    let rank = r.lora.unwrap_or(RANK);
    let expected = "1 to 65536; without {lora} and {qlora} every weight is trained";
    let narrow = u32::try_from(rank).ok().filter(|n| (1..=65_536).contains(n));
    let rank = narrow.ok_or_else(|| Error::value("lora", rank, expected))?;
    Ok(Tuning::Adapters { rank, targets: targets.unwrap_or_default(), narrow: r.qlora })
}

/// What a request changes of the memory a program takes.
pub(super) fn adjust(r: &Request, stack: &mut Arc<TrainingStack>) {
    // PyTorch's own optimizers update lists of all tensors; those with moments in 8 bits go tensor by tensor
    // (bitsandbytes, `Optimizer8bit.step`, read 2026-11).
    if tunes(r) {
        Arc::make_mut(stack).memory.lists = r.optimizer != Some(Optimizer::Adamw8bit);
    }
    if let Some(optimizer) = r.optimizer {
        optimizer.apply(&mut Arc::make_mut(stack).memory);
    }
    if r.chunked_loss {
        Arc::make_mut(stack).memory.logit_bytes /= CHUNKS;
    }
}

/// Whether the answer has a card of it: where something is tuned, or its peaks are to be shown.
fn wanted(r: &Request) -> bool {
    r.peaks || tunes(r)
}

/// Whether something is asked for that people do with PyTorch's own means.
pub(super) fn tunes(r: &Request) -> bool {
    r.chunked_loss || r.lora.is_some() || r.qlora || r.optimizer.is_some() || r.mean_tokens.is_some()
}

pub(super) struct Run<'a> {
    pub machine: &'a Machine<'a>,
    pub job: &'a Job<'a>,
    pub cut: Cut,
    pub prepared: &'a Prepared,
    pub stages: &'a [StageCard],
    pub tokens_per_s: f64,
    pub step_s: f64,
}

pub(super) fn card(
    catalog: &Catalog,
    r: &Request,
    model: &rackmath_spec::Model,
    run: &Run<'_>,
    effort: &Effort,
) -> Result<Option<TunedCard>, Error> {
    if !wanted(r) {
        return Ok(None);
    }
    let Run { machine, job, cut, prepared, stages, .. } = *run;
    let recipe = &machine.stack.memory;
    let all = count(model).total() as f64;
    let adapters = match cut.tuning {
        Tuning::Full => None,
        Tuning::Adapters { rank, targets, .. } => Some(lora::params(job.shape, targets, f64::from(rank))),
    };
    let trained = adapters.unwrap_or(all);
    // The page of the same machine with every weight trained, in the same program, so that only the adapters differ, and in the layout it takes for that.
    let stack = Some(machine.stack.id.clone());
    let whole = Request { lora: None, qlora: false, lora_targets: None, stack, ..r.clone() };
    // Degrees that were given stay; what else a layout has may be another where there is more to keep.
    let ask = |whole: Request| {
        let answer = |r: &Request| super::answer_on(catalog, r, effort.clone()).ok();
        let first = (!cut.tuning.is_full()).then(|| answer(&whole))??;
        let open = || answer(&Request { search: true, ..whole.clone() }).filter(|f| f.fits);
        if first.fits { Some(first) } else { open().or(Some(first)) }
    };
    // What people take for that is another program, unless one was named.
    let usual = ask(Request { stack: r.stack.clone(), ..whole.clone() });
    let usual = usual.filter(|f| f.fits && f.stack != machine.stack.name);
    let full = ask(whole);
    let none = full.as_ref().is_some_and(|f| !f.fits);
    let full = full.filter(|f| f.fits);
    let held = |f: &super::Answer| f.stages.iter().map(|s| s.total_bytes).fold(0.0, f64::max);
    let capacity = machine.chip.memory.seen().get();
    let fullest = stages.iter().map(|s| s.total_bytes).fold(0.0, f64::max);
    let largest = largest(machine, job, cut);
    let parts = prepared.stages(cut.pp, cut.spread);
    let moments = parts.iter().zip(stages).map(|(stage, steady)| peaks(stage, steady, &cut, recipe));
    let worst = moments.reduce(|mut a, b| {
        for (a, b) in a.iter_mut().zip(b) {
            (a.chip, a.host) = (a.chip.max(b.chip), a.host.max(b.host));
        }
        a
    });
    let cards: Vec<PeakCard> = worst
        .iter()
        .flatten()
        .map(|p| {
            let when = said(p.moment);
            PeakCard { when, chip_bytes: p.chip, host_bytes: p.host, fits: p.chip <= capacity }
        })
        .collect();
    let worst = cards.iter().filter(|p| !p.fits && p.when.says != "peak_steady").map(|p| &p.when);
    // One that is quicker is named in the verdict.
    let slower = usual.as_ref().filter(|f| f.step_s >= run.step_s);
    let says = says(if cut.tuning.is_full() { "tuned_full" } else { "tuned_adapters" })
        .with("params", trained)
        .with("share", trained / all)
        .with("memory", fullest)
        .with("capacity", capacity)
        .with("step", full.as_ref().map(|_| run.step_s))
        .with("full_step", full.as_ref().map(|f| f.step_s))
        .with("full_memory", full.as_ref().map(held))
        .with("full_layout", full.as_ref().map(|f| &f.layout))
        .with("full_stack", full.as_ref().map(|f| program(&f.stack)))
        .with("usual_step", slower.map(|f| f.step_s))
        .with("usual_stack", slower.map(|f| program(&f.stack)))
        .with("usual_layout", slower.map(|f| &f.layout))
        .with("none", none.then_some(0.0))
        .with("largest", largest)
        .with("exceeds", Some(worst.collect::<Vec<_>>()).filter(|all| !all.is_empty()));
    let useful = match r.mean_tokens {
        None => None,
        Some(n) => Some(within("mean_tokens", n, 1.0, job.sequence as f64)? / job.sequence as f64 * run.tokens_per_s),
    };
    Ok(Some(TunedCard {
        says,
        trained_params: trained,
        trained_share: trained / all,
        adapter_bytes: adapters.map(|n| 2.0 * n),
        full_memory_bytes: full.as_ref().map(held),
        full_step_s: full.as_ref().map(|f| f.step_s),
        quicker: [&full, &usual]
            .into_iter()
            .flatten()
            .min_by(|a, b| a.step_s.total_cmp(&b.step_s))
            .filter(|f| f.step_s < run.step_s)
            .map(quicker),
        allocated_bytes: stages.iter().map(|s| s.allocated).fold(0.0, f64::max),
        largest_micro_batch: largest,
        peaks: cards,
        useful_tokens_per_s: useful,
    }))
}

/// That all weights train in less time so.
fn quicker(all: &super::Answer) -> Remark {
    says("all_weights_quicker").with("step", all.step_s).with("stack", program(&all.stack)).with("layout", &all.layout)
}

/// The name of a program without its years and parts.
fn program(name: &str) -> &str {
    name.split([',', ':']).next().unwrap_or(name)
}

pub(super) fn said(moment: Moment) -> Remark {
    match moment {
        Moment::LoadedWide => says("peak_loaded_wide"),
        Moment::LoadedWhole => says("peak_loaded_whole"),
        Moment::LoadedByLayer => says("peak_loaded_by_layer"),
        Moment::FirstUpdate => says("peak_first_update"),
        Moment::Steady => says("peak_steady"),
        Moment::GatheredCheckpoint => says("peak_gathered_checkpoint"),
        Moment::ShardedCheckpoint => says("peak_sharded_checkpoint"),
    }
}

/// More than any chip has room for.
const MOST_BATCH: u64 = 1 << 16;

/// The largest micro-batch that fits; memory never falls as it grows.
fn largest(machine: &Machine<'_>, job: &Job<'_>, cut: Cut) -> Option<u64> {
    let fits = |micro_batch: u64| {
        // As many micro-batches as the pipeline has stages, so that none is idle.
        let job = Job { global_batch: micro_batch * cut.dp * cut.pp * 2, ..*job };
        weigh(machine, &job, Cut { micro_batch, ..cut }).is_some_and(|c| c.fits)
    };
    if !fits(1) {
        return None;
    }
    let (mut low, mut high) = (1, 2);
    while high < MOST_BATCH && fits(high) {
        (low, high) = (high, high * 2);
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if fits(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::super::{Request, answer_on};
    use rackmath_theory::count::lora::Targets;

    fn asked(r: Request) -> super::super::Answer {
        let given = Request { model: Some("llama-3.1-8b".into()), on: Some("8xh100".into()), ..r };
        let given = Request { dp: Some(8), global_batch: Some(64), sequence: Some(2048), ..given };
        answer_on(&rackmath_catalog::embedded(), &given, 1).unwrap()
    }

    #[test]
    fn less_is_held_the_less_is_trained() {
        let memory = |r: Request| asked(r).stages[0].total_bytes;
        let full = memory(Request::default());
        let mut before = 0.0;
        for rank in [1, 8, 64, 512] {
            let lora = memory(Request { lora: Some(rank), ..Request::default() });
            let qlora = memory(Request { lora: Some(rank), qlora: true, ..Request::default() });
            assert!(qlora < lora && lora < full && lora > before, "{rank}: {qlora} {lora} {full}");
            before = lora;
        }
    }

    #[test]
    fn a_step_without_gradients_of_weights_is_shorter_and_expanding_takes_longer() {
        let stack = || Some("torchtitan".into());
        let time = |lora, qlora| asked(Request { lora, qlora, stack: stack(), ..Request::default() }).step_s;
        let (full, lora, qlora) = (time(None, false), time(Some(16), false), time(Some(16), true));
        assert!(lora < full && lora < qlora && lora > 0.5 * full, "{full} {lora} {qlora}");
        assert!(time(Some(16), false) < time(Some(256), false));
    }

    /// The comparison is with the program people take for all weights as well, and a layout that fits is found where flags leave one open.
    #[test]
    fn adapters_that_save_no_time_say_so_and_what_fits_is_not_said_not_to() {
        let catalog = rackmath_catalog::embedded();
        let ask = |r: &Request| answer_on(&catalog, r, 1).unwrap();
        let given = Request { model: Some("llama-3.1-8b".into()), on: Some("8xh100".into()), ..Request::default() };
        let given = Request { global_batch: Some(64), ..given };
        let lora = ask(&Request { lora: Some(16), ..given.clone() });
        let whole = ask(&given);
        let said = lora.tuned.unwrap().quicker;
        assert!(whole.step_s < lora.step_s, "{} {}", whole.step_s, lora.step_s);
        assert_eq!(said.unwrap().with["step"], whole.step_s.into());
        let given = Request { model: Some("qwen3-8b".into()), sequence: Some(32_768), cp: Some(4), ..given };
        let lora = ask(&Request { lora: Some(16), global_batch: Some(32), ..given }).tuned.unwrap();
        assert!(lora.full_step_s.is_some() && !lora.says.with.contains_key("none"), "{:?}", lora.says);
    }

    #[test]
    fn showing_peaks_changes_no_figure() {
        let (plain, shown) = (asked(Request::default()), asked(Request { peaks: true, ..Request::default() }));
        assert!(plain.tuned.is_none() && shown.tuned.is_some());
        assert_eq!((plain.stack, plain.layout, plain.step_s), (shown.stack, shown.layout, shown.step_s));
    }

    #[test]
    fn what_fits_lies_within_what_a_program_finds_on_the_chip() {
        let on = |on: &str| Request { model: Some("llama-3.1-8b".into()), on: Some(on.into()), ..Request::default() };
        let a = answer_on(&rackmath_catalog::embedded(), &on("8xh100"), 1).unwrap();
        // `torch.cuda.mem_get_info` of an H100 SXM: 79.19 GiB.
        assert!((a.capacity_bytes - 79.19 * 1024f64.powi(3)).abs() < 0.01 * 1024f64.powi(3), "{}", a.capacity_bytes);
        assert!(a.fits && a.stages.iter().all(|s| s.total_bytes <= a.capacity_bytes), "{:?}", a.stages);
    }

    #[test]
    fn an_optimizer_that_keeps_less_is_offered_where_it_fits_and_fits_when_applied() {
        let given = Request { model: Some("mistral-7b".into()), on: Some("4xrtx-3090".into()), ..Request::default() };
        let given = Request { global_batch: Some(16), sequence: Some(2048), ..given };
        let catalog = rackmath_catalog::embedded();
        let a = answer_on(&catalog, &given, 1).unwrap();
        let change = a.changes.iter().find(|c| c.what.says == "fits_optimizer").unwrap();
        assert!(!a.fits && change.chips <= 4, "{change:?}");
        let optimizer = serde_json::from_value(change.with["optimizer"].clone()).unwrap();
        assert!(answer_on(&catalog, &Request { optimizer: Some(optimizer), ..given }, 1).unwrap().fits);
    }

    #[test]
    fn the_largest_micro_batch_fits_and_one_more_does_not() {
        let r = || Request { lora: Some(16), ..Request::default() };
        let most = asked(r()).tuned.unwrap().largest_micro_batch.unwrap();
        let fits = |b: u64| {
            let given = Request { model: Some("llama-3.1-8b".into()), on: Some("8xh100".into()), ..r() };
            let given = Request { dp: Some(8), sequence: Some(2048), micro_batch: Some(b), ..given };
            let given = Request { global_batch: Some(16 * b), ..given };
            answer_on(&rackmath_catalog::embedded(), &given, 1).unwrap().fits
        };
        assert!(fits(most) && !fits(most + 1), "{most}");
    }

    #[test]
    fn what_cannot_be_trained_is_refused() {
        let ask = |r: Request| answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap_err().to_string();
        assert!(ask(Request { lora: Some(0), ..Request::default() }).contains("1 to 65536"));
        assert!(ask(Request { lora_targets: Some(Targets::Attention), ..Request::default() }).contains("lora"));
        let none = Request { mean_tokens: Some(1e9), dp: Some(8), global_batch: Some(64), ..Request::default() };
        assert!(ask(none).contains("mean_tokens"));
    }
}
