//! How a model is cut over chips: the degrees that are asked for, those that people take, and those that come nearest to holding a load.

use super::prelude::*;
use rackmath_spec::file::flags::{self, Tool};
use rackmath_spec::model::Ffn;
use rackmath_spec::{Model, System};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::layout::{check, check_given, domain};
use rackmath_theory::placement::{self, Fit, Load};

/// Parallel degrees.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DegreesRequest {
    /// Tensor parallel.
    #[schemars(extend("x-flag" = "tp tensor-parallel-size tp-size"))]
    pub tp: Option<u64>,
    /// Pipeline parallel.
    #[schemars(extend("x-flag" = "pp pipeline-parallel-size pp-size"))]
    pub pp: Option<u64>,
    /// Data parallel.
    #[schemars(extend("x-flag" = "dp data-parallel-size dp-size"))]
    pub dp: Option<u64>,
    /// Context parallel.
    #[schemars(extend("x-flag" = "cp context-parallel-size cp-size"))]
    pub cp: Option<u64>,
    /// Expert parallel.
    #[schemars(extend("x-flag" = "ep expert-parallel-size ep-size"))]
    pub ep: Option<u64>,
    /// Expert tensor parallel.
    #[schemars(extend("x-flag" = "etp expert-tensor-parallel-size moe-tp-size", "x-none" = "what ep leaves of a stage's chips"))]
    pub etp: Option<u64>,
    /// Redundant experts per layer.
    #[schemars(extend("x-flag" = "redundant-experts num-redundant-experts ep-num-redundant-experts"))]
    pub redundant: Option<u64>,
    /// Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flag" = "dcp decode-context-parallel-size"))]
    pub dcp: Option<u64>,
}

impl DegreesRequest {
    /// Whether anything is cut over chips.
    pub(crate) fn cuts(&self) -> bool {
        [self.tp, self.pp, self.dp, self.cp, self.ep, self.etp, self.dcp].into_iter().flatten().any(|n| n > 1)
    }
}

impl From<Degrees> for DegreesRequest {
    /// The request for just these.
    fn from(d: Degrees) -> Self {
        Self {
            tp: Some(d.tp),
            pp: Some(d.pp),
            dp: Some(d.dp),
            cp: Some(d.cp),
            ep: Some(d.ep),
            etp: Some(d.etp),
            redundant: Some(d.redundant),
            dcp: Some(d.dcp),
        }
    }
}

/// The layout asked for, by degrees or by a line of a tool, or a sensible one; allowed by model and machine.
pub(crate) fn pick(d: &DegreesRequest, line: Option<(Tool, &str)>, on: &Deployment) -> Result<(Layout, bool), Error> {
    let (layout, chosen) = match line {
        Some((tool, line)) => (flags::read(tool, line)?, false),
        None if *d == DegreesRequest::default() => (usual(&on.model, &on.system), true),
        None if d.ep.is_some_and(|n| n > 1) && on.model.shape().is_some_and(|s| s.moe().is_none()) => {
            let expected = format!("1: {} has no experts", on.model.name);
            return Err(Error::value("layout", format!("ep = {}", d.ep.unwrap_or(1)), expected));
        }
        None => (given(d)?, false),
    };
    check_given(&on.model, &on.system, &layout).map_err(|e| {
        Error::value("layout", format!("{layout} ({} = {})", e.degree, e.given), e.expected + &as_sglang_counts(d, on))
    })?;
    Ok((layout, chosen))
}

/// SGLang counts groups of attention inside its tensor degree, here they stand beside it: how its own degrees are said.
fn as_sglang_counts(d: &DegreesRequest, on: &Deployment) -> String {
    let both = d.tp.zip(d.dp).filter(|(tp, dp)| *dp > 1 && tp.is_multiple_of(*dp) && on.engine.family == "sglang");
    let own = both.map(|(tp, dp)| {
        format!(
            "; degrees here multiply, those of SGLang with attention data parallel do not: give them as \
             {{flags}} \"--tp {tp} --dp {dp} --enable-dp-attention\""
        )
    });
    own.unwrap_or_default()
}

fn given(d: &DegreesRequest) -> Result<Layout, Error> {
    let [tp, pp, dp, cp, ep, dcp] = [d.tp, d.pp, d.dp, d.cp, d.ep, d.dcp].map(|degree| degree.unwrap_or(1));
    let stage = tp.saturating_mul(dp).saturating_mul(cp);
    // What ep leaves of the stage's chips cuts each expert, as serving engines do, unless etp is given.
    let etp = d.etp.unwrap_or(if ep > 0 && stage % ep == 0 { stage / ep } else { 1 });
    let redundant = d.redundant.unwrap_or(0);
    Layout::new(Degrees { tp, pp, dp, cp, ep, etp, redundant, dcp, ..Degrees::default() })
        .map_err(|e| Error::value("layout", e.to_string(), "degrees that go together"))
}

