//! From a request to something that can be evaluated: names resolved, numbers checked.

use super::Request;
use super::beside::embeds;
use super::drafter::{self, Guess};
use super::solve::Unknown;
use crate::desk::cut;
use crate::desk::evidence::{Evidence, Scale};
use crate::desk::prelude::*;
use crate::layout::{self, DegreesRequest};
use crate::offload;
use crate::setting::{AUTO, Found, find, machine, paid, untimed, usual_engine};
use crate::support::{self, Asked, Standing, Verdict};
use rackmath_spec::engine::{Engine, Replay, Version};
use rackmath_spec::file::flags::Tool;
use rackmath_theory::deployment::{Deployment, usual_cache};
use rackmath_theory::drafter::Drafter;
use rackmath_theory::pass::{KernelSet, Senses, Spread};
use rackmath_theory::placement;
use rackmath_theory::pools::{Loading, Serving};
use rackmath_theory::steady::Requests;

/// What is evaluated, and what a change alters.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// The deployment; of two pools, the one that decodes.
    pub on: Deployment,
    /// Layout of an instance for prompts alone, and how many; what balances unless given.
    pub split: Option<(Layout, Option<f64>)>,
    pub requests: Requests,
    pub load: Loading,
    /// Users and the seconds each thinks, where these are the load.
    pub users: Option<(f64, f64)>,
    /// Dollars per chip and second, where known.
    pub price: Option<f64>,
}

impl Ask {
    /// Puts what users have in flight in the place of their number.
    pub(crate) fn settle(&mut self, serving: &Serving) {
        if let Some((users, think)) = self.users {
            self.load = Loading::Concurrency(serving.in_flight(&self.requests, users, think).max(1.0));
        }
    }
}

/// A request with everything found.
pub(crate) struct Case<'a> {
    pub catalog: &'a Catalog,
    pub request: &'a Request,
    pub found: Found,
    /// Whether the layout was chosen here.
    pub chosen: bool,
    /// A version of the engine that no family covers.
    pub uncovered: Option<Version>,
    kernels: KernelSet,
    /// Speculation, where it is asked for.
    pub guess: Option<Guess>,
    /// What was measured.
    pub scale: Scale,
    /// Whether the engine runs it there.
    pub standing: Standing,
    /// Whether vectors are wanted instead of answers.
    pub embeds: bool,
    /// What was solved for, where the load is a solution.
    pub sought: Option<Unknown>,
    pub ask: Ask,
}

