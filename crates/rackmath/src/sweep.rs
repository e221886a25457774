//! A question over axes of its fields: every combination of their values is a point, and every point a row.
//!
//! An axis is written `name=values`: a field by its flag or its path, then its values as they are typed:
//!
//! | values | points |
//! |--------|--------|
//! | `1,2,4,8` | as listed |
//! | `1..512` | every whole number, both ends included |
//! | `10ms..100ms+10ms` | by steps |
//! | `1..512*2` | by factors |
//!
//! Points are numbered with the last axis running fastest. A column is a number, a word or a yes of the answer, named by its
//! path; lists are left out. A point that is refused is a row with its reason under `error`.

use crate::Error;
use crate::ask::{Question, SCHEMA, Terms, brought};
use crate::desk::check::refuse_if;
use crate::field::{Field, put};
use crate::table::{Block, Kind, Rows, part};
use rackmath_spec::{Catalog, Kind as Folder};
use rackmath_theory::stats::Fnv;
use rackmath_units::Effort;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::ops::Range;
use strum::IntoEnumIterator as _;

/// Points looked at together.
const STRIDE: u64 = 32;
/// Most values of an axis, and most points.
const MOST_VALUES: usize = 10_000_000;
const MOST_POINTS: u64 = 1_000_000_000_000;
/// What holds why a point was refused.
const ERROR: &str = "error";

/// What is swept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The question, by its name.
    pub question: String,
    /// Its request, of which the axes change fields.
    pub request: Map<String, Value>,
    /// The axes, as `name=values`.
    pub over: Vec<String>,
    /// Columns of the answer, by their path or its beginning; `all` for every one; those that have a value at the first, the middle
    /// or the last point unless given.
    pub columns: Vec<String>,
}

/// An axis.
struct Axis {
    field: Field,
    values: Vec<Value>,
}

/// A column of the answer and where it stands there.
struct Found {
    path: Vec<String>,
    kind: Kind,
}

/// A sweep ready to be worked out.
pub struct Sweep<'a> {
    question: Question,
    catalog: Cow<'a, Catalog>,
    base: Map<String, Value>,
    axes: Vec<Axis>,
    found: Vec<Found>,
    columns: Vec<(String, Kind)>,
    range: Range<u64>,
    whole: u64,
    terms: Terms,
    fingerprint: String,
}

impl<'a> Sweep<'a> {
    /// Prepares shard i of n, counted from 1.
    pub fn new(catalog: &'a Catalog, request: &Request, shard: (u64, u64), terms: &Terms) -> Result<Self, Error> {
        let question = Question::find(&request.question)?;
        let mut base = request.request.clone();
        let catalog = brought(catalog, &mut base, terms)?;
        let fields = question.fields();
        refuse_if(request.over.is_empty(), "over", "none", "an axis such as concurrency=1..512")?;
        let mut axes: Vec<Axis> = Vec::new();
        for text in &request.over {
            let axis = axis(&fields, text)?;
            let same = axes.iter().any(|other| other.field.path == axis.field.path);
            refuse_if(same, "over", format!("{} more than once", axis.field.flag), "every axis once")?;
            axes.push(axis);
        }
        // Rows have no list, so that the menu of changes would be worked out for nothing.
        if question == Question::Estimate {
            base.entry("changes").or_insert(Value::Bool(false));
        }
        question.filled(base.clone())?;
        let points = axes.iter().try_fold(1_u64, |n, axis| n.checked_mul(axis.values.len() as u64));
        let whole = points.filter(|n| *n <= MOST_POINTS);
        let whole = whole.ok_or_else(|| Error::value("over", "too many points", format!("at most {MOST_POINTS}")))?;
        let fingerprint = fingerprint(&catalog, request, &base);
        let mut sweep = Self {
            question,
            base,
            axes,
            found: leaves(question),
            columns: Vec::new(),
            range: part(whole, shard)?,
            whole,
            // Points are worked out beside each other, each on its own thread.
            terms: Terms { effort: Effort { threads: 1, ..terms.effort.clone() }, ..terms.clone() },
            fingerprint,
            catalog,
        };
        sweep.choose(&request.columns)?;
        Ok(sweep)
    }

    /// Points of the whole sweep.
    pub fn points(&self) -> u64 {
        self.whole
    }

