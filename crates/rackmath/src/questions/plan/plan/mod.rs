//! What to deploy: the best of every layout, format, engine, chunk, speculation, concurrency and pair of pools, under limits.
//!
//! The question goes through the chapters `pass` and `serving`, which every deployment is asked once, and `plan`, which
//! searches the numbers. The answer does not depend on the number of threads.

mod answer;
mod demand;
mod flags;
mod fleet;
mod handover;
mod held;
mod kept;
mod layouts;
mod offload;
mod prepare;
mod search;
mod spare;
mod sure;
pub mod sweep;
#[cfg(test)]
mod tests;
mod trial;
mod why;
mod worked;

pub use answer::{Answer, Boards, Plan, Point, PoolPlan, Relaxation, Shadow};
pub use demand::{Draws, MeanTraffic};
pub use fleet::PartCard;
pub use handover::{Command, File, Handover, HandoverRequest};
pub(crate) use kept::Running;
pub use kept::{Holds, Kept};
pub use layouts::Steps;
pub use offload::OffloadCard;
pub(crate) use prepare::in_order;
pub use search::{Partial, merge, shard};
pub use spare::SpareCard;
pub use sure::Sure;
pub use trial::{Measured, Needed, Simulated, Trial};
pub(crate) use worked::Worked;

use crate::desk::check::up_to;
use crate::desk::evidence::Scale;
use crate::desk::host::{Host, host};
use crate::desk::prelude::*;
use crate::extent::Extent;
use crate::layout::DegreesRequest;
use crate::setting::{LAYERED, PriceSource, checkpoint, common_basis, find, formats, with_price};
use crate::support::Standing;
use offload::Fetch;
use prepare::Entry;
use rackmath_spec::draw::PowerDraw;
use rackmath_spec::engine::Engine;
use rackmath_spec::model::Formats;
use rackmath_spec::{Model, Scenario, System};
use rackmath_theory::deployment::Links;
use rackmath_theory::plan::{Bound, Limits, Objective, Question, Space, Traffic, Yield};
use rackmath_theory::steady::{Requests, yielded};
use search::Searched;
use serde_json::{Map, Value};
use worked::Choice;

