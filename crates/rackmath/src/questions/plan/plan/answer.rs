//! The answer: its cards, and how what the search found becomes them.

use super::layouts;
use super::trial::Simulated;
use super::why::shadows;
use super::{Best, Choice, Entry, Handover, Machine, MeanTraffic, OffloadCard, PartCard, SpareCard, Sure};
use super::{Searched, Steps, Worked};
use crate::desk::evidence::Evidence;
use crate::desk::prelude::*;
use crate::desk::remark::Part;
use crate::estimate::{Breakdown, breakdown};
use crate::frontier::users_and;
use crate::simulate::Percentiles;
use rackmath_theory::layout::domain;
use rackmath_theory::plan::{Estimate, Near, Objective, Ranked};
use rackmath_theory::power::{Busy, drawn};
use rackmath_theory::steady::{Load, Requests, Steady};

/// What to deploy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// The machines' names.
    pub systems: Vec<String>,
    /// Traffic and lengths.
    pub workload: Remark,
    /// What was made best.
    pub objective: Best,
    /// What it has to keep.
    pub limits: Vec<Remark>,
    /// Configurations in the space.
    pub configurations: u64,
    /// Layouts looked at, and those the model fits.
    pub layouts: usize,
    /// Deployments the model fits.
    pub layouts_that_fit: usize,
    /// The best first, then the best of every other deployment; empty when nothing meets the limits.
    pub plans: Vec<Plan>,
    /// The parts of a fleet of unlike machines, as asked for; empty where it is one machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartCard>,
    /// In a sentence.
    pub verdict: Remark,
    /// What would do for less where single chips are paid for and not whole hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_of_host: Option<Remark>,
    /// What cannot be told apart from the best on this evidence, and what would decide it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Remark>,
    /// What would do if a single limit were moved, when nothing meets them all.
    pub relaxations: Vec<Relaxation>,
    /// What moving each limit by a tenth is worth.
    pub shadow_prices: Vec<Shadow>,
    /// Where no deployment is better in both, fastest user first.
    pub frontier: Vec<Point>,
    /// The same as a chart.
    pub figure: Figure,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
    /// What stands in the way, in numbers, when there is no plan.
    pub because: Vec<Remark>,
    /// What the best few do under their traffic, where that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
}

/// One deployment at one load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Plan {
    /// Its number in the space.
    pub index: u64,
    /// The deployment: what tells it from the others.
    pub deployment: Remark,
    /// The machine.
    pub system: String,
    /// The engine.
    pub engine: String,
    /// The layout of an instance, or of one that decodes.
    pub layout: String,
    /// The pool of prompts.
    pub prefill: Option<PoolPlan>,
    /// Weight format.
    pub weights: String,
    /// Cache format.
    pub kv: String,
    /// Most tokens in a pass.
    pub chunk: f64,
    /// Tokens drafted for each step.
    pub drafts: f64,
    /// Requests in flight in one attention group.
    pub concurrency_per_group: f64,
    /// Most requests in flight of a group that the engine is started with.
    pub sequences: f64,
    /// Requests in flight over all replicas.
    pub concurrency: f64,
    /// Time per output token.
    pub tpot_ms: Range,
    /// Time to first token.
    pub ttft_ms: Range,
    /// A whole request.
    pub e2e_ms: Range,
    /// Output tokens per second of a user.
    pub tok_s_per_user: Range,
    /// Output tokens per second and chip of a full replica.
    pub tok_s_per_chip: Range,
    /// Output tokens per second of all.
    pub throughput_tok_s: f64,
    /// Share of what the replicas could serve that is asked of them.
    pub busy: f64,
    /// Replicas that serve.
    pub replicas: u64,
    /// Replicas beside them, and what they are good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare: Option<SpareCard>,
    /// What holds at the pessimistic end, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sure: Option<Sure>,
    /// Chips of one replica.
    pub chips_per_replica: u64,
    /// Chips of all.
    pub chips: u64,
    /// Scale-up domains (nodes or racks) they fill.
    pub domains: u64,
    /// Kilowatts of the chips, without the building.
    pub power_kw: f64,
    /// Joules per output token.
    pub joules_per_token: f64,
    /// What the chips' boards alone draw under this load; of the best, where one pool does everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boards: Option<Boards>,
    /// Dollars per hour.
    pub usd_per_hour: f64,
    /// Whose prices these are: contract, on-demand, spot, an owner's, given; unknown where there is none.
    pub price_kind: String,
    /// Dollars per million output tokens, prompts included.
    pub usd_per_mtok: Range,
    /// Share of the room for caches left free.
    pub headroom: f64,
    /// What most of the step is limited by.
    pub bound_by: String,
    /// The limit that keeps this deployment from doing better, and why it is not the best.
    pub why: Remark,
    /// Where the mean step goes; for the best only.
    pub step: Option<Breakdown>,
    /// Command lines that start it.
    pub launch: Vec<String>,
    /// The same at mean traffic, where the plan is for a peak.
    pub mean_traffic: Option<MeanTraffic>,
    /// What users meet, request by request: of the best where a rate is given or lengths vary, of all under limits on
    /// percentiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentiles: Option<Percentiles>,
    /// What its numbers rest on; nothing for a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What prompts fetch from host memory, where they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<OffloadCard>,
    /// Says that it does not exist, where something is computed that no engine runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pretended: Option<Remark>,
    /// What starts and checks it; for the best only, where asked for.
    pub handover: Option<Handover>,
}

