//! What a server's command line says of an estimate: its engine, formats, layout and schedule.

use super::Request;
use crate::desk::line;
use crate::desk::prelude::*;
use crate::layout::DegreesRequest;
use rackmath_spec::line::{Launch, Means};

/// The request as a command line beside it says, with what became of its flags; none where there is nothing to obey.
pub(crate) fn obeyed(catalog: &Catalog, request: &Request) -> Result<Option<(Request, Vec<Remark>)>, Error> {
    let text = match (&request.flags, &request.tool) {
        (Some(text), _) => text.as_str(),
        (None, Some(_)) => "--help",
        (None, None) => return Ok(None),
    };
    let Some((launch, engine)) = line::beside(catalog, text, request.tool.as_deref(), &request.engine)? else {
        return Ok(None);
    };
    if request.flags.is_none() {
        return Ok(Some((Request { engine, tool: None, ..request.clone() }, Vec::new())));
    }
    let own = request.degrees != DegreesRequest::default();
    let both = "the layout in {flags} or in degrees of its own, not both";
    refuse_if(own && launch.cut, "flags", format!("{} beside other degrees", launch.layout), both)?;
    let mut said = line::remarks(&launch, line::of_start);
    let mut r = Request { engine, flags: None, tool: None, ..request.clone() };
    if !own {
        r.degrees = line::degrees(&launch);
    }
    let (pass, sequences) = line::of_group(&launch);
    let usual = Setting::default();
    match &launch.model {
        Some(model) if r.setting.model == usual.model => r.setting.model.clone_from(model),
        Some(model) if *model != r.setting.model => {
            said.insert(0, says("flags_other_model").with("line", model).with("asked", &r.setting.model));
        }
        _ => {}
    }
    line::formats(&launch, &mut r.setting)?;
    r.offload = line::offloaded(&launch, &r.offload)?;
    if let Some((loras, lora_rank)) = launch.start.adapters {
        let own = r.loras.as_ref().map(|own| (own.loras, own.lora_rank));
        let adapters = [Means::Lora, Means::MostLoras, Means::LoraRank];
        line::either(&launch, &adapters, "loras.loras", own, Some((loras, lora_rank)))?;
        let sharded = launch.flags.iter().any(|f| f.flag.contains("fully-sharded-loras"));
        let own = || super::Loras { loras, lora_rank, fully_sharded_loras: sharded, ..Default::default() };
        r.loras.get_or_insert_with(own);
    }
    let taken = launch.start.utilisation.map(Fraction::get);
    let (own, memory) = ([r.max_num_batched_tokens, r.max_num_seqs], r.memory_utilisation);
    r.max_num_batched_tokens = line::either(&launch, &[Means::Pass], "max_num_batched_tokens", own[0], pass)?;
    r.max_num_seqs = line::either(&launch, &[Means::Sequences], "max_num_seqs", own[1], sequences)?;
    r.memory_utilisation = line::either(&launch, &[Means::Utilisation], "memory_utilisation", memory, taken)?;
    r.enforce_eager |= launch.start.eager;
    if launch.start.prefix_cache == Some(false) && r.prefix_hit > 0.0 {
        said.push(says("flags_no_prefixes").with("share", r.prefix_hit));
        r.prefix_hit = 0.0;
    }
    drafted(&launch, &mut r, &mut said)?;
    if let Some(longest) = launch.start.longest.filter(|n| r.isl + r.osl > *n as f64) {
        let given = format!("{} tokens in and out", grouped(r.isl + r.osl));
        return Err(Error::value(
            "isl",
            given,
            format!("at most {} in and out, as the line says", grouped(longest as f64)),
        ));
    }
    Ok(Some((r, said)))
}

