//! Every file of the catalogue loads, is cited, and answers to names of its own.

use rackmath_spec::{IntoEnumIterator as _, Kind, Math};
use std::collections::BTreeMap;

#[test]
fn the_chips_and_systems_people_ask_for_are_there() {
    let catalog = rackmath_catalog::embedded();
    let chips = "a100-40gb a100-80gb a100_sxm h100 h100_sxm h100_pcie h200_sxm h20 h800 b200_sxm b300_sxm gb200 gb300 vr200 \
                 mi300x mi325x mi355x tpu-v5e tpu-v5p tpu-v6e tpu-v7 trainium2 gaudi3 l40s rtx-4090 rtx-5090 \
                 rtx-pro-6000 dgx-spark apple-m3-ultra apple-m4-max";
    for name in chips.split(' ') {
        catalog.chip(name).unwrap_or_else(|e| panic!("{e}"));
    }
    for name in ["gb200_nvl72", "gb300-nvl72", "vr-nvl144", "hgx-h100", "8xh200", "h200x8", "b200"] {
        catalog.system(name).unwrap_or_else(|e| panic!("{e}"));
    }
    let rubin = catalog.system("vr-nvl144").unwrap();
    assert_eq!((rubin.n_chips, rubin.dies()), (72, 144), "the name counts dies");
}

#[test]
fn machines_on_desks_answer_to_the_names_benchmarks_give_them() {
    let catalog = rackmath_catalog::embedded();
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
        assert_eq!(catalog.chip(name).unwrap_or_else(|e| panic!("{e}")).id, id, "{name}");
    }
    assert_eq!(catalog.system("rx6600").unwrap().n_chips, 1, "not 6600 of a chip called r");
    assert_eq!(catalog.system("2xrtx4090").unwrap().n_chips, 2);
}