/// Power of the chips' boards while they serve, without host and cooling: it follows how busy memory and arithmetic are.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Boards {
    /// Watts of one chip.
    pub chip_w: f64,
    /// Joules per output token, those of its prompt included.
    pub joules_per_token: f64,
    /// Whether chips of this generation were measured.
    pub measured: bool,
}

/// Chips for prompts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PoolPlan {
    /// The machine.
    pub system: String,
    /// Layout of an instance.
    pub layout: String,
    /// Instances in a replica.
    pub instances: u64,
    /// Instances that decode in a replica.
    pub decode_instances: u64,
    /// Chips of one.
    pub chips: u64,
    /// Most tokens in a pass.
    pub chunk: f64,
}

/// The least move of one limit that makes a plan possible.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Relaxation {
    /// The limit.
    pub limit: String,
    /// As asked.
    pub asked: Remark,
    /// What would do.
    pub needed: Remark,
    /// Needed over asked.
    pub factor: f64,
    /// The deployment that reaches it.
    pub by: Remark,
    /// The same as it was found, until it is simulated.
    #[serde(skip)]
    pub(super) near: Option<Near>,
}

/// What a limit costs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Shadow {
    /// The limit, as it stands.
    pub limit: Remark,
    /// The objective with the limit a tenth tighter, as a change of the best; none when nothing is left.
    pub tighter: Option<f64>,
    /// The same a tenth looser.
    pub looser: Option<f64>,
}

/// A point of the frontier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Its number in the space.
    pub index: u64,
    /// What it is.
    pub deployment: Remark,
    /// Concurrency of a group.
    pub concurrency_per_group: f64,
    /// Output tokens per second of a user.
    pub tok_s_per_user: f64,
    /// Output tokens per second and chip.
    pub tok_s_per_chip: f64,
    /// Dollars per million output tokens of a full replica.
    pub usd_per_mtok: f64,
    /// Time to first token.
    pub ttft_ms: f64,
    /// Time per output token.
    pub tpot_ms: f64,
    /// Chips of a replica.
    pub chips_per_replica: u64,
}

impl Answer {
    /// Tokens of an answer, mean.
    pub(super) fn output(&self) -> f64 {
        match self.workload.with.get("output") {
            Some(Part::Number(n)) => *n,
            _ => 1.0,
        }
    }
}

impl Worked {
    pub(super) fn card(&self, searched: &Searched) -> Answer {
        let (q, found) = (&self.question, &searched.found);
        let mut plans: Vec<Plan> = found.top.iter().map(|r| self.plan_beside(r, found.top.first())).collect();
        if let (Some(plan), Some(best)) = (plans.first_mut(), found.top.first())
            && plan.why.says == "not_held_back"
            && let Some(why) = self.held_by(best, searched.free.as_ref())
        {
            plan.why = why;
        }
        let part_of_host = self.part_of_host(searched);
        if let Some(plan) = plans.first_mut().filter(|p| part_of_host.is_some() && p.why.says == "not_held_back") {
            plan.why = says("held_by_hosts");
        }
        let relaxations = self.relaxations(&searched.near);
        let verdict = self.verdict(&plans, &relaxations);
        let frontier: Vec<Point> = found.frontier.iter().map(|r| self.point(r)).collect();
        Answer {
            model: self.ask.model.name.clone(),
            systems: self.ask.machines.iter().map(|m| m.system.name.clone()).collect(),
            workload: self.workload(),
            objective: self.ask.objective,
            limits: self.limits(),
            configurations: self.space.len(),
            layouts: self.made.layouts,
            layouts_that_fit: self.made.fit,
            shadow_prices: found.top.first().map_or_else(Vec::new, |best| shadows(q, best, &searched.moved)),
            figure: self.figure(&frontier, &plans),
            frontier,
            gaps: crate::sides::gaps(&self.ask.scale, q.objective, &plans),
            relaxations,
            part_of_host,
            verdict,
            plans,
            parts: Vec::new(),
            assumptions: self.assumptions(true),
            because: self.because(searched),
            simulated: None,
        }
    }

