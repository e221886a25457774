//! Reversible networks measured: memory, arithmetic, gradients and drift of a small transformer, and ciphers beside it.

use crate::desk::prelude::*;
use rackmath_reversible::avalanche::Mixer;
use rackmath_reversible::drift::Stack;
use rackmath_reversible::step::{Keep, Step, Stored, step, train};
use rackmath_reversible::{Config, Weights, feistel};
use rackmath_theory::reversible as theory;

/// Which network to measure, and which model to apply the formulas to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// A model of the catalogue for the closed forms.
    #[schemars(extend("x-file" = "model", "x-position" = 2))]
    pub model: String,
    /// Tokens in flight per chip while training it: sequence times batch.
    pub tokens: f64,
    /// Values of 2 bytes that a layer of it keeps for each token and width.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-none" = "17"))]
    pub values: Option<f64>,
    /// Deepest network to measure.
    #[schemars(extend("x-most" = [32, "blocks of a trained network"]))]
    pub depth: u64,
    /// Training steps to run.
    #[schemars(extend("x-most" = [100, "training steps"]))]
    pub steps: u64,
    /// Seed of weights and batches.
    pub seed: u64,
}

impl Request {
    fn blocks(&self) -> usize {
        self.depth as usize
    }
}

impl Default for Request {
    fn default() -> Self {
        Self { model: "llama-3.1-70b".into(), tokens: 8192.0, values: None, depth: 32, steps: 60, seed: 1 }
    }
}

/// What was measured and what the formulas say.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// The network measured, in words.
    pub network: String,
    /// The ways of keeping activations.
    pub ways: Vec<Way>,
    /// The reversible slope over the ordinary one.
    pub slope_ratio: f64,
    /// How far reversible gradients are from ordinary ones, by arithmetic of the streams, at the greatest depth.
    pub gradients: Vec<GradientCard>,
    /// What is rebuilt, by depth.
    pub drift: Vec<DriftCard>,
    /// How far a flipped bit or sign spreads.
    pub avalanche: Vec<AvalancheCard>,
    /// Sixteen rounds of squares modulo 2^32 on (7, 5), forward and back: what went in, what it became, what came back.
    pub feistel: ((u32, u32), (u32, u32), (u32, u32)),
    /// The formulas applied to a model.
    pub model: Vec<FormulaCard>,
    /// Peak activations against depth.
    pub memory_figure: Figure,
    /// Drift against depth.
    pub drift_figure: Figure,
    /// Avalanche against rounds.
    pub avalanche_figure: Figure,
    /// What was assumed.
    pub assumptions: Vec<String>,
}

/// One way of keeping activations, measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Way {
    /// `ordinary`, `checkpointed`, `spaced checkpoints` or `reversible`.
    pub way: String,
    /// Depth and peak bytes of activations.
    pub peak_bytes: Vec<(usize, usize)>,
    /// Bytes a further block adds.
    pub slope_bytes_per_block: f64,
    /// Operations of a block, over the ordinary way's.
    pub flop_over_ordinary: f64,
    /// The formula for the same: 4/3 where a forward is computed again.
    pub formula: f64,
    /// Loss of the first and the last step of a training run.
    pub losses: (f32, f32),
}

/// Gradients in one arithmetic.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GradientCard {
    /// How the streams are stored.
    pub stored: String,
    /// The largest relative distance of a tensor's gradient from the ordinary one in the same arithmetic.
    pub distance: f64,
    /// Whether all bits agree.
    pub exact: bool,
}

/// What comes back after so many couplings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DriftCard {
    /// Couplings.
    pub depth: usize,
    /// Relative error in f32.
    pub f32: f64,
    /// Relative error in bf16.
    pub bf16: f64,
    /// Relative error in fixed point: none.
    pub fixed: f64,
}

/// Share of the output that changes with one bit or sign of the input.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AvalancheCard {
    /// What mixes.
    pub mixer: String,
    /// By rounds or layers, from none.
    pub share: Vec<f64>,
}

/// The formulas for one way on the model asked about.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FormulaCard {
    /// Which way.
    pub way: String,
    /// Peak activations of all layers.
    pub activation_bytes: f64,
    /// Cost of a step, in forwards.
    pub forwards: f64,
}

