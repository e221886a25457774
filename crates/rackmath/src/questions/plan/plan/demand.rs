//! What a plan is at mean traffic, and how far single requests lie from the mean.

use super::prepare::Prepared;
use super::{Ask, offload};
use rackmath_theory::layout::domain;
use rackmath_theory::plan::{Configuration, Estimate, pools};
use rackmath_theory::steady::percentile::{own, percentiles};
use rackmath_theory::steady::{Load, Requests, Server, steady};
use schemars::JsonSchema;
use serde::Serialize;

/// The same replicas at mean traffic, for those who can switch some off.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeanTraffic {
    /// Requests per second, mean.
    pub rate_per_s: f64,
    /// Requests per second planned for.
    pub peak_rate_per_s: f64,
    /// Replicas the mean needs.
    pub replicas: u64,
    /// Their chips.
    pub chips: u64,
    /// Scale-up domains they fill.
    pub domains: u64,
    /// Their kilowatts.
    pub power_kw: f64,
    /// Their dollars per hour.
    pub usd_per_hour: f64,
    /// Dollars per million output tokens when all replicas of the peak run all the time.
    pub usd_per_mtok_always_on: f64,
}

/// Times of single requests, by how long they are.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LengthPercentiles {
    /// Shares of requests, in percent.
    pub percent: Vec<f64>,
    /// Milliseconds to the first token below which they lie.
    pub ttft_ms: Vec<f64>,
    /// Milliseconds of the whole request below which they lie.
    pub e2e_ms: Vec<f64>,
}

/// Replicas for mean traffic; none where peak and mean are one.
pub(super) fn at_mean(ask: &Ask, p: &Prepared, c: &Configuration, e: &Estimate) -> Option<MeanTraffic> {
    let rate = ask.workload.mean_rate.filter(|_| ask.workload.peak > 1.0)?;
    let replicas = (rate / e.rate * (1.0 - 1e-12)).ceil().max(1.0);
    let chips = replicas * e.unit_chips;
    let machine = &ask.machines[p.kinds[p.kind_of[p.entries[c.row].deployment]].machine];
    Some(MeanTraffic {
        rate_per_s: rate,
        peak_rate_per_s: rate * ask.workload.peak,
        replicas: replicas as u64,
        chips: chips as u64,
        domains: (chips / domain(&machine.system) as f64).ceil() as u64,
        power_kw: e.watts * replicas / e.replicas / 1e3,
        usd_per_hour: e.usd_per_hour * replicas / e.replicas,
        usd_per_mtok_always_on: e.usd_per_hour / 3600.0 / (rate * ask.requests.output) * 1e6,
    })
}

/// Percentiles from lengths; none where all requests are alike.
pub(super) fn by_length(
    ask: &Ask,
    p: &Prepared,
    c: &Configuration,
    e: &Estimate,
    concurrency: f64,
) -> Option<LengthPercentiles> {
    if !ask.workload.varies() {
        return None;
    }
    let percent = vec![50.0, 90.0, 99.0];
    let shares: Vec<f64> = percent.iter().map(|p| p / 100.0).collect();
    let entry = &p.entries[c.row];
    let mean = ask.requests.input;
    let (input, output) = (&ask.workload.input, &ask.workload.output);
    let fetch = offload::of(p, c).map_or(0.0, |f| f.seconds);
    let found = if let Some((prefill, _)) = c.split {
        let row = p.space.prefills[prefill].row;
        let (first, groups) = (&p.entries[row], p.space.prefills[prefill].groups);
        let d = &p.deployments[first.deployment];
        let request = d.deployment.engine.overhead.request.get();
        let send = p.space.sending(prefill, c.row);
        let alone = |input: f64| {
            let own = offload::requests(ask, first.offload);
            let one = Requests { input, spread: rackmath_theory::steady::Spread::default(), ..own };
            // A cache is fetched and sent in proportion to its tokens.
            pools::service(&d.pass, first.chunk, request, groups, &one).1 + (send + fetch) * input / mean
        };
        let usual = alone(mean);
        percentiles(input, output, |i| e.ttft + (alone(i) - usual), e.tpot, &shares)
    } else {
        let d = &p.deployments[entry.deployment];
        let engine = p.engine_of(c.row);
        let server = Server { pass: &d.pass, schedule: &engine.schedule, overhead: &engine.overhead, room: entry.room };
        let own_requests = offload::requests(ask, entry.offload);
        let requests = Requests { drafts: entry.drafts.0, accepted: entry.drafts.1, ..own_requests };
        let state = steady(&server, &requests, Load::Closed { concurrency, clump: 1.0, burst: 0.0, convoy: false });
        let usual = own(&server, &requests, &state, mean);
        let first =
            |i: f64| (e.ttft + (own(&server, &requests, &state, i) - usual) + fetch * (i / mean - 1.0)).max(0.0);
        percentiles(input, output, first, e.tpot, &shares)
    };
    let ms = |all: Vec<f64>| all.into_iter().map(|s| s * 1e3).collect();
    Some(LengthPercentiles { percent, ttft_ms: ms(found.ttft), e2e_ms: ms(found.e2e) })
}
