//! What the flags of each server mean for memory, layout and schedule.

use super::pattern::{self, Moved};
use super::tables::{Means, table};
use super::{Launch, Program, Reading, Said, Started, Use, configured, judged, said};
use crate::command::{Age, FlagList};
use crate::error::shorten;
use crate::file::flags::{self, Meaning};
use crate::launch::{Dealt, Start};
use crate::{Dtype, Layout, SpecError};
use rackmath_units::{Bytes, Fraction};
use serde_json::Value;
use std::collections::BTreeMap;
use strum::VariantArray as _;

use Means::{
    AllExperts, Answer, Bears, Block, Blocks, Cache, CacheTokens, Chunked, Depth, Drafter, Drafts, Eager, ExpertLayers,
    Films, Flash, GraphMode, GraphMost, GraphSizes, Kv, KvPart, Layers, Level, Longest, Lora, LoraRank, MainCard,
    Method, Model, MostLoras, NoDryPictures, NoPrefix, Offload, Part, Pass, Pictures, Prefix, Prompt, Repo, Sequences,
    Settings, Shares, TextOnly, Utilisation, Weights,
};

/// Formats of a cache that llama.cpp takes (`kv_cache_types` of ggml-org/llama.cpp common/arg.cpp, read 2026-11-18).
const LLAMA_CACHES: [&str; 9] = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"];

/// Flags with a dashed name, and what its first dashes left off.
fn bare(name: &str) -> String {
    name.trim_start_matches('-').replace('_', "-")
}

fn means(program: Program, name: &str) -> Option<Means> {
    let all = || table(program).iter();
    let exact = all().find(|(_, names)| names.split_whitespace().any(|own| own == name));
    let (base, inner) = name.split_once('.').map_or((name, None), |(base, inner)| (base, Some(inner)));
    // A part of a value that bears on the answer as a whole.
    let whole =
        || inner.and_then(|_| all().find(|(m, names)| *m == Bears && names.split_whitespace().any(|own| own == base)));
    exact.or_else(whole).map(|(means, _)| *means)
}

/// The flag of a server that sets what the same flag of another server sets: `--mem-fraction-static` to vLLM.
fn sister(program: Program, name: &str, list: &FlagList, version: Option<&str>) -> Option<String> {
    let others = Program::VARIANTS.iter().filter(|other| **other != program);
    let means = others.filter_map(|other| means(*other, name)).find(|m| !matches!(m, Bears | Settings))?;
    let (_, names) = table(program).iter().find(|(own, _)| *own == means)?;
    let spelled = |own: &str| [format!("--{own}"), format!("--{}", own.replace('-', "_"))];
    let known = |flag: &String| list.age(flag, version) == Age::Known;
    names.split_whitespace().flat_map(spelled).find(known)
}

