//! Names as people have them: an owner, a model, a fine-tune's own words and the format of the weights in one id, such as
//! `RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16` or `qwen3:32b-q8_0`.
//!
//! A name is cut into words. A model of the catalogue is meant if the words of one of its own names stand in it, in their order;
//! of several the one with the most words. Of the words left over, some say nothing of the weights (`instruct`, a date), some are a format, and
//! some are a fine-tune's own, which changes no shape. Words that speak of another model (a size, a version behind the name, `vl`,
//! `embedding`) are a reason to refuse: a wrong model is worse than none.

use crate::model::{Body, Formats, Model};
use crate::naming::NameRules;
use crate::{Dtype, Gguf, SpecError};
use std::borrow::Cow;

/// Words that every release of a model may carry.
const RELEASES: &str = "base chat dynamic final gguf hf instruct it kv latest meta mlx original preview pt qat quant quantized \
    mtp reasoning sft text think thinking ud unsloth";

/// Words of ways to make a format narrower that leave its width to another word, or mean four bits.
const METHODS: &str = "autoround awq bnb gptq marlin";

/// Words of another model, however much of the name is one that is known.
const OTHERS: &str = "air asr audio dflash draft drafter dspark eagle eagle3 embed embedding flash image large linear lite lora \
    max medium medusa micro mini minitron moe multilingual multimodal nano next ocr omni plus prm pro pruned reap \
    rerank reranker reward rm rumination small speculator super tiny tts turbo ultra vision vl vlm xl xs xxl xxs xxxl bakllava bitnet cogvlm colpali \
    colqwen diffusion llava mamba nvila onevision speech ultravox videollama vila vita voice xcomposer";

/// Formats of weights whose bytes are not counted here, by the words that stand for them in names.
const FORMATS: &str = "aqlm bpw eetq exl2 exl3 higgs hqq quip spqr squeezellm vptq";

/// Families with an encoder and a decoder that looks at what it wrote, by a word of their names.
const TWO_STACKED: &str = "bart byt5 canary distil-whisper flan-t5 madlad m2m100 marian mbart moonshine mt5 nllb pegasus seamless t5 t5gemma \
    umt5 whisper";

/// What such a model is.
pub(crate) const TWO_STACKS: &str =
    "has an encoder and a decoder that attends to it (encoder-decoder), which is not modelled here";

/// Words of models that hear.
const HEARING: &str = "audio asr canary moonshine speech ultravox voice voxtral whisper";

/// Whether one of such words stands in a name.
fn stands_in(words: &str, name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let pieces: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    words.split_whitespace().any(|word| {
        let own: Vec<&str> = word.split('-').collect();
        pieces.windows(own.len()).any(|at| *at == own[..])
    })
}

/// Whether a name is of a model that hears.
pub(crate) fn hears(name: &str) -> bool {
    stands_in(HEARING, name)
}

/// Whether a name is of a family of an encoder and a decoder.
pub(crate) fn two_stacked(name: &str) -> bool {
    stands_in(TWO_STACKED, name)
}

/// What is to be said of a name that no model has and none is near to.
pub(crate) fn unheard_of(name: &str) -> String {
    let own = name.trim();
    if two_stacked(own) {
        return format!("a model of this family {TWO_STACKS}");
    }
    let known = "its shapes are not known here: give the path of its config.json";
    if own.split('/').count() == 2 {
        format!("{known}, or --fetch to look them up on Hugging Face")
    } else {
        format!("{known}, or its id on Hugging Face (OWNER/NAME) with --fetch")
    }
}

/// What a name says.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The model of the catalogue.
    pub id: String,
    /// The format of its weights, where the name states one or its kind of file has a usual one.
    pub weights: Option<Format>,
    /// Words taken for a fine-tune's own.
    pub unread: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Said(Dtype),
    /// The name says which kind of file it is, not how wide.
    Usual(Dtype),
    /// Experts in one format, everything else in a wider one.
    Mixed {
        experts: Dtype,
        rest: Dtype,
    },
}

