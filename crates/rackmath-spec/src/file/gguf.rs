//! Reads the header of a GGUF file: what it says of the model, and every tensor's name, type and sides.
//!
//! $$ \text{file} = \text{magic}\;\text{version}\;n_t\;n_m\;(\text{key type value})^{n_m}\;(\text{name sides type offset})^{n_t}\;\text{data} $$
//!
//! Nothing of the data is read, so that a file of hundreds of gigabytes takes as long as its vocabulary. Versions 2 and 3 are
//! read, in either order of bytes; a file in parts (`-00001-of-00003`) is the sum of its parts' tensors. Every length is checked
//! against what is there and against a bound before anything is made of it. What was read is carried on as JSON under `gguf`,
//! so that a request can bring it along as it does a `config.json`.
//! Source: ggml `docs/gguf.md` (layout), llama.cpp `gguf-py/gguf/constants.py` (keys and names of tensors), read 2026-11.

mod shape;

use crate::ggml::TensorType;
use crate::{SpecError, error::shorten};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The most bytes a header is read to have: vocabularies of a million words take a tenth of it.
pub const MAX_HEADER: usize = 256 << 20;

/// Bounds far above any file there is.
const MAX_TENSORS: u64 = 200_000;
const MAX_KEYS: u64 = 100_000;
const MAX_SIDES: u32 = 4;
/// Lists up to so many numbers are kept (one for each layer); longer ones are vocabularies.
const KEPT: u64 = 2048;
/// Letters kept of a text: chat templates are long.
const LETTERS: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub name: String,
    pub kind: TensorType,
    /// The innermost first: values of a row, rows, matrices.
    pub sides: Vec<u64>,
}

impl Tensor {
    pub fn values(&self) -> u64 {
        self.sides.iter().product()
    }

    pub fn bytes(&self) -> u64 {
        self.kind.bytes_of(self.values()).unwrap_or(0)
    }
}

/// What a file says before its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub version: u32,
    /// Scalars, short lists, and the length of long ones.
    pub keys: BTreeMap<String, Value>,
    pub tensors: Vec<Tensor>,
}

/// Reads a header from the first bytes of a file; none where they end before it does.
pub fn header(file: &str, bytes: &[u8]) -> Result<Option<Header>, SpecError> {
    let mut at = Cursor { file, bytes, at: 0, big: false };
    match at.header() {
        Ok(header) => Ok(Some(header)),
        Err(Stop::Short) => Ok(None),
        Err(Stop::Bad(error)) => Err(error),
    }
}

/// The names of all parts of a file whose name says which part it is, itself included; none of a file in one piece.
pub fn parts(name: &str) -> Option<Vec<String>> {
    const MOST: usize = 10_000;
    let stem = name.strip_suffix(".gguf")?;
    let (front, count) = stem.rsplit_once("-of-")?;
    let (base, number) = front.rsplit_once('-')?;
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit());
    let n: usize = count.parse().ok().filter(|n| digits(count) && digits(number) && (1..=MOST).contains(n))?;
    Some((1..=n).map(|i| format!("{base}-{i:05}-of-{n:05}.gguf")).collect())
}

impl Header {
    /// Takes in the tensors of the next part of the same file.
    pub fn join(&mut self, part: Self) {
        self.tensors.extend(part.tensors);
    }

    /// Parts that it says there are, where it is one of several.
    pub fn parts(&self) -> Option<u64> {
        self.keys.get("split.count").and_then(Value::as_u64).filter(|n| *n > 1)
    }

    /// Tensors it says all parts have together.
    pub fn tensors_of_all(&self) -> Option<u64> {
        self.keys.get("split.tensors.count").and_then(Value::as_u64)
    }

    /// Bytes by type, largest first.
    pub fn by_type(&self) -> Vec<(TensorType, u64)> {
        let mut all: Vec<(TensorType, u64)> = Vec::new();
        for tensor in &self.tensors {
            match all.iter_mut().find(|(kind, _)| *kind == tensor.kind) {
                Some((_, bytes)) => *bytes = bytes.saturating_add(tensor.bytes()),
                None => all.push((tensor.kind, tensor.bytes())),
            }
        }
        all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.number.cmp(&b.0.number)));
        all
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().fold(0, |sum, t| sum.saturating_add(t.bytes()))
    }

    /// As a request carries it.
    pub fn carried(&self) -> Value {
        let tensor = |t: &Tensor| json!([t.name, t.kind.name, t.sides]);
        let keys: Map<String, Value> = self.keys.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let tensors: Vec<Value> = self.tensors.iter().map(tensor).collect();
        json!({ "gguf": { "version": self.version, "keys": keys, "tensors": tensors } })
    }

    /// Reads back what was carried.
    pub(super) fn brought(file: &str, carried: &Value) -> Result<Self, SpecError> {
        let wrong = |expected: &str| SpecError::file(file, "the header of a GGUF file is not whole").hint(expected);
        let version = carried.get("version").and_then(Value::as_u64).unwrap_or(3) as u32;
        let keys = carried.get("keys").and_then(Value::as_object).ok_or_else(|| wrong("gguf.keys is an object"))?;
        let list = carried.get("tensors").and_then(Value::as_array).ok_or_else(|| wrong("gguf.tensors is a list"))?;
        if list.len() as u64 > MAX_TENSORS {
            return Err(wrong("at most 200,000 tensors"));
        }
        let tensor = |value: &Value| {
            let [name, kind, sides] = value.as_array()?.as_slice() else { return None };
            let sides: Vec<u64> = sides.as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
            sound(name.as_str()?, TensorType::named(kind.as_str()?)?, sides)
        };
        let expected = "a tensor is [name, type, [sides]], its rows whole blocks of its type";
        let tensors = list.iter().map(tensor).collect::<Option<Vec<Tensor>>>().ok_or_else(|| wrong(expected))?;
        let keys = keys.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Self { version, keys, tensors })
    }
}