/// The largest layout of one kind of parallelism, or of pipeline stages, that the model, the machine and an engine allow: where a cache
/// cannot be cut along heads, attention in groups that share experts comes first.
pub(crate) fn cut_by(model: &Model, system: &System, allows: impl Fn(&Layout) -> bool) -> Option<Layout> {
    let moe = model.shape().is_some_and(|s| s.moe().is_some());
    let latent = moe && model.shape().is_some_and(|s| s.latent_layers() > 0);
    let sizes: Vec<u64> = (0..=10).map(|k| 1 << k).filter(|n| *n <= system.n_chips).collect();
    let made = |degrees: Degrees| {
        let layout = Layout::new(degrees).ok()?;
        (check(model, system, &layout).is_ok() && allows(&layout)).then_some(layout)
    };
    let all = sizes.iter().rev().flat_map(|n| {
        let groups = latent.then_some(Degrees { dp: *n, ep: *n, ..Degrees::default() });
        let experts = moe.then_some(Degrees { tp: *n, ep: *n, ..Degrees::default() });
        let whole = Degrees { tp: *n, etp: if moe { *n } else { 1 }, ..Degrees::default() };
        groups.into_iter().chain(experts).chain([whole, Degrees { pp: *n, ..Degrees::default() }])
    });
    all.into_iter().find_map(made)
}

/// The lecture's recipe (D34): one scale-up domain, experts over all of it, no pipeline unless weights do not fit.
pub fn usual(model: &Model, system: &System) -> Layout {
    usual_for(model, system, u64::MAX)
}

/// The same for so many requests at a time: a group of attention without one would idle.
pub(crate) fn usual_for(model: &Model, system: &System, requests: u64) -> Layout {
    let chips = domain(system).min(system.n_chips).max(1);
    let legal = |d: Degrees| Layout::new(d).ok().filter(|l| check(model, system, l).is_ok());
    let largest = |limit: u64| (0..30).rev().map(|i| 1u64 << i).filter(move |n| *n <= limit);
    let one = Degrees::default();
    let Some(shape) = model.shape() else {
        return legal(Degrees { dp: chips, ep: chips, ..one }).unwrap_or_else(Layout::single);
    };
    let latent = shape.latent_layers() > 0;
    let sparse = shape.runs.iter().any(|r| matches!(r.block.ffn, Ffn::Moe(_)));
    let of = |n: u64| match (sparse, latent) {
        // A latent cache cannot be cut along heads: attention data parallel.
        (true, true) => largest(n.min(requests)).find_map(|dp| legal(Degrees { tp: n / dp, dp, ep: n, ..one })),
        (true, false) => largest(8.min(n)).find_map(|tp| legal(Degrees { tp, dp: n / tp, ep: n, ..one })),
        (false, _) => legal(Degrees { tp: n, etp: n, ..one }),
    };
    largest(chips).find_map(of).unwrap_or_else(Layout::single)
}

/// The usual layout where it holds a load; else one of the same chips that does, or comes nearest to it: attention cut over more
/// chips is held fewer times.
pub(crate) fn nearest(on: &Deployment, load: &Load) -> Layout {
    let missing = |layout: &Layout| match placement::place(&Deployment { layout: *layout, ..on.clone() }, load).fit {
        Fit::Fits { .. } => Bytes::ZERO,
        Fit::TooLarge { missing, .. } => missing,
    };
    let mut best = (on.layout, missing(&on.layout));
    for layout in fewer_copies(on) {
        if best.1 == Bytes::ZERO {
            break;
        }
        let next = (layout, missing(&layout));
        if next.1 < best.1 {
            best = next;
        }
    }
    best.0
}

/// Layouts of the same chips with fewer copies of attention, then with every expert cut as well.
fn fewer_copies(on: &Deployment) -> impl Iterator<Item = Layout> {
    let d = on.layout.degrees();
    let n = on.layout.chips();
    let groups = std::iter::successors(Some(d.dp / 2), |dp| Some(dp / 2)).take_while(|dp| *dp >= 1);
    let fewer = groups.map(move |dp| Degrees { tp: n / dp, dp, ..d });
    let whole = (d.ep > 1).then_some(Degrees { tp: n, etp: n, ..Degrees::default() });
    let legal = |d: Degrees| Layout::new(d).ok().filter(|layout| check(&on.model, &on.system, layout).is_ok());
    fewer.chain(whole).filter_map(legal)
}

/// The layout in short; shards of experts mean nothing where there are none.
pub(crate) fn words(model: &Model, layout: &Layout) -> String {
    let sparse = model.shape().is_none_or(|s| s.moe().is_some());
    let degrees = if sparse { layout.degrees() } else { Degrees { etp: 1, ..layout.degrees() } };
    Layout::new(degrees).map_or_else(|_| layout.to_string(), |l| l.to_string())
}