/// Everything a server was started with.
pub fn launch(
    started: &Started,
    program: Program,
    list: &FlagList,
    settings: Option<&str>,
    version: Option<&str>,
) -> Result<Launch, SpecError> {
    let version = version.map(str::to_owned).or_else(|| started.version.clone());
    let (mut flags, alone) = said(list, &started.words, version.as_deref())?;
    let on_line = flags.len();
    if let Some(text) = settings {
        flags.extend(configured(text)?);
    }
    let mut state = State::new(program);
    let mut readings = Vec::new();
    for (at, flag) in flags.iter().enumerate() {
        let name = bare(&flag.name);
        // A prompt of llama-server is a text, one of llama-bench a length.
        let bench = |m: &Means| !matches!(m, Prompt | Answer | Depth) || list.command == "llama-bench";
        let sets = means(program, &name).filter(bench);
        let used = match (sets, cutting(program, &name)) {
            (_, Some(cut)) => state.cut(cut, flag, &name)?,
            (Some(Bears), _) => Use::Unmodelled(None),
            (Some(Settings), _) if settings.is_none() => {
                Use::Unmodelled(Some("the file it names was not given".into()))
            }
            (Some(means), _) => state.take(means, flag, &name)?,
            (None, None) => match name.strip_prefix("no-") {
                Some(positive) if list.switch(&format!("--{positive}")) => state.off(program, flag, positive)?,
                _ => Use::Idle,
            },
        };
        // What a list does not have was never read by the engine, whatever it would mean.
        let level = program == Program::Vllm && name.split('.').next() == Some("O");
        // Flags without a command may be those a layout is printed as, which the engine reads in a file.
        let filed = format!("--{}", flag.name.trim_start_matches('-').replace('-', "_"));
        let printed = started.program.is_none() && list.said_in_config.contains(&filed);
        let typed_out = at < on_line && !level && !printed;
        let known = if typed_out { judged(list, &flag.name, version.as_deref()) } else { Use::Idle };
        let known = match known {
            Use::Unknown(near) => Use::Unknown(sister(program, &name, list, version.as_deref()).or(near)),
            known => known,
        };
        let used = if matches!(known, Use::Idle) { used } else { known };
        let value = shown(flag.value.as_ref());
        readings.push(Reading { flag: typed(flag), value, place: flag.word.place, used, sets });
    }
    state.positional(&alone)?;
    state.against()?;
    let gpus = [started.gpus, visible(&started.env)].into_iter().flatten().min();
    readings.extend(started.env.iter().map(|(name, value)| variable(name, value)));
    let layout = state.layout()?;
    Ok(Launch {
        program,
        version,
        image: started.image.clone(),
        gpus,
        model: state.model.map(|(model, _)| model),
        layout,
        cut: !state.degrees.is_empty(),
        start: state.start,
        fit_longest: state.fit_longest,
        weights: state.weights,
        method: state.method,
        dtype: state.dtype,
        kv: state.kv,
        env: started.env.clone(),
        flags: readings,
    })
}

/// The flag without what its value was taken apart into.
fn typed(flag: &Said) -> String {
    let (base, inner) = flag.name.split_once('.').map_or((flag.name.as_str(), None), |(b, i)| (b, Some(i)));
    let own = flag.word.text.split(['=', '.']).next().unwrap_or(base);
    let own = if flag.word.place == 0 || own.is_empty() { base } else { own };
    inner.map_or_else(|| own.to_owned(), |inner| format!("{own}.{inner}"))
}

fn shown(value: Option<&Value>) -> Option<String> {
    Some(match value? {
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let texts: Vec<String> = list.iter().filter_map(|one| shown(Some(one))).collect();
            texts.join(" ")
        }
        other => other.to_string(),
    })
}

/// Variables that bear on the answer.
fn variable(name: &str, value: &str) -> Reading {
    let used = match name {
        "CUDA_VISIBLE_DEVICES" | "HIP_VISIBLE_DEVICES" | "ROCR_VISIBLE_DEVICES" | "NVIDIA_VISIBLE_DEVICES" => {
            Use::Obeyed
        }
        "WORLD_SIZE" => Use::Obeyed,
        _ if name.starts_with("VLLM_") || name.starts_with("SGLANG_") || name.starts_with("SGL_") => {
            let quiet = [
                "LOG",
                "API_KEY",
                "CACHE_ROOT",
                "HOST",
                "PORT",
                "USAGE",
                "NO_USAGE",
                "TIMEOUT",
                "DOWNLOAD",
                "MODELSCOPE",
            ];
            if quiet.iter().any(|word| name.contains(word)) { Use::Idle } else { Use::Unmodelled(None) }
        }
        "PYTORCH_CUDA_ALLOC_CONF" | "PYTORCH_ALLOC_CONF" => Use::Unmodelled(None),
        _ => Use::Idle,
    };
    Reading { flag: name.to_owned(), value: Some(value.to_owned()), place: 0, used, sets: None }
}

