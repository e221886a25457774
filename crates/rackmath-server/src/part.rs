//! A part of a long answer: some rows of one of its lists, taken from the text as it is written.
//!
//! `POST /api/pipeline?of=/runs/0/cells&from=0&rows=1000` gives the first thousand cells. The whole text is never held: it runs
//! through a reader that knows where in the answer it is, and keeps the rows that were asked for.

use crate::error::Refusal;
use axum::http::StatusCode;
use rackmath::Error;
use rackmath::ask::{Reply, SCHEMA};
use serde::Serialize;
use std::io;

/// An answer as every face prints it, to wherever it goes: a long one need not be held as text.
pub fn write(reply: &Reply, mut to: impl io::Write) -> Result<(), Error> {
    #[derive(Serialize)]
    struct Versioned<'a> {
        schema: u32,
        #[serde(flatten)]
        answer: &'a Reply,
    }
    let failed = |e: &dyn std::fmt::Display| Error::said(e.to_string());
    let whole = Versioned { schema: SCHEMA, answer: reply };
    serde_json::to_writer_pretty(&mut to, &whole).map_err(|e| failed(&e))?;
    to.write_all(b"\n").map_err(|e| failed(&e))
}

/// Most rows of one part.
pub const MOST_ROWS: u64 = 100_000;

/// Which rows of which list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// The list, as a JSON pointer.
    pub of: String,
    pub from: u64,
    pub rows: u64,
}

/// Where in a text one is.
#[derive(Debug)]
struct Level {
    list: bool,
    /// Rows begun of a list.
    index: u64,
    /// The field that comes, of an object.
    key: Vec<u8>,
}

/// Reads JSON byte by byte, as serde_json writes it, keeps rows of one list, and counts all lists.
#[derive(Debug)]
pub struct Reader<'a> {
    part: Option<&'a Part>,
    most: usize,
    levels: Vec<Level>,
    text: Option<Text>,
    /// A value is expected: what begins now is one.
    expects: bool,
    /// Depth of the list that was asked for, while inside.
    inside: Option<usize>,
    kept: Vec<u8>,
    /// Rows of the list that was asked for, if there is one.
    all: Option<u64>,
    taken: u64,
    /// The longest list and its rows.
    longest: (u64, String),
}

/// Inside quotation marks: whether it is a field's name, and whether the next sign is taken as it is.
#[derive(Debug)]
struct Text {
    name: bool,
    escaped: bool,
}

impl<'a> Reader<'a> {
    /// Keeps the rows of a part, at most so many bytes of them.
    pub fn new(part: Option<&'a Part>, most: usize) -> Self {
        let longest = (0, String::new());
        Self {
            part,
            most,
            levels: Vec::new(),
            text: None,
            expects: true,
            inside: None,
            kept: Vec::new(),
            all: None,
            taken: 0,
            longest,
        }
    }

    /// The list with most rows: how many, and where.
    pub fn longest(&self) -> (u64, &str) {
        (self.longest.0, &self.longest.1)
    }

    fn place(&self) -> String {
        let mut place = String::new();
        for level in &self.levels {
            place.push('/');
            if level.list {
                place.push_str(&(level.index.saturating_sub(1)).to_string());
            } else {
                place.push_str(&String::from_utf8_lossy(&level.key).replace('~', "~0").replace('/', "~1"));
            }
        }
        place
    }

    /// A value begins here: a row, where the innermost level is a list.
    fn begins(&mut self) {
        self.expects = false;
        if let Some(level) = self.levels.last_mut().filter(|l| l.list) {
            level.index += 1;
            if self.inside == Some(self.levels.len()) && self.wants() && self.taken > 0 {
                self.keep(b',');
            }
        }
    }

    /// Whether the row that is read is one of those asked for.
    fn wants(&self) -> bool {
        let (Some(depth), Some(part)) = (self.inside, self.part) else { return false };
        let at = self.levels[depth - 1].index;
        at > part.from && at - 1 - part.from < part.rows
    }