    /// Keeps the columns that are wanted.
    fn choose(&mut self, wanted: &[String]) -> Result<(), Error> {
        if wanted.is_empty() {
            let probes: Vec<Option<Value>> = [0, self.whole / 2, self.whole - 1].map(|at| self.value(at).ok()).into();
            let first = |path: &[String]| path.first().is_some_and(|name| name == "problem");
            let there = |path: &[String]| probes.iter().flatten().any(|v| at(v, path).is_some_and(|v| !v.is_null()));
            self.found.retain(|found| first(&found.path) || there(&found.path));
        } else if wanted != ["all"] {
            let names: Vec<String> = self.found.iter().map(|found| found.path.join(".")).collect();
            let of = |name: &str, wanted: &str| {
                name.strip_prefix(wanted).is_some_and(|r| r.is_empty() || r.starts_with('.'))
            };
            let last = |name: &str, wanted: &str| name.split('.').any(|part| part == wanted);
            if let Some(none) = wanted.iter().find(|w| !names.iter().any(|name| of(name, w) || last(name, w))) {
                return Err(Error::unknown("column", none, names.iter().map(String::as_str)).at("columns"));
            }
            self.found.retain(|found| {
                let name = found.path.join(".");
                // A whole path names its own; a single word names whatever is called so.
                wanted.iter().any(|w| of(&name, w) || (!names.iter().any(|n| of(n, w)) && last(&name, w)))
            });
        }
        let kind = |axis: &Axis| match axis.values.first() {
            _ if axis.values.iter().all(Value::is_u64) => Kind::Count,
            _ if axis.values.iter().all(Value::is_number) => Kind::Amount,
            Some(Value::Bool(_)) => Kind::Flag,
            _ => Kind::Text,
        };
        let name = |axis: &Axis| axis.field.path.rsplit('/').next().unwrap_or_default().to_owned();
        self.columns = self.axes.iter().map(|axis| (name(axis), kind(axis))).collect();
        for found in &self.found {
            let name = found.path.join(".");
            // What is asked for may be said again in the answer.
            let taken = self.columns.iter().any(|(other, _)| *other == name);
            self.columns.push((if taken { format!("answer.{name}") } else { name }, found.kind));
        }
        self.columns.push((ERROR.into(), Kind::Text));
        Ok(())
    }

    /// The values of the axes at a point.
    fn coordinates(&self, mut point: u64) -> Vec<&Value> {
        let mut all: Vec<&Value> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            let n = axis.values.len() as u64;
            all.push(&axis.values[(point % n) as usize]);
            point /= n;
        }
        all.reverse();
        all
    }

    fn value(&self, point: u64) -> Result<Value, Error> {
        let mut request = self.base.clone();
        for (axis, value) in self.axes.iter().zip(self.coordinates(point)) {
            put(&mut request, &axis.field.path, value.clone());
        }
        let reply = self.question.answer(&self.catalog, request, &self.terms)?;
        serde_json::to_value(reply).map_err(|e| Error::said(e.to_string()))
    }
}

impl Rows for Sweep<'_> {
    fn columns(&self) -> &[(String, Kind)] {
        &self.columns
    }

    fn words(&self) -> &[String] {
        &[]
    }

    fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    fn stride(&self) -> u64 {
        // Few points are worth sharing one by one: a plan takes seconds, a step microseconds.
        (self.looked_at() / 256).clamp(1, STRIDE)
    }

    fn effort(&self) -> &Effort {
        &self.terms.effort
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn whole(&self) -> u64 {
        self.whole
    }

    fn block(&self, range: Range<u64>) -> Option<Block> {
        let mut block = Block::empty(range.clone(), self.columns.iter().map(|(_, kind)| *kind));
        for point in range {
            let answered = self.value(point);
            if answered.as_ref().is_err_and(Error::is_cancelled) {
                return None;
            }
            let (answer, error) = match answered {
                Ok(answer) => (answer, None),
                Err(error) => (Value::Null, Some(Value::String(error.to_string()))),
            };
            let cells = self.coordinates(point).into_iter().map(Some);
            let cells = cells.chain(self.found.iter().map(|found| at(&answer, &found.path))).chain([error.as_ref()]);
            for (column, cell) in block.columns.iter_mut().zip(cells) {
                column.push(cell);
            }
            block.rows += 1;
        }
        Some(block)
    }
}

fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// Numbers, words and switches of an answer, from its schema.
fn leaves(question: Question) -> Vec<Found> {
    let schema = question.schema().answer.to_value();
    let mut found = Vec::new();
    walk(&schema, &schema, &mut Vec::new(), &mut found);
    found
}

fn walk(schema: &Value, root: &Value, path: &mut Vec<String>, found: &mut Vec<Found>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        // What was asked, and pictures, are no figures of a row.
        let aside = path.is_empty() && matches!(name.as_str(), "request" | "schema");
        if aside || path.len() > 5 {
            continue;
        }
        let (one, remark) = resolved(property, root);
        let has = |kind: &str| match one.get("type") {
            Some(Value::String(own)) => own == kind,
            Some(Value::Array(any)) => any.iter().any(|own| own == kind),
            _ => false,
        };
        path.push(name.clone());
        let kind = match () {
            () if remark || one.get("enum").is_some() || one.get("const").is_some() => Some(Kind::Text),
            () if has("array") => None,
            () if has("number") => Some(Kind::Amount),
            () if has("integer") => Some(Kind::Count),
            () if has("boolean") => Some(Kind::Flag),
            () if has("string") || one.get("oneOf").is_some() => Some(Kind::Text),
            () => None,
        };
        let figure = one.get("properties").is_some_and(|p| p.get("series").is_some() && p.get("title").is_some());
        match kind {
            Some(kind) => found.push(Found { path: path.clone(), kind }),
            None if !figure => walk(one, root, path, found),
            None => {}
        }
        path.pop();
    }
}

/// What a property is once references and "or nothing" are seen through, and whether it is a sentence.
fn resolved<'v>(mut schema: &'v Value, root: &'v Value) -> (&'v Value, bool) {
    for _ in 0..8 {
        if let Some(Value::Array(any)) = schema.get("anyOf") {
            let remark = |s: &&Value| s.get("properties").is_some_and(|p| p.get("says").is_some());
            let real: Vec<&Value> = any.iter().filter(|s| s.get("type").is_none_or(|t| t != "null")).collect();
            match real.as_slice() {
                [one] => schema = one,
                many => return (schema, many.iter().any(remark)),
            }
        } else if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
            let Some(target) = to.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) else { break };
            schema = target;
        } else {
            break;
        }
    }
    (schema, false)
}

/// An axis from its text.
fn axis(fields: &[Field], text: &str) -> Result<Axis, Error> {
    let expected = "NAME=VALUES such as concurrency=1..512, tp=1,2,4,8 or isl=1k..64k*2";
    let (name, values) = text.split_once('=').ok_or_else(|| Error::value("over", format!("\"{text}\""), expected))?;
    let name = name.trim().trim_start_matches("--");
    let field = crate::field::named(fields, name).ok_or_else(|| {
        let known = fields.iter().flat_map(|f| f.aliases.iter().chain([&f.flag]));
        Error::unknown("field", name, known.map(String::as_str)).at("over")
    })?;
    // Readers of fields say "expected" themselves, or begin with what was wrong.
    let wrong = |given: &str, expected: String| {
        Error::value("over", format!("{name}={given}"), expected.trim_start_matches("expected "))
    };
    let mut all = Vec::new();
    // A list of a field has one item for each point.
    for one in values.split(',').map(str::trim) {
        match one.split_once("..") {
            Some((from, to)) if field.words.is_empty() => {
                range(field, from, to, &mut all).map_err(|e| wrong(one, e))?;
            }
            _ => all.push(field.parse(one).map_err(|expected| wrong(one, expected))?),
        }
        refuse_if(
            all.len() > MOST_VALUES,
            "over",
            format!("{name} of {} values", all.len()),
            format!("at most {MOST_VALUES}"),
        )?;
    }
    Ok(Axis { field: field.clone(), values: all })
}

