//! A pipeline drawn slot by slot: training schedules with their bubbles and memory, or the inference grid.

use crate::desk::prelude::*;
use rackmath_spec::word;
use rackmath_theory::pipeline::{
    Cell, Device, Kind, Passes, Plan, PlanError, Schedule, Shape, Stage, closed_bubble, inference_grid, inference_idle,
    lower_bound,
};
use schemars::Schema;
use serde_json::Value;

fn drawn(schema: &mut Schema) {
    closed::<Schedule>(schema);
    if let Some(Value::Array(all)) = schema.get_mut("enum") {
        all.extend(["inference", "all"].map(Value::from));
    }
}

/// A schedule and its times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// A training schedule, or `inference`; `all` compares them.
    #[schemars(transform = drawn, extend("x-flag" = "schedule -s"))]
    #[educe(Default = "gpipe")]
    pub schedule: String,
    /// Pipeline stages (devices).
    #[schemars(extend("x-flag" = "stages pp pipeline-parallel-size", "x-most" = [64, "rows of the grid"]))]
    #[educe(Default = 4)]
    pub stages: u64,
    /// Micro-batches.
    #[schemars(extend("x-flag" = "micro-batches -m", "x-most" = [256, "columns of the grid"]))]
    #[educe(Default = 4)]
    pub micro_batches: u64,
    /// Chunks of the model per device, for `interleaved`.
    #[schemars(extend("x-flag" = "virtual-stages vpp", "x-most" = [8, "chunks of a stage"]))]
    #[educe(Default = 1)]
    pub virtual_stages: u64,
    /// Forward time of one device and micro-batch.
    #[educe(Default = 1.0)]
    pub forward_s: f64,
    /// Backward time to the input.
    #[educe(Default = 0.5)]
    pub input_grad_s: f64,
    /// Backward time to the weights.
    #[educe(Default = 0.5)]
    pub weight_grad_s: f64,
    /// Time of a hop between devices.
    pub hop_s: f64,
    /// How much longer each stage takes than the mean, one factor per stage; empty when all are alike.
    pub stage_factors: Vec<f64>,
    /// Activation bytes of one device and micro-batch.
    pub activation_bytes: f64,
    /// How much of an overlapped forward and backward pair is hidden (DualPipe): 0 to 1.
    #[schemars(extend("x-unit" = "share"))]
    pub hidden: f64,
}

/// The runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// One run, or one per schedule when compared.
    pub runs: Vec<RunCard>,
    /// Schedules left out of a comparison, and why.
    pub left_out: Vec<String>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// One schedule, run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunCard {
    /// Its name.
    pub schedule: String,
    /// Time of one step, from the first pass to the last.
    pub makespan_s: f64,
    /// Idle share of all devices over the step.
    pub idle: f64,
    /// Idle time of a device when its next step starts as soon as it is done.
    pub bubble_s: f64,
    /// Idle time of a device behind an optimizer barrier.
    pub barrier_bubble_s: f64,
    /// What the closed form says, where it applies.
    pub closed_bubble_s: Option<f64>,
    /// No schedule can be shorter.
    pub lower_bound_s: Option<f64>,
    /// Largest activation memory of a device, in micro-batches.
    pub peak_micro_batches: f64,
    /// The same in bytes.
    pub peak_bytes: f64,
    /// Devices in order.
    pub devices: Vec<DeviceCard>,
    /// Every pass.
    pub cells: Vec<CellCard>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeviceCard {
    /// Time it works.
    pub busy_s: f64,
    /// Idle share.
    pub idle: f64,
    /// Largest activation memory in micro-batches.
    pub peak_micro_batches: f64,
}

/// One pass.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellCard {
    /// Its device.
    pub device: usize,
    /// Its micro-batch.
    pub micro_batch: usize,
    /// Its chunk, or direction.
    pub chunk: usize,
    /// `F`, `B` (to the input), `W` (to the weights), `BW` (both), or `token` of inference.
    pub kind: String,
    /// Whether it runs together with another pass of the same device.
    pub paired: bool,
    /// When it starts.
    pub start_s: f64,
    /// When it ends.
    pub end_s: f64,
}

/// Answers while it is wanted.
pub fn answer_on(request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let Effort { cancel, .. } = effort.into();
    sane(request)?;
    let (mut runs, mut left_out) = (Vec::new(), Vec::new());
    match request.schedule.as_str() {
        "inference" => runs.push(inference(request)),
        "all" => {
            for &schedule in Schedule::ALL {
                match run(request, schedule, &cancel)? {
                    Ok(card) => runs.push(card),
                    Err(error) => left_out.push(error.to_string()),
                }
            }
        }
        name => {
            let refuse = |e: PlanError| Error::value(e.field, &e.given, &e.expected);
            runs.push(run(request, word("pipeline schedule", name)?, &cancel)?.map_err(refuse)?);
        }
    }
    let assumptions = if request.schedule == "inference" { Vec::new() } else { vec![times(request)] };
    Ok(Answer { request: request.clone(), runs, left_out, assumptions })
}

/// How long a backward pass takes beside a forward one.
fn times(r: &Request) -> Remark {
    let backward = r.input_grad_s + r.weight_grad_s;
    let said =
        says("backward_over_forward").with("forward", Seconds::s(r.forward_s)).with("backward", Seconds::s(backward));
    // Four FLOP of six are the backward's: gradients of inputs and of weights, two each.
    said.with("short", backward < 2.0 * r.forward_s)
}