/// A model, machines, traffic and limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine; several machines with commas between them to choose from, or with + to share the traffic. Its chips
    /// are those of each machine.
    #[schemars(extend("x-inner" = {"on": {"x-flag": "on system hardware decode-on"}, "chips": {"x-most": [1024, "layouts of a search"]}}))]
    pub setting: Setting,
    /// Engines to choose from.
    #[schemars(extend("x-flag" = "engine backend", "x-most" = [4, "engines searched"]))]
    #[educe(Default = vec!["vllm".into()])]
    pub engines: Vec<String>,
    /// A command line or flags of a server: its engine, formats, chunk, sequences, share of memory and degrees are taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-hyphen" = true, "x-whole" = true))]
    pub flags: Option<String>,
    /// Weight formats to choose from: `auto` is the checkpoint's.
    #[schemars(extend("x-flag" = "quantization -q dtype weights", "x-most" = [4, "formats searched"]))]
    #[educe(Default = vec!["auto".into()])]
    pub weights: Vec<String>,
    /// Cache formats to choose from: `auto` is the model's, or the engine's with narrow weights.
    #[schemars(extend("x-flag" = "kv-cache-dtype kv", "x-most" = [4, "formats searched"]))]
    #[educe(Default = vec!["auto".into()])]
    pub kvs: Vec<String>,
    /// Most tokens in a pass, to choose from; the engine's own when empty.
    #[schemars(extend("x-flag" = "chunks max-num-batched-tokens", "x-none" = "the engine's", "x-most" = [8, "chunk sizes searched"]))]
    pub chunks: Vec<f64>,
    /// Drafts for each step to choose from; other than 0 only with an acceptance.
    #[schemars(extend("x-most" = [8, "draft lengths searched"]))]
    #[educe(Default = vec![0.0])]
    pub drafts: Vec<f64>,
    /// Chance that a draft is accepted when all before it were.
    #[schemars(extend("x-unit" = "share"))]
    pub acceptance: Option<f64>,
    /// Whether prompts may have chips of their own; not with --aggregated.
    #[schemars(extend("x-flag" = "aggregated"))]
    #[educe(Default = true)]
    pub disaggregated: bool,
    /// A named workload: what it says holds unless given here.
    pub scenario: Option<String>,
    /// Tokens of a prompt, mean; 1,000 unless given.
    #[schemars(extend("x-flag" = "isl input-len"))]
    pub isl: Option<f64>,
    /// Tokens of an answer, mean; 1,000 unless given.
    #[schemars(extend("x-flag" = "osl output-len"))]
    pub osl: Option<f64>,
    /// Share of a prompt found in the prefix cache.
    #[schemars(extend("x-unit" = "share"))]
    pub prefix_hit: Option<f64>,
    /// Requests per second; as much as the chips serve when absent.
    #[schemars(extend("x-old" = "request-rate"))]
    pub rate_per_s: Option<f64>,
    /// Users, instead of a rate: each asks again some time after the last token of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<f64>,
    /// Time a user takes between an answer and the next request; none unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_s: Option<f64>,
    /// Time to first token, at most: its mean as `1s`, a percentile as `p90=1s`.
    #[schemars(extend("x-flag" = "ttft ttft-slo"))]
    pub ttft_ms: Option<AtMost>,
    /// Time per output token, at most: its mean as `30ms`, a percentile as `p99=50ms`.
    #[schemars(extend("x-flag" = "tpot tpot-slo itl"))]
    pub tpot_ms: Option<AtMost>,
    /// Time of a whole request, at most: its mean or a percentile.
    pub e2e_ms: Option<AtMost>,
    /// Output tokens per second of one user, at least.
    #[serde(alias = "user_tok_s")]
    #[schemars(extend("x-old" = "user"))]
    pub speed_tok_s: Option<f64>,
    /// Output tokens per second of all, at least.
    pub throughput_tok_s: Option<f64>,
    /// Share of the memory for caches left free, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "share"))]
    pub cache_headroom: Option<f64>,
    /// Share of the load that is kept free: more replicas than the rate alone needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "x-unit" = "share",
        "x-note" = "is now the share of load kept free; that of cache memory is --cache-headroom"
    ))]
    pub headroom: Option<f64>,
    /// Whole hosts are paid for, as far as the chips on offer go; not with --no-whole-hosts, which counts single chips.
    #[schemars(extend("x-flag" = "no-whole-hosts"))]
    #[educe(Default = true)]
    pub whole_hosts: bool,
    /// Dollars per million output tokens, at most, such as 2: the best is then the fastest for a user, not the cheapest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "dollars"))]
    pub cost_usd_per_mtok: Option<f64>,
    /// Dollars per hour, at most.
    pub budget_usd_per_hour: Option<f64>,
    /// Power at most: of chips with their share of host and cooling where that is known, else their design power.
    pub power_w: Option<f64>,
    /// What is best.
    #[schemars(extend("x-flag" = "objective minimize"))]
    #[educe(Default = Best::Cost)]
    pub objective: Best,
    /// Deployments to show.
    #[schemars(extend("x-most" = [100, "plans kept"]))]
    #[educe(Default = 5)]
    pub top: u64,
    /// Lengths that vary and traffic that swells.
    pub draws: Draws,
    /// Commands, files and load tests for the best plan, where asked for.
    pub handover: Option<HandoverRequest>,
    /// Machines that may compute prompts for those of the setting, with commas between them.
    #[schemars(extend("x-file" = "machine"))]
    pub prefill_on: Option<String>,
    /// Degrees of parallelism to try.
    #[educe(Default = Steps::Any)]
    pub degrees: Steps,
    /// Share of a prompt found in host memory, beyond what is found on the chips: a choice of the plan when given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "share"))]
    pub offload_hit: Option<f64>,
    /// Parts of the layout that are fixed, of every instance.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("x-inner" = {"cp": {"x-flag": false}, "redundant": {"x-flag": false}, "dcp": {"x-flag": false}}))]
    pub fixed: DegreesRequest,
    /// Requests in flight in one attention group, instead of the best number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flag" = "batch -b"))]
    pub batch: Option<u64>,
    /// How sure the limits are to hold: at 90% they hold at the end of the intervals that 90 % of measurements stay below.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "share"))]
    pub sure: Option<f64>,
    /// Replicas that stand by, beside those that the traffic needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare: Option<u64>,
    /// Share of the time that all needed replicas are up, such as 99.9%: as many stand by as that takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "share"))]
    pub availability: Option<f64>,
    /// Failures of a chip in a year, where the catalogue's are not meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-none" = "the catalogue's"))]
    pub failures_per_chip_year: Option<f64>,
    /// Time until a failed replica serves again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-none" = "the catalogue's"))]
    pub repair_hours: Option<f64>,
    /// Sizes of decode context parallel to try beside 1, with vLLM: chips that share the tokens of a cache instead of each
    /// keeping a copy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-flag" = "dcp decode-context-parallel-size"))]
    pub dcp: Vec<u64>,
    /// Simulates the best few under the traffic, request by request, and says what holds at p99.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub simulate: bool,
    /// Requests of each simulated run; 4,000 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = [100_000, "requests simulated"]))]
    pub simulate_requests: Option<u64>,
    /// Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pretend: bool,
    /// Seed of all that is drawn in them; 42 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulate_seed: Option<u64>,
}

