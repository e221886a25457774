//! Every command that can come out keeps to the list of its tool, and a manifest is whole.

use super::*;
use proptest::prelude::*;
use rackmath_spec::layout::Degrees;
use rackmath_spec::{Dtype, Layout};
use std::sync::LazyLock;

const MODELS: [&str; 4] = ["qwen3-32b", "deepseek-v3", "gpt-oss-120b", "llama-3.1-8b"];
/// Read once: every case asks for the same.
static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);
static LISTS: LazyLock<Lists> = LazyLock::new(|| lists(&CATALOG, std::iter::empty(), true).unwrap());
static KNOWN: LazyLock<Vec<std::sync::Arc<rackmath_spec::Model>>> =
    LazyLock::new(|| MODELS.iter().map(|m| CATALOG.model(m).unwrap()).collect());

const CHIPS: [&str; 4] = ["h100-sxm", "mi300x", "mi250x", "tpu-v7"];
static MADE: LazyLock<Vec<std::sync::Arc<rackmath_spec::Chip>>> =
    LazyLock::new(|| CHIPS.iter().map(|c| CATALOG.chip(c).unwrap()).collect());

const TOOLS: [Tool; 3] = [Tool::Vllm, Tool::Sglang, Tool::TrtLlm];

prop_compose! {
    fn pool(role: Role)(tp in 0..4_u32, pp in 0..2_u32, dp in 0..5_u32, whole: bool, narrow: bool, host in prop::option::of(1.0..3e12_f64), sequences in 1.0..600.0_f64, chunk in 6..15_u32, instances in 1..6_u64) -> Option<Pool> {
        let (tp, pp, dp) = (1 << tp, 1 << pp, 1 << dp);
        let (ep, etp) = if whole { (tp * dp, 1) } else { (1, tp * dp) };
        let layout = Layout::new(Degrees { tp, pp, dp, ep, etp, ..Degrees::default() }).ok()?;
        let kv = if narrow { Dtype::Fp8 } else { Dtype::Bf16 };
        Some(Pool { role, layout, kv, sequences, chunk: f64::from(1 << chunk), memory: 0.9, context: narrow.then_some(8192), instances, host_cache: host })
    }
}

