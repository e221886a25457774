//! Thresholds in the words of those who scale: Kubernetes, KEDA, llm-d, Dynamo.

use super::{Answer, Capacity, PoolName, Request, Threshold, yaml};
use crate::desk::prelude::*;
use crate::estimate::work::Case;
use crate::plan::File;
use serde_json::{Value, json};

/// What an engine calls its gauges: prefix, requests that run, that wait, share of the cache used.
struct Gauges {
    prefix: &'static str,
    running: &'static str,
    waiting: &'static str,
    cache: &'static str,
}

const VLLM: Gauges = Gauges {
    prefix: "vllm",
    running: "num_requests_running",
    waiting: "num_requests_waiting",
    cache: "kv_cache_usage_perc",
};
const SGLANG: Gauges =
    Gauges { prefix: "sglang", running: "num_running_reqs", waiting: "num_queue_reqs", cache: "token_usage" };

impl Gauges {
    /// In Prometheus.
    fn series(&self, gauge: &str) -> String {
        format!("{}:{gauge}", self.prefix)
    }

    /// As the adapter for Kubernetes presents it.
    fn metric(&self, gauge: &str) -> String {
        format!("{}_{gauge}", self.prefix)
    }
}

/// Where the formats and names of gauges were read.
pub(super) fn sources() -> Vec<Remark> {
    [
        "gauges of vLLM 0.32: docs.vllm.ai/en/v0.32.0/usage/metrics (2026-11-16); of SGLang: docs.sglang.io/references/production_metrics (2026-11-16)",
        "HorizontalPodAutoscaler autoscaling/v2: kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale (2026-11-16); rules of the adapter: kubernetes-sigs/prometheus-adapter docs/config.md (2026-11-16)",
        "ScaledObject keda.sh/v1alpha1, trigger prometheus: keda.sh/docs/scalers/prometheus (2026-11-16)",
        "VariantAutoscaling llmd.ai/v1alpha1 and saturation-scaling-config: llm-d-incubation/workload-variant-autoscaler config/manager/configmap-saturation-scaling.yaml and config/deploy/ci/openshift-model-b-wva (3a3bb3fb, read 2026-11-16)",
        "PlannerConfig: ai-dynamo/dynamo components/src/dynamo/planner/config/planner_config.py (34ede16d, read 2026-11-16)",
    ]
    .map(Into::into)
    .to_vec()
}

/// Names that Kubernetes takes.
pub(super) fn check(r: &Request) -> Result<(), Error> {
    let label = |text: &str| {
        let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !text.is_empty()
            && text.len() <= 50
            && text.chars().all(sound)
            && !text.starts_with('-')
            && !text.ends_with('-')
    };
    let expected = "at most 50 small letters, digits and hyphens, as Kubernetes names things";
    for (field, text) in [("name", r.name.as_deref()), ("namespace", Some(&*r.namespace))] {
        refuse_if(text.is_some_and(|t| !label(t)), field, text.unwrap_or_default(), expected)?;
    }
    let web = r.prometheus.starts_with("http://") || r.prometheus.starts_with("https://");
    refuse_if(!web, "prometheus", &r.prometheus, "an address such as http://prometheus.monitoring.svc:9090")
}

fn label(text: &str) -> String {
    let sound = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().map(sound).take(50).collect();
    text.trim_matches('-').to_owned()
}

/// One pool as it is scaled.
struct Scaled<'a> {
    name: String,
    threshold: &'a Threshold,
}

pub(super) fn all(r: &Request, case: &Case, a: &Answer, c: &Capacity) -> Vec<File> {
    let base = r.name.clone().unwrap_or_else(|| label(&case.found.model.id));
    let end = |t: &Threshold| match t.pool {
        PoolName::Serve => "",
        PoolName::Prefill => "-prefill",
        PoolName::Decode => "-decode",
    };
    let pools: Vec<Scaled> =
        a.thresholds.iter().map(|t| Scaled { name: format!("{base}{}", end(t)), threshold: t }).collect();
    let family = case.ask.on.engine.family.as_str();
    let gauges = if family == "sglang" { &SGLANG } else { &VLLM };
    let known = matches!(family, "vllm" | "sglang");
    let mut head = vec![format!("{} on {}, {}: values of rackmath capacity", a.model, a.system, a.layout)];
    if !known {
        head.push(format!("gauges are called as vLLM calls them; {} may call them otherwise", a.engine));
    }
    let file = |name: &str, all: &[Value]| File { name: name.into(), text: yaml::documents(&head, all) };
    let each = |make: &dyn Fn(&Scaled) -> Value| pools.iter().map(make).collect::<Vec<_>>();
    vec![
        file("hpa.yaml", &each(&|p| hpa(r, gauges, p, c))),
        file("prometheus-adapter.yaml", &[adapter(gauges)]),
        file("keda.yaml", &each(&|p| keda(r, gauges, p, c))),
        file("wva.yaml", &wva(r, case, &pools, c)),
        file("dynamo-planner.yaml", &[dynamo(r, case, a)]),
    ]
}

