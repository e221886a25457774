//! Serving figures of other makers' chips, older engines and single posts.
//!
//! Names that the catalogue does not have are kept here and refused by whoever predicts the row; what a table leaves open so
//! that nothing can be predicted is refused here, with the reason.

use super::inferencex::{DRAWN, ROUNDS};
use super::rows::{Read, degree, of, setup};
use crate::names::Names;
use crate::rows::Record;
use rackmath_spec::layout::Degrees;
use rackmath_spec::measurement::{Load, Measurement, Metric, Setup, Way};

/// Degrees over so many chips of one copy: attention groups, and experts spread over some.
fn spread(chips: u64, dp: u64, ep: u64) -> Degrees {
    let (dp, ep) = (dp.clamp(1, chips), ep.clamp(1, chips));
    Degrees { tp: (chips / dp).max(1), dp, ep, etp: (chips / ep).max(1), ..Degrees::default() }
}

/// The figures of a row that are stated, of one setup under one load.
fn figures(
    row: &Record,
    source: &str,
    setup: &Setup,
    load: Load,
    columns: &[(&str, Metric, &str)],
) -> Vec<Measurement> {
    let few = |concurrency: f64| if concurrency <= 16.0 { ", up to 16" } else { ", above 16" };
    let figure = |(part, metric, column): &(&str, Metric, &str)| {
        let value = row.number(column).filter(|v| *v > 0.0)?;
        let load_words = match load.way {
            Way::Closed { concurrency, .. } if metric.is_first_token() => few(concurrency),
            _ => "",
        };
        Some(of((source, &format!("{part}{load_words}")), setup.clone(), load, (*metric, value)))
    };
    columns.iter().filter_map(figure).collect()
}

const TIMES: [(&str, Metric, &str); 2] = [("TPOT", Metric::TpotMs, "tpot_ms"), ("TTFT", Metric::TtftMs, "ttft_ms")];
const RATE: [(&str, Metric, &str); 1] = [("throughput", Metric::OutputTokSPerGpu, "derived_output_tok_s_per_gpu")];