/// The values from one end to the other: by one, by `+step`, or by `*factor`.
fn range(field: &Field, from: &str, to: &str, all: &mut Vec<Value>) -> Result<(), String> {
    let number = |text: &str| {
        let value = field.parse(text)?;
        let value = if let Value::Array(list) = &value { list.first().cloned().unwrap_or_default() } else { value };
        value.as_f64().ok_or_else(|| "a list of values: this field has no numbers".to_owned())
    };
    let cut = to.find(['+', '*']).filter(|at| *at > 0);
    // The plus of 1e+9 is no step.
    let cut = cut.filter(|at| !to[..*at].ends_with(['e', 'E']));
    let (end, how) = cut.map_or((to, None), |at| (&to[..at], Some((to.as_bytes()[at], &to[at + 1..]))));
    let (a, b) = (number(from)?, number(end)?);
    if a > b {
        return Err(format!("the smaller end first: {end}..{from}"));
    }
    let mut values = Vec::new();
    // Ends are meant to be reached in spite of rounding.
    let last = b + b.abs() * 1e-12;
    match how {
        None if a.fract() == 0.0 && b.fract() == 0.0 => values.extend(steps(a, last, 1.0)?),
        None => return Err(format!("a step, such as {from}..{end}+{from} or {from}..{end}*2")),
        Some((b'*', factor)) => {
            let factor: f64 = factor.trim().parse().map_err(|_| format!("a factor above 1 instead of \"{factor}\""))?;
            if !(factor > 1.0 && factor.is_finite() && a > 0.0) {
                return Err("a factor above 1, and a first value above 0".into());
            }
            let mut x = a;
            while x <= last && values.len() <= MOST_VALUES {
                values.push(x);
                x *= factor;
            }
        }
        Some((_, step)) => values.extend(steps(a, last, number(step)?)?),
    }
    let whole = matches!(field.unit, crate::field::Unit::Whole);
    for x in values {
        if whole && x.fract() != 0.0 {
            return Err(format!("whole numbers: {x} is none"));
        }
        let value =
            if whole { Value::from(x as u64) } else { Number::from_f64(x).map(Value::Number).unwrap_or_default() };
        all.push(if field.list { Value::Array(vec![value]) } else { value });
    }
    Ok(())
}

fn steps(a: f64, last: f64, step: f64) -> Result<impl Iterator<Item = f64>, String> {
    if !(step > 0.0 && step.is_finite()) {
        return Err("a step above 0".into());
    }
    let n = ((last - a) / step).floor();
    if n > MOST_VALUES as f64 {
        return Err(format!("at most {MOST_VALUES} values"));
    }
    Ok((0..=n as u64).map(move |i| a + i as f64 * step))
}

