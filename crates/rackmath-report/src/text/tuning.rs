//! Adapters beside a model, fine-tuning, and reinforcement learning as text.

use super::prelude::*;
use rackmath::estimate::LoraCard;

/// What adapters hold and cost, under an estimate.
pub(super) fn loras(out: &mut Page, c: &LoraCard) {
    out.part("adapters (LoRA)");
    out.paragraph("  ", &c.says);
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
    out.gap();
}
