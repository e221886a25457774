//! Does this engine run this model on this chip? What the catalogue knows, as one verdict with its reason and its source.
//!
//! | verdict | meaning |
//! |---------|---------|
//! | runs | the engine runs on the chip, in the formats asked for |
//! | runs as | it runs, but otherwise than the formats say: multiplied in 16 bits, emulated, cast, up to a version, by a plugin |
//! | unknown | no source says yes or no: it is computed, and the answer says so |
//! | refused | a source says no; the reason, its source, and the nearest that works |
//!
//! The check is made once for an engine, a chip, formats and a kind of attention, never for a layout. Formats of
//! embeddings and norms are not asked about: they are 16 bits wide and go with the rest.

use super::cut;
use super::prelude::*;
use super::remark::Part;
use rackmath_spec::engine::{Engine, Version};
use rackmath_spec::line::Program;
use rackmath_spec::model::Ffn;
use rackmath_spec::model::Formats;
use rackmath_spec::support::{AttentionKind, EngineSupport, Format, OnFamily, Parallel, Runs, Stored};
use rackmath_spec::{Chip, Kind, Math, Model, System};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::steady::Requests;

/// In the order of what speaks against it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    #[default]
    Runs,
    RunsAs,
    Unknown,
    Refused,
}

/// A verdict, what is to be said about it, and what it changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub verdict: Verdict,
    /// What runs otherwise, and what is not known.
    pub remarks: Vec<Remark>,
    pub refusal: Option<Refusal>,
    /// A checkpoint of bf16 is cast to fp16.
    cast: bool,
    /// Arithmetics the chip has and the engine does not use for these weights.
    unused: Vec<Math>,
    /// Ways to cut a model that it does not have there.
    lacks: Vec<Lack>,
    /// Widths that are cut in whole blocks alone, and what is said where they are not.
    blocks: Vec<(Width, Remark)>,
}

/// A width of matrices in FP8 with scales of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// Of routed experts, which are cut by their own degree.
    Expert(u64),
    /// Of what every token passes, which tensor parallelism cuts.
    Shared(u64),
}

impl Width {
    /// What a chip holds of it.
    fn part(self, layout: &Layout) -> u64 {
        let d = layout.degrees();
        match self {
            Self::Expert(width) => width / d.etp.max(1),
            Self::Shared(width) => width / d.tp.max(1),
        }
    }
}

/// Sides of the blocks that share a scale in FP8 checkpoints of DeepSeek's kind.
const BLOCK: u64 = 128;

/// A way to cut a model that an engine does not have on a chip.
#[derive(Clone, Debug, PartialEq)]
struct Lack {
    kind: Parallel,
    why: Remark,
    given: String,
}

/// Why not, and what would do instead.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub why: Remark,
    pub nearest: Option<Remark>,
    /// The same for errors: the field, what was given, and what would do.
    field: &'static str,
    given: String,
    expected: String,
}

/// Whether formats were asked for, or are the checkpoint's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Given,
    Own,
}

impl Refusal {
    /// What was given, in a few words.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Where it is known from.
    pub fn origin(&self) -> Remark {
        let told = |name: &'static str| self.why.with.get(name).cloned();
        let said = says("refusal_source");
        match (told("source"), told("as_of")) {
            (Some(source), Some(as_of)) => said.with("source", source).with("as_of", as_of),
            _ => said.with("none", 0.0),
        }
    }
}

impl Asked {
    /// By a word for a format.
    pub fn by(word: Option<&str>) -> Self {
        if word.is_none_or(|word| word == "auto") { Self::Own } else { Self::Given }
    }
}

/// The version of `vllm@0.19.0`.
pub(crate) fn version(engine: &str) -> Option<Version> {
    engine.split_once('@').and_then(|(_, version)| version.parse().ok())
}

/// Whether an engine runs a model on a chip, without what would do instead; with a word on a version that nobody looked at.
pub(crate) fn stand(
    catalog: &Catalog,
    on: &Deployment,
    asked: Asked,
    version: Option<Version>,
) -> Result<Standing, Error> {
    let mut standing = judged(catalog, on, asked, version)?;
    let beyond = version.filter(|v| standing.refusal.is_none() && !on.engine.knows(*v));
    standing.remarks.extend(beyond.map(|version| not_covered(&on.engine, version)));
    Ok(standing)
}

