//! What cannot be asked is refused, with what was expected or the nearest valid thing; what nobody can have is an answer.

mod common;

use common::{json, rackmath, refused, said, shown, whole};

#[test]
fn mistyped_names_get_the_nearest() {
    assert_eq!(
        refused("step deepsek-v3"),
        "error: no model \"deepsek-v3\"\nhint: did you mean \"deepseek-v3\" or \"deepseek-v2\" or \"deepseek-v4\"?\n"
    );
    said(&[
        ("step --on gb200-nvl27", "\"gb200-nvl72\""),
        ("chips h2000", "\"h200\""),
        ("models gpt-4o", "rackmath price gpt-4o"),
        ("price gpt-5.1 --mode batch", "in this sheet"),
        ("explain blance", "did you mean balance?"),
        ("step -q nvpf4", "\"nvfp4\""),
        ("step llama-2-7b --on rtx-4090 --quantization q4_k_n", "q4_k_m"),
        ("stpe", "step"),
        ("curve --over batches", "did you mean batch?"),
        ("lecture D99", "D1 to D57"),
        ("price opsu-4.8", "opus-4.8"),
        ("price opus-4.8 --mode fsat", "\"fast\""),
        ("price opus-4.8 -i 10k --cached 5k --offer 5min", "5m"),
        ("price opus-4.8 -i 100k --cached 1.5", "a share up to 1, such as 0.8 or 80%, or whole tokens"),
        ("goodput --chips 8 --on h100 --chip-mtbf 5q", "30d or 5y"),
        ("cache --tiers nvme-loca", "nvme-local"),
        ("cost --sheet gpt-55", "gpt-5.5"),
        ("deduce gpt-55", "gpt-5.5"),
        ("deduce --blind qwen3-325b", "qwen3-32b"),
        ("deduce --vendor antropic", "anthropic"),
        ("scaling --law besirglu", "did you mean \"besiroglu\""),
        ("lifecycle --split third", "did you mean thirds?"),
        ("goodput lama-3-405b", "did you mean \"llama-3-405b\""),
        ("reversible lama-3.1-70b", "did you mean \"llama-3.1-70b\""),
        ("train llama-3.1-8b --stack megatron-cor", "megatron-core"),
        ("train llama-3.1-8b --offload optimiser", "did you mean optimizer"),
        ("estimate llama-3.1-8b --on h100 --engine vlm", "vllm"),
        ("estimate llama-3.1-8b --on h100 --engine vllm@nightly", "expected 0.19.0"),
        ("plan qwen3-32b --on 8xh200 --scenario chatt", "chat"),
        ("plan qwen3-32b --on 8xh2000", "h200"),
        ("plan qwen3-32b --on 8xh200 --prefill-on 2xh2", "h2"),
        ("compare qwen3-32b --on 8xh100,8xh20o", "h20"),
        ("compare --models qwen3-32b,qwen3-33b --on 8xh100", "qwen3-32b"),
        ("frontier qwen3-32b --engines vlm --on 8xh100", "vllm"),
        ("hardware qwen3-32b --among h1000", "h100"),
        ("hardware qwen3-32b --basis rented", "rental"),
        ("validate deepseek-producton-day", "did you mean \"deepseek-production-day\""),
        ("practice --topic rack", "racks"),
        ("pipeline -s 1f2b", "1f1b"),
        ("layout deepseek-v3 --flags=-tp~8 --tool vlm", "vllm"),
        ("layout deepseek-v3 --flags=--tensor-paralel-size~8", "--tensor-parallel-size"),
        ("ask stpe", "step"),
        ("web --host nowhere", "nowhere"),
    ]);
}

