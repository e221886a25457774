//! Every file of the catalogue loads, is cited, speaks the catalogue's words and answers to names of its own; a user's file is
//! read or refused with a reason.

use proptest::prelude::*;
use rackmath_spec::attention::{Heads, Wanted};
use rackmath_spec::measurement::{Measurement, Way};
use rackmath_spec::price::Ttl;
use rackmath_spec::validation::{Load, Metric, Row, Split, Table};
use rackmath_spec::{
    Brief, Catalog, Chip, Date, Dtype, IntoEnumIterator as _, Kind, LawForm, Math, MoeFormat, MoeMatch, file,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);

#[test]
fn every_chip_is_of_one_family_and_every_engine_says_what_it_runs_on() {
    let families = CATALOG.chip_families().unwrap();
    for id in CATALOG.ids(Kind::Chips) {
        let chip = CATALOG.chip(id).unwrap();
        let own = |f: &&rackmath_spec::support::ChipFamily| {
            f.chips.contains(&chip.id) || f.generations.contains(&chip.generation)
        };
        assert_eq!(families.all.iter().filter(own).count(), 1, "{id}");
    }
    for chip in families.all.iter().flat_map(|f| &f.chips) {
        CATALOG.chip(chip).unwrap_or_else(|e| panic!("{e}"));
    }
    for id in CATALOG.ids(Kind::Engines) {
        let family = &CATALOG.engine(id).unwrap().0.family;
        assert!(CATALOG.engine_support(family).unwrap().is_some(), "{family}");
    }
    // A family, a source and a format that nobody knows.
    for (from, to, says) in [
        ("\"hopper\"", "\"hoper\"", "hopper"),
        ("\"trt_quant\", fp8", "\"trt_qant\", fp8", "a key of [sources]"),
        ("\"int4\"", "\"int3\"", "int4"),
        ("runs = \"yes\"", "runs = \"perhaps\"", "yes"),
    ] {
        let text = CATALOG.files(Kind::Support).find(|(id, _)| *id == "trtllm").unwrap().1.replacen(from, to, 1);
        let error = CATALOG.clone().add(Kind::Support, "trtllm", &text, None).unwrap_err().to_string();
        assert!(error.contains(says), "{to}: {error}");
    }
}

#[test]
fn the_chips_and_systems_people_ask_for_are_there() {
    let chips = "a100-40gb a100-80gb a100_sxm h100 h100_sxm h100_pcie h200_sxm h20 h800 b200_sxm b300_sxm gb200 gb300 vr200 \
                 mi300x mi325x mi355x tpu-v5e tpu-v5p tpu-v6e tpu-v7 trainium2 gaudi3 l40s rtx-4090 rtx-5090 \
                 rtx-pro-6000 dgx-spark apple-m3-ultra apple-m4-max mi250 mi250x mi350x gaudi2 gaudi-2 inferentia2 inf2 \
                 tpu-8t tpu-8i maia-200 ascend-910c groq-lpu l20";
    for name in chips.split(' ') {
        CATALOG.chip(name).unwrap_or_else(|e| panic!("{e}"));
    }
    for name in ["gb200_nvl72", "gb300-nvl72", "vr-nvl144", "hgx-h100", "8xh200", "h200x8", "b200"] {
        CATALOG.system(name).unwrap_or_else(|e| panic!("{e}"));
    }
    for name in
        ["8xmi350x", "8xgaudi2", "inf2.48xlarge", "cloudmatrix384", "tpu-8t-9600", "tpu-8i-1152", "maia-200-6144"]
    {
        CATALOG.system(name).unwrap_or_else(|e| panic!("{e}"));
    }
    // Eight H20 on a board are joined by NVLink at 900 GB/s both ways; one alone has no link to another.
    let (board, alone) = (CATALOG.system("hgx-h20").unwrap(), CATALOG.system("h20").unwrap());
    assert_eq!((board.n_chips, alone.n_chips), (8, 1));
    assert_eq!(board.levels[0].bandwidth.value.get(), 450e9);
    assert_eq!(CATALOG.system("8xh20").unwrap().levels[0].chips, 8);
    let rubin = CATALOG.system("vr-nvl144").unwrap();
    assert_eq!((rubin.n_chips, rubin.dies()), (72, 144), "the name counts dies");
    // Machines on desks answer to the names benchmarks give them.
    for (name, id) in [
        ("Apple M1 7-core GPU", "apple-m1-7c"),
        ("Apple M1 7-Core GPU 8GB", "apple-m1-7c"),
        ("Apple M1 8-core GPU", "apple-m1"),
        ("Apple M1 Max 64GB", "apple-m1-max"),
        ("Apple M2 Max 30-core GPU 32GB", "apple-m2-max-30c"),
        ("Apple M2 Ultra 76-Core GPU 192GB", "apple-m2-ultra"),
        ("Apple M2 Ultra 192GB", "apple-m2-ultra"),
        ("M3 Max 40-Core GPU 64GB", "apple-m3-max"),
        ("Apple M4 Pro 20-core GPU", "apple-m4-pro"),
        ("3090 24GB", "rtx-3090"),
        ("RTX 4090 24GB", "rtx-4090"),
        ("4070 Ti 12GB", "rtx-4070-ti"),
        ("NVIDIA GeForce RTX 5060 Ti", "rtx-5060-ti"),
        ("RTX 5000 Ada 32GB", "rtx-5000-ada"),
        ("AMD Radeon RX 7900 XTX", "rx-7900-xtx"),
        ("Intel Arc A770", "arc-a770"),
        ("Ryzen AI Max+ 395", "strix-halo"),
    ] {
        assert_eq!(CATALOG.chip(name).unwrap_or_else(|e| panic!("{e}")).id, id, "{name}");
    }
    // One that is sold with several memories has the one its name states; without one, that of its file.
    for (name, id, gib) in [
        ("m4-max", "apple-m4-max", 107.52_f64),
        ("m4-max-64gb", "apple-m4-max", 51.84),
        ("Apple M4 Max 64GB", "apple-m4-max", 51.84),
        ("mac studio m3 ultra", "apple-m3-ultra", 464.0),
        ("Mac Studio M3 Ultra 256 GB", "apple-m3-ultra", 222.72),
        ("m3-ultra-512gb", "apple-m3-ultra", 464.0),
        ("MacBook Pro M4 Pro 48GB", "apple-m4-pro", 37.44),
    ] {
        let (chip, system) = (CATALOG.chip(name).unwrap(), CATALOG.system(name).unwrap());
        assert_eq!(
            (chip.id.as_str(), (chip.memory.seen().get() / 1024_f64.powi(3)).round()),
            (id, gib.round()),
            "{name}"
        );
        assert_eq!(system.chip, chip, "{name}");
    }
    assert_eq!(CATALOG.system("m4-max-64gb").unwrap().id, "apple-m4-max-64gb", "not the same machine as the largest");
    assert!(CATALOG.system("m4-max-100gb").is_err(), "nobody sells it");
    assert_eq!(CATALOG.system("rx6600").unwrap().n_chips, 1, "not 6600 of a chip called r");
    assert_eq!(CATALOG.system("2xrtx4090").unwrap().n_chips, 2);
}