impl Reading {
    /// The model that was meant, with what was read of its name.
    pub(crate) fn of(&self, asked: &str, model: &Model, rules: &NameRules) -> Model {
        let mut read = model.clone();
        let own = model.formats();
        // A file of a model that is narrow from the start keeps its width.
        let narrow = |dtype: &Dtype| own.routed.bits().min(own.linear.bits()) > dtype.bits();
        let sparse = model.shape().is_some_and(|shape| shape.moe().is_some());
        let weights = match self.weights {
            Some(Format::Said(dtype)) => Some(dtype),
            Some(Format::Usual(dtype)) => {
                let trained = (own.routed == Dtype::MxFp4).then_some(Dtype::Gguf(Gguf::Mxfp4Moe));
                Some(dtype).filter(narrow).or(trained)
            }
            Some(Format::Mixed { experts, .. }) => Some(experts),
            None => None,
        };
        let mut kept = "";
        if let Some(dtype) = weights {
            match &mut read.body {
                Body::Layers(shape) => {
                    let all = model.formats_in(dtype);
                    shape.formats = match self.weights {
                        Some(Format::Mixed { rest, .. }) if sparse => {
                            Formats { routed: dtype, ..model.formats_in(rest) }
                        }
                        Some(Format::Said(said)) => rules.kept(&shape.architecture, said, all),
                        _ => all,
                    };
                    let of = |said: &Formats| (said.mixer == all.mixer, said.linear == all.linear);
                    kept = match of(&shape.formats) {
                        (false, true) => ", attention left as it was, as makers of such checkpoints do",
                        (false, false) if self.weights == Some(Format::Said(dtype)) => {
                            ", everything but routed experts left as it was, as makers of such checkpoints do"
                        }
                        _ => "",
                    };
                }
                Body::Lump(lump) => lump.weights = dtype,
            }
        }
        let in_format = match (self.weights, weights) {
            (Some(Format::Said(_)), Some(dtype)) => format!(" with weights in {dtype}{kept}"),
            (Some(Format::Mixed { rest, .. }), Some(dtype)) if sparse => {
                format!(" with experts in {dtype} and other weights in {rest}")
            }
            (Some(Format::Mixed { .. }), Some(dtype)) => format!(" with weights in {dtype}"),
            (_, Some(dtype)) => format!(" with weights in {dtype}, usual in such files; the name does not say"),
            _ => String::new(),
        };
        let tuned = match &self.unread[..] {
            [] => String::new(),
            words => format!(", tuned further ({}) without change of shape", words.join(" ")),
        };
        let note = format!("\"{}\" was read as {}{in_format}{tuned}", asked.trim(), model.name);
        read.notes.insert(0, note);
        read.name = format!("{} (\"{}\")", model.name, asked.trim());
        read
    }
}

/// Reads a name that is no model's own, given each model's id with one of its names.
pub(crate) fn read<'a>(
    name: &str,
    models: impl Iterator<Item = (&'a str, &'a str)>,
    rules: &NameRules,
) -> Result<Reading, SpecError> {
    if name.trim().is_empty() {
        let hint = "expected a name such as llama-3.1-8b, a Hugging Face id, or the path of a config.json";
        return Err(SpecError::said("no model is named").hint(hint));
    }
    let all: Vec<(&str, &str)> = models.collect();
    let asked = cut(name, rules);
    let mut best: Option<(Left, &str)> = None;
    let lower = name.to_ascii_lowercase();
    for (id, own) in &all {
        // A family's name stands in every name of its models; most of the catalogue is of another.
        let bare = own.rsplit('/').next().unwrap_or(own);
        let family = bare.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("").to_ascii_lowercase();
        let left = Some(own)
            .filter(|_| lower.contains(&family))
            .and_then(|own| Left::over(&asked.words, &cut(own, rules).words));
        let Some(left) = left else { continue };
        let better = best.as_ref().is_none_or(|(other, _)| left.rank() < other.rank());
        if better {
            best = Some((left, id));
        }
    }
    let missing = || SpecError::unknown("model", name, all.iter().flat_map(|(id, own)| [*id, *own]));
    let (left, id) = best.ok_or_else(missing)?;
    if left.others.is_empty() {
        return Ok(Reading { id: id.to_owned(), weights: asked.format, unread: left.strange });
    }
    if left.others.iter().all(|word| unknown_format(word)) {
        let said = format!("\"{}\"", left.others.join(" "));
        let hint = format!(
            "{said} is a format of weights that is not known here: ask for {id}, with the nearest width by -q, such as -q int4"
        );
        return Err(missing().hint(hint));
    }
    let words = left.others.iter().map(|word| glossed(word)).collect::<Vec<_>>().join(" and ");
    let hint = format!("the nearest is {id}, which is without {words}; or give the model's config.json");
    Err(missing().hint(hint))
}

