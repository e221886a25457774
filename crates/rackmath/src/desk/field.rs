//! The fields of a request, read from its schema: what is a flag in a terminal, a key of `whatif`, a control of a page.
//!
//! A field's flag is its name without the unit it ends with (`ttft_ms` is `--ttft`, typed as a time); structs inside are
//! flattened, and where two fields would have one flag the outer has it. The doc comment is the help. Exceptions stand at
//! the field, as extensions of its schema:
//!
//! | extension | for example | meaning |
//! |-----------|-------------|---------|
//! | `x-flag` | `"quantization -q dtype weights"` | the flag, its short form, other names |
//! | `x-old` | `"user"` | names of before, which still work and say so |
//! | `x-note` | `"is now the share of load"` | what is said when it is typed |
//! | `x-unit` | `"share"` | how it is typed, where the name does not end with its unit |
//! | `x-file` | `"model"` | may be typed as the path of such a file |
//! | `x-position` | 1 | may be typed without a flag, in this order |
//! | `x-none` | `"the catalogue's"` | what stands in for it when absent |
//! | `x-most` | `[2000, "points of a curve"]` | the most a server takes, and what that bounds |
//! | `x-prefix` | `"rl"` | what the flags of a struct's fields begin with |
//! | `x-inner` | `{"chips": {"x-most": ...}}` | extensions of fields further inside, by name |
//! | `x-also` | `["fsdp"]` | other words that are read for some of the words of a closed list |
//! | `x-parts` | `["prompts", "group"]` | fields of a struct that can be typed at once, with commas |
//! | `x-hyphen`, `x-whole` | true | its value may begin with a hyphen; may have commas |

use crate::Error;
use crate::figure::count;
use crate::limit::AtMost;
use rackmath_units::{
    ByteRate, Bytes, DollarRate, Dollars, DollarsPerToken, Flop, FlopRate, Fraction, HoldPrice, Params, Seconds,
    TokenRate, Tokens, UnitError, Watts, significant,
};
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde_json::{Map, Number, Value};
use std::str::FromStr;

/// One field of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Where it stands in the request, as a JSON pointer.
    pub path: String,
    /// Its flag, without hyphens before it.
    pub flag: String,
    /// Its one-letter flag.
    pub short: Option<char>,
    /// Other names.
    pub aliases: Vec<String>,
    /// Names of before.
    pub old: Vec<String>,
    /// What is said when it is typed.
    pub note: Option<String>,
    /// Its place among the words without a flag.
    pub position: Option<u64>,
    /// What kind of file it may be typed as.
    pub file: Option<String>,
    /// How it is typed and shown.
    pub unit: Unit,
    /// Whether it is a list.
    pub list: bool,
    /// Whether it, or an item of its list, may be absent.
    pub optional: bool,
    /// What it means, in a line.
    pub doc: String,
    /// What it is unless given.
    pub default: Value,
    /// What stands in for it when absent.
    pub none: Option<String>,
    /// The words it is one of, where these are known.
    pub words: Vec<String>,
    /// Other words for some of them.
    pub also: Vec<String>,
    /// The most a server takes, and what that bounds.
    pub most: Option<(f64, String)>,
    /// Whether its value may begin with a hyphen.
    pub hyphen: bool,
    /// Whether commas in its text are part of it.
    pub whole: bool,
    /// The fields of a group that are typed at once; a group without is there or not.
    pub parts: Vec<String>,
}

/// How a field is typed and shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// There or not.
    Switch,
    /// A whole number.
    Whole,
    /// Any number, such as 4096, 4k or 50%.
    Number,
    /// A number with a unit.
    Quantity(&'static Quantity),
    /// A name or a text.
    Word,
    /// A number as printed, which stands for what rounds to it, or two with `..` between them.
    Rounded,
    /// The same, but one number stands for itself.
    Exact,
    /// A time and a share, such as 30s:0.2.
    Gap,
    /// A time for the mean or for a percentile, such as 30ms or p90=1s.
    Limit,
    /// A group of fields: all as they are by default, or its parts with commas between them.
    Group,
    /// Something without a spelling of its own: JSON.
    Json,
}

