//! From a request to a space: every deployment prepared once, its states tabulated.

use super::layouts::{Fix as _, layouts};
use super::{Ask, Fetch, LARGEST, Machine, Request, offload};
use crate::desk::prelude::*;
use crate::extent::Extent;
use crate::setting::untimed;
use crate::support::{self, Asked, Standing};
use rackmath_spec::System;
use rackmath_spec::engine::Engine;
use rackmath_spec::file::flags::Tool;
use rackmath_spec::model::Formats;
use rackmath_theory::deployment::{Deployment, Ready, usual_cache};
use rackmath_theory::drafter::Drafter;
use rackmath_theory::kv;
use rackmath_theory::pass::{KernelSet, Pass};
use rackmath_theory::plan::space::MOST_DECODE;
use rackmath_theory::plan::{Prefill, Row, Space, State, fill};
use rackmath_theory::pools::{Prompts, sending};
use rackmath_theory::steady::Requests;
use std::collections::BTreeMap;

/// What the deployments of one key share.
struct Kind {
    machine: Arc<Machine>,
    formats: Formats,
    kv: Dtype,
    engine: Arc<Engine>,
    /// Pools of equal keys go together.
    key: u32,
    /// As the engine uses it.
    system: Arc<System>,
    /// Says that it does not exist.
    pretended: Option<Remark>,
    /// Which of the standings is its own.
    standing: usize,
}

/// A deployment with its machine and its passes; what its rows share.
pub(super) struct Candidate {
    pub machine: Arc<Machine>,
    pub ready: Ready,
    kind: usize,
    key: u32,
    pub pretended: Option<Remark>,
}

/// What a row of the space stands for.
#[derive(Clone)]
pub(super) struct Entry {
    pub of: Arc<Candidate>,
    pub chunk: f64,
    /// Drafts and accepted tokens.
    pub drafts: (f64, f64),
    /// Sequences a group holds.
    pub room: f64,
    pub offload: Option<Fetch>,
}

impl Entry {
    pub(super) fn on(&self) -> &Deployment {
        &self.of.ready.deployment
    }

    pub(super) fn pass(&self) -> &Pass {
        &self.of.ready.pass
    }

    /// The deployment with the row's tokens in a pass.
    pub(super) fn ready(&self) -> Ready {
        let mut ready = self.of.ready.clone();
        Arc::make_mut(&mut ready.deployment.engine).schedule.chunk = self.chunk;
        ready
    }

    /// Sequences the engine takes in a group, whatever memory holds.
    pub(super) fn sequences(&self) -> f64 {
        self.on().engine.schedule.sequences * self.on().stages()
    }

    /// Sequences of a full group.
    pub(super) fn most(&self) -> f64 {
        self.room.min(self.sequences()).floor()
    }
}

/// The space, and what its rows stand for.
#[derive(Default)]
pub(super) struct Prepared {
    pub space: Space,
    pub rows: Vec<Entry>,
    pub levels: Vec<f64>,
    /// Layouts that were looked at, whether or not the model fits.
    pub layouts: usize,
    /// Those the model fits.
    pub fit: usize,
}

struct ItemRow {
    entry: Entry,
    whole: Vec<State>,
    found: Vec<State>,
    prefill: Option<Prompts>,
}

/// Most memory that the tables of a plan may take.
const MOST: f64 = 4e9;

impl Prepared {
    pub(super) fn new(kernels: &KernelSet, ask: &Ask, effort: &Effort) -> Result<Self, Error> {
        let kinds = kinds(ask);
        let (jobs, allowed) = jobs(ask, &kinds, effort)?;
        if jobs.is_empty() {
            ask.fixed.check(&allowed)?;
        }
        let levels = levels(ask, &kinds);
        bounded(ask, jobs.len(), levels.len())?;
        let items = in_order(&jobs, effort, |(at, layout)| item(kernels, ask, *at, &kinds[*at], *layout, &levels))?;
        let mut p = Self { layouts: jobs.len(), ..Self::default() };
        p.space.levels = levels.len();
        p.space.ratios = ratios();
        p.space.prompt_cv2 = ask.requests.spread.prompt_cv2;
        p.space.standby = ask.spare.standby;
        p.levels = levels;
        for rows in items.into_iter().flatten() {
            p.fit += 1;
            for row in rows {
                p.add(ask, row);
            }
        }
        if ask.split {
            p.pair(ask, effort)?;
        }
        Ok(p)
    }