    /// A configuration in full, beside the best.
    pub(super) fn plan_beside(&self, r: &Ranked, best: Option<&Ranked>) -> Plan {
        let (choice, e) = (self.chosen(r.index), &self.coming_to(self.likely(r)));
        let (row, on, per_group) = (choice.row, choice.row.on(), choice.per_group);
        let s = self.ask.scale.widths(&row.of.ready);
        let (tpot_ms, ttft_ms) = (Range::of(e.tpot * 1e3, s.tpot), Range::of(e.ttft * 1e3, s.ttft));
        let is_best = best.is_some_and(|b| b.index == r.index);
        let output = self.ask.requests.output;
        Plan {
            index: r.index,
            deployment: self.words(r.index),
            system: on.system.name.clone(),
            engine: on.engine.name.clone(),
            layout: self.layout(&on.layout),
            prefill: choice.prompts.as_ref().map(|p| PoolPlan {
                system: p.row.on().system.name.clone(),
                layout: self.layout(&p.row.on().layout),
                instances: p.instances as u64,
                decode_instances: choice.instances as u64,
                chips: p.row.on().layout.chips(),
                chunk: p.row.chunk,
            }),
            weights: on.formats.linear.to_string(),
            kv: on.kv.to_string(),
            chunk: row.chunk,
            drafts: row.drafts.0,
            concurrency_per_group: per_group,
            sequences: per_group,
            concurrency: per_group * on.groups() * choice.instances * e.replicas,
            tpot_ms,
            ttft_ms,
            e2e_ms: ttft_ms.plus(tpot_ms.times((output - 1.0).max(0.0))),
            tok_s_per_user: tpot_ms.inverse().times(1e3),
            tok_s_per_chip: Range::of(e.rate * output / e.unit_chips, s.throughput),
            throughput_tok_s: e.throughput,
            busy: e.throughput / (e.rate * e.replicas * output),
            replicas: e.replicas as u64,
            spare: self.ask.spare.card(e),
            sure: self.sure(r),
            chips_per_replica: e.unit_chips as u64,
            chips: e.chips as u64,
            domains: domains(&choice, e),
            power_kw: e.watts / 1e3,
            joules_per_token: e.joules,
            boards: if is_best { self.boards(&choice, e) } else { None },
            usd_per_hour: e.usd_per_hour,
            price_kind: choice.price_kind(),
            usd_per_mtok: Range::of(e.usd_per_mtok, s.throughput),
            headroom: e.headroom,
            bound_by: e.binding.name().into(),
            why: self.why(r, best),
            step: is_best.then(|| self.step(&choice)),
            launch: self.launch(&choice),
            mean_traffic: self.at_mean(r),
            percentiles: None,
            offload: self.offload(&choice),
            evidence: self.ask.scale.card(&row.of.ready, false, Some(&row.of.machine.price_source)),
            pretended: row.of.pretended.clone().or_else(|| choice.first().of.pretended.clone()),
            handover: if is_best && row.of.pretended.is_none() && choice.first().of.pretended.is_none() {
                self.handover(&choice, e)
            } else {
                None
            },
        }
    }

    /// The mean step of a configuration, worked out again with all its parts.
    pub(super) fn step(&self, choice: &Choice) -> Breakdown {
        breakdown(&self.state(choice))
    }

    fn state(&self, choice: &Choice) -> Steady {
        let row = choice.row;
        let own = self.ask.fetching(row.offload);
        let cached = if choice.prompts.is_some() { 1.0 } else { own.cached };
        let requests = Requests { cached, drafts: row.drafts.0, accepted: row.drafts.1, ..own };
        row.ready().steady(row.room, &requests, Load::even(choice.per_group))
    }

    fn boards(&self, choice: &Choice, e: &Estimate) -> Option<Boards> {
        let (chip, draw) = (&choice.row.on().system.chip, &self.ask.draw);
        let busy = Busy::during(&self.state(choice).mean_pass());
        let watts = drawn(draw, chip, busy).filter(|_| choice.prompts.is_none())?.get();
        let joules = watts * e.unit_chips / (e.rate * self.ask.requests.output);
        Some(Boards { chip_w: watts, joules_per_token: joules, measured: draw.measured(chip).is_some() })
    }

    pub(super) fn point(&self, r: &Ranked) -> Point {
        let e = &r.estimate;
        let tokens = e.rate * self.ask.requests.output;
        Point {
            index: r.index,
            deployment: self.words(r.index),
            concurrency_per_group: self.chosen(r.index).per_group,
            tok_s_per_user: 1.0 / e.tpot,
            tok_s_per_chip: tokens / e.unit_chips,
            usd_per_mtok: e.unit_usd_s / tokens * 1e6,
            ttft_ms: e.ttft * 1e3,
            tpot_ms: e.tpot * 1e3,
            chips_per_replica: e.unit_chips as u64,
        }
    }

