//! The replicas of a world: machines, pools, links, and what can happen to them.

use super::flags::{self, settings, within_u64};
use super::tiers::{self, Asked};
use super::{Answer, Happens, Request};
use crate::desk::prelude::*;
use crate::desk::setting::PriceSource;
use crate::desk::{cut, remedy};
use crate::estimate;
use crate::estimate::work::Case;
use rackmath_sim::clock::Timed;
use rackmath_sim::cluster::{self, Cluster, Deal, Groups, Link, Router, Rules, Weights};
use rackmath_sim::engine::Settings;
use rackmath_sim::replica::Lockstep;
use rackmath_spec::engine;
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::{count, kv, placement, pools};

const MOST_REPLICAS: u64 = 4096;
/// Most kinds of machines in one fleet.
const MOST_MACHINES: usize = 16;

/// Replicas that are alike.
pub(super) struct Kind {
    pub ready: Ready,
    pub layout_chosen: bool,
    /// Dollars of a chip and second.
    pub price: Option<f64>,
    pub price_source: PriceSource,
    /// The price and where it is from.
    pub at_price: Remark,
    pub settings: Settings,
    /// Attention groups of a replica, each with sequences of its own.
    pub groups: usize,
    /// How they take their steps together; none where each goes by itself.
    pub together: Option<Groups>,
    /// Memory below the chips' own, the nearest first.
    pub tiers: Vec<Asked>,
    pub replicas: u64,
    /// They only compute prompts.
    pub prompts: bool,
    /// What the engine runs otherwise there, and what is not known.
    pub supported: Vec<Remark>,
}

impl Kind {
    fn new(catalog: &Catalog, request: &Request, on: &str, replicas: u64, prompts: bool) -> Result<Self, Error> {
        let asked = on_machine(request, on);
        let case = Case::new(catalog, &asked)?;
        case.standing.check(request.pretend)?;
        let pretended = case.standing.pretended(request.pretend);
        let supported = pretended.into_iter().chain(case.standing.remarks.iter().cloned()).collect();
        let ready = case.ready(&case.ask)?.main;
        let on = &ready.deployment;
        let mut settings = settings(request, &ready)?;
        let tiers = tiers::asked(catalog, request, &ready, &settings)?;
        tiers::put(&tiers, request, &ready, &mut settings)?;
        let ranked = request.classes.iter().any(|c| c.priority != 0);
        let able = matches!(settings, Settings::Vllm(_)) || !ranked;
        refuse_if(!able, "engine", &request.engine, "vllm: priorities of other engines are not simulated yet")?;
        staged(on, &settings)?;
        Ok(Self {
            groups: on.groups() as usize,
            layout_chosen: case.chosen,
            price: case.ask.price,
            price_source: case.found.price_source.clone(),
            at_price: case.found.at_price("price_of_chip"),
            together: together(on),
            ready,
            settings,
            tiers,
            replicas,
            prompts,
            supported,
        })
    }

    pub fn chips(&self) -> u64 {
        self.replicas * self.ready.deployment.chips() as u64
    }
}

/// Refuses pipelines that are not simulated.
pub(crate) fn staged(on: &Deployment, settings: &Settings) -> Result<(), Error> {
    let plain = match settings {
        Settings::Vllm(s) => s.speculative == 0 && together(on).is_none(),
        Settings::Sglang(_) | Settings::Trtllm(_) => false,
    };
    let expected = "1: pipelines are simulated for vLLM, without drafts and without groups that wait for each other";
    refuse_if(on.stages() > 1.0 && !plain, "degrees.pp", on.stages(), expected)
}

/// What is asked of one machine.
fn on_machine(request: &Request, on: &str) -> estimate::Request {
    estimate::Request {
        setting: Setting { on: on.to_owned(), ..request.setting.clone() },
        degrees: request.degrees.clone(),
        engine: request.engine.clone(),
        memory_utilisation: request.flags.memory_utilisation,
        // As long as the longest that is asked for: whether the model has positions for it is asked with the rest.
        isl: (longest_asked(request) - 2.0).clamp(1.0, 1e9),
        osl: 2.0,
        ..estimate::Request::default()
    }
}