pub(super) use shape::model;

/// A tensor of which every size can be reckoned with.
fn sound(name: &str, kind: TensorType, sides: Vec<u64>) -> Option<Tensor> {
    const MOST: u64 = 1 << 50;
    let values = sides.iter().try_fold(1u64, |n, side| n.checked_mul(*side))?;
    let whole = sides.first().is_none_or(|row| row % kind.values == 0);
    let bounded = (1..=MOST).contains(&values) && sides.len() <= MAX_SIDES as usize && name.len() <= 256;
    (whole && bounded && kind.bytes_of(values).is_some()).then(|| Tensor { name: name.to_owned(), kind, sides })
}

/// Why reading ends: the bytes do, or they cannot be what they should.
enum Stop {
    Short,
    Bad(SpecError),
}

struct Cursor<'a> {
    file: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Whether the most significant byte comes first.
    big: bool,
}

impl<'a> Cursor<'a> {
    fn bad(&self, problem: impl Into<String>) -> Stop {
        Stop::Bad(SpecError::file(self.file, problem))
    }

    fn take(&mut self, n: u64) -> Result<&'a [u8], Stop> {
        if n > MAX_HEADER as u64 {
            return Err(self.bad(format!("a part of the header is said to have {n} bytes")));
        }
        let end = self.at.saturating_add(n as usize);
        let taken = self.bytes.get(self.at..end).ok_or(Stop::Short)?;
        self.at = end;
        Ok(taken)
    }

    /// A whole number of so many bytes.
    fn whole(&mut self, width: u64) -> Result<u64, Stop> {
        let big = self.big;
        let bytes = self.take(width)?;
        let add = |n: u64, byte: &u8| n << 8 | u64::from(*byte);
        Ok(if big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
    }

    fn text(&mut self, most: u64, what: &str) -> Result<String, Stop> {
        let n = self.whole(8)?;
        if n > most {
            return Err(self.bad(format!("{what} is said to have {n} letters")));
        }
        let text = self.take(n)?;
        Ok(String::from_utf8_lossy(text).chars().take(LETTERS.max(256)).collect())
    }

    fn header(&mut self) -> Result<Header, Stop> {
        if self.take(4)? != b"GGUF" {
            return Err(Stop::Bad(
                SpecError::file(self.file, "not a GGUF file").hint("expected one that begins with the letters GGUF"),
            ));
        }
        let version = self.whole(4)? as u32;
        let version = match version {
            2 | 3 => version,
            _ if matches!(version.swap_bytes(), 2 | 3) => {
                self.big = true;
                version.swap_bytes()
            }
            other => {
                let problem = format!("version {other} of GGUF");
                return Err(Stop::Bad(SpecError::file(self.file, problem).hint("expected version 2 or 3")));
            }
        };
        let (tensors, keys) = (self.whole(8)?, self.whole(8)?);
        if tensors > MAX_TENSORS || keys > MAX_KEYS {
            return Err(self.bad(format!("{tensors} tensors and {keys} keys are more than any model has")));
        }
        let mut all = BTreeMap::new();
        for _ in 0..keys {
            let key = self.text(65_535, "a key")?;
            let kind = self.whole(4)?;
            let value = self.value(kind, 0)?;
            all.insert(key, value);
        }
        let mut list = Vec::new();
        for _ in 0..tensors {
            list.push(self.tensor()?);
        }
        Ok(Header { version, keys: all, tensors: list })
    }

    fn tensor(&mut self) -> Result<Tensor, Stop> {
        let name = self.text(256, "the name of a tensor")?;
        let n = self.whole(4)?;
        if n > u64::from(MAX_SIDES) {
            return Err(self.bad(format!("tensor \"{}\" has {n} sides", shorten(&name))));
        }
        let sides = (0..n).map(|_| self.whole(8)).collect::<Result<Vec<u64>, Stop>>()?;
        let number = self.whole(4)? as u32;
        self.whole(8)?;
        let Some(kind) = TensorType::numbered(number) else {
            let problem = format!("tensor \"{}\" is of type {number}, which is not known", shorten(&name));
            return Err(Stop::Bad(SpecError::file(self.file, problem).hint(
                "types taken out of ggml (Q4_2, Q4_3, repacked Q4_0) and those of forks are not read; convert the file again",
            )));
        };
        let listed = format!("{sides:?}");
        sound(&name, kind, sides).ok_or_else(|| {
            self.bad(format!("tensor \"{}\" of {} has sides {listed}, not whole blocks", shorten(&name), kind.name))
        })
    }

    /// A value of a type by number; of lists that are not kept, how long they are.
    fn value(&mut self, kind: u64, depth: u32) -> Result<Value, Stop> {
        Ok(match kind {
            0 | 2 | 4 | 10 => json!(self.whole(width(kind))?),
            1 => json!(self.whole(1)? as u8 as i8),
            3 => json!(self.whole(2)? as u16 as i16),
            5 => json!(self.whole(4)? as u32 as i32),
            11 => json!(self.whole(8)? as i64),
            6 => json!(f64::from(f32::from_bits(self.whole(4)? as u32))),
            12 => json!(f64::from_bits(self.whole(8)?)),
            7 => json!(self.whole(1)? != 0),
            8 => json!(self.long_text()?),
            9 if depth < 3 => {
                let (inner, n) = (self.whole(4)?, self.whole(8)?);
                let width = width(inner);
                if width > 0 && n > KEPT {
                    let bytes = n.checked_mul(width).ok_or_else(|| self.bad("a list without end"))?;
                    self.take(bytes)?;
                    return Ok(json!({ "length": n }));
                }
                // A text or a list has eight bytes at least, so that the bytes there are bound how often this runs.
                let mut kept = Vec::new();
                for i in 0..n {
                    let one = self.value(inner, depth + 1)?;
                    if inner != 8 && i < KEPT {
                        kept.push(one);
                    }
                }
                if inner == 8 { json!({ "length": n }) } else { Value::Array(kept) }
            }
            9 => return Err(self.bad("lists in lists in lists")),
            other => return Err(self.bad(format!("a value of type {other}, which is not known"))),
        })
    }

    /// The first letters of a text.
    fn long_text(&mut self) -> Result<String, Stop> {
        let n = self.whole(8)?;
        let bytes = self.take(n)?;
        let first = &bytes[..bytes.len().min(4 * LETTERS)];
        Ok(String::from_utf8_lossy(first).chars().take(LETTERS).collect())
    }
}

