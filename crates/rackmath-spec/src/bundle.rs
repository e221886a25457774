//! A catalogue, or some kinds of its files, as one piece of text, for a browser that fetches it or a program that keeps its own.
//!
//! The first line says what it is, in which version, and how many files follow. Each file is a line `kind/id bytes`, then
//! so many bytes of text and an end of line. What is cut short, too long, of an unknown kind or twice there is refused.

use crate::{Catalog, IntoEnumIterator as _, Kind, SpecError};
use std::fmt::Write as _;

const MAGIC: &str = "rackmath catalogue 1";

impl Catalog {
    pub fn bundle(&self) -> String {
        self.bundle_of(|_| true)
    }

    /// The files of some kinds; what is left out can follow in a bundle of its own ([`Self::put_bundle`]).
    pub fn bundle_of(&self, wanted: impl Fn(Kind) -> bool) -> String {
        let kinds = Kind::iter().filter(|kind| wanted(*kind));
        let files: Vec<_> = kinds.flat_map(|kind| self.files(kind).map(move |file| (kind, file))).collect();
        let mut text = format!("{MAGIC} {}\n", files.len());
        for (kind, (id, file)) in files {
            let _ = writeln!(text, "{kind}/{id} {}\n{file}", file.len());
        }
        text
    }

    /// The catalogue of a bundle; its files are read when they are first asked for.
    pub fn from_bundle(bytes: &[u8]) -> Result<Self, SpecError> {
        let mut catalog = Self::default();
        catalog.put_bundle(bytes)?;
        Ok(catalog)
    }

    /// Files of a bundle besides those that are here; after an error some of them may be.
    pub fn put_bundle(&mut self, bytes: &[u8]) -> Result<(), SpecError> {
        let wrong = |problem: String| SpecError::file("catalogue bundle", problem);
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("not UTF-8 text".into()))?;
        let (head, mut rest) = text.split_once('\n').unwrap_or((text, ""));
        let count = head.strip_prefix(MAGIC).and_then(|n| n.trim().parse::<usize>().ok());
        let count = count.ok_or_else(|| wrong(format!("does not begin with \"{MAGIC}\" and a number of files")))?;
        for n in 0..count {
            let short = || wrong(format!("ends before file {} of {count}", n + 1));
            let (line, body) = rest.split_once('\n').ok_or_else(short)?;
            let named = line.rsplit_once(' ').and_then(|(name, n)| Some((name.split_once('/')?, n.parse().ok()?)));
            let Some(((kind, id), length)) = named else {
                return Err(SpecError::field("catalogue bundle", format!("file {}", n + 1), line, "kind/id bytes"));
            };
            let words = || Kind::iter().map(Into::into);
            let kind: Kind = kind.parse().map_err(|_| SpecError::unknown("kind of file", kind, words()))?;
            let file = body.get(..length).ok_or_else(short)?;
            rest = body[length..].strip_prefix('\n').ok_or_else(short)?;
            if self.ids(kind).any(|other| other == id) {
                return Err(wrong(format!("{kind}/{id} is there twice")));
            }
            self.put_text(kind, id, file)?;
        }
        if rest.is_empty() { Ok(()) } else { Err(wrong(format!("goes on after its {count} files"))) }
    }
}