/// The answer where a source says that the engine does not run it on one of the machines and nobody pretends, or where the
/// memory of one leaves no room for a cache.
pub(super) fn refused(catalog: &Catalog, r: &Request) -> Result<Option<Answer>, Error> {
    for on in r.setting.on.split('+').map(str::trim) {
        let asked = on_machine(r, on);
        let case = Case::new(catalog, &asked)?;
        let there = &case.ask.on;
        let barred = case.standing.refusal.as_ref().filter(|_| !r.pretend);
        let (why, would) = match barred {
            Some(refusal) => (refusal.why.clone(), refusal.nearest.clone()),
            None => match no_room(r, &case)? {
                Some(found) => found,
                None => continue,
            },
        };
        let verdict = says("not_simulated").with("why", why).with("would", would);
        return Ok(Some(Answer {
            model: there.model.name.clone(),
            system: there.system.name.clone(),
            engine: there.engine.name.clone(),
            layout: cut::words(&there.model, &there.layout),
            layout_chosen: case.chosen,
            replicas: r.fleet.replicas,
            prefill_replicas: r.fleet.prefill_replicas,
            router: r.fleet.router,
            chips: r.fleet.replicas * there.layout.chips(),
            traffic: says("nothing_came"),
            verdict,
            ..Answer::default()
        }));
    }
    Ok(None)
}

/// What is missing where memory holds no cache, and the first change that makes room for a request.
fn no_room(r: &Request, case: &Case) -> Result<Option<(Remark, Option<Remark>)>, Error> {
    let on = &case.ask.on;
    let Some(load) = flags::no_room(r, on)? else { return Ok(None) };
    let placed = placement::place(on, &load);
    let fullest = placed.stages.iter().max_by(|a, b| a.held.total().get().total_cmp(&b.held.total().get()));
    let weights = fullest.map_or(Bytes::ZERO, |stage| stage.held.all_weights());
    let why = says("no_cache_room")
        .with("weights", weights)
        .with("memory", on.system.chip.memory.size())
        .with("share", on.utilisation(&load))
        .with("chip", on.system.chip.name.clone());
    Ok(Some((why, remedy::first_change(on, &load, 0.0, |on| case.runs(on)))))
}

/// Tokens of a request by the law of the traffic, or of the longest sequence that a flag asks for.
fn longest_asked(r: &Request) -> f64 {
    let t = &r.traffic;
    let by_law = r.replay.trace_text.is_none() && r.classes.is_empty();
    let whole = if by_law { t.isl + t.osl + t.prefix_tokens } else { 0.0 };
    let flags = [r.flags.max_model_len, r.sglang.context_length, r.trtllm.max_seq_len];
    // What is no number is refused where the traffic is read.
    flags.into_iter().flatten().map(|n| n as f64).fold(0.0_f64.max(whole), f64::max)
}

/// How the attention groups of a replica take their steps together, where the engine has them wait for each other.
pub(crate) fn together(on: &Deployment) -> Option<Groups> {
    let rules = on.engine.groups.filter(|_| on.groups_together() > 1.0)?;
    let deal = match rules.deal {
        engine::Deal::RoundRobin => Deal::InTurn,
        engine::Deal::Load => {
            Deal::Load { waiting: rules.waiting_weight, report: (rules.report.get() * 1e9).round() as u64 }
        }
    };
    let steps = Lockstep { sync: rules.sync_steps, dummy: rules.dummy_tokens };
    Some(Groups { n: on.groups() as usize, steps, deal })
}

/// The kinds of replicas that are asked for: those for prompts first.
pub(super) fn kinds(catalog: &Catalog, r: &Request) -> Result<Vec<Kind>, Error> {
    let machines: Vec<&str> = r.setting.on.split('+').map(str::trim).collect();
    let (n, prompts) = (r.fleet.replicas, r.fleet.prefill_replicas);
    within_u64("fleet.replicas", n, 1, MOST_REPLICAS)?;
    within_u64("fleet.prefill_replicas", prompts, 0, MOST_REPLICAS)?;
    let most = if prompts > 0 { 2 } else { MOST_MACHINES };
    let expected =
        format!("at most {most} machines joined by +: with pools, prompts on the first, the rest on the second");
    refuse_if(machines.len() > most, "setting.on", &r.setting.on, expected)?;
    if prompts > 0 {
        let (first, last) = (machines[0], machines[machines.len() - 1]);
        return Ok(vec![Kind::new(catalog, r, first, prompts, true)?, Kind::new(catalog, r, last, n, false)?]);
    }
    let n = r.scaling.max_replicas.unwrap_or(n).max(n);
    within_u64("scaling.max_replicas", n, 1, MOST_REPLICAS)?;
    machines.into_iter().map(|on| Kind::new(catalog, r, on, n, false)).collect()
}