/// What a plan is chosen by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Best {
    /// Fewest dollars per output token.
    #[default]
    Cost,
    /// Fewest chips.
    Chips,
    /// Fewest joules per output token.
    Energy,
    /// Shortest whole requests.
    Latency,
    /// Most output tokens a second.
    Throughput,
    /// The same: a plan's requests meet the limits in the mean, so that all of its throughput is goodput.
    Goodput,
    /// Most output tokens a second of one user.
    Speed,
}

impl Best {
    fn objective(self) -> Objective {
        match self {
            Self::Cost => Objective::Cost,
            Self::Chips => Objective::Chips,
            Self::Energy => Objective::Energy,
            Self::Latency => Objective::Latency,
            Self::Throughput | Self::Goodput => Objective::Throughput,
            Self::Speed => Objective::Speed,
        }
    }
}

#[cfg(test)]
impl Request {
    /// A model on a machine, the rest as usual.
    pub(crate) fn of(model: &str, on: &str) -> Self {
        Self { setting: Setting { model: model.into(), on: on.into(), ..Setting::default() }, ..Self::default() }
    }
}

/// One machine to choose.
struct Machine {
    at: usize,
    system: Arc<System>,
    links: Links,
    chips: u64,
    /// Chips that are bought together.
    bought_by: u64,
    usd_s: f64,
    price_source: PriceSource,
    watts: f64,
    prompts_only: bool,
    /// What a cloud calls it.
    instance: Option<String>,
    /// Memory of its hosts, where caches may be kept there.
    host: Option<Host>,
}

/// A request with names resolved and numbers checked.
struct Ask {
    model: Arc<Model>,
    machines: Vec<Arc<Machine>>,
    formats: Vec<Formats>,
    kvs: Vec<Option<Dtype>>,
    engines: Vec<Arc<Engine>>,
    chunks: Vec<f64>,
    drafts: Vec<(f64, f64)>,
    split: bool,
    requests: Requests,
    workload: demand::Workload,
    scenario: Option<Scenario>,
    degrees: Steps,
    cuts: Vec<u64>,
    question: Question,
    handover: Option<HandoverRequest>,
    simulate: trial::Asked,
    /// Limits on percentiles of the first token, of a token and of the whole.
    held: [Option<AtMost>; 3],
    lists: handover::Lists,
    objective: Best,
    /// Share of a prompt found in host memory and nowhere else.
    offload: Option<f64>,
    /// Whether each engine runs each format on each machine, in the order of the kinds.
    standings: Vec<Standing>,
    pretend: bool,
    fixed: DegreesRequest,
    batch: Option<f64>,
    sure: Option<f64>,
    spare: spare::Asked,
    /// What was measured.
    scale: Scale,
    draw: Arc<PowerDraw>,
}