/// The engine by the version that is counted with: the one asked for, or the newest that was looked at where versions count
/// differently.
pub(crate) fn counted_as(engine: &Engine) -> String {
    let version = engine.version.or(engine.newest.filter(|_| engine.memory.len() > 1));
    match version.zip(engine.family.parse::<Program>().ok()) {
        Some((version, program)) => format!("{} {version}", program.name()),
        None => engine.name.clone(),
    }
}

/// A version that no family of an engine covers, or that is newer than any its family was held against.
pub(crate) fn not_covered(engine: &Engine, version: Version) -> Remark {
    let said = says("version_not_covered").with("family", &engine.family).with("version", version.to_string());
    let newest = engine.newest.filter(|newest| version.is_after(*newest));
    said.with("name", &engine.name).with("newest", newest.map(|v| v.to_string()))
}

fn judged(catalog: &Catalog, on: &Deployment, asked: Asked, version: Option<Version>) -> Result<Standing, Error> {
    let (engine, chip) = (&on.engine, &on.system.chip);
    let Some(support) = catalog.engine_support(&engine.family)? else {
        return Ok(Standing::unknown(says("support_unknown_engine").with("engine", &engine.name)));
    };
    let families = catalog.chip_families()?;
    let Some(family) = families.of(chip) else {
        return Ok(match support.elsewhere {
            Runs::Yes => Standing::default(),
            _ => Standing::unknown(says("support_unknown").with("engine", &support.name).with("chip", &chip.name)),
        });
    };
    let unknown = || says("support_unknown").with("engine", &support.name).with("chip", &chip.name);
    let no = |why: Option<&str>, source: &str, via: Option<&String>| {
        let said = says("support_none").with("engine", &support.name).with("chip", &chip.name);
        let said = said.with("why", why).with("via", via).with("source", source).with("as_of", &support.as_of);
        Standing::refused(said, format!("{} on {}, where it does not run", engine.family, chip.id))
    };
    let Some(entry) = support.on(&family.id) else {
        let (why, source) = support.elsewhere_why();
        return Ok(match support.elsewhere {
            Runs::Yes => Standing::default(),
            Runs::No => no(why, source, None),
            Runs::Unknown => Standing::unknown(unknown()),
        });
    };
    match entry.runs {
        Runs::No => return Ok(no(entry.why.as_deref(), entry.source(&support), entry.via.as_ref())),
        Runs::Unknown => return Ok(Standing::unknown(unknown().with("why", entry.why.as_ref()))),
        Runs::Yes => {}
    }
    let mut standing = versions(&support, entry, engine, chip, version);
    standing.attention(&support, entry, &on.model, chip);
    standing.formats(&support, entry, on, asked);
    let lack = |(kind, source): (Parallel, &str)| {
        let said = says("support_no_parallel").with("engine", &support.name).with("chip", &chip.name);
        let why = said.with("kind", kind.to_string()).with("source", source).with("as_of", &support.as_of);
        Lack { kind, why, given: format!("{kind} in {} on {}", support.id, chip.id) }
    };
    standing.lacks = entry.lacking_parallel(&support).map(lack).collect();
    if let Some((shape, source)) = on.model.shape().zip(support.whole_blocks()) {
        let said = |id: &'static str, width: u64| {
            let said = says(id).with("engine", &support.name).with("width", width).with("block", BLOCK);
            said.with("source", source).with("as_of", &support.as_of)
        };
        let moe = shape.moe().filter(|_| on.formats.routed == Dtype::Fp8Block);
        standing
            .blocks
            .extend(moe.map(|moe| (Width::Expert(moe.expert.width), said("support_blocks", moe.expert.width))));
        let all = shape.runs.iter().filter(|_| on.formats.linear == Dtype::Fp8Block);
        let all = all.filter_map(|run| match &run.block.ffn {
            Ffn::Dense(mlp) => Some(mlp.width),
            Ffn::Moe(moe) => moe.shared.map(|shared| shared.width),
            Ffn::None => None,
        });
        standing.blocks.extend(all.map(|width| (Width::Shared(width), said("support_blocks_shared", width))));
    }
    if let Some(via) = entry.via.as_ref().filter(|_| standing.refusal.is_none()) {
        let said = says("support_via").with("engine", &support.name).with("chip", &chip.name).with("via", via);
        standing.says_as(said.with("grade", entry.grade.as_ref()));
    }
    Ok(standing)
}