    fn add(&mut self, ask: &Ask, row: ItemRow) {
        let Candidate { machine, ready, key, .. } = &*row.entry.of;
        self.space.prefills.extend(row.prefill.map(|prompts| Prefill { row: self.rows.len(), prompts }));
        self.space.rows.push(Row {
            key: *key,
            machine: machine.at as u32,
            class: 0,
            scale: scale(ask, machine),
            chips: ready.deployment.chips(),
            usd_s: machine.usd_s,
            watts: machine.watts,
            host: machine.bought_by as f64,
            offered: machine.chips as f64,
        });
        self.space.whole.push(&row.whole);
        self.space.found.push(&row.found);
        self.rows.push(row.entry);
    }

    /// Seconds to send a prompt between deployments, by class: what does not depend on how many groups there are and how
    /// experts are cut is worked out once.
    fn pair(&mut self, ask: &Ask, effort: &Effort) -> Result<(), Error> {
        let prompt = Tokens::new(ask.requests.input);
        let mut classes: Vec<(&Candidate, Bytes)> = Vec::new();
        let mut known: BTreeMap<(usize, [u64; 4]), u32> = BTreeMap::new();
        for (row, entry) in self.space.rows.iter_mut().zip(&self.rows) {
            let d = entry.on().layout.degrees();
            row.class = *known.entry((entry.of.kind, [d.tp, d.pp, d.cp, d.dcp])).or_insert_with(|| {
                classes.push((&entry.of, kv::cache(&ask.model, entry.on().kv).stored(prompt)));
                classes.len() as u32 - 1
            });
        }
        for (from, _) in &classes {
            effort.check()?;
            let sent = |(to, bytes): &(&Candidate, Bytes)| {
                if from.key != to.key {
                    return 0.0;
                }
                let over = |here: &Candidate, there: &Candidate| {
                    sending(*bytes, &there.ready.deployment.layout, &here.ready.deployment).get()
                };
                let received = over(to, from);
                // Between two machines the slower network counts.
                if from.machine.at == to.machine.at { received } else { received.max(over(from, to)) }
            };
            self.space.send.push(classes.iter().map(sent).collect());
        }
        Ok(())
    }
}

/// A kind by its place, and a layout for it.
type Job = (usize, Layout);

/// Every layout of every kind that is wanted, and the degrees of all that are possible.
fn jobs(ask: &Ask, kinds: &[Kind], effort: &Effort) -> Result<(Vec<Job>, Vec<Degrees>), Error> {
    let (mut jobs, mut allowed) = (Vec::<Job>::new(), Vec::<Degrees>::new());
    // Formats do not change what is possible.
    let mut known = Vec::<((usize, Option<Tool>), Vec<Layout>)>::new();
    for (at, kind) in kinds.iter().enumerate() {
        effort.check()?;
        let key = (kind.machine.at, kind.engine.family.parse::<Tool>().ok());
        let place = known.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
            let chips = kind.machine.chips.min(LARGEST);
            let steps = ask.fixed.steps(ask.degrees);
            let all = layouts(&ask.model, &kind.machine.system, key.1, chips, steps, &ask.cuts);
            known.push((key, all));
            known.len() - 1
        });
        // What the engine cannot cut there is not tried.
        let cuts = |layout: &&Layout| ask.pretend || ask.standings[kind.standing].cuts(layout);
        let all = known[place].1.iter().filter(cuts).copied();
        allowed.extend(all.clone().map(|l| l.degrees()));
        jobs.extend(all.filter(|l| ask.fixed.allows(&l.degrees())).map(|layout| (at, layout)));
    }
    Ok((jobs, allowed))
}

