//! Methods by which weights were made narrow, and what vLLM says where a line and a checkpoint do not go together.

use crate::desk::prelude::*;
use rackmath_spec::line::{Launch, Program};
use rackmath_theory::deployment::Deployment;

/// Types that a method does not compute in: AWQ's and GPTQ's own kernels know one of 16 bits, those that a version takes instead where
/// nothing is said know both, and MXFP4's kernels the other.
///
/// Source: vllm-project/vllm vllm/model_executor/layers/quantization/{awq,gptq,awq_marlin,gptq_marlin}.py
/// (`get_supported_act_dtypes`) and vllm/config/vllm.py, read 2026-11-18; of MXFP4 the same sentence in nlzy/vllm-gfx906 issue 59
/// (vLLM 0.11.2).
fn typed(launch: &Launch, model: &str, on: &Deployment) -> Option<(Remark, Remark)> {
    let dtype = launch.dtype.as_deref().and_then(Dtype::named)?;
    let word = match dtype {
        Dtype::Bf16 => "bfloat16",
        Dtype::Fp32 => "float32",
        Dtype::Fp16 => "float16",
        _ => return None,
    };
    let experts = on.model.formats().routed == Dtype::MxFp4;
    let made = rackmath_spec::name::method(model).filter(|made| ["awq", "gptq"].contains(made));
    let own = launch.method.as_deref().filter(|m| ["awq", "gptq"].contains(m));
    let (method, takes) = match (own, made) {
        (Some(own), _) if dtype != Dtype::Fp16 => (own.to_owned(), "[torch.float16]"),
        (None, None) if experts && dtype != Dtype::Bf16 => ("mxfp4".to_owned(), "[torch.bfloat16]"),
        (None, Some(made)) if dtype == Dtype::Fp32 => (format!("{made}_marlin"), "[torch.float16, torch.bfloat16]"),
        _ => return None,
    };
    let printed = format!(
        "ValueError: torch.{word} is not supported for quantization method {method}. Supported dtypes: {takes}"
    );
    let said = says("check_other_type").with("method", &method).with("type", word);
    let said = said.with("takes", if method == "mxfp4" { "bfloat16" } else { "float16" });
    Some((printed.into(), said))
}

/// What vLLM says where a line names another method than the checkpoint was made by, or one that a checkpoint must bring along, and in
/// our words. What is made while weights are loaded (fp8, bitsandbytes) goes with a checkpoint of 16 bits.
///
/// Source: vllm-project/vllm vllm/config/model.py (`_verify_quantization`), vllm/model_executor/model_loader/weight_utils.py
/// (`get_quant_config`), and the `override_quantization_method` of its methods, read 2026-11-18.
pub(super) fn mismatched(launch: &Launch, model: &str, on: &Deployment) -> Option<(Remark, Remark)> {
    if launch.program != Program::Vllm {
        return None;
    }
    if let Some(refused) = typed(launch, model, on) {
        return Some(refused);
    }
    let asked = launch.method.as_deref()?;
    let kind = match asked {
        "awq" | "awq_marlin" => "awq",
        "gptq" | "gptq_marlin" | "gptq_bitblas" => "gptq",
        "fp8" | "bitsandbytes" | "experts_int8" | "ptpc_fp8" | "mxfp4" | "modelopt" | "modelopt_fp4" => asked,
        // Others take over what several methods made.
        _ => return None,
    };
    let brought = matches!(kind, "awq" | "gptq");
    let own = on.model.formats();
    let plain = own.routed.bits().min(own.linear.bits()) >= 16.0;
    match rackmath_spec::name::method(model) {
        Some(made) if made != kind && (made != "fp8" || brought) => {
            let printed = format!(
                "ValueError: Quantization method specified in the model config ({made}) does not match the quantization method specified in the `quantization` argument ({asked})."
            );
            Some((printed.into(), says("check_other_method").with("made", made).with("asked", asked)))
        }
        None if brought && plain => {
            let printed = format!("ValueError: Cannot find the config file for {asked}");
            let said = says("check_no_method").with("asked", asked).with("format", own.linear);
            Some((printed.into(), said))
        }
        _ => None,
    }
}
