//! Answers as text.

mod board;
mod capacity;
mod catalogue;
mod check;
mod compare;
mod compose;
mod cost;
mod deduce;
mod estimate;
mod layout;
mod learn;
mod lifecycle;
mod outlook;
mod own;
mod page;
mod plan;
mod price;
mod probe;
mod simulate;
mod trace;
mod train;
mod tuning;
mod validate;

/// What almost every page needs.
mod prelude {
    pub(super) use super::compose::Kind;
    pub(super) use super::page::*;
    pub(super) use crate::reply::Part;
    pub(super) use crate::words::{joined, words};
    pub(super) use rackmath::figure::{Figure, count};
    pub(super) use rackmath::remark::Remark;
    pub(super) use rackmath::sides::Measure;
    pub(super) use rackmath_units::{
        Bytes, BytesPerToken, Dollars, Flop, FlopPerToken, FlopRate, Params, Seconds, Tokens, grouped, significant,
    };
}

use crate::reply::{Detail, Picture, Show, picture};
use crate::style::Style;
use page::Page;
use rackmath::ask::Reply;
use rackmath::{Error, curve, reversible, step};

pub use compose::LINES;
pub use page::sentence;
pub use probe::{probe, roofline};

pub fn page(reply: &Reply, show: Show<'_>, style: Style) -> Result<String, Error> {
    let figure = || match picture(reply, show)? {
        Picture::Figure(figure) => Ok(figure),
        Picture::Scene(_) => Err(Error::said("this picture has no points")),
    };
    let mut page = Page::new(style);
    let out = &mut page;
    match reply {
        Reply::Step(a) => board::step(out, a),
        Reply::Curve(a) => board::curve(out, a),
        Reply::Explain(a) => board::explain(out, a),
        Reply::Models(a) => catalogue::models(out, a),
        Reply::Chips(a) => catalogue::chips(out, a),
        Reply::Systems(a) => catalogue::systems(out, a),
        Reply::Lecture(a) => learn::lecture(out, a),
        Reply::Station(a) => learn::station(out, a),
        Reply::Layout(a) => layout::layout(out, a, show.part),
        Reply::Pipeline(a) => layout::pipeline(out, a),
        Reply::Racks(a) => layout::racks(out, a),
        Reply::When(a) => board::when(out, a),
        Reply::Check(a) => check::check(out, a),
        Reply::Estimate(a) => estimate::estimate(out, a),
        Reply::EstimateSweep(a) => estimate::sweep(out, a),
        Reply::Capacity(a) => capacity::capacity(out, a),
        Reply::Simulate(a) => simulate::simulate(out, a),
        Reply::Validate(a) => validate::validate(out, a),
        Reply::Price(a) => price::price(out, a),
        Reply::Cost(a) => cost::cost(out, a),
        Reply::Fleet(a) => cost::fleet(out, a),
        Reply::Own(a) => own::own(out, a),
        Reply::Cache(a) => cost::cache(out, a),
        Reply::Fastmode(a) => cost::fastmode(out, a),
        Reply::Scaling(a) => lifecycle::scaling(out, a, figure().ok()),
        Reply::Lifecycle(a) => lifecycle::lifecycle(out, a),
        Reply::Goodput(a) => lifecycle::goodput(out, a, figure()?),
        Reply::Forensics(a) => lifecycle::forensics(out, a),
        Reply::Reversible(a) => learn::reversible(out, a, figure()?),
        Reply::Rl(a) => tuning::rl(out, a),
        Reply::Train(a) => train::train(out, a),
        Reply::Mfu(a) => train::mfu(out, a),
        Reply::Deduce(a) => deduce::deduce(out, a),
        Reply::Plan(a) => plan::plan(out, a),
        Reply::Whatif(a) => plan::whatif(out, a),
        Reply::Compare(a) => compare::compare(out, a, figure()?),
        Reply::Frontier(a) => compare::frontier(out, a, figure()?),
        Reply::Hardware(a) => compare::hardware(out, a),
        Reply::Outlook(a) => outlook::outlook(out, a),
        Reply::Trace(a) => trace::trace(out, a),
        Reply::Practice(a) => learn::practice(out, a, show.part),
        Reply::Names(a) => catalogue::names(out, a),
    }
    Ok(page.text(show.detail))
}

/// The headline: a step and its two curves.
pub fn headline(step: &step::Answer, curve: &curve::Answer, detail: Detail, style: Style) -> String {
    let mut out = Page::new(style);
    board::headline(&mut out, step, curve);
    out.text(detail)
}

/// Seconds of a step of each kind, measured by the face.
pub fn reversible_times(answer: &reversible::Answer, times: &[f64], style: Style) -> String {
    let mut out = Page::new(style);
    learn::times(&mut out, answer, times);
    out.text(Detail::FULL)
}