/// A number with a unit.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// How the names of such fields end, or the word of `x-unit`.
    end: &'static str,
    /// What stands for it in a line of help.
    name: &'static str,
    /// A value as it is typed.
    pub example: &'static str,
    /// The number a text stands for, in the field's own unit.
    read: fn(&str) -> Result<f64, String>,
    show: fn(f64) -> String,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.end == other.end
    }
}

/// Ends of names that are units, longer ones first: what stands for them in help, an example, how they are read and shown.
#[rustfmt::skip] // a table
static QUANTITIES: &[Quantity] = &[
    quantity("_usd_per_chip_hour", "PRICE", "2.10/h", read_hourly, per_hour),
    quantity("_usd_per_mtok_hour", "PRICE", "4.50/Mtok-h", |t| money::<HoldPrice>(t, 1e-6 / 3600.0, "4.50/Mtok-h"), plain),
    quantity("_usd_per_hour", "PRICE", "2.10/h", read_hourly, per_hour),
    quantity("_usd_per_mtok", "PRICE", "0.55/Mtok", |t| money::<DollarsPerToken>(t, 1e-6, "0.55/Mtok"),
        |x| said(DollarsPerToken::checked(x * 1e-6), x)),
    quantity("_usd_per_kwh", "N", "4k", anything, plain),
    quantity("_tokens_per_s", "RATE", "4k", |t| read::<TokenRate>(t, 1.0), |x| said(TokenRate::checked(x), x)),
    quantity("_flop_per_s", "RATE", "4k", |t| read::<FlopRate>(t, 1.0), plain),
    quantity("_g_per_kwh", "N", "4k", anything, plain),
    quantity("_gb_per_s", "RATE", "64 GB/s", |t| read::<ByteRate>(t, 1e9), |x| said(ByteRate::checked(x * 1e9), x)),
    quantity("_per_s", "RATE", "4k", per_second, |x| format!("{}/s", significant(x, 3))),
    quantity("_tok_s", "RATE", "4k", |t| read::<TokenRate>(t, 1.0), |x| said(TokenRate::checked(x), x)),
    quantity("_hours", "TIME", "30s", |t| read::<Seconds>(t, 3600.0), |x| said(Seconds::checked(x * 3600.0), x)),
    quantity("_bytes", "BYTES", "80 GB", |t| read::<Bytes>(t, 1.0), |x| said(Bytes::checked(x), x)),
    quantity("_days", "TIME", "30s", |t| read::<Seconds>(t, 86_400.0), |x| said(Seconds::checked(x * 86_400.0), x)),
    quantity("_usd", "PRICE", "48.6k", |t| money::<Dollars>(t, 1.0, "48.6k"), |x| said(Dollars::checked(x), x)),
    quantity("_ms", "TIME", "30s", read_ms, show_ms),
    quantity("_s", "TIME", "30s", |t| read::<Seconds>(t, 1.0), |x| said(Seconds::checked(x), x)),
    quantity("_w", "POWER", "700 W", |t| read::<Watts>(t, 1.0), |x| said(Watts::checked(x), x)),
    quantity("dollars", "DOLLARS", "2", |t| lost(t, "2").and_then(|t| anything(t.strip_prefix('$').unwrap_or(t))
        .or_else(|_| read::<DollarsPerToken>(t, 1e-6))), |x| said(DollarsPerToken::checked(x * 1e-6), x)),
    quantity("multiple", "N", "2x", multiple, plain),
    quantity("share", "SHARE", "50%", |t| read::<Fraction>(t, 1.0), |x| said(Fraction::checked(x), x)),
    quantity("rate", "RATE", "4k", |t| read::<TokenRate>(t, 1.0), |x| said(TokenRate::checked(x), x)),
];

const fn quantity(
    end: &'static str,
    name: &'static str,
    example: &'static str,
    read: fn(&str) -> Result<f64, String>,
    show: fn(f64) -> String,
) -> Quantity {
    Quantity { end, name, example, read, show }
}