#[test]
fn impossible_values_are_refused_with_a_hint() {
    said(&[
        ("step --context -5", "from 0 to"),
        ("estimate qwen3-8b --on h100 --isl -5", "from 1 to"),
        ("estimate qwen3-8b --on h100 --ttft -5", "cannot be negative"),
        ("estimate qwen3-8b --on h100 --price -5", "cannot be negative"),
        ("estimate qwen3-8b --on h100 --tp 2", "2xh100-sxm"),
        ("estimate qwen3-8b --on 8xh10", "8xh100"),
        ("estimate qwen3-8b --on h100 --engine tgi", "vllm"),
        ("price opus-4.8 --turns 20 --gap 2m", "2min"),
        ("man foo", "rackmath --help"),
        ("estimate qwen3-8b --on 8h100", "8xh100"),
        ("validate foo", "splitwise"),
        ("systems foo", "rackmath chips"),
        ("step --context lots", "4k"),
        ("step --batch 0", "from 1 to"),
        ("step --price 2~EUR", "2.10/h"),
        ("step --chips 0", "1 to"),
        ("step --overlap 1.5", "max, sum, kv+max"),
        ("step --counting loose", "strict, lecture"),
        ("step --math fp4 --on h100", "it has"),
        ("step --basis stolen", "rental"),
        ("step --on 8xh200+8xb200", "joined by +"),
        ("compare --on 8xh200+8xb200", "joined by +"),
        ("cost --on 8xh200@dear", "8xh200@2.10"),
        ("cost --on 8xh200@.10/h", "a shell takes $2"),
        ("curve --from 100 --to 10", "rising range"),
        ("curve --points 1", "2 to 100,000"),
        ("step ./no-such-config.json", "No such file"),
        ("layout llama-3.1-8b --on hgx-h100 --tp 3", "divisor of the 32 heads"),
        ("layout deepseek-v3 --dp 72 --ep 72", "divisor of the 256 experts"),
        ("layout llama-3.1-8b --on hgx-h100 --tp 16", "at most the 8"),
        ("layout llama-3.1-70b --on 64xh100 --tp 20", "divisor of the 64 heads"),
        ("pipeline -s dualpipe --stages 3", "even"),
        ("pipeline --stage-factors 1,2", "one for each of 4 stages"),
        ("layout deepseek-v3 --routing zipf", "uniform or power"),
        ("memory deepseek-v3 --gpu-memory-utilization 90", "0.9 or 90%"),
        ("estimate qwen3-32b --on hgx-h200 --tp 8 --dcp 2", "a divisor of the 1 copies"),
        ("estimate deepseek-v3 --on hgx-h200 --tp 8 --dcp 3", "a divisor of tp 8"),
        ("estimate deepseek-v3 --on hgx-h200 --engine sglang --tp 8 --dcp 8", "only for vllm"),
        ("plan deepseek-v3 --on hgx-h200 --dcp 0", "1 to 1,024"),
        ("price opus-4.8 --as-of yesterday", "2026-08-05"),
        ("price opus-4.8 -i 10 --cached 20", "parts of the prompt"),
        ("price opus-4.8 --svg -", "no picture"),
        ("fleet", "--output-tok-s, --rate or --tokens-per-month"),
        ("fastmode gpt-5", "claims none"),
        ("deduce --input 5~EUR", "0.55/Mtok"),
        ("deduce --input=-5$/Mtok", "0.55/Mtok"),
        ("step --price .10/h", "a shell takes $2"),
        ("cost --owner --capex .6k", "a shell takes $2"),
        ("plan qwen3-32b --on 8xh200 --budget /h", "a shell takes $2"),
        ("deduce gpt-5.5 --as-of yesterday", "not a date"),
        ("deduce gpt-5.5 --as-of 2999-01-01", "not after"),
        ("deduce --as-of 2026-08-05", "a sheet"),
        ("scaling --flop 1e24 --loss 2", "one of flop, loss"),
        ("scaling --price $2/h", "give one with --on"),
        ("lifecycle --rl many", "prompts, group"),
        ("lifecycle --eta 0", "eta = 0"),
        ("lifecycle --survives 0", "more than none"),
        ("goodput deepseek-v3", "--chip-mtbf"),
        ("forensics", "a run of the catalogue"),
        ("forensics --mfu high", "'high' for '--mfu"),
        ("reversible --depth 1000", "2 to 128"),
        ("train llama-3.1-8b --on hgx-h100 --batch 100 --dp 8", "100"),
        ("train llama-3.1-8b --tp 8 --wide", "search"),
        ("train --run palm-540b", "its authors printed no layout"),
        ("plan llama-3.1-8b --on h100 --sure 99.99%", "error: --sure = 99.99%"),
        ("estimate llama-3.1-8b --on h100 --rate 0", "error: --rate = 0"),
        ("plan llama-3.1-8b --on h100 --isl 1k --isl-dist uniform:1k..2k", "one of them"),
        ("plan llama-3.1-8b --on h100 --isl-dist lognormle:mean=4k,cv=1", "lognormal"),
        ("plan llama-3.1-8b --on h100 --peak 0.5", "error: --peak = 0.5"),
        ("plan llama-3.1-8b --on h100 --headroom 20%", "a rate as well"),
        ("plan deepseek-v3 --on 2xh200 --handover -", "nothing fits"),
        ("plan qwen3-32b --on h200 --handover - --chips-per-host 0", "error: --chips-per-host = 0"),
        ("practice --answers many", "many"),
        ("trace /no/such/file", "/no/such/file"),
        ("whatif no-such-plan.json", "no-such-plan.json"),
        ("ask step no-such-file.json", "no-such-file.json"),
    ]);
}

