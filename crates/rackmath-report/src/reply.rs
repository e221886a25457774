//! Any answer as a page, a picture or a table: one match each.

use crate::{csv, picture, scene};
use rackmath::Error;
use rackmath::ask::{Question, Reply};
use rackmath::figure::Figure;

pub use crate::text::page;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Show<'a> {
    /// Which of its pictures, by name; the first of [`pictures`] unless given.
    pub figure: Option<&'a str>,
    pub part: Part,
    /// How much of its page.
    pub detail: Detail,
}

/// How much of an answer's page is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The sentence it comes down to.
    Verdict,
    /// The verdict, the figures and what to change, on one screen; with `explain` all of them, how they came about and what is
    /// assumed; with `sources` where numbers come from.
    Page { explain: bool, sources: bool },
}

impl Detail {
    pub const FULL: Self = Self::Page { explain: true, sources: true };
}

impl Default for Detail {
    fn default() -> Self {
        Self::Page { explain: false, sources: false }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    #[default]
    All,
    /// Of a layout, what each chip holds.
    Memory,
    /// Of a layout, what each network carries.
    Traffic,
    /// Of practice, the flashcards.
    Cards,
    /// Of practice, the working as well.
    Worked,
    /// Of reversible networks, times measured here as well.
    Timed,
}

pub enum Picture<'a> {
    Figure(&'a Figure),
    Scene(scene::Scene),
}

impl Picture<'_> {
    pub fn scene(self) -> scene::Scene {
        match self {
            Self::Figure(figure) => crate::scene(figure),
            Self::Scene(scene) => scene,
        }
    }
}

/// The pictures a question's answer may have, the usual one first.
pub fn pictures(question: Question) -> &'static [&'static str] {
    match question {
        Question::Curve => &["time", "cost"],
        Question::Layout => &["layout"],
        Question::Pipeline => &["grid"],
        Question::Cache => &["cost", "hits"],
        Question::Scaling => &["iso-flop", "iso-loss"],
        Question::Goodput => &["interval", "chips"],
        Question::Reversible => &["memory", "drift", "avalanche"],
        Question::Deduce => &["active", "ridge"],
        Question::Compare | Question::Frontier => &["chip", "dollar"],
        Question::Simulate => &["requests", "tokens"],
        Question::EstimateSweep
        | Question::Price
        | Question::Cost
        | Question::Fleet
        | Question::Own
        | Question::Fastmode
        | Question::Lifecycle
        | Question::Train
        | Question::Plan
        | Question::Hardware => &["figure"],
        _ => &[],
    }
}

/// A picture of an answer, or why there is none.
pub fn picture<'a>(reply: &'a Reply, show: Show<'_>) -> Result<Picture<'a>, Error> {
    let which = |other: &str| show.figure == Some(other);
    let no = |problem: &'static str, hint: &'static str| move || Error::said(problem).hint(hint);
    let no_law = no("none of these laws has a picture", "name one with a loss, such as {law.law} besiroglu-2024");
    let price = "give one with {setting.price_usd_per_chip_hour}";
    let no_dollars = no("no dollars to draw: a price is not known", price);
    let none = no(
        "there is no picture for this question",
        "ask for one sheet with {workload.uses} or {workload.turns}, or for a trace",
    );
    let figure = match reply {
        Reply::Layout(a) if show.part == Part::Memory => return Ok(Picture::Scene(picture::memory_bars(a))),
        Reply::Layout(a) => return Ok(Picture::Scene(picture::rack(a))),
        Reply::Pipeline(a) => return Ok(Picture::Scene(picture::pipeline(a))),
        Reply::Curve(a) if which("cost") => {
            a.cost.as_ref().ok_or_else(no("no price is known for this chip, so there is no cost picture", price))?
        }
        Reply::Curve(a) => &a.time,
        Reply::EstimateSweep(a) => &a.figure,
        Reply::Simulate(a) if which("tokens") => &a.throughput,
        Reply::Simulate(a) => &a.figure,
        Reply::Price(a) => a.figure.as_ref().ok_or_else(none)?,
        Reply::Cost(a) => &a.figure,
        Reply::Fleet(a) => &a.figure,
        Reply::Own(a) => &a.figure,
        Reply::Cache(a) if which("hits") => a.hit_figure.as_ref().ok_or_else(none)?,
        Reply::Cache(a) => &a.figure,
        Reply::Fastmode(a) => &a.figure,
        Reply::Scaling(a) if which("iso-loss") => a.iso_loss.as_ref().ok_or_else(no_law)?,
        Reply::Scaling(a) => a.iso_flop.as_ref().ok_or_else(no_law)?,
        Reply::Lifecycle(a) => a.figure.as_ref().ok_or_else(no_law)?,
        Reply::Goodput(a) if which("chips") => &a.over_chips,
        Reply::Goodput(a) => &a.over_interval,
        Reply::Reversible(a) if which("drift") => &a.drift_figure,
        Reply::Reversible(a) if which("avalanche") => &a.avalanche_figure,
        Reply::Reversible(a) => &a.memory_figure,
        Reply::Train(a) => {
            let hint = "give more with {pp}, or {search} for time against memory";
            a.figure.as_ref().ok_or_else(no("one stage makes no picture", hint))?
        }
        Reply::Deduce(a) if which("ridge") => &a.ridge_figure,
        Reply::Deduce(a) => &a.figure,
        Reply::Plan(a) => &a.figure,
        Reply::Compare(a) if which("dollar") => a.figure_dollar.as_ref().ok_or_else(no_dollars)?,
        Reply::Compare(a) => &a.figure_chip,
        Reply::Frontier(a) if which("dollar") => a.figure_dollar.as_ref().ok_or_else(no_dollars)?,
        Reply::Frontier(a) => &a.figure_chip,
        Reply::Hardware(a) => &a.figure,
        _ => return Err(Error::said("there is no picture for this question")),
    };
    Ok(Picture::Figure(figure))
}

/// An answer's table: its own where it has one, else the points of its picture.
pub fn table(reply: &Reply, show: Show<'_>) -> Result<String, Error> {
    Ok(match reply {
        Reply::Curve(a) => csv::curve(a),
        Reply::EstimateSweep(a) => csv::estimate_sweep(a),
        Reply::Plan(a) => csv::plan_frontier(a),
        Reply::Compare(a) => csv::frontiers(a.columns.iter().map(|c| &c.curve)),
        Reply::Frontier(a) => csv::frontiers(a.curves.iter()),
        Reply::Hardware(a) => csv::hardware(a),
        _ => match picture(reply, show)? {
            Picture::Figure(figure) => csv::figure(figure),
            Picture::Scene(_) => {
                return Err(Error::said("this picture has no points").hint("save it with --svg or --png"));
            }
        },
    })
}