#[test]
fn what_is_said_in_brief_is_what_the_whole_file_says() {
    for id in CATALOG.ids(Kind::Systems) {
        let (brief, system) = (CATALOG.brief(id).unwrap(), CATALOG.system(id).unwrap());
        let Chip { vendor, memory, prices, .. } = &*system.chip;
        let (vendor, n_chips, priced) = (vendor.clone(), system.n_chips, !prices.is_empty());
        assert_eq!(brief, Brief { vendor, size: memory.size(), bandwidth: memory.bandwidth.value, n_chips, priced });
    }
}

#[test]
fn no_two_files_answer_to_the_same_name() {
    for kind in Kind::iter() {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for id in CATALOG.ids(kind) {
            for name in CATALOG.names(kind, id).into_iter().chain([id]) {
                let key = name.to_lowercase().replace(['_', ' '], "-");
                if let Some(other) = seen.insert(key, id).filter(|other| *other != id) {
                    panic!("{name} names both {id} and {other}");
                }
            }
        }
    }
}

#[test]
fn chips_lie_within_the_range_of_their_peers() {
    // A chip that has SRAM only is its own kind: little memory, very fast.
    let usual = |id: &&str| CATALOG.chip(id).unwrap().memory.kind != "SRAM";
    for id in CATALOG.ids(Kind::Chips).filter(usual) {
        let chip = CATALOG.chip(id).unwrap();
        // Dense 16-bit peak over bandwidth: from M1 Max with 24 of its 32 cores (19.5) to TPU v6e (560 FLOP per byte); a
        // sparse peak or a both-way bandwidth would stand out.
        let peak = chip.peak.get(&Math::Bf16).or(chip.peak.get(&Math::Fp16));
        if let Some(peak) = peak {
            // Vector units of processors reach less than tensor units.
            let least = if chip.processor { 10.0 } else { 19.0 };
            let intensity = peak.value.get() / chip.memory.bandwidth.value.get();
            // A module with data-centre tensor cores on LPDDR memory.
            let most = if id == "jetson-thor" { 950.0 } else { 600.0 };
            assert!((least..=most).contains(&intensity), "{id}: {intensity} FLOP per byte");
        }
        for pair in [(Math::Bf16, Math::Fp8), (Math::Fp8, Math::Fp4)] {
            if let (Some(wide), Some(narrow)) = (chip.peak.get(&pair.0), chip.peak.get(&pair.1)) {
                let ratio = narrow.value / wide.value;
                assert!((0.99..=4.5).contains(&ratio), "{id}: {} to {} is {ratio}", pair.0, pair.1);
            }
        }
        let drain = chip.memory.capacity.value / chip.memory.bandwidth.value;
        // Processors have much more of a slower memory.
        let most = if chip.processor { 4.0 } else { 1.0 };
        assert!((0.01..most).contains(&drain.get()), "{id}: drains in {drain}");
        assert!(chip.as_of.starts_with("2026"), "{id} is dated {}", chip.as_of);
    }
}

#[test]
fn key_values_have_two_sources() {
    let mut lacking: Vec<&str> = CATALOG.ids(Kind::Chips).filter(|id| !id.starts_with("lecture")).collect();
    let real = lacking.len();
    lacking.retain(|id| {
        let chip = CATALOG.chip(id).unwrap();
        chip.memory.capacity.checked.is_none() || chip.memory.bandwidth.checked.is_none()
    });
    assert!(lacking.len() * 10 <= real, "without a second source for their memory: {lacking:?}");
}

#[test]
fn every_kind_of_link_has_a_network() {
    for id in CATALOG.ids(Kind::Chips) {
        let kind = CATALOG.chip(id).unwrap().link.kind.clone();
        assert!(kind == "none" || CATALOG.network(&kind).is_ok(), "{id}: no network \"{kind}\"");
    }
    let error = CATALOG.network("nvlnk4").unwrap_err().to_string();
    assert!(error.contains("nvlink4"), "{error}");
    let error = CATALOG.network("nvlink4").unwrap().exchange_kernel("deepep-l").unwrap_err().to_string();
    assert!(error.contains("deepep-ll"), "{error}");
}

