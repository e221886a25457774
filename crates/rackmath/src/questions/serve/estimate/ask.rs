//! From a request to something that can be evaluated: names resolved, numbers checked.

use super::{Request, Speculation};
use crate::Error;
use crate::layout::{self, DegreesRequest};
use crate::setting::{Resolved, Setting, resolve, tokens};
use rackmath_spec::engine::Engine;
use rackmath_spec::file::flags::Tool;
use rackmath_spec::{Catalog, Layout};
use rackmath_theory::deployment::{Deployment, usual_cache};
use rackmath_theory::kv;
use rackmath_theory::layout::check;
use rackmath_theory::pass::KernelSet;
use rackmath_theory::steady::Requests;
use rackmath_units::{Fraction, float};

/// How load comes, over all groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Loading {
    /// So many requests in flight.
    Concurrency(f64),
    /// So many a second.
    Rate(f64),
    /// What memory and the engine hold.
    Full,
}

/// What is evaluated, and what a change alters.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    /// The deployment; of two pools, the one that decodes.
    pub parts: Deployment,
    /// The pool that computes prompts.
    pub split: Option<SplitAsk>,
    /// Requests.
    pub requests: Requests,
    /// Load.
    pub load: Loading,
    /// Dollars per chip and second, where known.
    pub price: Option<f64>,
}

/// Chips of their own for prompts.
#[derive(Clone, Copy, Debug)]
pub(super) struct SplitAsk {
    /// Layout of an instance.
    pub layout: Layout,
    /// Instances; what balances unless given.
    pub instances: Option<f64>,
}

/// A request with everything found.
pub(super) struct Case<'a> {
    /// As asked.
    pub request: &'a Request,
    /// Model, machine, price.
    pub resolved: Resolved,
    /// Whether the layout was chosen here.
    pub chosen: bool,
    /// What was assumed about the engine's version.
    pub version_note: Option<String>,
    /// Kernels of the catalogue.
    pub kernels: KernelSet,
    /// What is evaluated.
    pub ask: Ask,
}

impl<'a> Case<'a> {
    pub(super) fn new(catalog: &Catalog, request: &'a Request) -> Result<Self, Error> {
        untouched(&request.setting)?;
        let mut resolved = resolve(catalog, &request.setting)?;
        let (mut engine, version_note) = catalog.engine(&request.engine)?;
        overrides(request, std::sync::Arc::make_mut(&mut engine))?;
        if request.setting.kv.as_deref().is_none_or(|word| word == "auto") {
            let kv = usual_cache(&resolved.model, resolved.formats, &engine);
            resolved.found.deployment.kv = kv;
            resolved.cache = kv::cache(&resolved.model, kv);
        }
        let (layout, chosen) = pick(request, &request.degrees, request.flags.as_deref(), &engine, &resolved)?;
        let split = split(request, layout, &engine, &resolved)?;
        let parts = Deployment { layout, engine, ..resolved.deployment.clone() };
        let price = resolved.priced().then(|| resolved.chip_price.get());
        let ask = Ask { parts, split, requests: requests(request)?, load: load(request)?, price };
        let kernels = KernelSet::of(catalog)?;
        Ok(Self { request, resolved, chosen, version_note, kernels, ask })
    }
}

/// An engine decides what is counted and what overlaps.
fn untouched(setting: &Setting) -> Result<(), Error> {
    let usual = Setting::default();
    let why = "none here; the engine decides (use `step` for rooflines)";
    if setting.counting != usual.counting {
        return Err(Error::value("counting", format!("\"{}\"", setting.counting), why));
    }
    if setting.overlap != usual.overlap {
        return Err(Error::value("overlap", format!("\"{}\"", setting.overlap), why));
    }
    match &setting.math {
        Some(math) => Err(Error::value("math", format!("\"{math}\""), why)),
        None => Ok(()),
    }
}

fn overrides(request: &Request, engine: &mut Engine) -> Result<(), Error> {
    let s = &mut engine.schedule;
    if let Some(chunk) = request.max_num_batched_tokens {
        s.chunk = tokens("max_num_batched_tokens", chunk, 1.0)?.get();
    }
    if let Some(sequences) = request.max_num_seqs {
        s.sequences = tokens("max_num_seqs", sequences, 1.0)?.get();
    }
    if let Some(share) = request.memory_utilisation {
        s.memory = Fraction::checked(share)
            .filter(|u| u.get() > 0.0)
            .ok_or_else(|| Error::value("memory_utilisation", share, "a share above 0, at most 1"))?;
    }
    Ok(())
}

