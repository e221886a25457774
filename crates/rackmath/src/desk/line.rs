//! Command lines of servers with the catalogue's lists: what they say, and what becomes of their flags.

use super::offload::Offloaded;
use super::prelude::*;
use super::setting::AUTO;
use crate::layout::DegreesRequest;
use rackmath_spec::file::flags::Tool;
use rackmath_spec::line::{self, Launch, Means, Program, Reading, Use};

/// Where a line comes from and what stands beside it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Source<'a> {
    pub text: &'a str,
    /// Whose it is, where it names no server.
    pub program: Option<Program>,
    /// Which container of a file.
    pub container: Option<&'a str>,
    /// The text of a file of settings.
    pub settings: Option<&'a str>,
    /// The version of the engine, where the line does not say it or another is meant.
    pub version: Option<&'a str>,
}

/// Reads a line by the list of its server.
pub(crate) fn read(catalog: &Catalog, source: Source<'_>) -> Result<Launch, Error> {
    let started = line::chosen(line::find(source.text)?, source.container)?;
    let program = started.program.or(source.program).ok_or_else(|| {
        Error::said("the line names no server, only flags")
            .hint("begin with its command, such as: vllm serve MODEL --flags")
    })?;
    let list = catalog.flag_list(started.list.unwrap_or(program.list()))?;
    line::launch(&started, program, &list, source.settings, source.version)
}

/// A flag as it was typed, with its value.
pub(crate) fn typed(flag: &Reading) -> String {
    let value = flag.value.as_deref().unwrap_or_default();
    let short: String = value.chars().take(40).collect();
    let cut = if short.len() < value.len() { "..." } else { "" };
    format!("{} {short}{cut}", flag.flag).trim_end().to_owned()
}

/// What becomes of the flags that are not simply obeyed or idle, one sentence each.
pub(crate) fn cautions(launch: &Launch) -> Vec<Remark> {
    let engine = launch.program.name();
    let one = |flag: &Reading| match &flag.used {
        Use::Obeyed | Use::Idle => None,
        Use::Unmodelled(why) => Some(says("flag_unmodelled").with("flag", typed(flag)).with("why", why.clone())),
        Use::Other { since, until, instead } => {
            let said = says("flag_of_another_version").with("flag", &flag.flag).with("engine", engine);
            let said = said.with("instead", instead.clone());
            let said = said.with("since", since.clone()).with("until", until.clone());
            Some(said.with("version", launch.version.clone()).with("place", place(flag)))
        }
        Use::Unknown(near) => {
            let said = says("flag_unknown").with("flag", &flag.flag).with("engine", engine);
            Some(said.with("near", near.clone()).with("place", place(flag)))
        }
    };
    launch.flags.iter().filter_map(one).collect()
}

fn place(flag: &Reading) -> Option<u64> {
    (flag.place > 0).then_some(flag.place as u64)
}

/// Flags of one use, as typed.
pub(crate) fn used<'a>(launch: &'a Launch, of: impl Fn(&Use) -> bool + 'a) -> Vec<String> {
    launch.flags.iter().filter(|flag| of(&flag.used)).map(typed).collect()
}

/// What only the sum of a start knows: sizes of a cache and of captured graphs, pictures of a dry run, how llama.cpp deals to its cards.
pub(crate) fn of_start(sets: Means) -> bool {
    use Means::{
        Block, Blocks, Cache, CacheTokens, Films, Flash, GraphMost, GraphSizes, NoDryPictures, Part, Pictures,
    };
    let counted = matches!(sets, Cache | Blocks | CacheTokens | Part | Block | GraphMost | GraphSizes | Flash);
    counted || matches!(sets, Pictures | Films | Means::TextOnly | NoDryPictures) || of_cards(sets)
}

/// How llama.cpp deals a model to its cards, save by shares.
pub(crate) fn of_cards(sets: Means) -> bool {
    matches!(sets, Means::Dealt | Means::MainCard | Means::Unified)
}

/// Adapters that are served beside a model.
pub(crate) fn of_adapters(sets: Means) -> bool {
    matches!(sets, Means::Lora | Means::MostLoras | Means::LoraRank)
}

/// What became of all flags, for the assumptions of an answer; those that set what the question leaves aside are not called obeyed.
pub(crate) fn remarks(launch: &Launch, aside: impl Fn(Means) -> bool) -> Vec<Remark> {
    let left = |flag: &Reading| flag.sets.is_some_and(&aside);
    let named = |of: &dyn Fn(&Reading) -> bool| launch.flags.iter().filter(|f| of(f)).map(typed).collect::<Vec<_>>();
    let all = [
        ("flags_aside", named(&|f| f.used == Use::Obeyed && left(f))),
        ("flags_obeyed", named(&|f| f.used == Use::Obeyed && !left(f))),
        ("flags_idle", named(&|f| f.used == Use::Idle)),
    ];
    let said = all.into_iter().filter(|(_, flags)| !flags.is_empty());
    said.map(|(id, flags)| says(id).with("flags", flags)).chain(cautions(launch)).collect()
}

/// What a question's own option or the line beside it says of one thing; both only where they say the same.
pub(crate) fn either<T: PartialEq>(
    launch: &Launch,
    sets: &[Means],
    field: &'static str,
    own: Option<T>,
    line: Option<T>,
) -> Result<Option<T>, Error> {
    let differ = own.as_ref().zip(line.as_ref()).is_some_and(|(own, line)| own != line);
    let flags = launch.flags.iter().filter(|flag| flag.sets.is_some_and(|means| sets.contains(&means)));
    let named = || flags.map(typed).collect::<Vec<_>>().join(" ");
    let expected = || format!("one of the two: {{{field}}} or that flag, not both with different values");
    if differ {
        return Err(Error::value("flags", named(), expected()));
    }
    Ok(own.or(line))
}