/// The same, and where it does not run the nearest that does; or a request too long for the model.
pub(crate) fn stand_for(
    catalog: &Catalog,
    on: &Deployment,
    asked: Asked,
    version: Option<Version>,
    tokens: f64,
) -> Result<Standing, Error> {
    let mut standing = stand(catalog, on, asked, version)?;
    if let Some(refusal) = &mut standing.refusal {
        let (nearest, expected) = nearest(catalog, on, version, tokens)?;
        (refusal.nearest, refusal.expected) = (nearest, expected);
    } else {
        standing.refuse_with(too_long(catalog, &on.model, &on.engine, tokens)?);
    }
    Ok(standing)
}

/// A prompt and its answer that the model has no positions for, as a sentence where no engine is asked.
pub(crate) fn beyond(model: &Model, tokens: f64) -> Option<Remark> {
    let limit = model.shape().and_then(|shape| shape.context_max).filter(|most| tokens > *most as f64)?;
    Some(says("context_too_long").with("tokens", tokens.ceil()).with("model", &model.name).with("limit", limit))
}

/// A prompt and its answer that the model has no positions for.
pub(crate) fn too_long(
    catalog: &Catalog,
    model: &Model,
    engine: &Engine,
    tokens: f64,
) -> Result<Option<Refusal>, Error> {
    let Some(why) = beyond(model, tokens) else { return Ok(None) };
    let limit = model.shape().and_then(|shape| shape.context_max).unwrap_or_default();
    let support = catalog.engine_support(&engine.family)?;
    let rule = support.as_ref().and_then(|s| s.context.as_ref().map(|rule| (s, rule)));
    let why = match rule {
        Some((s, rule)) => {
            let numbers = [("(N)", tokens.ceil()), ("(M)", limit as f64), ("=N ", tokens.ceil())];
            let prints = numbers.iter().fold(rule.prints.clone(), |text, (sign, n)| {
                text.replace(sign, &sign.replace(['N', 'M'], &n.to_string()))
            });
            let prints = prints.replace("embeddings=M", &format!("embeddings={limit}"));
            let said = why.with("engine", &s.name).with("beyond", &rule.beyond).with("prints", prints);
            said.with("source", s.context_source()).with("as_of", &s.as_of)
        }
        None => why,
    };
    let nearest =
        says("context_within").with("limit", limit).with("forced", rule.and_then(|(_, r)| r.forced_by.as_ref()));
    let most = grouped(limit as f64);
    Ok(Some(Refusal {
        why,
        nearest: Some(nearest),
        field: "isl",
        given: format!("{} tokens in and out", grouped(tokens.ceil())),
        expected: format!(
            "at most {most} tokens in and out: {} has {most} positions (max_position_embeddings)",
            model.name
        ),
    }))
}

/// What is known to be lost in a narrower format.
pub(crate) fn quality(catalog: &Catalog, format: Dtype, stored: Stored) -> Option<String> {
    Some(catalog.quality_words().ok()?.of(format, stored)?.trim_end_matches('.').to_owned())
}

fn versions(
    support: &EngineSupport,
    entry: &OnFamily,
    engine: &Engine,
    chip: &Chip,
    version: Option<Version>,
) -> Standing {
    let early = entry.from.filter(|from| match version {
        Some(v) => v < *from,
        None => engine.until.is_some_and(|until| until <= *from),
    });
    let late = entry.until.filter(|until| match version {
        Some(v) => v >= *until,
        None => engine.from.is_some_and(|from| from >= *until),
    });
    let bounds = |id| {
        let said = says(id).with("engine", &support.name).with("chip", &chip.name);
        let said =
            said.with("from", entry.from.map(|v| v.to_string())).with("until", entry.until.map(|v| v.to_string()));
        said.with("source", entry.source(support)).with("as_of", &support.as_of)
    };
    if early.or(late).is_some() {
        let given = version.map_or_else(|| engine.id.clone(), |v| format!("{} {v}", engine.family));
        return Standing::refused(bounds("support_version").with("given", &given), format!("{given} on {}", chip.id));
    }
    let mut standing = Standing::default();
    // Of an engine without a last version, some of its versions do not run any more.
    if entry.until.is_some() && version.is_none() && engine.until.is_none_or(|until| entry.until < Some(until)) {
        standing.says_as(bounds("support_until"));
    }
    standing
}