/// The name that a server is asked by, unless it was given another.
fn served_as<'a>(case: &'a Case) -> &'a str {
    let model = &case.found.model;
    model.hf.as_deref().unwrap_or(&model.id)
}

fn target(pool: &Scaled) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": pool.name })
}

/// A second replica is ordered at once, one goes when nothing was needed for a while that is long beside its start.
fn behaviour(c: &Capacity) -> Value {
    let start = c.startup_s.ceil().max(15.0);
    let policy =
        |kind: &str, value: u64, seconds: f64| json!({ "type": kind, "value": value, "periodSeconds": whole(seconds) });
    json!({
        "scaleUp": { "stabilizationWindowSeconds": 0, "policies": [policy("Percent", 100, start.min(1800.0))] },
        "scaleDown": {
            "stabilizationWindowSeconds": whole((3.0 * start).clamp(300.0, 3600.0)),
            "policies": [policy("Pods", 1, start.min(1800.0))],
        },
    })
}

fn whole(x: f64) -> Value {
    Value::from(x.round().max(0.0) as u64)
}

/// A share in thousandths, as Kubernetes writes quantities.
fn milli(x: f64) -> String {
    format!("{}m", (x * 1000.0).floor().max(1.0))
}

fn hpa(r: &Request, g: &Gauges, pool: &Scaled, c: &Capacity) -> Value {
    let pods = |gauge: &str, value: String| {
        let target = json!({ "type": "AverageValue", "averageValue": value });
        json!({ "type": "Pods", "pods": { "metric": { "name": g.metric(gauge) }, "target": target } })
    };
    let t = pool.threshold;
    let running = t.running.map(|n| pods(g.running, format!("{n}")));
    let cache = t.kv_use.map(|share| pods(g.cache, milli(share)));
    let waiting = pods(g.waiting, format!("{}", t.waiting.max(1.0)));
    let metrics: Vec<Value> = running.into_iter().chain(cache).chain([waiting]).collect();
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": pool.name, "namespace": r.namespace },
        "spec": {
            "scaleTargetRef": target(pool),
            "minReplicas": r.min_replicas,
            "maxReplicas": r.max_replicas,
            "metrics": metrics,
            "behavior": behaviour(c),
        },
    })
}

/// Values of the adapter's chart that present the gauges to Kubernetes.
fn adapter(g: &Gauges) -> Value {
    // A pod with several attention groups has a gauge for each: their requests add up, their shares do not.
    let rule = |gauge: &str| {
        let over = if gauge == g.cache { "avg" } else { "sum" };
        json!({
            "seriesQuery": format!("{}{{namespace!=\"\",pod!=\"\"}}", g.series(gauge)),
            "resources": { "overrides": { "namespace": { "resource": "namespace" }, "pod": { "resource": "pod" } } },
            "name": { "matches": g.series(gauge), "as": g.metric(gauge) },
            "metricsQuery": format!("{over}(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)"),
        })
    };
    json!({ "rules": { "custom": [rule(g.running), rule(g.waiting), rule(g.cache)] } })
}