/// What tells a sweep apart: the version, what is asked, and all that the catalogue says.
fn fingerprint(catalog: &Catalog, request: &Request, base: &Map<String, Value>) -> String {
    let mut hash = Fnv::default();
    let mut text = |text: &str| {
        hash.count(text.len());
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        for word in words {
            hash.word(u64::from_le_bytes(*word));
        }
        hash.bytes(rest);
    };
    text(env!("CARGO_PKG_VERSION"));
    text(&SCHEMA.to_string());
    text(&request.question);
    text(&Value::Object(base.clone()).to_string());
    for word in request.over.iter().chain(&request.columns) {
        text(word);
    }
    for kind in Folder::iter() {
        for (id, file) in catalog.files(kind) {
            text(id);
            text(file);
        }
    }
    format!("{:016x}", hash.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, run};
    use serde_json::json;
    use std::convert::Infallible;

    fn request(question: &str, request: Value, over: &[&str]) -> Request {
        let Value::Object(request) = request else { panic!("an object") };
        let over = over.iter().map(|o| (*o).to_owned()).collect();
        Request { question: question.into(), request, over, columns: Vec::new() }
    }

    fn swept(request: &Request, shard: (u64, u64), threads: usize) -> Result<Vec<Block>, Error> {
        let catalog = rackmath_catalog::embedded();
        let sweep = Sweep::new(&catalog, request, shard, &Terms::default())?;
        let mut all = Vec::new();
        let done = run(
            &sweep,
            threads,
            |block| block,
            |block, _| {
                all.push(block);
                Ok::<_, Infallible>(true)
            },
        );
        assert_eq!(done, Ok(sweep.looked_at()));
        Ok(all)
    }

    fn column(blocks: &[Block], at: usize) -> Vec<String> {
        let cells = |block: &Block| match &block.columns[at] {
            Column::Counts(all) => all.iter().map(ToString::to_string).collect(),
            Column::Amounts(all) => all.iter().map(ToString::to_string).collect(),
            Column::Texts(all) => all.clone(),
            Column::Words(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>(),
            Column::Flags(all) => all.iter().map(|yes| format!("{yes:?}")).collect(),
        };
        blocks.iter().flat_map(cells).collect()
    }

    #[test]
    fn values_are_lists_steps_and_factors() {
        let fields = Question::Estimate.fields();
        let values = |text: &str| axis(&fields, text).map(|axis| Value::Array(axis.values));
        assert_eq!(values("tp=1,2,4,8").unwrap(), json!([1, 2, 4, 8]));
        assert_eq!(values("concurrency=1..4").unwrap(), json!([1.0, 2.0, 3.0, 4.0]));
        assert_eq!(values("max-concurrency=1..100*10,7").unwrap(), json!([1.0, 10.0, 100.0, 7.0]));
        assert_eq!(values("isl=1k..4k+1k").unwrap(), json!([1000.0, 2000.0, 3000.0, 4000.0]));
        assert_eq!(values("prefix-hit=0%..30%+10%").unwrap().as_array().unwrap().len(), 4);
        assert_eq!(values("setting.model=a,b").unwrap(), json!(["a", "b"]));
        for (text, says) in [
            ("concurency=1", "did you mean \"concurrency\""),
            ("tp", "NAME=VALUES"),
            ("tp=4..1", "the smaller end first: 1..4"),
            ("prefix-hit=0.1..0.5", "a step"),
            ("tp=1..8*0.5", "a factor above 1"),
            ("tp=x", "not a number"),
            ("isl=1..1e12", "at most"),
            ("tp=1..4+1.5", "expected a whole number"),
        ] {
            let said = values(text).unwrap_err().to_string();
            assert!(said.contains(says), "{text}: {said}");
        }
    }

    #[test]
    fn a_row_is_the_answer_at_its_point() {
        let setting = json!({ "setting": { "model": "llama-3.1-8b", "on": "8xh100" } });
        let mut asked = request("step", setting.clone(), &["batch=1..70", "context=1k,8k"]);
        asked.columns = vec!["time_s".into()];
        let rows = swept(&asked, (1, 1), 2).unwrap();
        let catalog = rackmath_catalog::embedded();
        let times = column(&rows, 2);
        assert_eq!(times.len(), 140);
        for point in [0_usize, 1, 77, 139] {
            let mut one = setting.clone();
            one["batch"] = json!((point / 2 + 1) as f64);
            one["context"] = json!(if point % 2 == 0 { 1000.0 } else { 8000.0 });
            let answer: Value = serde_json::from_str(&Question::Step.ask(&catalog, &one.to_string()).unwrap()).unwrap();
            assert_eq!(times[point], answer["time_s"].as_f64().unwrap().to_string(), "{point}");
        }
    }

    #[test]
    fn shards_and_threads_change_nothing() {
        let setting = json!({ "setting": { "model": "llama-3.1-8b", "on": "8xh100" } });
        let asked = request("estimate", setting, &["concurrency=1..20", "tp=1,2,3"]);
        let whole = swept(&asked, (1, 1), 1).unwrap();
        let width = whole[0].columns.len();
        for n in [2, 7] {
            let parts: Vec<Block> = (1..=n).flat_map(|i| swept(&asked, (i, n), 3).unwrap()).collect();
            for at in 0..width {
                assert_eq!(column(&parts, at), column(&whole, at));
            }
        }
        // Three does not divide the heads: the row says so, and has no figures.
        let errors = column(&whole, width - 1);
        assert!(errors[2].contains("tp") && errors[0].is_empty(), "{:?}", &errors[..3]);
    }

    #[test]
    fn another_request_catalogue_or_axis_has_another_fingerprint() {
        let mut catalog = rackmath_catalog::embedded();
        let print = |catalog: &Catalog, request: &Request| {
            Sweep::new(catalog, request, (1, 1), &Terms::default()).unwrap().fingerprint()
        };
        let one = request("step", json!({}), &["batch=1,2"]);
        let first = print(&catalog, &one);
        assert_eq!(first, print(&catalog, &one));
        assert_ne!(first, print(&catalog, &request("step", json!({}), &["batch=1,3"])));
        assert_ne!(first, print(&catalog, &request("step", json!({ "context": 7.0 }), &["batch=1,2"])));
        let chip = catalog.files(Folder::Chips).next().map(|(id, text)| (id.to_owned(), text.to_owned())).unwrap();
        catalog.add(Folder::Chips, "mine", &format!("{}\n", chip.1), None).unwrap();
        assert_ne!(first, print(&catalog, &one));
    }
}