/// Cards that variables leave visible, by number or by name; a device below 0 hides itself and all behind it.
fn visible(env: &BTreeMap<String, String>) -> Option<u64> {
    let names = ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"];
    let count = |list: &String| {
        let list = list.trim().trim_matches(['"', '\'']);
        let none = |one: &&str| matches!(*one, "" | "none" | "void" | "NoDevFiles") || one.starts_with('-');
        // What a line does not set is not known.
        let open = list.eq_ignore_ascii_case("all") || list.contains('$');
        (!open).then(|| list.split(',').map(str::trim).take_while(|one| !none(one)).count() as u64)
    };
    names.iter().filter_map(|name| count(env.get(*name)?)).min()
}

fn cutting(program: Program, name: &str) -> Option<Meaning> {
    flags::meaning(program.tool()?, name)
}

/// What has been said so far, and where.
struct State {
    program: Program,
    start: Start,
    model: Option<(String, String)>,
    degrees: BTreeMap<Meaning, u64>,
    fit_longest: bool,
    weights: Option<String>,
    method: Option<String>,
    dtype: Option<String>,
    kv: Option<String>,
    /// The same of keys and of values.
    halves: (Option<Dtype>, Option<Dtype>),
    lora: (bool, Option<u64>, Option<u64>),
    /// The first time something was said: its words and its value.
    first: BTreeMap<String, (String, String)>,
}

impl State {
    fn new(program: Program) -> Self {
        Self {
            program,
            start: Start::default(),
            model: None,
            degrees: BTreeMap::new(),
            fit_longest: false,
            weights: None,
            method: None,
            dtype: None,
            kv: None,
            halves: (None, None),
            lora: (false, None, None),
            first: BTreeMap::new(),
        }
    }

    /// Refuses the same thing said twice with other values; a line wins over a file of settings.
    fn once(&mut self, what: String, flag: &Said) -> Result<bool, SpecError> {
        let value = shown(flag.value.as_ref()).unwrap_or_default();
        let own = (format!("{} {value}", typed(flag)).trim().to_owned(), value);
        match self.first.get(&what) {
            Some((_, before)) if *before == own.1 => Ok(true),
            Some(_) if flag.word.place == 0 => Ok(false),
            Some((said, _)) => {
                let why = format!("{} against {} before it", shorten(&own.0), shorten(said));
                Err(flag.word.wrong(why).hint("say it once: engines take the last without a word"))
            }
            None => {
                self.first.insert(what, own);
                Ok(true)
            }
        }
    }

    fn cut(&mut self, cut: Meaning, flag: &Said, name: &str) -> Result<Use, SpecError> {
        if !self.once(format!("cut {cut:?}"), flag)? {
            return Ok(Use::Idle);
        }
        let n = if cut.is_switch() { u64::from(truth(flag, true)?) } else { whole(flag, name, 1)? };
        self.degrees.insert(cut, n);
        Ok(Use::Obeyed)
    }