impl<'a> Case<'a> {
    pub(crate) fn new(catalog: &'a Catalog, request: &'a Request) -> Result<Self, Error> {
        untouched(&request.setting)?;
        let dies = as_devices(catalog, &request.setting)?;
        let setting = dies.as_ref().map_or(&request.setting, |(setting, _)| setting);
        let named = if request.engine == AUTO { usual_engine(catalog, &request.setting) } else { &request.engine };
        let (mut engine, uncovered) = catalog.engine(named)?;
        let cut = request.degrees.cuts() || request.flags.is_some() || request.disaggregated.is_some();
        let together = offload::dealt(catalog, setting, &engine, cut);
        let (alone, cards) = if together { offload::cards(catalog, setting)? } else { Default::default() };
        let mut found = find(catalog, if together { &alone } else { setting })?;
        engine = engine.suited(&found.system.chip);
        overrides(request, &mut engine)?;
        let on = &mut found.deployment;
        if request.setting.kv.as_deref().is_none_or(|word| word == "auto") {
            on.kv = usual_cache(&on.model, on.formats, &engine);
        }
        on.engine = engine;
        let embeds = embeds(request, on);
        let mut requests = requests(request, on, embeds)?;
        let (asked, version) = (Asked::by(request.setting.weights.as_deref()), support::version(&request.engine));
        let mut standing = support::stand_for(catalog, on, asked, version, requests.input + requests.output)?;
        standing.remarks.extend(dies.map(|(_, said)| said));
        standing.apply(&mut on.formats, &mut on.kv, &mut on.system);
        let (mut layout, chosen) = pick(request, &request.degrees, request.flags.as_deref(), on)?;
        if chosen && !standing.cuts(&layout) {
            layout = cut::cut_by(&on.model, &on.system, |layout| standing.cuts(layout)).unwrap_or(layout);
        }
        if chosen && let Some(parted) = beside_pools(request, on, &layout, &requests, |layout| standing.cuts(layout)) {
            layout = parted;
        }
        standing.refuse_layout(&layout);
        on.layout = layout;
        let guess = drafter::put(catalog, request, on, &mut requests)?;
        let at = on.load(&requests, 1.0, on.engine.schedule.chunk);
        request.offload.apply(catalog, on, &at, &cards)?;
        let mut ask = Ask {
            on: on.clone(),
            split: split(request, on, &at)?,
            requests,
            load: load(request)?,
            users: request.seek.load()?,
            price: found.priced().then(|| found.chip_price.get()),
        };
        super::adapters::put(catalog, request.loras.as_ref(), &mut ask)?;
        let kernels = match &ask.on.drafter {
            Drafter::Model(_) => KernelSet::of(catalog)?,
            Drafter::Layer | Drafter::Lookup(_) => KernelSet::of_model(catalog, &ask.on.model)?,
        };
        let scale = Scale::of(catalog)?;
        let sought = None;
        let mut case =
            Self { catalog, request, found, chosen, uncovered, kernels, guess, scale, standing, embeds, sought, ask };
        if let Some(guess) = case.guess.clone() {
            guess.settle(&case.ready(&case.ask)?, &mut case.ask);
        }
        Ok(case)
    }

    /// Whether the engine runs something else than asked for; in the version asked for, where it is the same engine.
    pub(crate) fn stand(&self, on: &Deployment) -> Result<Standing, Error> {
        let version = support::version(&self.request.engine).filter(|_| on.engine.id == self.ask.on.engine.id);
        support::stand(self.catalog, on, Asked::Given, version)
    }

    /// Whether the engine is known to run it, cut like that.
    pub(crate) fn runs(&self, on: &Deployment) -> bool {
        self.stand(on).is_ok_and(|s| s.verdict <= Verdict::RunsAs && s.cuts(&on.layout))
    }

    /// Whether what lies with the host or on further cards has room there.
    pub(crate) fn held(&self) -> bool {
        let on = &self.ask.on;
        let at = on.load(&self.ask.requests, 1.0, on.engine.schedule.chunk);
        offload::card_lacks(on, &at).is_none() && offload::host_lacks(on, &at).is_none()
    }

    /// What the answer rests on.
    pub(crate) fn evidence(&self, p: &Serving) -> Option<Evidence> {
        self.scale.card(&p.main, self.uncovered.is_some(), Some(&self.found.price_source))
    }

    /// Passes of what is asked, prepared.
    pub(crate) fn ready(&self, ask: &Ask) -> Result<Serving, Error> {
        self.ready_like(ask, None)
    }

    /// The same, with what it has in common with another.
    pub(crate) fn ready_like(&self, ask: &Ask, like: Option<&Serving>) -> Result<Serving, Error> {
        Serving::new(&self.kernels, &ask.on, ask.split, &ask.requests, like).map_err(|why| untimed(why, &ask.on))
    }
}

/// The same machine in the devices that programs see, where each die of its packages is one, and a word on it.
fn as_devices(catalog: &Catalog, setting: &Setting) -> Result<Option<(Setting, Remark)>, Error> {
    if setting.on.contains('+') {
        return Ok(None);
    }
    let (name, stated) = machine(&setting.on)?;
    let Ok(system) = catalog.system(name) else { return Ok(None) };
    let Some(device) = &system.chip.device else { return Ok(None) };
    let (dies, packages) = (system.chip.dies, setting.chips.unwrap_or(system.n_chips));
    let price = paid(&setting.on, stated, setting.price_usd_per_chip_hour)?.map(|price| price / dies as f64);
    let said = says("dies_are_devices").with("chip", &system.chip.name).with("dies", dies).with("n", dies * packages);
    let (on, chips) = (format!("{}x{device}", dies * packages), None);
    Ok(Some((Setting { on, chips, price_usd_per_chip_hour: price, ..setting.clone() }, said)))
}

