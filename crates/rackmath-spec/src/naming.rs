//! What names say by custom: which clouds call what a machine, and what makers of checkpoints mean by a format.
//!
//! A machine's name is a pattern such as `a3-highgpu-{n}g`, in which `{n}` counts its chips (or parts of them: a TPU v5p has two cores to
//! a chip, and `v5p-8` is four chips), or a plain name with a count.

use crate::file::noun::{cited, text};
use crate::model::{Formats, Model};
use crate::{Dtype, SpecError};
use serde::Deserialize;

/// The customs, as the catalogue has them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameRules {
    #[serde(default)]
    id: String,
    #[serde(default)]
    as_of: String,
    #[serde(default)]
    machine: Vec<MachineRule>,
    /// Owners who mean a format of their own by a word.
    #[serde(default)]
    owner: Vec<OwnerRule>,
    /// Checkpoints that leave attention wider than the rest.
    #[serde(default)]
    attention: Vec<AttentionRule>,
    /// Checkpoints whose longest sequence is another than that of the model whose shapes they have.
    #[serde(default)]
    context: Vec<ContextRule>,
    /// Ids of checkpoints that share a model's shapes and are called by names of their own.
    #[serde(default)]
    checkpoint: Vec<CheckpointRule>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointRule {
    /// What it is also called, beside its id without the owner.
    #[serde(default)]
    names: Vec<String>,
    /// The ids it is fetched by.
    ids: Vec<String>,
    #[allow(dead_code, reason = "for readers of the file")]
    source: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContextRule {
    /// One of these stands in the name, and this word, and none of those.
    names: Vec<String>,
    #[serde(default)]
    with: String,
    #[serde(default)]
    without: Vec<String>,
    tokens: u64,
    #[allow(dead_code, reason = "for readers of the file")]
    source: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineRule {
    chip: String,
    names: Vec<String>,
    /// Chips of a machine whose name does not count them.
    #[serde(default = "one")]
    count: u64,
    /// What `{n}` counts, of which so many make a chip.
    #[serde(default = "one")]
    per_chip: u64,
    #[allow(dead_code, reason = "for readers of the file")]
    source: String,
}

fn one() -> u64 {
    1
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnerRule {
    owners: Vec<String>,
    #[serde(deserialize_with = "text")]
    said: Dtype,
    #[serde(deserialize_with = "text")]
    means: Dtype,
    #[allow(dead_code, reason = "for readers of the file")]
    source: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttentionRule {
    #[serde(deserialize_with = "text")]
    format: Dtype,
    architectures: Vec<String>,
    /// Dense networks and shared experts are left too: only routed experts are narrow.
    #[serde(default)]
    dense: bool,
    #[allow(dead_code, reason = "for readers of the file")]
    source: String,
}

pub(crate) fn read(id: &str, text: &str) -> Result<NameRules, SpecError> {
    let file = format!("names {id}");
    let rules: NameRules = cited(&file, id, text, &[])?;
    let counted = |rule: &MachineRule| rule.count > 0 && rule.per_chip > 0;
    match rules.machine.iter().find(|rule| !counted(rule)) {
        Some(rule) => {
            Err(SpecError::field(&file, "machine.count", &rule.chip, "at least one chip, and one part to it"))
        }
        None => Ok(rules),
    }
}

/// A cloud's name of a machine without the words that say by which of its services it is sold.
pub(crate) fn unsold(name: &str) -> &str {
    let starts = |word: &str| name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    ["ml.", "standard_"].into_iter().find(|word| starts(word)).map_or(name, |word| &name[word.len()..])
}

/// Words of a chip's full name that tell it from no other.
const VENDORS: &str = "nvidia geforce amd instinct intel huawei tesla quadro gpu gpus npu card cards generation edition graphics \
    accelerator ascend-npu google cloud";

/// What Apple calls the machines around its chips.
const MACS: [&str; 6] = ["mac-studio", "macbook-pro", "macbook-air", "mac-mini", "mac-pro", "imac"];

/// A name as it is compared, without the machine around a chip.
fn bare(name: &str) -> String {
    let whole = format!("-{}-", spelled(name));
    let without = MACS.iter().fold(whole, |name, mac| name.replace(&format!("-{mac}-"), "-"));
    without.trim_matches('-').to_owned()
}

impl NameRules {
    /// What an owner means by a format.
    pub(crate) fn meant(&self, owner: &str, said: Dtype) -> Dtype {
        let meant = |rule: &&OwnerRule| rule.said == said && rule.owners.iter().any(|one| one == owner);
        self.owner.iter().find(meant).map_or(said, |rule| rule.means)
    }

    /// The longest sequence of a checkpoint, where its name tells that from its sisters.
    fn context(&self, name: &str) -> Option<u64> {
        let lower = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let has = |word: &String| lower.contains(word.as_str());
        let told = |rule: &&ContextRule| rule.names.iter().any(has) && has(&rule.with) && !rule.without.iter().any(has);
        self.context.iter().find(told).map(|rule| rule.tokens)
    }

    /// The same, where it is another than that of the model whose shapes it has.
    pub(crate) fn context_of(&self, name: &str, model: &Model) -> Option<u64> {
        let own = model.shape().and_then(|shape| shape.context_max)?;
        self.context(name).filter(|tokens| *tokens != own)
    }

    /// The id that a checkpoint is fetched by, where one is known by this name.
    pub(crate) fn checkpoint(&self, name: &str) -> Option<&str> {
        let name = spelled(name);
        self.checkpoint.iter().find_map(|rule| {
            let bare = |id: &&String| id.rsplit('/').next().is_some_and(|bare| spelled(bare) == name);
            let other = || rule.ids.first().filter(|_| rule.names.iter().any(|own| spelled(own) == name));
            rule.ids.iter().find(bare).or_else(other).map(String::as_str)
        })
    }

    /// The formats of a checkpoint in one format: attention stays as it was where makers leave it.
    pub(crate) fn kept(&self, architecture: &str, said: Dtype, formats: Formats) -> Formats {
        let kept = |rule: &AttentionRule| rule.format == said && rule.architectures.iter().any(|a| a == architecture);
        let wide = formats.other;
        match self.attention.iter().find(|rule| kept(rule)) {
            Some(rule) if rule.dense => Formats { mixer: wide, linear: wide, ..formats },
            Some(_) => Formats { mixer: wide, ..formats },
            None => formats,
        }
    }

    /// The chip of a cloud's machine, and how many.
    pub(crate) fn machine(&self, name: &str) -> Option<(&str, u64)> {
        let bare = &*spelled(unsold(name.trim()));
        self.machine.iter().find_map(|rule| {
            let n = rule.names.iter().find_map(|pattern| rule.counted(&spelled(pattern), bare))?;
            Some((rule.chip.as_str(), n))
        })
    }
}

impl MachineRule {
    /// How many chips a name that follows a pattern has.
    fn counted(&self, pattern: &str, name: &str) -> Option<u64> {
        let Some((before, after)) = pattern.split_once("{n}") else { return (pattern == name).then_some(self.count) };
        let digits = name.strip_prefix(before)?.strip_suffix(after)?;
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let n: u64 = digits.parse().ok().filter(|n| plain && (1..=100_000).contains(n))?;
        n.is_multiple_of(self.per_chip).then_some(n / self.per_chip)
    }
}

/// A name as names are compared.
pub(crate) fn spelled(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace(['_', ' '], "-")
}

/// Shorter names of a chip that is called by its full one, such as `NVIDIA H100 80GB HBM3` or `Ascend NPU (Atlas A3)`, each with the gigabytes it
/// was said to have: whoever finds a chip by one holds them against it.
pub(crate) fn shorter(name: &str) -> Vec<(String, Option<f64>)> {
    let outside = name.split('(').next().unwrap_or("");
    let inside = name.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside);
    let mut all = Vec::new();
    for part in [outside, inside] {
        let (mut words, mut stated) = (Vec::new(), None);
        let vendor = |word: &&str| VENDORS.split(' ').any(|vendor| vendor == *word);
        let whole =
            bare(part).split('-').filter(|word| !word.is_empty() && !vendor(word)).collect::<Vec<_>>().join("-");
        all.push((whole, None));
        for word in bare(part).split('-').filter(|word| !word.is_empty()) {
            let gigabytes = word.strip_suffix("gib").or(word.strip_suffix("gb")).and_then(|n| n.parse::<f64>().ok());
            let memory = ["hbm", "gddr"].iter().any(|kind| word.starts_with(kind)) || ["gb", "gib"].contains(&word);
            match gigabytes {
                Some(n) => stated = Some(n),
                None if memory || vendor(&word) => {}
                None => words.push(word.to_owned()),
            }
        }
        if let Some(last) = words.last().filter(|last| last.parse::<f64>().is_ok_and(|n| n >= 16.0) && stated.is_none())
        {
            // "80 GB" in two words.
            let apart = bare(part).contains(&format!("{last}-gb"));
            if apart {
                stated = last.parse().ok();
                words.pop();
            }
        }
        all.push((words.join("-"), stated));
    }
    all.retain(|(name, _)| !name.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> NameRules {
        let text = r#"
as_of = "2026-11"
[[machine]]
chip = "h100"
names = ["a3-highgpu-{n}g", "gpu_{n}x_h100_sxm5"]
source = "made up for a test"
[[machine]]
chip = "v5p"
names = ["v5p-{n}"]
per_chip = 2
source = "made up for a test"
[[machine]]
chip = "v100"
names = ["p3.8xlarge", "NC24s_v3"]
count = 4
source = "made up for a test"
"#;
        read("names", text).unwrap()
    }

    #[test]
    fn a_name_counts_its_chips_and_nothing_else_is_guessed() {
        let rules = rules();
        for (name, chip, n) in [
            ("a3-highgpu-4g", "h100", 4),
            ("GPU_2x_H100_SXM5", "h100", 2),
            ("v5p-8", "v5p", 4),
            ("ml.p3.8xlarge", "v100", 4),
            ("NC24s_v3", "v100", 4),
            ("Standard_NC24s_v3", "v100", 4),
        ] {
            assert_eq!(rules.machine(name), Some((chip, n)), "{name}");
        }
        for name in ["a3-highgpu-g", "a3-highgpu-0g", "a3-highgpu-4", "v5p-7", "p3.9xlarge", "a3-highgpu-1e3g", ""] {
            assert_eq!(rules.machine(name), None, "{name}");
        }
    }

    #[test]
    fn a_full_name_is_cut_to_what_tells_it_apart() {
        let short = |name: &str| shorter(name).into_iter().nth(1).unwrap();
        assert_eq!(short("NVIDIA H100 80GB HBM3"), ("h100".into(), Some(80.0)));
        assert_eq!(short("NVIDIA GeForce RTX 4090"), ("rtx-4090".into(), None));
        assert_eq!(short("A100 80 GB"), ("a100".into(), Some(80.0)));
        assert!(shorter("Ascend NPU (Atlas A3)").iter().any(|(name, _)| name == "atlas-a3"));
        assert_eq!(shorter("NVIDIA A100-SXM4-40GB")[0], ("a100-sxm4-40gb".into(), None));
        assert_eq!(short("RTX 5090 Laptop").0, "rtx-5090-laptop");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_not(name in ".{0,40}") {
            _ = (rules().machine(&name), shorter(&name));
        }
    }
}
