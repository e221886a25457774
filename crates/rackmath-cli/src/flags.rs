//! The fields of a request as flags, and what was typed as a request.

use crate::inputs::Inputs;
use crate::output::tell;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, error};
use rackmath::Error;
use rackmath::field::{Field, Unit, put};
use serde_json::{Map, Value};
use std::ffi::OsStr;

pub fn args(fields: &[Field]) -> impl Iterator<Item = Arg> {
    fields.iter().map(|field| arg(field, fields)).chain(fields.iter().filter_map(anyway))
}

/// `--x` beside `--no-x`: says what holds anyway.
fn anyway(field: &Field) -> Option<Arg> {
    let name = field.flag.strip_prefix("no-").filter(|_| field.unit == Unit::Switch)?.to_owned();
    let arg = Arg::new(format!("+{name}")).long(name).hide(true);
    Some(arg.action(ArgAction::SetTrue).conflicts_with(field.path.clone()))
}

/// A field as a flag, or as a word by its place.
fn arg(field: &Field, fields: &[Field]) -> Arg {
    let switch = matches!(field.unit, Unit::Switch) || (field.unit == Unit::Group && field.parts.is_empty());
    let arg = Arg::new(field.path.clone()).help(help(field)).value_name(field.value_name());
    let arg = if let Some(place) = field.position {
        arg.index(fields.iter().filter(|f| f.position.is_some_and(|p| p <= place)).count())
    } else {
        let arg = arg.long(field.flag.clone()).visible_aliases(field.aliases.clone()).aliases(field.old.clone());
        field.short.map_or(arg.clone(), |letter| arg.short(letter))
    };
    if switch {
        return arg.action(ArgAction::SetTrue);
    }
    // A negative number is read as one, and refused by its field, not as a flag that is not known.
    let number = matches!(field.unit, Unit::Whole | Unit::Number | Unit::Quantity(_) | Unit::Limit | Unit::Gap);
    let arg = arg.allow_hyphen_values(field.hyphen).allow_negative_numbers(number);
    let arg = if field.list { arg.action(ArgAction::Append) } else { arg };
    let arg = if field.list && field.position.is_some() { arg.num_args(1..) } else { arg };
    if field.file.is_some() { arg } else { arg.value_parser(Reader(field.clone())) }
}

/// What it means, and what it is unless given.
fn help(field: &Field) -> String {
    let doc = field.doc.trim_end_matches('.');
    // A switch that turns something off says so.
    let off = doc.strip_prefix("Whether to ").filter(|_| field.unit == Unit::Switch && field.flag.starts_with("no-"));
    let doc = &*off.map_or_else(|| doc.to_owned(), |rest| format!("Do not {rest}"));
    // Of a number that was computed, as many digits as anybody reads.
    let shown = field.show(&field.default);
    let shown = match shown.parse::<f64>() {
        Ok(x) if shown.len() > 10 && x.fract() != 0.0 => format!("{x:.3}"),
        _ => shown,
    };
    let plain = matches!(field.default, Value::Bool(_) | Value::Object(_));
    let empty = field.default.is_null() || field.default.as_array().is_some_and(Vec::is_empty);
    match &field.none {
        Some(none) if empty => format!("{doc} [default: {none}]"),
        _ if plain || empty || field.default == "" => doc.to_owned(),
        _ => format!("{doc} [default: {shown}]"),
    }
}

/// Reads a value as its field does, and lists the words it is one of.
#[derive(Clone)]
struct Reader(Field);

impl TypedValueParser for Reader {
    type Value = Value;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Value, error::Error> {
        let field = self.0.clone();
        TypedValueParser::parse_ref(&move |text: &str| field.parse(text), command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = self.0.words.iter().map(PossibleValue::new);
        (!self.0.words.is_empty()).then(|| Box::new(words) as Box<dyn Iterator<Item = PossibleValue>>)
    }
}

/// Words of before still work, and say what they are called now.
pub fn remark(fields: &[Field], typed: &[String]) {
    let given =
        |name: &str| typed.iter().any(|word| word.strip_prefix("--").and_then(|w| w.split('=').next()) == Some(name));
    for field in fields {
        for old in field.old.iter().filter(|old| given(old)) {
            tell(format_args!("note: --{old} is now --{}", field.flag));
        }
        if let Some(note) = field.note.as_ref().filter(|_| given(&field.flag)) {
            tell(format_args!("note: --{} {note}", field.flag));
        }
    }
}

/// The request that was typed: only what was given, with the files it names read.
pub fn request(fields: &[Field], given: &ArgMatches, inputs: &mut Inputs) -> Result<Map<String, Value>, Error> {
    let mut request = Map::new();
    let typed = fields.iter().filter(|f| given.value_source(&f.path) == Some(ValueSource::CommandLine));
    let (files, plain): (Vec<&Field>, Vec<&Field>) = typed.partition(|f| f.file.is_some());
    for field in plain {
        let value = match field.unit {
            // A switch turns its field into what it is not.
            Unit::Switch => Value::Bool(field.default != Value::Bool(true)),
            Unit::Group if field.parts.is_empty() => Value::Object(Map::new()),
            _ if field.list => {
                let all = given.get_many::<Value>(&field.path).into_iter().flatten();
                Value::Array(all.filter_map(Value::as_array).flatten().cloned().collect())
            }
            _ => given.get_one::<Value>(&field.path).cloned().unwrap_or_default(),
        };
        put(&mut request, &field.path, value);
    }
    for field in files {
        let words: Vec<&str> =
            given.get_many::<String>(&field.path).into_iter().flatten().map(String::as_str).collect();
        inputs.bring(field, &words, &mut request)?;
    }
    Ok(request)
}