/// An engine decides what is counted and what overlaps.
fn untouched(setting: &Setting) -> Result<(), Error> {
    let usual = Setting::default();
    let fields = [
        ("counting", Some(&setting.counting), Some(&usual.counting)),
        ("overlap", Some(&setting.overlap), Some(&usual.overlap)),
        ("math", setting.math.as_ref(), None),
    ];
    let expected = "none here; the engine decides (use `step` for rooflines)";
    let touched = fields.into_iter().find(|(_, given, usual)| given != usual);
    touched.map_or(Ok(()), |(field, given, _)| {
        Err(Error::value(field, format!("{:?}", given.map_or("", String::as_str)), expected))
    })
}

fn overrides(request: &Request, engine: &mut Arc<Engine>) -> Result<(), Error> {
    let at_least_one = |field, given: Option<f64>| given.map(|n| tokens(field, n, 1.0)).transpose();
    let chunk = at_least_one("max_num_batched_tokens", request.max_num_batched_tokens)?;
    let sequences = at_least_one("max_num_seqs", request.max_num_seqs)?;
    let memory = request.memory_utilisation.map(layout::utilisation).transpose()?;
    if chunk.is_some() || sequences.is_some() || memory.is_some() || request.enforce_eager {
        let s = &mut Arc::make_mut(engine).schedule;
        if request.enforce_eager {
            (s.graph, s.graph_prompts) = (0.0, Replay::Never);
        }
        s.chunk = chunk.map_or(s.chunk, Tokens::get);
        s.tell(sequences.map(Tokens::get));
        s.memory = memory.or(s.memory);
    }
    Ok(())
}

/// The layout asked for or a usual one, which the engine can run.
fn pick(r: &Request, d: &DegreesRequest, line: Option<&str>, on: &Deployment) -> Result<(Layout, bool), Error> {
    let usual = || Ok(on.engine.family.parse().unwrap_or(Tool::Vllm));
    let tool = r.tool.as_ref().map_or_else(usual, |word| word.parse::<Tool>());
    let line = line.map(|line| tool.map(|tool| (tool, line))).transpose()?;
    let (mut layout, chosen) = cut::pick(d, line, on)?;
    if let (true, Loading::Concurrency(n)) = (chosen, load(r)?) {
        layout = cut::usual_for(&on.model, &on.system, n as u64);
    }
    let cut = layout.degrees().dcp;
    let expected = match on.engine.family.as_str() {
        _ if cut <= 1 => return Ok((layout, chosen)),
        "vllm" if r.disaggregated.is_none() => return Ok((layout, chosen)),
        "vllm" => "1 where prompts have chips of their own".into(),
        family => format!("1: not modelled for {family}, only for vllm"),
    };
    Err(Error::value("dcp", cut.to_string(), expected))
}

/// A layout that leaves chips for prompts, and for pictures, which have some of their own, where the usual one does not.
fn beside_pools(
    request: &Request,
    on: &Deployment,
    usual: &Layout,
    requests: &Requests,
    cuts: impl Fn(&Layout) -> bool,
) -> Option<Layout> {
    let encoders = on.senses.as_deref().filter(|s| s.spread == Spread::Apart && s.tokens() > 0.0);
    let encoders = encoders.map_or(0, |s| s.chips.unwrap_or(1.0) as u64);
    let prompts = request.disaggregated.as_ref().map(|d| {
        let own = d.prefill != DegreesRequest::default();
        let given = own.then(|| pick(request, &d.prefill, None, on).ok()).flatten().map(|(layout, _)| layout.chips());
        d.prefill_chips.or(given)
    });
    let there = |layout: &Layout| {
        let prompts = prompts.map_or(0, |given| given.unwrap_or(layout.chips()));
        layout.chips() + prompts + encoders <= on.system.n_chips
    };
    if (prompts.is_none() && encoders == 0) || there(usual) {
        return None;
    }
    let holds = |layout: &Layout| {
        let cut = Deployment { layout: *layout, ..on.clone() };
        cut.room(requests, on.engine.schedule.chunk) >= 1.0
    };
    cut::cut_by(&on.model, &on.system, |layout| cuts(layout) && there(layout) && holds(layout))
}