/// Requests in flight of a group that are tried.
fn levels(ask: &Ask, kinds: &[Kind]) -> Vec<f64> {
    let most = kinds.iter().map(|k| k.engine.schedule.sequences).fold(1.0, f64::max);
    ask.batch.map_or_else(|| fill::levels(most.min(8192.0)), |n| vec![n])
}

/// Layouts that are asked whether the model fits, before a search; the others lie between them.
const ASKED: usize = 64;

/// What a search of so much would prepare and look through; nothing is timed for that.
pub(super) fn extent(ask: &Ask) -> Result<Extent, Error> {
    let kinds = kinds(ask);
    let (jobs, _) = jobs(ask, &kinds, &Effort::default())?;
    let levels = levels(ask, &kinds);
    let each = jobs.len().div_ceil(ASKED).max(1);
    let keys = kinds.iter().map(|k| k.key as usize + 1).max().unwrap_or(0);
    let (mut fit, mut states) = (vec![0.0; keys], 0.0);
    for (at, layout) in jobs.iter().step_by(each) {
        let kind = &kinds[*at];
        let on = placed(ask, kind, *layout);
        let room = on.room(&ask.requests, on.engine.schedule.chunk).min(on.engine.schedule.sequences * on.stages());
        if room >= 1.0 {
            fit[kind.key as usize] += each as f64;
            states += (each * levels.partition_point(|level| *level < room).saturating_add(1)) as f64;
        }
    }
    let (chunks, drafts) = (ask.chunks.len().max(1) as f64, ask.drafts.len() as f64);
    let rows = chunks * drafts * (1 + usize::from(ask.offload.is_some())) as f64;
    let pools = if ask.split { drafts * chunks } else { 0.0 };
    let pairs = fit.iter().map(|n: &f64| n * n * pools).sum();
    let (layouts, made) = (jobs.len() as f64, fit.iter().sum());
    Ok(Extent { layouts, made, prepared: states * rows, weighed: pairs, ..Extent::default() })
}

/// Refuses what would not fit into memory: every row may have a state at every level, alone and as one that decodes, while
/// it is made and once more in the space. Pairs take none.
fn bounded(ask: &Ask, layouts: usize, levels: usize) -> Result<(), Error> {
    let rows = layouts * ask.chunks.len().max(1) * ask.drafts.len() * (1 + usize::from(ask.offload.is_some()));
    let states = 2 * (1 + usize::from(ask.split)) * levels * size_of::<State>();
    let each = states + size_of::<Entry>() + size_of::<Row>() + 2 * size_of::<Prefill>();
    let bytes = rows as f64 * each as f64;
    let given = format!("{} rows, which take up to {}", count(rows as f64), Bytes::b(bytes));
    refuse_if(bytes > MOST, "chunks", given, "fewer chunks, drafts, formats, engines or machines at a time")
}

/// Chips of the limit that a chip of a machine stands for. The limit is written in chips of the machine that offers most.
fn scale(ask: &Ask, machine: &Machine) -> f64 {
    let most = ask.machines.iter().map(|m| m.chips).max().unwrap_or(1);
    // All chips of a machine are allowed, whatever the last bit of a quotient says.
    if most == machine.chips { 1.0 } else { most as f64 / machine.chips as f64 * (1.0 - 1e-12) }
}