#[test]
fn network_constants_are_fitted_or_say_how_they_were_extrapolated() {
    for id in CATALOG.ids(Kind::Networks) {
        let network = CATALOG.network(id).unwrap();
        let all_reduce = network.all_reduce.values().map(|k| &k.evidence);
        let exchange = network.exchange.values().map(|k| &k.evidence);
        let reach = network.reach.values().map(|r| &r.evidence);
        for evidence in std::iter::once(&network.library.evidence).chain(all_reduce).chain(exchange).chain(reach) {
            assert!(evidence.fit.is_some() || evidence.note.is_some(), "{id}: {}", evidence.source);
            assert!(
                evidence.fit.is_none_or(|fit| fit.median <= fit.p90 && fit.median < 0.25),
                "{id}: {:?}",
                evidence.fit
            );
        }
    }
}

#[test]
fn a_network_file_with_an_impossible_share_is_refused() {
    let text = include_str!("../../rackmath-catalog/data/networks/ici.toml");
    let mut catalog = rackmath_catalog::embedded();
    catalog.add(Kind::Networks, "mine", text, None).unwrap();
    assert_eq!(catalog.network("mine").unwrap().library.efficiency.get(), 0.95);
    for (good, bad) in [("0.95", "1.2"), ("0.95", "0.0"), ("\"1 us\"", "\"1 furlong\""), ("own", "owned")] {
        let error = catalog.add(Kind::Networks, "mine", &text.replacen(good, bad, 1), None).unwrap_err().to_string();
        assert!(error.starts_with("network mine"), "{error}");
    }
}

#[test]
fn a_file_tells_what_it_is() {
    // Kernels, deductions and evidence have fixed names.
    let named = |kind: &Kind| !matches!(kind, Kind::Kernels | Kind::Deduce | Kind::Evidence);
    for kind in Kind::iter().filter(named) {
        for (id, text) in CATALOG.files(kind) {
            assert_eq!(Kind::of(text), kind, "{id}");
        }
    }
}

#[test]
fn every_kind_can_come_from_a_user_wins_over_ours_and_answers_to_the_same_names() {
    let ours = rackmath_catalog::embedded();
    for kind in Kind::iter() {
        let mut with = ours.clone();
        for (id, text) in ours.files(kind) {
            with.add(kind, id, text, None).unwrap_or_else(|e| panic!("{kind}: {e}"));
            // Names are packed as they are read from the head of a file.
            assert_eq!(with.names(kind, id), ours.names(kind, id), "{kind} {id}");
        }
        assert_eq!(with.ids(kind).count(), ours.ids(kind).count());
        let id = ours.ids(kind).next().expect("no kind is empty");
        let error = with.add(kind, id, "nonsense = ", None).unwrap_err().to_string();
        assert!(error.contains("TOML"), "{kind}: {error}");
    }
    let mut with = ours.clone();
    let text = ours.files(Kind::Chips).find(|(id, _)| *id == "h200").unwrap().1;
    with.add(Kind::Chips, "h200", &text.replace("4.8 TB/s", "9.6 TB/s"), None).unwrap();
    let rate = |catalog: &Catalog, on: &str| catalog.system(on).unwrap().chip.memory.bandwidth.value;
    assert_eq!(rate(&with, "hgx-h200"), rate(&ours, "hgx-h200") * 2.0, "a system has the user's chip");
    let error = with.add(Kind::Kernels, "gem", "", None).unwrap_err().to_string();
    assert!(error.contains("did you mean \"gemm\""), "{error}");
}

#[test]
fn a_bundle_reads_back_and_a_broken_one_is_refused() {
    let ours = rackmath_catalog::embedded();
    let bundle = ours.bundle();
    let back = Catalog::from_bundle(bundle.as_bytes()).unwrap();
    assert_eq!(back.bundle(), bundle);
    // In two parts it is the same, whichever comes first.
    let parts = [true, false].map(|measured| ours.bundle_of(|kind| (kind == Kind::Validation) == measured));
    let mut joined = Catalog::from_bundle(parts[0].as_bytes()).unwrap();
    joined.put_bundle(parts[1].as_bytes()).unwrap();
    assert_eq!(joined.bundle(), bundle);
    assert!(joined.put_bundle(parts[1].as_bytes()).unwrap_err().to_string().contains("twice"));
    // A bundle holds the files as they were written, the program a packed form of them: the same things are read from both.
    for id in ours.ids(Kind::Models) {
        assert_eq!(back.model(id), ours.model(id));
    }
    for id in ours.ids(Kind::Chips).chain(ours.ids(Kind::Systems)) {
        assert_eq!(back.system(id), ours.system(id));
    }
    for id in ours.ids(Kind::Engines) {
        assert_eq!(back.engine(id), ours.engine(id));
    }
    for id in ours.ids(Kind::Networks) {
        assert_eq!(back.network(id), ours.network(id));
    }
    assert_eq!(back.gemm_kernels(), ours.gemm_kernels());
    assert_eq!(back.attention_kernels(), ours.attention_kernels());
    assert_eq!((back.mla_kernels(), back.moe_kernels()), (ours.mla_kernels(), ours.moe_kernels()));
    let refused = |text: &str| Catalog::from_bundle(text.as_bytes()).unwrap_err().to_string();
    assert!(refused(&bundle[..bundle.len() - 7]).contains("ends before file"));
    assert!(refused(&(bundle.clone() + "x")).contains("goes on after"));
    assert!(refused(&bundle.replace("catalogue 1 ", "catalogue 2 ")).contains("does not begin"));
    assert!(refused("rackmath catalogue 1 1\nchip/x 0\n\n").contains("did you mean \"chips\""));
    assert!(refused("rackmath catalogue 1 2\nchips/x 0\n\nchips/x 0\n\n").contains("twice"));
}