/// The time of a prompt's cache from one deployment to another: between two machines the slower network counts.
pub(crate) fn link(from: &Deployment, to: &Deployment) -> Link {
    let (from, to) = (from.clone(), to.clone());
    let cache = kv::cache(&to.model, to.kv);
    let setup = setup(&to);
    Link::new(move |tokens| {
        let bytes = cache.stored(Tokens::new(f64::from(tokens)));
        let there = pools::sending(bytes, &from.layout, &to).get();
        let here = if from.system.id == to.system.id { there } else { pools::sending(bytes, &to.layout, &from).get() };
        (there.max(here) * 1e9).round() as u64
    })
    .beside(setup)
}

/// Nanoseconds that a hand-over takes beside the cache's time on the link.
pub(super) fn setup(on: &Deployment) -> u64 {
    on.engine.handover.map_or(0, |h| (h.setup.get() * 1e9).round() as u64)
}

/// Bytes of the weights over the rate at which they are loaded, and the time before.
pub(super) fn start_s(r: &Request, kind: &Kind) -> Result<f64, Error> {
    let on = &kind.ready.deployment;
    let rate = r.scaling.load_gb_per_s;
    refuse_if(!(rate > 0.0 && rate <= 1e5), "scaling.load_gb_per_s", rate, "above 0, at most 100,000 GB/s")?;
    let bytes = count::count(&on.model).stored_bytes(&on.formats).get();
    Ok(within("scaling.start_s", r.scaling.start_s, 0.0, 1e6)? + bytes / (rate * 1e9))
}

fn rules(r: &Request, kinds: &[Kind]) -> Result<Rules, Error> {
    let (m, s) = (&r.mishaps, &r.scaling);
    let ns = |field, seconds: f64| within(field, seconds, 0.0, 1e8).map(|s| (s * 1e9) as u64);
    let positive = |field, s: Option<f64>| -> Result<Option<u64>, Error> {
        refuse_if(s.is_some_and(|s| s <= 0.0), field, s.unwrap_or(0.0), "above 0")?;
        s.map(|s| ns(field, s)).transpose()
    };
    let all: usize = kinds.iter().map(|k| k.replicas as usize).sum();
    let mut script = Vec::new();
    for happens in &m.script {
        within_u64("mishaps.script", happens.replica, 0, all as u64 - 1)?;
        let what = match happens.what {
            Happens::Fail => cluster::Script::Fail,
            Happens::Drain => cluster::Script::Drain,
            Happens::Start => cluster::Script::Start,
        };
        let at = ns("mishaps.script", happens.at_s)?;
        script.push(cluster::Scripted { at, replica: happens.replica as usize, what });
    }
    let scaling = match s.max_replicas {
        Some(most) => {
            refuse_if(kinds.len() > 1, "scaling.max_replicas", most, "one machine and no pool of prompts")?;
            refuse_if(s.scale_target <= 0.0, "scaling.scale_target", s.scale_target, "above 0")?;
            Some(cluster::Scaling {
                least: r.fleet.replicas as usize,
                most: most.max(r.fleet.replicas) as usize,
                target: s.scale_target,
                window: ns("scaling.scale_window_s", s.scale_window_s.max(0.001))?,
                cooldown: ns("scaling.scale_cooldown_s", s.scale_cooldown_s)?,
                start: ns("scaling.start_s", start_s(r, &kinds[0])?)?,
            })
        }
        None => None,
    };
    let rules = Rules {
        timeout: positive("mishaps.timeout_s", m.timeout_s)?,
        most_queued: m.max_queued_requests,
        retries: within_u64("mishaps.retries", m.retries, 0, 100)? as u32,
        backoff: ns("mishaps.backoff_ms", m.backoff_ms / 1e3)?,
        lives: positive("mishaps.mtbf_s", m.mtbf_s)?,
        restart: ns("mishaps.restart_s", m.restart_s)?,
        scaling,
        script,
    };
    let changes = rules.lives.is_some() || scaling.is_some() || !rules.script.is_empty();
    let apart = kinds.iter().any(|k| k.groups > 1) && changes;
    refuse_if(
        apart,
        "degrees",
        "attention groups",
        "replicas of one attention group where replicas die, start or drain",
    )?;
    Ok(rules)
}