fn kinds(ask: &Ask) -> Vec<Kind> {
    let (mut all, mut n) = (Vec::new(), 0);
    // With machines for prompts alone, pools of different machines go together.
    let mixed = ask.machines.iter().any(|m| m.prompts_only);
    let alike = ask.formats.len() * ask.engines.len() * ask.kvs.len();
    for machine in &ask.machines {
        for formats in &ask.formats {
            for engine in &ask.engines {
                for kv in &ask.kvs {
                    let kv = kv.unwrap_or_else(|| usual_cache(&ask.model, *formats, engine));
                    let key = (if mixed { n % alike } else { n }) as u32;
                    let standing = &ask.standings[n];
                    n += 1;
                    if standing.bars(ask.pretend) {
                        continue;
                    }
                    let (mut formats, mut kv, mut system) = (*formats, kv, machine.system.clone());
                    standing.apply(&mut formats, &mut kv, &mut system);
                    let (machine, engine) = (machine.clone(), engine.suited(&system.chip));
                    let pretended = standing.pretended(ask.pretend);
                    all.push(Kind { machine, formats, kv, engine, key, system, pretended, standing: n - 1 });
                }
            }
        }
    }
    all
}

/// Whether each engine runs each format on each machine, in the order of the kinds; where none does, what would.
pub(super) fn standings(catalog: &Catalog, ask: &Ask, r: &Request) -> Result<Vec<Standing>, Error> {
    let mut all = Vec::new();
    let tokens = ask.requests.input + ask.requests.output;
    let mut first = None;
    for machine in &ask.machines {
        for (formats, word) in ask.formats.iter().zip(&r.weights) {
            for (engine, name) in ask.engines.iter().zip(&r.engines) {
                let version = support::version(name);
                for kv in &ask.kvs {
                    let on = Deployment {
                        model: ask.model.clone(),
                        formats: *formats,
                        kv: kv.unwrap_or_else(|| usual_cache(&ask.model, *formats, engine)),
                        system: machine.system.clone(),
                        links: machine.links.clone(),
                        layout: Layout::single(),
                        engine: engine.clone(),
                        side: Bytes::ZERO,
                        senses: None,
                        split: None,
                        adapters: None,
                        drafter: Drafter::Layer,
                    };
                    let asked = Asked::by(Some(word));
                    let mut standing = support::stand(catalog, &on, asked, version)?;
                    if standing.refusal.is_none() {
                        standing.refuse_with(support::too_long(catalog, &ask.model, engine, tokens)?);
                    }
                    first.get_or_insert((on, asked, version));
                    all.push(standing);
                }
            }
        }
    }
    if let Some((on, asked, version)) = first.filter(|_| all.iter().all(|s| s.refusal.is_some())) {
        all[0] = support::stand_for(catalog, &on, asked, version, tokens)?;
    }
    Ok(all)
}

/// Prefill to decode instances: what small whole numbers can say, from 8:1 to 1:8.
fn ratios() -> Vec<(f64, f64)> {
    let all = (1..=8_u32).flat_map(|p| (1..=MOST_DECODE as u32).map(move |d| (p, d)));
    let prime = |p: u32, d: u32| (2..=p.min(d)).all(|k| !p.is_multiple_of(k) || !d.is_multiple_of(k));
    all.filter(|(p, d)| p + d <= 9 && prime(*p, *d)).map(|(p, d)| (f64::from(p), f64::from(d))).collect()
}

/// A layout of a kind.
fn placed(ask: &Ask, kind: &Kind, layout: Layout) -> Deployment {
    Deployment {
        model: ask.model.clone(),
        formats: kind.formats,
        kv: kind.kv,
        system: kind.system.clone(),
        links: kind.machine.links.clone(),
        layout,
        engine: kind.engine.clone(),
        side: Bytes::ZERO,
        senses: None,
        split: None,
        adapters: None,
        drafter: Drafter::Layer,
    }
}

