//! Adapters beside a model, fine-tuning, and reinforcement learning as text.

use super::prelude::*;
use rackmath::estimate::LoraCard;
use rackmath::train::TunedCard;

/// What adapters hold and cost, under an estimate.
pub(super) fn loras(out: &mut Page, c: &LoraCard) {
    out.gap();
    out.wrapped("  adapters (LoRA)        ", "                         ", &c.says);
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
    out.wrapped("  fine-tuning            ", "                         ", &c.says);
    let full = c.full_memory_bytes.zip(c.full_step_s);
    out.maybe("all weights trained", full.map(|(m, s)| format!("{} on the fullest chip, {} a step", bytes(m), seconds(s))));
    out.maybe("adapter as saved", c.adapter_bytes.map(bytes));
    out.maybe("useful, not packed", c.useful_tokens_per_s.map(|x| format!("{}; packing makes all tokens count", tok_s(x))));
    out.gap();
    out.each(&c.peaks).columns(&[
        ("memory at its peaks", &|p| words(&p.when)),
        ("chip", &|p| bytes(p.chip_bytes)),
        ("fits", &|p| if p.fits { "yes".into() } else { "no".into() }),
        ("host, each process", &|p| if p.host_bytes > 0.0 { bytes(p.host_bytes) } else { "-".into() }),
    ]);
}