/// Whether a name says no more than one of a model's own: every word stands in that, beside its size, and no format is named.
pub(crate) fn says_no_more(name: &str, own: &[&str], rules: &NameRules) -> bool {
    let joined = |words: &[String]| words.concat();
    // Owners are words of a name too: meta-llama-3.1-8b.
    let owner = |own: &str| own.split('/').flat_map(|part| cut(part, rules).words).collect::<Vec<_>>();
    let (asked, own) = (cut(name, rules), own.iter().map(|own| owner(own)).collect::<Vec<_>>());
    let known = |word: &String| own.iter().any(|words| words.contains(word)) || (size(word) && !word.ends_with('k'));
    let same = own.iter().any(|words| joined(words).ends_with(&joined(&asked.words)));
    asked.format.is_none() && (same || asked.words.iter().all(known))
}

/// The format of the cache that a checkpoint brings with it, by its name: NVIDIA's tool writes an 8-bit one into what it makes,
/// which is most of what is in NVFP4; the compressor of Red Hat's does not.
pub fn cache(name: &str) -> Option<Dtype> {
    let lower = name.trim().to_ascii_lowercase();
    let owner = lower.rsplit_once('/').map_or("", |(owner, _)| owner);
    let four = lower.contains("nvfp4") && !matches!(owner, "redhatai" | "neuralmagic" | "llm-compressor");
    (four || owner == "nvidia" && lower.contains("fp8")).then_some(Dtype::Fp8)
}

/// The method by which a checkpoint was made narrower, where its name says one that engines hold a flag against.
pub fn method(name: &str) -> Option<&'static str> {
    let lower = name.trim().to_ascii_lowercase();
    let bare = lower.rsplit('/').next().unwrap_or(&lower);
    let says = |method: &&str| bare.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == *method);
    ["awq", "gptq", "fp8"].into_iter().find(says)
}

/// A word of another model, with what it means where that is no size or version.
fn glossed(word: &str) -> String {
    let means = match word {
        "vl" | "vlm" | "vision" | "image" | "ocr" | "multimodal" | "llava" | "bakllava" | "cogvlm" | "vila"
        | "nvila" | "onevision" | "videollama" | "xcomposer" => " (reads pictures)",
        "audio" | "asr" | "tts" | "omni" | "speech" | "voice" | "ultravox" | "vita" => " (hears or speaks)",
        "embed" | "embedding" | "rerank" | "reranker" => " (returns vectors or scores, no text)",
        "draft" | "drafter" | "eagle" | "eagle3" | "medusa" | "dflash" | "dspark" | "speculator" => {
            " (drafts for another model)"
        }
        word if unknown_format(word) => " (a format that is not known here)",
        "reap" | "pruned" => " (has fewer experts)",
        _ => "",
    };
    format!("\"{word}\"{means}")
}

/// Whether a name is that of a GGUF file, of a repository of such files, or as Ollama writes one (`llama3.1:8b`).
pub fn is_gguf(name: &str) -> bool {
    let lower = name.trim().to_ascii_lowercase();
    let (owner, bare) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let word = bare.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "gguf");
    word || (owner.is_empty() && bare.contains(':'))
}

/// Whether a name is of files of llama.cpp and says nothing of how wide their weights are.
pub fn leaves_format_open(name: &str) -> bool {
    let lower = name.trim().to_ascii_lowercase();
    let bare = lower.rsplit('/').next().unwrap_or(&lower);
    let pieces: Vec<&str> = bare.split(|c: char| !c.is_ascii_alphanumeric()).filter(|p| !p.is_empty()).collect();
    let says =
        |at: usize| (1..=4).any(|n| at + n <= pieces.len() && format(&pieces[at..at + n].join("-"), true).is_some());
    is_gguf(name) && !(0..pieces.len()).any(says)
}

