//! What would make a deployment fit: each change is placed on its chips before it is named.

use super::cut::words;
use super::prelude::*;
use super::setting::LLAMA_CPP;
use rackmath_spec::engine::Engine;
use rackmath_spec::model::Formats;
use rackmath_spec::{Gguf, Math, System};
use rackmath_theory::deployment::{Deployment, usual_cache};
use rackmath_theory::layout::check;
use rackmath_theory::placement::{self, Load};

/// The first change that makes a deployment fit.
pub(crate) fn first_change(
    on: &Deployment,
    load: &Load,
    most: f64,
    runs: impl Fn(&Deployment) -> bool,
) -> Option<Remark> {
    if most >= 1.0 {
        return Some(says("batch_instead").with("batch", most).with("now", load.batch));
    }
    remedies(on, load, runs).into_iter().next().map(|(what, _)| what)
}

/// Changes that make room for a request, one of each kind, from the cheapest to the dearest: other degrees on the chips
/// there are, a narrower cache, narrower weights, more chips. Each is placed on its chips before it is named.
pub(crate) fn remedies(on: &Deployment, load: &Load, runs: impl Fn(&Deployment) -> bool) -> Vec<(Remark, Deployment)> {
    let fits = |on: &Deployment| placement::largest_batch(on, load) >= 1.0;
    // More chips are more of the machines there are.
    let own = on.system.n_chips.max(1);
    let wider = wider(on).into_iter().filter(|l| l.chips() <= own || l.chips().is_multiple_of(own));
    let (here, there): (Vec<Layout>, Vec<Layout>) = wider.partition(|l| l.chips() <= own);
    let placed = |layout: Layout| {
        let mut system = System::clone(&on.system);
        let more = layout.chips() > system.n_chips;
        system.n_chips = system.n_chips.max(layout.chips());
        check(&on.model, &system, &layout).ok()?;
        let next = Deployment { layout, system: system.into(), ..on.clone() };
        let what = says("layout_on").with("layout", words(&on.model, &layout));
        let what = what.with("chips", more.then(|| layout.chips()));
        (fits(&next) && runs(&next)).then_some((what, next))
    };
    let narrow = narrow_cache(&on.engine);
    let cache = (on.kv.bits() > 12.0).then(|| Deployment { kv: narrow, ..on.clone() });
    let cache = cache.filter(|next| runs(next) && fits(next));
    let weights = narrower(on, &runs).into_iter().find_map(|dtype| {
        let next = in_format(on, dtype);
        fits(&next).then(|| (says("weights_in").with("format", dtype), next))
    });
    let mut all: Vec<(Remark, Deployment)> = here.into_iter().find_map(placed).into_iter().collect();
    all.extend(cache.map(|next| (says("kv_in").with("format", narrow), next)));
    all.extend(weights);
    all.extend(there.into_iter().find_map(placed));
    all
}

/// The narrower format that an engine keeps a cache in.
pub(crate) fn narrow_cache(engine: &Engine) -> Dtype {
    if engine.family == LLAMA_CPP { Dtype::Gguf(Gguf::Q8_0) } else { Dtype::Fp8 }
}

/// The same with weights in a format, and the cache that the engine takes with it where it is the engine's choice.
pub(crate) fn in_format(on: &Deployment, dtype: Dtype) -> Deployment {
    let formats = match dtype {
        Dtype::Gguf(_) => on.model.formats_in(dtype),
        _ => Formats { routed: dtype, linear: dtype, mixer: dtype, ..on.formats },
    };
    let usual = |formats| usual_cache(&on.model, formats, &on.engine);
    let kv = if on.kv == usual(on.formats) { usual(formats) } else { on.kv };
    Deployment { formats, kv, ..on.clone() }
}

/// Formats narrower than today's that the engine runs on the chip, the widest first: one of 8 bits, and one of 4, which is a
/// float only where the chip multiplies such.
pub(crate) fn narrower(on: &Deployment, runs: impl Fn(&Deployment) -> bool) -> Vec<Dtype> {
    let floats = on.system.chip.peak.contains_key(&Math::Fp4);
    let four: &[Dtype] = if floats { &[Dtype::NvFp4, Dtype::MxFp4] } else { &[Dtype::Int4] };
    let (eight, four): (&[Dtype], &[Dtype]) = if on.engine.family == LLAMA_CPP {
        (&[Dtype::Gguf(Gguf::Q8_0)], &[Dtype::Gguf(Gguf::Q4KM)])
    } else {
        (&[Dtype::Fp8, Dtype::Int8], four)
    };
    let now = on.formats.linear.bits().max(on.formats.routed.bits());
    let there = |dtype: &Dtype| dtype.bits() < now && runs(&in_format(on, *dtype));
    [eight, four].into_iter().filter_map(|like| like.iter().copied().find(there)).collect()
}

/// The same layout over more chips: its tensors, groups or stages times a whole number, fewest chips first.
fn wider(on: &Deployment) -> Vec<Layout> {
    let d = on.layout.degrees();
    let times = |factor: u64| {
        [
            Degrees { tp: d.tp * factor, etp: d.etp * factor, ..d },
            Degrees { dp: d.dp * factor, ep: d.ep * factor, ..d },
            Degrees { pp: d.pp * factor, ..d },
        ]
    };
    let all = (2..=64).flat_map(times).filter_map(|degrees| Layout::new(degrees).ok());
    let mut all: Vec<Layout> = all.collect();
    all.sort_by_key(Layout::chips);
    all
}