impl Standing {
    fn refused(why: Remark, given: String) -> Self {
        let refusal = Refusal { why, nearest: None, field: "engine", given, expected: String::new() };
        Self { verdict: Verdict::Refused, refusal: Some(refusal), ..Self::default() }
    }

    fn unknown(said: Remark) -> Self {
        Self { verdict: Verdict::Unknown, remarks: vec![said], ..Self::default() }
    }

    fn refuse(&mut self, why: Remark, given: String) {
        if self.refusal.is_none() {
            *self = Self { remarks: std::mem::take(&mut self.remarks), ..Self::refused(why, given) };
        }
    }

    /// Refused for a reason found elsewhere, where there is one.
    pub fn refuse_with(&mut self, refusal: Option<Refusal>) {
        if refusal.is_some() {
            (self.verdict, self.refusal) = (Verdict::Refused, refusal);
        }
    }

    fn says_as(&mut self, said: Remark) {
        self.verdict = self.verdict.max(Verdict::RunsAs);
        self.remarks.push(said);
    }

    fn says_unknown(&mut self, said: Remark) {
        self.verdict = self.verdict.max(Verdict::Unknown);
        self.remarks.push(said);
    }

    fn attention(&mut self, support: &EngineSupport, entry: &OnFamily, model: &Model, chip: &Chip) {
        for kind in model.shape().map_or_else(Vec::new, AttentionKind::of) {
            let said = |id| {
                let said = says(id).with("engine", &support.name).with("chip", &chip.name);
                said.with("kind", kind.to_string())
            };
            if let Some(source) = entry.lacking(support, kind) {
                let why = said("support_no_attention").with("source", source).with("as_of", &support.as_of);
                self.refuse(why, format!("{kind} in {} on {}", support.id, chip.id));
            } else if entry.unsure.contains(&kind) {
                self.says_unknown(said("support_attention_unknown"));
            }
        }
    }

    fn formats(&mut self, support: &EngineSupport, entry: &OnFamily, on: &Deployment, asked: Asked) {
        let chip = &on.system.chip;
        let experts = on.model.shape().is_some_and(|shape| shape.moe().is_some());
        let mut formats = vec![on.formats.linear];
        if experts && on.formats.routed != on.formats.linear {
            formats.push(on.formats.routed);
        }
        // Chips without bf16: engines are told to cast, which nobody asks for who named no format.
        let casts = entry.native.iter().any(|one| one.is(Dtype::Fp16));
        let no_bf16 = matches!(entry.weights(support, Dtype::Bf16), Format::Refused(_)) && casts;
        let own = asked == Asked::Own || on.formats.linear != Dtype::Bf16;
        self.cast = no_bf16 && own;
        let said =
            |id, format: Dtype| says(id).with("engine", &support.name).with("chip", &chip.name).with("format", format);
        for format in formats {
            if self.cast && format == Dtype::Bf16 {
                self.says_as(said("support_cast", format).with("as", Dtype::Fp16));
                continue;
            }
            let wide = |math: &Math| matches!(math, Math::Fp32 | Math::Tf32 | Math::Bf16 | Math::Fp16);
            let narrow = format.maths().first().copied().filter(|math| !wide(math));
            match entry.weights(support, format) {
                Format::Native => {}
                // What is never multiplied in its own format needs no word; nor where the pass says that the chip cannot.
                Format::WeightOnly => {
                    let Some(math) = narrow else { continue };
                    self.verdict = self.verdict.max(Verdict::RunsAs);
                    if chip.peak.contains_key(&math) {
                        self.says_as(said("support_weight_only", format));
                        self.unused.push(math);
                    }
                }
                Format::Emulated => self.says_as(said("support_emulated", format)),
                Format::Refused(source) => {
                    let why = said("support_no_format", format).with("source", source);
                    self.refuse(
                        why.with("as_of", &support.as_of),
                        format!("{format} in {} on {}", support.id, chip.id),
                    );
                }
                Format::Unknown => self.says_unknown(said("support_format_unknown", format)),
            }
        }
        let kv = if self.cast && on.kv == Dtype::Bf16 { Dtype::Fp16 } else { on.kv };
        match entry.cached(support, kv) {
            Format::Refused(source) => {
                let why = said("support_no_cache", kv).with("source", source).with("as_of", &support.as_of);
                self.refuse(why, format!("a cache of {kv} in {} on {}", support.id, chip.id));
            }
            Format::Unknown if kv.bits() < 16.0 => self.says_unknown(said("support_cache_unknown", kv)),
            _ => {}
        }
    }