/// A name in words.
struct Cut {
    words: Vec<String>,
    format: Option<Format>,
}

fn cut(name: &str, rules: &NameRules) -> Cut {
    let lower = name.trim().to_ascii_lowercase();
    let (owner, bare) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let bare = bare.strip_suffix(".gguf").map_or_else(|| bare.to_owned(), |file| format!("{file}-gguf"));
    let mut pieces: Vec<&str> = Vec::new();
    let mut from = 0;
    let bytes = bare.as_bytes();
    for (at, byte) in bare.bytes().enumerate() {
        let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
        let version = byte == b'.' && at > 0 && digit(at - 1) && digit(at + 1);
        if !byte.is_ascii_alphanumeric() && !version && byte.is_ascii() {
            pieces.push(&bare[from..at]);
            from = at + 1;
        }
    }
    pieces.push(&bare[from..]);
    pieces.retain(|piece| !piece.is_empty());
    let pieces: Vec<Cow<str>> = versions(&pieces);
    // What was quantised while it was trained and is stored wide, as `qat-q4_0-unquantized`.
    let wide = pieces.iter().any(|piece| piece == "unquantized");
    // Bits without a method are MLX's way to say it.
    let mlx = !pieces.iter().any(|piece| listed(METHODS, piece));
    let file = is_gguf(name);
    let (mut words, mut said, mut usual, mut mixed) = (Vec::new(), None, None, false);
    let mut at = 0;
    while at < pieces.len() {
        let stated = (1..=4).rev().filter(|n| at + n <= pieces.len());
        let mut stated = stated.filter_map(|n| Some((n, format(&pieces[at..at + n].join("-"), mlx)?)));
        if pieces[at] == "w4a8" {
            mixed = true;
            at += 1;
            continue;
        }
        if let Some((n, dtype)) = stated.next() {
            said = said.or(Some(dtype));
            at += n;
            continue;
        }
        // Behind a format stand the versions of whoever made it, and which matrices it is of.
        let forks = said.is_some() && (version(&pieces[at]) || pieces[at] == "moe");
        if unknown_format(&pieces[at]) {
            words.push(pieces[at].to_string());
        } else if listed(METHODS, &pieces[at]) {
            usual = Some(Format::Said(Dtype::Int4));
        } else if !forks {
            words.extend(parts(&pieces[at]));
        }
        at += 1;
    }
    let whole = file.then_some(Format::Usual(Dtype::Gguf(Gguf::Q4KM)));
    // In a file of llama.cpp only experts are in it.
    let said = said.map(|dtype| if file && dtype == Dtype::MxFp4 { Dtype::Gguf(Gguf::Mxfp4Moe) } else { dtype });
    let said = said.map(|dtype| Format::Said(rules.meant(owner, dtype)));
    let mixed = mixed.then_some(Format::Mixed { experts: Dtype::Int4, rest: Dtype::Int8 });
    Cut { words, format: mixed.or(said).or(usual).or(whole).filter(|_| !wide) }
}

/// Versions cut in two (`3_1`, `2-5`) made whole again.
fn versions<'a>(pieces: &[&'a str]) -> Vec<Cow<'a, str>> {
    let digit = |piece: &str| piece.len() == 1 && piece.as_bytes()[0].is_ascii_digit();
    // The first half may stand behind its family: `qwen2-5`.
    let ends = |piece: &str| {
        let letters = piece.bytes().take_while(u8::is_ascii_alphabetic).count();
        digit(piece) || (letters >= 3 && digit(&piece[letters..]))
    };
    let mut whole: Vec<Cow<str>> = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        match pieces.get(at + 1) {
            Some(next) if ends(pieces[at]) && digit(next) => {
                whole.push(Cow::Owned(format!("{}.{next}", pieces[at])));
                at += 2;
            }
            _ => {
                whole.push(Cow::Borrowed(pieces[at]));
                at += 1;
            }
        }
    }
    whole
}