#[test]
fn every_list_of_flags_is_dated_cited_and_holds_what_its_command_needs() {
    let c = rackmath_catalog::embedded();
    assert!(c.ids(Kind::Flags).count() >= 9);
    for id in c.ids(Kind::Flags) {
        let l = c.flag_list(id).unwrap();
        assert!(l.source.contains(' ') && l.as_of.len() == 7 && !l.version.is_empty(), "{id}");
        assert!(l.flags.len() >= 10, "{id}: {}", l.flags.len());
        assert!(l.check(&l.command).is_ok(), "{id}");
    }
    // A flag of another tool is refused with the nearest.
    let l = c.flag_list("vllm").unwrap();
    assert!(l.check("vllm serve m --tensor-parallel-size 8 -tp 8").is_ok());
    let err = l.check("vllm serve m --tensor_paralel-size 8").unwrap_err().to_string();
    assert!(err.contains("--tensor-parallel-size"), "{err}");
}

#[test]
fn attention_kernels_are_found_by_generation_engine_and_format() {
    let kernels = CATALOG.attention_kernels().unwrap();
    let wanted = |backend, kv, group| Wanted { backend, math: Dtype::Bf16, kv, group };
    let of = |chip: &str, wanted| kernels.decode(&CATALOG.chip(chip).unwrap(), wanted);
    let found = of("h200", wanted("trtllm", Dtype::Fp8, 8));
    assert_eq!((found.generation.as_str(), found.heads, found.kv8), ("hopper", Heads::Grouped, true));
    assert_eq!(of("h200", wanted("trtllm", Dtype::Bf16, 1)).heads, Heads::Single);
    // An engine nobody measured still stays within the generation.
    assert_eq!(of("gb300", wanted("lmdeploy", Dtype::Fp8, 8)).generation, "blackwell");
    // Workstation Blackwell has kernels of its own, and what nobody measured runs the default.
    assert_eq!(of("rtx-pro-6000", wanted("vllm", Dtype::Bf16, 8)).generation, "blackwell-gddr");
    let other = of("mi300x", wanted("vllm", Dtype::Bf16, 8));
    assert_eq!((other.generation.as_str(), other.fit), ("default", None));
}

#[test]
fn a_kernel_file_with_an_impossible_share_is_refused() {
    let text = include_str!("../../rackmath-catalog/data/kernels/mla.toml");
    file::attention("mine", text).unwrap();
    for (good, bad) in [
        ("memory = 0.", "memory = 1."),
        (" us\"", " furlongs\""),
        ("splits = ", "splits = 0.0 # "),
        ("\"default\"", "\"hopper\""),
    ] {
        let error = file::attention("mine", &text.replace(good, bad)).unwrap_err().to_string();
        assert!(error.starts_with("kernel mine"), "{error}");
    }
}

#[test]
fn the_nearest_constants_stand_in_with_a_wider_spread() {
    let kernels = rackmath_catalog::embedded().moe_kernels().unwrap();
    let find = |family, format, generation| kernels.find(family, format, generation).unwrap();
    let exact = find("vllm-triton", MoeFormat::Bf16, "hopper");
    assert_eq!(exact.matched, MoeMatch::Exact);
    let lent = find("vllm-triton", MoeFormat::Bf16, "blackwell");
    assert_eq!((lent.matched, lent.kernel), (MoeMatch::Generation, exact.kernel));
    assert!(lent.spread > exact.spread);
    assert_eq!(find("vllm-triton", MoeFormat::NvFp4, "hopper").matched, MoeMatch::Format);
    assert_eq!(find("default", MoeFormat::Bf16, "hopper").matched, MoeMatch::Default);
    let error = kernels.find("vllm-trition", MoeFormat::Bf16, "hopper").unwrap_err().to_string();
    assert!(error.contains("vllm-triton"), "{error}");
    // Workstation chips go with their own kind.
    assert_eq!(kernels.generation(&CATALOG.chip("rtx-pro-6000").unwrap()), "blackwell-gddr");
    assert_eq!(kernels.generation(&CATALOG.chip("gb200").unwrap()), "blackwell");
    let found = kernels.on("trtllm-cutlass", MoeFormat::Bf16, &CATALOG.chip("h200").unwrap()).unwrap();
    assert_eq!(found.matched, MoeMatch::Exact);
}

#[test]
fn every_law_loads_with_a_source_and_a_range_and_a_users_wins() {
    let ids: Vec<String> = CATALOG.ids(Kind::Laws).map(str::to_owned).collect();
    assert!(ids.len() >= 12, "{ids:?}");
    for id in &ids {
        let law = CATALOG.scaling_law(id).unwrap_or_else(|e| panic!("{e}"));
        assert!(law.source.contains("20") && !law.fitted.source.is_empty(), "{id}");
    }
    assert!(matches!(&CATALOG.scaling_law("clark-2022").unwrap().form, LawForm::Routed(laws) if laws.len() == 3));
    assert_eq!(CATALOG.scaling_law("epoch").unwrap().id, "besiroglu-2024");
    assert!(CATALOG.scaling_law("besiroglu").unwrap().errors.is_some());
    // Unrounded coefficients come from their logarithms: e^6.0073404, e^6.0179186, e^0.5267228 by hand.
    let LawForm::Chinchilla(law, _) = CATALOG.scaling_law("hoffmann-2022").unwrap().form else { panic!() };
    assert!((law.a - 406.4).abs() < 0.1 && (law.b - 410.7).abs() < 0.1 && (law.e - 1.6934).abs() < 1e-3, "{law:?}");
    let mut catalog = rackmath_catalog::embedded();
    catalog.add(Kind::Laws, "besiroglu-2024", OWN, None).unwrap();
    assert_eq!(catalog.scaling_law("besiroglu-2024").unwrap().name, "Ours");
}

