//! A space prepared once and asked many times: under other limits, other traffic, other prices, or for one deployment.

use super::prepare::Prepared;
use super::{Answer, Ask, Entry, Fetch, Plan, Point, Request, Searched, flags, why};
use crate::desk::cut;
use crate::desk::evidence::{Evidence, Scale};
use crate::desk::line;
use crate::desk::prelude::*;
use crate::setting::PriceSource;
use rackmath_theory::pass::KernelSet;
use rackmath_theory::plan::{Configuration, Question, Ranked, Space, search_all};
use std::collections::BTreeSet;

/// A request with its space; a copy shares everything but what is asked and what chips cost.
#[derive(Clone)]
pub(crate) struct Worked {
    pub(super) ask: Arc<Ask>,
    pub(crate) question: Question,
    /// What is searched: as predicted, or at the pessimistic end.
    pub(super) space: Arc<Space>,
    /// As predicted, where the other is not.
    pub(super) predicted: Option<Arc<Space>>,
    pub(super) made: Arc<Prepared>,
    pub(super) effort: Effort,
}

/// A configuration with what its numbers stand for.
pub(super) struct Choice<'a> {
    pub c: Configuration,
    /// What answers, and where there is no other pool, computes prompts.
    pub row: &'a Entry,
    pub prompts: Option<PromptPool<'a>>,
    /// Instances that answer, in a replica.
    pub instances: f64,
    /// Requests in flight in one attention group.
    pub per_group: f64,
}

/// The pool of prompts of a configuration.
pub(super) struct PromptPool<'a> {
    /// Its number among those of the space.
    pub at: usize,
    pub row: &'a Entry,
    /// Instances in a replica.
    pub instances: f64,
}

impl<'a> Choice<'a> {
    /// The row that computes prompts.
    pub(super) fn first(&self) -> &'a Entry {
        self.prompts.as_ref().map_or(self.row, |p| p.row)
    }

    /// The kinds of price of its machines.
    pub(super) fn price_kind(&self) -> String {
        let [own, other] = [self.row, self.first()].map(|row| row.of.machine.price_source.kind());
        if own == other { own.to_owned() } else { format!("{own} and {other}") }
    }

    /// What prompts fetch from host memory.
    pub(super) fn offload(&self) -> Option<Fetch> {
        self.first().offload
    }
}

impl Worked {
    /// A space that is asked for means alone: percentiles take a simulation of each answer.
    pub(crate) fn new(catalog: &Catalog, request: &Request, effort: &Effort) -> Result<Self, Error> {
        let named = ["ttft_ms", "tpot_ms", "e2e_ms"].into_iter().zip(super::percentiles(request));
        if let Some((field, limit)) = named.into_iter().find_map(|(field, limit)| Some((field, limit?))) {
            return Err(Error::value(
                field,
                limit,
                "a limit on the mean, such as 30ms: percentiles are for `plan`, `whatif` and `compare`",
            ));
        }
        Self::any(catalog, request, effort)
    }

    /// Resolves every name and prepares every deployment.
    pub(crate) fn any(catalog: &Catalog, request: &Request, effort: &Effort) -> Result<Self, Error> {
        let said = flags::obeyed(catalog, request)?;
        let mut ask = Ask::new(catalog, said.as_ref().map_or(request, |(asked, _)| asked))?;
        if let Some((_, launch)) = &said {
            ask.engines.iter_mut().for_each(|engine| flags::schedule(launch, engine));
            ask.workload.notes.splice(0..0, line::remarks(launch, flags::aside));
        }
        let mut made = Prepared::new(&KernelSet::of(catalog)?, &ask, effort)?;
        let space = Arc::new(std::mem::take(&mut made.space));
        let (question, sure) = (ask.question, ask.sure);
        let (ask, made, effort) = (Arc::new(ask), Arc::new(made), effort.clone());
        let plain = Self { question, ask, space, predicted: None, made, effort };
        Ok(sure.map_or_else(|| plain.clone(), |share| plain.surely(share)))
    }

    /// The answer to the request, as [`super::answer_on`] gives it.
    pub(crate) fn answer(&self) -> Result<Answer, Error> {
        Ok(self.card(&Searched::whole(&self.space, &self.question, &self.effort)?.settled(&self.question)))
    }