/// Couplings at which drift is measured.
const DRIFT_DEPTHS: [usize; 7] = [1, 4, 8, 16, 64, 128, 256];
/// Rounds or layers to which the avalanche is followed.
const ROUNDS: usize = 64;

/// Answers while it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let Effort { cancel, .. } = effort.into();
    let r = request;
    refuse_if(!(2..=128).contains(&r.depth), "depth", r.depth, "2 to 128 blocks")?;
    refuse_if(!(2..=2000).contains(&r.steps), "steps", r.steps, "2 to 2,000")?;
    let model = formulas(catalog, r)?;
    let depths: Vec<usize> =
        [2, 4, 8, 16, 32, 64].into_iter().filter(|d| *d < r.blocks()).chain([r.blocks()]).collect();
    let ways: Vec<Way> = Keep::ALL.into_iter().map(|keep| way(r, keep, &depths, &cancel)).collect::<Result<_, _>>()?;
    let drift: Vec<DriftCard> = DRIFT_DEPTHS.into_iter().map(|d| drift(d, r.seed)).collect();
    let mixed = |m: Mixer| AvalancheCard { mixer: m.to_string(), share: m.spread(ROUNDS, r.seed) };
    let avalanche: Vec<AvalancheCard> = Mixer::ALL.into_iter().map(mixed).collect();
    let square = |_: usize, x: u32| x.wrapping_mul(x);
    let there = feistel::forward(7, 5, 16, square);
    let c = Config::small(r.blocks());
    let [memory_figure, drift_figure, avalanche_figure] = figures(&ways, &drift, &avalanche);
    Ok(Answer {
        request: r.clone(),
        network: format!(
            "a transformer of {} tokens vocabulary, width {}, {} heads, {} sequences of {}",
            c.vocabulary, c.width, c.heads, c.batch, c.context
        ),
        slope_ratio: ways[ways.len() - 1].slope_bytes_per_block / ways[0].slope_bytes_per_block,
        gradients: Stored::ALL.into_iter().map(|s| gradient(r, s)).collect(),
        feistel: ((7, 5), there, feistel::back(there.0, there.1, 16, square)),
        memory_figure,
        drift_figure,
        avalanche_figure,
        ways,
        drift,
        avalanche,
        model,
        assumptions: vec![
            "peak memory counts every activation and its gradient, not weights, their gradients or the optimizer"
                .into(),
            "arithmetic counts matrix products; a block is the difference of two depths".into(),
            format!(
                "the network is small and real; the formulas for the model take {} bytes per token and width of a layer ({}) and 2 of its input",
                2.0 * r.values.unwrap_or(theory::VALUES),
                if r.values.is_some() { "as given" } else { "Korthikanti et al.'s" }
            ),
        ],
    })
}

/// One step of the network measured, for a face that has a clock.
pub fn measured_step(r: &Request, way: usize) -> f32 {
    one(r, Keep::ALL[way.min(Keep::ALL.len() - 1)], Stored::F32, r.blocks()).loss
}

fn one(r: &Request, keep: Keep, stored: Stored, depth: usize) -> Step {
    let c = Config::small(depth);
    step(&c, &Weights::new(&c, r.seed), keep, stored, r.seed + 1)
}

fn way(r: &Request, keep: Keep, depths: &[usize], cancel: &Cancel) -> Result<Way, Cancelled> {
    let step = |depth: &usize| cancel.check().map(|()| one(r, keep, Stored::F32, *depth));
    let steps: Vec<Step> = depths.iter().map(step).collect::<Result<_, _>>()?;
    let peaks: Vec<(usize, usize)> = depths.iter().zip(&steps).map(|(d, s)| (*d, s.peak_bytes)).collect();
    // Below eight blocks the head's logits may be the peak; the slope is taken over the deeper half.
    let (from, to) = (peaks[peaks.len() / 2], peaks[peaks.len() - 1]);
    let slope = if to.0 > from.0 { (to.1 as f64 - from.1 as f64) / (to.0 - from.0) as f64 } else { 0.0 };
    let block = |keep| (one(r, keep, Stored::F32, 3).flop - one(r, keep, Stored::F32, 2).flop) as f64;
    let c = Config { batch: 8, ..Config::small(2) };
    let losses = train(&c, keep, Stored::F32, r.steps as usize, r.seed, cancel)?;
    Ok(Way {
        way: keep.to_string(),
        peak_bytes: peaks,
        slope_bytes_per_block: slope,
        flop_over_ordinary: block(keep) / block(Keep::Everything),
        formula: if keep == Keep::Everything { 1.0 } else { 4.0 / 3.0 },
        losses: (losses[0], losses[r.steps as usize - 1]),
    })
}