/// Drafts as the line has them. How often they hold is what was published of who drafts them, where that is known.
fn drafted(launch: &Launch, r: &mut Request, said: &mut Vec<Remark>) -> Result<(), Error> {
    let start = &launch.start;
    let Some(drafts) = start.drafts.filter(|n| *n > 0) else { return Ok(()) };
    let number = super::Drafts::Number(drafts as f64);
    // The usual number is as good as none.
    let own = r.speculation.as_ref().map(|own| own.drafts).filter(|own| *own != super::Speculation::default().drafts);
    line::either(launch, &[Means::Drafts], "speculation.drafts", own, Some(number))?;
    // A checkpoint of a head is named by its model; the method says what it is.
    let head = start.method.clone().filter(|method| method != "draft_model");
    match (&mut r.speculation, head.or_else(|| start.drafter.clone())) {
        (Some(speculation), _) => speculation.drafts = number,
        (none @ None, Some(drafter)) => {
            *none = Some(super::Speculation { drafts: number, drafter: Some(drafter), ..Default::default() });
        }
        (None, _) => said.push(says("flags_no_acceptance").with("drafts", drafts)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_flags(flags: &str) -> (Request, Vec<String>) {
        let request = Request { flags: Some(flags.to_owned()), ..Request::default() };
        let (asked, said) = obeyed(&rackmath_catalog::embedded(), &request).expect("a line").expect("flags");
        (asked, said.into_iter().map(|r| r.says.to_string()).collect())
    }

    /// What a line sets is what the option of that name sets.
    #[test]
    fn a_flag_is_its_own_option() {
        let (r, said) = with_flags("vllm serve x --cpu-offload-gb 4 --enable-lora --max-loras 4 --max-lora-rank 64");
        assert_eq!(r.offload.cpu_offload_gb, Some(4.0));
        assert_eq!(r.loras.map(|l| (l.loras, l.lora_rank)), Some((4, 64)));
        assert!(said.iter().any(|id| id == "flags_obeyed") && said.iter().all(|id| id != "flags_aside"), "{said:?}");
        let (r, _) = with_flags(r#"vllm serve x --speculative-config '{"method":"ngram","num_speculative_tokens":4}'"#);
        let s = r.speculation.expect("drafts");
        assert_eq!((s.drafter.as_deref(), s.drafts), (Some("ngram"), super::super::Drafts::Number(4.0)));
        let (r, _) = with_flags("llama-server -m x.gguf -ngl 40 --n-cpu-moe 3 --tensor-split 3,1");
        let o = r.offload;
        assert_eq!((o.gpu_layers, o.n_cpu_moe, o.tensor_split), (Some(40), Some(3), Some(vec![3.0, 1.0])));
        let (r, _) = with_flags("llama-server -m x.gguf -ngl all --cpu-moe");
        assert_eq!((r.offload.gpu_layers, r.offload.cpu_moe), (None, true));
    }

    /// Both cannot be obeyed: whichever were taken, the other would be called obeyed and not be.
    #[test]
    fn an_option_that_a_flag_contradicts_is_refused() {
        let catalog = rackmath_catalog::embedded();
        let base = |flags: &str| Request { flags: Some(flags.to_owned()), ..Request::default() };
        let weights = |word: &str, flags| {
            let setting = Setting { weights: Some(word.into()), ..Setting::default() };
            Request { setting, ..base(flags) }
        };
        let offload = |o: crate::offload::Offloaded, flags| Request { offload: o, ..base(flags) };
        let none = crate::offload::Offloaded::default;
        let loras = super::super::Loras { loras: 2, ..Default::default() };
        for (request, field) in [
            (weights("fp8", "--quantization awq"), "setting.weights"),
            (
                Request {
                    setting: Setting { kv: Some("bf16".into()), ..Setting::default() },
                    ..base("--kv-cache-dtype fp8")
                },
                "setting.kv",
            ),
            (Request { max_num_seqs: Some(8.0), ..base("--max-num-seqs 16") }, "max_num_seqs"),
            (
                Request { max_num_batched_tokens: Some(8.0), ..base("--max-num-batched-tokens 16") },
                "max_num_batched_tokens",
            ),
            (Request { memory_utilisation: Some(0.8), ..base("--gpu-memory-utilization 0.9") }, "memory_utilisation"),
            (Request { loras: Some(loras), ..base("--enable-lora --max-loras 4") }, "loras.loras"),
            (
                offload(crate::offload::Offloaded { cpu_offload_gb: Some(2.0), ..none() }, "--cpu-offload-gb 4"),
                "offload.cpu_offload_gb",
            ),
            (
                offload(crate::offload::Offloaded { gpu_layers: Some(9), ..none() }, "llama-server -m x.gguf -ngl 40"),
                "offload.gpu_layers",
            ),
            (
                offload(
                    crate::offload::Offloaded { n_cpu_moe: Some(9), ..none() },
                    "llama-server -m x.gguf --n-cpu-moe 3",
                ),
                "offload.n_cpu_moe",
            ),
        ] {
            let error = obeyed(&catalog, &request).expect_err(field).to_string();
            assert!(error.contains(field), "{error}");
        }
        // What says the same twice is one thing.
        for (word, flags) in [("fp8", "--quantization fp8"), ("int4", "--quantization awq"), ("auto", "-q fp8")] {
            let (r, _) = obeyed(&catalog, &weights(word, flags)).unwrap().unwrap();
            assert_ne!(r.setting.weights.as_deref(), Some("auto"), "{flags}");
        }
    }

    #[test]
    fn what_is_left_aside_is_not_called_obeyed() {
        let (_, said) = with_flags("vllm serve x --kv-cache-memory-bytes 10G");
        assert!(said.iter().any(|id| id == "flags_aside") && said.iter().all(|id| id != "flags_obeyed"), "{said:?}");
    }
}
