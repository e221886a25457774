//! What one replica carries, for whoever scales their number: the cache it holds, the work it does, and from where on another
//! is to be started.
//!
//! $$ k_1 = R\,\bar c \qquad k_2 = \min(k^*, R) \qquad h = \frac{1}{1 + g\,t_s} \qquad n_{run} = \lfloor h\,k_2 \rfloor
//!    \qquad n_{wait} = \lfloor h\,\mu\,(\tau - t_1) \rfloor $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | k_1 | `cache_tokens` | tokens | what the cache holds: R requests of their mean length while they are there |
//! | R, c̄ | room, context | 1, tokens | sequences that memory and the engine hold, tokens each of them holds on average |
//! | k* | [`crate::estimate::Solved`] | 1 | requests in flight up to which every number meets the targets |
//! | k_2 | `running` | 1 | those of them that run |
//! | μ | `prompts_per_s` | 1/s | prompts that are computed in a second when nothing else is |
//! | τ, t_1 | ttft | s | the target of the first token, and what it takes without waiting |
//! | g, t_s | growth, startup | 1/s, s | growth of the load, as a share of it, and the time until a new replica serves |
//! | h | `kept` | 1 | the load at which a replica must be ordered so that those there are within their targets until it serves |
//!
//! Thresholds are of one replica: an autoscaler divides what it sees by the replicas it has. Assumes: the load grows evenly
//! while a replica starts, and a router spreads it evenly. Ignores: that requests differ. Source: ours; Little's law; the split
//! into what is held and what is computed is that of llm-d's autoscaler (llm-d-incubation/workload-variant-autoscaler).

mod files;
mod yaml;

use crate::desk::prelude::*;
use crate::estimate::work::Case;
use crate::estimate::{self, Solved, Unknown};
use crate::plan::File;
use rackmath_theory::pools::Loading;
use rackmath_theory::steady::Requests;

/// A replica, its requests, and how replicas come and go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The replica and its requests with their targets; its load is what is looked for.
    #[schemars(extend("x-inner" = {
        "concurrency": { "x-flag": false }, "rate_per_s": { "x-flag": false }, "max_load": { "x-flag": false },
        "users": { "x-flag": false }, "think_s": { "x-flag": false }, "solve": { "x-flag": false }, "changes": { "x-flag": false }
    }))]
    pub estimate: estimate::Request,
    /// Time until a new replica serves.
    #[educe(Default = 90.0)]
    pub startup_s: f64,
    /// How much the load grows in a minute, as a share of it, such as 20%.
    #[schemars(extend("x-flag" = "growth growth-per-minute"))]
    #[educe(Default = 0.2)]
    pub growth_per_min: f64,
    /// Fewest replicas.
    #[educe(Default = 1)]
    pub min_replicas: u64,
    /// Most replicas.
    #[educe(Default = 10)]
    pub max_replicas: u64,
    /// Name of the Deployment that is scaled; the model's unless given. Pools of their own end with -prefill and -decode.
    pub name: Option<String>,
    /// Its namespace.
    #[educe(Default = "default")]
    pub namespace: String,
    /// Address of Prometheus.
    #[schemars(extend("x-flag" = "prometheus"))]
    #[educe(Default = "http://prometheus-operated.monitoring.svc:9090")]
    pub prometheus: String,
}

/// What a replica carries, and from where on another is to be started.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub system: String,
    /// The engine's name.
    pub engine: String,
    /// The layout of a replica in short.
    pub layout: String,
    /// Chips of a replica, both pools together.
    pub chips: u64,
    /// Tokens of a prompt.
    pub isl: f64,
    /// Tokens of an answer.
    pub osl: f64,
    /// In a sentence.
    pub verdict: Remark,
    /// What the replica carries; nothing where it carries nothing.
    pub capacity: Option<Capacity>,
    /// Where another replica is to be started: of the pool of prompts first, where it has chips of its own.
    pub thresholds: Vec<Threshold>,
    /// The largest concurrency that meets the targets.
    pub concurrency: Option<Solved>,
    /// The largest rate that does.
    pub rate: Option<Solved>,
    /// Values for autoscalers.
    pub files: Vec<File>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
    /// Where formats of the files come from.
    pub sources: Vec<Remark>,
}

/// What one replica holds and does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Capacity {
    /// Tokens that the cache holds, in requests of these lengths (k1).
    pub cache_tokens: f64,
    /// Requests whose cache is held.
    pub sequences: f64,
    /// Prompt tokens per second, when nothing but prompts is computed (k2 of prompts).
    pub prefill_tok_s: f64,
    /// Prompts per second then.
    pub prompts_per_s: f64,
    /// Output tokens per second at the largest concurrency that meets the targets (k2 of answers).
    pub decode_tok_s: f64,
    /// Requests that run there.
    pub running: f64,
    /// Requests per second at random that meet the targets.
    pub requests_per_s: Option<f64>,
    /// Share of that at which another replica is to be started.
    pub kept: f64,
    /// Time until it serves.
    pub startup_s: f64,
    /// Dollars per hour of the replica, where known.
    pub usd_per_hour: Option<f64>,
}

/// From where on another replica is to be started; of one replica.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Threshold {
    /// Of which pool.
    pub pool: PoolName,
    /// Requests that run.
    pub running: Option<f64>,
    /// Requests that wait.
    pub waiting: f64,
    /// Share of the cache that is used.
    pub kv_use: Option<f64>,
    /// Tokens in flight: held by those that run, or of prompts that wait.
    pub tokens: f64,
    /// Requests per second.
    pub requests_per_s: Option<f64>,
    /// Chips of one instance.
    pub chips: u64,
}

/// Which chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolName {
    /// Prompts and answers.
    Serve,
    /// Prompts alone.
    Prefill,
    /// Answers alone.
    Decode,
}