#[test]
fn flags_that_a_command_does_not_use_are_refused() {
    said(&[
        ("outlook qwen3-32b --shard 1/2", "'--shard'"),
        ("frontier qwen3-32b --handover x", "'--handover'"),
        ("compare qwen3-32b --top 3", "'--top'"),
        ("hardware qwen3-32b --on h200", "'--on'"),
        ("scaling --serve-on h100", "'--serve-on'"),
        ("estimate qwen3-32b --svg x.svg", "'--svg'"),
        ("whatif plan.json --tpot 20ms", "'--tpot'"),
        ("step --engine vllm", "'--engine'"),
        ("plan --feasible", "rackmath sweep plan ... --feasible"),
        ("plan --out x", "--shard"),
        ("plan --keep 5min", "--trace"),
    ]);
}

#[test]
fn words_of_before_still_work_and_say_what_they_are_called_now() {
    for (old, new, note) in [
        ("estimate qwen3-32b --on h200 --request-rate 2", "estimate qwen3-32b --on h200 --rate 2", "--rate"),
        ("estimate qwen3-32b --on h200 --ttft-slo 2s", "estimate qwen3-32b --on h200 --ttft 2s", "--ttft"),
        ("plan llama-3.1-8b --on h100 --user 30", "plan llama-3.1-8b --on h100 --speed 30", "--speed"),
    ] {
        let (out, err, code) = rackmath(old);
        assert!(code == 0 && err.contains("note: --") && err.contains(&format!("is now {note}")), "{err}");
        assert_eq!(out, shown(new));
    }
    let (_, err, _) = rackmath("plan llama-3.1-8b --on 8xh100 --rate 5 --headroom 20%");
    assert!(err.contains("--cache-headroom"), "{err}");
}

/// The part of a page that says why.
fn why(args: &str) -> String {
    let page = shown(&format!("plan {args}"));
    let says = ["No deployment", "Nothing fits", "Nothing can be planned"];
    assert!(says.iter().any(|word| page.starts_with(word)), "the verdict comes first: {page}");
    page.split("\nmore: ").next().expect("text").trim_end().to_owned()
}

#[test]
fn plans_nobody_can_have_say_what_stands_in_the_way() {
    for (name, args) in [
        ("a_token_below_the_latency_floor", "qwen3-32b --on 8xh200 --tpot 0.1ms"),
        ("a_user_faster_than_any_chip", "deepseek-v3 --on 16xh200 --speed 100000 --aggregated"),
        ("limits_that_cannot_be_met_even_one_by_one", "qwen3-32b --on 8xh200 --tpot 0.1ms --ttft 1ms"),
        ("a_model_larger_than_the_fleet", "deepseek-v3 --on 2xh200"),
        ("a_request_larger_than_the_fleet", "qwen3-32b --on 8xh200 --isl 10M --pretend"),
        ("a_request_longer_than_the_model", "qwen3-32b --on 8xh200 --isl 50k"),
        ("an_engine_that_does_not_run_there", "qwen3-32b --on 8xmi300x --engine trtllm"),
        ("a_version_that_does_not_run_there_any_more", "qwen3-32b --on 8xv100 --engine vllm@0.25 --objective chips"),
        ("a_format_that_does_not_run_there", "qwen3-32b --on 8xb200 -q int8"),
        ("more_traffic_than_the_chips_serve", "qwen3-32b --on 8xh200 --rate 1000"),
        ("a_budget_below_one_chip", "qwen3-32b --on 8xh200 --budget $1/h"),
    ] {
        insta::assert_snapshot!(name, why(args));
    }
    let slips = [
        "--on 0xh200",
        "--on h200 --chips 0",
        "--on 8xh200 --tpot=-5ms",
        "--on 8xh200 --tpot 0ms",
        "--on 8xh200 --rate=-3",
        "--on 8xh200 --degrees odd",
    ];
    let all = slips.map(|args| refused(&format!("plan qwen3-32b {args}")));
    insta::assert_snapshot!("what_cannot_be_asked_is_refused", all.join("\n"));
}