#[test]
fn every_published_run_and_training_program_loads_and_says_where_it_comes_from() {
    let ids: Vec<&str> = CATALOG.ids(Kind::Training).collect();
    assert!(ids.len() >= 9, "{ids:?}");
    for id in ids {
        let stack = CATALOG.training_stack(id).unwrap();
        assert!(!stack.sources.is_empty() && stack.sources.iter().all(|s| s.len() > 20), "{id}");
    }
    assert_eq!(CATALOG.training_stack("nemo").unwrap().id, "megatron-core");
    for id in CATALOG.ids(Kind::Runs) {
        let run = CATALOG.training_run(id).unwrap_or_else(|e| panic!("{e}"));
        CATALOG.chip(run.chip.as_deref().unwrap()).unwrap_or_else(|e| panic!("{id}: {e}"));
        assert!(!run.source.is_empty());
    }
    assert_eq!(CATALOG.training_run("llama-3-405b").unwrap().stops, Some((419.0, 54.0)));
}

const OWN: &str = r#"
name = "Ours"
form = "chinchilla"
as_of = "2026-11"
source = "our own runs, 2026"
[coefficients]
e = 1.5
a = 400.0
b = 2000.0
alpha = 0.35
beta = 0.36
[fitted]
params = ["100M", "7B"]
source = "our own runs, 2026"
"#;

#[test]
fn a_wrong_law_is_refused_with_what_was_expected() {
    let mut catalog = rackmath_catalog::embedded();
    for (from, to, says) in [
        ("chinchilla", "chinchila", "did you mean \"chinchilla\"?"),
        ("a = 400.0", "a = -400.0", "expected more than 0"),
        ("a = 400.0\n", "", "coefficients.a = nothing"),
        ("a = 400.0", "a = 400.0\nz = 1.0", "only coefficients of its form"),
        ("\"7B\"", "\"7 apples\"", "fitted.params[1]: \"7 apples\" is not a number of parameters"),
        ("\"7B\"", "\"7M\"", "a low end, then a high end"),
        ("alpha = 0.35", "alpha = nan", "a finite number"),
    ] {
        let error = catalog.add(Kind::Laws, "ours", &OWN.replace(from, to), None).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

#[test]
fn every_sheet_and_tier_loads() {
    let sheets: Vec<_> =
        CATALOG.ids(Kind::Prices).map(|id| CATALOG.price(id).unwrap_or_else(|e| panic!("{e}"))).collect();
    for sheet in &sheets {
        assert_eq!(sheet.id, format!("{}-{}", sheet.provider, sheet.model), "one model per file, named for it");
        assert!(sheet.lists.iter().all(|l| l.source.contains([' ', '/'])), "{}", sheet.id);
        assert!(sheet.as_of <= day("2026-11-18"), "{} is dated {}", sheet.id, sheet.as_of);
        for list in &sheet.lists {
            assert!(list.output >= list.input, "{}", sheet.id);
            for c in &list.caches {
                assert!(c.read <= list.input, "{} reads from {} above the input price", sheet.id, c.name);
            }
        }
    }
    let providers: BTreeSet<&str> = sheets.iter().map(|s| s.provider.as_str()).collect();
    assert!(providers.len() >= 14, "{providers:?}");
    for id in CATALOG.ids(Kind::Tiers) {
        let tier = CATALOG.tier(id).unwrap_or_else(|e| panic!("{e}"));
        assert!(tier.hold().is_some() || id == "lpddr-grace", "{id}");
    }
}

#[test]
fn names_find_their_sheet_and_a_list_is_valid_from_its_day() {
    assert_eq!(CATALOG.price("opus").unwrap().model, "claude-opus-4-8");
    let error = CATALOG.price("gpt-5.5x").unwrap_err().to_string();
    assert!(error.contains("did you mean") && error.contains("gpt-5.5"), "{error}");
    let o3 = CATALOG.price("o3").unwrap();
    assert_eq!(o3.at(day("2025-06-13")).unwrap().input.to_string(), "$10.0/Mtok");
    assert_eq!(o3.at(day("2025-06-14")).unwrap().input.to_string(), "$2.00/Mtok");
    let error = o3.at(day("2025-01-01")).unwrap_err().to_string();
    assert!(error.contains("2025-04-20 or later"), "{error}");
}

const GOOD: &str = r#"
name = "Mine"
provider = "me"
model = "mine"
as_of = "2026-08-01"
[sources]
page = "example.org/prices read by hand"
[[list]]
from = "2026-07-01"
input = "$5/Mtok"
output = "$25/Mtok"
source = "page"
[[list.cache]]
name = "5m"
ttl = "5 min"
restarts = true
write = "$6.25/Mtok"
read = "$0.50/Mtok"
source = "page"
[[list.tier]]
above = "200k"
input = "$10/Mtok"
output = "$37.50/Mtok"
[list.mode]
batch = { factor = 0.5 }
[[list.window]]
name = "peak"
days = "mon-fri"
utc = ["22:00-02:00"]
factor = 2.0
"#;

#[test]
fn a_slip_is_refused_with_its_field_and_file() {
    file::price("mine", GOOD, Some(day("2026-11-15"))).unwrap();
    for (good, bad, names) in [
        // A typo in a field, a missing unit, two ways; a negative price; absurd prices, two ways.
        ("output = \"$25/Mtok\"", "ouput = \"$25/Mtok\"", "ouput"),
        ("input = \"$5/Mtok\"", "input = 5.0", "list[0].input = 5; expected text with a unit"),
        ("input = \"$5/Mtok\"", "input = \"5\"", "list[0].input = 5; expected a price per million tokens"),
        (
            "input = \"$5/Mtok\"",
            "input = \"$-5/Mtok\"",
            "list[0].input = $-5/Mtok; expected a price that is not negative",
        ),
        ("input = \"$5/Mtok\"", "input = \"$114000/Mtok\"", "between $0.001 and $1,000"),
        ("input = \"$5/Mtok\"", "input = \"$0.0005/Mtok\"", "between $0.001 and $1,000"),
        // Future dates: of a list, and of the sheet against the day the reader states.
        (
            "from = \"2026-07-01\"",
            "from = \"2026-12-01\"",
            "list[0].from = 2026-12-01; expected a date not after 2026-08-01",
        ),
        (
            "as_of = \"2026-08-01\"",
            "as_of = \"2027-08-01\"",
            "as_of = 2027-08-01; expected a date not after 2026-11-15",
        ),
        ("from = \"2026-07-01\"", "from = \"July\"", "list[0].from"),
        ("source = \"page\"", "source = \"pge\"", "list[0].source = pge"),
        ("ttl = \"5 min\"", "ttl = \"5\"", "list[0].cache[0].ttl"),
        ("ttl = \"5 min\"", "ttl = \"chosen\"", "list[0].cache.5m.storage"),
        ("above = \"200k\"", "above = \"200k\"\nat_least = \"200k\"", "either above or at_least"),
        ("factor = 0.5", "factor = 500.0", "list[0].mode.batch: 500; expected a multiple"),
        ("22:00-02:00", "22-02", "hours such as"),
        ("mon-fri", "weekdays", "every, mon-fri or sat-sun"),
    ] {
        assert!(GOOD.contains(good), "{good}");
        let text = GOOD.replacen(good, bad, 1);
        let error = file::price("mine", &text, Some(day("2026-11-15"))).unwrap_err().to_string();
        assert!(error.starts_with("price mine") && error.contains(names), "{bad}: {error}");
    }
}

#[test]
fn a_window_past_midnight_belongs_to_the_day_it_began() {
    let sheet = file::price("mine", GOOD, None).unwrap();
    let factor = |at: &str| sheet.lists[0].hour(Some(at.parse().unwrap())).input;
    // 2026-10-30 was a Friday.
    assert_eq!(factor("2026-10-30T22:00"), 2.0);
    assert_eq!(factor("2026-10-31T01:59"), 2.0);
    assert_eq!(factor("2026-10-31T02:00"), 1.0);
    assert_eq!(factor("2026-10-31T22:30"), 1.0);
    assert_eq!(factor("2026-11-02T01:00"), 1.0, "Sunday night is no weekday's");
}

#[test]
fn conflicts_are_reported_and_agreement_is_not() {
    let grok = CATALOG.price("grok-4.5").unwrap();
    let c = &grok.lists[0].conflicts[0];
    assert_eq!((c.used.as_str(), c.other.as_str()), ("$0.300/Mtok", "$0.50/Mtok"));
    let other = file::price("mine", &GOOD.replace("$0.50/Mtok", "$0.30/Mtok"), None).unwrap();
    let mine = file::price("mine", GOOD, None).unwrap();
    let found = mine.lists[0].disagreements(&other.lists[0]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].field.as_str(), found[0].other.as_str()), ("cache 5m read", "$0.300/Mtok"));
    assert!(mine.lists[0].disagreements(&mine.lists[0]).is_empty());
}

