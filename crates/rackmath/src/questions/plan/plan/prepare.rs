//! From a request to a space: every deployment prepared once, its states tabulated.

use super::layouts::layouts;
use super::offload::{self, Fetch};
use super::{Ask, Machine};
use crate::Error;
use crate::estimate::split::sending;
use crate::setting::untimed;
use rackmath_spec::engine::Engine;
use rackmath_spec::file::flags::Tool;
use rackmath_spec::model::Formats;
use rackmath_spec::{Dtype, Layout};
use rackmath_theory::deployment::{Deployment, Ready, usual_cache};
use rackmath_theory::kv;
use rackmath_theory::pass::{KernelSet, Pass};
use rackmath_theory::plan::space::MOST_DECODE;
use rackmath_theory::plan::{Prefill, Row, Space, State, fetch, fill, pools};
use rackmath_theory::steady::{Requests, Server};
use rackmath_units::{Bytes, Tokens};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What deployments of one key share.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    /// The machine.
    pub machine: usize,
    /// Weight formats.
    pub formats: Formats,
    /// Cache format.
    pub kv: Dtype,
    /// The engine.
    pub engine: Arc<Engine>,
    /// Pools of equal keys go together.
    pub key: u32,
}

/// A row in words a person uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The prepared deployment.
    pub deployment: usize,
    /// Tokens in a pass.
    pub chunk: f64,
    /// Drafts and accepted tokens.
    pub drafts: (f64, f64),
    /// Sequences a group holds.
    pub room: f64,
    /// What is fetched from host memory for each prompt.
    pub offload: Option<Fetch>,
}

/// The space, and what its numbers stand for.
pub(super) struct Prepared {
    /// The numbers.
    pub space: Space,
    /// One entry per row.
    pub entries: Vec<Entry>,
    /// Prepared deployments.
    pub deployments: Vec<Ready>,
    /// Kinds, by key.
    pub kinds: Vec<Kind>,
    /// The kind of each deployment.
    pub kind_of: Vec<usize>,
    /// Concurrencies of a group.
    pub levels: Vec<f64>,
    /// Layouts that were looked at, whether or not the model fits.
    pub layouts: usize,
}

/// One deployment with its rows.
struct Item {
    kind: usize,
    deployment: Ready,
    rows: Vec<ItemRow>,
}

struct ItemRow {
    entry: Entry,
    whole: Vec<State>,
    found: Vec<State>,
    prefill: Option<(f64, f64)>,
}

impl Prepared {
    pub(super) fn new(kernels: &KernelSet, ask: &Ask, threads: usize) -> Result<Self, Error> {
        let kinds = kinds(ask);
        let mut jobs: Vec<(usize, Layout)> = Vec::new();
        for (at, kind) in kinds.iter().enumerate() {
            let machine = &ask.machines[kind.machine];
            let tool = kind.engine.family.parse::<Tool>().ok();
            let chips = machine.chips.min(ask.largest);
            let all = layouts(&ask.model, &machine.system, tool, chips, ask.degrees, &ask.cuts);
            jobs.extend(all.into_iter().map(|layout| (at, layout)));
        }
        let most = kinds.iter().map(|k| k.engine.schedule.sequences).fold(1.0, f64::max);
        let levels = fill::levels(most.min(8192.0));
        let items =
            in_order(&jobs, threads, |(kind, layout)| item(kernels, ask, *kind, &kinds[*kind], *layout, &levels))?;
        let mut p = Self {
            space: Space {
                levels: levels.len(),
                ratios: ratios(),
                prompt_cv2: ask.requests.spread.prompt_cv2,
                ..Space::default()
            },
            entries: Vec::new(),
            deployments: Vec::new(),
            kinds,
            kind_of: Vec::new(),
            levels,
            layouts: jobs.len(),
        };
        for item in items.into_iter().flatten() {
            p.add(ask, item);
        }
        if ask.split {
            p.pair(ask);
        }
        Ok(p)
    }