/// Answers on so many threads; the answer is the same.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let effort = effort.into();
    if request.setting.on.contains('+') {
        return fleet::answer(catalog, request, &effort);
    }
    let worked = Worked::any(catalog, request, &effort)?;
    worked.simulate(worked.met(worked.answer()?)?)
}

/// What a plan would have to look through.
pub fn extent(catalog: &Catalog, request: &Request) -> Result<Extent, Error> {
    if request.setting.on.contains('+') {
        let parts = fleet::parts(catalog, request)?;
        return crate::extent::sum(parts.iter().map(|(_, part)| extent(catalog, part)));
    }
    let said = flags::obeyed(catalog, request)?;
    let ask = Ask::new(catalog, said.as_ref().map_or(request, |(asked, _)| asked))?;
    let hosts = search::by_dollars(&ask.question) && ask.machines.iter().any(|m| m.bought_by > 1);
    let moved = search::moves(&ask.question).len() as f64 + f64::from(u8::from(hosts));
    let one = prepare::extent(&ask)?;
    // Where nothing fits there is nothing to simulate.
    let (runs, each) = if one.prepared > 0.0 { ask.runs() } else { (0.0, false) };
    // Nobody simulates more deployments than there are.
    let simulated = runs.min(trial::RUNS as f64 * (one.layouts + one.weighed)) * ask.simulate.requests as f64;
    // Decodes of one group leap from event to event; groups that share experts go step by step. Many chips of a domain are for those, and a
    // latent cache, which is not cut along heads, asks for them on several hosts.
    let apart = |m: &Arc<Machine>| m.system.racked() || m.system.n_chips > 8;
    let latent = ask.model.shape().is_some_and(|shape| shape.latent_layers() > 0);
    let rack = ask.machines.iter().any(|m| if latent { apart(m) } else { m.system.racked() });
    let steps = each && rack && ask.model.shape().is_some_and(|shape| shape.moe().is_some());
    let tokens = if steps { simulated * ask.requests.output } else { 0.0 };
    Ok(Extent { weighed: one.weighed * (1.0 + moved), simulated, tokens, ..one })
}

/// The space of a request and what is asked of it: for sweeps in parts, each a range of [`Space::families`].
pub fn space(catalog: &Catalog, request: &Request, threads: usize) -> Result<(Space, Question), Error> {
    let worked = Worked::any(catalog, request, &threads.into())?;
    Ok((Arc::unwrap_or_clone(worked.space), worked.question))
}

/// Makes a saved request mean what it meant to who saved it, in the first format or a later one; whether that changed it.
pub(crate) fn as_before(request: &mut Map<String, Value>, first: bool) -> bool {
    // The share of cache memory kept free had another name.
    let renamed = if first { request.remove("headroom") } else { None };
    // Chips were bought one by one.
    let bought = (!request.contains_key("whole_hosts")).then_some(Value::Bool(false));
    let changed = renamed.is_some() || bought.is_some();
    request.extend(renamed.map(|share| ("cache_headroom".to_owned(), share)));
    request.extend(bought.map(|word| ("whole_hosts".to_owned(), word)));
    changed
}

/// Larger instances than this are not tried.
const LARGEST: u64 = 1024;

