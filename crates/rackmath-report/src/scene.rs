//! A picture as primitives with coordinates: what SVG and PNG both paint.

/// A picture.
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

/// Where a text hangs on its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The point is its left end.
    Start,
    Middle,
    /// The point is its right end.
    End,
}

/// One primitive.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A filled rectangle.
    Rect {
        /// Left.
        x: f64,
        /// Top.
        y: f64,
        /// Width.
        w: f64,
        /// Height.
        h: f64,
        /// Colour.
        fill: Color,
    },
    Line {
        points: Vec<(f64, f64)>,
        /// Colour.
        color: Color,
        /// Thickness.
        width: f64,
        dashed: bool,
    },
    Dot {
        /// Centre, across.
        x: f64,
        /// Centre, down.
        y: f64,
        /// Radius.
        r: f64,
        /// Colour.
        fill: Color,
    },
    Text {
        /// Across.
        x: f64,
        /// Baseline.
        y: f64,
        size: f64,
        bold: bool,
        /// Whether it is turned a quarter to the left.
        turned: bool,
        /// How it hangs on its point.
        anchor: Anchor,
        /// Colour.
        color: Color,
        /// What it says.
        text: String,
    },
}
