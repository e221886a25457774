//! From a request to a world that runs: names resolved, numbers checked.

use super::flags::{self, within_u64};
use super::fleet::{self, Kind};
use super::tiers;
use super::trace::{self, Played};
use super::{Class, Request};
use crate::desk::evidence::Scale;
use crate::desk::prelude::*;
use rackmath_sim::clock::Clock;
use rackmath_sim::cluster::{Cluster, Deal, Groups, Incidents, Weights};
use rackmath_sim::engine::Settings;
use rackmath_sim::replica::Totals;
use rackmath_sim::tally::{Keep, Limits, Tally, Window};
use rackmath_sim::tiers::Counts;
use rackmath_sim::workload::{Arrivals, Conversations, Drawn, Length, Listed, Mixture, Sharing, Source, Traffic};
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_units::Cancelled;

/// Most requests of one run.
const MOST_REQUESTS: u64 = 50_000_000;
/// Batches whose percentiles are compared for intervals.
const BATCHES: u64 = 32;
const WORST: usize = 8;

pub(super) struct World<'a> {
    pub request: &'a Request,
    /// Replicas by kind; those for prompts first.
    pub kinds: Vec<Kind>,
    pub weights: Weights,
    pub played: Option<Played>,
    pub keep: Keep,
    pub acceptance: f64,
    pub assumptions: Vec<Remark>,
    /// What to be careful about before anything ran.
    pub warnings: Vec<Remark>,
    /// What was measured.
    pub scale: Scale,
}

pub(super) struct Run {
    pub tally: Tally,
    pub totals: Totals,
    pub incidents: Incidents,
    pub tiers: Vec<Counts>,
    /// Blocks of all replicas, and how many there are.
    pub usable: u64,
    pub nodes: u64,
    pub cut: bool,
    /// Requests whose prompts were cut to what the engine takes.
    pub shortened: u64,
    /// Replicas did not see each other: in parts, the run is the same.
    pub apart: bool,
}

impl<'a> World<'a> {
    pub(super) fn new(catalog: &Catalog, request: &'a Request) -> Result<Self, Error> {
        let kinds = fleet::kinds(catalog, request)?;
        let weights = fleet::weights(catalog, request)?;
        // Where machines differ, what the smallest holds.
        let Some(kind) = kinds.iter().min_by_key(|k| k.settings.longest()) else {
            unreachable!("a fleet has replicas")
        };
        let on = &kind.ready.deployment;
        let (mut assumptions, mut warnings) = (Vec::<Remark>::new(), Vec::new());
        for said in kinds.iter().flat_map(|k| &k.supported) {
            if !assumptions.contains(said) {
                assumptions.push(said.clone());
            }
        }
        assumptions.extend(notes(request, &kind.ready, &kind.settings, kind.together));
        assumptions.extend(tiers::notes(&kind.tiers, kind.groups, &kind.settings));
        assumptions.extend(fleet::notes(request, &kinds)?);
        let text = request.replay.trace_text.as_ref();
        let longest = kind.settings.longest();
        let played =
            text.map(|text| trace::read(request, text, longest, &mut assumptions, &mut warnings)).transpose()?;
        let requests = match &played {
            Some(played) => played.requests(),
            None => within_u64("traffic.requests", request.traffic.requests, 1, MOST_REQUESTS)?,
        };
        let share = request.warm_up.unwrap_or(if played.is_some() { 0.0 } else { 0.1 });
        refuse_if(!(0.0..1.0).contains(&share), "warm_up", share, "a share from 0 to below 1")?;
        let warm = (requests as f64 * share) as u64;
        let usual = on.overhead().request.get() * 1e3;
        let outside = within("outside_ms", request.outside_ms.unwrap_or(usual), 0.0, 1e6)?;
        let limits = limits(wanted(request, None));
        let outside = (outside * 1e6) as u64;
        let (requests, each) = (requests - warm, request.each);
        let keep = Keep { warm, requests, batches: BATCHES, limits, outside, each, worst: WORST };
        let acceptance = request.flags.acceptance.unwrap_or(on.engine.assumed.acceptance);
        let scale = Scale::of(catalog)?;
        Ok(Self { request, kinds, weights, played, keep, acceptance, assumptions, warnings, scale })
    }

    /// Where machines differ, the one that holds the least.
    fn tight(&self) -> &Kind {
        self.kinds.iter().min_by_key(|k| k.settings.longest()).unwrap_or(self.main())
    }

    /// Most tokens of a prompt and its answer.
    pub(super) fn longest(&self) -> u32 {
        self.tight().settings.longest()
    }

    /// The kind that answers come from.
    pub(super) fn main(&self) -> &Kind {
        &self.kinds[self.kinds.len() - 1]
    }