    fn add(&mut self, ask: &Ask, item: Item) {
        let deployment = self.deployments.len();
        let machine = &ask.machines[self.kinds[item.kind].machine];
        let layout = item.deployment.deployment.layout;
        for row in item.rows {
            if let Some((service, alone)) = row.prefill {
                let groups = layout.degrees().dp as f64;
                self.space.prefills.push(Prefill { row: self.entries.len(), service, alone, groups });
            }
            self.entries.push(Entry { deployment, ..row.entry });
            self.space.rows.push(Row {
                key: self.kinds[item.kind].key,
                machine: self.kinds[item.kind].machine as u32,
                class: 0,
                scale: scale(ask, machine),
                chips: layout.chips() as f64,
                usd_s: machine.usd_s,
                watts: machine.watts,
            });
            self.space.whole.push(&row.whole);
            self.space.found.push(&row.found);
        }
        self.deployments.push(item.deployment);
        self.kind_of.push(item.kind);
    }

    /// Seconds to send a prompt between deployments, by class: what does not depend on how many groups there are and how
    /// experts are cut is worked out once.
    fn pair(&mut self, ask: &Ask) {
        let prompt = Tokens::new(ask.requests.input);
        let bytes: Vec<Bytes> = self.kinds.iter().map(|k| kv::cache(&ask.model, k.kv).stored(prompt)).collect();
        let mut classes: Vec<usize> = Vec::new();
        let mut known: BTreeMap<(usize, [u64; 4]), u32> = BTreeMap::new();
        for (row, entry) in self.space.rows.iter_mut().zip(&self.entries) {
            let d = self.deployments[entry.deployment].deployment.layout.degrees();
            row.class =
                *known.entry((self.kind_of[entry.deployment], [d.tp, d.pp, d.cp, d.dcp])).or_insert_with(|| {
                    classes.push(entry.deployment);
                    classes.len() as u32 - 1
                });
        }
        let sent = |from: usize, to: usize| {
            let (sender, receiver) = (&self.kinds[self.kind_of[from]], &self.kinds[self.kind_of[to]]);
            if sender.key != receiver.key {
                return 0.0;
            }
            let over = |here: usize, there: usize| {
                let (here, there) = (&self.deployments[here].deployment, &self.deployments[there].deployment);
                sending(bytes[self.kind_of[to]], &there.layout, here).0
            };
            let received = over(to, from);
            // Between two machines the slower network counts.
            if sender.machine == receiver.machine { received } else { received.max(over(from, to)) }
        };
        self.space.send = classes.iter().map(|from| classes.iter().map(|to| sent(*from, *to)).collect()).collect();
    }

    /// One group of a row as a server.
    pub(super) fn engine_of(&self, row: usize) -> Engine {
        let entry = &self.entries[row];
        let mut engine = Engine::clone(&self.deployments[entry.deployment].deployment.engine);
        engine.schedule.chunk = entry.chunk;
        engine
    }
}

/// Chips of the limit that a chip of a machine stands for. The limit is written in chips of the machine that offers most.
fn scale(ask: &Ask, machine: &Machine) -> f64 {
    let most = ask.machines.iter().map(|m| m.chips).max().unwrap_or(1);
    // All chips of a machine are allowed, whatever the last bit of a quotient says.
    if most == machine.chips { 1.0 } else { most as f64 / machine.chips as f64 * (1.0 - 1e-12) }
}

fn kinds(ask: &Ask) -> Vec<Kind> {
    let mut all = Vec::new();
    // With machines for prompts alone, pools of different machines go together.
    let mixed = ask.machines.iter().any(|m| m.prompts_only);
    let alike = ask.formats.len() * ask.engines.len() * ask.kvs.len();
    for at in 0..ask.machines.len() {
        for formats in &ask.formats {
            for engine in &ask.engines {
                for kv in &ask.kvs {
                    let kv = kv.unwrap_or_else(|| usual_cache(&ask.model, *formats, engine));
                    let key = (if mixed { all.len() % alike } else { all.len() }) as u32;
                    all.push(Kind { machine: at, formats: *formats, kv, engine: engine.clone(), key });
                }
            }
        }
    }
    all
}