/// The number behind a flag that a note states.
fn noted(note: &str, flag: &str) -> Option<f64> {
    let behind = &note[note.find(flag)? + flag.len()..];
    behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The tables of AMD, TPU and other chips, which share their columns.
pub(super) fn serving(names: &Names<'_>, row: &Record) -> Read {
    if row.text("reliability") == "low" {
        return Err("marked as of low reliability".into());
    }
    if !["", "none"].contains(&row.text("spec_decode")) {
        return Err("drafts, whose acceptance is not published".into());
    }
    let note = row.text("note");
    // Lengths are the means where a note tells how they were drawn.
    let share = match note {
        _ if note.contains("lengths average about half") || note.contains("lengths are about half") => 0.5,
        _ if note.contains("range ratio 0.8") => DRAWN,
        _ => 1.0,
    };
    let (isl, osl) = (row.amount("isl")? * share, row.amount("osl")? * share);
    let chips = row.degree("n_gpus");
    // A degree may count devices, two to a chip.
    let tp = row.count("tp_size").filter(|tp| *tp > 0).map_or(chips, |tp| tp.min(chips));
    let one = (tp * row.degree("dp_size")).min(chips);
    let model = names.named(row.text("model"));
    let setup = Setup {
        weights: names.inferencex_format(&model, row.text("precision")),
        engine: names.engine(row.text("engine"), row.text("engine_version")),
        system: names.system(one, row.text("hardware")),
        degrees: spread(one, row.degree("dp_size"), row.degree("ep_size")),
        kv: ["kv-cache fp8", "kv fp8"].iter().any(|word| note.contains(word)).then(|| "fp8".into()),
        chunk: noted(note, "max-num-batched-tokens "),
        sequences: noted(note, "max-num-seqs "),
        model,
        ..Setup::default()
    };
    let (kind, all) = (row.text("kind"), row.number("num_prompts"));
    let fixed = note.contains("fixed lengths");
    let (way, columns): (Way, &[_]) = match (row.number("batch"), row.number("concurrency"), row.number("request_rate"))
    {
        (Some(batch), ..) => (Way::Static { batch }, &RATE),
        (None, Some(concurrency), _) => {
            let rounds = all.map_or(ROUNDS, |n| (n / concurrency).max(1.0));
            let columns: &[_] = if row.number("tpot_ms").is_some() { &TIMES } else { &RATE };
            (Way::Closed { concurrency, rounds, fixed }, columns)
        }
        (None, None, Some(rate)) if rate > 0.0 => (Way::Open { rate }, &TIMES),
        _ if kind.contains("at once") => (Way::Static { batch: all.ok_or("no number of requests")? }, &RATE),
        _ => (Way::Full, &RATE),
    };
    // Where all come at once there is a slot for each.
    let sequences = if kind.contains("at once") { all } else { setup.sequences };
    let found = figures(row, "published", &Setup { sequences, ..setup }, Load::of(way, isl, osl), columns);
    if found.is_empty() { Err("no figure that can be predicted".into()) } else { Ok(found) }
}

/// Nightly runs of ATOM, alone or under vLLM and SGLang; lengths are drawn as InferenceX draws them.
pub(super) fn atom(names: &Names<'_>, row: &Record) -> Read {
    let chips = row.count("n_gpus").filter(|n| *n > 0).ok_or("no number of chips")?;
    let drafts = match row.text("spec_decode") {
        "none" => 0.0,
        word => word.trim_start_matches("mtp").parse().map_err(|_| "drafts of a number that is not stated")?,
    };
    let accepted = match (drafts > 0.0, row.number("accept_length")) {
        (false, _) => 1.0,
        (true, Some(length)) => length,
        (true, None) => return Err("drafts, whose acceptance is not published".into()),
    };
    let model = names.named(row.text("model"));
    let dp = if row.text("attention_dp") == "yes" { chips } else { 1 };
    let setup = Setup {
        weights: names.inferencex_format(&model, row.text("precision")),
        kv: Some("fp8".into()),
        engine: names.engine(row.text("engine"), ""),
        system: names.system(chips, row.text("hardware")),
        degrees: spread(chips, dp, row.degree("ep_size")),
        model,
        ..Setup::default()
    };
    let way = Way::Closed { concurrency: row.amount("concurrency")?, rounds: ROUNDS, fixed: false };
    let load = Load::of(way, row.amount("isl")? * DRAWN, row.amount("osl")? * DRAWN);
    Ok(figures(row, "ATOM", &setup, Load { drafts, accepted, ..load }, &TIMES))
}

/// Fixed batches of Argonne's sweep of 2024, in 16 bits; vLLM of that year, whose release is not stated.
pub(super) fn argonne(names: &Names<'_>, row: &Record) -> Read {
    let chips = row.degree("n_gpus");
    let engine = match names.engine(row.text("engine"), "").as_str() {
        "llamacpp" if chips > 1 => return Err("several cards that share the layers and take turns".into()),
        "vllm" => "vllm@0.5".to_owned(),
        other => other.to_owned(),
    };
    let (weights, kv) = (Some("bf16".into()), Some("bf16".into()));
    let setup = Setup { weights, kv, engine, ..setup(names, row, chips) };
    let load = Load::of(Way::Static { batch: row.amount("batch")? }, row.amount("isl")?, row.amount("osl")?);
    // Such requests came back at once, without an answer.
    let longest = names.catalog.model(&setup.model).ok().and_then(|m| m.shape()?.context_max);
    if longest.is_some_and(|longest| load.input + load.output > longest as f64) {
        return Err("longer than the model's context".into());
    }
    let value = row.amount("e2e_latency_s")? * 1e3;
    Ok(vec![of(("Argonne", "E2E"), setup, load, (Metric::E2eMs, value))])
}

/// Traces at a low rate on several replicas; the day's release of vLLM was 0.8.
pub(super) fn apex(names: &Names<'_>, row: &Record) -> Read {
    let tp = row.degree("tp");
    let rate = match row.text("arrival_spec") {
        "05" => 0.5,
        "025" => 0.25,
        other => return Err(format!("no rate \"{other}\"")),
    };
    let setup = Setup {
        weights: (row.text("fp8") == "True").then(|| "fp8".into()),
        engine: "vllm@0.8".into(),
        ..setup(names, row, tp)
    };
    let way = Way::Open { rate: rate / row.degree("dp_replicas") as f64 };
    let load = Load::of(way, row.amount("isl_mean")?, row.amount("osl_mean")?);
    Ok(figures(row, "vLLM low rate", &setup, load, &TIMES))
}

/// Figures of posts about large deployments: those of one instance whose load is stated.
pub(super) fn nodes(names: &Names<'_>, row: &Record) -> Read {
    let layout = row.text("parallelism");
    let tp = degree(layout, "TP").ok_or("no stated layout of one instance")?;
    let pp = degree(layout, "PP").unwrap_or(1);
    let chips = row.count("n_gpus").ok_or("no number of chips")?;
    if chips != tp * pp || !["", "none"].contains(&row.text("spec_decode")) {
        return Err("several instances, or drafts".into());
    }
    let drafted = row.number("concurrency_total");
    let (way, metric, part) = match row.text("metric") {
        "ttft" => {
            (Way::Closed { concurrency: drafted.unwrap_or(1.0), rounds: ROUNDS, fixed: true }, Metric::TtftMs, "TTFT")
        }
        "tpot_peak" => {
            let context = row.amount("kv_len")?;
            (Way::DecodeStep { batch: drafted.unwrap_or(1.0), context }, Metric::TpotMs, "TPOT")
        }
        "tpot" => {
            let concurrency = drafted.ok_or("no concurrency")?;
            (Way::Closed { concurrency, rounds: ROUNDS, fixed: true }, Metric::TpotMs, "TPOT")
        }
        other => return Err(format!("no load for \"{other}\"")),
    };
    let degrees = Degrees { tp, pp, etp: tp, ..Degrees::default() };
    let engine = names.engine(row.text("engine"), row.text("engine_version"));
    let setup = Setup { engine, degrees, ..setup(names, row, chips) };
    let (isl, osl) = (row.amount("isl")?, row.number("osl").unwrap_or(1.0).max(1.0));
    Ok(vec![of(("large deployments", part), setup, Load::of(way, isl, osl), (metric, row.amount("value")?))])
}

/// Closed loops of vLLM 0.25 on one H200, as clients saw them.
pub(super) fn closed(_: &Names<'_>, row: &Record) -> Read {
    let model = row.needed("run")?.split('_').next().unwrap_or("").to_owned();
    let setup = Setup { model, system: "h200".into(), engine: "vllm@0.25.0".into(), ..Setup::default() };
    let way = Way::Closed { concurrency: row.amount("concurrency")?, rounds: f64::INFINITY, fixed: true };
    let load = Load::of(way, row.amount("input")?, row.amount("output")?);
    let mut found = figures(
        row,
        "vLLM on an H200",
        &setup,
        load,
        &[("TPOT", Metric::TpotMs, "tpot_mean_s"), ("TTFT", Metric::TtftMs, "ttft_mean_s")],
    );
    // The table is in seconds.
    for figure in &mut found {
        figure.value *= 1e3;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::parse;

    fn read(reader: fn(&Names<'_>, &Record) -> Read, csv: &str) -> Vec<Read> {
        let catalog = rackmath_catalog::embedded();
        let names = Names::new(&catalog);
        parse(csv).unwrap().iter().map(|row| reader(&names, row)).collect()
    }

    const SERVING: &str = "\
model,precision,hardware,n_gpus,engine,engine_version,isl,osl,concurrency,batch,num_prompts,tp_size,spec_decode,ttft_ms,tpot_ms,derived_output_tok_s_per_gpu,kind,reliability,note
llama-3.1-70b,fp8,mi300x,8,vllm,0.11.1,128,256,,,512,8,none,,,900,all requests at once,high,
llama-3.1-70b,bf16,tpu-v7,4,sglang-jax,0.1.0,1024,1024,128,,384,8,none,4000,30,,closed loop,high,fixed lengths
llama-3.1-70b,fp8,mi300x,8,vllm,0.11.1,128,256,4,,,8,mtp,90,20,,closed loop,high,
llama-3.1-70b,fp8,mi300x,8,vllm,0.11.1,128,256,4,,,8,none,90,20,,closed loop,low,
llama-3.1-70b,fp8,mi300x,8,vllm,0.11.1,sharegpt,256,4,,,8,none,90,20,,closed loop,high,
";

    #[test]
    fn a_table_of_other_chips_is_read_by_what_it_states() {
        let rows = read(serving, SERVING);
        let at_once = &rows[0].as_ref().unwrap()[0];
        assert_eq!((at_once.load.way, at_once.setup.sequences), (Way::Static { batch: 512.0 }, Some(512.0)));
        assert_eq!((at_once.setup.engine.as_str(), at_once.value), ("vllm@0.11.1", 900.0));
        let tpu = rows[1].as_ref().unwrap();
        // Eight devices are four chips; 384 prompts at 128 at a time are three rounds.
        assert_eq!((tpu[0].setup.degrees.tp, tpu[0].setup.system.as_str()), (4, "4xtpu-v7"));
        assert_eq!(tpu[0].load.way, Way::Closed { concurrency: 128.0, rounds: 3.0, fixed: true });
        assert_eq!(tpu[1].source.part, "TTFT, above 16");
        for (row, word) in rows[2..].iter().zip(["drafts", "low", "isl"]) {
            assert!(row.as_ref().unwrap_err().contains(word), "{row:?}");
        }
    }

    #[test]
    fn nightly_runs_draw_nine_tenths_of_their_lengths_and_state_what_is_accepted() {
        let rows = read(
            atom,
            "model,precision,hardware,n_gpus,engine,isl,osl,concurrency,ep_size,attention_dp,spec_decode,accept_length,ttft_ms,tpot_ms
DeepSeek-R1,mxfp4,mi355x,8,atom-vllm,1000,1000,64,,yes,mtp3,2.8,300,20
DeepSeek-R1,mxfp4,mi355x,8,atom,1000,1000,64,,no,mtp3,,300,20
DeepSeek-R1,mxfp4,mi355x,,atom,1000,1000,64,,no,none,,300,20
",
        );
        let first = &rows[0].as_ref().unwrap()[0];
        assert_eq!((first.load.input, first.load.drafts, first.load.accepted), (900.0, 3.0, 2.8));
        assert_eq!((first.setup.degrees.dp, first.setup.degrees.tp, first.setup.engine.as_str()), (8, 1, "atom"));
        assert_eq!(first.setup.weights.as_deref(), Some("mxfp4"));
        assert!(rows[1].is_err() && rows[2].is_err());
    }

    #[test]
    fn older_sweeps_and_posts_are_read() {
        let rows = read(
            argonne,
            "model,hardware,n_gpus,parallelism,engine,isl,osl,batch,e2e_latency_s
mistralai/Mistral-7B-v0.1,Nvidia A100 GPU,1,TP1,TensorRT-LLM,128,128,4,1.5
mistralai/Mistral-7B-v0.1,Nvidia A100 GPU,2,TP2,llama.cpp,128,128,4,1.5
facebook/opt-6.7b,Nvidia A100 GPU,1,TP1,vLLM,2048,2048,4,0.1
",
        );
        let first = &rows[0].as_ref().unwrap()[0];
        assert_eq!((first.setup.engine.as_str(), first.setup.chip()), ("trtllm@0.11", "a100-40gb"));
        assert_eq!((first.metric, first.value), (Metric::E2eMs, 1500.0));
        assert!(rows[1].is_err() && rows[2].as_ref().is_err_and(|why| why.contains("context")), "{rows:?}");
        let rows = read(
            nodes,
            "model,hardware,n_gpus,parallelism,isl,kv_len,osl,concurrency_total,spec_decode,metric,value,engine
DeepSeek-V4-Pro,H20-141GB,16,PP2-TP8,65536,65536,,16,none,tpot_peak,30,SGLang
DeepSeek-V4-Pro,H20-141GB,16,PP2 x TP8 prefill,65536,,,,,ttft,4000,SGLang
DeepSeek-V4-Pro,H20-141GB,32,PP2-TP8,65536,65536,,16,none,tpot_peak,30,SGLang
DeepSeek-V4-Pro,H20-141GB,16,EP32,65536,65536,,16,none,tpot_peak,30,SGLang
",
        );
        let first = &rows[0].as_ref().unwrap()[0];
        assert_eq!((first.setup.degrees.tp, first.setup.degrees.pp), (8, 2));
        assert_eq!(first.load.way, Way::DecodeStep { batch: 16.0, context: 65536.0 });
        assert_eq!(rows[1].as_ref().unwrap()[0].metric, Metric::TtftMs);
        assert!(rows[2].is_err() && rows[3].is_err());
        let rows = read(
            apex,
            "model,fp8,hardware,tp,dp_replicas,arrival_spec,isl_mean,osl_mean,ttft_ms,tpot_ms
Llama-3.1-70B,True,H100-SXM-80GB,4,2,025,300,700,50,20
",
        );
        assert_eq!(rows[0].as_ref().unwrap()[0].load.way, Way::Open { rate: 0.125 });
        let rows = read(
            closed,
            "run,input,output,concurrency,ttft_mean_s,tpot_mean_s\nllama-3.1-8b_closed_1,1024,256,16,0.04,0.007\n",
        );
        assert_eq!(rows[0].as_ref().unwrap()[0].value, 7.0);
    }
}
