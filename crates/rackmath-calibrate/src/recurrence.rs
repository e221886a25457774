//! One decode step of a gated delta rule by itself, on AMD's chips.
//!
//! The pass counts four kernels around a recurrence, each with its launch: a row here is the one that reads, updates and writes the state, so
//! three launches are taken off. A state in 16 bits is not predicted (engines keep it in 32), and neither is one kernel out of
//! the several that make a prompt.

use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, table_or_none};
use rackmath_spec::file::config_json;
use rackmath_spec::{Catalog, SpecError};
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::pass::{KernelSet, Limit, Part, Work};
use std::collections::BTreeMap;
use std::path::Path;

pub const FILE: &str = "amd_tpu/kernel_linear_attention_mi3xx.csv";
/// Whose launches are around the kernels of AITER.
const ENGINE: &str = "vllm";
/// Kernels that the pass counts for a recurrence, of which a row times one.
const KERNELS: f64 = 4.0;

pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let (names, kernels) = (Names::new(catalog), KernelSet::of(catalog)?);
    let mut ready = BTreeMap::new();
    let mut all = Rows::none();
    for (at, record) in table_or_none(&folder.join(FILE))?.iter().enumerate() {
        match step(&names, &kernels, &mut ready, record) {
            Ok(case) => all.rows.push(Case { row: at + 1, ..case }),
            Err(reason) => all.skip(reason),
        }
    }
    Ok(all)
}

fn step(
    names: &Names<'_>,
    kernels: &KernelSet,
    ready: &mut BTreeMap<String, Ready>,
    record: &Record,
) -> Result<Case, String> {
    match (record.needed("op")?, record.text("state_dtype")) {
        ("gated_delta_rule_decode", "float32") => {}
        ("gated_delta_rule_decode", _) => return Err("a state in 16 bits, where engines keep 32".into()),
        _ => return Err("one kernel of the several of a prompt".into()),
    }
    let (chip, measured, batch) = (names.found(record.needed("system")?)?, record.latency()?, record.amount("batch")?);
    let [k_heads, v_heads, k_dim, v_dim] =
        ["num_k_heads", "num_v_heads", "head_k_dim", "head_v_dim"].map(|column| record.degree(column));
    let shape = format!("{k_heads}+{v_heads} heads of {k_dim}+{v_dim}");
    let key = format!("{} {shape}", chip.id);
    if !ready.contains_key(&key) {
        // One layer of nothing but this recurrence; what is around it is not asked for.
        let config = format!(
            r#"{{"model_type": "qwen3_5_text", "hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 1,
            "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 128, "vocab_size": 128,
            "torch_dtype": "bfloat16", "layer_types": ["linear_attention"], "linear_num_key_heads": {k_heads},
            "linear_num_value_heads": {v_heads}, "linear_key_head_dim": {k_dim}, "linear_value_head_dim": {v_dim},
            "linear_conv_kernel_dim": 4, "mtp_num_hidden_layers": 0}}"#
        );
        let said = |e: SpecError| e.to_string();
        let model = config_json("a recurrence", &config).map_err(said)?;
        let (system, engine) =
            (names.catalog.system(&chip.id).map_err(said)?, names.catalog.engine(ENGINE).map_err(said)?.0);
        let on = Deployment::of(names.catalog, model.into(), system, engine);
        let one = Ready::new(kernels, on).map_err(|_| "no arithmetic of 16 bits".to_owned())?;
        ready.insert(key.clone(), one);
    }
    let one = &ready[&key];
    let cost = one.pass.cost(&Work::decode(batch, 1.0));
    let launch = one.deployment.overhead().small.get();
    let predicted = cost.part(Part::Attention).get() - (KERNELS - 1.0) * launch;
    let limit = if cost.limited(Limit::Memory) > cost.limited(Limit::Compute) { "memory" } else { "compute" };
    let case = Case::on(&chip, FILE, "recurrence, one step").of("aiter", shape, format!("{batch} sequences; {limit}"));
    Ok(Case { measured: measured.get(), predicted, ..case })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::parse;

    #[test]
    fn a_step_reads_and_writes_its_state_and_other_kernels_are_refused() {
        let csv = "\
system,op,dtype,state_dtype,batch,new_tokens,num_k_heads,num_v_heads,head_k_dim,head_v_dim,chunk,tokens,latency_us
mi355x,gated_delta_rule_decode,bfloat16,float32,200,1,8,16,128,128,,,78.04
mi355x,gated_delta_rule_decode,bfloat16,float32,400,1,8,16,128,128,,,150
mi355x,gated_delta_rule_decode,bfloat16,bfloat16,200,1,8,16,128,128,,,40
mi355x,chunk_gated_delta_rule_h,bfloat16,,1,,8,16,128,128,64,2048,69
abacus,gated_delta_rule_decode,bfloat16,float32,200,1,8,16,128,128,,,78
";
        let catalog = rackmath_catalog::embedded();
        let (names, kernels) = (Names::new(&catalog), KernelSet::of(&catalog).unwrap());
        let mut ready = BTreeMap::new();
        let rows: Vec<_> = parse(csv).unwrap().iter().map(|r| step(&names, &kernels, &mut ready, r)).collect();
        let [one, two] = [0, 1].map(|i| rows[i].as_ref().unwrap().predicted);
        // 16 states of 128 x 128 values of 4 bytes for each of 200 sequences are 210 MB, read and written at 8 TB/s: 52 us at the least.
        assert!(one > 26e-6 && two > 1.5 * one && two < 2.0 * one, "{one} {two}");
        for (row, why) in rows[2..].iter().zip(["16 bits", "of a prompt", "abacus"]) {
            assert!(row.as_ref().is_err_and(|said| said.contains(why)), "{why}: {row:?}");
        }
    }
}