#[test]
fn lifetimes_are_as_documented() {
    for (sheet, cache, seconds) in [
        ("opus-4.8", "5m", 300.0),
        ("opus-4.8", "1h", 3600.0),
        ("groq", "automatic", 7200.0),
        ("gpt-5.6", "30m", 1800.0),
    ] {
        let sheet = CATALOG.price(sheet).unwrap();
        let list = sheet.lists.last().unwrap();
        assert_eq!(list.cache(cache).unwrap().ttl, Ttl::Fixed(rackmath_units::Seconds::s(seconds)));
    }
    let gemini = CATALOG.price("gemini-3.1-pro").unwrap();
    assert_eq!(gemini.lists[0].cache("explicit").unwrap().ttl, Ttl::Chosen);
}

fn tables() -> Vec<Arc<Table>> {
    CATALOG.ids(Kind::Validation).map(|id| CATALOG.validation(id).unwrap_or_else(|e| panic!("{e}"))).collect()
}

fn row_of(id: &str, wanted: impl Fn(&Row) -> bool) -> Row {
    let table = rackmath_catalog::embedded().validation(id).unwrap();
    table.rows.iter().find(|row| wanted(row)).cloned().unwrap_or_else(|| panic!("{id} has no such row"))
}

fn measured_of(id: &str, wanted: impl Fn(&Measurement) -> bool) -> Measurement {
    let table = rackmath_catalog::embedded().validation(id).unwrap();
    table.measured.iter().find(|row| wanted(row)).cloned().unwrap_or_else(|| panic!("{id} has no such row"))
}

fn near(measured: f64, published: f64) -> bool {
    (measured - published).abs() < 1e-9 * published
}