    /// Whether the engine can cut a model like that there.
    pub fn cuts(&self, layout: &Layout) -> bool {
        self.lacking(layout).is_none() && self.split_block(layout).is_none()
    }

    /// What a chip would hold of a width, where that is no whole number of blocks.
    pub fn split_block(&self, layout: &Layout) -> Option<(Width, u64)> {
        let parts = self.blocks.iter().map(|(width, _)| (*width, width.part(layout)));
        parts.into_iter().find(|(_, part)| !part.is_multiple_of(BLOCK))
    }

    fn lacking(&self, layout: &Layout) -> Option<&Lack> {
        self.lacks.iter().find(|lack| Parallel::of(layout).any(|(kind, _)| kind == lack.kind))
    }

    /// Refused where the layout is cut in a way that the engine does not have there.
    pub fn refuse_layout(&mut self, layout: &Layout) {
        if let Some((width, part)) = self.split_block(layout) {
            let why = self.blocks.iter().find(|(own, _)| *own == width).map(|(_, why)| why.clone());
            let given = format!("{layout}: {part} of a matrix's width on a chip");
            self.refuse(why.unwrap_or_else(|| says("support_blocks")), given);
            return;
        }
        let Some(lack) = self.lacking(layout).cloned() else { return };
        if self.refusal.is_none() {
            let has: Vec<String> = Parallel::of(layout)
                .filter(|(kind, _)| self.lacks.iter().all(|l| l.kind != *kind))
                .map(|(kind, _)| kind.to_string())
                .collect();
            let near = if has.is_empty() { "a layout without it".to_owned() } else { has.join(", ") };
            let nearest = says("nearest_cut").with("kinds", near.clone());
            self.verdict = Verdict::Refused;
            self.refusal = Some(Refusal {
                why: lack.why,
                nearest: Some(nearest),
                field: "layout",
                given: lack.given,
                expected: near,
            });
        }
    }

    /// What is said of ways to cut a model that a plan leaves out.
    pub fn uncut(&self) -> impl Iterator<Item = &Remark> {
        let tried = |lack: &&Lack| matches!(lack.kind, Parallel::Pipeline | Parallel::Data | Parallel::Expert);
        self.lacks.iter().filter(tried).map(|lack| &lack.why)
    }

    /// Whether weights are expanded although the chip could multiply them as they are.
    pub fn widens(&self) -> bool {
        !self.unused.is_empty()
    }

    /// Whether a source says no and nobody pretends.
    pub fn bars(&self, pretend: bool) -> bool {
        self.refusal.is_some() && !pretend
    }

    /// What marks an answer about something that does not exist.
    pub fn pretended(&self, pretend: bool) -> Option<Remark> {
        self.refusal.as_ref().filter(|_| pretend).map(|r| says("not_existing").with("why", &r.why))
    }

    /// Why not, in a few words, where nobody pretends.
    pub fn barred(&self, pretend: bool) -> Option<String> {
        let refusal = self.refusal.as_ref().filter(|_| !pretend)?;
        let why = match refusal.why.with.get("why") {
            Some(Part::Text(why)) => format!(": {why}"),
            _ => String::new(),
        };
        Some(format!("not supported: {}{why}", refusal.given))
    }