    fn take(&mut self, means: Means, flag: &Said, name: &str) -> Result<Use, SpecError> {
        let key = if means == KvPart { format!("{means:?} {name}") } else { format!("{means:?}") };
        if !matches!(means, Settings | Level) && !self.once(key, flag)? {
            return Ok(Use::Idle);
        }
        let s = &mut self.start;
        match means {
            Model | Repo => self.named(means, flag)?,
            Utilisation => s.utilisation = Some(share(flag)?),
            Cache => s.cache = Some(Bytes::b(count(self.program, flag)? as f64)),
            Blocks => s.blocks = Some(whole(flag, name, 1)?),
            CacheTokens => s.cache_tokens = Some(whole(flag, name, 1)?),
            Longest => self.longest(flag)?,
            // llama.cpp chooses its slots itself.
            Sequences if self.program == Program::LlamaCpp && text(flag)? == "-1" => {}
            Sequences => s.sequences = Some(whole(flag, name, 1)?),
            Pass => {
                let value = text(flag)?;
                if self.program == Program::Sglang && value.starts_with('-') {
                    s.chunked = Some(false);
                } else {
                    s.pass = Some(count(self.program, flag)?);
                }
            }
            Part => s.part = Some(whole(flag, name, 1)?),
            Block => s.block = Some(whole(flag, name, 1)?),
            Eager => s.eager = truth(flag, true)?,
            GraphMode => {
                let none = flag.value.as_ref().is_some_and(Value::is_null);
                s.eager |= none || matches!(text(flag).unwrap_or_default().to_ascii_uppercase().as_str(), "NONE" | "0");
            }
            Level => match shown(flag.value.as_ref()).and_then(|v| v.parse::<u64>().ok()) {
                Some(0) => s.eager = true,
                Some(_) => return Ok(Use::Idle),
                None => return Ok(Use::Unmodelled(None)),
            },
            GraphMost => s.graph = Some(whole(flag, name, 0)?),
            GraphSizes => {
                let sizes = list(flag)?;
                s.graph = sizes.iter().copied().max();
                s.graphs = Some(sizes.len() as u64);
            }
            Pictures => s.pictures = Some(whole(flag, name, 0)?),
            Films => s.films = Some(whole(flag, name, 0)?),
            TextOnly if truth(flag, true)? => (s.pictures, s.films) = (Some(0), Some(0)),
            TextOnly => {}
            NoDryPictures => s.no_dry_pictures = truth(flag, true)?,
            Chunked => s.chunked = Some(truth(flag, true)?),
            Prefix => s.prefix_cache = Some(truth(flag, true)?),
            NoPrefix => s.prefix_cache = Some(!truth(flag, true)?),
            Offload => {
                let gib = real(flag)?;
                // Engines say GB and reckon in GiB.
                s.offload = (gib > 0.0).then(|| Bytes::gib(gib));
            }
            Layers => match text(flag)?.as_str() {
                "all" | "-1" => s.layers = Some(u64::from(u16::MAX)),
                "auto" => return Ok(Use::Unmodelled(Some("auto: all layers are taken".into()))),
                _ => s.layers = Some(whole(flag, name, 0)?),
            },
            ExpertLayers => s.expert_layers = Some(whole(flag, name, 0)?),
            AllExperts => s.expert_layers = Some(u64::from(u16::MAX)),
            Means::Tensors => return self.tensors(flag),
            Means::Fit | Means::FitSpare | Means::FitLongest => self.fitted(means, flag, name)?,
            Shares => s.shares = Some(shares(flag)?),
            Means::Dealt => return self.dealt(flag),
            Means::Unified => s.unified = truth(flag, true)?,
            MainCard => s.main = Some(whole(flag, name, 0)?),
            Flash => match shown(flag.value.as_ref()).unwrap_or_default().as_str() {
                "auto" => {}
                "" | "on" | "1" | "true" | "enabled" => s.flash = Some(true),
                "off" | "0" | "false" | "disabled" | "0,1" | "1,0" => s.flash = Some(false),
                other => return Err(flag.word.wrong(format!("{other} is not on, off or auto"))),
            },
            Drafts => s.drafts = Some(whole(flag, name, 0)?),
            Drafter => s.drafter = Some(text(flag)?),
            Method => s.method = Some(text(flag)?),
            Lora => self.lora.0 = truth(flag, true)?,
            MostLoras => self.lora.1 = Some(whole(flag, name, 1)?),
            LoraRank => self.lora.2 = Some(whole(flag, name, 1)?),
            Weights => return self.quantised(flag),
            Means::Dtype => {
                let word = text(flag)?;
                if word != "auto" {
                    let known = Dtype::named(&word).filter(|d| matches!(d, Dtype::Fp32 | Dtype::Bf16 | Dtype::Fp16));
                    let wrong = || flag.word.wrong(format!("\"{}\" is no type to compute in", shorten(&word)));
                    let known = known.ok_or_else(|| wrong().hint("expected auto, bfloat16, float16 or float32"))?;
                    self.dtype = Some(known.to_string());
                }
            }
            Kv => return self.cached(flag, None),
            KvPart => return self.cached(flag, Some(name.ends_with('k'))),
            Prompt | Answer | Depth => {
                let most = list(flag)?.into_iter().max().unwrap_or(0);
                s.longest = Some(s.longest.unwrap_or(0).saturating_add(most)).filter(|n| *n > 0);
            }
            Settings => {}
            Bears => return Ok(Use::Unmodelled(None)),
        }
        Ok(Use::Obeyed)
    }