fn split(request: &Request, on: &Deployment, load: &placement::Load) -> Result<Option<(Layout, Option<f64>)>, Error> {
    let Some(d) = &request.disaggregated else { return Ok(None) };
    let own = d.prefill == DegreesRequest::default();
    let mut layout = if own { on.layout } else { pick(request, &d.prefill, None, on)?.0 };
    // Chips for prompts that are no whole number of those for answers are cut in their own way.
    if let Some(n) = d.prefill_chips.filter(|n| own && *n > 0 && n % layout.chips() != 0) {
        let holds =
            |layout: &Layout| placement::largest_batch(&Deployment { layout: *layout, ..on.clone() }, load) >= 1.0;
        layout = cut::cut_by(&on.model, &on.system, |l| n % l.chips() == 0 && holds(l)).unwrap_or(layout);
    }
    let chips = layout.chips();
    let (n, expected) = (d.prefill_chips, format!("a multiple of the {chips} chips of {layout}"));
    refuse_if(n.is_some_and(|n| n == 0 || n % chips != 0), "prefill_chips", n.unwrap_or(0), expected)?;
    Ok(Some((layout, n.map(|n| (n / chips) as f64))))
}

fn requests(request: &Request, on: &mut Deployment, embeds: bool) -> Result<Requests, Error> {
    let text = tokens("isl", request.isl, 1.0)?.get();
    let senses = request.media.as_ref().map_or(Ok(None), |media| media.senses(&on.model, text))?;
    let input = text + senses.as_ref().map_or(0.0, Senses::tokens);
    on.senses = senses.map(Arc::new);
    // A vector takes the pass of its text and no more.
    let output = if embeds { 1.0 } else { tokens("osl", request.osl, 1.0)?.get() };
    let expected = "2 tokens or more, or 0 for vectors of an embedding model";
    refuse_if(output < 2.0 && !embeds, "osl", request.osl, expected)?;
    let cached = share("prefix_hit", request.prefix_hit)?;
    Ok(Requests { cached, ..Requests::of(input, output) })
}

pub(super) fn share(field: &'static str, x: f64) -> Result<f64, Error> {
    Fraction::checked(x).map(Fraction::get).ok_or_else(|| Error::value(field, x, "a share from 0 to 1"))
}

fn load(request: &Request) -> Result<Loading, Error> {
    let users = request.seek.load()?.map(|(users, _)| users);
    match (request.concurrency.or(users), request.rate_per_s, request.max_load) {
        (Some(_), ..) if users.is_some() && request.concurrency.is_some() => {
            Err(Error::value("load", "users and concurrency", "one of them: users who do not think are a concurrency"))
        }
        (None, None, false) => Ok(Loading::Concurrency(64.0)),
        (Some(c), None, false) if (1.0..=1e7).contains(&c) => Ok(Loading::Concurrency(c)),
        (Some(c), None, false) => Err(Error::value("concurrency", c, "1 to 10,000,000 requests in flight")),
        (None, Some(r), false) if r > 0.0 && r <= 1e7 => Ok(Loading::Rate(r)),
        (None, Some(r), false) => Err(Error::value("rate_per_s", r, "requests per second above 0, at most 1e7")),
        (None, None, true) => Ok(Loading::Full),
        _ => Err(Error::value("load", "more than one", "one of {concurrency}, {rate_per_s}, {seek.users}, {max_load}")),
    }
}
