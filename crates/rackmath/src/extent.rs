//! How much a question has to look through, counted from its request before anybody looks.
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | F | made | deployments that fit, each of which is made ready |
//! | P | prepared | what is timed once: deployments that fit, at every load; slices of a training step |
//! | W | weighed | what is then held against the rest: pairs of pools; pipelines over slices |
//! | R | simulated | requests that are simulated for limits on percentiles |
//!
//! Nothing is timed for that: names are resolved, layouts enumerated, and of some of them it is asked whether the model fits. What
//! is refused has no extent.

use crate::ask::{self, Question};
use crate::{compare, frontier, hardware, outlook, plan, train, whatif};
use rackmath_spec::{Catalog, SpecError};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::iter::Sum;
use std::ops::{Add, Mul};

/// Counts of what a search goes through.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extent {
    /// Layouts that are possible, whether or not the model fits.
    pub layouts: f64,
    /// Deployments that are made ready.
    pub made: f64,
    /// What is timed once.
    pub prepared: f64,
    /// What is then held against the rest, in all searches.
    pub weighed: f64,
    /// Requests that are simulated.
    pub simulated: f64,
    /// Tokens of their answers.
    pub tokens: f64,
}

impl Extent {
    /// The same for a question that is answered in means, without a simulation.
    #[must_use]
    pub(crate) fn in_means(self) -> Self {
        Self { simulated: 0.0, tokens: 0.0, ..self }
    }

    /// What is simulated of it alone.
    #[must_use]
    pub(crate) fn simulation(self) -> Self {
        Self { simulated: self.simulated, tokens: self.tokens, ..Self::default() }
    }
}

impl Add for Extent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            layouts: self.layouts + other.layouts,
            made: self.made + other.made,
            prepared: self.prepared + other.prepared,
            weighed: self.weighed + other.weighed,
            simulated: self.simulated + other.simulated,
            tokens: self.tokens + other.tokens,
        }
    }
}

impl Mul<f64> for Extent {
    type Output = Self;

    fn mul(self, n: f64) -> Self {
        Self {
            layouts: self.layouts * n,
            made: self.made * n,
            prepared: self.prepared * n,
            weighed: self.weighed * n,
            simulated: self.simulated * n,
            tokens: self.tokens * n,
        }
    }
}

impl Sum for Extent {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

impl Question {
    /// What a request of a search has to look through; nothing for other questions, and where a request is refused.
    pub fn extent(self, catalog: &Catalog, request: &Map<String, Value>) -> Option<Extent> {
        let counted = match self {
            Self::Plan => plan::extent(catalog, &read(request)?),
            Self::Whatif => {
                let request: whatif::Request = read(request)?;
                let after = whatif::changed(&request).and_then(|changed| plan::extent(catalog, &changed));
                // What is kept of the plan is simulated under the change too.
                let after = after.map(|after| after + after.simulation());
                plan::extent(catalog, &request.plan).and_then(|before| Ok(before + after?))
            }
            Self::Frontier => frontier::extent(catalog, &read(request)?),
            Self::Compare => compare::extent(catalog, &read(request)?),
            Self::Outlook => outlook::extent(catalog, &read(request)?),
            Self::Hardware => hardware::extent(catalog, &read(request)?),
            Self::Train => train::extent(catalog, &read(request)?),
            _ => return None,
        };
        counted.ok()
    }
}

fn read<R: DeserializeOwned>(request: &Map<String, Value>) -> Option<R> {
    let mut request = request.clone();
    request.remove("files");
    ask::read(&Value::Object(request)).ok()
}

/// The extents of several requests together.
pub(crate) fn sum(all: impl Iterator<Item = Result<Extent, SpecError>>) -> Result<Extent, SpecError> {
    Ok(all.collect::<Result<Vec<_>, _>>()?.into_iter().sum())
}