    /// Tensors that lie elsewhere: whole experts with the host, or what is not followed.
    fn tensors(&mut self, flag: &Said) -> Result<Use, SpecError> {
        match pattern::moved(&text(flag)?) {
            Moved::Experts(layers) if pattern::all(&layers) => self.start.expert_layers = Some(u64::from(u16::MAX)),
            Moved::Experts(layers) => self.start.expert_at = Some(layers),
            Moved::Else => {
                let why = "only patterns that put whole experts with the host are followed, such as exps=CPU";
                return Ok(Use::Unmodelled(Some(why.into())));
            }
        }
        Ok(Use::Obeyed)
    }

    /// Whether what was not said is lowered until it fits, and how far.
    fn fitted(&mut self, means: Means, flag: &Said, name: &str) -> Result<(), SpecError> {
        match means {
            Means::Fit => self.start.fit = Some(truth(flag, true)?),
            Means::FitSpare => {
                // One number of MiB for all cards or one for each: the largest is kept free.
                let most = list(flag)?.into_iter().max().unwrap_or(0);
                self.start.fit_spare = Some(Bytes::b(most as f64 * 1_048_576.0));
            }
            _ => self.start.fit_longest = Some(whole(flag, name, 0)?),
        }
        Ok(())
    }

    fn longest(&mut self, flag: &Said) -> Result<(), SpecError> {
        let value = text(flag)?;
        let auto = matches!(value.as_str(), "auto" | "-1") && self.program == Program::Vllm;
        self.fit_longest = auto;
        // llama.cpp takes 0 for the model's own.
        let own = value == "0" && self.program == Program::LlamaCpp || value == "None" || value == "null";
        if !auto && !own {
            self.start.longest = Some(count(self.program, flag)?);
        }
        Ok(())
    }

    /// `--no-NAME` of a switch.
    fn off(&mut self, program: Program, flag: &Said, positive: &str) -> Result<Use, SpecError> {
        let s = &mut self.start;
        if let Some(cut) = cutting(program, positive) {
            if self.degrees.get(&cut).is_some_and(|n| *n == 1) && cut.is_switch() {
                return Err(flag.word.wrong(format!("--{positive} stands before it")).hint("say one of them"));
            }
            return Ok(Use::Obeyed);
        }
        let Some(means) = means(program, positive) else { return Ok(Use::Idle) };
        if self.first.contains_key(&format!("{means:?}")) && means != Bears {
            return Err(flag.word.wrong(format!("--{positive} stands before it")).hint("say one of them"));
        }
        match means {
            Eager => s.eager = false,
            Chunked => s.chunked = Some(false),
            Prefix => s.prefix_cache = Some(false),
            Lora => self.lora.0 = false,
            Bears => return Ok(Use::Unmodelled(None)),
            _ => return Ok(Use::Idle),
        }
        self.first.insert(format!("{means:?}"), (typed(flag), "false".into()));
        Ok(Use::Obeyed)
    }

