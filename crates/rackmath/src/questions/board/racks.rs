//! What a scale-up domain buys: the latency floor, the largest expert layer, the memory, from Hopper's 8 chips to a pod.

use crate::desk::prelude::*;
use crate::layout;
use crate::setting::formats;
use rackmath_spec::System;
use rackmath_theory::count;
use rackmath_theory::layout::domain;
use rackmath_theory::network::cross_rack_slowdown;
use rackmath_theory::roofline;

/// Which model over which machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The model.
    #[schemars(extend("x-file" = "model", "x-position" = 2))]
    pub model: String,
    /// The machines.
    #[schemars(extend("x-position" = 3, "x-file" = "machine"))]
    pub systems: Vec<String>,
    /// Weight format instead of the checkpoint's.
    #[schemars(extend("x-flag" = "quantization -q dtype weights", "x-none" = "the checkpoint's"))]
    pub weights: Option<String>,
}

impl Default for Request {
    fn default() -> Self {
        let nodes = ["hgx-a100", "hgx-h100", "hgx-h200", "hgx-b200"];
        let racks = ["gb200-nvl72", "gb300-nvl72", "vr-nvl144", "rubin-ultra-nvl576", "tpu-v5e-256", "tpu-v7-9216"];
        let systems = nodes.iter().chain(&racks).map(ToString::to_string).collect();
        Self { model: "lecture-frontier".into(), systems, weights: None }
    }
}

/// The comparison.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// Bytes of its weights.
    pub weights_bytes: f64,
    /// Share of a memory that an engine takes for weights and the rest.
    pub memory_share: f64,
    /// One entry per machine.
    pub racks: Vec<Rack>,
}

/// One scale-up domain.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Rack {
    /// The machine.
    pub system: String,
    /// Packages in the domain.
    pub packages: u64,
    /// Compute dies in the domain.
    pub dies: u64,
    /// Memory of the domain.
    pub capacity_bytes: f64,
    /// Memory bandwidth of the domain.
    pub bandwidth_bytes_per_s: f64,
    /// Time to read all of the model's weights once.
    pub weights_s: f64,
    /// Domains needed to hold the weights in what an engine takes of their memory.
    pub domains_for_weights: f64,
    /// What is left there for caches in so many domains.
    pub cache_bytes: f64,
    /// Largest model whose weights a domain can hold in this format, half the memory left to KV.
    pub largest_params: f64,
    /// Time to read all of the memory once.
    pub drain_s: f64,
    /// Scale-up over scale-out bandwidth of a chip.
    pub beta: Option<f64>,
    /// How much slower an expert layer is over two domains.
    pub two_domain_slowdown: Option<f64>,
    /// Most experts at one per chip without leaving the domain.
    pub experts: u64,
    /// Power of the domain, where known.
    pub power_w: Option<f64>,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let model = catalog.model(&request.model)?;
    let formats = formats(&model, request.weights.as_deref())?;
    let count = count::count(&model);
    let weights = count.stored_bytes(&formats);
    refuse_if(request.systems.is_empty(), "systems", "none", "at least one machine")?;
    let share = layout::USUAL_SHARE;
    let one = |name: &String| Ok(rack(&*catalog.system(name)?, weights, count.total() as f64, share));
    let racks = request.systems.iter().map(one).collect::<Result<_, Error>>()?;
    Ok(Answer { model: model.name.clone(), weights_bytes: weights.get(), memory_share: share, racks })
}

fn rack(system: &System, weights: Bytes, params: f64, taken: f64) -> Rack {
    let chips = domain(system);
    let share = chips as f64 / system.n_chips as f64;
    let (capacity, bandwidth) = (system.capacity() * share, system.bandwidth() * share);
    let per_param = weights.get() / params;
    let taken = system.chip.memory.seen() * chips as f64 * taken;
    let domains = (weights / taken).ceil().max(1.0);
    let up = system.levels.first().map(|l| l.bandwidth.value);
    let out = system.levels.get(1).map(|l| l.bandwidth.value).or(system.chip.link.scale_out.as_ref().map(|o| o.value));
    let beta = up.zip(out).map(|(u, o)| u / o);
    Rack {
        system: system.id.clone(),
        packages: chips,
        dies: chips * system.chip.dies,
        capacity_bytes: capacity.get(),
        bandwidth_bytes_per_s: bandwidth.get(),
        weights_s: (weights / bandwidth).get(),
        domains_for_weights: domains,
        cache_bytes: (taken * domains).less(weights).get(),
        largest_params: capacity.get() / 2.0 / per_param,
        drain_s: roofline::drain(capacity, bandwidth).get(),
        beta,
        two_domain_slowdown: beta.map(|b| cross_rack_slowdown(b, 2)),
        experts: chips,
        power_w: system.power.as_ref().map(|p| p.value.get() * share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_holds_weights_only_where_an_engine_could_start() {
        // DeepSeek V3 takes 673 GB; eight H100 find 680 GB, and an engine takes 612 GB of them.
        let (model, systems) = ("deepseek-v3".into(), vec!["hgx-h100".into(), "hgx-h200".into()]);
        let a = answer(&rackmath_catalog::embedded(), &Request { model, systems, weights: None }).unwrap();
        let [hopper, larger] = [&a.racks[0], &a.racks[1]];
        assert_eq!((hopper.domains_for_weights, larger.domains_for_weights), (2.0, 1.0));
        assert!(hopper.capacity_bytes > a.weights_bytes && larger.cache_bytes > 0.3e12, "{larger:?}");
    }

    #[test]
    fn g47_reading_a_trillion_bytes() {
        // 37.313 ms on 8 H100, 1.7361 ms on NVL72: 21.49 = 9 x 2.388.
        let request = Request { systems: vec!["lecture-h100-8".into(), "lecture-nvl72".into()], ..Request::default() };
        let racks = answer(&rackmath_catalog::embedded(), &request).unwrap().racks;
        let (hopper, blackwell) = (racks[0].weights_s * 1e3, racks[1].weights_s * 1e3);
        assert!((hopper / 37.313 - 1.0).abs() < 1e-4 && (blackwell / 1.7361 - 1.0).abs() < 1e-4);
        assert!((hopper / blackwell / 21.49 - 1.0).abs() < 1e-3);
        // G46: domain memory.
        assert!((racks[0].capacity_bytes - 640e9).abs() < 1.0 && (racks[1].capacity_bytes - 13.824e12).abs() < 1.0);
    }
}