/// The format words stand for.
fn format(words: &str, mlx: bool) -> Option<Dtype> {
    let bits = words.strip_suffix("bits").or(words.strip_suffix("bit"));
    if let Some(format) = bits.filter(|_| mlx).and_then(|bits| Gguf::named(&format!("mlx-{bits}bit"))) {
        return Some(Dtype::Gguf(format));
    }
    Some(match words {
        "awq" | "gptq" | "float" | "half" => return None,
        "fp4" | "nvfp4a16" => Dtype::NvFp4,
        "4bit" | "4bits" | "nf4" | "w4a16-g128" => Dtype::Int4,
        "8bit" | "8bits" | "w8a16" => Dtype::Int8,
        // Files of wider tensors than the mix they are named after; nearest to it of those known.
        "q2-k-xl" => Dtype::Gguf(Gguf::Q2K),
        "q3-k-xl" => Dtype::Gguf(Gguf::Q3KL),
        "q4-k-l" | "q4-k-xl" => Dtype::Gguf(Gguf::Q4KM),
        "q5-k-l" | "q5-k-xl" => Dtype::Gguf(Gguf::Q5KM),
        "q6-k-l" | "q6-k-xl" => Dtype::Gguf(Gguf::Q6K),
        "q8-k-xl" => Dtype::Gguf(Gguf::Q8_0),
        "q8" => Dtype::Gguf(Gguf::Q8_0),
        other => Dtype::named(other)?,
    })
}

/// A family and its version are two words, joined or not: `llama3.1` is `llama 3.1`.
fn parts(piece: &str) -> Vec<String> {
    let letters = piece.bytes().take_while(u8::is_ascii_alphabetic).count();
    let cut = if letters >= 3 { letters } else { 0 };
    [&piece[..cut], &piece[cut..]].into_iter().filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// What is left of a name beside a model's.
struct Left {
    /// Words of the model.
    matched: usize,
    /// Words of the model's own release that this one does not have.
    released: usize,
    others: Vec<String>,
    strange: Vec<String>,
}

impl Left {
    /// None unless the words of the model stand in the name, in their order.
    fn over(asked: &[String], own: &[String]) -> Option<Self> {
        let released = own.iter().filter(|word| says_nothing(word) && !asked.contains(word)).count();
        // A name without a size is short; a word in its midst is another model's (gpt-oss-2 is no GPT-2).
        let sized = own.iter().any(|word| size(word));
        let mut own = own.iter().filter(|word| !says_nothing(word)).peekable();
        own.peek()?;
        let mut left = Self { matched: 0, released, others: Vec::new(), strange: Vec::new() };
        let mut before = None;
        for word in asked {
            // `qwen25` is `qwen2.5`.
            let joined = |next: &str| word.len() == 2 && next.len() == 3 && next.replacen('.', "", 1) == *word;
            if own.next_if(|next| *next == word || joined(next)).is_some() {
                left.matched += 1;
            } else if !says_nothing(word) {
                let tuned = left.strange.last().is_some_and(|word| before == Some(word));
                let within = left.matched > 0 && !sized && own.peek().is_some();
                let other = within
                    || listed(OTHERS, word)
                    || unknown_format(word)
                    || size(word)
                    || (left.matched > 0 && version(word) && !tuned);
                if other { &mut left.others } else { &mut left.strange }.push(word.clone());
            }
            before = Some(word);
        }
        own.next().is_none().then_some(left)
    }

    /// Less is better.
    fn rank(&self) -> (usize, usize, usize, usize) {
        (self.others.len(), usize::MAX - self.matched, self.strange.len(), self.released)
    }
}

/// A word of a format that is not known here, or of a width that no known format has: `hqq`, `5.0bpw`.
fn unknown_format(word: &str) -> bool {
    let mut widths = ["bpw", "bits", "bit"].iter().filter_map(|unit| word.strip_suffix(unit));
    listed(FORMATS, word) || widths.any(|bits| bits.parse::<f64>().is_ok())
}

/// A word of any release, or a date or number such as 2507, 20250610 or 11446.
fn says_nothing(word: &str) -> bool {
    listed(RELEASES, word) || (word.len() >= 4 && word.bytes().all(|b| b.is_ascii_digit()))
}

fn listed(list: &str, word: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

/// So many parameters, experts, or thousands of tokens: 70b, 0.5b, 1b7, 270m, 8x7b, a3b, e4b, 16e, 128k.
fn size(word: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if word.split_once('b').is_some_and(|(whole, rest)| digits(whole) && digits(rest)) {
        return true;
    }
    let bare = word.strip_prefix(['a', 'e']).unwrap_or(word);
    let number = bare.strip_suffix(['b', 'm', 'e', 'k']);
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'x')))
}