#[test]
fn what_does_not_work_out_is_an_answer() {
    for (args, says) in [
        ("train llama-3.1-405b --on hgx-h100 --batch 8", "No layout fits on 8 chips; from 96 chips on"),
        ("train llama-3.1-70b --on hgx-h100 --dp 8", "the first change that makes it fit: several"),
        ("train llama-3.1-8b --loss 1.7", "out of reach: endless data leaves 1.99"),
        ("plan llama-3.1-8b --on 16xh200 --budget $13/h --aggregated", "8 x 1 = 8 chips"),
        ("outlook deepseek-v3 --on 2xh200", "No deployment meets the limits"),
        ("compare deepseek-v3 --on h100,2xh200", "None serves it; h100, 2xh200: no room for it"),
        ("estimate llama-3.1-8b --on h100 --engine vllm@99.1.2 --no-changes", "vllm 99.1.2 was never looked at"),
        (
            "estimate llama-3.1-70b --on 8xa100-80gb --tp 8 -q fp8 --no-changes",
            "on a100-80gb fp8 weights are expanded to 16 bits",
        ),
        ("estimate qwen3-235b-a22b --on 8xh200 -q fp8 --flags=-tp~4~--enable-expert-parallel", "tp4 ep4, 4 chips"),
        (
            "plan deepseek-v3 --on hgx-h200 --isl=60000 --aggregated --dcp=2,4,8",
            "decode context parallel 2, 4, 8 tried",
        ),
        ("layout llama-3.1-70b --on h200 --chips 8 --tp 8 --kv fp8 -b 32", "tensor-parallel reductions"),
    ] {
        let page = whole(args).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(says), "{args}: {page}");
    }
    let plain = shown("plan deepseek-v3 --on hgx-h200 --isl=60000 --aggregated");
    assert!(!plain.contains("dcp") && !plain.contains("context parallel"), "{plain}");
    let [one, two, three] = ["--on 8xh200", "--on h200 --chips 8", "--on h200x8"]
        .map(|machine| shown(&format!("layout llama-3.1-70b {machine} --tp 8 --kv fp8 -b 32")));
    assert!(one == two && two == three, "a machine however it is typed");
}

#[test]
fn narrow_terminals_are_respected() {
    let text = whole("estimate llama-3.1-70b --on 8xh200 --tp 8 --engine vllm --width 60");
    for line in text[..text.find("sources").expect("printed")].lines() {
        assert!(line.chars().count() <= 72, "{line}");
    }
}

#[test]
fn a_number_is_read_as_people_write_it() {
    // A share of the prompt, in whichever way it is written, is no fraction of a token.
    let bill = |cached: &str| {
        let answer = json(&format!("price opus-4.8 -i 100k --cached {cached} -o 5k"));
        answer["cards"][0]["policies"][0]["total_usd"].as_f64().expect("a bill")
    };
    assert_eq!([bill("80%"), bill("0.8"), bill("100%")], [bill("80k"), bill("80k"), bill("100k")]);
    assert!(bill("80%") < bill("0"));
    assert_eq!(json("fastmode --price 2x --speed 1.5x"), json("fastmode --price 2 --speed 1.5"));
    let day = "estimate llama-3.1-8b --on h100 --rate";
    assert_eq!(json(&format!("{day} 86400/day")), json(&format!("{day} 60/min")));
    said(&[(&format!("{day} 1/fortnight"), "8/s, 480/min, 5k/h or 1M/day")]);
}

#[test]
fn a_verdict_quotes_what_can_be() {
    for (line, verdict) in [
        ("curve mistralai/Mistral-7B-v0.1 --on rtx-3090 --over batch", "at 20: bare memory is full,"),
        ("curve Qwen/Qwen3-8B --on h100 --over context --batch 32", "at 14,500: bare memory is full,"),
        ("scaling -n 3B", "Best by the middle of 10 laws: 3.00 B parameters on 63.8 B tokens, 21.3 a parameter;"),
    ] {
        let page = shown(line).replace('\n', " ");
        assert!(page.contains(verdict), "{page}");
        assert!(!["at 2,048;", "at 65,536;", "experts are worth"].iter().any(|no| page.contains(no)), "{page}");
    }
    // A law of experts that is asked for alone is answered, and a size with experts too.
    assert!(shown("scaling -n 3B --law clark-2022").contains("worth 3.00 B dense parameters"));
    // What needs no memory is not refused for want of it; what does is.
    assert!(!shown("explain ridge --on l4").contains("Does not fit"));
    assert!(shown("explain step --on l4").contains("Does not fit"));
    assert!(whole("fleet --tokens-per-month 300B").contains("300 B tokens a month"));
    assert!(shown("glossary goodput").contains("requests a second that meet their targets"));
    let page = shown("pipeline --schedule 1f1b --stages 8 --micro-batches 32");
    assert!(page.contains("78.0 s in any order; split backward passes or chunks can take less"), "{page}");
}

/// One line a machine, none broken inside a word.
#[test]
fn machines_fit_a_terminal() {
    for width in [80, 100, 140] {
        let page = shown(&format!("systems --width {width}"));
        assert!(page.lines().all(|line| line.chars().count() <= width), "{page}");
        assert!(page.lines().count() < 60 && page.contains("72 x gb200 ") && page.contains("PF fp8"), "{page}");
    }
}