/// Answers while it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: &Effort) -> Result<Answer, Error> {
    let startup = within("startup_s", request.startup_s, 0.0, 1e6)?;
    let growth = within("growth_per_min", request.growth_per_min, 0.0, 100.0)?;
    let (least, most) = (up_to("min_replicas", request.min_replicas, 100_000)?, request.max_replicas);
    refuse_if(most < least || most > 100_000, "max_replicas", most, format!("{least} to 100,000"))?;
    files::check(request)?;
    let kept = 1.0 / (1.0 + growth / 60.0 * startup);
    let mut replica =
        estimate::obeyed(catalog, &request.estimate)?.map_or_else(|| request.estimate.clone(), |(r, _)| r);
    let solved = |replica: &estimate::Request, unknown: Unknown| {
        let seek = estimate::Seek { solve: Some(unknown), ..estimate::Seek::default() };
        let asked = estimate::Request { seek, changes: false, ..replica.clone() };
        estimate::answer_on(catalog, &asked, effort)
    };
    let page = solved(&replica, Unknown::Concurrency)?;
    // The pools of one answer are those of the other.
    if let (Some(pools), Some(d)) = (&page.pools, &mut replica.disaggregated) {
        d.prefill_chips = Some(pools.prefill_chips);
    }
    let (concurrency, value) = (page.solved.clone(), page.solved.as_ref().and_then(|s| s.value));
    let mut answer = Answer {
        model: page.model.clone(),
        system: page.system.clone(),
        engine: page.engine.clone(),
        layout: page.layout.clone(),
        chips: page.chips,
        isl: page.isl,
        osl: page.osl,
        verdict: says("capacity_none"),
        capacity: None,
        thresholds: Vec::new(),
        concurrency,
        rate: None,
        files: Vec::new(),
        assumptions: Vec::new(),
        sources: files::sources(),
    };
    let Some(k) = value else {
        let why = page.solved.as_ref().map(|s| s.verdict.clone()).or(page.problem.map(|p| p.what));
        answer.verdict = says("capacity_none").with("why", why);
        return Ok(answer);
    };
    answer.rate = solved(&replica, Unknown::Rate)?.solved;
    let case = Case::new(catalog, &replica)?;
    let serving = case.ready(&case.ask)?;
    let requests = &case.ask.requests;
    let at = serving.under(requests, Loading::Concurrency(k));
    let groups = serving.groups();
    let room = serving.main.server(serving.room).most() * groups;
    let (held, running) = (requests.context(), k.min(room).floor());
    let (instance, instances) = match (&serving.split, &at.flow) {
        (Some(pool), Some(flow)) => (&pool.instance, flow.instances),
        _ => (&serving.main, 1.0),
    };
    let prompts = instance.prompts(requests);
    let service = prompts.service * instances;
    let rate = answer.rate.as_ref().and_then(|s| s.value);
    let capacity = Capacity {
        cache_tokens: (serving.room * groups * held).floor(),
        sequences: (serving.room * groups).floor(),
        prefill_tok_s: service * requests.new_tokens(),
        prompts_per_s: service,
        decode_tok_s: at.rate * requests.output,
        running,
        requests_per_s: rate,
        kept,
        startup_s: startup,
        usd_per_hour: case.ask.price.map(|p| p * 3600.0 * at.chips),
    };
    let first = case.request.ttft_ms.map(|l| l.ms / 1e3);
    // Where no target says how long one may wait, anyone who does is one too many.
    let patience = first.map_or(0.0, |target| (target - at.ttft).max(0.0));
    let waiting = |prompts: f64| (kept * prompts * patience).floor();
    let run = (kept * running).floor().max(1.0);
    let shown = |pool, running: Option<f64>, waiting: f64, tokens: f64, chips: f64, per: f64| Threshold {
        pool,
        running,
        waiting,
        kv_use: running.map(|n| (n / (serving.room * groups)).min(1.0)),
        tokens,
        requests_per_s: rate.map(|r| r * kept / per),
        chips: chips as u64,
    };
    let own = serving.main.deployment.chips();
    answer.thresholds = match &serving.split {
        None => vec![shown(PoolName::Serve, Some(run), waiting(service), run * held, own, 1.0)],
        Some(pool) => {
            let each = waiting(prompts.service);
            let of = |r: &Requests| r.new_tokens() * each;
            vec![
                shown(PoolName::Prefill, None, each, of(requests), pool.instance.deployment.chips(), instances),
                shown(PoolName::Decode, Some(run), 0.0, run * held, own, 1.0),
            ]
        }
    };
    let said = says("capacity_of").with("running", run).with("most", running).with("rate", rate.map(|r| r * kept));
    let said = said.with("full", rate).with("kept", kept).with("startup", startup).with("growth", growth);
    answer.verdict = said.with(request.estimate.filled(), true).with("tokens", capacity.cache_tokens);
    answer.assumptions = assumed(request, kept, held, first.map(|_| patience));
    answer.assumptions.extend(page.assumptions.into_iter().filter(said_of_the_page));
    answer.files = files::all(request, &case, &answer, &capacity);
    answer.capacity = Some(capacity);
    Ok(answer)
}

/// What the page assumes that holds here too.
fn said_of_the_page(a: &Remark) -> bool {
    ["intervals", "price_split"].contains(&&*a.says)
}

fn assumed(request: &Request, kept: f64, held: f64, patience: Option<f64>) -> Vec<Remark> {
    let grows = says("capacity_growth").with("growth", request.growth_per_min).with("startup", request.startup_s);
    vec![
        grows.with("kept", kept),
        says("capacity_lengths").with("held", held),
        says("capacity_waiting").with("patience", patience).with("none", patience.is_none()),
    ]
}

#[cfg(test)]
mod tests;