#[test]
fn every_table_loads_and_says_where_it_comes_from_and_when() {
    let tables = tables();
    assert!(tables.len() >= 10, "{}", tables.len());
    let rows: usize = tables.iter().map(|t| t.rows.len()).sum();
    let measured: usize = tables.iter().map(|t| t.measured.len()).sum();
    assert!(rows >= 40 && measured >= 10_000, "{rows} and {measured}");
    for table in tables {
        let s = &table.source;
        assert!(s.address.contains('/') || s.address.starts_with("own measurement"), "{}: {}", table.id, s.address);
        assert!(s.date.starts_with("20") && s.date.len() >= 7, "{}: {}", table.id, s.date);
        assert!(["yes: ", "no: ", "partly: "].iter().any(|w| s.fitted.starts_with(w)), "{}: {}", table.id, s.fitted);
        assert!(s.retrieved.starts_with("2026-"), "{}: {}", table.id, s.retrieved);
        let texts = [&s.name, &s.title, &s.licence, &s.note];
        assert!(texts.iter().all(|text| text.len() > 2), "{}: an empty field of its source", table.id);
        let silent = table.rows.iter().any(|r| !r.assumed.is_empty()) && !s.note.contains("ssumed");
        assert!(!silent, "{}: assumes without saying how", table.id);
    }
}

/// Widest plausible figures: from a phone-class chip to a rack, per chip where the metric is of a system.
fn plausible(metric: Metric) -> (f64, f64) {
    match metric {
        Metric::TpotMs | Metric::ItlMs => (1.0, 500.0),
        Metric::TtftMs | Metric::TtftP50Ms => (2.0, 120_000.0),
        Metric::E2eMs => (10.0, 1e6),
        Metric::StepMs => (0.1, 5_000.0),
        Metric::OutputTokS | Metric::OutputTokSPerGpu => (20.0, 40_000.0),
        Metric::InputTokSPerGpu => (100.0, 50_000.0),
        Metric::DecodeTokS => (1.0, 2_000.0),
        Metric::PrefillTokS => (50.0, 50_000.0),
    }
}

#[test]
fn figures_are_of_the_size_of_their_unit_obey_littles_law_and_are_given_once() {
    for table in tables() {
        let mut seen = BTreeSet::new();
        for (i, row) in table.rows.iter().enumerate() {
            let chips = if row.metric == Metric::OutputTokS { CATALOG.system(&row.system).unwrap().n_chips } else { 1 };
            let value = row.value / chips as f64;
            let (low, high) = plausible(row.metric);
            assert!((low..=high).contains(&value), "{} row {}: {} = {value}", table.id, i + 1, row.metric);
            let longest = row.isl.unwrap_or(0) + row.osl.unwrap_or(0) + row.context.unwrap_or(0);
            assert!((1..=200_000).contains(&longest), "{} row {}: {longest} tokens", table.id, i + 1);
            // Requests in flight are served at n / (ttft + tpot (osl - 1)); no chip here gives out more than 20,000 tokens/s.
            if let (Metric::TpotMs, Some(Load::Concurrency(n)), Some(tp)) = (row.metric, row.load, row.split.tp) {
                let per_chip = n as f64 * 1000.0 / row.value / tp as f64;
                assert!((10.0..20_000.0).contains(&per_chip), "{} row {}: {per_chip} tok/s", table.id, i + 1);
            }
            let question = Row { value: 1.0, range: None, ..row.clone() };
            assert!(seen.insert(format!("{question:?}")), "{} row {} repeats an earlier one", table.id, i + 1);
        }
        for (i, kernel) in table.kernels.iter().enumerate() {
            assert!((1.0..=1e6).contains(&kernel.time_us), "{} kernel {}: {}", table.id, i + 1, kernel.time_us);
        }
    }
}

#[test]
fn figures_are_as_published() {
    // DeepSeek: "~14.8k tokens/s output during decoding" per node of 8.
    let decode = row_of("deepseek-production-day", |r| r.metric == Metric::OutputTokSPerGpu);
    assert!(near(decode.value * 8.0, 14_800.0) && decode.context == Some(4_989));
    assert_eq!(decode.split.layout(true).unwrap().unwrap().chips(), 144);
    // SGLang post: prefill 57,674 tokens/s per node at 1K.
    let prefill = row_of("sglang-large-scale-ep", |r| r.isl == Some(1_024));
    assert!(near(prefill.value * 8.0, 57_674.0));
    // mac-m2-ultra.md: gpt-oss 20B, tg32 @ d32768, 98.25 t/s; the mean step has half of the 32 tokens behind it.
    let depth = 32_768.0 + 16.0;
    let deep = measured_of("llamacpp", |m| {
        m.setup.model == "gpt-oss-20b" && m.load.way == Way::DecodeStep { batch: 1.0, context: depth }
    });
    assert!(near(deep.value, 98.25), "{}", deep.value);
    // Run log of GH200 144GB, llama2-70b Server: 13.33 samples/s.
    let server = row_of("mlperf-4.1", |r| {
        r.model == "llama-2-70b" && r.system == "gh200-144gb" && matches!(r.load, Some(Load::RatePerS(_)))
    });
    assert_eq!(server.load, Some(Load::RatePerS(13.33)));
    // error_records.csv: Scout on two H100, stage 0, mean TTFT 57.80 ms.
    let scout = measured_of("vllm-blis", |m| {
        m.setup.model == "llama-4-scout" && m.metric == Metric::TtftMs && m.load.way == Way::Open { rate: 2.5 }
    });
    assert!((scout.value - 57.8).abs() < 0.01);
}