    fn figure(&self, frontier: &[Point], plans: &[Plan]) -> Figure {
        let points = frontier.iter().rev().map(|p| (p.tok_s_per_user, p.tok_s_per_chip));
        let names: Vec<&str> = self.ask.machines.iter().map(|m| m.system.name.as_str()).collect();
        let title = says("users_and_chips").with("model", self.model()).with("on", names);
        let series = (frontier.len() > 1).then(|| Series::new("frontier", Role::Envelope, points));
        Figure::of(title, self.workload(), users_and(false), series).marked(plans.first().map(mark))
    }

    /// What the numbers assume; prices and power of the machines are left out where they stand elsewhere.
    pub(crate) fn assumptions(&self, machines: bool) -> Vec<Remark> {
        if self.not_possible().is_some() {
            return Vec::new();
        }
        let any = self.ask.degrees == Steps::Any;
        let mut all = self.supported();
        all.extend([
            says("steady_means"),
            says("dollars_on_output"),
            says("degrees_tried").with("any", any).with("powers", !any),
        ]);
        all.extend(layouts::fixed_words(&self.ask.fixed, self.ask.batch));
        if self.ask.machines.iter().any(|m| m.bought_by > 1) {
            all.push(says("whole_hosts"));
        }
        if !self.ask.cuts.is_empty() {
            all.push(says("cuts_tried").with("cuts", self.ask.cuts.clone()));
        }
        if self.ask.machines.iter().any(|m| m.chips != self.ask.machines[0].chips || m.prompts_only) {
            let offer = |m: &Arc<Machine>| says("chips_of").with("chips", m.chips).with("chip", &m.system.chip.id);
            all.push(says("on_offer").with("offers", self.ask.machines.iter().map(offer).collect::<Vec<_>>()));
        }
        if self.ask.split {
            all.push(says("cache_sent"));
        }
        all.extend(self.ask.spare.assumes());
        all.extend(self.ask.sure.map(|share| says("sure_of").with("share", share)));
        all.extend(self.fetching());
        all.extend(self.ask.workload.notes.iter().cloned());
        for m in self.ask.machines.iter().filter(|_| machines) {
            let (name, source) = (&m.system.name, m.price_source.remark());
            all.push(says("price_on").with("on", name).with("price", m.usd_s).with("source", source));
            if m.watts > 0.0 {
                let all_in = m.system.chip.power.all_in.is_some();
                all.push(says(if all_in { "power_all_in" } else { "power_of_chip" }).with("power", m.watts));
            }
        }
        for note in self.made.rows.iter().flat_map(|row| &row.pass().assumed).map(crate::estimate::assumption) {
            if all.len() < 16 && !all.contains(&note) {
                all.push(note);
            }
        }
        if let Some(engine) =
            self.ask.engines.first().filter(|e| !e.ideal && self.question.objective != Objective::Chips)
        {
            let _ = engine;
            let s = self.made.rows.first().map(|row| self.ask.scale.widths(&row.of.ready)).unwrap_or_default();
            let factor = says("intervals_hold").with("tpot", float::exp(s.tpot)).with("ttft", float::exp(s.ttft));
            all.push(factor.with("throughput", float::exp(s.throughput)));
        }
        if let Some(s) = &self.ask.scenario {
            let named = says("named_workload").with("id", &s.id).with("about", &s.about);
            all.push(named.with("source", &s.source).with("as_of", &s.as_of));
        }
        all.extend(self.ask.model.notes.iter().cloned().map(Remark::from));
        all
    }
}

/// A plan on the chart: full where its times are those of full replicas, else with what it serves.
pub(super) fn mark(p: &Plan) -> Mark {
    let load = if p.percentiles.is_some() { p.busy } else { 1.0 };
    Mark::at(p.tok_s_per_user.value, p.tok_s_per_chip.value * load, "recommended")
}

/// Scale-up domains that all replicas fill; those of two machines are not shared.
pub(super) fn domains(choice: &Choice, e: &Estimate) -> u64 {
    let filled = |row: &Entry, chips: f64| (chips / domain(&row.on().system) as f64).ceil();
    let used = (e.replicas + e.standby) * e.unit_chips;
    match &choice.prompts {
        Some(p) if p.row.of.machine.at != choice.row.of.machine.at => {
            let prompts = p.instances * p.row.on().chips() * (e.replicas + e.standby);
            (filled(p.row, prompts) + filled(choice.row, used - prompts)) as u64
        }
        _ => filled(choice.row, used) as u64,
    }
}