fn said<T: ToString>(made: Option<T>, x: f64) -> String {
    made.map_or_else(|| x.to_string(), |q| q.to_string())
}

/// Milliseconds.
pub(super) fn read_ms(text: &str) -> Result<f64, String> {
    read::<Seconds>(text, 1e-3)
}

/// Dollars per hour.
fn read_hourly(text: &str) -> Result<f64, String> {
    money::<DollarRate>(text, 1.0 / 3600.0, "2.10/h")
}

/// An amount of money with its unit or without; a shell takes a dollar sign and a digit for a name, so that none is asked for.
fn money<T: FromStr<Err = UnitError> + Into<f64>>(text: &str, scale: f64, example: &str) -> Result<f64, String> {
    let text = lost(text, example)?;
    let bare = text.strip_prefix('$').unwrap_or(text).trim().parse::<f64>().ok();
    bare.filter(|x| x.is_finite() && *x >= 0.0).map_or_else(|| read::<T>(text, scale), Ok)
}

/// Refuses an amount of money whose first digits a shell took for a name: of `$2.10/h` it leaves `.10/h`.
fn lost<'a>(text: &'a str, example: &str) -> Result<&'a str, String> {
    let text = text.trim();
    if text.is_empty() || text.starts_with(['.', '/', ',']) {
        return Err(format!(
            "\"{text}\" has lost the start of its number: a shell takes $2 for a name of its own; write {example}, without the sign"
        ));
    }
    Ok(text)
}

fn show_ms(x: f64) -> String {
    said(Seconds::checked(x * 1e-3), x)
}

fn per_hour(x: f64) -> String {
    said(DollarRate::checked(x / 3600.0), x)
}

fn plain(x: f64) -> String {
    if x >= 0.0 && (x.fract() == 0.0 || x >= 1e7) { count(x) } else { x.to_string() }
}

/// Lists the words of a closed list in the schema of a text, which may be read in other spellings as well.
pub(crate) fn closed<T: strum::VariantArray + Copy + Into<&'static str>>(schema: &mut Schema) {
    let mut words: Vec<Value> = T::VARIANTS.iter().map(|word| Value::from((*word).into())).collect();
    if schema.get("type").is_some_and(Value::is_array) {
        words.push(Value::Null);
    }
    schema.insert("enum".into(), Value::Array(words));
}

/// The fields of a request, in its order.
pub fn of<R: JsonSchema + Default + Serialize>() -> Vec<Field> {
    let schema = schema_for!(R).to_value();
    let default = serde_json::to_value(R::default()).unwrap_or_default();
    let mut walk = Walk { defs: schema.get("$defs").cloned().unwrap_or_default(), found: Vec::new() };
    walk.object(&schema, Some(&default), &Place::default());
    let mut fields = walk.found;
    // Maps are sorted by name; fields come in the order they are declared in.
    let declared = serde_json::to_string(&R::default()).unwrap_or_default();
    fields.sort_by_cached_key(|field| {
        let mut parts = field.path.split('/').skip(1).map(|part| format!("\"{part}\":"));
        parts.try_fold(0, |at, part| declared[at..].find(&part).map(|i| at + i + 1).ok_or(at)).unwrap_or_else(|at| at)
    });
    let depth = |f: &Field| f.path.matches('/').count();
    let outer: Vec<(String, usize)> = fields.iter().map(|f| (f.flag.clone(), depth(f))).collect();
    fields.retain(|f| outer.iter().all(|(flag, at)| *flag != f.flag || *at >= depth(f)));
    let mut taken: Vec<String> = fields.iter().map(|f| f.flag.clone()).collect();
    let mut letters = Vec::new();
    for field in &mut fields {
        for names in [&mut field.aliases, &mut field.old] {
            names.retain(|name| !taken.contains(name));
            taken.extend(names.iter().cloned());
        }
        field.short = field.short.filter(|c| !letters.contains(c));
        letters.extend(field.short);
    }
    fields
}

