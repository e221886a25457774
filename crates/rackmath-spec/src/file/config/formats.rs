//! Which number format each part of a checkpoint is stored in.

use super::fields::Fields;
use crate::file::stored::Stored;
use crate::model::Formats;
use crate::{Dtype, SpecError};
use serde_json::Value;

/// Formats from `torch_dtype` and `quantization_config`.
pub(super) fn formats(fields: &Fields, notes: &mut Vec<String>) -> Result<Formats, SpecError> {
    let named = match fields.text_of("torch_dtype")? {
        Some(name) => Some(name),
        None => fields.text_of("dtype")?,
    };
    let stored = stored(fields)?;
    let base = match (named, stored.as_ref().and_then(Stored::wide)) {
        (None | Some("auto"), Some(wide)) => wide,
        (None | Some("auto"), None) => {
            notes.push("the file states no dtype; 16-bit weights are assumed".into());
            Dtype::Bf16
        }
        (Some(name), _) => {
            name.parse::<Dtype>().map_err(|_| fields.refuse("torch_dtype", name, "bfloat16, float16 or float32"))?
        }
    };
    let base = if base == Dtype::Fp32 {
        // Checkpoints saved in 32 bits are served in 16.
        notes.push("saved as float32; served, and counted here, as bf16".into());
        Dtype::Bf16
    } else {
        base
    };
    let mut formats = Formats::uniform(base);
    let seen = stored.as_ref().and_then(Stored::narrow).filter(|_| !fields.has("quantization_config"));
    if let Some(seen) = seen {
        notes.push(format!("the file states no quantisation; its weight files are in {seen}"));
    }
    if let Some(quantised) = quantised(fields)?.or(seen) {
        formats.routed = quantised;
        if !experts_only(fields)? {
            (formats.linear, formats.mixer) = (quantised, quantised);
        }
    }
    if fields.text_of("expert_dtype")? == Some("fp4") {
        // Two 4-bit values a byte and one E8M0 scale per 32: the layout of MXFP4.
        formats.routed = Dtype::MxFp4;
    }
    Ok(formats)
}

/// What the weight files beside the config hold, where a face put it in.
pub(super) fn stored(fields: &Fields) -> Result<Option<Stored>, SpecError> {
    let Some(value) = fields.get("stored") else { return Ok(None) };
    let read = serde_json::from_value(value.clone());
    read.map(Some)
        .map_err(|_| fields.bad("stored", value, "total_size in bytes, and dtypes and marks of the weight files"))
}

fn quantised(fields: &Fields) -> Result<Option<Dtype>, SpecError> {
    let Some(q) = fields.object("quantization_config")? else { return Ok(None) };
    let known = "fp8, mxfp4, gptq, awq, modelopt, compressed-tensors or bitsandbytes in 4 or 8 bits";
    let bits = q.opt_count("bits", 64)?.or(q.opt_count("num_bits", 64)?);
    let method = q.text_of("quant_method")?.unwrap_or("");
    let algorithm = q.text_of("quant_algo")?.unwrap_or("").to_ascii_uppercase();
    Ok(Some(match method {
        "fp8" | "fbgemm_fp8" if q.has("weight_block_size") => Dtype::Fp8Block,
        "fp8" | "fbgemm_fp8" => Dtype::Fp8,
        "mxfp4" => Dtype::MxFp4,
        "gptq" | "awq" | "auto-round" if bits == Some(4) => group(q.opt_count("group_size", 1 << 20)?),
        "gptq" | "awq" | "auto-round" if bits == Some(8) => Dtype::Int8,
        "bitsandbytes" if q.flag("load_in_4bit", false)? => Dtype::Int4,
        "bitsandbytes" if q.flag("load_in_8bit", false)? => Dtype::Int8,
        "modelopt" | "modelopt_fp4" | "" if algorithm.contains("NVFP4") => Dtype::NvFp4,
        "modelopt" | "" if algorithm.contains("FP8") => Dtype::Fp8,
        "compressed-tensors" => return compressed(&q).map(Some),
        other => return Err(q.refuse("quant_method", other, known)),
    }))
}

fn group(size: Option<u64>) -> Dtype {
    if size == Some(32) { Dtype::Int4G32 } else { Dtype::Int4 }
}

/// The compressed-tensors format: a name for the packing, and bits and type in its first group.
fn compressed(q: &Fields) -> Result<Dtype, SpecError> {
    let format = q.text_of("format")?.unwrap_or("");
    match format {
        "mxfp4-pack-quantized" => return Ok(Dtype::MxFp4),
        "nvfp4-pack-quantized" => return Ok(Dtype::NvFp4),
        "float-quantized" => return Ok(Dtype::Fp8),
        "int-quantized" => return Ok(Dtype::Int8),
        _ => {}
    }
    let groups = q.get("config_groups").and_then(Value::as_object);
    let weights = groups.and_then(|g| g.values().next()).and_then(|g| g.get("weights"));
    let bits = weights.and_then(|w| w.get("num_bits")).and_then(Value::as_u64);
    let kind = weights.and_then(|w| w.get("type")).and_then(Value::as_str).unwrap_or("int");
    let size = weights.and_then(|w| w.get("group_size")).and_then(Value::as_u64);
    match (bits, kind) {
        (Some(4), "int") => Ok(group(size)),
        (Some(8), "int") => Ok(Dtype::Int8),
        (Some(8), "float") => Ok(Dtype::Fp8),
        (Some(4), "float") => Ok(Dtype::NvFp4),
        _ => Err(q.refuse("format", format, "a packing of 4- or 8-bit integers or floats")),
    }
}

/// Whether the list of modules left alone names the attention, so that only experts are quantised.
fn experts_only(fields: &Fields) -> Result<bool, SpecError> {
    let Some(q) = fields.object("quantization_config")? else { return Ok(false) };
    let names_attention = |key: &str| {
        let list = q.get(key).and_then(Value::as_array);
        list.is_some_and(|items| items.iter().filter_map(Value::as_str).any(|name| name.contains("attn")))
    };
    Ok(names_attention("modules_to_not_convert") || names_attention("ignore"))
}
