//! A command line, word by word.

use std::fmt::Display;

/// Words with a blank between them.
pub(super) struct Line(String);

impl Line {
    /// Begins with a command.
    pub(super) fn new(start: impl Display) -> Self {
        let mut line = Self(String::new());
        line.add(start);
        line
    }

    /// Adds words; runs of blanks become one.
    pub(super) fn add(&mut self, words: impl Display) {
        for word in words.to_string().split_whitespace() {
            if !self.0.is_empty() {
                self.0.push(' ');
            }
            self.0.push_str(word);
        }
    }

    /// Adds words if they belong there.
    pub(super) fn when(&mut self, yes: bool, words: &str) {
        if yes {
            self.add(words);
        }
    }

    /// The line.
    pub(super) fn text(self) -> String {
        self.0
    }
}