impl Ask {
    fn new(catalog: &Catalog, r: &Request) -> Result<Self, Error> {
        // The cheapest under a limit on cost is the cheapest without one: what is asked for is the fastest. And a fleet for
        // users is paid by the hour: per token, a quick one would look cheap because its users ask more.
        let (best, objective) = match r.objective {
            Best::Cost if r.cost_usd_per_mtok.is_some() => (Best::Speed, Objective::Speed),
            Best::Cost if r.users.is_some() => (Best::Cost, Objective::Hourly),
            other => (other, other.objective()),
        };
        let machines = machines(catalog, r)?;
        let model = checkpoint(catalog, &r.setting.model)?;
        refuse_if(model.shape().is_none(), "model", format!("\"{}\"", model.id), LAYERED)?;
        if let Some(n) = r.handover.as_ref().and_then(|h| h.chips_per_host).filter(|n| !(1..=1024).contains(n)) {
            return Err(Error::value("chips_per_host", n, "1 to 1024"));
        }
        let in_dollars = matches!(objective, Objective::Cost | Objective::Hourly);
        let needs_price = in_dollars || r.budget_usd_per_hour.is_some() || r.cost_usd_per_mtok.is_some();
        if let Some(m) = machines.iter().find(|m| needs_price && m.price_source == PriceSource::Unknown) {
            let chip = &m.system.chip.id;
            return Err(Error::value("price", format!("none for {chip}"), "{price}, or {objective} chips"));
        }
        let needs_watts = objective == Objective::Energy || r.power_w.is_some();
        if let Some(m) = machines.iter().find(|m| needs_watts && m.watts <= 0.0) {
            let chip = &m.system.chip.id;
            return Err(Error::value("power", format!("none known for {chip}"), "another chip or objective"));
        }
        let all = machines.iter().map(|m| m.chips).max().unwrap_or(1);
        let scenario = r.scenario.as_deref().map(|name| catalog.scenario(name)).transpose()?;
        let workload = demand::Workload::new(r, scenario.as_deref())?;
        let traffic = match workload.peak_rate() {
            Some(rate) => Traffic::Rate(rate),
            None if let Some((users, think)) = workload.users => Traffic::Users { users, think },
            None if objective == Objective::Chips => Traffic::One,
            None if r.budget_usd_per_hour.is_none() && r.power_w.is_none() => Traffic::Fill(all as f64),
            // What the budget and the power allow, not what the chips would: all of them may be too many.
            None => Traffic::Within {
                chips: all as f64,
                usd_s: r.budget_usd_per_hour.map_or(f64::INFINITY, |b| b / 3600.0),
                watts: r.power_w.unwrap_or(f64::INFINITY),
            },
        };
        let question = Question {
            output: workload.requests.output,
            traffic,
            limits: limits(r)?.with(Bound::Chips, Some(all as f64)),
            objective,
            keep: r.top.clamp(1, 100) as usize,
            frontier: Some(if machines.len() > 1 && machines.iter().all(|m| m.price_source != PriceSource::Unknown) {
                Yield::PerDollar
            } else {
                Yield::PerChip
            }),
            near: false,
        };
        let engines: Vec<Arc<Engine>> =
            r.engines.iter().map(|e| Ok(catalog.engine(e)?.0)).collect::<Result<_, Error>>()?;
        let mut ask = Self {
            formats: r.weights.iter().map(|w| formats(&model, Some(w.as_str()))).collect::<Result<_, _>>()?,
            kvs: r.kvs.iter().map(|w| kv_word(w)).collect::<Result<_, _>>()?,
            lists: handover::lists(catalog, engines.iter().map(|e| e.family.as_str()), r.handover.is_some())?,
            engines,
            chunks: r.chunks.iter().map(|c| Ok(tokens("chunks", *c, 64.0)?.get())).collect::<Result<_, Error>>()?,
            drafts: r.drafts.iter().map(|d| drafts(*d, r.acceptance)).collect::<Result<_, _>>()?,
            split: r.disaggregated,
            objective: best,
            offload: offload_hit(r, workload.requests.cached)?,
            requests: workload.requests,
            workload,
            degrees: r.degrees,
            cuts: layouts::cuts(&r.dcp)?,
            scenario: scenario.map(Arc::unwrap_or_clone),
            model,
            machines,
            question,
            handover: r.handover.clone(),
            simulate: trial::Asked::new(r)?,
            held: percentiles(r),
            standings: Vec::new(),
            pretend: r.pretend,
            fixed: layouts::fixed(&r.fixed)?,
            batch: r.batch.map(|n| up_to("batch", n, 1_000_000)).transpose()?.map(|n| n as f64),
            sure: sure::asked(r)?,
            spare: spare::Asked::new(catalog, r)?,
            scale: Scale::of(catalog)?,
            draw: catalog.power_draw()?,
        };
        ask.standings = prepare::standings(catalog, &ask, r)?;
        Ok(ask)
    }
}

