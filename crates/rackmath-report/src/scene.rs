//! A picture as primitives with coordinates: what SVG and PNG both paint.

#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    pub width: f64,
    pub height: f64,
    /// What is drawn, in order.
    pub items: Vec<Item>,
}

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

/// Where a text hangs on its point: by its left end, its middle or its right end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Rect { x: f64, y: f64, w: f64, h: f64, fill: Color },
    Line { points: Vec<(f64, f64)>, color: Color, width: f64, dashed: bool },
    Dot { x: f64, y: f64, r: f64, fill: Color },
    Text(Text),
}

/// Texts hang on their baseline, and may be turned a quarter to the left.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    pub x: f64,
    pub y: f64,
    pub size: f64,
    pub bold: bool,
    pub turned: bool,
    pub anchor: Anchor,
    pub color: Color,
    pub text: String,
}

pub(crate) const INK: Color = Color(34, 34, 34);
pub(crate) const GREY: Color = Color(110, 110, 110);
pub(crate) const WHITE: Color = Color(255, 255, 255);

impl Scene {
    /// A white sheet.
    pub(crate) fn new(width: f64, height: f64) -> Self {
        let mut scene = Self { width, height, items: Vec::new() };
        scene.rect((0.0, 0.0, width, height), WHITE);
        scene
    }

    pub(crate) fn rect(&mut self, (x, y, w, h): (f64, f64, f64, f64), fill: Color) {
        self.items.push(Item::Rect { x, y, w, h, fill });
    }

    pub(crate) fn line(&mut self, points: Vec<(f64, f64)>, color: Color, width: f64, dashed: bool) {
        self.items.push(Item::Line { points, color, width, dashed });
    }

    pub(crate) fn write(&mut self, text: Text) {
        self.items.push(Item::Text(text));
    }
}

impl Text {
    pub(crate) fn new((x, y): (f64, f64), size: f64, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { x, y, size, bold: false, turned: false, anchor: Anchor::Start, color: INK, text }
    }

    pub(crate) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(crate) fn colored(self, color: Color) -> Self {
        Self { color, ..self }
    }

    pub(crate) fn grey(self) -> Self {
        self.colored(GREY)
    }

    pub(crate) fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    pub(crate) fn middle(self) -> Self {
        self.anchored(Anchor::Middle)
    }

    pub(crate) fn end(self) -> Self {
        self.anchored(Anchor::End)
    }
}