#[test]
fn no_two_files_answer_to_the_same_name() {
    let catalog = rackmath_catalog::embedded();
    for kind in Kind::iter() {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for id in catalog.ids(kind) {
            for name in catalog.names(kind, id).into_iter().chain([id]) {
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
    let catalog = rackmath_catalog::embedded();
    for id in catalog.ids(Kind::Chips) {
        let chip = catalog.chip(id).unwrap();
        // Dense 16-bit peak over bandwidth: from M1 Max with 24 of its 32 cores (19.5) to TPU v6e (560 FLOP per byte); a
        // sparse peak or a both-way bandwidth would stand out.
        let peak = chip.peak.get(&Math::Bf16).or(chip.peak.get(&Math::Fp16));
        if let Some(peak) = peak {
            let intensity = peak.value.get() / chip.memory.bandwidth.value.get();
            // A module with data-centre tensor cores on LPDDR memory.
            let most = if id == "jetson-thor" { 950.0 } else { 600.0 };
            assert!((19.0..=most).contains(&intensity), "{id}: {intensity} FLOP per byte");
        }
        for pair in [(Math::Bf16, Math::Fp8), (Math::Fp8, Math::Fp4)] {
            if let (Some(wide), Some(narrow)) = (chip.peak.get(&pair.0), chip.peak.get(&pair.1)) {
                let ratio = narrow.value / wide.value;
                assert!((0.99..=4.5).contains(&ratio), "{id}: {} to {} is {ratio}", pair.0, pair.1);
            }
        }
        let drain = chip.memory.capacity.value / chip.memory.bandwidth.value;
        assert!((0.01..1.0).contains(&drain.get()), "{id}: drains in {drain}");
        assert!(chip.as_of.starts_with("2026"), "{id} is dated {}", chip.as_of);
    }
}

#[test]
fn key_values_have_two_sources() {
    let catalog = rackmath_catalog::embedded();
    let real: Vec<&str> = catalog.ids(Kind::Chips).filter(|id| !id.starts_with("lecture")).collect();
    let lacking: Vec<&str> = real
        .iter()
        .copied()
        .filter(|id| {
            let chip = catalog.chip(id).unwrap();
            chip.memory.capacity.checked.is_none() || chip.memory.bandwidth.checked.is_none()
        })
        .collect();
    assert!(lacking.len() * 10 <= real.len(), "without a second source for their memory: {lacking:?}");
}

#[test]
fn every_kind_of_link_has_a_network() {
    let catalog = rackmath_catalog::embedded();
    for id in catalog.ids(Kind::Chips) {
        let kind = catalog.chip(id).unwrap().link.kind.clone();
        assert!(kind == "none" || catalog.network(&kind).is_ok(), "{id}: no network \"{kind}\"");
    }
    let error = catalog.network("nvlnk4").unwrap_err().to_string();
    assert!(error.contains("nvlink4"), "{error}");
    let error = catalog.network("nvlink4").unwrap().exchange_kernel("deepep-l").unwrap_err().to_string();
    assert!(error.contains("deepep-ll"), "{error}");
}

#[test]
fn network_constants_are_fitted_or_say_how_they_were_extrapolated() {
    let catalog = rackmath_catalog::embedded();
    for id in catalog.ids(Kind::Networks) {
        let network = catalog.network(id).unwrap();
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
fn every_program_of_the_catalogue_loads_and_says_where_it_comes_from() {
    let catalog = rackmath_catalog::embedded();
    let ids: Vec<&str> = catalog.ids(Kind::Training).collect();
    assert!(ids.len() >= 9, "{ids:?}");
    for id in ids {
        let stack = catalog.training_stack(id).unwrap();
        assert!(!stack.sources.is_empty() && stack.sources.iter().all(|s| s.len() > 20), "{id}");
    }
    assert_eq!(catalog.training_stack("nemo").unwrap().id, "megatron-core");
}

#[test]
fn a_file_tells_what_it_is() {
    let catalog = rackmath_catalog::embedded();
    // Kernels and deductions have fixed names.
    for kind in Kind::iter().filter(|kind| !matches!(kind, Kind::Kernels | Kind::Deduce)) {
        for (id, text) in catalog.files(kind) {
            assert_eq!(Kind::of(text), kind, "{id}");
        }
    }
}

#[test]
fn every_kind_can_come_from_a_user_and_wins_over_ours() {
    let ours = rackmath_catalog::embedded();
    for kind in Kind::iter() {
        let mut with = ours.clone();
        for (id, text) in ours.files(kind) {
            with.add(kind, id, text, None).unwrap_or_else(|e| panic!("{kind}: {e}"));
        }
        assert_eq!(with.ids(kind).count(), ours.ids(kind).count());
        let id = ours.ids(kind).next().expect("no kind is empty");
        let error = with.add(kind, id, "nonsense = ", None).unwrap_err().to_string();
        assert!(error.contains("TOML"), "{kind}: {error}");
    }
    let mut with = ours.clone();
    let text = ours.files(Kind::Chips).find(|(id, _)| *id == "h200").unwrap().1;
    with.add(Kind::Chips, "h200", &text.replace("4.8 TB/s", "9.6 TB/s"), None).unwrap();
    let rate = |catalog: &rackmath_spec::Catalog, on: &str| catalog.system(on).unwrap().chip.memory.bandwidth.value;
    assert_eq!(rate(&with, "hgx-h200"), rate(&ours, "hgx-h200") * 2.0, "a system has the user's chip");
    let error = with.add(Kind::Kernels, "gem", "", None).unwrap_err().to_string();
    assert!(error.contains("did you mean \"gemm\""), "{error}");
}

#[test]
fn a_bundle_reads_back_and_a_broken_one_is_refused() {
    let ours = rackmath_catalog::embedded();
    let bundle = ours.bundle();
    let back = rackmath_spec::Catalog::from_bundle(bundle.as_bytes()).unwrap();
    assert_eq!(back.bundle(), bundle);
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
    let refused = |text: &str| rackmath_spec::Catalog::from_bundle(text.as_bytes()).unwrap_err().to_string();
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
}

#[test]
fn a_flag_of_another_tool_is_refused_with_the_nearest() {
    let l = rackmath_catalog::embedded().flag_list("vllm").unwrap();
    assert!(l.check("vllm serve m --tensor-parallel-size 8 -tp 8").is_ok());
    let err = l.check("vllm serve m --tensor_paralel-size 8").unwrap_err().to_string();
    assert!(err.contains("--tensor-parallel-size"), "{err}");
}