/// Where in a request a schema stands.
#[derive(Clone, Default)]
struct Place {
    path: String,
    prefix: String,
    inner: Vec<Map<String, Value>>,
}

struct Walk {
    defs: Value,
    found: Vec<Field>,
}

impl Walk {
    /// A schema behind its reference, or the one of its alternatives that is not null.
    fn resolved<'a>(&'a self, schema: &'a Value) -> (&'a Value, bool) {
        if let Some(all) = schema.get("anyOf").and_then(Value::as_array) {
            let some = all.iter().find(|s| s.get("type").and_then(Value::as_str) != Some("null"));
            return (some.map_or(schema, |s| self.resolved(s).0), true);
        }
        match schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix("#/$defs/")) {
            Some(name) => (self.defs.get(name).unwrap_or(schema), false),
            None => (schema, false),
        }
    }

    fn object(&mut self, schema: &Value, default: Option<&Value>, at: &Place) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        for (name, property) in properties.clone() {
            let mut property = property;
            for over in at.inner.iter().rev().filter_map(|o| o.get(&name)?.as_object()) {
                if let Some(property) = property.as_object_mut() {
                    property.extend(over.clone());
                }
            }
            let default = match default {
                Some(of) => of.get(&name).cloned().unwrap_or_default(),
                None => property.get("default").cloned().unwrap_or_default(),
            };
            self.field(&name, &property, &default, at);
        }
    }

    fn field(&mut self, name: &str, property: &Value, default: &Value, at: &Place) {
        let text = |key: &str| property.get(key).and_then(Value::as_str);
        if property.get("x-flag") == Some(&Value::Bool(false)) {
            return;
        }
        let (schema, _) = self.resolved(property);
        let leaf = text("x-unit").is_some() || text("x-file").is_some();
        if schema.get("properties").is_some() && !leaf {
            let mut inner = at.inner.clone();
            inner.extend(property.get("x-inner").and_then(Value::as_object).cloned());
            let prefix = text("x-prefix").map_or_else(|| at.prefix.clone(), |p| format!("{p}-"));
            let schema = schema.clone();
            if text("x-flag").is_some() {
                self.leaf(name, property, default, at, Some(Unit::Group));
            }
            let default = (!default.is_null()).then_some(default);
            return self.object(&schema, default, &Place { path: format!("{}/{name}", at.path), prefix, inner });
        }
        self.leaf(name, property, default, at, None);
    }

    fn leaf(&mut self, name: &str, property: &Value, default: &Value, at: &Place, group: Option<Unit>) {
        let text = |key: &str| property.get(key).and_then(Value::as_str);
        let (schema, nullable) = self.resolved(property);
        let mut kinds = kinds(schema);
        let optional = nullable || kinds.contains(&"null");
        kinds.retain(|k| *k != "null");
        let list = kinds.contains(&"array");
        let (item, sparse) = match schema.get("items") {
            Some(items) if list => self.resolved(items),
            _ => (schema, false),
        };
        let sparse = sparse || (list && self::kinds(item).contains(&"null"));
        let (stem, unit) = unit(name, item, text("x-unit"));
        let unit = group.unwrap_or(unit);
        let texts = |key: &str| {
            let all = property.get(key).and_then(Value::as_array).into_iter().flatten();
            all.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let own = text("x-flag").unwrap_or_default();
        let mut names: Vec<&str> = own.split_whitespace().filter(|w| !w.starts_with('-')).collect();
        let usual = stem.replace('_', "-");
        let flag = if names.is_empty() { &usual } else { names.remove(0) };
        let flag = format!("{}{flag}", at.prefix);
        if !at.prefix.is_empty() {
            names.clear();
        }
        let no = unit == Unit::Switch && default == &Value::Bool(true) && own.is_empty();
        let most = property.get("x-most").and_then(Value::as_array);
        let most = most.and_then(|m| Some((m.first()?.as_f64()?, m.get(1)?.as_str()?.to_owned())));
        self.found.push(Field {
            path: format!("{}/{name}", at.path),
            flag: if no { format!("no-{flag}") } else { flag },
            short: own.split_whitespace().find_map(|w| w.strip_prefix('-')?.chars().next()),
            aliases: names.into_iter().map(str::to_owned).collect(),
            old: text("x-old").unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
            note: text("x-note").map(str::to_owned),
            position: property.get("x-position").and_then(Value::as_u64),
            file: text("x-file").map(str::to_owned),
            unit,
            list,
            optional: optional || sparse,
            doc: text("description").unwrap_or_default().replace('\n', " ").replace('`', ""),
            default: default.clone(),
            none: text("x-none").map(str::to_owned),
            words: words(item),
            also: texts("x-also"),
            most,
            hyphen: property.get("x-hyphen") == Some(&Value::Bool(true)),
            whole: property.get("x-whole") == Some(&Value::Bool(true)),
            parts: texts("x-parts"),
        });
    }
}

fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn words(schema: &Value) -> Vec<String> {
    let listed = |s: &Value| match s.get("enum") {
        Some(Value::Array(all)) => all.clone(),
        _ => s.get("const").cloned().into_iter().collect(),
    };
    let all = match schema.get("oneOf") {
        Some(Value::Array(of)) => of.iter().flat_map(listed).collect(),
        _ => listed(schema),
    };
    all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A name without its unit, and the unit.
fn unit<'a>(name: &'a str, schema: &Value, given: Option<&str>) -> (&'a str, Unit) {
    let kinds = kinds(schema);
    let has = |kind: &str| kinds.contains(&kind);
    let named = QUANTITIES.iter().filter(|q| q.end.starts_with('_'));
    let found = named.into_iter().find_map(|q| Some((name.strip_suffix(q.end)?, Unit::Quantity(q))));
    let (stem, suffix) = found.map_or((name, None), |(stem, unit)| (stem, Some(unit)));
    let unit = match given {
        Some("number") => Unit::Number,
        Some("rounded") => Unit::Rounded,
        Some("exact") => Unit::Exact,
        Some("gap") => Unit::Gap,
        Some("limit") => Unit::Limit,
        Some(word) => QUANTITIES.iter().find(|q| q.end == word).map_or(Unit::Json, Unit::Quantity),
        None if has("boolean") => Unit::Switch,
        None if has("integer") => Unit::Whole,
        None if has("number") => suffix.unwrap_or(Unit::Number),
        None if has("string") || !words(schema).is_empty() => Unit::Word,
        None => Unit::Json,
    };
    (stem, unit)
}

