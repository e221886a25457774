//! Draws a figure in a terminal: Braille dots in colour, or letters where there is none.

use crate::style::Style;
use crate::ticks::{Range, ranges};
use crate::words::words;
use rackmath::figure::{Figure, Role, Series};

/// Rows of a chart, and of one on a short page.
pub const ROWS: usize = 16;
pub const FEW: usize = 7;
/// Columns for the labels on the left.
const MARGIN: usize = 11;

pub fn draw(figure: &Figure, rows: usize, style: Style) -> String {
    let columns = style.width.clamp(40, 140) - MARGIN - 2;
    let (x, y) = ranges(figure);
    let mut canvas = Canvas { columns, rows, x, y, cells: vec![Cell::default(); columns * rows] };
    for (i, series) in figure.series.iter().enumerate() {
        canvas.line(series, i, style.color);
    }
    for mark in &figure.marks {
        canvas.put(mark.x, mark.y, '●', Some(MARK));
    }
    let mut lines = vec![style.bold(&words(&figure.title)), style.dim(&words(&figure.subtitle))];
    for (row, label) in row_labels(figure, rows, y).into_iter().enumerate() {
        let axis = if label.is_some() { '┤' } else { '│' };
        lines.push(format!("{:>w$} {axis}{}", label.unwrap_or_default(), canvas.row(row, style), w = MARGIN - 1));
    }
    let (rule, ticks) = bottom(figure, x, columns);
    let margin = " ".repeat(MARGIN);
    lines.push(format!("{margin}└{rule}"));
    lines.push(format!("{margin} {ticks}"));
    lines.push(format!("{margin} {}", style.dim(&figure.x.label)));
    lines.push(legend(figure, style));
    lines.extend(figure.marks.iter().map(|m| format!("{margin} {} {}", style.tint(MARK, "●"), words(&m.label))));
    lines.join("\n") + "\n"
}

const MARK: u8 = 202;

/// The envelope has no colour of its own: bold, in whatever the terminal writes with.
const BOLD: u8 = 0;

/// Colour of a role in the 256-colour palette, and its letter where colours are off.
fn pen(role: Role) -> (u8, char) {
    const CHOICES: [u8; 8] = [39, 214, 35, 176, 81, 202, 226, 246];
    match role {
        Role::Envelope => (BOLD, '*'),
        Role::Weights => (39, 'w'),
        Role::Kv => (214, 'k'),
        Role::Compute => (35, 'c'),
        Role::Floor => (176, '-'),
        Role::Points => (166, 'o'),
        Role::Choice(i) => (CHOICES[usize::from(i) % CHOICES.len()], char::from(b'a' + i % 26)),
    }
}

fn tinted(color: u8, text: &str, style: Style) -> String {
    if color == BOLD { style.bold(text) } else { style.tint(color, text) }
}

/// As many to a line as fit; colours take no room.
fn legend(figure: &Figure, style: Style) -> String {
    let room = style.width.max(40) - MARGIN;
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for series in &figure.series {
        let (color, letter) = pen(series.role);
        let sample = if style.color { "━━".to_owned() } else { letter.to_string() };
        let name = words(&series.name);
        let wide = sample.chars().count() + 1 + name.chars().count();
        let item = format!("{} {name}", tinted(color, &sample, style));
        match lines.last_mut() {
            Some(line) if used + 3 + wide <= room => {
                *line = format!("{line}   {item}");
                used += 3 + wide;
            }
            _ => {
                lines.push(format!("{:MARGIN$} {item}", ""));
                used = wide;
            }
        }
    }
    lines.join("\n")
}

fn row_labels(figure: &Figure, rows: usize, y: Range) -> Vec<Option<String>> {
    let mut labels = vec![None; rows];
    for tick in y.ticks() {
        let row = ((1.0 - y.at(tick)) * (rows - 1) as f64).round() as usize;
        labels[row.min(rows - 1)] = Some(figure.y.unit.tick(tick));
    }
    labels
}

/// The line under the plot and its labels, dropping those that would collide.
fn bottom(figure: &Figure, x: Range, columns: usize) -> (String, String) {
    let mut rule: Vec<char> = vec!['─'; columns];
    let mut labels: Vec<char> = vec![' '; columns + 8];
    let mut free_from = 0;
    for tick in x.ticks() {
        let column = (x.at(tick) * (columns - 1) as f64).round() as usize;
        let text: Vec<char> = figure.x.unit.tick(tick).chars().collect();
        let start = column.saturating_sub(text.len() / 2);
        rule[column.min(columns - 1)] = '┴';
        if start >= free_from && start + text.len() <= labels.len() {
            labels[start..start + text.len()].copy_from_slice(&text);
            free_from = start + text.len() + 1;
        }
    }
    (rule.into_iter().collect(), labels.into_iter().collect::<String>().trim_end().to_owned())
}