    fn named(&mut self, means: Means, flag: &Said) -> Result<(), SpecError> {
        let value = text(flag)?;
        let (model, format) = match value.rsplit_once(':').filter(|_| means == Repo) {
            Some((repo, format)) => (repo.to_owned(), Some(format)),
            None => (value, None),
        };
        if let Some((before, said)) = self.model.as_ref().filter(|(before, _)| *before != model) {
            let why = format!("a second model, after {said} {}", shorten(before));
            return Err(flag.word.wrong(why).hint("expected one model"));
        }
        if let Some(format) = format.and_then(Dtype::named) {
            self.weights = Some(format.to_string());
        }
        self.model = Some((model, typed(flag)));
        Ok(())
    }

    /// Words that belong to no flag: the model.
    fn positional(&mut self, alone: &[super::Word]) -> Result<(), SpecError> {
        for word in alone {
            match &self.model {
                Some((before, _)) if *before == word.text => {}
                Some((before, said)) => {
                    let said = if said.is_empty() { String::new() } else { format!("{said} ") };
                    let why = format!("a second model, or a value without its flag, after {said}{}", shorten(before));
                    return Err(word.wrong(why).hint("expected one model; check the flag before the word"));
                }
                None => self.model = Some((word.text.clone(), String::new())),
            }
        }
        if let Some((model, _)) = self.model.as_ref().filter(|(model, _)| model.starts_with('$')) {
            let problem = format!("the model is {model}, a variable that the line does not set");
            return Err(SpecError::said(problem)
                .hint("put its value in, or set it before the command: MODEL=... vllm serve $MODEL"));
        }
        Ok(())
    }

    /// Keys and values of llama.cpp: 16 bits where nothing is said. Where they differ, the wider stands for both to questions that
    /// know one format.
    fn joined(&mut self) {
        if self.halves == (None, None) {
            return;
        }
        let [keys, values] = [self.halves.0, self.halves.1].map(|format| format.unwrap_or(Dtype::Fp16));
        self.start.halves = (keys != values).then_some((keys, values));
        self.kv = Some(if keys.bits() >= values.bits() { keys } else { values }.to_string());
    }

    /// What cannot go together.
    fn against(&mut self) -> Result<(), SpecError> {
        self.joined();
        if let (true, most, rank) = self.lora {
            self.start.adapters = Some((most.unwrap_or(1), rank.unwrap_or(16)));
        }
        if self.program == Program::LlamaCpp {
            return Ok(());
        }
        let sizes = [GraphMost, GraphSizes].into_iter().find_map(|m| self.first.get(&format!("{m:?}")));
        let eager = [Eager, GraphMode].into_iter().find_map(|m| self.first.get(&format!("{m:?}")));
        // SGLang takes both and captures none.
        let refused = self.start.eager && self.program != Program::Sglang;
        if let (true, Some((sizes, _)), Some((eager, _))) = (refused, sizes, eager) {
            let problem = format!("{} asks for graphs and {} for none", shorten(sizes), shorten(eager));
            return Err(SpecError::said(problem).hint("say one of them"));
        }
        if let (Some(longest), Some(pass), Some(false)) = (self.start.longest, self.start.pass, self.start.chunked)
            && self.program == Program::Vllm
            && pass < longest
        {
            let problem = format!(
                "--max-num-batched-tokens {pass} is below --max-model-len {longest}, and prompts are not cut into chunks"
            );
            return Err(SpecError::said(problem).hint("raise the first, lower the second, or leave chunked prefill on"));
        }
        if self.program == Program::Vllm
            && let (Some(pass), Some(sequences)) = (self.start.pass, self.start.sequences)
            && pass < sequences
        {
            let problem = format!("--max-num-batched-tokens {pass} is below --max-num-seqs {sequences}");
            return Err(SpecError::said(problem).hint("vLLM refuses this: a pass must hold a token of each sequence"));
        }
        let said = |cut: Meaning| self.degrees.get(&cut).copied();
        if self.program == Program::Sglang
            && said(Meaning::AttentionDp) == Some(1)
            && said(Meaning::Dp).unwrap_or(1) <= 1
        {
            let problem = "--enable-dp-attention without --dp-size: attention groups of one".to_owned();
            return Err(SpecError::said(problem).hint("give --dp-size as well, such as --dp-size 8"));
        }
        Ok(())
    }

