//! What llama.cpp lowers by itself until a model fits (`--fit`): the context where none was said, then what lies on the card.
//!
//! A model fits where what every card is asked for leaves so much free. The context is lowered first, to no less than a floor; then the
//! experts of as few layers as needed go to the host, or whole layers where there are none or that is not enough. What a line says is
//! left as it is: where it names the layers, only the context is lowered.
//!
//! Source: ggml-org/llama.cpp pull request 16653; its numbers stand with the engine. Ignores: parts of a layer that overflow.

use crate::desk::prelude::*;
use rackmath_spec::engine::Version;
use rackmath_spec::launch::Start;
use rackmath_spec::line::{Launch, Program};
use rackmath_spec::model::Shape;
use rackmath_theory::budget::{budgets, last};
use rackmath_theory::deployment::Deployment;

type Place<'a> = dyn Fn(&Start) -> Result<Deployment, Error> + 'a;

/// The start as llama.cpp lowers it, and in words; nothing where it changes nothing.
pub(super) fn lowered(
    launch: &Launch,
    start: &Start,
    version: Option<Version>,
    has: bool,
    place: &Place,
) -> Result<Option<(Start, Remark)>, Error> {
    if launch.program != Program::LlamaCpp || !has || launch.start.fit == Some(false) {
        return Ok(None);
    }
    let on = place(start)?;
    let engine = on.engine.clone();
    let rule = engine.memory_rule(version.or(engine.version)).and_then(|rule| rule.fit.as_ref());
    let Some((rule, shape)) = rule.zip(on.model.shape()).filter(|_| !on.system.chip.processor) else { return Ok(None) };
    let spare = launch.start.fit_spare.unwrap_or(Bytes::b(rule.spare_mib * 1_048_576.0));
    let fits = |start: &Start| {
        place(start).is_ok_and(|on| {
            let cards = budgets(&on, start, version);
            cards.iter().all(|b| b.starts() && b.needed() + spare <= b.total)
        })
    };
    if fits(start) {
        return Ok(None);
    }
    let mut then = start.clone();
    let own = start.longest.unwrap_or(0);
    let least = launch.start.fit_longest.unwrap_or(rule.least_tokens).min(own);
    if launch.start.longest.is_none() {
        let step = rule.step_tokens.max(1);
        let with = |longest: u64| Start { longest: Some(longest), ..start.clone() };
        let found = last(own / step, |n| n * step <= least || fits(&with(n * step))) * step;
        then = with(found.max(least));
    }
    let said = says("check_fitted").with("spare", spare);
    let context = (then.longest != start.longest).then_some(then.longest).flatten();
    let said = said.with("own", context.map(|_| own)).with("longest", context);
    let free = launch.start.layers.is_none() && launch.start.shares.is_none() && launch.start.expert_layers.is_none();
    if fits(&then) || !free {
        // Where layers were said, what is lowered may still be too much.
        return Ok(context.map(|_| (then, said)));
    }
    let layers = shape.n_layers();
    let (then, moved) = moved(shape, &then, &fits);
    let said = match moved {
        Moved::Experts(n) => said.with("experts", n),
        Moved::Layers(n) => said.with("layers", n).with("of", layers),
        Moved::Nothing => return Ok(context.map(|_| (then, said))),
    };
    Ok(Some((then, said)))
}

enum Moved {
    Experts(u64),
    Layers(u64),
    Nothing,
}

/// The fewest layers whose experts go to the host, or the most layers that stay on the card.
fn moved(shape: &Shape, start: &Start, fits: &dyn Fn(&Start) -> bool) -> (Start, Moved) {
    let layers = shape.n_layers();
    let experts = |n: u64| Start { expert_layers: Some(n), ..start.clone() };
    if shape.moe().is_some() {
        let n = layers - last(layers, |kept| fits(&experts(layers - kept)));
        if fits(&experts(n)) {
            return (experts(n), Moved::Experts(n));
        }
    }
    let with = |n: u64| Start { layers: Some(n), ..start.clone() };
    let n = last(layers, |n| fits(&with(n)));
    if n > 0 || fits(&with(0)) { (with(n), Moved::Layers(n)) } else { (start.clone(), Moved::Nothing) }
}