/// Prefill to decode instances: what small whole numbers can say, from 8:1 to 1:8.
fn ratios() -> Vec<(f64, f64)> {
    let mut all = Vec::new();
    for p in 1..=8_u32 {
        for d in 1..=MOST_DECODE as u32 {
            let prime = (2..=p.min(d)).all(|k| p % k != 0 || d % k != 0);
            if prime && p + d <= 9 {
                all.push((f64::from(p), f64::from(d)));
            }
        }
    }
    all
}

fn item(
    kernels: &KernelSet,
    ask: &Ask,
    kind_at: usize,
    kind: &Kind,
    layout: Layout,
    levels: &[f64],
) -> Result<Option<Item>, Error> {
    let machine: &Machine = &ask.machines[kind.machine];
    let on = Deployment {
        model: ask.model.clone(),
        formats: kind.formats,
        kv: kind.kv,
        system: machine.system.clone(),
        links: machine.links.clone(),
        layout,
        engine: kind.engine.clone(),
    };
    let own = on.engine.schedule.chunk;
    let chunks: Vec<f64> = if ask.chunks.is_empty() { vec![own] } else { ask.chunks.clone() };
    let least = own.min(chunks[0]);
    let most = on.room(&ask.requests, least);
    if most < 1.0 {
        return Ok(None);
    }
    let drafts = ask.drafts.iter().any(|d| d.0 > 0.0);
    let pass = Pass::prepare_for(&on, kernels, drafts).map_err(|e| untimed(e, &on.model, &on.system, on.formats))?;
    let deployment = Ready { deployment: on, pass };
    let groups = layout.degrees().dp as f64;
    // Everything without fetching, then with it.
    let offloads: Vec<Option<Fetch>> =
        std::iter::once(None).chain(offload::fetch(ask, machine, kind.kv, &layout).map(Some)).collect();
    // What sending between differently cut caches takes is not known.
    let split = ask.split && layout.degrees().dcp == 1;
    let mut rows = Vec::new();
    for (c, chunk) in chunks.iter().enumerate() {
        let room = if *chunk == least { most } else { deployment.deployment.room(&ask.requests, *chunk) };
        if room < 1.0 {
            continue;
        }
        let mut schedule = deployment.deployment.engine.schedule.clone();
        schedule.chunk = *chunk;
        let overhead = &deployment.deployment.engine.overhead;
        let server = Server { pass: &deployment.pass, schedule: &schedule, overhead, room };
        let drafted = ask.drafts.iter().enumerate().filter(|(d, _)| *d == 0 || !machine.prompts_only);
        for ((d, drafts), offload) in drafted.flat_map(|draft| offloads.iter().map(move |o| (draft, *o))) {
            let own = offload::requests(ask, offload);
            let requests = Requests { drafts: drafts.0, accepted: drafts.1, ..own };
            let (mut whole, mut found) = (Vec::new(), Vec::new());
            if !machine.prompts_only {
                fill::states(&server, &requests, groups, levels, &mut whole);
            }
            if let Some(f) = offload {
                let most = room.min(schedule.sequences * deployment.pass.stages()).floor();
                fetch::wait(&mut whole, f.seconds, groups, levels, most);
            }
            // Those that only decode care neither about the chunk nor about fetching: one row of them is enough.
            if split && c == 0 && offload.is_none() && !machine.prompts_only {
                fill::states(&server, &Requests { cached: 1.0, ..requests }, groups, levels, &mut found);
            }
            let prefill = (split && d == 0).then(|| {
                let computed = pools::service(&deployment.pass, *chunk, overhead.request.get(), groups, &own);
                offload.map_or(computed, |f| fetch::prompts(computed, f.seconds, groups))
            });
            rows.push(ItemRow {
                entry: Entry { deployment: 0, chunk: *chunk, drafts: *drafts, room, offload },
                whole,
                found,
                prefill,
            });
        }
    }
    Ok(Some(Item { kind: kind_at, deployment, rows }))
}

/// Every job on some thread, results in the order of the jobs.
pub(crate) fn in_order<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    run: impl Fn(&J) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let n = threads.clamp(1, jobs.len().max(1));
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
