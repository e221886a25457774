//! Reads a training-stack file.

use super::noun::{noun, within};
use crate::{SpecError, TrainingStack};

pub fn training(id: &str, text: &str) -> Result<TrainingStack, SpecError> {
    let file = format!("training {id}");
    let stack: TrainingStack = noun(&file, id, text, &[])?;
    let (t, n, m) = (&stack.traffic, &stack.network, &stack.memory);
    let shares = [
        ("network.tensor_exposed", n.tensor_exposed),
        ("network.data_overlap", n.data_overlap),
        ("network.context_exposed", n.context_exposed),
        ("network.expert_exposed", n.expert_exposed),
    ];
    let others = [
        ("traffic.elementwise", t.elementwise),
        ("traffic.scores", t.scores),
        ("traffic.logit_bytes", t.logit_bytes),
        ("traffic.accumulate_bytes", t.accumulate_bytes),
        ("traffic.optimizer_bytes", t.optimizer_bytes),
        ("network.scale_up", n.scale_up),
        ("network.gradient_bytes", n.gradient_bytes),
        ("memory.weight_bytes", m.weight_bytes),
        ("memory.gradient_bytes", m.gradient_bytes),
        ("memory.optimizer_bytes", m.optimizer_bytes),
        ("memory.logit_bytes", m.logit_bytes),
        ("memory.vocabulary_bytes", m.vocabulary_bytes),
        ("memory.fragmentation", m.fragmentation),
    ];
    within(&file, &shares.map(|(field, value)| (field, value, 0.0, 1.0)))?;
    within(&file, &others.map(|(field, value)| (field, value, 0.0, 1e6)))?;
    Ok(stack)
}

#[cfg(test)]
mod tests {
    use crate::TrainingFormat;

    #[test]
    fn a_share_beyond_all_and_a_word_nobody_knows_are_refused() {
        let text = include_str!("../../../rackmath-catalog/data/training/megatron-2022.toml");
        let wrong = text.replace("tensor_exposed = 1.0", "tensor_exposed = 1.5");
        assert!(super::training("x", &wrong).unwrap_err().to_string().contains("0 to 1"));
        let wrong = text.replace("attention = \"scores\"", "attention = \"magic\"");
        assert!(super::training("x", &wrong).unwrap_err().to_string().contains("scores or flash"));
        assert!("fp7".parse::<TrainingFormat>().unwrap_err().to_string().contains("fp8"));
    }
}