    /// The refusal as an error, for questions that have no answer without numbers.
    pub fn check(&self, pretend: bool) -> Result<(), Error> {
        match &self.refusal {
            Some(r) if !pretend => {
                let source = match r.why.with.get("source") {
                    Some(Part::Text(source)) => format!(" (source: {source})"),
                    _ => String::new(),
                };
                let expected = format!("{}; {{pretend}} computes it all the same{source}", r.expected);
                Err(Error::value(r.field, &r.given, expected))
            }
            _ => Ok(()),
        }
    }

    /// The deployment as the engine runs it: cast, and without arithmetic that it does not use.
    pub fn apply(&self, formats: &mut Formats, kv: &mut Dtype, system: &mut Arc<System>) {
        if self.cast {
            for format in [&mut formats.linear, &mut formats.routed, &mut formats.other, kv] {
                if *format == Dtype::Bf16 {
                    *format = Dtype::Fp16;
                }
            }
        }
        if self.refusal.is_none() && !self.unused.is_empty() {
            let chip = Arc::make_mut(&mut Arc::make_mut(system).chip);
            chip.peak.retain(|math, _| !self.unused.contains(math));
        }
    }
}

/// Engines to name, the most general first.
const ENGINES: [&str; 5] = ["vllm", "sglang", "trtllm", "llamacpp", "atom"];

/// The nearest that works: another format, another engine, another chip; as a sentence, and for errors.
fn nearest(
    catalog: &Catalog,
    on: &Deployment,
    version: Option<Version>,
    tokens: f64,
) -> Result<(Option<Remark>, String), Error> {
    let works = |on: &Deployment, version| -> Result<bool, Error> {
        Ok(stand(catalog, on, Asked::Own, version)?.verdict <= Verdict::RunsAs && holds(on, tokens))
    };
    let in_format = |on: &Deployment, dtype: Dtype| Deployment {
        formats: Formats { routed: dtype, linear: dtype, ..on.formats },
        kv: if on.kv.bits() < 16.0 { on.model.cache_dtype() } else { on.kv },
        ..on.clone()
    };
    let mut format = None;
    for dtype in near_formats(catalog, on)? {
        if works(&in_format(on, dtype), version)? {
            format = Some(dtype);
            break;
        }
    }
    // Another engine: as it is, or in the format nearest to what was asked.
    let wanted = on.formats.linear.bits();
    let mut engine: Option<(Arc<Engine>, Option<Dtype>)> = None;
    let far = |of: &Option<(Arc<Engine>, Option<Dtype>)>| {
        of.as_ref().map_or(f64::INFINITY, |(_, dtype)| dtype.map_or(-1.0, |d| (d.bits() - wanted).abs()))
    };
    for name in ENGINES.into_iter().filter(|name| *name != on.engine.family) {
        let Ok((other, _)) = catalog.engine(name) else { continue };
        let there = Deployment { engine: other.clone(), ..on.clone() };
        let found = if works(&there, None)? {
            Some((other, None))
        } else {
            let mut near = near_formats(catalog, &there)?.into_iter();
            near.find(|d| works(&in_format(&there, *d), None).unwrap_or(false)).map(|d| (other, Some(d)))
        };
        if far(&found) < far(&engine) {
            engine = found;
        }
    }
    let chip = near_chip(catalog, on, |there| works(there, version))?;
    let (mut any, mut words) = (Vec::new(), Vec::new());
    let narrower = |f: &Dtype| f.bits() < on.model.formats().linear.bits() - 0.5;
    let lost = |f: Dtype| Some(f).filter(narrower).and_then(|f| quality(catalog, f, Stored::Weights));
    // Of a version that does not run any more, or not yet, one that does.
    if let Some((from, until)) = bounds(catalog, on)?
        .filter(|_| stand(catalog, on, Asked::Own, None).is_ok_and(|s| s.verdict <= Verdict::RunsAs))
    {
        let said = says("nearest_version").with("engine", &on.engine.family).with("from", from.map(|v| v.to_string()));
        any.push(said.with("until", until.map(|v| v.to_string())));
        let from = from.map_or_else(String::new, |v| format!(" {v} or later"));
        words.push(format!("{}{from}{}", on.engine.family, until.map_or_else(String::new, |v| format!(" before {v}"))));
    }
    if let Some(f) = format {
        any.push(says("nearest_format").with("format", f).with("quality", lost(f)));
        words.push(format!("{f} weights"));
    }
    if let Some((other, dtype)) = &engine {
        let there = says("nearest_engine").with("engine", &other.name).with("format", *dtype);
        any.push(there.with("quality", dtype.and_then(lost)));
        words.push(format!("{}{}", other.family, dtype.map_or_else(String::new, |d| format!(" in {d}"))));
    }
    if let Some(chip) = &chip {
        any.push(says("nearest_chip").with("engine", &on.engine.name).with("chip", &chip.name));
        words.push(format!("{} on {}", on.engine.family, chip.id));
    }
    if any.is_empty() {
        return Ok((None, "another engine or chip".into()));
    }
    Ok((Some(says("support_nearest").with("any", any)), words.join(", or ")))
}