fn version(word: &str) -> bool {
    let bare = word.strip_prefix(['v', 'r']).unwrap_or(word);
    !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODELS: &[(&str, &str)] = &[
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("llama-3.1-70b", "llama-3.3-70b"),
        ("qwen2.5-72b", "qwen2.5-72b"),
        ("qwen3-30b-a3b", "qwen3-30b-a3b"),
        ("qwen3-32b", "Qwen/Qwen3-32B"),
        ("mistral-nemo-12b", "mistralai/Mistral-Nemo-Base-2407"),
        ("mistral-7b", "mistral-7b"),
        ("phi-4", "phi-4"),
        ("deepseek-v3", "deepseek-r1"),
    ];

    fn rules() -> NameRules {
        let text = r#"
as_of = "2026-11"
[[owner]]
owners = ["qwen"]
said = "fp8"
means = "fp8-block"
source = "made up for a test"
"#;
        crate::naming::read("names", text).unwrap()
    }

    #[test]
    fn what_nobody_heard_of_is_said_what_it_may_be() {
        for name in ["openai/whisper-large-v3", "google/flan-t5-xl", "facebook/bart-large", "whisper-tiny"] {
            assert!(unheard_of(name).contains("encoder-decoder") && two_stacked(name), "{name}");
        }
        assert!(hears("openai/whisper-large-v3") && hears("voxtral-mini-3b") && !hears("some-org/finetune-7b"));
        // A word that only begins like one of them is another.
        assert!(!two_stacked("someone/t5x-like-7b") && !two_stacked("bartowski/model-9b"));
        let own = unheard_of("some-org/My-Finetune-7B-AWQ");
        assert!(own.contains("config.json") && own.contains("--fetch") && !own.contains("OWNER"), "{own}");
    }

    #[test]
    fn a_format_that_is_not_known_is_refused_and_not_taken_for_a_fine_tune() {
        for name in [
            "turboderp/Qwen3-32B-exl3",
            "bartowski/Qwen3-32B-5.0bpw-h6-exl2",
            "ISTA-DASLab/Llama-3.1-8B-Instruct-AQLM-PV-2Bit-1x16-hf",
            "mobiuslabsgmbh/Llama-3.1-8b-instruct_4bitgs64_hqq_calib",
            "someone/Qwen3-32B-GPTQ-3.5bit",
        ] {
            let refused = read(name, MODELS.iter().copied(), &rules()).unwrap_err().to_string();
            assert!(refused.contains("not known here") && refused.contains("-q"), "{name}: {refused}");
        }
        let known = read("mlx-community/Qwen3-32B-4bit", MODELS.iter().copied(), &rules()).unwrap();
        assert!(matches!(known.weights, Some(Format::Said(_))), "{known:?}");
    }

    fn told(name: &str) -> Result<Reading, SpecError> {
        read(name, MODELS.iter().copied(), &rules())
    }

    #[test]
    fn a_name_is_a_model_a_format_and_words_of_its_own() {
        let said = |dtype: Dtype| Some(Format::Said(dtype));
        let q4 = Dtype::Gguf(Gguf::Q4KM);
        for (name, id, weights, unread) in [
            ("RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16", "llama-3.1-70b", said(Dtype::Int4), ""),
            ("nvidia/Llama-3.1-8B-Instruct-FP8", "llama-3.1-8b", said(Dtype::Fp8), ""),
            ("Qwen/Qwen3-32B-FP8", "qwen3-32b", said(Dtype::Fp8Block), ""),
            ("Qwen/Qwen3-32B-GPTQ-Int8", "qwen3-32b", said(Dtype::Int8), ""),
            ("Qwen/Qwen2.5-72B-Instruct-AWQ", "qwen2.5-72b", said(Dtype::Int4), ""),
            ("unsloth/Qwen3-30B-A3B-Instruct-2507-GGUF", "qwen3-30b-a3b", Some(Format::Usual(q4)), ""),
            ("unsloth/Meta-Llama-3.1-8B-bnb-4bit", "llama-3.1-8b", said(Dtype::Int4), ""),
            ("mlx-community/Qwen3-32B-4bit", "qwen3-32b", said(Dtype::Gguf(Gguf::Mlx4)), ""),
            ("bartowski/Llama-3.3-70B-Instruct-Q5_K_M.gguf", "llama-3.1-70b", said(Dtype::Gguf(Gguf::Q5KM)), ""),
            ("NousResearch/Hermes-3-Llama-3.1-8B", "llama-3.1-8b", None, "hermes 3"),
            ("llama3.3:70b-instruct-q4_K_M", "llama-3.1-70b", said(q4), ""),
            ("qwen3:32b", "qwen3-32b", Some(Format::Usual(q4)), ""),
            ("mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo-12b", None, ""),
            ("nvidia/DeepSeek-R1-0528-NVFP4", "deepseek-v3", said(Dtype::NvFp4), ""),
            ("gghfez/DeepSeek-R1-11446-Q2_K", "deepseek-v3", said(Dtype::Gguf(Gguf::Q2K)), ""),
            ("someone/qwen25-72b-merged", "qwen2.5-72b", None, "merged"),
            ("Qwen2-5-72B-Instruct", "qwen2.5-72b", None, ""),
            ("Llama-3_1-8B", "llama-3.1-8b", None, ""),
            ("Qwen3-32B-qat-q4_0-unquantized", "qwen3-32b", None, "unquantized"),
            ("Qwen3-32B-MTP-NVFP4", "qwen3-32b", said(Dtype::NvFp4), ""),
        ] {
            let read = told(name).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(
                (read.id.as_str(), read.weights, read.unread.join(" ").as_str()),
                (id, weights, unread),
                "{name}"
            );
        }
    }

    #[test]
    fn a_checkpoint_may_bring_the_format_of_its_cache() {
        // Blocks of vLLM's start-up logs tell: 1,600 tokens of Qwen3.8 27B are as many 8-bit entries as a state has bytes.
        for (name, cache) in [
            ("unsloth/Qwen3.8-27B-NVFP4", Some(Dtype::Fp8)),
            ("nvidia/Llama-3.1-70B-Instruct-FP8", Some(Dtype::Fp8)),
            ("RedHatAI/Qwen3.6-35B-A3B-NVFP4", None),
            ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", None),
            ("meta-llama/Llama-3.1-8B", None),
        ] {
            assert_eq!(super::cache(name), cache, "{name}");
        }
    }

    #[test]
    fn words_of_another_model_are_refused_by_name() {
        for (name, word) in [
            ("Qwen/Qwen2.5-VL-72B-Instruct", "\"vl\""),
            ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "\"70b\""),
            ("mistralai/Mistral-7B-Instruct-v0.2", "\"v0.2\""),
            ("microsoft/Phi-4-multimodal-instruct", "\"multimodal\""),
            ("someone/phi-oss-4", "\"oss\""),
            ("someone/phi-4-1b7", "\"1b7\""),
            ("phi-4-xxl", "\"xxl\""),
        ] {
            let error = told(name).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("config.json"), "{error}");
        }
        assert!(told("meta-llama/Llama-3.2-11B-Vision").is_err() && told("llama").is_err());
        assert!(told(" ").unwrap_err().to_string().starts_with("no model is named; expected a name such as"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(name in ".{0,60}") {
            _ = told(&name);
        }

        #[test]
        fn a_format_behind_a_name_is_read_back(at in 0..MODELS.len(), format in 0..5_usize, owner in "[a-z]{1,8}") {
            let dtype = [Dtype::Fp8, Dtype::NvFp4, Dtype::MxFp4, Dtype::Int8, Dtype::Gguf(Gguf::Q4KM)][format];
            let (id, own) = MODELS[at];
            let bare = own.rsplit('/').next().unwrap_or(own);
            let read = told(&format!("{owner}x/{bare}-Instruct-{dtype}")).unwrap();
            proptest::prop_assert_eq!((read.id.as_str(), read.weights), (id, Some(Format::Said(dtype))));
        }
    }
}