    pub(super) fn run(&self, effort: &Effort) -> Result<Run, Error> {
        let r = self.request;
        let mut cluster = fleet::cluster(r, &self.kinds, self.weights)?;
        if self.main().settings.drafts() > 0 {
            cluster = cluster.accepting(self.acceptance);
        }
        let classes = r.classes.iter().map(|c| limits(wanted(r, Some(c))));
        let mut tally = Tally::new(self.keep).by_class(classes);
        tally.window = r.window.as_deref().map(window).transpose()?;
        let tight = &self.tight().settings;
        let (apart, shortened, done) = match &self.played {
            Some(Played::List(jobs)) => go(&mut cluster, Listed::new(jobs.clone()), &mut tally, effort),
            Some(Played::Sessions(all)) => go(&mut cluster, Conversations::new(all.clone()), &mut tally, effort),
            None if !r.classes.is_empty() => go(&mut cluster, mixture(r, tight)?, &mut tally, effort),
            None => go(&mut cluster, Drawn::new(traffic(&r.traffic, tight)?), &mut tally, effort),
        };
        let usable = cluster.replicas.iter().map(|r| u64::from(r.engine.usable())).sum();
        let cut = done.is_err();
        if cut && tally.measured == 0 {
            done?;
        }
        let (totals, incidents, nodes) = (cluster.totals(), cluster.incidents, cluster.replicas.len() as u64);
        let tiers = cluster.tiers();
        Ok(Run { tally, totals, incidents, tiers, usable, nodes, cut, shortened, apart })
    }
}

/// Runs a cluster, in parts where that is the same; whether it is, and how many prompts were cut.
fn go<S: Source + Clone + Send>(
    cluster: &mut Cluster<impl Clock + Clone + Send>,
    mut source: S,
    tally: &mut Tally,
    effort: &Effort,
) -> (bool, u64, Result<(), Cancelled>) {
    let apart = cluster.splits(&source);
    let done = cluster.run_apart(&mut source, tally, effort);
    (apart, source.shortened(), done)
}

/// Limits on first tokens, tokens and whole requests; those of a class before those for all.
pub(super) fn wanted(r: &Request, class: Option<&Class>) -> [Option<AtMost>; 3] {
    let own = class.map_or([None; 3], |c| [c.ttft_ms, c.tpot_ms, c.e2e_ms]);
    let all = [r.ttft_ms, r.tpot_ms, r.e2e_ms];
    [0, 1, 2].map(|i| own[i].or(all[i]))
}

/// The same for each request.
fn limits(wanted: [Option<AtMost>; 3]) -> Limits {
    let [ttft, tpot, e2e] = wanted.map(|limit| limit.map(|l| (l.ms * 1e6) as u64));
    Limits { ttft, tpot, e2e }
}

/// Most classes of clients.
const MOST_CLASSES: usize = 64;

fn mixture(r: &Request, s: &Settings) -> Result<Mixture, Error> {
    let expected = format!("at most {MOST_CLASSES}");
    refuse_if(r.classes.len() > MOST_CLASSES, "classes", r.classes.len(), expected)?;
    refuse_if(r.traffic.users.is_some(), "traffic.users", "users", "none beside classes")?;
    let law = |(i, c): (usize, &Class)| {
        let t = super::Traffic {
            rate_per_s: Some(c.rate_per_s),
            cv: c.cv,
            isl: c.isl,
            osl: c.osl,
            isl_sigma: c.isl_sigma,
            osl_sigma: c.osl_sigma,
            prefixes: c.prefixes,
            prefix_tokens: c.prefix_tokens,
            turns: c.turns,
            think_s: c.think_s,
            ..r.traffic.clone()
        };
        let t = super::Traffic { swing: 0.0, spike: None, ..t };
        traffic(&t, s).map(|t| (t, c.priority)).map_err(|e| Error::said(format!("classes[{i}]: {e}")))
    };
    let laws = r.classes.iter().enumerate().map(law).collect::<Result<_, _>>()?;
    Ok(Mixture::new(laws, r.traffic.requests))
}

/// "10..20" in seconds.
fn window(said: &str) -> Result<Box<Window>, Error> {
    let seconds = |word: &str| word.trim().trim_end_matches('s').parse::<f64>().ok().filter(|t| (0.0..1e9).contains(t));
    let ends = said.split_once("..").and_then(|(a, b)| Some((seconds(a)?, seconds(b)?))).filter(|(a, b)| a < b);
    let (from, to) =
        ends.ok_or_else(|| Error::value("window", format!("\"{said}\""), "from and to in seconds, as 10..20"))?;
    Ok(Box::new(Window::new((from * 1e9) as u64, (to * 1e9) as u64)))
}

pub(crate) fn one_stage(on: &Deployment) -> Result<(), Error> {
    refuse_if(on.stages() > 1.0, "degrees.pp", on.stages(), "1: stages of a pipeline are not simulated yet")
}