fn machines(catalog: &Catalog, r: &Request) -> Result<Vec<Arc<Machine>>, Error> {
    let basis = like_with_like(catalog, r)?;
    let host_of = r.handover.as_ref().and_then(|h| h.chips_per_host);
    let one = |(at, (on, prompts_only)): (usize, (&str, bool))| {
        let none = on.split_once(['x', 'X']).is_some_and(|(n, _)| n.parse() == Ok(0));
        refuse_if(none, "chips", format!("0 in \"{on}\""), "at least one chip")?;
        let setting = Setting { on: on.into(), basis: basis.clone(), weights: None, kv: None, ..r.setting.clone() };
        let resolved = resolve(catalog, &setting)?;
        let system = resolved.system.clone();
        let power = &system.chip.power;
        let watts = power.all_in.as_ref().or(power.tdp.as_ref()).map_or(0.0, |w| w.value.get());
        Ok(Arc::new(Machine {
            at,
            links: resolved.links.clone(),
            chips: system.n_chips,
            bought_by: match host_of.or(system.rented) {
                _ if !r.whole_hosts => 1,
                Some(n) => n,
                None => system.chip.chips_per_host(),
            },
            instance: instance(on, &system),
            usd_s: resolved.chip_price.get(),
            price_source: resolved.price_source.clone(),
            watts,
            host: if r.offload_hit.is_some() { host(catalog, &system)? } else { None },
            system,
            prompts_only,
        }))
    };
    names(r).enumerate().map(one).collect()
}

/// The name by which a cloud rents a machine, where that is not the catalogue's own: the price of its chip is then not its price.
fn instance(on: &str, system: &System) -> Option<String> {
    let name = with_price(on).0;
    let ours = name.contains(&system.id) || name.contains(&system.chip.id);
    (system.rented.is_some() && !ours).then(|| name.to_owned())
}

/// The machines by name, and whether they are for prompts alone.
fn names(r: &Request) -> impl Iterator<Item = (&str, bool)> {
    let prompts = r.prefill_on.as_deref().filter(|_| r.disaggregated);
    let own = r.setting.on.split(',').map(|on| (on.trim(), false));
    own.chain(prompts.into_iter().flat_map(|p| p.split(',')).map(|on| (on.trim(), true)))
}

/// The kind of price of all machines, where it is not asked for: one that all of them have. Where there is none, machines
/// are not ranked by dollars.
fn like_with_like(catalog: &Catalog, r: &Request) -> Result<Option<String>, Error> {
    let all: Vec<&str> = names(r).map(|(on, _)| on).filter(|on| !on.contains('+')).collect();
    if r.setting.basis.is_some() || r.setting.price_usd_per_chip_hour.is_some() || all.len() < 2 {
        return Ok(r.setting.basis.clone());
    }
    if let Some(basis) = common_basis(catalog, &all)? {
        return Ok(Some(basis.to_string()));
    }
    let mut kinds = Vec::new();
    for on in all {
        let source = find(catalog, &Setting { on: on.into(), weights: None, kv: None, ..r.setting.clone() })?;
        match source.price_source {
            PriceSource::Listed(price) => kinds.push(format!("{} of {on}", price.basis.words())),
            PriceSource::Given => {}
            // Who has no price at all is refused by name where dollars are asked for.
            PriceSource::Unknown => return Ok(None),
        }
    }
    let dollars = r.objective == Best::Cost || r.budget_usd_per_hour.is_some() || r.cost_usd_per_mtok.is_some();
    let given = format!("prices of different kinds: {}", kinds.join(", "));
    let expected = "machines with one kind of price, a price behind each such as 8xh100@2.10, or {objective} chips";
    refuse_if(dollars, "setting.basis", given, expected)?;
    Ok(None)
}