const HEAD: &str = "source = { name = 'a', title = 'b', address = 'c/d', date = '2026', licence = 'e', retrieved = '2026-11', fitted = 'no: never', note = 'f' }\n\
    common = { model = 'llama-3.1-8b', weights = 'bf16', engine = 'vllm', system = '2xh100', tp = 2, mode = 'closed', isl = 10, osl = 10, metric = 'tpot_ms' }\n";

fn refusal(row: &str) -> String {
    let text = format!("{HEAD}row = [ {{ concurrency = 1, value = 1 }}, {{ {row} }} ]");
    file::validation("mine", &text).expect_err(row).to_string()
}

#[test]
fn a_refusal_names_the_file_the_row_and_the_field() {
    let cases = [
        ("concurrency = 1, value = 1, metric = 'tpot'", "metric: unknown variant `tpot`", "tpot_ms"),
        ("concurrency = 1, value = 1, kv = 'nvpf4'", "kv: no number format", "nvfp4"),
        ("concurrency = 1, value = 1, mode = 'zzz'", "mode: unknown variant `zzz`", "max-load"),
        ("concurrency = 1, value = -1", "value = -1", "positive"),
        ("concurrency = 0, value = 1", "concurrency = 0", "positive"),
        ("value = 1", "concurrency = nothing", "mode closed needs one"),
        ("concurrency = 1, batch = 1, value = 1", "several", "at most one"),
        ("concurrency = 1, value = 5, range = [1, 2]", "range = [1, 2]", "around 5"),
        ("concurrency = 1, value = 1, prefix_hit = 2", "prefix_hit: 2", "0 to 1"),
        ("concurrency = 1, value = 1, ep = 3", "ep = ", "divisor"),
        ("concurrency = 1, value = 1, assumed = ['mode']", "assumed = mode", "names of fields"),
        ("concurrency = 1, value = 1, speculation = { drafted = 1, accepted = 2 }", "accepted = 2", "drafted"),
        ("concurrency = 1, value = 1, batchs = 1", "batchs", "unknown field"),
        ("concurrency = 1, value = 'fast'", "fast", "value"),
    ];
    for (row, field, expected) in cases {
        let error = refusal(row);
        assert!(error.starts_with("validation mine row 2"), "{row}: {error}");
        assert!(error.contains(field) && error.contains(expected), "{row}: {error}");
    }
    let kernel = |more: &str| {
        let row = format!("kind = 'gemm', m = 1, n = 8, k = 8, format = 'bf16', system = 'h100', time_us = 5{more}");
        file::validation("mine", &format!("{HEAD}row = []\nkernel = [ {{ {row} }} ]"))
    };
    assert_eq!(kernel("").unwrap().kernels.len(), 1);
    let error = kernel(", heads = 4").unwrap_err().to_string();
    assert_eq!(error, "validation mine kernel 1: heads: unknown field, expected m, n, k");
}

#[test]
fn a_run_that_cannot_be_replayed_is_refused() {
    let run = |load: &str| {
        let set = "name = 'a', engine_version = '1', max_sequences = 1, max_tokens = 1, max_context = 1, kv_blocks = 1";
        file::validation("mine", &format!("{HEAD}run = [ {{ {set}, {load} }} ]")).map(|table| table.runs)
    };
    let sent = &run("requests = '0 30 5 20 - 100 0:10 1:20'").unwrap()[0].requests[0];
    assert_eq!((sent.input, sent.tpot, &sent.segments[..]), (30, None, &[(0, 10), (1, 20)][..]));
    for (load, expected) in [
        ("requests = '0 30 5 20 - 100 0:10'", "line 1"),
        ("requests = '0 10 5 20 - 100 7'", "segments"),
        ("requests = '0 10 5 x - 100 0:10'", "TTFT"),
        ("requests = ''", "requests or stated"),
        ("stated = { rates = [0], input = 1, output = 1 }", "positive"),
    ] {
        let error = run(load).unwrap_err().to_string();
        assert!(error.starts_with("validation mine run 1") && error.contains(expected), "{load}: {error}");
    }
}

#[test]
fn names_of_no_thing_and_splits_that_do_not_fill_the_machine_are_refused() {
    let check = |row: &str| {
        let table =
            file::validation("mine", &format!("{HEAD}row = [ {{ concurrency = 1, value = 1{row} }} ]")).unwrap();
        table.check(|m| CATALOG.model(m).map(drop), |s| CATALOG.system(s).map(|s| s.n_chips))
    };
    assert!(check("").is_ok());
    for (row, field, hint) in [
        (", model = 'llama-3.1-8c'", "model", "llama-3.1-8b"),
        (", system = '2xh10'", "system", "h100"),
        (", system = '4xh100'", "system", "expected 4 chips"),
    ] {
        let error = check(row).unwrap_err().to_string();
        assert!(error.contains("mine row 1") && error.contains(field) && error.contains(hint), "{row}: {error}");
    }
}

proptest! {
    #[test]
    fn replicas_of_a_layout_are_all_the_chips(tp in 1_u64..9, pp in 1_u64..5, dp in 1_u64..5, groups in 1_u64..9, cut in 1_u64..9) {
        let split = |ep| Split { tp: Some(tp), pp: Some(pp), dp: Some(dp), attention_dp: Some(groups), ep: Some(ep), ..Split::default() };
        // Experts spread over the stage, and each cut by what is left of it, exist once.
        let layout = split(tp * groups).layout(true).unwrap().unwrap();
        prop_assert_eq!(layout.chips() * split(1).replicas(), split(1).chips());
        prop_assert_eq!(layout.expert_copies(), 1);
        prop_assert_eq!(split(cut).layout(true).is_ok(), (tp * groups).is_multiple_of(cut));
        prop_assert!(split(cut).layout(false).is_ok(), "a dense model has no experts to cut");
    }
}