    fn layout(&self) -> Result<Layout, SpecError> {
        match self.program.tool() {
            Some(tool) => flags::cut(tool, &self.degrees),
            None => Ok(Layout::single()),
        }
    }

    /// Formats that an engine makes of a checkpoint; those that a checkpoint must have already are its own.
    fn quantised(&mut self, flag: &Said) -> Result<Use, SpecError> {
        let word = text(flag)?.to_ascii_lowercase();
        self.method = Some(word.clone()).filter(|word| !matches!(word.as_str(), "none" | "null"));
        let made = match word.as_str() {
            "none" | "null" => None,
            "fp8" | "w8a8_fp8" | "fp8_per_tensor" | "fp8_per_block" | "ptpc_fp8" => Some("fp8"),
            "int8_per_channel_weight_only" | "w8a8_int8" | "experts_int8" => Some("int8"),
            "bitsandbytes" => Some("int4"),
            "mxfp8" => Some("mxfp8"),
            "mxfp4" => Some("mxfp4"),
            "modelopt_fp4" | "nvfp4" | "petit_nvfp4" => Some("nvfp4"),
            "awq" | "gptq" | "awq_marlin" | "gptq_marlin" | "moe_wna16" | "auto-round" | "auto_gptq" | "inc" => {
                Some("int4")
            }
            _ => return Ok(Use::Unmodelled(Some("weights are taken as the checkpoint has them".into()))),
        };
        self.weights = made.map(str::to_owned);
        Ok(Use::Obeyed)
    }

    /// How a model is dealt to cards.
    fn dealt(&mut self, flag: &Said) -> Result<Use, SpecError> {
        self.start.dealt = match text(flag)?.as_str() {
            "layer" => Dealt::Layers,
            "row" => Dealt::Rows,
            "none" => Dealt::One,
            "tensor" => return Ok(Use::Unmodelled(Some("tensor: layers are dealt instead".into()))),
            other => {
                let wrong = flag.word.wrong(format!("\"{}\" is no way to split", shorten(other)));
                return Err(wrong.hint("expected layer, row or none"));
            }
        };
        Ok(Use::Obeyed)
    }

    /// The format of the cache; of llama.cpp that of its keys or of its values.
    fn cached(&mut self, flag: &Said, keys: Option<bool>) -> Result<Use, SpecError> {
        let word = text(flag)?.to_ascii_lowercase();
        if keys.is_some() && !LLAMA_CACHES.contains(&word.as_str()) {
            let wrong = flag.word.wrong(format!("Unsupported cache type: {}", shorten(&word)));
            return Err(wrong.hint(format!("llama.cpp keeps {}", LLAMA_CACHES.join(", "))));
        }
        if word == "auto" {
            return Ok(Use::Obeyed);
        }
        let word = if word.starts_with("fp8") && word != "fp8_ds_mla" { "fp8".to_owned() } else { word };
        let Some(dtype) = Dtype::named(&word) else {
            return Ok(Use::Unmodelled(Some("the cache is taken in the model's own type".into())));
        };
        match keys {
            Some(true) => self.halves.0 = Some(dtype),
            Some(false) => self.halves.1 = Some(dtype),
            None => self.kv = Some(dtype.to_string()),
        }
        Ok(Use::Obeyed)
    }
}

/// A count as vLLM reads it (32k is 32,000, 32K is 32,768); others take digits alone.
fn count(program: Program, flag: &Said) -> Result<u64, SpecError> {
    let text = text(flag)?;
    let human = (program == Program::Vllm).then(|| human(&text)).flatten();
    human.or_else(|| text.parse::<u64>().ok()).filter(|n| (1..=1 << 50).contains(n)).ok_or_else(|| {
        let hint =
            if program == Program::Vllm { "expected such as 32768, 32k or 32K" } else { "expected such as 32768" };
        flag.word.wrong(format!("\"{}\" is no number it takes", shorten(&text))).hint(hint)
    })
}