impl Field {
    /// The value a text stands for, or what would do.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        if self.list && self.whole {
            return Ok(Value::Array(vec![Value::String(text.to_owned())]));
        }
        if self.list {
            let words = text.split(',').map(str::trim);
            return match text {
                "none" | "" => Ok(Value::Array(Vec::new())),
                _ => words.map(|word| self.item(word)).collect::<Result<_, _>>().map(Value::Array),
            };
        }
        // A list of words may have one of its own for nothing.
        let absent = self.optional && text == "none" && !self.words.iter().any(|w| w == "none");
        if absent { Ok(Value::Null) } else { self.item(text).map_err(|why| not_negative(text, why)) }
    }

    fn item(&self, text: &str) -> Result<Value, String> {
        if self.list && self.optional && matches!(text, "-" | "") {
            return Ok(Value::Null);
        }
        let lower = text.to_ascii_lowercase();
        let known = |text: &str| self.words.is_empty() || self.words.iter().chain(&self.also).any(|w| w == text);
        let text = if known(text) { text } else { &lower };
        if !known(text) {
            let near = crate::desk::check::near(text, self.words.iter().map(String::as_str));
            return Err(format!("expected {}{near}", self.words.join(", ")));
        }
        match self.unit {
            Unit::Switch => match text {
                "true" | "yes" | "on" => Ok(Value::Bool(true)),
                "false" | "no" | "off" => Ok(Value::Bool(false)),
                _ => Err("expected true or false".into()),
            },
            Unit::Word => Ok(Value::String(text.to_owned())),
            Unit::Json => serde_json::from_str(text).or_else(|_| Ok(Value::String(text.to_owned()))),
            Unit::Whole => match anything(text)? {
                x if x.fract() == 0.0 && (0.0..9.0e15).contains(&x) => Ok(Value::Number(Number::from(x as u64))),
                _ => Err("expected a whole number".into()),
            },
            Unit::Rounded | Unit::Exact => self.interval(text),
            Unit::Group if self.parts.is_empty() => match text {
                "true" | "yes" | "on" => Ok(Value::Object(Map::new())),
                _ => Err("expected true".into()),
            },
            Unit::Group => {
                let values: Vec<&str> = text.split(',').map(str::trim).collect();
                let named = self.parts.iter().zip(&values).map(|(n, v)| Ok((n.clone(), number(anything(v)?)?)));
                match named.collect::<Result<Map<_, _>, String>>() {
                    Ok(all) if values.len() == self.parts.len() => Ok(Value::Object(all)),
                    _ => Err(format!("expected {}", self.parts.join(", "))),
                }
            }
            Unit::Gap => {
                let (time, share) = text.split_once(':').ok_or("expected a time and a share, such as 30s:0.2")?;
                let (time, share) = (read::<Seconds>(time, 1.0)?, read::<Fraction>(share, 1.0)?);
                Ok(Value::Array(vec![number(time)?, number(share)?]))
            }
            Unit::Quantity(quantity) => number((quantity.read)(text)?),
            Unit::Limit => serde_json::to_value(text.parse::<AtMost>()?).map_err(|e| e.to_string()),
            Unit::Number => number(anything(text)?),
        }
    }

    /// Two ends: what is measured is rounded, what is counted or agreed is meant as written.
    fn interval(&self, text: &str) -> Result<Value, String> {
        let peak = self.path.ends_with("flop_per_s");
        let ends = |t: &str| if peak { read::<FlopRate>(t, 1.0).ok() } else { anything(t).ok() };
        let (low, high) = rackmath_spec::rounded(text, ends)
            .ok_or("expected a positive number such as 14.8T, or a range such as 10T..12T")?;
        let exact = ends(text).filter(|_| self.unit == Unit::Exact);
        let (low, high) = exact.map_or((low, high), |x| (x, x));
        Ok(serde_json::json!({ "low": low, "high": high }))
    }

    /// A value a program gave: a text as it is typed; a number as well unless it is `raw`, in the field's own unit.
    fn argument(&self, value: &Value, raw: bool) -> Result<Value, String> {
        // A flag of what holds anyway says that it does not.
        let negated = self.default == Value::Bool(true) && !raw;
        match value {
            Value::Bool(yes) if self.unit == Unit::Switch => Ok(Value::Bool(*yes != negated)),
            Value::Bool(true) if self.unit == Unit::Group => Ok(Value::Object(Map::new())),
            Value::Bool(false) if self.unit == Unit::Group => Ok(Value::Null),
            Value::String(text) => self.parse(text),
            Value::Number(_) if self.list => self.argument(&Value::Array(vec![value.clone()]), raw),
            Value::Number(_) if raw => Ok(value.clone()),
            Value::Number(x) if self.unit == Unit::Whole => self.item(&x.to_string()),
            Value::Number(_) if matches!(self.unit, Unit::Number | Unit::Json) => Ok(value.clone()),
            Value::Number(x) => self.parse(&x.to_string()),
            Value::Array(items) if self.list => {
                let item = |item: &Value| match item {
                    Value::String(text) if self.whole => Ok(Value::String(text.clone())),
                    Value::String(text) => self.item(text.trim()),
                    Value::Number(x) if !raw && !matches!(self.unit, Unit::Number | Unit::Json) => {
                        self.item(&x.to_string())
                    }
                    other => Ok(other.clone()),
                };
                items.iter().map(item).collect::<Result<_, _>>().map(Value::Array)
            }
            Value::Object(_) if matches!(self.unit, Unit::Group | Unit::Json | Unit::Rounded | Unit::Exact) => {
                Ok(value.clone())
            }
            Value::Array(_) if matches!(self.unit, Unit::Json | Unit::Gap) => Ok(value.clone()),
            _ => Err(format!("{}, as it is typed", if self.list { "a list" } else { self.value_name() })),
        }
    }

    /// A value as it would be typed, or as words.
    pub fn show(&self, value: &Value) -> String {
        let none = || self.none.clone().unwrap_or_else(|| "none".into());
        match value {
            Value::Null => none(),
            Value::Array(all) if all.is_empty() => none(),
            Value::Array(all) => all.iter().map(|v| self.show(v)).collect::<Vec<_>>().join(", "),
            Value::String(text) => text.clone(),
            Value::Number(x) => match self.unit {
                Unit::Quantity(quantity) => (quantity.show)(x.as_f64().unwrap_or_default()),
                Unit::Limit => show_ms(x.as_f64().unwrap_or_default()),
                _ => plain(x.as_f64().unwrap_or_default()),
            },
            other => other.to_string(),
        }
    }

    /// Its flag as the name of an argument in a program.
    pub fn keyword(&self) -> String {
        self.flag.replace('-', "_")
    }

    /// What stands for its value in a line of help.
    pub fn value_name(&self) -> &'static str {
        match self.unit {
            Unit::Quantity(quantity) => quantity.name,
            Unit::Gap => "TIME:SHARE",
            Unit::Limit => "TIME",
            Unit::Word if self.file.as_deref() == Some("model") => "MODEL",
            Unit::Word if self.file.as_deref() == Some("machine") => "MACHINE",
            Unit::Word if self.file.is_some() => "FILE",
            Unit::Word if self.list => "NAMES",
            Unit::Word => "NAME",
            Unit::Json if self.file.is_some() => "FILE",
            _ => "N",
        }
    }
}

