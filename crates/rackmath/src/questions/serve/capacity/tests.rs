//! Thresholds by hand, and files read back.

use super::*;
use crate::setting::Setting;
use serde_json::{Map, Value, json};

fn asked(model: &str, on: &str) -> Request {
    let setting = Setting { model: model.into(), on: on.into(), ..Setting::default() };
    let limit = |ms: f64| Some(ms.into());
    let (isl, osl) = (2000.0, 300.0);
    let estimate = estimate::Request {
        setting,
        isl,
        osl,
        ttft_ms: limit(1000.0),
        tpot_ms: limit(40.0),
        ..estimate::Request::default()
    };
    Request { estimate, ..Request::default() }
}

fn answer(request: &Request) -> Answer {
    answer_on(&rackmath_catalog::embedded(), request, &Effort::default()).unwrap()
}

/// A reader of what is written here: mappings, lists and scalars by indentation, texts of several lines behind a bar.
struct Reader<'a> {
    lines: Vec<(usize, &'a str)>,
    at: usize,
}

fn parsed(text: &str) -> Vec<Value> {
    text.split("---\n")
        .map(|document| {
            let lines = document.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
            let lines = lines.map(|line| (line.len() - line.trim_start().len(), line.trim_start())).collect();
            let mut reader = Reader { lines, at: 0 };
            let value = reader.block(0);
            assert_eq!(reader.at, reader.lines.len(), "{document}");
            value
        })
        .collect()
}

impl Reader<'_> {
    fn block(&mut self, depth: usize) -> Value {
        let list = self.lines[self.at].1.starts_with("- ");
        let (mut map, mut all) = (Map::new(), Vec::new());
        while let Some(&(indent, text)) = self.lines.get(self.at).filter(|(indent, _)| *indent == depth) {
            assert_eq!(text.starts_with("- "), list, "{text}");
            if let Some(item) = text.strip_prefix("- ") {
                if let Some((key, _)) = item.split_once(':').filter(|(key, _)| !key.contains(['"', ' '])) {
                    assert!(!key.is_empty());
                    self.lines[self.at] = (indent + 2, item);
                    all.push(self.block(depth + 2));
                } else {
                    self.at += 1;
                    all.push(scalar(item));
                }
                continue;
            }
            let (key, rest) = text.split_once(':').expect("a key");
            self.at += 1;
            let value = match rest.trim() {
                "" => self.block(depth + 2),
                "|" => {
                    let mut lines = Vec::new();
                    while let Some((indent, line)) = self.lines.get(self.at).filter(|(indent, _)| *indent > depth) {
                        lines.push(format!("{}{line}", " ".repeat(indent - depth - 2)));
                        self.at += 1;
                    }
                    Value::from(lines.join("\n"))
                }
                plain => scalar(plain),
            };
            map.insert(scalar(key).as_str().expect("a text").to_owned(), value);
        }
        if list { Value::Array(all) } else { Value::Object(map) }
    }
}

