//! How text is dressed: colour and width.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

/// Colour and width of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, width: 100 }
    }
}

impl Style {
    fn code(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub fn bold(self, text: &str) -> String {
        self.code("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.code("2", text)
    }

    pub fn good(self, text: &str) -> String {
        self.code("32", text)
    }

    pub fn bad(self, text: &str) -> String {
        self.code("31", text)
    }

    pub fn tint(self, color: u8, text: &str) -> String {
        self.code(&format!("38;5;{color}"), text)
    }

    pub fn table(self, header: &[impl AsRef<str>]) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(self.width - 1).unwrap_or(u16::MAX));
        table.set_header(header.iter().map(|h| self.bold(h.as_ref())));
        // Names are not broken where there is room for the rest.
        if self.width >= 90
            && let Some(first) = table.column_mut(0)
        {
            first.set_constraint(ColumnConstraint::ContentWidth);
        }
        table
    }

    /// A paragraph wrapped to the width, with a hanging indent.
    pub fn wrapped(self, first: &str, indent: &str, text: &str) -> String {
        let mut out = String::new();
        let mut line = first.to_owned();
        let mut empty = true;
        for word in text.split_whitespace() {
            if !empty && line.chars().count() + 1 + word.chars().count() > self.width {
                out.push_str(&line);
                out.push('\n');
                indent.clone_into(&mut line);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        out + &line + "\n"
    }
}
