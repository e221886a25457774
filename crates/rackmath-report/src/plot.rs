//! Lays a figure out as a scene: axes, grid, lines, marks, legend.

use crate::font;
use crate::scene::{Anchor, Color, INK, Item, Scene, Text};
use crate::ticks::{Range, ranges};
use crate::words::words;
use rackmath::figure::{Figure, Mark, Role, Series};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 600.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 78.0;
const BOTTOM: f64 = 100.0;
const GRID: Color = Color(228, 228, 228);

const MARK: Color = VERMILION;

/// Colours that colour-blind readers can tell apart (Okabe and Ito).
const BLUE: Color = Color(0, 114, 178);
const ORANGE: Color = Color(230, 159, 0);
const GREEN: Color = Color(0, 158, 115);
const PINK: Color = Color(204, 121, 167);
const SKY: Color = Color(86, 180, 233);
const VERMILION: Color = Color(213, 94, 0);

/// Colour, thickness and dash of a role.
pub(crate) fn pen(role: Role) -> (Color, f64, bool) {
    const CHOICES: [Color; 8] = [BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, Color(240, 228, 66), Color(120, 120, 120)];
    match role {
        Role::Envelope => (INK, 3.5, false),
        Role::Weights | Role::Points => (BLUE, 2.0, false),
        Role::Kv => (ORANGE, 2.0, false),
        Role::Compute => (GREEN, 2.0, false),
        Role::Floor => (PINK, 2.0, true),
        // The second round of colours is dashed.
        Role::Choice(i) => (CHOICES[usize::from(i) % CHOICES.len()], 2.0, usize::from(i) >= CHOICES.len()),
    }
}

/// The colour of the dots of a series: those of a figure are told apart.
fn dot(series: &[Series], i: usize) -> Color {
    const COLORS: [Color; 6] = [BLUE, VERMILION, GREEN, ORANGE, SKY, Color(150, 110, 190)];
    let before = series[..i].iter().filter(|s| s.role == Role::Points).count();
    COLORS[before % COLORS.len()]
}

pub fn scene(figure: &Figure) -> Scene {
    let (x, y) = ranges(figure);
    let place = |p: (f64, f64)| {
        (LEFT + x.at(p.0) * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y.at(p.1) * (HEIGHT - TOP - BOTTOM))
    };
    let mut scene = Scene::new(WIDTH, HEIGHT);
    let (title, subtitle) = (&words(&figure.title), &words(&figure.subtitle));
    scene.write(Text::new((LEFT, 34.0), fitting(title, 20.0, true), title).bold());
    scene.write(Text::new((LEFT, 58.0), fitting(subtitle, 13.0, false), subtitle).grey());
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
        scene.write(Text::new((at, bottom + 20.0), 13.0, figure.x.unit.tick(tick)).middle());
    }
    for tick in y.ticks() {
        let at = place((x.low, tick)).1;
        scene.line(vec![(LEFT, at), (WIDTH - RIGHT, at)], GRID, 1.0, false);
        scene.write(Text::new((LEFT - 8.0, at + 4.5), 13.0, figure.y.unit.tick(tick)).end());
    }
    scene.line(vec![(LEFT, top), (LEFT, bottom), (WIDTH - RIGHT, bottom)], INK, 1.0, false);
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    scene.write(Text::new((middle, bottom + 44.0), 14.0, &figure.x.label).middle());
    let up = Text::new((22.0, f64::midpoint(top, bottom)), 14.0, &figure.y.label).middle();
    scene.write(Text { turned: true, ..up });
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
        scene.items.push(Item::Dot { x, y, r: 5.5, fill: MARK });
        let label = words(&mark.label);
        let wide = font::width(&label, 13.0, true);
        let right = x + 10.0 + wide < WIDTH - RIGHT;
        let (anchor, from) = if right { (Anchor::Start, x + 10.0) } else { (Anchor::End, x - 10.0 - wide) };
        let mut line = y - 12.0;
        while taken.iter().any(|(l, r, at)| from < *r && from + wide > *l && (line - at).abs() < 16.0) {
            line -= 17.0;
        }
        let line = line.max(TOP + 12.0);
        taken.push((from, from + wide, line));
        let label = Text::new((if right { x + 10.0 } else { x - 10.0 }, line), 13.0, label);
        scene.write(label.bold().anchored(anchor).colored(MARK));
    }
}

/// One row where all fit, else a second one below it.
fn legend(scene: &mut Scene, series: &[Series]) {
    let wide = |s: &Series| 62.0 + font::width(&words(&s.name), 13.0, false);
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
        scene.write(Text::new((x + 38.0, y), 13.0, words(&s.name)));
        x += wide(s);
    }
}