fn kv_word(word: &str) -> Result<Option<Dtype>, Error> {
    if word == "auto" { Ok(None) } else { Ok(Some(word.parse::<Dtype>()?)) }
}

fn drafts(drafts: f64, acceptance: Option<f64>) -> Result<(f64, f64), Error> {
    refuse_if(!(0.0..=64.0).contains(&drafts), "drafts", drafts, "0 to 64 tokens")?;
    match acceptance {
        _ if drafts == 0.0 => Ok((0.0, 1.0)),
        Some(alpha) => Ok((drafts, yielded(drafts, share("acceptance", alpha)?))),
        None => Err(Error::value("drafts", drafts, "an acceptance with them, as measured")),
    }
}

/// What host memory adds to a share already cached; none where it adds nothing.
fn offload_hit(r: &Request, cached: f64) -> Result<Option<f64>, Error> {
    let hit = r.offload_hit.map(|hit| share("offload_hit", hit)).transpose()?;
    Ok(hit.map(|hit| hit.min(1.0 - cached)).filter(|hit| *hit > 0.0))
}

fn share(field: &'static str, value: f64) -> Result<f64, Error> {
    Fraction::checked(value).map(Fraction::get).ok_or_else(|| Error::value(field, value, "a share from 0 to 1"))
}

/// A share as it is typed, without the last bits of its quotient.
fn as_percent(share: f64) -> String {
    format!("{}%", (share * 1e10).round() / 1e8)
}

fn positive(field: &'static str, value: f64) -> Result<f64, Error> {
    if value > 0.0 && value <= 1e12 { Ok(value) } else { Err(Error::value(field, value, "above 0, at most 1e12")) }
}

/// Limits that are on percentiles: the search takes them for limits on means, and only the simulator can tell.
fn percentiles(r: &Request) -> [Option<AtMost>; 3] {
    [r.ttft_ms, r.tpot_ms, r.e2e_ms].map(|limit| limit.filter(|l| l.percentile.is_some()))
}

fn limits(r: &Request) -> Result<Limits, Error> {
    let some = |field, value: Option<f64>| value.map(|v| positive(field, v)).transpose();
    let ms = |field, value: Option<AtMost>| Ok::<_, Error>(some(field, value.map(|l| l.ms))?.map(|v| v / 1e3));
    let user = some("speed_tok_s", r.speed_tok_s)?.map(f64::recip);
    let tpot = match (ms("tpot_ms", r.tpot_ms)?, user) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let headroom = r.cache_headroom.map(|h| share("cache_headroom", h)).transpose()?;
    Ok(Limits::default()
        .with(Bound::Ttft, ms("ttft_ms", r.ttft_ms)?)
        .with(Bound::Tpot, tpot)
        .with(Bound::E2e, ms("e2e_ms", r.e2e_ms)?)
        .with(Bound::Throughput, some("throughput_tok_s", r.throughput_tok_s)?)
        .with(Bound::Headroom, headroom)
        .with(Bound::UsdPerHour, some("budget_usd_per_hour", r.budget_usd_per_hour)?)
        .with(Bound::UsdPerMtok, some("cost_usd_per_mtok", r.cost_usd_per_mtok)?)
        .with(Bound::Watts, some("power_w", r.power_w)?))
}