/// Bytes of a value of a type; 0 where that differs from one to the next.
fn width(kind: u64) -> u64 {
    match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file of one tensor, version 3, with one key.
    fn file(big: bool) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        let put4 = |bytes: &mut Vec<u8>, n: u32| bytes.extend(if big { n.to_be_bytes() } else { n.to_le_bytes() });
        let put8 = |bytes: &mut Vec<u8>, n: u64| bytes.extend(if big { n.to_be_bytes() } else { n.to_le_bytes() });
        let text = |bytes: &mut Vec<u8>, text: &str| {
            put8(bytes, text.len() as u64);
            bytes.extend(text.as_bytes());
        };
        put4(&mut bytes, 3);
        put8(&mut bytes, 1);
        put8(&mut bytes, 2);
        text(&mut bytes, "general.architecture");
        put4(&mut bytes, 8);
        text(&mut bytes, "llama");
        text(&mut bytes, "llama.attention.head_count");
        put4(&mut bytes, 9);
        put4(&mut bytes, 4);
        put8(&mut bytes, 2);
        put4(&mut bytes, 32);
        put4(&mut bytes, 16);
        text(&mut bytes, "token_embd.weight");
        put4(&mut bytes, 2);
        put8(&mut bytes, 256);
        put8(&mut bytes, 3);
        put4(&mut bytes, 12);
        put8(&mut bytes, 0);
        bytes
    }

    #[test]
    fn a_header_reads_the_same_in_either_order_of_bytes_and_back_from_json() {
        let read = |big| header("x", &file(big)).unwrap().unwrap();
        assert_eq!(read(false), read(true));
        let one = read(false);
        // 3 rows of 256 values: 3 blocks of 144 bytes.
        assert_eq!((one.bytes(), one.tensors[0].values(), one.tensors[0].kind.name), (432, 768, "Q4_K"));
        assert_eq!(one.keys["llama.attention.head_count"], json!([32, 16]));
        assert_eq!(Header::brought("x", &one.carried()["gguf"]).unwrap(), one);
        assert_eq!(parts("a-00002-of-00003.gguf").unwrap()[0], "a-00001-of-00003.gguf");
        assert_eq!(parts("a-2-of-3.gguf"), None);
    }

    proptest! {
        #[test]
        fn a_header_cut_anywhere_asks_for_more(at in 0usize..200) {
            let whole = file(false);
            let cut = &whole[..at.min(whole.len() - 1)];
            prop_assert_eq!(header("x", cut).unwrap(), None);
        }

        #[test]
        fn changed_bytes_never_make_it_panic(changes in prop::collection::vec((0usize..220, any::<u8>()), 1..12)) {
            let mut bytes = file(false);
            for (at, byte) in changes {
                let end = bytes.len();
                bytes[at % end] = byte;
            }
            if let Ok(Some(header)) = header("x", &bytes) {
                prop_assert!(header.bytes() < u64::MAX);
                let _ = crate::file::model("x.gguf", &header.carried().to_string());
            }
        }
    }
}