/// Whether one request of so many tokens finds room on the machine, cut as finely as it can be; layers lie on cards one after
/// another under llama.cpp.
fn holds(on: &Deployment, tokens: f64) -> bool {
    let n = on.system.n_chips;
    let staged = || Layout::new(Degrees { pp: n.min(super::offload::MOST), ..Degrees::default() }).ok();
    let layers = on.engine.family == "llamacpp" && !on.system.chip.processor;
    let layout = staged().filter(|_| layers).unwrap_or_else(|| cut::usual_for(&on.model, &on.system, 1));
    let requests = Requests::of((tokens - 1.0).max(1.0), 1.0);
    on.model.shape().is_none() || Deployment { layout, ..on.clone() }.room(&requests, on.engine.schedule.chunk) >= 1.0
}

/// The first version that runs, and the first that does not any more.
type Bounds = (Option<Version>, Option<Version>);

/// The versions that run on a chip, where not all do.
fn bounds(catalog: &Catalog, on: &Deployment) -> Result<Option<Bounds>, Error> {
    let Some(support) = catalog.engine_support(&on.engine.family)? else { return Ok(None) };
    let families = catalog.chip_families()?;
    let entry = families.of(&on.system.chip).and_then(|family| support.on(&family.id));
    Ok(entry.map(|e| (e.from, e.until)).filter(|(from, until)| from.is_some() || until.is_some()))
}

/// Formats the engine runs on the chip, those as wide as the asked first; of equals what is multiplied in its own format.
fn near_formats(catalog: &Catalog, on: &Deployment) -> Result<Vec<Dtype>, Error> {
    let Some(support) = catalog.engine_support(&on.engine.family)? else { return Ok(Vec::new()) };
    let families = catalog.chip_families()?;
    let Some(entry) = families.of(&on.system.chip).and_then(|family| support.on(&family.id)) else {
        return Ok(Vec::new());
    };
    let wanted = on.formats.linear.bits().min(on.formats.routed.bits());
    let mut all: Vec<Dtype> = entry.native.iter().chain(&entry.weight_only).map(|one| one.format()).collect();
    all.retain(|dtype| *dtype != on.formats.linear && *dtype != on.formats.routed);
    all.sort_by(|a, b| (a.bits() - wanted).abs().total_cmp(&(b.bits() - wanted).abs()));
    Ok(all)
}

/// The chip most like the asked one in memory and bandwidth, of those with a price.
fn near_chip(
    catalog: &Catalog,
    on: &Deployment,
    works: impl Fn(&Deployment) -> Result<bool, Error>,
) -> Result<Option<Arc<Chip>>, Error> {
    let own = &on.system.chip;
    let far = |chip: &Chip| {
        let ratio = |a: f64, b: f64| float::ln(a / b).abs();
        ratio(chip.memory.size().get(), own.memory.size().get())
            + ratio(chip.memory.bandwidth.value.get(), own.memory.bandwidth.value.get())
    };
    let mut all: Vec<Arc<Chip>> = Vec::new();
    for id in catalog.ids(Kind::Chips).filter(|id| !id.starts_with("lecture-") && *id != own.id) {
        all.extend(catalog.chip(id).ok().filter(|chip| !chip.prices.is_empty()));
    }
    all.sort_by(|a, b| far(a).total_cmp(&far(b)));
    for chip in all {
        let system = Arc::new(System { chip: chip.clone(), ..System::clone(&on.system) });
        if works(&Deployment { system, ..on.clone() })? {
            return Ok(Some(chip));
        }
    }
    Ok(None)
}