    fn keep(&mut self, byte: u8) {
        if self.kept.len() <= self.most {
            self.kept.push(byte);
        }
    }

    fn read(&mut self, byte: u8) {
        if let Some(text) = &mut self.text {
            let (name, ends) = (text.name, byte == b'"' && !text.escaped);
            text.escaped = byte == b'\\' && !text.escaped;
            if ends {
                self.text = None;
            } else if name && let Some(level) = self.levels.last_mut() {
                level.key.push(byte);
            }
            return self.copy(byte);
        }
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b',' => {
                // Between rows of the list itself nothing is copied: what was kept gets its own.
                let between = self.inside == Some(self.levels.len());
                if between && self.wants() {
                    self.taken += 1;
                }
                self.expects = self.levels.last().is_some_and(|l| l.list);
                if !between {
                    self.copy(byte);
                }
            }
            b':' => {
                self.expects = true;
                self.copy(byte);
            }
            b'"' => {
                let name = !self.expects;
                if name {
                    if let Some(level) = self.levels.last_mut() {
                        level.key.clear();
                    }
                } else {
                    self.begins();
                }
                self.text = Some(Text { name, escaped: false });
                self.copy(byte);
            }
            b'{' | b'[' => {
                self.begins();
                self.copy(byte);
                let list = byte == b'[';
                if list && self.all.is_none() && self.part.is_some_and(|p| p.of == self.place()) {
                    self.inside = Some(self.levels.len() + 1);
                }
                self.levels.push(Level { list, index: 0, key: Vec::new() });
                self.expects = list;
            }
            b'}' | b']' => {
                let Some(level) = self.levels.pop() else { return };
                self.expects = false;
                if self.inside == Some(self.levels.len() + 1) {
                    let last = self.part.is_some_and(|p| level.index > p.from && level.index - 1 - p.from < p.rows);
                    self.taken += u64::from(last);
                    self.inside = None;
                    self.all = Some(level.index);
                }
                if level.list && level.index > self.longest.0 {
                    self.longest = (level.index, self.place());
                }
                self.copy(byte);
            }
            _ => {
                if self.expects {
                    self.begins();
                }
                self.copy(byte);
            }
        }
    }

    fn copy(&mut self, byte: u8) {
        if self.wants() {
            self.keep(byte);
        }
    }

    /// The part as an answer of its own.
    pub fn answer(self) -> Result<String, Refusal> {
        let Some(part) = self.part else { return Ok(String::new()) };
        let Some(all) = self.all else {
            let expected = format!("the place of a list in this answer, such as {:?}", self.longest.1);
            return Err(Error::value("of", format!("{:?}", part.of), expected).into());
        };
        if self.kept.len() > self.most {
            let problem = format!("these rows have more than {:.1} MB", self.most as f64 / 1e6);
            let fewer = (part.rows.min(all) / 4).max(1);
            let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, problem, format!("ask for rows={fewer}"));
            return Err(refusal.of(self.kept.len() as f64, self.most as f64, "bytes").fits("rows", fewer as f64));
        }
        let rows = String::from_utf8(self.kept).map_err(|e| Error::said(e.to_string()))?;
        let end = part.from.saturating_add(self.taken);
        let next = if end < all && self.taken > 0 { end.to_string() } else { "null".into() };
        let of = serde_json::Value::from(part.of.as_str());
        Ok(format!("{{\"of\":{of},\"from\":{},\"all\":{all},\"next\":{next},\"rows\":[{rows}]}}\n", part.from))
    }
}

impl io::Write for Reader<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            self.read(*byte);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps a text up to so many bytes, and counts the rest.
#[derive(Debug)]
pub struct Bounded {
    pub text: Vec<u8>,
    pub bytes: usize,
    most: usize,
}