/// A quantity in units of `scale`. A number that went through another unit comes back as typed: through dollars a second
/// and back, 25 may come out a hair below.
fn read<T: FromStr<Err = UnitError> + Into<f64>>(text: &str, scale: f64) -> Result<f64, String> {
    let value = text.trim().parse::<T>().map(Into::into).map_err(|e| e.to_string())?;
    if scale == 1.0 { Ok(value) } else { Ok(format!("{:.12e}", value / scale).parse().unwrap_or(value / scale)) }
}

/// A number however people write it: 4096, 4k, 128Ki, 70B, 1e15, 50%.
fn anything(text: &str) -> Result<f64, String> {
    let percent = || Some(text.trim().strip_suffix('%')?.trim().parse::<f64>().ok()? / 100.0);
    let plain = text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    let found = plain.or_else(percent).or_else(|| text.parse().ok().map(Tokens::get));
    let found = found.or_else(|| text.parse().ok().map(Params::get)).or_else(|| text.parse().ok().map(Flop::get));
    found.ok_or_else(|| format!("\"{text}\" is not a number; write it like 4096, 4k, 1e15 or 50%"))
}

/// Why a text was refused, first of all where it is a negative number.
fn not_negative(text: &str, why: String) -> String {
    let negative =
        text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'));
    if negative { format!("it cannot be negative; {why}") } else { why }
}

/// So many a second, also as 8/s, 480/min, 5k/h or 1M/day.
fn per_second(text: &str) -> Result<f64, String> {
    const DAY: f64 = 86_400.0;
    let units =
        [("/s", 1.0), ("/sec", 1.0), ("/min", 60.0), ("/h", 3600.0), ("/hour", 3600.0), ("/d", DAY), ("/day", DAY)];
    let said = units.iter().find_map(|(unit, seconds)| Some((text.trim().strip_suffix(unit)?, *seconds)));
    let wrong = |_| format!("\"{text}\" is no rate; write it like 8, 8/s, 480/min, 5k/h or 1M/day");
    match said {
        Some((n, seconds)) => anything(n).map(|n| n / seconds).map_err(wrong),
        None => anything(text).map_err(wrong),
    }
}

/// A multiple, also as 2x.
fn multiple(text: &str) -> Result<f64, String> {
    let text = text.trim();
    anything(text.strip_suffix(['x', 'X']).unwrap_or(text))
}

