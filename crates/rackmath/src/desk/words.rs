//! Vocabularies of a model and of one that drafts for it: guesses are numbers of words, so both must number the same words.

use super::prelude::*;
use rackmath_spec::{Kind, Model};
use rackmath_theory::count::count;
use rackmath_theory::deployment::Deployment;

/// A drafter whose words are not the model's.
pub(crate) struct OtherWords {
    /// Words of the model, and of the drafter.
    pub own: u64,
    pub drafted: u64,
    /// A small model with the model's words, where the catalogue has one.
    pub such: Option<String>,
    /// What the engine prints, and whether it ends there, where that is known.
    pub prints: Option<(String, bool)>,
}

impl OtherWords {
    /// What is expected instead, for an error.
    pub fn expected(&self, model: &str) -> String {
        let such = self.such.as_ref().map_or_else(String::new, |id| format!(", such as {id}"));
        format!("a drafter with the {} words of {model}{such}, or eagle3 or ngram", grouped(self.own as f64))
    }
}

/// Whether the words of a drafter are too many or too few for the engine; nothing where they go together.
pub(crate) fn other_words(catalog: &Catalog, on: &Deployment, draft: &Model) -> Result<Option<OtherWords>, Error> {
    let Some((own, drafted)) = words(&on.model).zip(words(draft)) else { return Ok(None) };
    let support = catalog.engine_support(&on.engine.family)?;
    let rule = support.as_ref().and_then(|s| s.drafters.as_ref());
    if own.abs_diff(drafted) <= rule.map_or(0, |rule| rule.words_apart) {
        return Ok(None);
    }
    let filled = |text: &str| text.replace("{N}", &own.to_string()).replace("{M}", &drafted.to_string());
    let prints = rule.map(|rule| (filled(&rule.prints), rule.ends));
    Ok(Some(OtherWords { own, drafted, such: such(catalog, &on.model, own), prints }))
}

fn words(model: &Model) -> Option<u64> {
    model.shape().map(|shape| shape.vocab)
}

/// The smallest model of the same makers with as many words, a tenth as large or less.
fn such(catalog: &Catalog, model: &Model, own: u64) -> Option<String> {
    let maker = |m: &Model| m.hf.as_deref().and_then(|hf| hf.split('/').next()).map(str::to_ascii_lowercase);
    let (makers, most) = (maker(model)?, count(model).multiplied().get() / 10.0);
    let all = catalog.ids(Kind::Models).filter_map(|id| catalog.model(id).ok());
    let fit = all.filter(|m| words(m) == Some(own) && maker(m).is_some_and(|own| own == makers));
    let sized = fit.map(|m| (count(&m).multiplied().get(), m.id.clone())).filter(|(size, _)| *size <= most);
    sized.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, id)| id)
}