/// The same of formats, whatever their names are spelled like.
pub(crate) fn format(
    launch: &Launch,
    sets: &[Means],
    field: &'static str,
    own: Option<&String>,
    line: Option<&String>,
) -> Result<Option<String>, Error> {
    let own = own.filter(|word| *word != AUTO);
    let read = |word: &String| word.parse::<Dtype>().map_or_else(|_| word.clone(), |dtype| dtype.to_string());
    either(launch, sets, field, own.map(read), line.map(read))?;
    Ok(own.or(line).cloned())
}

/// Formats, memory and what lies elsewhere: what every question with options of its own for them takes from a line.
pub(crate) fn formats(launch: &Launch, setting: &mut Setting) -> Result<(), Error> {
    let (weights, kv) = (setting.weights.as_ref(), setting.kv.as_ref());
    let weights = format(launch, &[Means::Weights, Means::Repo], "setting.weights", weights, launch.weights.as_ref())?;
    let kv = format(launch, &[Means::Kv, Means::KvPart], "setting.kv", kv, launch.kv.as_ref())?;
    (setting.weights, setting.kv) = (weights.or(setting.weights.take()), kv.or(setting.kv.take()));
    Ok(())
}

/// What a line leaves in the host's memory or deals to cards, beside what was said of that already.
pub(crate) fn offloaded(launch: &Launch, said: &Offloaded) -> Result<Offloaded, Error> {
    let start = &launch.start;
    let some = |n: Option<u64>| n.filter(|n| *n < u64::from(u16::MAX));
    // Which layers they are changes nothing: as many from the first on, past those before the first that is named.
    let named =
        start.expert_at.as_ref().map(|at| at.len() as u64 + at.first().copied().filter(|n| *n < 8).unwrap_or(0));
    let experts = some(start.expert_layers).or(named);
    let bytes = start.offload.map(|bytes| bytes.get() / Bytes::gib(1.0).get());
    let (layers, moe) = ([Means::Layers], [Means::ExpertLayers, Means::AllExperts, Means::Tensors]);
    Ok(Offloaded {
        gpu_layers: either(launch, &layers, "offload.gpu_layers", said.gpu_layers, some(start.layers))?,
        n_cpu_moe: either(launch, &moe, "offload.n_cpu_moe", said.n_cpu_moe, experts)?,
        cpu_moe: said.cpu_moe || (start.expert_layers.is_some() && some(start.expert_layers).is_none()),
        cpu_offload_gb: either(launch, &[Means::Offload], "offload.cpu_offload_gb", said.cpu_offload_gb, bytes)?,
        tensor_split: either(
            launch,
            &[Means::Shares],
            "offload.tensor_split",
            said.tensor_split.clone(),
            start.shares.clone(),
        )?,
        ..said.clone()
    })
}

/// A line that came with another question: whose it is unless it says so, and the engine to ask for.
pub(crate) fn beside(
    catalog: &Catalog,
    text: &str,
    tool: Option<&str>,
    engine: &str,
) -> Result<Option<(Launch, String)>, Error> {
    let tool = tool.map(str::parse::<Tool>).transpose()?;
    let program = match tool {
        // What trains is read for its layout alone.
        Some(Tool::Megatron) => return Ok(None),
        Some(tool) => Some(tool.to_string().parse::<Program>()?),
        None => None,
    };
    let (family, version) = engine.split_once('@').map_or((engine, None), |(family, v)| (family, Some(v)));
    let own = catalog.engine(family).ok().and_then(|(engine, _)| engine.family.parse::<Program>().ok());
    let source = Source { text, program: program.or(own).or(Some(Program::Vllm)), version, ..Source::default() };
    let launch = read(catalog, source).map_err(|e| e.at("flags"))?;
    // The server itself would end here: nothing is answered for a line that cannot be meant.
    for flag in &launch.flags {
        if let Use::Unknown(near) = &flag.used {
            return Err(Error::unknown("flag", &flag.flag, near.iter().map(String::as_str)).at("flags"));
        }
    }
    Ok(Some((launch.clone(), followed(&launch, engine, own))))
}

/// The engine follows whose line it is, unless another was said than the usual one.
fn followed(launch: &Launch, engine: &str, own: Option<Program>) -> String {
    let versioned = |family: &str| match &launch.version {
        Some(version) => format!("{family}@{version}"),
        None => family.to_owned(),
    };
    match own {
        Some(own) if own == launch.program && !engine.contains('@') => versioned(engine),
        _ if ["auto", "vllm"].contains(&engine) => versioned(&launch.program.to_string()),
        _ => engine.to_owned(),
    }
}

/// The degrees of a line's layout.
pub(crate) fn degrees(launch: &Launch) -> DegreesRequest {
    let d = launch.layout.degrees();
    let more = |n: u64, least: u64| (n > least).then_some(n);
    DegreesRequest { redundant: more(d.redundant, 0), dcp: more(d.dcp, 1), ..d.into() }
}

/// Tokens of a pass and sequences of one attention group: SGLang says them for all groups together.
pub(crate) fn of_group(launch: &Launch) -> (Option<f64>, Option<f64>) {
    let groups = if launch.program == Program::Sglang { launch.layout.degrees().dp.max(1) as f64 } else { 1.0 };
    let each = |n: Option<u64>| n.map(|n| (n as f64 / groups).ceil().max(1.0));
    (each(launch.start.pass), each(launch.start.sequences))
}
