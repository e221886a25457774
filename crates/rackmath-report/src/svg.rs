//! Paints a scene as SVG.

use crate::scene::{Anchor, Color, Item, Scene, Text};
use std::fmt::Write as _;

pub fn paint(scene: &Scene) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">",
        scene.width, scene.height
    );
    for item in &scene.items {
        paint_item(&mut out, item);
    }
    out.push_str("</svg>\n");
    out
}

fn hex(color: Color) -> String {
    format!("#{:02x}{:02x}{:02x}", color.0, color.1, color.2)
}

fn paint_item(out: &mut String, item: &Item) {
    let _ = match item {
        Item::Rect { x, y, w, h, fill } => {
            writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" fill=\"{}\"/>",
                hex(*fill)
            )
        }
        Item::Line { points, color, width, dashed } => {
            let list: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let dash = if *dashed { " stroke-dasharray=\"8 5\"" } else { "" };
            writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dash}/>",
                list.join(" "),
                hex(*color)
            )
        }
        Item::Dot { x, y, r, fill } => {
            writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\" fill=\"{}\"/>", hex(*fill))
        }
        Item::Text(Text { x, y, size, bold, turned, anchor, color, text }) => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let weight = if *bold { " font-weight=\"bold\"" } else { "" };
            let turn = if *turned { format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"") } else { String::new() };
            writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{}\"{weight}{turn}>{}</text>",
                hex(*color),
                escape(text)
            )
        }
    };
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