/// Refuses what neither the engine nor its cache could ever hold: it would wait for ever.
pub(crate) fn held(s: &Settings, prompt: f64, answer: f64) -> Result<(), Error> {
    let longest = f64::from(s.longest());
    let expected = format!("at most {} tokens in and out: what the cache and the engine hold", grouped(longest));
    refuse_if(prompt + answer > longest, "traffic.isl", prompt + answer, expected)?;
    if let Settings::Trtllm(s) = s
        && s.chunking.is_none()
    {
        let most = f64::from(s.max_num_tokens);
        let expected = format!("at most {} tokens in: one step, or {{trtllm.enable_chunked_context}}", grouped(most));
        refuse_if(prompt > most, "traffic.isl", prompt, expected)?;
    }
    Ok(())
}

/// A law.
fn traffic(t: &super::Traffic, s: &Settings) -> Result<Traffic, Error> {
    held(s, t.isl + t.prefix_tokens, t.osl)?;
    let longest = s.longest();
    let positive =
        |field, x: f64| refuse_if(!(x > 0.0 && x <= 1e7), field, x, "above 0, at most 10,000,000").map(|()| x);
    let sized = |field, mean: f64, sigma: f64| -> Result<Length, Error> {
        let mean = tokens(field, mean, 1.0)?.get();
        refuse_if(!(0.0..=4.0).contains(&sigma), field, sigma, "a spread of 0 to 4")?;
        refuse_if(mean > 1e7, field, mean, "at most 10,000,000 tokens")?;
        Ok(match sigma {
            0.0 => Length::Fixed(mean.round() as u32),
            sigma => Length::LogNormal { mean, sigma, least: 1, most: ((mean * 64.0) as u32).clamp(1, longest / 2) },
        })
    };
    let arrivals = match (t.users, t.rate_per_s) {
        (Some(_), Some(rate)) => return Err(Error::value("traffic.rate_per_s", rate, "none beside {traffic.users}")),
        (Some(users), None) => Arrivals::Users {
            users: within_u64("traffic.users", users, 1, 1_000_000)?,
            think_s: within("traffic.think_s", t.think_s, 0.0, 1e6)?,
        },
        (None, rate) => {
            let rate = positive("traffic.rate_per_s", rate.unwrap_or(1.0))?;
            let period_s = positive("traffic.period_s", t.period_s)?;
            match t.spike {
                Some(times) => Arrivals::Spikes {
                    rate,
                    times: within("traffic.spike", times, 1.0, 1e4)?,
                    period_s,
                    length_s: within("traffic.spike_length_s", t.spike_length_s, 0.0, period_s)?,
                },
                None if t.swing > 0.0 => {
                    Arrivals::Diurnal { rate, swing: within("traffic.swing", t.swing, 0.0, 1.0)?, period_s }
                }
                None => Arrivals::Open { rate, cv: within("traffic.cv", t.cv, 0.0, 20.0)? },
            }
        }
    };
    Ok(Traffic {
        arrivals,
        input: sized("traffic.isl", t.isl, t.isl_sigma)?,
        output: sized("traffic.osl", t.osl, t.osl_sigma)?,
        sharing: Sharing {
            prefixes: within_u64("traffic.prefixes", t.prefixes, 0, 1_000_000)?,
            prefix_tokens: within("traffic.prefix_tokens", t.prefix_tokens, 0.0, 1e7)? as u32,
            turns: within_u64("traffic.turns", t.turns, 1, 10_000)? as u32,
            think_s: within("traffic.think_s", t.think_s, 0.0, 1e6)?,
        },
        requests: t.requests,
        seed: t.seed,
        longest,
    })
}

fn notes(r: &Request, ready: &Ready, s: &Settings, together: Option<Groups>) -> Vec<Remark> {
    let on = &ready.deployment;
    let mut all = flags::notes(&on.engine.name, s);
    if r.replay.trace_text.is_none() {
        let fixed = r.traffic.isl_sigma == 0.0 && r.traffic.osl_sigma == 0.0;
        all.push(says(if fixed { "simulated_fixed" } else { "simulated_drawn" }));
        let users = r.traffic.users.filter(|users| fixed && *users > 1 && r.traffic.think_s == 0.0);
        all.extend(users.map(|users| says("simulated_in_step").with("users", users)));
    }
    match together {
        Some(groups) => all.push(
            says("simulated_together")
                .with("groups", on.groups())
                .with("sync", (groups.steps.sync > 1).then_some(groups.steps.sync as f64))
                .with("weight", if let Deal::Load { waiting, .. } = groups.deal { Some(waiting as f64) } else { None }),
        ),
        None if on.groups() > 1.0 => all.push(says("simulated_groups").with("groups", on.groups())),
        None => {}
    }
    let outside = r.outside_ms.unwrap_or(on.overhead().request.get() * 1e3) / 1e3;
    all.push(says("simulated_outside").with("time", outside));
    all
}
