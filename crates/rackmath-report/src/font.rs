//! The font of the pictures: a subset of DejaVu Sans (see `assets/DEJAVU-LICENSE.txt`).

use std::sync::LazyLock;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

static REGULAR: LazyLock<Face<'static>> = LazyLock::new(|| load(include_bytes!("../assets/DejaVuSans-subset.ttf")));
static BOLD: LazyLock<Face<'static>> = LazyLock::new(|| load(include_bytes!("../assets/DejaVuSans-Bold-subset.ttf")));

fn load(bytes: &'static [u8]) -> Face<'static> {
    Face::parse(bytes, 0).expect("the embedded font is sound")
}

fn face(bold: bool) -> &'static Face<'static> {
    if bold { &BOLD } else { &REGULAR }
}

fn glyph(face: &Face, c: char) -> GlyphId {
    face.glyph_index(c).or_else(|| face.glyph_index('?')).unwrap_or(GlyphId(0))
}

pub(crate) fn width(text: &str, size: f64, bold: bool) -> f64 {
    let face = face(bold);
    let units: f64 = text.chars().map(|c| f64::from(face.glyph_hor_advance(glyph(face, c)).unwrap_or(0))).sum();
    units * size / f64::from(face.units_per_em())
}

/// Each glyph's outline, made by `make` from where the glyph stands on the baseline and the size of a font unit.
pub(crate) fn outlines<B: OutlineBuilder>(
    text: &str,
    size: f64,
    bold: bool,
    make: impl Fn(f64, f64) -> B,
) -> impl Iterator<Item = B> {
    let face = face(bold);
    let scale = size / f64::from(face.units_per_em());
    let mut x = 0.0;
    text.chars().map(move |c| {
        let id = glyph(face, c);
        let mut builder = make(x, scale);
        face.outline_glyph(id, &mut builder);
        x += f64::from(face.glyph_hor_advance(id).unwrap_or(0)) * scale;
        builder
    })
}