/// The numbers of the program that the chosen router is the rule of.
pub(super) fn weights(catalog: &Catalog, r: &Request) -> Result<Weights, Error> {
    let mut w = Weights::default();
    match r.fleet.router {
        Router::PrefixHash | Router::BoundedHash | Router::CacheAware => {
            let rules = catalog.router("sglang-gateway")?;
            w.bound = rules.need("load_bound", rules.load_bound)?;
            w.prefix_tokens = rules.need("prefix_tokens", rules.prefix_tokens)?;
            w.uneven.0 = rules.need("uneven_requests", rules.uneven_requests)?;
            w.uneven.1 = rules.need("uneven_ratio", rules.uneven_ratio)?;
            w.matched = rules.need("match_share", rules.match_share)?;
        }
        Router::Kv => {
            let rules = catalog.router("dynamo")?;
            w.credit = rules.need("overlap_credit", rules.overlap_credit)?;
        }
        Router::Scored => {
            let rules = catalog.router("llm-d")?;
            w.scores[0] = rules.need("prefix_weight", rules.prefix_weight)?;
            w.scores[1] = rules.need("queue_weight", rules.queue_weight)?;
            w.scores[2] = rules.need("cache_weight", rules.cache_weight)?;
        }
        Router::Connections => {
            let rules = catalog.router("kubernetes-service")?;
            w.keep = (rules.need("keep_alive_s", rules.keep_alive_s)? * 1e9) as u64;
        }
        Router::RoundRobin | Router::Random | Router::TwoChoices | Router::LeastLoaded | Router::Session => {}
    }
    w.credit = within("fleet.overlap_credit", r.fleet.overlap_credit.unwrap_or(w.credit), 0.0, 1e6)?;
    Ok(w)
}

type Clocked<'a> = Timed<&'a rackmath_theory::pass::Pass>;

/// All of it, ready to run.
pub(super) fn cluster<'a>(r: &Request, kinds: &'a [Kind], weights: Weights) -> Result<Cluster<Clocked<'a>>, Error> {
    let stale = (within("fleet.stale_ms", r.fleet.stale_ms, 0.0, 1e9)? * 1e6) as u64;
    let count = |k: &Kind| k.replicas as usize * k.groups;
    let all = kinds.iter().map(|k| (k.settings.clone(), count(k), Timed::new(&*k.ready.pass))).collect();
    let mut cluster =
        Cluster::mixed(all, r.fleet.router, r.traffic.seed, !r.step_by_step).stale(stale).weighing(weights);
    for (kind, groups) in kinds.iter().enumerate().filter_map(|(i, k)| Some((i, k.together?))) {
        cluster = cluster.grouped(kind, groups);
    }
    if let [first, last] = kinds
        && first.prompts
    {
        cluster = cluster.sending(count(first), link(&first.ready.deployment, &last.ready.deployment));
    }
    Ok(cluster.under(rules(r, kinds)?))
}

/// What a fleet assumes.
pub(super) fn notes(r: &Request, kinds: &[Kind]) -> Result<Vec<Remark>, Error> {
    let (m, mut all) = (&r.mishaps, Vec::new());
    if let [first, last] = kinds
        && first.prompts
    {
        let tokens = r.traffic.isl.max(1.0) as u32;
        let levels = &last.ready.deployment.system.levels;
        all.push(
            says("simulated_pools")
                .with("tokens", f64::from(tokens))
                .with("time", link(&first.ready.deployment, &last.ready.deployment).alone(tokens) as f64 / 1e9)
                .with("setup", Some(setup(&last.ready.deployment) as f64 / 1e9).filter(|setup| *setup > 0.0))
                .with("link", levels.last().map_or("no link", |l| l.name.as_str()).to_owned()),
        );
    } else if kinds.len() > 1 {
        all.push(
            says("simulated_joined").with("machines", kinds.len() as f64).with("replicas", kinds[0].replicas as f64),
        );
    }
    let mut priced: Vec<&Remark> = kinds.iter().map(|k| &k.at_price).collect();
    priced.dedup();
    all.extend(priced.into_iter().cloned());
    if m.retries > 0 {
        all.push(says("simulated_retries").with("retries", m.retries as f64).with("pause", m.backoff_ms / 1e3));
    }
    if m.timeout_s.is_some() {
        all.push(says("simulated_timeout").with("time", m.timeout_s));
    }
    if m.mtbf_s.is_some() || !m.script.is_empty() {
        all.push(says("simulated_deaths").with("mean", m.mtbf_s).with("restart", m.restart_s));
    }
    if let Some(most) = r.scaling.max_replicas {
        all.push(
            says("simulated_scaling")
                .with("least", r.fleet.replicas as f64)
                .with("most", most as f64)
                .with("target", r.scaling.scale_target)
                .with("window", r.scaling.scale_window_s)
                .with("cooldown", r.scaling.scale_cooldown_s)
                .with("start", start_s(r, &kinds[0])?),
        );
    }
    if r.fleet.stale_ms > 0.0 && r.fleet.router.looks() {
        all.push(says("simulated_stale").with("time", r.fleet.stale_ms / 1e3));
    }
    Ok(all)
}