/// The layout asked for or a usual one, allowed by model and machine.
fn pick(
    request: &Request,
    degrees: &DegreesRequest,
    flags: Option<&str>,
    engine: &Engine,
    r: &Resolved,
) -> Result<(Layout, bool), Error> {
    let own = engine.family.parse::<Tool>().map_or("vllm", Tool::name);
    let asked = layout::Request {
        degrees: degrees.clone(),
        flags: flags.map(str::to_owned),
        tool: Some(request.tool.clone().unwrap_or_else(|| own.to_owned())),
        ..layout::Request::default()
    };
    let (layout, chosen) = layout::pick(&asked, r)?;
    check(&r.model, &r.system, &layout)
        .map_err(|e| Error::value("layout", format!("{layout} ({} = {})", e.degree, e.given), e.expected))?;
    let cut = layout.degrees().dcp;
    if cut > 1 && engine.family != "vllm" {
        return Err(Error::value(
            "dcp",
            cut.to_string(),
            format!("1: not modelled for {}, only for vllm", engine.family),
        ));
    }
    if cut > 1 && request.disaggregated.is_some() {
        return Err(Error::value("dcp", cut.to_string(), "1 where prompts have chips of their own"));
    }
    Ok((layout, chosen))
}

fn split(request: &Request, decode: Layout, engine: &Engine, r: &Resolved) -> Result<Option<SplitAsk>, Error> {
    let Some(d) = &request.disaggregated else { return Ok(None) };
    let layout =
        if d.prefill == DegreesRequest::default() { decode } else { pick(request, &d.prefill, None, engine, r)?.0 };
    let chips = layout.chips();
    let instances = match d.prefill_chips {
        Some(n) if n == 0 || n % chips != 0 => {
            return Err(Error::value("prefill_chips", n, format!("a multiple of the {chips} chips of {layout}")));
        }
        other => other.map(|n| (n / chips) as f64),
    };
    Ok(Some(SplitAsk { layout, instances }))
}

fn requests(request: &Request) -> Result<Requests, Error> {
    let input = tokens("isl", request.isl, 1.0)?.get();
    let output = tokens("osl", request.osl, 1.0)?.get();
    if output < 2.0 {
        let expected = "2 tokens or more; prompts alone are a question for `step --pass`";
        return Err(Error::value("osl", request.osl, expected));
    }
    let cached = Fraction::checked(request.prefix_hit)
        .ok_or_else(|| Error::value("prefix_hit", request.prefix_hit, "a share from 0 to 1"))?
        .get();
    let (drafts, accepted) = request.speculation.as_ref().map_or(Ok((0.0, 1.0)), accepted)?;
    Ok(Requests { cached, drafts, accepted, ..Requests::of(input, output) })
}

/// Tokens a step yields when each of k drafts is accepted with chance α, provided all before it were: the sum of α^i for i
/// from 0 to k, the first term for the token that is always right.
pub(crate) fn yielded(drafts: f64, acceptance: f64) -> f64 {
    if acceptance >= 1.0 {
        return drafts + 1.0;
    }
    (1.0 - float::pow(acceptance, drafts + 1.0)) / (1.0 - acceptance)
}

fn accepted(s: &Speculation) -> Result<(f64, f64), Error> {
    let drafts = tokens("drafts", s.drafts, 0.0)?.get();
    if drafts > 64.0 {
        return Err(Error::value("drafts", s.drafts, "0 to 64 tokens"));
    }
    let most = drafts + 1.0;
    match (s.accepted, s.acceptance) {
        (Some(a), None) if (1.0..=most).contains(&a) => Ok((drafts, a)),
        (Some(a), None) => Err(Error::value("accepted", a, format!("1 to {most} tokens a step"))),
        (None, Some(alpha)) => match Fraction::checked(alpha) {
            Some(alpha) => Ok((drafts, yielded(drafts, alpha.get()))),
            None => Err(Error::value("acceptance", alpha, "a share from 0 to 1")),
        },
        (None, None) => Err(Error::value("speculation", "no acceptance", "accepted or acceptance, as measured")),
        (Some(_), Some(_)) => Err(Error::value("speculation", "accepted and acceptance", "one of them")),
    }
}

fn load(request: &Request) -> Result<Loading, Error> {
    match (request.concurrency, request.rate_per_s, request.max_load) {
        (None, None, false) => Ok(Loading::Concurrency(64.0)),
        (Some(c), None, false) if (1.0..=1e7).contains(&c) => Ok(Loading::Concurrency(c)),
        (Some(c), None, false) => Err(Error::value("concurrency", c, "1 to 10,000,000 requests in flight")),
        (None, Some(r), false) if r > 0.0 && r <= 1e7 => Ok(Loading::Rate(r)),
        (None, Some(r), false) => Err(Error::value("rate_per_s", r, "requests per second above 0, at most 1e7")),
        (None, None, true) => Ok(Loading::Full),
        _ => Err(Error::value("load", "more than one", "one of concurrency, rate_per_s, max_load")),
    }
}