fn number(x: f64) -> Result<Value, String> {
    Number::from_f64(x).map(Value::Number).ok_or_else(|| "expected a finite number".into())
}

/// The field of a name: its flag, another name, its path with points, or its name within the request.
pub fn named<'a>(fields: &'a [Field], name: &str) -> Option<&'a Field> {
    let is = |own: &String| own == name;
    let flagged = |f: &&Field| is(&f.flag) || f.aliases.iter().chain(&f.old).any(is);
    let pointer = format!("/{}", name.replace('.', "/"));
    let dashed = name.replace('_', "-");
    let last = |f: &&Field| f.path.rsplit('/').next() == Some(name) || f.flag == dashed;
    let by_path = || fields.iter().find(|f| f.path == pointer).or_else(|| fields.iter().find(last));
    fields.iter().find(flagged).or_else(by_path)
}

/// The request that texts by flag stand for; a switch is what its field is, true or false.
pub fn typed(fields: &[Field], texts: &Map<String, Value>) -> Result<Map<String, Value>, Error> {
    let mut request = Map::new();
    for (flag, text) in texts {
        let Some(field) = fields.iter().find(|f| f.flag == *flag) else {
            return Err(Error::unknown("setting", flag, fields.iter().map(|f| f.flag.as_str())));
        };
        let Value::String(text) = text else { return Err(Error::value(flag.clone(), text, "a text, as it is typed")) };
        let name = field.path.trim_start_matches('/').replace('/', ".");
        let value = field.parse(text).map_err(|expected| Error::value(name, format!("\"{text}\""), expected))?;
        put(&mut request, &field.path, value);
    }
    Ok(request)
}

/// The request that arguments of a program stand for: by flag, with `_` for `-`, a text or a number as it is typed; by a field's own
/// name its value in JSON; a group of fields, and `files`, as an object. What is null is not given.
pub fn keywords(fields: &[Field], arguments: &Map<String, Value>) -> Result<Map<String, Value>, Error> {
    let mut request = Map::new();
    let group =
        |name: &str| fields.iter().any(|f| f.path.strip_prefix('/').is_some_and(|p| p.split('/').next() == Some(name)));
    // Groups first: single fields are put into them.
    for (name, value) in arguments.iter().filter(|(_, value)| value.is_object()) {
        if name == "files" || group(name) {
            request.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in arguments {
        if value.is_null() || request.get(name) == Some(value) {
            continue;
        }
        let dashed = name.trim_end_matches('_').replace('_', "-");
        let flagged = |f: &&Field| f.flag == dashed || f.aliases.iter().chain(&f.old).any(|other| *other == dashed);
        let own = |f: &&Field| f.path.rsplit('/').next() == Some(name);
        // By the name a field has in JSON, where that is not its flag as well, a number is in its own unit.
        let (field, raw) = match (fields.iter().find(flagged), fields.iter().find(own)) {
            (Some(field), _) => (field, false),
            (None, Some(field)) => (field, true),
            (None, None) => {
                let known: Vec<String> = fields.iter().map(Field::keyword).collect();
                return Err(Error::unknown("argument", name, known.iter().map(String::as_str)).at(name));
            }
        };
        let path = field.path.trim_start_matches('/').replace('/', ".");
        let wrong = |expected: String| Error::value(path.clone(), value, expected);
        put(&mut request, &field.path, field.argument(value, raw).map_err(wrong)?);
    }
    Ok(request)
}

/// Puts a value at a pointer into a request, making what lies between; nothing above may be there already as null.
pub fn put(request: &mut Map<String, Value>, path: &str, value: Value) {
    let mut parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let Some(last) = parts.pop() else { return };
    let mut at = request;
    for part in parts {
        let next = at.entry(part).or_insert(Value::Null);
        if !next.is_object() {
            *next = Value::Object(Map::new());
        }
        let Value::Object(inside) = next else { return };
        at = inside;
    }
    at.insert(last.to_owned(), value);
}