fn sane(r: &Request) -> Result<(), Error> {
    for (field, value) in [
        ("forward", r.forward_s),
        ("input_grad", r.input_grad_s),
        ("weight_grad", r.weight_grad_s),
        ("hop", r.hop_s),
        ("activation", r.activation_bytes),
    ] {
        refuse_if(!(value.is_finite() && (0.0..=1e15).contains(&value)), field, value, "a number from 0 to 1e15")?;
    }
    // A comparison runs ten schedules, so it may be a tenth as large.
    let most = if r.schedule == "all" { 100_000 } else { 1_000_000 };
    let sizes = (1..=1024).contains(&r.stages) && (1..=1_000_000).contains(&r.micro_batches);
    let (given, expected) = (format!("{} x {}", r.stages, r.micro_batches), "1 to 1,024 stages, and at most");
    let large = !sizes || r.stages * r.micro_batches > most;
    refuse_if(large, "stages x micro_batches", given, format!("{expected} {most} passes"))?;
    refuse_if(r.virtual_stages > 4096, "virtual_stages", r.virtual_stages, "at most 4,096 chunks of a stage")?;
    let (factors, n) = (&r.stage_factors, r.stage_factors.len());
    let expected = format!("one for each of {} stages", r.stages);
    refuse_if(n != 0 && n as u64 != r.stages, "stage_factors", format!("{n} factors"), expected)?;
    let wild = factors.iter().any(|f| !(f.is_finite() && *f > 0.0 && *f <= 1e6));
    refuse_if(wild, "stage_factors", "a factor out of range", "positive numbers")?;
    refuse_if(Fraction::checked(r.hidden).is_none(), "hidden", r.hidden, "0 to 1")?;
    Ok(())
}

fn plan(r: &Request, schedule: Schedule) -> Plan {
    let chunks = schedule.fixed_chunks().unwrap_or(r.virtual_stages.max(2) as usize);
    let shape = Shape { devices: r.stages as usize, micro_batches: r.micro_batches as usize, chunks };
    let whole = Stage { passes: passes(r), activation: Bytes::b(r.activation_bytes) };
    let (hop, hidden) = (Seconds::s(r.hop_s), Fraction::new(r.hidden));
    let mut plan = Plan { hop, hidden, ..Plan::even(schedule, shape, whole) };
    let n = plan.stages.len();
    for (i, stage) in plan.stages.iter_mut().enumerate().filter(|_| !r.stage_factors.is_empty()) {
        // A global stage takes the factor of its part of the model, as even shares of the row of stages.
        let (factor, p) = (r.stage_factors[i * r.stage_factors.len() / n], stage.passes);
        let [forward, input_grad, weight_grad] = [p.forward, p.input_grad, p.weight_grad].map(|time| time * factor);
        stage.passes = Passes { forward, input_grad, weight_grad };
    }
    plan
}

fn passes(r: &Request) -> Passes {
    Passes {
        forward: Seconds::s(r.forward_s),
        input_grad: Seconds::s(r.input_grad_s),
        weight_grad: Seconds::s(r.weight_grad_s),
    }
}

fn run(r: &Request, schedule: Schedule, cancel: &Cancel) -> Result<Result<RunCard, PlanError>, Cancelled> {
    let plan = plan(r, schedule);
    let even = r.stage_factors.is_empty() && r.hop_s == 0.0;
    let closed = if even { closed_bubble(schedule, plan.shape, passes(r), plan.hidden) } else { None };
    let device =
        |d: &Device| DeviceCard { busy_s: d.busy.get(), idle: d.idle.get(), peak_micro_batches: d.peak_micro_batches };
    Ok(plan.run_until(cancel)?.map(|done| RunCard {
        schedule: schedule.to_string(),
        makespan_s: done.makespan.get(),
        idle: done.idle.get(),
        bubble_s: done.bubble().get(),
        barrier_bubble_s: done.barrier_bubble().get(),
        closed_bubble_s: closed.map(Seconds::get),
        lower_bound_s: lower_bound(&plan).ok().map(Seconds::get),
        peak_micro_batches: done.peak_micro_batches(),
        peak_bytes: done.peak_bytes().get(),
        devices: done.devices.iter().map(device).collect(),
        cells: done.cells.iter().map(cell).collect(),
    }))
}

fn cell(c: &Cell) -> CellCard {
    let kind = match c.kind {
        Kind::Forward => "F",
        Kind::InputGrad => "B",
        Kind::WeightGrad => "W",
        Kind::Backward => "BW",
    };
    let (Cell { device, micro_batch, chunk, paired, .. }, kind) = (*c, kind.into());
    CellCard { device, micro_batch, chunk, kind, paired, start_s: c.start.get(), end_s: c.end.get() }
}

/// Enough slots to see the steady state: every micro-batch passes three times.
fn inference(r: &Request) -> RunCard {
    let (p, m) = (r.stages as usize, r.micro_batches as usize);
    let slots = 3 * p.max(m);
    let cells: Vec<CellCard> = inference_grid(p, m, slots)
        .into_iter()
        .map(|c| CellCard {
            device: c.stage,
            micro_batch: c.micro_batch,
            chunk: c.token,
            kind: "token".into(),
            paired: false,
            start_s: c.slot as f64 * r.forward_s,
            end_s: (c.slot + 1) as f64 * r.forward_s,
        })
        .collect();
    let idle = inference_idle(p, m).get();
    let busy = |device: usize| cells.iter().filter(|c| c.device == device).count() as f64 * r.forward_s;
    RunCard {
        schedule: "inference".into(),
        makespan_s: slots as f64 * r.forward_s,
        idle,
        bubble_s: idle * p.max(m) as f64 * r.forward_s,
        barrier_bubble_s: 0.0,
        closed_bubble_s: None,
        lower_bound_s: None,
        peak_micro_batches: m as f64,
        peak_bytes: m as f64 * r.activation_bytes,
        devices: (0..p).map(|d| DeviceCard { busy_s: busy(d), idle, peak_micro_batches: m as f64 }).collect(),
        cells,
    }
}