fn keda(r: &Request, g: &Gauges, pool: &Scaled, c: &Capacity) -> Value {
    let of = |gauge: &str| format!("{}{{namespace=\"{}\",pod=~\"{}-.*\"}}", g.series(gauge), r.namespace, pool.name);
    let trigger = |name: &str, query: String, threshold: String| {
        json!({
            "type": "prometheus",
            "name": name,
            "metricType": "AverageValue",
            "metadata": { "serverAddress": r.prometheus, "query": query, "threshold": threshold },
        })
    };
    let t = pool.threshold;
    // Those who wait belong to the load: with them it does not stop at what a replica takes in.
    let inside = format!("sum({}) + sum({})", of(g.running), of(g.waiting));
    let running = t.running.map(|n| trigger("in-flight", inside, format!("{n}")));
    let cache = t
        .kv_use
        .map(|share| trigger("kv-cache", format!("sum(avg by (pod) ({}))", of(g.cache)), format!("{share:.3}")));
    let waiting = trigger("waiting", format!("sum({})", of(g.waiting)), format!("{}", t.waiting.max(1.0)));
    let triggers: Vec<Value> = running.into_iter().chain(cache).chain([waiting]).collect();
    json!({
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": { "name": pool.name, "namespace": r.namespace },
        "spec": {
            "scaleTargetRef": target(pool),
            "pollingInterval": 15,
            "cooldownPeriod": whole((3.0 * c.startup_s).clamp(300.0, 3600.0)),
            "minReplicaCount": r.min_replicas,
            "maxReplicaCount": r.max_replicas,
            "advanced": { "horizontalPodAutoscalerConfig": { "behavior": behaviour(c) } },
            "triggers": triggers,
        },
    })
}

/// llm-d's autoscaler of variants: when a replica counts as full, what is kept free, and who is scaled by it.
fn wva(r: &Request, case: &Case, pools: &[Scaled], c: &Capacity) -> Vec<Value> {
    let full = (c.running / c.sequences.max(1.0)).clamp(0.01, 1.0);
    let queue = pools.iter().map(|p| p.threshold.waiting / c.kept).fold(1.0, f64::max).round();
    let spare = (full * (1.0 - c.kept)).max(0.01);
    let model = served_as(case);
    let entry = format!(
        "model_id: {model}\nnamespace: {}\nkvCacheThreshold: {full:.2}\nqueueLengthThreshold: {queue}\nkvSpareTrigger: {spare:.2}\nqueueSpareTrigger: {}",
        r.namespace,
        (queue * (1.0 - c.kept)).ceil().max(1.0)
    );
    let mut data = serde_json::Map::new();
    data.insert(label(model), entry.into());
    let config = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "saturation-scaling-config", "namespace": "workload-variant-autoscaler-system" },
        "data": data,
    });
    let mut all = vec![config];
    for pool in pools {
        let cost = c.usd_per_hour.map_or_else(|| "10.0".to_owned(), |usd| format!("{usd:.2}"));
        all.push(json!({
            "apiVersion": "llmd.ai/v1alpha1",
            "kind": "VariantAutoscaling",
            "metadata": { "name": pool.name, "namespace": r.namespace },
            "spec": { "scaleTargetRef": target(pool), "modelID": model, "variantCost": cost },
        }));
    }
    all
}

/// Dynamo's planner: the targets, and how many chips an instance of each pool has.
fn dynamo(r: &Request, case: &Case, a: &Answer) -> Value {
    let chips = |name: PoolName| a.thresholds.iter().find(|t| t.pool == name).map(|t| t.chips);
    let apart = a.thresholds.len() > 1;
    let family = case.ask.on.engine.family.as_str();
    let mut all = json!({
        "environment": "kubernetes",
        "backend": if matches!(family, "sglang" | "trtllm") { family } else { "vllm" },
        "mode": if apart { "disagg" } else { "agg" },
        "optimization_target": "sla",
        "enable_load_scaling": true,
        "enable_throughput_scaling": false,
        "load_adjustment_interval": whole(r.startup_s.clamp(5.0, 30.0)),
        "min_endpoint": r.min_replicas,
        "max_gpu_budget": r.max_replicas * a.chips,
        "model_name": served_as(case),
    });
    let targets = [("ttft", case.request.ttft_ms), ("itl", case.request.tpot_ms)];
    let given = targets.into_iter().filter_map(|(key, limit)| Some((key, json!(limit?.ms))));
    let own = [
        ("prefill_engine_num_gpu", chips(PoolName::Prefill)),
        ("decode_engine_num_gpu", chips(PoolName::Decode).or(chips(PoolName::Serve))),
    ];
    let own = own.into_iter().filter_map(|(key, chips)| Some((key, json!(chips?))));
    if let Value::Object(map) = &mut all {
        map.extend(given.chain(own).map(|(key, value)| (key.to_owned(), value)));
    }
    all
}