fn scalar(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

fn file(a: &Answer, name: &str) -> Vec<Value> {
    parsed(&a.files.iter().find(|f| f.name == name).unwrap().text)
}

#[test]
fn a_replica_is_ordered_before_those_there_are_full() {
    let request = Request { startup_s: 120.0, growth_per_min: 0.25, ..asked("qwen3-32b", "h200") };
    let a = answer(&request);
    let (c, t) = (a.capacity.unwrap(), &a.thresholds[0]);
    // 25 % a minute for two minutes: one and a half times the load when the new one serves.
    assert!((c.kept - 1.0 / 1.5).abs() < 1e-12);
    let solved = a.concurrency.as_ref().unwrap().value.unwrap();
    assert!(c.running <= solved && c.running <= c.sequences);
    assert_eq!(t.running, Some((c.running / 1.5).floor()));
    // What runs at the mark is within the targets when half as much again has come.
    assert!(t.running.unwrap() * 1.5 <= solved);
    assert!((t.kv_use.unwrap() - t.running.unwrap() / c.sequences).abs() < 0.01, "{t:?} {c:?}");
    assert!((c.cache_tokens / c.sequences - 2150.0).abs() < 40.0, "{c:?}");
    assert!((t.requests_per_s.unwrap() * 1.5 / a.rate.as_ref().unwrap().value.unwrap() - 1.0).abs() < 1e-9);
    // Nobody starts at once: the mark is lower the longer it takes.
    let slow = answer(&Request { startup_s: 600.0, ..request.clone() });
    assert!(slow.thresholds[0].running < t.running);
    let at_once = answer(&Request { startup_s: 0.0, ..request });
    assert_eq!(at_once.thresholds[0].running, Some(c.running));
}

#[test]
fn files_read_back_as_what_was_meant() {
    let a = answer(&Request { name: Some("chat".into()), namespace: "prod".into(), ..asked("qwen3-32b", "h200") });
    let t = &a.thresholds[0];
    let hpa = &file(&a, "hpa.yaml")[0];
    assert_eq!((&hpa["apiVersion"], &hpa["kind"]), (&json!("autoscaling/v2"), &json!("HorizontalPodAutoscaler")));
    assert_eq!(hpa["spec"]["scaleTargetRef"], json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "chat" }));
    let metric = &hpa["spec"]["metrics"][0];
    assert_eq!(metric["pods"]["metric"]["name"], "vllm_num_requests_running");
    let value = &metric["pods"]["target"]["averageValue"];
    assert_eq!(value.as_str().unwrap(), t.running.unwrap().to_string());
    let rules = &file(&a, "prometheus-adapter.yaml")[0]["rules"]["custom"];
    let names: Vec<&str> = rules.as_array().unwrap().iter().filter_map(|r| r["name"]["as"].as_str()).collect();
    // What the one asks for the other presents.
    for metric in hpa["spec"]["metrics"].as_array().unwrap() {
        assert!(names.contains(&metric["pods"]["metric"]["name"].as_str().unwrap()), "{names:?}");
    }
    let keda = &file(&a, "keda.yaml")[0];
    assert_eq!((&keda["apiVersion"], &keda["kind"]), (&json!("keda.sh/v1alpha1"), &json!("ScaledObject")));
    let trigger = &keda["spec"]["triggers"][0];
    assert_eq!((&trigger["type"], &trigger["metricType"]), (&json!("prometheus"), &json!("AverageValue")));
    assert!(trigger["metadata"]["query"].as_str().unwrap().contains("vllm:num_requests_running{namespace=\"prod\""));
    assert_eq!(trigger["metadata"]["threshold"].as_str().unwrap().parse::<f64>().unwrap(), t.running.unwrap());
    let wva = file(&a, "wva.yaml");
    let entry = wva[0]["data"].as_object().unwrap().values().next().unwrap().as_str().unwrap();
    assert!(entry.contains("kvCacheThreshold: 0.") && entry.contains("namespace: prod"), "{entry}");
    assert_eq!(wva[1]["kind"], "VariantAutoscaling");
    let dynamo = &file(&a, "dynamo-planner.yaml")[0];
    assert_eq!((&dynamo["ttft"], &dynamo["itl"], &dynamo["mode"]), (&json!(1000.0), &json!(40.0), &json!("agg")));
    assert_eq!(dynamo["max_gpu_budget"], json!(10));
}

#[test]
fn prompts_and_answers_on_chips_of_their_own_are_scaled_apart() {
    let mut request = asked("qwen3-32b", "8xh200");
    request.estimate.degrees.tp = Some(2);
    request.estimate.disaggregated = Some(estimate::Disaggregated::default());
    request.estimate.engine = "sglang".into();
    let a = answer(&request);
    let pools: Vec<PoolName> = a.thresholds.iter().map(|t| t.pool).collect();
    assert_eq!(pools, [PoolName::Prefill, PoolName::Decode]);
    assert!(a.thresholds[0].running.is_none() && a.thresholds[1].running.is_some());
    let names: Vec<Value> = file(&a, "keda.yaml").iter().map(|d| d["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["qwen3-32b-prefill", "qwen3-32b-decode"]);
    let dynamo = &file(&a, "dynamo-planner.yaml")[0];
    assert_eq!((&dynamo["mode"], &dynamo["backend"]), (&json!("disagg"), &json!("sglang")));
    assert_eq!((&dynamo["prefill_engine_num_gpu"], &dynamo["decode_engine_num_gpu"]), (&json!(2), &json!(2)));
    let queries = a.files.iter().find(|f| f.name == "keda.yaml").unwrap();
    assert!(queries.text.contains("sglang:num_running_reqs") && !queries.text.contains("vllm:"));
}

#[test]
fn pools_do_not_grow_with_the_rate_that_is_looked_for() {
    let mut request = asked("qwen3-32b", "4xh200");
    request.estimate.degrees.tp = Some(2);
    request.estimate.disaggregated = Some(estimate::Disaggregated::default());
    let a = answer(&request);
    let capacity = a.capacity.unwrap();
    let rate = capacity.requests_per_s.unwrap();
    assert_eq!(a.chips, 4);
    assert!(rate <= capacity.prompts_per_s, "{rate} a second of {} prompts", capacity.prompts_per_s);
    // Both pools on the chips of one: nothing.
    request.estimate.setting.on = "2xh200".into();
    assert!(answer(&request).capacity.is_none());
}

#[test]
fn a_replica_that_meets_nothing_has_no_marks() {
    let mut request = asked("llama-3.1-405b", "h100");
    let a = answer(&request);
    assert!(a.capacity.is_none() && a.files.is_empty() && a.verdict.says == "capacity_none");
    request = asked("qwen3-32b", "h200");
    for wrong in [
        Request { name: Some("Not A Name".into()), ..request.clone() },
        Request { prometheus: "prometheus:9090".into(), ..request.clone() },
        Request { max_replicas: 0, ..request.clone() },
        Request { startup_s: -1.0, ..request },
    ] {
        assert!(answer_on(&rackmath_catalog::embedded(), &wrong, &Effort::default()).is_err());
    }
}