/// A cell: Braille dots or one character, and a colour.
#[derive(Clone, Copy, Default)]
struct Cell {
    dots: u8,
    char: Option<char>,
    color: Option<u8>,
}

struct Canvas {
    columns: usize,
    rows: usize,
    x: Range,
    y: Range,
    cells: Vec<Cell>,
}

impl Canvas {
    fn line(&mut self, series: &Series, index: usize, color: bool) {
        let (tint, letter) = pen(series.role);
        if color {
            self.braille(series, tint);
        } else {
            self.letters(series, letter, index);
        }
    }

    /// Every dot column gets the dots between this height and the last one's.
    fn braille(&mut self, series: &Series, tint: u8) {
        let (wide, high) = (self.columns * 2, self.rows * 4);
        let mut last: Option<i64> = None;
        for dot_x in 0..wide {
            let at = self.x.value(dot_x as f64 / (wide - 1) as f64);
            let height = interpolate(series, self.x, self.y, at).map(|value| self.y.at(value));
            let Some(height) = height.filter(|h| (-0.001..=1.001).contains(h)) else {
                last = None;
                continue;
            };
            let dot_y = ((1.0 - height) * (high - 1) as f64).round() as i64;
            let from = last.map_or(dot_y, |l| if dot_y > l { l + 1 } else { (l - 1).max(dot_y) });
            for y in from.min(dot_y)..=from.max(dot_y) {
                self.dot(dot_x, y.clamp(0, high as i64 - 1) as usize, tint);
            }
            // The envelope is bold: two dots high.
            if series.role == Role::Envelope && dot_y + 1 < high as i64 {
                self.dot(dot_x, (dot_y + 1) as usize, tint);
            }
            last = Some(dot_y);
        }
    }

    /// Where there is no colour, a letter every few columns, shifted from line to line so that they do not hide each other.
    fn letters(&mut self, series: &Series, letter: char, index: usize) {
        let every = if series.role == Role::Envelope { 1 } else { 4 };
        for column in (index % every..self.columns).step_by(every) {
            let at = self.x.value(column as f64 / (self.columns - 1) as f64);
            if let Some(value) = interpolate(series, self.x, self.y, at) {
                self.put(at, value, letter, None);
            }
        }
    }

    fn dot(&mut self, dot_x: usize, dot_y: usize, tint: u8) {
        // Bits of the Braille block: dots 1, 2, 3, 7 on the left, 4, 5, 6, 8 on the right.
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let cell = &mut self.cells[dot_y / 4 * self.columns + dot_x / 2];
        cell.dots |= BITS[dot_y % 4][dot_x % 2];
        cell.color = Some(tint);
    }

    fn put(&mut self, x: f64, y: f64, c: char, tint: Option<u8>) {
        let (ax, ay) = (self.x.at(x), self.y.at(y));
        if !(0.0..=1.0).contains(&ax) || !(0.0..=1.0).contains(&ay) {
            return;
        }
        let column = (ax * (self.columns - 1) as f64).round() as usize;
        let row = ((1.0 - ay) * (self.rows - 1) as f64).round() as usize;
        let cell = &mut self.cells[row * self.columns + column];
        (cell.char, cell.color) = (Some(c), tint);
    }

    fn row(&self, row: usize, style: Style) -> String {
        let cells = self.cells[row * self.columns..].iter().take(self.columns).map(|cell| {
            let c = cell.char.unwrap_or(match cell.dots {
                0 => ' ',
                dots => char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' '),
            });
            match cell.color {
                Some(color) if c != ' ' => tinted(color, &c.to_string(), style),
                _ => c.to_string(),
            }
        });
        cells.collect::<String>().trim_end().to_owned()
    }
}

/// The height of a line at a place, straight between its points as drawn.
fn interpolate(series: &Series, x: Range, y: Range, at: f64) -> Option<f64> {
    let points = &series.points;
    let after = points.iter().position(|p| p.0 >= at * (1.0 - 1e-12))?;
    if after == 0 {
        return (points[0].0 <= at * (1.0 + 1e-12)).then_some(points[0].1);
    }
    let (a, b) = (points[after - 1], points[after]);
    let share = (x.at(at) - x.at(a.0)) / (x.at(b.0) - x.at(a.0));
    Some(y.value(y.at(a.1) + (y.at(b.1) - y.at(a.1)) * share))
}
