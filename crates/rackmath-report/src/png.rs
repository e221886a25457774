//! Paints a scene as PNG, at twice its size for sharp text.

use crate::font;
use crate::scene::{Anchor, Color, Item, Scene};
use tiny_skia::{FillRule, LineJoin, Paint, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform};

const ZOOM: f64 = 2.0;

pub fn paint(scene: &Scene) -> Vec<u8> {
    let (w, h) = ((scene.width * ZOOM) as u32, (scene.height * ZOOM) as u32);
    let mut canvas = Pixmap::new(w, h).expect("a picture has a size");
    for item in &scene.items {
        paint_item(&mut canvas, item);
    }
    canvas.encode_png().expect("memory is writable")
}

fn px(value: f64) -> f32 {
    (value * ZOOM) as f32
}

fn ink(color: Color) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(color.0, color.1, color.2, 255);
    paint.anti_alias = true;
    paint
}

fn paint_item(canvas: &mut Pixmap, item: &Item) {
    match item {
        Item::Rect { x, y, w, h, fill } => {
            if let Some(rect) = Rect::from_xywh(px(*x), px(*y), px(*w), px(*h)) {
                canvas.fill_rect(rect, &ink(*fill), Transform::identity(), None);
            }
        }
        Item::Line { points, color, width, dashed } => line(canvas, points, *color, *width, *dashed),
        Item::Dot { x, y, r, fill } => {
            if let Some(circle) = PathBuilder::from_circle(px(*x), px(*y), px(*r)) {
                canvas.fill_path(&circle, &ink(*fill), FillRule::Winding, Transform::identity(), None);
            }
        }
        Item::Text(t) => {
            let wide = font::width(&t.text, t.size, t.bold);
            let shift = match t.anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => -wide / 2.0,
                Anchor::End => -wide,
            };
            let turn = if t.turned { -90.0 } else { 0.0 };
            let place = Transform::from_translate(px(t.x), px(t.y)).pre_rotate(turn).pre_translate(px(shift), 0.0);
            for path in font::outlines(&t.text, t.size, t.bold, Outline::new).filter_map(|o| o.path.finish()) {
                canvas.fill_path(&path, &ink(t.color), FillRule::Winding, place, None);
            }
        }
    }
}

fn line(canvas: &mut Pixmap, points: &[(f64, f64)], color: Color, width: f64, dashed: bool) {
    let mut builder = PathBuilder::new();
    for (i, (x, y)) in points.iter().enumerate() {
        if i == 0 { builder.move_to(px(*x), px(*y)) } else { builder.line_to(px(*x), px(*y)) }
    }
    let dash = dashed.then(|| StrokeDash::new(vec![px(8.0), px(5.0)], 0.0)).flatten();
    let stroke = Stroke { width: px(width), line_join: LineJoin::Round, dash, ..Stroke::default() };
    if let Some(path) = builder.finish() {
        canvas.stroke_path(&path, &ink(color), &stroke, Transform::identity(), None);
    }
}

/// Collects a glyph's outline; font units point up, pixels down.
struct Outline {
    path: PathBuilder,
    x: f64,
    scale: f64,
}

impl Outline {
    fn new(x: f64, scale: f64) -> Self {
        Self { path: PathBuilder::new(), x, scale }
    }

    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (px(self.x + f64::from(x) * self.scale), px(-f64::from(y) * self.scale))
    }
}

impl ttf_parser::OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