/// Checks one hand-over against the lists.
fn check(site: &Site, pools: &[Pool], h: &Handover) -> Result<(), String> {
    for c in &h.commands {
        let list = LISTS.get(&c.flags).ok_or_else(|| format!("no list {}", c.flags))?;
        list.check(&c.line).map_err(|e| format!("{e}: {}", c.line))?;
    }
    let own = site.list;
    for pool in pools {
        own.check(&site.line(pool, false)).map_err(|e| e.to_string())?;
        own.check(&format!("{} m {}", own.command, site.behind(pool))).map_err(|e| e.to_string())?;
        if let Some(text) = site.config(pool) {
            own.check_keys(&text).map_err(|e| e.to_string())?;
        }
    }
    if let Some(f) = h.files.iter().find(|f| f.name == DISAGG_CONFIG) {
        LISTS["trtllm-disaggregated"].check_keys(&f.text).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// What a manifest says without a parser: documents with their three heads, chips that add up, names that meet.
fn whole(site: &Site, pools: &[Pool], text: &str) -> Result<(), String> {
    if text.contains('\t') || text.lines().any(|l| l.ends_with(' ') || (l.len() - l.trim_start().len()) % 2 == 1) {
        return Err("odd blanks".into());
    }
    let documents: Vec<&str> = text.split("---\n").skip(1).collect();
    if documents.iter().any(|d| !d.starts_with("apiVersion: ") || !d.contains("\nkind: ") || !d.contains("\n  name: "))
    {
        return Err("a document without its head".into());
    }
    let number = |d: &str, key: &str| {
        d.lines().find_map(|l| l.trim().strip_prefix(key)?.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let sets = || documents.iter().filter(|d| d.contains("kind: StatefulSet"));
    let device = match site.chip.vendor.as_str() {
        "AMD" => "amd.com/gpu:",
        "Google" => "google.com/tpu:",
        _ => "nvidia.com/gpu:",
    };
    let asked: u64 = sets().map(|d| number(d, "replicas:") * number(d, device)).sum();
    let spans = |p: &&Pool| site.tool == Tool::TrtLlm && site.hosts(p) > 1;
    let wanted: u64 =
        pools.iter().filter(|p| !spans(p)).map(|p| p.instances * site.chips_on_host(p) * site.hosts(p)).sum();
    if asked != wanted {
        return Err(format!("{asked} chips asked for, {wanted} wanted"));
    }
    for pool in pools.iter().filter(|p| !spans(p)) {
        for host in site.addresses(pool) {
            let service = host.split_once('.').map_or("", |(_, service)| service);
            if !text.contains(&format!("kind: Service\nmetadata:\n  name: {service}\n")) {
                return Err(format!("no service for {host}"));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn every_flag_is_in_its_list(
        model in 0..4_usize, tool in 0..3_usize, split: bool, serve in pool(Role::Serve), prefill in pool(Role::Prefill),
        decode in pool(Role::Decode), drafts in 0..5_u8, cached in prop::option::of(0.0..1.0_f64), fp8: bool,
        host in 0..2_usize, rate in prop::option::of(0.01..1e4_f64), deviation in prop::option::of(1.0..5e3_f64),
        target in prop::option::of(1.0..5e3_f64), replay: bool, chip in 0..4_usize,
    ) {
        let model = &KNOWN[model];
        let own = model.formats();
        let formats = if fp8 { rackmath_spec::model::Formats { linear: Dtype::Fp8, mixer: Dtype::Fp8, ..own } } else { own };
        let site = Site {
            model, tool: TOOLS[tool], list: &LISTS[&TOOLS[tool].to_string()], formats, cached: cached.unwrap_or(0.0), drafts: drafts.into(),
            longest: 5000.5, chip: &MADE[chip], newest: None, per_host: [4, 8][host],
        };
        let pools: Vec<Pool> = if split { [prefill, decode].into_iter().flatten().collect() } else { serve.into_iter().collect() };
        prop_assume!(!pools.is_empty() && (!split || pools.len() == 2));
        prop_assume!(pools.iter().all(|p| rackmath_spec::file::flags::print(site.tool, &p.layout).is_ok()));
        let aim = Aim {
            input: (4000.0, deviation.unwrap_or(0.0)), output: (500.0, deviation.unwrap_or(0.0) / 4.0), rate,
            concurrency: 37.5, ttft_ms: 300.0, tpot_ms: 20.0, targets: (target, target), replay: replay.then(|| "a b.jsonl".into()),
        };
        let h = handover(&site, &pools, &aim, &LISTS);
        prop_assert_eq!(check(&site, &pools, &h), Ok(()));
        let manifest = &h.files.iter().find(|f| f.name == "kubernetes.yaml").unwrap().text;
        prop_assert_eq!(whole(&site, &pools, manifest), Ok(()), "{}", manifest);
    }
}

#[test]
fn the_layout_a_command_starts_is_the_layout_planned() {
    let model = &KNOWN[1];
    let layout = Layout::new(Degrees { dp: 8, ep: 8, etp: 1, ..Degrees::default() }).unwrap();
    for tool in [Tool::Vllm, Tool::Sglang] {
        let (list, formats, chip, newest) = (&LISTS[&tool.to_string()], model.formats(), &MADE[1], None);
        let site =
            Site { model, tool, list, formats, cached: 0.0, drafts: 2.0, longest: 1e3, chip, newest, per_host: 8 };
        let (role, kv, memory) = (Role::Serve, Dtype::Bf16, 0.9);
        let pool = Pool {
            role,
            layout,
            kv,
            sequences: 64.0,
            chunk: 2048.0,
            memory,
            context: None,
            instances: 1,
            host_cache: None,
        };
        let line = site.line(&pool, true);
        assert_eq!(rackmath_spec::file::flags::read(tool, &line).unwrap(), layout, "{line}");
        // The engine divides its chunk by 8, and drafts for itself.
        let own = if tool == Tool::Sglang { "--chunked-prefill-size 16384" } else { "\"method\":\"mtp\"" };
        assert!(line.contains(own), "{line}");
    }
}

#[test]
fn other_makers_chips_get_their_image_their_variables_and_their_devices() {
    let (model, tp) = (&KNOWN[0], |tp: u64| Layout::new(Degrees { tp, etp: tp, ..Degrees::default() }).unwrap());
    let said = |tool: Tool, chip: usize| {
        let (list, formats, chip) = (&LISTS[&tool.to_string()], model.formats(), &MADE[chip]);
        let newest = Some("0.25".parse().unwrap());
        let site =
            Site { model, tool, list, formats, cached: 0.0, drafts: 0.0, longest: 1e3, chip, newest, per_host: 8 };
        let (role, kv, memory) = (Role::Serve, Dtype::Bf16, 0.9);
        let pool = Pool {
            role,
            layout: tp(4),
            kv,
            sequences: 64.0,
            chunk: 2048.0,
            memory,
            context: None,
            instances: 1,
            host_cache: None,
        };
        let aim = Aim {
            input: (4000.0, 0.0),
            output: (500.0, 0.0),
            rate: None,
            concurrency: 64.0,
            ttft_ms: 300.0,
            tpot_ms: 20.0,
            targets: (None, None),
            replay: None,
        };
        let h = handover(&site, &[pool], &aim, &LISTS);
        let file = |name: &str| h.files.iter().find(|f| f.name == name).unwrap().text.clone();
        (h.commands[0].line.clone(), file("serve-serve.sh"), file("kubernetes.yaml"), h.notes.join("\n"))
    };
    let (line, script, manifest, notes) = said(Tool::Vllm, 1);
    assert!(
        line.starts_with("VLLM_ROCM_USE_AITER=1 vllm serve ") && line.contains("--tensor-parallel-size 4"),
        "{line}"
    );
    assert!(script.contains("--device /dev/kfd --device /dev/dri rocm/vllm:"), "{script}");
    assert!(manifest.contains("- name: VLLM_ROCM_USE_AITER\n              value: \"1\"\n"), "{manifest}");
    assert!(manifest.contains("image: rocm/vllm:") && manifest.contains("exec vllm serve"), "{manifest}");
    assert!(notes.contains("AITER"), "{notes}");
    let (line, script, ..) = said(Tool::Sglang, 1);
    assert!(line.starts_with("SGLANG_USE_AITER=1 python -m sglang.launch_server "), "{line}");
    assert!(script.contains("rocm/sgl-dev:"), "{script}");
    // A package of two dies is two devices to AMD's software, and a TPU7x chip two to Google's.
    assert!(said(Tool::Vllm, 2).0.contains("--tensor-parallel-size 8"));
    let (line, script, manifest, notes) = said(Tool::Vllm, 3);
    assert!(line.starts_with("vllm serve ") && line.contains("--tensor-parallel-size 8"), "{line}");
    assert!(script.contains("--privileged --net host --shm-size=16G vllm/vllm-tpu:"), "{script}");
    assert!(manifest.contains("google.com/tpu: 4") && notes.contains("tpu-inference"), "{manifest}{notes}");
    // NVIDIA's are started as before, with a release that is newer than any whose runs were compared; AMD's image holds an older one.
    let (line, script, manifest, told) = said(Tool::Vllm, 0);
    assert!(told.contains("vLLM 0.32.0 is started, which is newer than 0.25"), "{told}");
    assert!(!said(Tool::Vllm, 1).3.contains("is started"));
    assert!(line.starts_with("vllm serve ") && !script.contains("docker run"), "{script}");
    assert!(manifest.contains("image: vllm/vllm-openai:") && !manifest.contains("AITER"), "{manifest}");
}