/// 1k is a thousand, 1K is 1,024; a part of a binary unit is refused, as vLLM does.
fn human(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.len().checked_sub(1).filter(|at| text.is_char_boundary(*at))?);
    let factor: u64 = match unit {
        "k" => 1000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return None,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let real = number.parse::<f64>().ok().filter(|x| unit.chars().all(char::is_lowercase) && (0.0..1e9).contains(x))?;
    Some((real * factor as f64).round() as u64)
}

fn text(flag: &Said) -> Result<String, SpecError> {
    let missing = || flag.word.wrong("no value follows it");
    let value = shown(flag.value.as_ref()).ok_or_else(missing)?;
    if value.contains('$') {
        return Err(flag.word.wrong(format!("its value is {}, which the line does not set", shorten(&value))));
    }
    Ok(value)
}

fn whole(flag: &Said, name: &str, least: u64) -> Result<u64, SpecError> {
    let value = text(flag)?;
    value.parse::<u64>().ok().filter(|n| (least..=1 << 40).contains(n)).ok_or_else(|| {
        let what = format!("--{} has {}", name, shorten(&value));
        flag.word.wrong(what).hint(format!("expected a whole number from {least} on"))
    })
}

fn real(flag: &Said) -> Result<f64, SpecError> {
    let value = text(flag)?;
    let sound = value.parse::<f64>().ok().filter(|x| (0.0..1e6).contains(x));
    sound.ok_or_else(|| {
        flag.word.wrong(format!("{} is no amount", shorten(&value))).hint("expected a number such as 10")
    })
}

fn share(flag: &Said) -> Result<Fraction, SpecError> {
    let value = text(flag)?;
    let sound = value.parse::<f64>().ok().and_then(Fraction::checked).filter(|f| f.get() > 0.0);
    sound.ok_or_else(|| {
        flag.word.wrong(format!("{} is no share", shorten(&value))).hint("expected above 0, at most 1, such as 0.9")
    })
}

/// Shares of cards with commas or slashes between them, as llama.cpp reads them: `3,1` and `3/1`.
fn shares(flag: &Said) -> Result<Vec<f64>, SpecError> {
    let value = text(flag)?;
    let parts = value.split([',', '/']).map(|one| one.trim().parse::<f64>().ok().filter(|x| (0.0..1e9).contains(x)));
    let read: Option<Vec<f64>> = parts.collect();
    read.filter(|all| all.iter().sum::<f64>() > 0.0).ok_or_else(|| {
        flag.word.wrong(format!("{} are no shares", shorten(&value))).hint("expected one for each card, such as 3,1")
    })
}

fn truth(flag: &Said, bare: bool) -> Result<bool, SpecError> {
    match shown(flag.value.as_ref()).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" => Ok(bare),
        "true" | "1" | "on" | "yes" => Ok(true),
        "false" | "0" | "off" | "no" | "none" | "null" => Ok(false),
        other => Err(flag.word.wrong(format!("{} is neither true nor false", shorten(other)))),
    }
}

/// Numbers with blanks or commas between them, or a list.
fn list(flag: &Said) -> Result<Vec<u64>, SpecError> {
    let value = text(flag)?;
    let parts = value.trim_matches(['[', ']']).split([' ', ',']).filter(|one| !one.is_empty());
    let read: Option<Vec<u64>> = parts.map(|one| one.parse::<u64>().ok().filter(|n| *n <= 1 << 40)).collect();
    let wrong = || flag.word.wrong(format!("{} is no list of whole numbers", shorten(&value)));
    read.filter(|all| !all.is_empty()).ok_or_else(wrong)
}