fn gradient(r: &Request, stored: Stored) -> GradientCard {
    let ordinary = one(r, Keep::Everything, stored, r.blocks()).gradient;
    let reversible = one(r, Keep::Nothing, stored, r.blocks()).gradient;
    let (distance, exact) = (reversible.distance(&ordinary), reversible == ordinary);
    GradientCard { stored: stored.to_string(), distance, exact }
}

fn drift(depth: usize, seed: u64) -> DriftCard {
    let stack = Stack::new(128, depth, seed);
    let at = |stored| stack.error(stored, seed + 1);
    DriftCard { depth, f32: at(Stored::F32), bf16: at(Stored::Bf16), fixed: at(Stored::Fixed) }
}

fn formulas(catalog: &Catalog, r: &Request) -> Result<Vec<FormulaCard>, Error> {
    let model = catalog.model(&r.model)?;
    let tokens = within("tokens", r.tokens, 1.0, 1e12)?;
    let shape = model.shape().ok_or_else(|| Error::value("model", &r.model, "a model whose layers are known"))?;
    let (layers, hidden) = (shape.n_layers() as f64, shape.hidden as f64);
    let values = within("values", r.values.unwrap_or(theory::VALUES), 1.0, 1000.0)?;
    let card = |keep: theory::Keep| {
        let activation_bytes = keep.activations_of(values, (layers, tokens, hidden)).get();
        FormulaCard { way: keep.to_string(), activation_bytes, forwards: keep.forwards() }
    };
    Ok(theory::Keep::ALL.map(card).into())
}

/// The ways, in the order of [`Keep::ALL`].
const ROLES: [Role; 4] = [Role::Envelope, Role::Weights, Role::Kv, Role::Compute];

/// Memory and drift against depth, avalanche against rounds.
fn figures(ways: &[Way], drift: &[DriftCard], avalanche: &[AvalancheCard]) -> [Figure; 3] {
    let points = |w: &Way| w.peak_bytes.iter().map(|(d, b)| (*d as f64, *b as f64)).collect::<Vec<_>>();
    let series = ways.iter().zip(ROLES).map(|(w, role)| Series::new(w.way.clone(), role, points(w)));
    let axes = (Axis::linear("blocks", Unit::Count), Axis::linear("bytes", Unit::Bytes));
    let memory = Figure::of("Peak activation memory against depth", "measured", axes, series);
    let line = |name: &str, role, of: fn(&DriftCard) -> f64| {
        Series::new(name, role, drift.iter().map(|d| (d.depth as f64, of(d))).filter(|p| p.1 > 0.0))
    };
    let axes = (Axis::log("couplings", Unit::Count), Axis::log("relative error", Unit::Number));
    let lines = [line("bf16", Role::Weights, |d| d.bf16), line("f32", Role::Envelope, |d| d.f32)];
    let subtitle = "relative, after so many couplings forward and back; fixed point has none";
    let rebuilt = Figure::of("Error of what is rebuilt", subtitle, axes, lines);
    let roles = [Role::Envelope, Role::Compute, Role::Weights, Role::Kv, Role::Floor];
    let series = avalanche.iter().zip(roles).map(|(a, role)| {
        Series::new(a.mixer.clone(), role, a.share.iter().enumerate().skip(1).map(|(i, s)| (i as f64, *s)))
    });
    let axes = (Axis::log("rounds or layers", Unit::Count), Axis::linear("share changed", Unit::Number));
    let subtitle = "share of the output that changes; one half is perfect mixing";
    [memory, rebuilt, Figure::of("How far one flipped bit spreads", subtitle, axes, series)]
}
