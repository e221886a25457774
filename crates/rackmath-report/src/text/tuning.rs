//! Adapters beside a model, fine-tuning, and reinforcement learning as text.

use super::prelude::*;
use rackmath::estimate::LoraCard;
use rackmath::rl::Answer as RlAnswer;
use rackmath::train::TunedCard;

/// What adapters hold and cost, under an estimate.
pub(super) fn loras(out: &mut Page, c: &LoraCard) {
    out.gap();
    out.verdict(format!("Adapters (LoRA): {}", words(&c.says)));
    c.caution.iter().for_each(|said| out.caution(said));
    let [stored, chip, slots] = [c.stored_bytes, c.chip_bytes, c.slots_bytes].map(bytes);
    out.field("one adapter", format!("{} parameters, {stored} stored, {chip} on a chip", Params::new(c.params)));
    out.field("all slots", format!("{} x {chip} = {slots} on each chip", c.slots));
    let (kernels, distinct) = (count(c.launches), three(c.distinct));
    out.field("in a pass", format!("{distinct} different adapters in the mean batch, {kernels} kernels more"));
    let (token, rate) = (ms(c.base_tpot_ms), tok_s(c.base_output_tok_s));
    out.field("model alone", format!("{token} per token, {rate}; memory holds {}", count(c.base_room.floor())));
    let [host, disk, mean] = [c.load_ms, c.load_disk_ms, c.load_per_request_ms].map(ms);
    let hit = percent(c.hit);
    out.field("not on the chip", format!("{host} from the host, {disk} from disk; {hit} are there, {mean} a request"));
}

/// What is trained and memory at its peaks.
pub(super) fn tuned(out: &mut Page, c: &TunedCard) {
    out.gap();
    let tuned = if c.adapter_bytes.is_some() { "Fine-tuning: " } else { "" };
    out.verdict(format!("{tuned}{}", words(&c.says)));
    let full = c.full_memory_bytes.zip(c.full_step_s);
    out.maybe(
        "all weights trained",
        full.map(|(m, s)| format!("{} on the fullest chip, {} a step", bytes(m), seconds(s))),
    );
    out.maybe("adapter as saved", c.adapter_bytes.map(bytes));
    out.maybe(
        "useful, not packed",
        c.useful_tokens_per_s.map(|x| format!("{}; packing makes all tokens count", tok_s(x))),
    );
    out.gap();
    out.each(&c.peaks).columns(&[
        ("memory at its peaks", &|p| words(&p.when)),
        ("chip", &|p| bytes(p.chip_bytes)),
        ("fits", &|p| if p.fits { "yes".into() } else { "no".into() }),
        ("host, each process", &|p| if p.host_bytes > 0.0 { bytes(p.host_bytes) } else { "-".into() }),
    ]);
}

/// A step of reinforcement learning.
pub(super) fn rl(out: &mut Page, a: &RlAnswer) {
    out.fold();
    out.head(format!("{} on {}", a.model, a.machine));
    out.judged(a.fits, words(&a.verdict));
    out.figures();
    let where_to = if a.colocated {
        format!("both sides on the same {} chips", a.chips)
    } else {
        format!("{} chips draw answers, {} train", a.rollout_chips, a.train_chips)
    };
    out.field("chips", where_to);
    if !a.fits {
        // What cannot run has no speed worth reading.
        out.field("trainer", format!("{}, {}", a.trainer.layout, a.trainer.stack));
        rl_memory(out, a);
        out.gap();
        out.assumes(&a.assumptions);
        return;
    }
    let r = &a.rollout;
    let answers = format!(
        "{} of {} tokens on average, the longest {}",
        r.answers,
        count(r.mean_tokens.round()),
        count(r.longest_tokens)
    );
    out.field("answers", answers);
    out.field("engine", format!("{}, {} x {}; {} places", r.engine, r.replicas, r.layout, count(r.places)));
    let [time, prompts, tail] = [r.time_s, r.prompts_s, r.tail_s].map(seconds);
    let speed = format!("{time}, {prompts} of it prompts, {tail} with fewer than half of the places busy");
    out.field("drawing", format!("{speed}; {} run on average, {}", three(r.running), tok_s(r.output_tok_s)));
    let t = &a.trainer;
    out.field("trainer", format!("{}, {}", t.layout, t.stack));
    let [train, pass] = [t.time_s, t.scoring_pass_s].map(seconds);
    out.field("training", format!("{train} at {} MFU; {pass} a scoring pass", percent(t.mfu)));
    let u = &a.update;
    let way = u.way.to_string();
    out.field(
        "new weights",
        format!("{} in {} ({way}, {} GB/s)", bytes(u.bytes), seconds(u.time_s), three(u.rate_gb_per_s)),
    );
    if !a.colocated {
        let [engine, trainer, sync] = [a.rollout_waits_s, a.train_waits_s, a.synchronous_step_s].map(seconds);
        let more = only(a.request.asynchronous, format!("; {sync} a step if they took turns"));
        out.field("waiting", format!("{engine} by chips that draw, {trainer} by chips that train{more}"));
    }
    let per_chip = tok_s(a.tokens_per_s_per_chip);
    out.field("tokens", format!("{} a step, {per_chip} per chip", Tokens::new(a.tokens)));
    let dollars = a.usd_per_step.zip(a.usd_per_mtok);
    let priced = or(a.priced.as_ref(), "", |p| format!(", at {}", words(p)));
    out.maybe("cost", dollars.map(|(s, m)| format!("{} a step, {} drawn{priced}", Dollars::usd(s), mtok(m))));
    out.advice();
    out.each(&a.parts).columns(&[
        ("part of a step", &|p| p.name.clone()),
        ("time", &|p| seconds(p.time_s)),
        ("share", &|p| percent(p.share)),
    ]);
    out.working();
    rl_memory(out, a);
    if !a.splits.is_empty() {
        out.gap();
        out.each(&a.splits).columns(&[
            ("chips that draw", &|s| s.rollout_chips.to_string()),
            ("train", &|s| s.train_chips.to_string()),
            ("step", &|s| seconds(s.step_s)),
            ("drawing waits", &|s| seconds(s.rollout_waits_s)),
            ("training waits", &|s| seconds(s.train_waits_s)),
            ("fits", &|s| if s.fits { "yes".into() } else { "no".into() }),
        ]);
    }
    out.gap();
    out.assumes(&a.assumptions);
}

/// Memory of a chip while answers are drawn and while it trains.
fn rl_memory(out: &mut Page, a: &RlAnswer) {
    let m = &a.memory;
    let phases = [
        ("drawing answers", m.engine_bytes, m.trainer_resident_bytes, m.generating_bytes),
        ("training", m.engine_resident_bytes, m.trainer_bytes, m.training_bytes),
    ];
    let shown = |same: bool, b: f64| if same { bytes(b) } else { "-".into() };
    out.each(&phases).columns(&[
        ("memory of a chip", &|p| p.0.into()),
        ("engine", &|p| shown(a.colocated || p.1 > 0.0, p.1)),
        ("trainer", &|p| shown(a.colocated || p.2 > 0.0, p.2)),
        ("all", &|p| bytes(p.3)),
        ("there is", &|_| bytes(m.capacity_bytes)),
    ]);
}