    pub(super) fn choice(&self, c: Configuration) -> Choice<'_> {
        let row = &self.made.rows[c.row];
        let pool = |(at, ratio): (usize, usize)| PromptPool {
            at,
            row: &self.made.rows[self.space.prefills[at].row],
            instances: self.space.ratios[ratio].0,
        };
        let instances = c.split.map_or(1.0, |(_, ratio)| self.space.ratios[ratio].1);
        Choice { c, row, prompts: c.split.map(pool), instances, per_group: self.concurrency(&c) }
    }

    pub(super) fn chosen(&self, index: u64) -> Choice<'_> {
        self.choice(self.space.configuration(index))
    }

    /// Concurrency of a group at a level.
    pub(super) fn concurrency(&self, c: &Configuration) -> f64 {
        self.made.levels[c.level].min(self.made.rows[c.row].most())
    }

    pub(super) fn layout(&self, layout: &Layout) -> String {
        cut::words(&self.ask.model, layout)
    }

    /// What tells a deployment from the others.
    pub(crate) fn words(&self, index: u64) -> Remark {
        let (ask, choice) = (&self.ask, self.chosen(index));
        let (row, on) = (choice.row, choice.row.on());
        let layout = self.layout(&on.layout);
        let pools = match &choice.prompts {
            None => says("deployed").with("layout", layout),
            Some(p) => {
                // Where the chips are others, they are named.
                let other = &p.row.of.machine;
                let named = (!Arc::ptr_eq(&row.of.machine, other)).then_some(&other.system.chip.id);
                let prefill = says("deployed").with("prefills", p.instances).with("prefill_on", named);
                let prefill = prefill.with("prefill", self.layout(&p.row.on().layout));
                prefill.with("decodes", choice.instances).with("decode", layout)
            }
        };
        pools
            .with("engine", (ask.engines.len() > 1).then_some(&on.engine.id))
            .with("system", (ask.machines.len() > 1).then_some(&on.system.id))
            .with("weights", (ask.formats.len() > 1).then_some(on.formats.linear))
            .with("kv", (ask.kvs.len() > 1).then_some(on.kv))
            .with("chunk", (ask.chunks.len() > 1 && choice.prompts.is_none()).then_some(row.chunk))
            .with("drafts", (ask.drafts.len() > 1).then_some(row.drafts.0))
            .with("offload", choice.offload().is_some())
    }

    /// The model's name.
    pub(crate) fn model(&self) -> &str {
        &self.ask.model.name
    }

    /// Traffic and lengths.
    pub(crate) fn workload(&self) -> Remark {
        let r = &self.ask.requests;
        let traffic = says("traffic_and_lengths").with("traffic", why::traffic(self.question.traffic));
        let w = &self.ask.workload;
        let traffic = traffic.with("peak", Some(w.peak).filter(|peak| *peak > 1.0)).with("mean", w.mean_rate);
        let traffic = traffic.with("free", Some(w.headroom).filter(|share| *share > 0.0));
        let lengths = traffic.with("input", r.input).with("output", r.output);
        lengths.with("cached", Some(r.cached).filter(|hit| *hit > 0.0)).with("fetched", self.ask.offload)
    }

    /// Tokens of a prompt.
    pub(crate) fn prompt(&self) -> f64 {
        self.ask.requests.input
    }

    /// Share of prompts found in the prefix cache.
    pub(crate) fn cached(&self) -> f64 {
        self.ask.requests.cached
    }

    /// The score of a configuration in so many replicas under the question.
    pub(crate) fn score_in(&self, index: u64, replicas: u64) -> Option<f64> {
        let (q, wide) = (&self.question, self.outrun());
        let given = self.traffic_is_given();
        let estimate = wide.space.estimate(index, q.output, q.traffic)?;
        let estimate = if given {
            wide.space.replicated(index, q.output, (replicas as f64, estimate.throughput / q.output))?
        } else {
            estimate
        };
        Some(q.objective.score(&estimate))
    }

    pub(crate) fn limits(&self) -> Vec<Remark> {
        why::limits(&self.question, &self.ask.held)
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
            PriceSource::Given => crate::sides::GIVEN.into(),
            PriceSource::Unknown => "unknown".into(),
        };
        (price, power)
    }

    /// The kinds of the machines' prices, before the word "prices"; none where a price is not known.
    pub(crate) fn price_kinds(&self) -> Option<Vec<&'static str>> {
        let all: BTreeSet<&str> = self.ask.machines.iter().map(|m| m.price_source.kind()).collect();
        (!all.contains(PriceSource::Unknown.kind())).then(|| all.into_iter().collect())
    }

    /// The lowest and highest price seen for a machine's chip, over the one used; none where the catalogue has no range.
    pub(crate) fn price_range(&self, machine: usize) -> Option<(f64, f64)> {
        let m = &self.ask.machines[machine];
        let PriceSource::Listed(price) = &m.price_source else { return None };
        let (low, high) = price.range()?;
        Some((low.get() / m.usd_s, high.get() / m.usd_s))
    }

    /// The same with the chips of one machine at another price.
    pub(crate) fn priced(&self, machine: usize, factor: f64) -> Self {
        let priced = |space: &Arc<Space>| {
            let mut space = Space::clone(space);
            for (row, entry) in space.rows.iter_mut().zip(&self.made.rows) {
                if entry.of.machine.at == machine {
                    row.usd_s *= factor;
                }
            }
            Arc::new(space)
        };
        Self { space: priced(&self.space), predicted: self.predicted.as_ref().map(priced), ..self.clone() }
    }

    /// The same space with another question asked of it.
    pub(crate) fn asked(&self, question: Question) -> Self {
        Self { question, ..self.clone() }
    }

    /// The best under a question, which may differ from the request's; one thread.
    pub(crate) fn best(&self, question: &Question) -> Result<Option<Ranked>, Cancelled> {
        let q = Question { keep: 1, frontier: None, near: false, ..*question };
        Ok(search_all(&self.space, &q, &self.effort.alone())?.top.into_iter().next())
    }

    /// Why there is no plan.
    pub(crate) fn why_none(&self) -> Remark {
        if let Some(why) =
            self.ask.standings.iter().find(|s| s.bars(self.ask.pretend)).filter(|_| self.not_possible().is_some())
        {
            return why.refusal.as_ref().map_or_else(|| says("no_room"), |r| r.why.clone());
        }
        says(if self.made.fit == 0 { "no_room" } else { "limits_not_met" })
    }

    /// The frontier alone, fastest user first.
    pub(crate) fn frontier(&self) -> Result<Vec<Point>, Cancelled> {
        let q = Question { keep: 1, ..self.question };
        let found = search_all(&self.space, &q, &self.effort)?;
        Ok(found.frontier.iter().map(|r| self.point(r)).collect())
    }

    /// What was measured.
    pub(crate) fn scale(&self) -> &Scale {
        &self.ask.scale
    }

    /// What its widest deployment rests on, without parts.
    pub(crate) fn evidence(&self) -> Option<Evidence> {
        let of = |row: &Entry| self.ask.scale.brief(row.on(), &row.pass().assumed, false);
        let mut widest: Option<Evidence> = None;
        for row in self.kinds() {
            let one = of(row);
            if one.as_ref().is_some_and(|e| widest.as_ref().is_none_or(|w| e.within.throughput > w.within.throughput)) {
                widest = one;
            }
        }
        widest
    }

    /// One row for each chip, engine and number of things assumed.
    fn kinds(&self) -> impl Iterator<Item = &Entry> {
        let mut seen: Vec<(&str, &str, usize)> = Vec::new();
        self.made.rows.iter().filter(move |row| {
            let key = (&*row.on().system.chip.id, &*row.on().engine.id, row.pass().assumed.len());
            let new = !seen.contains(&key);
            if new {
                seen.push(key);
            }
            new
        })
    }

    /// Logarithm of the factor that holds 80 % of measurements of throughput: the widest of the chips and engines asked for.
    pub(crate) fn spread(&self) -> f64 {
        self.kinds().map(|row| self.ask.scale.widths(&row.of.ready).throughput).fold(0.0, f64::max)
    }

    /// A configuration in full.
    pub(crate) fn plan(&self, ranked: &Ranked) -> Plan {
        self.plan_beside(ranked, Some(ranked))
    }
}
