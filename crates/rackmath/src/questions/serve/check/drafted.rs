//! A model that drafts for the one that is served: its weights and its cache stand beside, and its words must be the same.

use crate::desk::prelude::*;
use crate::desk::words::other_words;
use crate::setting::checkpoint;
use rackmath_spec::line::{Launch, Program};
use rackmath_theory::deployment::{Deployment, usual_cache};
use rackmath_theory::drafter::{DraftModel, Drafter};

/// Puts the model that drafts beside the one that is served, as `estimate` does; what the engine says to its words where they are
/// others, and in ours. Heads of one layer and layers of the model's own are counted by the engine's sum itself.
pub(super) fn put(
    catalog: &Catalog,
    launch: &Launch,
    on: &mut Deployment,
    assumptions: &mut Vec<Remark>,
) -> Result<Option<(Remark, Remark)>, Error> {
    let start = &launch.start;
    let plain = start
        .method
        .as_deref()
        .is_none_or(|m| ["draft_model", "standalone", "draft_target"].contains(&m.to_ascii_lowercase().as_str()));
    let head =
        |name: &str| ["eagle", "mtp", "nextn", "medusa", "mlp", "dflash", "ngram"].iter().any(|k| name.contains(k));
    let named = start.drafter.as_deref().map(super::model_named);
    let named = named.filter(|name| plain && !head(&name.to_ascii_lowercase()));
    // A model's own name asks for the layers it brings along.
    let Some(name) = named.filter(|name| launch.model.as_deref().map(super::model_named).as_ref() != Some(name)) else {
        return Ok(None);
    };
    let Ok(model) = checkpoint(catalog, &name) else {
        assumptions.push(says("check_drafter_unknown").with("name", name));
        return Ok(None);
    };
    let formats = model.formats();
    let other = other_words(catalog, on, &model)?.filter(|_| !translates(launch));
    if let Some(other) = other {
        let said = says("check_other_words").with("drafter", &model.name).with("drafted", other.drafted);
        let said = said.with("own", other.own).with("such", other.such.clone());
        if let Some((prints, true)) = other.prints {
            return Ok(Some((prints.into(), said)));
        }
        assumptions.push(says("check_undrafted").with("why", said));
        return Ok(None);
    }
    let kv = usual_cache(&model, formats, &on.engine);
    let said = says("check_drafter").with("name", &model.name);
    on.drafter = Drafter::Model(DraftModel { kv, model, formats, tp: None, prepare: Seconds::ZERO }.into());
    let weights = on.drafter.weights(on);
    on.side += weights;
    assumptions.push(said.with("bytes", weights));
    Ok(None)
}

/// Whether the line asks for words to be translated (vLLM from 0.25 on).
fn translates(launch: &Launch) -> bool {
    let asked = |f: &rackmath_spec::line::Reading| {
        f.flag.replace('_', "-").ends_with("use-heterogeneous-vocab") && f.value.as_deref() != Some("false")
    };
    launch.program == Program::Vllm && launch.flags.iter().any(asked)
}
