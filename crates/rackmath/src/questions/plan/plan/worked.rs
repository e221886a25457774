//! A space prepared once and asked many times: under other limits, other traffic, or for one deployment that is kept.

use super::card::{Answer, Plan, Point};
use super::prepare::Prepared;
use super::searched::Searched;
use super::{Ask, Request, answer};
use crate::Error;
use crate::setting::PriceSource;
use rackmath_spec::{Catalog, Price};
use rackmath_theory::pass::KernelSet;
use rackmath_theory::plan::{Question, Ranked, search_all};

/// A request with its space.
pub(crate) struct Worked {
    pub(super) ask: Ask,
    pub(super) prepared: Prepared,
}

impl Worked {
    /// Resolves every name and prepares every deployment.
    pub(crate) fn new(catalog: &Catalog, request: &Request, threads: usize) -> Result<Self, Error> {
        let ask = Ask::new(catalog, request)?;
        let prepared = Prepared::new(&KernelSet::of(catalog)?, &ask, threads)?;
        Ok(Self { ask, prepared })
    }

    /// The answer to the request, as [`super::answer_on`] gives it.
    pub(crate) fn answer(&self, threads: usize) -> Answer {
        let q = &self.ask.question;
        let searched = Searched::whole(&self.prepared.space, q, threads).settled(q);
        answer::answer(&self.ask, &self.prepared, &searched)
    }

    /// What is asked of the space.
    pub(crate) fn question(&self) -> &Question {
        &self.ask.question
    }

    /// The model's name.
    pub(crate) fn model(&self) -> &str {
        &self.ask.model.name
    }

    /// Traffic and lengths in words.
    pub(crate) fn workload(&self) -> String {
        answer::workload(&self.ask)
    }

    /// Tokens of a prompt.
    pub(crate) fn prompt(&self) -> f64 {
        self.ask.requests.input
    }

    /// Share of prompts found in the prefix cache.
    pub(crate) fn cached(&self) -> f64 {
        self.ask.requests.cached
    }

    /// The score of a configuration under the question.
    pub(crate) fn score_of(&self, index: u64) -> Option<f64> {
        let q = &self.ask.question;
        self.prepared.space.estimate(index, q.output, q.traffic).map(|e| q.objective.score(&e))
    }

    /// Limits in words.
    pub(crate) fn limits(&self) -> Vec<String> {
        answer::limits(&self.ask.question)
    }

    /// Machines by the names they were asked for, with the price of a chip and hour.
    pub(crate) fn machines(&self) -> impl Iterator<Item = (&str, &str, f64)> {
        self.ask.machines.iter().map(|m| (m.system.id.as_str(), m.system.name.as_str(), m.usd_s * 3600.0))
    }

    /// What kind of price the machines have: one of the catalogue's, or as given; and what their power counts.
    pub(crate) fn bases(&self) -> (String, &'static str) {
        let m = &self.ask.machines[0];
        let power = if m.system.chip.power.all_in.is_some() { "all in" } else { "thermal design power" };
        let price = match &m.price_source {
            PriceSource::Listed(price) => price.basis.to_string(),
            PriceSource::Given => "as given".into(),
            PriceSource::Unknown => "unknown".into(),
        };
        (price, power)
    }

    /// The lowest and highest price seen for a machine's chip, over the one used; none where the catalogue has no range.
    pub(crate) fn price_range(&self, machine: usize) -> Option<(f64, f64)> {
        let m = &self.ask.machines[machine];
        let PriceSource::Listed(Price { range: Some((low, high)), .. }) = &m.price_source else { return None };
        Some((low.get() / m.usd_s, high.get() / m.usd_s))
    }

    /// With the chips of one machine at another price.
    pub(crate) fn priced<R>(&mut self, machine: usize, factor: f64, run: impl FnOnce(&Self) -> R) -> R {
        let rows = self.prepared.space.rows.clone();
        for (row, entry) in self.prepared.space.rows.iter_mut().zip(&self.prepared.entries) {
            if self.prepared.kinds[self.prepared.kind_of[entry.deployment]].machine == machine {
                row.usd_s *= factor;
            }
        }
        let result = run(self);
        self.prepared.space.rows = rows;
        result
    }

    /// With another question asked of the same space.
    pub(crate) fn asked<R>(&mut self, question: Question, run: impl FnOnce(&Self) -> R) -> R {
        let own = std::mem::replace(&mut self.ask.question, question);
        let result = run(self);
        self.ask.question = own;
        result
    }

    /// The best under a question, which may differ from the request's; one thread.
    pub(crate) fn best(&self, question: &Question) -> Option<Ranked> {
        let q = Question { keep: 1, frontier: None, near: false, ..*question };
        search_all(&self.prepared.space, &q, 1).top.into_iter().next()
    }

    /// Why there is no plan.
    pub(crate) fn why_none(&self) -> &'static str {
        if self.prepared.deployments.is_empty() {
            "no layout has room for the weights and one request"
        } else {
            "no deployment meets the limits"
        }
    }

    /// The frontier alone, fastest user first.
    pub(crate) fn frontier(&self, threads: usize) -> Vec<Point> {
        let q = Question { keep: 1, ..self.ask.question };
        let found = search_all(&self.prepared.space, &q, threads);
        found.frontier.iter().map(|r| answer::point(&self.ask, &self.prepared, r)).collect()
    }

    /// Logarithm of the factor that holds 80 % of measurements of throughput; the widest of the engines asked for, where
    /// kernels were borrowed wider still.
    pub(crate) fn spread(&self) -> f64 {
        let engine = self.ask.engines.iter().map(|e| e.spread.throughput).fold(0.0, f64::max);
        engine * self.prepared.deployments.iter().map(|d| d.pass.wider()).fold(1.0, f64::max)
    }

    /// A configuration in full.
    pub(crate) fn plan(&self, ranked: &Ranked) -> Plan {
        answer::plan(&self.ask, &self.prepared, ranked, Some(ranked))
    }

    /// What the numbers assume.
    pub(crate) fn assumptions(&self, machines: bool) -> Vec<String> {
        answer::assumptions(&self.ask, &self.prepared, machines)
    }
}