fn item(
    kernels: &KernelSet,
    ask: &Ask,
    at: usize,
    kind: &Kind,
    layout: Layout,
    levels: &[f64],
) -> Result<Option<Vec<ItemRow>>, Error> {
    let machine = &kind.machine;
    let on = placed(ask, kind, layout);
    let own = on.engine.schedule.chunk;
    let chunks: Vec<f64> = if ask.chunks.is_empty() { vec![own] } else { ask.chunks.clone() };
    let least = own.min(chunks[0]);
    let most = on.room(&ask.requests, least);
    if most < 1.0 {
        return Ok(None);
    }
    let drafts = ask.drafts.iter().any(|d| d.0 > 0.0);
    let ready = Ready::new_like(kernels, on.clone(), drafts, None).map_err(|e| untimed(e, &on))?;
    let groups = on.groups();
    let of = Arc::new(Candidate {
        machine: machine.clone(),
        ready,
        kind: at,
        key: kind.key,
        pretended: kind.pretended.clone(),
    });
    let deployment = &of.ready.deployment;
    // Everything without fetching, then with it.
    let offloads: Vec<Option<Fetch>> =
        std::iter::once(None).chain(offload::fetch(ask, machine, kind.kv, &layout).map(Some)).collect();
    // What sending between differently cut caches takes is not known.
    let split = ask.split && layout.degrees().dcp == 1;
    let mut rows = Vec::new();
    for (c, chunk) in chunks.iter().enumerate() {
        let room = if *chunk == least { most } else { deployment.room(&ask.requests, *chunk) };
        if room < 1.0 {
            continue;
        }
        let row = Entry { of: of.clone(), chunk: *chunk, drafts: (0.0, 1.0), room, offload: None };
        if ask.batch.is_some_and(|n| n > row.most()) {
            continue;
        }
        let ready = row.ready();
        let server = ready.server(room);
        let drafted = ask.drafts.iter().enumerate().filter(|(d, _)| *d == 0 || !machine.prompts_only);
        for ((d, drafts), offload) in drafted.flat_map(|draft| offloads.iter().map(move |o| (draft, *o))) {
            let own = ask.fetching(offload);
            let requests = Requests { drafts: drafts.0, accepted: drafts.1, ..own };
            let (mut whole, mut found) = (Vec::new(), Vec::new());
            if !machine.prompts_only {
                fill::states(&server, &requests, groups, levels, &mut whole);
            }
            if let Some(f) = offload {
                fill::wait(&mut whole, f.seconds, groups, levels, row.most());
            }
            // Those that only decode care neither about the chunk nor about fetching: one row of them is enough.
            if split && c == 0 && offload.is_none() && !machine.prompts_only {
                fill::states(&server, &Requests { cached: 1.0, ..requests }, groups, levels, &mut found);
            }
            let prefill = (split && d == 0).then(|| {
                let computed = ready.prompts(&own);
                offload.map_or(computed, |f| fill::prompts(computed, f.seconds))
            });
            rows.push(ItemRow { entry: Entry { drafts: *drafts, offload, ..row.clone() }, whole, found, prefill });
        }
    }
    Ok((!rows.is_empty()).then_some(rows))
}

/// Every job on some thread, results in the order of the jobs.
pub(crate) fn in_order<J: Sync, R: Send>(
    jobs: &[J],
    effort: &Effort,
    run: impl Fn(&J) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let n = effort.threads.clamp(1, jobs.len().max(1));
    let run = |job: &J| {
        effort.check()?;
        run(job)
    };
    if n == 1 {
        return jobs.iter().map(run).collect();
    }
    // Jobs of like size lie next to each other: each thread takes every n-th.
    let run = &run;
    let mut parts: Vec<std::vec::IntoIter<Result<R, Error>>> = std::thread::scope(|scope| {
        let spawn =
            |i: usize| scope.spawn(move || jobs.iter().skip(i).step_by(n).map(run).collect::<Vec<_>>().into_iter());
        let all: Vec<_> = (0..n).map(spawn).collect();
        all.into_iter().map(|t| t.join().expect("preparing does not panic")).collect()
    });
    (0..jobs.len()).filter_map(|at| parts[at % n].next()).collect()
}