impl Bounded {
    pub fn new(most: usize) -> Self {
        Self { text: Vec::new(), bytes: 0, most }
    }

    /// Whether all of it is there.
    pub fn whole(&self) -> bool {
        self.bytes <= self.most
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        if self.whole() {
            self.text.extend_from_slice(bytes);
        } else if !self.text.is_empty() {
            self.text = Vec::new();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::io::Write as _;

    fn asked(answer: &Value, of: &str, from: u64, rows: u64, pretty: bool) -> Result<Value, Refusal> {
        let part = Part { of: of.into(), from, rows };
        let mut reader = Reader::new(Some(&part), 10_000);
        let text = if pretty { serde_json::to_string_pretty(answer) } else { serde_json::to_string(answer) };
        reader.write_all(text.expect("JSON").as_bytes()).expect("written");
        reader.answer().map(|text| serde_json::from_str(&text).expect("JSON"))
    }

    #[test]
    fn rows_of_a_list_are_those_of_the_whole_answer() {
        let answer = json!({ "a": [1, -2.5e3, [3, "x,]\"\\"], { "b": [], "c/d": [[7], [8]] }, null, true, "s"],
            "é": { "list": ["}", "\\", "\\\""] }, "empty": [], "n": 1 });
        for pretty in [false, true] {
            for of in ["/a", "/a/2", "/a/3/b", "/a/3/c~1d", "/a/3/c~1d/1", "/é/list", "/empty"] {
                let whole = answer.pointer(of).and_then(Value::as_array).expect("a list");
                for from in 0..=whole.len() as u64 + 1 {
                    for rows in 1..=whole.len() as u64 + 1 {
                        let part = asked(&answer, of, from, rows, pretty).expect("a part");
                        let want: Vec<&Value> = whole.iter().skip(from as usize).take(rows as usize).collect();
                        assert_eq!(part["rows"], json!(want), "{of} {from} {rows}");
                        assert_eq!(part["all"], whole.len());
                        let next = from + want.len() as u64;
                        let more = next < whole.len() as u64 && !want.is_empty();
                        assert_eq!(part["next"].as_u64(), more.then_some(next), "{of} {from} {rows}");
                    }
                }
            }
            for of in ["/n", "/nothing", "", "/a/3", "/a/9"] {
                let refused = asked(&answer, of, 0, 5, pretty).expect_err(of);
                assert!(refused.error.to_string().contains("/a"), "{of}: {refused:?}");
            }
        }
    }

    #[test]
    fn what_is_written_is_what_every_face_prints() {
        let catalog = rackmath_catalog::embedded();
        for name in ["step", "pipeline", "names"] {
            let question = rackmath::ask::Question::find(name).expect("a question");
            let reply =
                question.answer(&catalog, serde_json::Map::new(), &rackmath::ask::Terms::default()).expect(name);
            let mut text = Bounded::new(usize::MAX);
            write(&reply, &mut text).expect("written");
            assert_eq!(String::from_utf8(text.text).expect("UTF-8"), reply.json().expect("JSON"), "{name}");
        }
    }

    #[test]
    fn rows_beyond_the_bytes_are_refused_with_fewer() {
        let answer = json!({ "rows": vec!["x".repeat(100); 1000] });
        let refused = asked(&answer, "/rows", 0, 400, false).expect_err("40 kB");
        assert!(refused.error.to_string().contains("rows=100"), "{refused:?}");
        assert_eq!(asked(&answer, "/rows", 990, 50, false).expect("ten")["rows"].as_array().map(Vec::len), Some(10));
    }

    #[test]
    fn a_text_is_whole_or_only_counted() {
        let mut all = Bounded::new(10);
        all.write_all(b"0123456789").expect("written");
        assert!(all.whole() && all.text == b"0123456789");
        all.write_all(b"x").expect("written");
        assert!(!all.whole() && all.text.is_empty() && all.bytes == 11);
    }
}
