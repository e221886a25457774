//! The same question, the same bytes, from every face; every field a flag; no input a panic.

mod common;
#[path = "../../rackmath-server/tests/common/mod.rs"]
mod server;

use common::{path, rackmath, read, shown, temp};
use rackmath::ask::Question;
use rackmath::field::{Unit, put};
use rackmath_units::Chance;
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

/// A running server; stopped when dropped.
struct Web {
    child: Child,
    client: server::Client,
    said: BufReader<std::process::ChildStderr>,
}

impl Web {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rackmath"));
        command
            .args(["web", "--port", "0", "--patience", "200"])
            .args(args)
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let mut said = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("says where it is");
        let address = line.split("http://").nth(1).and_then(|s| s.split('/').next()).expect("an address");
        let client = server::Client::new(address.parse().expect("an address"));
        Self { child, client, said }
    }

    fn post(&mut self, question: &str, body: &str) -> String {
        let reply = self.client.post(&format!("/api/{question}"), body.as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.text().to_owned()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `rackmath ask` prints for a body on standard input.
fn asked(question: &str, body: &str) -> String {
    let mut command = assert_cmd::Command::cargo_bin("rackmath").expect("built");
    let output = command.args(["ask", question]).write_stdin(body).output().expect("ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A question as flags and as JSON; small where the usual one is slow.
fn both(question: Question) -> (String, Value) {
    const TRACE: &str = "prompt_tokens,completion_tokens\n100,10\n900,40\n";
    let plan = json!({ "setting": { "model": "llama-3.1-8b", "on": "h100" }, "disaggregated": false });
    let estimate = json!({ "setting": { "model": "qwen3-32b", "on": "8xh200" }, "degrees": { "tp": 4 }, "ttft_ms": 500,
        "disaggregated": { "prefill": { "tp": 2 } } });
    let (small, trace, saved) = ("llama-3.1-8b --on h100 --aggregated", temp("faces.csv", TRACE), path("faces.json"));
    let changed = format!("{saved} --set tpot=20ms");
    let (flags, body) = match question {
        Question::Step => (
            "llama-3.1-70b --on 8xh200 -b 64 --price 2.10",
            json!({ "setting": { "model": "llama-3.1-70b", "on": "8xh200", "price_usd_per_chip_hour": 2.1 }, "batch": 64 }),
        ),
        Question::Curve => ("--over context --points 20", json!({ "over": "context", "points": 20 })),
        Question::Chips => ("h100 h200", json!({ "names": ["h100", "h200"] })),
        Question::Lecture => ("D9", json!({ "claim": "D9" })),
        Question::Check => ("--on h100", json!({ "on": "h100" })),
        Question::Estimate => ("qwen3-32b --on 8xh200 --tp 4 --ttft 500ms --disaggregated --prefill-tp 2", estimate),
        Question::EstimateSweep => (
            "qwen3-32b --on 8xh200 --tp 4 --ttft 500ms --disaggregated --prefill-tp 2 --points 5",
            json!({ "estimate": estimate, "points": 5 }),
        ),
        Question::Validate => ("splitwise", json!({ "tables": ["splitwise"] })),
        Question::Price => (
            "opus-4.8 --turns 20 --gap 2min",
            json!({ "sheets": ["opus-4.8"], "workload": { "turns": 20, "gap_s": 120 } }),
        ),
        Question::Cost => {
            ("--owner --capex 48.6k -u 60%", json!({ "owner": { "capex_usd": 48600 }, "utilisation": 0.6 }))
        }
        Question::Fleet => ("--rate 1000", json!({ "rate_per_s": 1000 })),
        Question::Cache => ("--gaps 30s:0.2,10min:0.15", json!({ "reuse": { "gaps": [[30, 0.2], [600, 0.15]] } })),
        Question::Lifecycle => (
            "--rl 100M,16,8k,0.5 --chip-mtbf 50677h",
            json!({ "rl": { "prompts": 1e8, "group": 16, "sample_tokens": 8000, "pass_rate": 0.5 },
                "failures": { "chip_mtbf_hours": 50677 } }),
        ),
        Question::Forensics => (
            "deepseek-v3 --price 2",
            json!({ "run": "deepseek-v3", "price_usd_per_chip_hour": { "low": 2, "high": 2 } }),
        ),
        Question::Reversible => ("--depth 4 --steps 2", json!({ "depth": 4, "steps": 2 })),
        Question::Mfu => ("--tflops 400", json!({ "tflop_per_s_per_chip": 400 })),
        Question::Deduce => {
            ("--blind deepseek-v3.1 --points 12", json!({ "blind": "deepseek-v3.1", "log2_points": 12 }))
        }
        Question::Plan => (
            "llama-3.1-8b --on h100 --aggregated --tpot 30ms",
            json!({ "setting": plan["setting"], "disaggregated": false, "tpot_ms": 30 }),
        ),
        Question::Whatif => {
            shown(&format!("plan {small} --save {saved}"));
            let plan: Value = serde_json::from_str(&read(&saved)).expect("JSON");
            (&*changed, json!({ "plan": plan["request"], "set": ["tpot=20ms"] }))
        }
        Question::Compare | Question::Frontier => (
            "llama-3.1-8b --on h100 --aggregated --engines vllm,sglang",
            json!({ "plan": plan, "engines": ["vllm", "sglang"] }),
        ),
        Question::Hardware => {
            let plan = json!({ "setting": { "model": "llama-3.1-8b" }, "disaggregated": false });
            ("llama-3.1-8b --aggregated --among h100", json!({ "plan": plan, "among": ["h100"] }))
        }
        Question::Outlook => (small, json!({ "plan": plan })),
        Question::Trace => (&*trace, json!({ "name": "faces.csv", "text": TRACE })),
        _ => ("", json!({})),
    };
    (format!("{} {flags}", question.name()), body)
}

#[test]
fn every_question_gives_the_same_bytes_from_every_face() {
    let (mut web, catalog) = (Web::start(&["--quiet"]), rackmath_catalog::embedded());
    for question in Question::ALL {
        let (flags, body) = both(*question);
        let (name, body) = (question.name(), body.to_string());
        let library = question.ask(&catalog, &body).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(web.post(name, &body), library, "{name}: server and library");
        assert_eq!(shown(&format!("{flags} --json")), library, "{name}: flags and library");
        assert!(library.starts_with("{\n  \"schema\": 2,\n"), "{name}");
        let schema: Value = serde_json::to_value(question.schema()).expect("JSON");
        let answer: Value = serde_json::from_str(&library).expect("JSON");
        let properties = schema["answer"]["properties"].as_object().expect("an object");
        for field in answer.as_object().expect("an object").keys() {
            assert!(properties.contains_key(field), "{name}: {field} is not in the schema");
        }
        assert!(!shown(&flags).is_empty(), "{name} has a page");
    }
    let body = both(Question::Step).1.to_string();
    assert_eq!(asked("step", &body), web.post("step", &body));
}

#[test]
fn every_field_of_every_request_is_a_flag_that_reads_back() {
    for question in Question::ALL {
        let fields = question.fields();
        for field in &fields {
            let flag = format!("{} --{}", question.name(), field.flag);
            let sample = match field.unit {
                _ if !field.words.is_empty() => field.words[0].as_str(),
                Unit::Switch => "true",
                Unit::Whole => "8",
                Unit::Quantity(quantity) => quantity.example,
                Unit::Gap => "30s:0.2",
                Unit::Limit => "p90=1s",
                Unit::Rounded | Unit::Exact if field.flag == "peak" => "900 TFLOP/s..1 PFLOP/s",
                Unit::Rounded | Unit::Exact => "10T..12T",
                Unit::Group if field.parts.is_empty() => "true",
                Unit::Group => "100M,16,8k,0.5",
                Unit::Json => continue,
                _ => "4k",
            };
            let value = field.parse(sample).unwrap_or_else(|e| panic!("{flag}: {e}"));
            let mut request = Map::new();
            put(&mut request, &field.path, value.clone());
            let filled = question.filled(request).unwrap_or_else(|e| panic!("{flag}: {e}"));
            let read = filled.pointer(&field.path).cloned().unwrap_or_default();
            let same = match (&read, &value) {
                // A group comes back with its defaults.
                (Value::Object(all), Value::Object(some)) => some.iter().all(|(k, v)| all[k].as_f64() == v.as_f64()),
                (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
                (a, b) => a == b,
            };
            assert!(same, "{flag} {sample}: {read} is not {value}");
            assert!(field.doc.len() > 3, "{flag} has no help");
        }
        let mut names: Vec<&String> =
            fields.iter().flat_map(|f| f.aliases.iter().chain(&f.old).chain([&f.flag])).collect();
        names.sort();
        assert!(names.windows(2).all(|two| two[0] != two[1]), "{}: {names:?}", question.name());
    }
}

#[test]
fn flags_at_random_never_panic() {
    const VALUES: &[&str] =
        &["0", "-1", "1e308", "nan", "", "none", "4k", "50%", "$2/h", "30ms", "h100", "x,y", "é", "1..0"];
    // Quick ones; the readers of the others are the same.
    let quick = "step curve layout pipeline estimate price cost fleet scaling goodput forensics mfu station fastmode";
    let quick: Vec<Question> = quick.split(' ').map(|name| Question::find(name).expect("a question")).collect();
    let mut chance = Chance::new(7);
    for _ in 0..80 {
        let question = quick[chance.below(quick.len() as u64) as usize];
        let fields = question.fields();
        let mut line = question.name().to_owned();
        for _ in 0..=chance.below(2) {
            let field = &fields[chance.below(fields.len() as u64) as usize];
            let value = VALUES[chance.below(VALUES.len() as u64) as usize];
            let word = match field.unit {
                Unit::Switch | Unit::Group => format!(" --{}", field.flag),
                _ if field.position.is_some() => format!(" {value}"),
                _ => format!(" --{}={value}", field.flag),
            };
            line.push_str(&word);
        }
        let (_, err, code) = rackmath(&line);
        assert!(matches!(code, 0 | 2), "{line}: {code} {err}");
    }
}

#[test]
fn help_teaches_with_an_example_and_completions_name_every_command() {
    for question in Question::ALL.iter().filter(|q| **q != Question::Names) {
        let help = shown(&format!("{} --help", question.name()));
        let example = help.split("Example").nth(1).unwrap_or_else(|| panic!("{}", question.name()));
        assert!(example.contains(&format!("rackmath {}", question.name())), "{help}");
    }
    for tool in ["memory", "traffic", "merge", "schema", "ask", "web", "completions"] {
        assert!(shown(&format!("{tool} --help")).contains("rackmath "), "{tool}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = shown(&format!("completions {shell}"));
        assert!(["step", "kv-cache-dtype", "lecture", "precision"].iter().all(|c| script.contains(c)), "{shell}");
    }
}

#[test]
fn the_same_request_gives_the_same_bytes() {
    for args in ["", "curve --csv -", "curve --svg -", "deduce --blind llama-3.1-405b --svg -"] {
        assert_eq!(shown(args), shown(args));
    }
}

#[test]
fn a_taken_port_is_said_with_a_free_one() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let said = common::refused(&format!("web --port {port}"));
    assert!(
        said.contains(&format!("port {port} of 127.0.0.1 is taken")) && said.contains("hint: try --port "),
        "{said}"
    );
    let free: u16 = said.rsplit("--port ").next().and_then(|n| n.trim().parse().ok()).expect("a port");
    assert!(TcpListener::bind(("127.0.0.1", free)).is_ok());
}

#[test]
fn requests_are_logged_and_the_end_is_orderly() {
    let mut web = Web::start(&[]);
    web.post("step", "{}");
    let mut line = String::new();
    web.said.read_line(&mut line).expect("a line");
    assert!(line.starts_with("POST /api/step 200 ") && line.contains(" ms 127.0.0.1 "), "{line}");
    let stopped = Command::new("kill").args(["-TERM", &web.child.id().to_string()]).status().expect("ran");
    assert!(stopped.success());
    assert_eq!(web.child.wait().expect("ends").code(), Some(0));
}

#[test]
fn practice_in_a_terminal() {
    insta::assert_snapshot!(shown("practice --seed 3 -n 4 --answers=0.96,-,1"));
    let cards = shown("practice --cards");
    assert!(cards.contains("\n27. ") && !cards.contains("28. "), "{cards}");
}
