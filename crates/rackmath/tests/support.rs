//! What runs where, as `estimate` and `plan` tell it: each case with its reason and where it was read. Files of
//! `rackmath-catalog/data/support` hold the full sources.

use rackmath::estimate::{self, Request};
use rackmath::setting::Setting;
use rackmath::{plan, remark::Remark};

/// What is expected of a case.
#[derive(Clone, Copy, Debug)]
enum Is {
    /// Served, without a word about support.
    Runs,
    /// Served, with this remark.
    Says(&'static str),
    /// Not served, for this reason.
    Refused(&'static str),
}
use Is::{Refused, Runs, Says};

/// Engine, chip, model, weights, cache; what is expected; why, and where it was read.
type Case = (&'static str, &'static str, &'static str, &'static str, &'static str, Is, &'static str);

const LLAMA: &str = "llama-3.1-8b";
const QWEN: &str = "qwen3-32b";
const V3: &str = "deepseek-v3";
const V32: &str = "deepseek-v3.2";
const V4: &str = "deepseek-v4-pro";
const OSS: &str = "gpt-oss-20b";

#[rustfmt::skip]
const CASES: &[Case] = &[
    // vLLM by family of chips.
    ("vllm", "tesla-p40", LLAMA, "", "", Refused("support_none"), "needs compute capability 7.0 (vllm issue 963)"),
    ("vllm", "2xv100", LLAMA, "", "", Says("support_cast"), "no bf16 below 8.0, dtype half instead (vllm issue 946)"),
    ("vllm", "2xv100", LLAMA, "fp16", "", Says("support_until"), "0.31 asks for 7.5 (vllm docs 0.31)"),
    ("vllm", "2xv100", LLAMA, "bf16", "", Refused("support_no_format"), "asked for by name it is refused (vllm issue 946)"),
    ("vllm@0.15", "2xv100", LLAMA, "fp16", "", Runs, "7.0 is listed (vllm docs 0.14)"),
    ("vllm@0.25", "2xv100", LLAMA, "fp16", "", Refused("support_version"), "CUDA 13 builds begin at 7.5 (vllm PR 39878)"),
    ("vllm", "2xv100", LLAMA, "fp8", "", Refused("support_no_format"), "table of 0.14: FP8 not on Volta"),
    ("vllm", "2xv100", LLAMA, "int8", "", Refused("support_no_format"), "table of 0.14: INT8 not on Volta"),
    ("vllm", "2xv100", OSS, "", "", Refused("support_no_format"), "MXFP4 needs 8.0 (vllm issue 23203)"),
    ("vllm", "2xt4", LLAMA, "", "", Says("support_cast"), "Turing has no bf16 (vllm issue 1157)"),
    ("vllm", "a100-80gb", LLAMA, "", "", Runs, "listed (vllm docs)"),
    ("vllm", "a100-80gb", LLAMA, "fp8", "", Says("weights_expanded"), "FP8 is weight-only on Ampere (vllm docs, fp8)"),
    ("vllm", "a100-80gb", OSS, "", "", Says("weights_expanded"), "MXFP4 in Marlin on an A100, log of 0.19"),
    ("vllm", "a100-80gb", LLAMA, "nvfp4", "", Says("weights_expanded"), "FP4 in Marlin (marlin_utils_fp4.py)"),
    ("vllm", "8xa100-80gb", V32, "int4", "", Refused("support_no_attention"), "sparse MLA needs 9.x or 10.x (attention_backends.md)"),
    ("vllm", "8xa100-80gb", V3, "int4", "", Runs, "TRITON_MLA has no capability of its own (attention_backends.md)"),
    ("vllm", "rtx-4090", LLAMA, "fp8", "", Runs, "FP8 is native on Ada (vllm docs, fp8)"),
    ("vllm", "l40s", LLAMA, "", "nvfp4", Refused("support_no_cache"), "nvfp4 cache requires sm100f (vllm issue 43562)"),
    ("vllm", "h100-sxm", LLAMA, "", "", Runs, "measured, InferenceX"),
    ("vllm", "h200", LLAMA, "fp8", "fp8", Runs, "measured, InferenceX"),
    ("vllm", "h200", OSS, "", "", Says("weights_expanded"), "gpt-oss MXFP4 on H200, measured, InferenceX"),
    ("vllm", "h200", LLAMA, "nvfp4", "", Says("weights_expanded"), "Marlin with a warning (modelopt.md)"),
    ("vllm", "b200", LLAMA, "nvfp4", "", Runs, "measured, InferenceX"),
    ("vllm", "b200", LLAMA, "int8", "", Refused("support_no_format"), "INT8 not on 10.0 and above (int8_w8a8.md)"),
    ("vllm@0.8", "b200", LLAMA, "", "", Refused("support_version"), "needs CUDA 12.8, first in 0.9 (vllm docs 0.9)"),
    ("vllm", "b200", LLAMA, "", "nvfp4", Runs, "sm100f (vllm issue 43562)"),
    ("vllm", "rtx-5090", OSS, "", "", Says("support_weight_only"), "MXFP4 runs in Marlin on 12.0 (vllm issue 31085)"),
    ("vllm", "rtx-5090", LLAMA, "nvfp4", "", Runs, "starts on RTX 5090 (vllm recipes PR 810)"),
    ("vllm", "dgx-spark", LLAMA, "nvfp4", "", Says("support_weight_only"), "no sm_121 code in builds: Marlin (vllm issue 50925)"),
    ("vllm", "dgx-spark", LLAMA, "fp8", "", Says("support_format_unknown"), "no source says how"),
    ("vllm", "jetson-thor", LLAMA, "nvfp4", "", Says("support_weight_only"), "careful reading of start-up notes"),
    ("vllm", "vr200", LLAMA, "", "", Says("support_unknown"), "no page lists Rubin"),
    ("vllm", "mi210", LLAMA, "", "", Runs, "MI200 series is listed (vllm docs, ROCm)"),
    ("vllm", "mi300x", LLAMA, "fp8", "", Runs, "measured, arXiv 2603.10031"),
    ("vllm", "mi300x", LLAMA, "int8", "", Refused("support_no_format"), "table: INT8 not on AMD"),
    ("vllm", "mi300x", OSS, "", "", Says("support_emulated"), "CDNA3 has no FP4 units (quark.md)"),
    ("vllm", "mi300x", LLAMA, "int4", "", Says("support_format_unknown"), "tables say no, code has paths"),
    ("vllm", "mi355x", OSS, "", "", Runs, "MXFP4 is native on CDNA4 (quark.md)"),
    ("vllm@0.10", "mi355x", LLAMA, "", "", Refused("support_version"), "on the page of 0.11, not of 0.9"),
    ("vllm", "rx-7900-xtx", LLAMA, "", "", Runs, "RX 7900 series is listed (vllm docs, ROCm)"),
    ("vllm", "rx-6900-xt", LLAMA, "", "", Says("support_unknown"), "not on the list; the build list names gfx1030"),
    ("vllm", "tpu-v6e", LLAMA, "", "", Says("support_via"), "by the plugin tpu-inference"),
    ("vllm", "tpu-v5p", LLAMA, "", "", Says("support_via"), "experimental, tpu-inference README"),
    ("vllm", "8xtrainium2", LLAMA, "", "", Says("support_via"), "vllm-neuron, beta"),
    ("vllm", "trainium2", LLAMA, "int4", "", Refused("support_no_format"), "compressed weights are rejected (vllm-neuron guide)"),
    ("vllm", "gaudi3", LLAMA, "", "", Says("support_via"), "vllm-gaudi"),
    ("vllm", "gaudi2", LLAMA, "", "", Says("support_via"), "vllm-gaudi, compatibility matrix"),
    ("vllm", "inferentia2", LLAMA, "", "", Says("support_via"), "vllm-neuron, README for 0.11"),
    ("vllm", "ascend-910c", LLAMA, "", "", Says("support_via"), "vllm-ascend, installation page (Atlas A3)"),
    ("vllm", "mi350x", LLAMA, "fp8", "", Runs, "gfx950 is listed (vllm docs, ROCm)"),
    ("vllm", "mi250x", LLAMA, "", "", Runs, "MI200 series is listed (vllm docs, ROCm)"),
    ("vllm", "l20", LLAMA, "fp8", "", Runs, "FP8 is native on Ada (vllm docs, fp8)"),
    ("sglang", "gaudi2", LLAMA, "", "", Refused("support_none"), "not on the list of platforms"),
    ("vllm", "arc-a770", LLAMA, "fp8", "", Refused("support_no_format"), "table: FP8 not on Intel GPUs"),
    ("vllm", "apple-m4-max", LLAMA, "mlx-4bit", "", Says("support_via"), "vllm-metal"),
    // SGLang.
    ("sglang", "tesla-p40", LLAMA, "", "", Refused("support_none"), "FlashInfer needs 7.5 (install.md)"),
    ("sglang", "2xv100", LLAMA, "", "", Says("support_unknown"), "nothing says that Triton serves a V100"),
    ("sglang", "a100-80gb", LLAMA, "fp8", "", Says("weights_expanded"), "weight-only in Marlin, log of an A100"),
    ("sglang", "8xa100-80gb", V4, "int4", "", Refused("support_no_attention"), "gated to 9.0, 10.x, 12.0 (sglang PR 40566)"),
    ("sglang", "h200", LLAMA, "fp8", "", Runs, "measured, InferenceX"),
    ("sglang", "h200", LLAMA, "nvfp4", "", Says("support_format_unknown"), "page says Blackwell only, PR 19652 is merged"),
    ("sglang", "b200", LLAMA, "nvfp4", "", Runs, "measured, InferenceX"),
    ("sglang", "mi300x", LLAMA, "fp8", "", Runs, "measured, InferenceX"),
    ("sglang", "mi300x", LLAMA, "q4_k_m", "", Refused("support_no_format"), "GGUF not on AMD (quantization page)"),
    ("sglang", "8xtpu-v6e", V3, "fp8", "", Refused("support_no_attention"), "no latent attention (platforms/tpu.md)"),
    ("sglang", "tpu-v5e", LLAMA, "", "", Refused("support_none"), "sglang-jax lists v6e and v7 only"),
    ("sglang", "gaudi3", LLAMA, "", "", Refused("support_none"), "not on the list of platforms"),
    // TensorRT-LLM.
    ("trtllm", "tpu-v6e", LLAMA, "", "", Refused("support_none"), "NVIDIA only (support matrix)"),
    ("trtllm", "mi300x", LLAMA, "", "", Refused("support_none"), "NVIDIA only (support matrix)"),
    ("trtllm", "apple-m4-max", LLAMA, "", "", Refused("support_none"), "NVIDIA only (support matrix)"),
    ("trtllm", "2xv100", LLAMA, "", "", Refused("support_version"), "gone in the matrix of 0.18.2"),
    ("trtllm-0.9", "2xv100", LLAMA, "", "", Says("support_cast"), "listed with TensorRT 10.3"),
    ("trtllm", "a100-80gb", LLAMA, "fp8", "", Refused("support_no_format"), "FP8 not on Ampere (quantization table)"),
    ("trtllm", "l40s", OSS, "", "", Refused("support_no_format"), "WFP4A16 MoE is unsupported on SM89 (issue 6717)"),
    ("trtllm", "h200", LLAMA, "fp8", "", Runs, "measured, InferenceX"),
    ("trtllm", "b200", LLAMA, "int4", "", Refused("support_no_format"), "AWQ and GPTQ columns empty for 10.x"),
    ("trtllm-0.10", "b200", LLAMA, "", "", Refused("support_version"), "from 0.20"),
    ("trtllm", "jetson-thor", LLAMA, "", "", Refused("support_none"), "the edge product is another engine"),
    ("trtllm", "vr200", LLAMA, "", "", Says("support_unknown"), "no page lists Rubin"),
    // llama.cpp and others.
    ("llamacpp", "apple-m4-max", LLAMA, "q4_k_m", "", Runs, "Metal, measured (discussion 4167)"),
    ("llamacpp", "apple-m4-max", LLAMA, "mlx-4bit", "", Runs, "the name stands for MLX as well"),
    ("llamacpp", "rtx-4090", LLAMA, "mlx-4bit", "", Refused("support_no_format"), "MLX runs on Apple chips only"),
    ("llamacpp", "rtx-4090", LLAMA, "fp8", "", Refused("support_no_format"), "no such file type"),
    ("llamacpp", "tpu-v6e", LLAMA, "q4_k_m", "", Refused("support_none"), "no backend in the table"),
    ("llamacpp", "mi300x", LLAMA, "q4_k_m", "", Runs, "HIP, Vulkan"),
    ("torch", "h200", LLAMA, "", "", Runs, "our engine file was measured there"),
    ("torch", "mi300x", LLAMA, "", "", Says("support_unknown"), "not looked up"),
    ("ideal", "tpu-v6e", LLAMA, "fp8", "", Runs, "a bound, no program"),
    ("ideal", "2xv100", LLAMA, "", "", Runs, "a bound, no program"),
];

fn asked(engine: &str, on: &str, model: &str, weights: &str, kv: &str) -> Request {
    let word = |word: &str| (!word.is_empty()).then(|| word.to_owned());
    let setting =
        Setting { model: model.into(), on: on.into(), weights: word(weights), kv: word(kv), ..Setting::default() };
    Request { setting, engine: engine.into(), concurrency: Some(1.0), changes: false, ..Request::default() }
}

#[test]
fn every_engine_says_of_every_family_what_its_sources_say() {
    let catalog = rackmath_catalog::embedded();
    let mut wrong = Vec::new();
    for (engine, on, model, weights, kv, is, why) in CASES {
        let case = format!("{engine} {on} {model} {weights} {kv}: {is:?}, because {why}");
        let request = asked(engine, on, model, weights, kv);
        let a = match estimate::answer(&catalog, &request) {
            Ok(a) => a,
            Err(error) => {
                wrong.push(format!("{case}: {error}"));
                continue;
            }
        };
        let told: Vec<&str> = a.assumptions.iter().map(|r| &*r.says).filter(|s| s.starts_with("support_")).collect();
        let problem = a.problem.as_ref().map(|p| &*p.what.says);
        let refused = problem.filter(|p| p.starts_with("support_"));
        let holds = match is {
            Runs => refused.is_none() && told.is_empty(),
            Says(id) => refused.is_none() && a.assumptions.iter().any(|r| r.says == *id),
            Refused(id) => refused == Some(*id) && a.served.is_none(),
        };
        if !holds {
            wrong.push(format!("{case}: {problem:?}, {told:?}"));
        }
        if matches!(is, Refused(_)) {
            // Computed all the same when asked to, and marked; every no has its source.
            let pretended = estimate::answer(&catalog, &Request { pretend: true, ..request }).unwrap();
            let marked = pretended.pretended.is_some_and(|r| r.says == "not_existing");
            let cited = a.problem.is_some_and(|p| p.what.with.contains_key("source") && p.first_change.is_some());
            if !marked || !cited {
                wrong.push(format!("{case}: pretended {marked}, cited {cited}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

/// Model, its positions, engine, and what the engine prints.
const CONTEXTS: [(&str, f64, &str, &str); 6] = [
    ("qwen3-32b", 40_960.0, "vllm", "max_model_len (40961) is greater"),
    ("qwen3-32b", 40_960.0, "sglang", "context_length (40961) is greater"),
    ("qwen3-32b", 40_960.0, "trtllm", "max_seq_len=40961 is larger"),
    ("llama-2-70b", 4096.0, "vllm", "max_position_embeddings=4096"),
    ("llama-2-7b", 4096.0, "llamacpp", "training context of the model (4096)"),
    ("deepseek-v3", 163_840.0, "vllm", "max_position_embeddings=163840"),
];

#[test]
fn a_request_longer_than_the_model_is_not_possible_and_one_as_long_is() {
    let catalog = rackmath_catalog::embedded();
    for (model, most, engine, prints) in CONTEXTS {
        let weights = if engine == "llamacpp" { "q4_k_m" } else { "" };
        let of = |tokens: f64| Request { isl: tokens - 10.0, osl: 10.0, ..asked(engine, "8xh200", model, weights, "") };
        let within = estimate::answer(&catalog, &of(most)).unwrap();
        assert!(within.served.is_some(), "{model} {engine}: {:?}", within.problem);
        let beyond = estimate::answer(&catalog, &of(most + 1.0)).unwrap();
        let what = beyond.problem.unwrap().what;
        assert_eq!((&*what.says, beyond.served), ("context_too_long", None));
        assert!(format!("{what:?}").contains(prints), "{what:?}");
        let pretended = estimate::answer(&catalog, &Request { pretend: true, ..of(most + 1.0) }).unwrap();
        assert!(pretended.served.is_some() && pretended.pretended.is_some());
    }
}

fn planned(engines: &[&str], on: &str, change: impl Fn(&mut plan::Request)) -> plan::Answer {
    let mut request = plan::Request {
        setting: Setting { model: QWEN.into(), on: on.into(), ..Setting::default() },
        engines: engines.iter().map(|e| (*e).to_owned()).collect(),
        disaggregated: false,
        ..plan::Request::default()
    };
    change(&mut request);
    plan::answer_on(&rackmath_catalog::embedded(), &request, 1).unwrap()
}

#[test]
fn a_plan_leaves_out_what_does_not_run_and_says_so() {
    let said = |all: &[Remark], id: &str| all.iter().any(|r| r.says == id);
    // Nothing runs: an answer without plans, with the reason and what would do.
    let none = planned(&["trtllm"], "8xmi300x", |_| ());
    assert!(none.plans.is_empty() && none.configurations == 0);
    assert_eq!(none.verdict.says, "not_possible");
    let why = |verdict: &Remark| serde_json::to_value(verdict).unwrap()["why"]["says"].clone();
    assert_eq!(why(&none.verdict), "support_none");
    assert!(said(&none.because, "would_do"), "{:?}", none.because);
    // One of two runs: the plan is that of the one alone, and the other is named as left out.
    let both = planned(&["trtllm", "vllm"], "8xmi300x", |_| ());
    let one = planned(&["vllm"], "8xmi300x", |_| ());
    assert_eq!(both.plans[0].usd_per_mtok, one.plans[0].usd_per_mtok);
    assert!(said(&both.assumptions, "left_out"));
    // Pretended: planned, marked, and not handed over.
    let pretended = planned(&["trtllm"], "8xmi300x", |r| {
        r.pretend = true;
        r.handover = Some(plan::HandoverRequest::default());
    });
    assert!(pretended.plans[0].pretended.is_some() && pretended.plans[0].handover.is_none());
    assert!(said(&pretended.assumptions, "not_existing"));
    // Too long for the model.
    let long = planned(&["vllm"], "8xh200", |r| r.isl = Some(50_000.0));
    assert!(long.plans.is_empty());
    assert_eq!(why(&long.verdict), "context_too_long");
}

/// Engine, machine, model, degrees of tp, pp, dp, ep; whether it is cut like that there; why.
type Cut = (&'static str, &'static str, &'static str, [u64; 4], bool, &'static str);

#[rustfmt::skip]
const CUTS: &[Cut] = &[
    ("vllm", "8xh100", LLAMA, [2, 2, 1, 1], true, "tensor and pipeline (vllm docs)"),
    ("vllm", "8xh100", MOE, [1, 1, 8, 8], true, "data and expert (vllm docs)"),
    ("vllm", "8xtpu-v6e", LLAMA, [8, 1, 1, 1], true, "tensor passes (tpu-inference parallelism.md)"),
    ("vllm", "8xtpu-v6e", MOE, [8, 1, 1, 8], true, "expert passes (tpu-inference parallelism.md)"),
    ("vllm", "8xtpu-v6e", LLAMA, [1, 2, 1, 1], false, "pipeline fails (tpu-inference parallelism.md)"),
    ("vllm", "8xtpu-v6e", MOE, [1, 1, 8, 8], false, "data fails (tpu-inference parallelism.md)"),
    ("vllm", "4xtrainium2", LLAMA, [1, 2, 1, 1], false, "no pipeline (vllm-neuron, Qwen3-32B recipe)"),
    ("sglang", "8xh100", MOE, [1, 1, 8, 8], true, "data-parallel attention and experts (sglang docs)"),
    ("sglang", "8xtpu-v6e", MOE, [1, 1, 8, 8], false, "data-parallel attention in development (sglang docs, TPU)"),
    ("llamacpp", "8xh100", LLAMA, [1, 4, 1, 1], true, "layer split (llama.cpp multi-gpu.md)"),
    ("llamacpp", "8xh100", MOE, [1, 1, 8, 8], false, "no expert or data parallel (llama.cpp multi-gpu.md)"),
];
const MOE: &str = "qwen3-30b-a3b";

#[test]
fn engines_are_cut_as_their_documents_say_and_plans_try_nothing_else() {
    let catalog = rackmath_catalog::embedded();
    for (engine, on, model, [tp, pp, dp, ep], cut, why) in CUTS {
        let setting = Setting { model: (*model).into(), on: (*on).into(), ..Setting::default() };
        let degrees = rackmath::layout::DegreesRequest {
            tp: Some(*tp),
            pp: Some(*pp),
            dp: Some(*dp),
            ep: Some(*ep),
            ..Default::default()
        };
        let request = Request { setting, degrees, engine: (*engine).into(), changes: false, ..Request::default() };
        let answer = estimate::answer(&catalog, &request).unwrap_or_else(|e| panic!("{engine} on {on}: {e}"));
        let refused = format!("{answer:?}").contains("support_no_parallel");
        assert_eq!(refused, !cut, "{engine} on {on}, {tp} {pp} {dp} {ep}: {why}");
    }
    // A layout that nobody chose is one that runs, and a plan has no others.
    let setting = Setting { model: MOE.into(), on: "8xtpu-v6e".into(), ..Setting::default() };
    let usual = Request { setting: setting.clone(), changes: false, ..Request::default() };
    assert!(!format!("{:?}", estimate::answer(&catalog, &usual).unwrap()).contains("support_no_parallel"));
    let planned = plan::Request { setting, top: 100, disaggregated: false, ..plan::Request::default() };
    let tpu = plan::answer_on(&catalog, &planned, 1).unwrap();
    assert!(tpu.plans.iter().all(|p| !p.layout.contains("pp") && !p.layout.contains("dp")), "{:?}", tpu.plans);
    let pretended = plan::answer_on(&catalog, &plan::Request { pretend: true, ..planned }, 1).unwrap();
    assert!(pretended.layouts > tpu.layouts);
}

#[test]
fn when_layout_and_simulate_answer_that_it_is_not_possible() {
    let catalog = rackmath_catalog::embedded();
    let on = |on: &str| Setting { model: LLAMA.into(), on: on.into(), ..Setting::default() };
    let asked = rackmath::when::Request { setting: on("tpu-v6e"), engine: "trtllm".into(), ..Default::default() };
    let a = rackmath::when::answer(&catalog, &asked).unwrap();
    assert!(a.regimes.is_empty() && a.from.is_none() && a.refused.len() == 2, "{a:?}");
    let pretend = rackmath::when::Request { pretend: true, ..asked };
    assert!(!rackmath::when::answer(&catalog, &pretend).unwrap().regimes.is_empty());
    // Llama 3.1 has 131,072 positions.
    let long = rackmath::when::Request { setting: on("h100"), context: 131_073.0, ..Default::default() };
    assert!(rackmath::when::answer(&catalog, &long).unwrap().regimes.is_empty());
    let grows = rackmath::when::Request {
        setting: on("h100"),
        over: rackmath::when::Over::Context,
        batch: 1.0,
        ..Default::default()
    };
    assert_eq!(rackmath::when::answer(&catalog, &grows).unwrap().most, 131_072.0);
    let long = rackmath::layout::Request { setting: on("8xh100"), context: 131_073.0, ..Default::default() };
    let a = rackmath::layout::answer(&catalog, &long).unwrap();
    assert!(!a.fits && a.verdict.says == "not_placed");
    let amd = rackmath::layout::Request { setting: on("8xmi300x"), ..Default::default() };
    let a = rackmath::layout::answer(&catalog, &amd).unwrap();
    let of = |tool: &str| a.commands.iter().find(|c| c.tool == tool).unwrap();
    assert!(of("vllm").flags.is_some() && of("trtllm").cannot.as_ref().is_some_and(|w| w.contains("mi300x")));
    let run = rackmath::simulate::Request { setting: on("mi300x"), engine: "trtllm".into(), ..Default::default() };
    let a = rackmath::simulate::answer_on(&catalog, &run, &1.into()).unwrap();
    assert!(a.verdict.says == "not_simulated" && a.metrics.is_empty() && a.requests == 0);
}

/// Whatever is offered runs: on every chip that is sold, under every engine, with a model that fits and one that does not.
#[test]
fn every_remedy_offered_is_supported() {
    let catalog = rackmath_catalog::embedded();
    let chips: Vec<&str> = catalog.ids(rackmath_spec::Kind::Chips).filter(|id| !id.starts_with("lecture-")).collect();
    let (mut offered, mut four) = (0, 0);
    for chip in &chips {
        let fp4 = catalog.chip(chip).unwrap().peak.contains_key(&rackmath_spec::Math::Fp4);
        for engine in ["vllm", "sglang", "trtllm", "llamacpp"] {
            for model in ["llama-3.1-8b", "llama-3.1-70b"] {
                let request = Request { changes: true, ..asked(engine, chip, model, "auto", "auto") };
                let Ok(a) = estimate::answer(&catalog, &request) else { continue };
                // What the engine does not run has its nearest, which is another question.
                let barred = a.served.is_none() && a.problem.as_ref().is_some_and(|p| p.missing_bytes.is_none());
                let first = a.problem.and_then(|p| p.first_change).filter(|_| !barred);
                for what in a.changes.iter().map(|c| &c.what).chain(&first) {
                    let format = match what.with.get("format") {
                        Some(rackmath::remark::Part::Text(format)) => format.as_str(),
                        _ => "",
                    };
                    let then = match &*what.says {
                        "weights_in" => asked(engine, chip, model, format, "auto"),
                        "kv_in" => asked(engine, chip, model, "auto", format),
                        _ => continue,
                    };
                    offered += 1;
                    assert!(fp4 || !format.contains("fp4"), "{format} on {chip}, which has no such units");
                    four += u32::from(format.contains('4'));
                    let b = estimate::answer(&catalog, &then).unwrap();
                    let unknown =
                        |r: &rackmath::remark::Remark| r.says.starts_with("support_") && r.says.ends_with("unknown");
                    let refused = b.problem.as_ref().filter(|p| p.missing_bytes.is_none());
                    assert!(refused.is_none(), "{engine} {chip} {model} {format}: {refused:?}");
                    assert!(
                        !b.assumptions.iter().any(unknown),
                        "{engine} {chip} {model} {format}: {:?}",
                        b.assumptions
                    );
                }
            }
        }
    }
    assert!(offered > 100 && four > 10, "{offered} {four}");
}

/// A version newer than any that was compared is said so by every question, from one place.
#[test]
fn every_question_says_that_a_version_was_never_looked_at() {
    use rackmath::ask::{Question, Terms};
    let catalog = rackmath_catalog::embedded();
    let setting = serde_json::json!({ "model": "llama-3.1-8b", "on": "h100" });
    for (question, request) in [
        (Question::Estimate, serde_json::json!({ "setting": setting, "engine": "vllm@0.99" })),
        (Question::When, serde_json::json!({ "setting": setting, "engine": "vllm@0.99" })),
        (
            Question::Simulate,
            serde_json::json!({ "setting": setting, "engine": "vllm@0.99", "traffic": { "rate_per_s": 1.0, "requests": 50 } }),
        ),
        (Question::Plan, serde_json::json!({ "setting": setting, "engines": ["vllm@0.99"], "rate_per_s": 2.0 })),
        (
            Question::Compare,
            serde_json::json!({ "plan": { "setting": setting, "engines": ["vllm@0.99"] }, "systems": ["h100", "h200"] }),
        ),
        (Question::Cost, serde_json::json!({ "setting": setting, "rates": { "engine": "vllm@0.99" } })),
    ] {
        let request = request.as_object().unwrap().clone();
        let reply =
            question.answer(&catalog, request, &Terms::default()).unwrap_or_else(|e| panic!("{question:?}: {e}"));
        let text = serde_json::to_string(&reply).unwrap();
        assert!(text.contains("version_not_covered") && text.contains("0.25"), "{question:?}");
    }
}
