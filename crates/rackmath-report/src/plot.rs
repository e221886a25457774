//! Lays a figure out as a scene: axes, grid, lines, marks, legend.

use crate::font;
use crate::scene::{Anchor, Color, GREY, INK, Item, Scene};
use crate::ticks::Range;
use rackmath::figure::{Figure, Mark, Role, Series};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 600.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 78.0;
const BOTTOM: f64 = 100.0;
const GRID: Color = Color(228, 228, 228);

/// Colour, thickness and dash of a role; colours that colour-blind readers can tell apart (Okabe and Ito).
pub(crate) fn pen(role: Role) -> (Color, f64, bool) {
    match role {
        Role::Envelope => (INK, 3.5, false),
        Role::Weights => (Color(0, 114, 178), 2.0, false),
        Role::Kv => (Color(230, 159, 0), 2.0, false),
        Role::Compute => (Color(0, 158, 115), 2.0, false),
        Role::Floor => (Color(204, 121, 167), 2.0, true),
        Role::Points => (Color(0, 114, 178), 2.0, false),
        Role::Choice(i) => {
            let colors = [
                Color(0, 114, 178),
                Color(230, 159, 0),
                Color(0, 158, 115),
                Color(204, 121, 167),
                Color(86, 180, 233),
                Color(213, 94, 0),
                Color(240, 228, 66),
                Color(120, 120, 120),
            ];
            // The second round of colours is dashed.
            (colors[usize::from(i) % colors.len()], 2.0, usize::from(i) >= colors.len())
        }
    }
}

/// The colour of the dots of a series: those of a figure are told apart.
fn dot(series: &[Series], i: usize) -> Color {
    const COLORS: [Color; 6] = [
        Color(0, 114, 178),
        Color(213, 94, 0),
        Color(0, 158, 115),
        Color(230, 159, 0),
        Color(86, 180, 233),
        Color(150, 110, 190),
    ];
    let before = series[..i].iter().filter(|s| s.role == Role::Points).count();
    COLORS[before % COLORS.len()]
}

pub fn scene(figure: &Figure) -> Scene {
    let points = || figure.series.iter().flat_map(|s| s.points.iter());
    let x = Range::of(&figure.x, points().map(|p| p.0));
    let y = Range::of(&figure.y, points().map(|p| p.1)).widened();
    let place = |p: (f64, f64)| {
        (LEFT + x.at(p.0) * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y.at(p.1) * (HEIGHT - TOP - BOTTOM))
    };
    let mut scene = Scene::new(WIDTH, HEIGHT);
    let title = fitting(&figure.title, 20.0, true);
    let subtitle = fitting(&figure.subtitle, 13.0, false);
    scene.text((LEFT, 34.0), title, true, Anchor::Start, INK, &figure.title);
    scene.text((LEFT, 58.0), subtitle, false, Anchor::Start, GREY, &figure.subtitle);
    grid(&mut scene, figure, x, y, place);
    for (i, series) in figure.series.iter().enumerate() {
        if series.role == Role::Points {
            let fill = dot(&figure.series, i);
            scene.items.extend(series.points.iter().map(|p| place(*p)).map(|(x, y)| Item::Dot { x, y, r: 3.5, fill }));
            continue;
        }
        let (color, width, dashed) = pen(series.role);
        let points = series.points.iter().map(|p| place(*p)).collect();
        scene.line(points, color, width, dashed);
    }
    marks(&mut scene, &figure.marks, place);
    legend(&mut scene, &figure.series);
    scene
}

fn grid(scene: &mut Scene, figure: &Figure, x: Range, y: Range, place: impl Fn((f64, f64)) -> (f64, f64)) {
    let (bottom, top) = (HEIGHT - BOTTOM, TOP);
    for tick in x.ticks() {
        let at = place((tick, y.low)).0;
        scene.line(vec![(at, top), (at, bottom)], GRID, 1.0, false);
        scene.text((at, bottom + 20.0), 13.0, false, Anchor::Middle, INK, figure.x.unit.tick(tick));
    }
    for tick in y.ticks() {
        let at = place((x.low, tick)).1;
        scene.line(vec![(LEFT, at), (WIDTH - RIGHT, at)], GRID, 1.0, false);
        scene.text((LEFT - 8.0, at + 4.5), 13.0, false, Anchor::End, INK, figure.y.unit.tick(tick));
    }
    scene.line(vec![(LEFT, top), (LEFT, bottom), (WIDTH - RIGHT, bottom)], INK, 1.0, false);
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    scene.text((middle, bottom + 44.0), 14.0, false, Anchor::Middle, INK, &figure.x.label);
    scene.items.push(Item::Text {
        x: 22.0,
        y: f64::midpoint(top, bottom),
        size: 14.0,
        bold: false,
        turned: true,
        anchor: Anchor::Middle,
        color: INK,
        text: figure.y.label.clone(),
    });
}

/// The size at which a line of text stays within the picture, at most the one wanted.
fn fitting(line: &str, size: f64, bold: bool) -> f64 {
    let room = WIDTH - LEFT - 16.0;
    size * (room / font::width(line, size, bold).max(1.0)).min(1.0)
}

/// Labels stand above their point, on the side with more room; a later one steps up when it would cover an earlier one.
fn marks(scene: &mut Scene, marks: &[Mark], place: impl Fn((f64, f64)) -> (f64, f64)) {
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for mark in marks {
        let (x, y) = place((mark.x, mark.y));
        scene.items.push(Item::Dot { x, y, r: 5.5, fill: Color(213, 94, 0) });
        let wide = font::width(&mark.label, 13.0, true);
        let right = x + 10.0 + wide < WIDTH - RIGHT;
        let (anchor, from) = if right { (Anchor::Start, x + 10.0) } else { (Anchor::End, x - 10.0 - wide) };
        let mut line = y - 12.0;
        while taken.iter().any(|(l, r, at)| from < *r && from + wide > *l && (line - at).abs() < 16.0) {
            line -= 17.0;
        }
        let line = line.max(TOP + 12.0);
        taken.push((from, from + wide, line));
        scene.text((if right { x + 10.0 } else { x - 10.0 }, line), 13.0, true, anchor, Color(213, 94, 0), &mark.label);
    }
}

/// One row where all fit, else a second one below it.
fn legend(scene: &mut Scene, series: &[Series]) {
    let wide = |s: &Series| 62.0 + font::width(&s.name, 13.0, false);
    let fits = LEFT + series.iter().map(wide).sum::<f64>() <= WIDTH;
    let (mut x, mut y) = (LEFT, if fits { HEIGHT - 22.0 } else { HEIGHT - 30.0 });
    for (i, s) in series.iter().enumerate() {
        if x > LEFT && x + wide(s) > WIDTH && !fits {
            (x, y) = (LEFT, y + 20.0);
        }
        let (color, width, dashed) = pen(s.role);
        if s.role == Role::Points {
            scene.rect((x + 12.0, y - 8.0, 7.0, 7.0), dot(series, i));
        } else {
            scene.line(vec![(x, y - 4.5), (x + 30.0, y - 4.5)], color, width, dashed);
        }
        scene.text((x + 38.0, y), 13.0, false, Anchor::Start, INK, &s.name);
        x += wide(s);
    }
}
