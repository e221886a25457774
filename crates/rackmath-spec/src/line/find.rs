//! Which server a line, a compose file or a manifest starts, and with which words.

use super::words::{self, Word};
use super::{Program, yaml};
use crate::SpecError;
use crate::error::one_of;
use serde_json::Value;
use std::collections::BTreeMap;

/// A server that is started: whose, by which image, where the words of its own begin, and what stands around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Started {
    /// None where only flags were given: who asks says whose they are.
    pub program: Option<Program>,
    /// The list of flags that its command takes.
    pub list: Option<&'static str>,
    pub words: Vec<Word>,
    pub env: BTreeMap<String, String>,
    pub image: Option<String>,
    /// The version its image names.
    pub version: Option<String>,
    /// Graphics cards it is given.
    pub gpus: Option<u64>,
    /// What its container is called.
    pub name: Option<String>,
    /// Whether all its replicas are several, where a manifest says so.
    pub replicas: Option<u64>,
}

/// Every server that a text starts: one command line, or a file in YAML.
pub fn find(text: &str) -> Result<Vec<Started>, SpecError> {
    if looks_like_yaml(text) {
        return of_yaml(text);
    }
    Ok(vec![of_line(text)?])
}

/// A file has keys at the beginning of its lines and no command in its first one.
pub fn looks_like_yaml(text: &str) -> bool {
    let line = |l: &str| {
        let l = l.trim_end();
        let key = l.split_once(':').is_some_and(|(key, rest)| {
            let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '"'));
            plain && !key.is_empty() && (rest.is_empty() || rest.starts_with(' '))
        });
        key || l == "---"
    };
    text.lines().find(|l| !l.trim().is_empty() && !l.trim_start().starts_with('#')).is_some_and(line)
}

/// The server of a command line: the first of its commands that starts one.
pub fn of_line(text: &str) -> Result<Started, SpecError> {
    let all = words::split(text)?;
    if all.is_empty() {
        return Err(SpecError::said("an empty command line").hint("expected one such as: vllm serve MODEL -tp 2"));
    }
    of_words(&all)
}

fn of_words(all: &[Word]) -> Result<Started, SpecError> {
    let mut env = BTreeMap::new();
    let mut bare = None;
    for command in words::commands(all) {
        let set = |word: &&Word| word.assignment().is_some() || matches!(word.text.as_str(), "export" | "env" | "set");
        let before: Vec<&Word> = command.iter().take_while(set).collect();
        for (name, value) in before.iter().filter_map(|word| word.assignment()) {
            let value = words::filled(value, &env);
            env.insert(name.to_owned(), value);
        }
        let rest: Vec<Word> = command[before.len()..]
            .iter()
            .map(|word| Word { text: words::filled(&word.text, &env), ..word.clone() })
            .collect();
        if rest.is_empty() {
            continue;
        }
        if let Some(mut found) = container(&rest)? {
            found.env = env.into_iter().chain(found.env).collect();
            return Ok(found);
        }
        if let Some(mut found) = server(&rest)? {
            found.env = env.into_iter().chain(found.env).collect();
            return Ok(found);
        }
        let only_flags = rest[0].is_flag();
        if only_flags && bare.is_none() {
            bare = Some(rest);
        }
    }
    let first = all.iter().find(|word| word.assignment().is_none()).unwrap_or(&all[0]);
    let words = bare.ok_or_else(|| first.wrong("no server that is known here").hint(instead(all)))?;
    Ok(Started { words, env, ..Started::default() })
}

/// What to ask instead: programs that start llama.cpp by themselves say little of how.
fn instead(all: &[Word]) -> String {
    let around = all.iter().map(Word::program).find(|own| ["ollama", "lms"].contains(own));
    match around {
        Some(program) => format!(
            "{program} runs llama.cpp: give its line, such as llama-server -hf REPOSITORY:Q4_K_M -ngl 99 -c 8192"
        ),
        None => KNOWN.to_owned(),
    }
}

const KNOWN: &str = "expected vllm serve, python -m vllm.entrypoints.openai.api_server, python -m sglang.launch_server, \
     sglang serve, trtllm-serve, llama-server, llama-cli, llama-bench, or docker run of an image of these";

/// The server that these words start, wherever among them its command stands: `sudo`, `nohup`, `numactl`, `mpirun` come before.
fn server(all: &[Word]) -> Result<Option<Started>, SpecError> {
    for (at, word) in all.iter().enumerate() {
        let next = all.get(at + 1).map_or("", |w| w.text.as_str());
        let (program, list, taken) = match (word.program(), next) {
            ("vllm", "serve") => (Program::Vllm, "vllm", 2),
            ("vllm", other) if at == 0 || !all[at - 1].is_flag() => {
                let why = format!("\"{other}\" follows where serve starts a server");
                return Err(word.wrong(why).hint("expected vllm serve MODEL"));
            }
            ("sglang", "serve") => (Program::Sglang, "sglang", 2),
            ("-m", "vllm.entrypoints.openai.api_server" | "vllm.entrypoints.api_server") => (Program::Vllm, "vllm", 2),
            ("-m", "sglang.launch_server") => (Program::Sglang, "sglang", 2),
            ("-m", "tensorrt_llm.commands.serve") => (Program::TrtLlm, "trtllm", 2),
            ("api_server.py", _) => (Program::Vllm, "vllm", 1),
            ("launch_server.py", _) => (Program::Sglang, "sglang", 1),
            ("trtllm-serve", "serve") => (Program::TrtLlm, "trtllm", 2),
            ("trtllm-serve", _) => (Program::TrtLlm, "trtllm", 1),
            ("llama-server" | "llama-cli" | "llama-simple" | "llama-batched-bench", _) => {
                (Program::LlamaCpp, "llama-server", 1)
            }
            ("llama", "serve" | "server") => (Program::LlamaCpp, "llama-server", 2),
            ("llama-bench", _) => (Program::LlamaCpp, "llama-bench", 1),
            // A shell runs what stands in its word.
            ("sh" | "bash", "-c" | "-lc" | "-ec" | "-xc" | "-euc") => {
                let Some(script) = all.get(at + 2) else { continue };
                let Ok(inner) = words::split(&script.text) else {
                    return Err(script.wrong("a quote in it is never closed"));
                };
                let words: Vec<Word> = inner.into_iter().map(|w| Word { place: script.place, ..w }).collect();
                return of_words(&words).map(Some);
            }
            _ => continue,
        };
        let words = all[at + taken..].to_vec();
        return Ok(Some(Started { program: Some(program), list: Some(list), words, ..Started::default() }));
    }
    Ok(None)
}

/// Options of `docker run` that stand alone; every other one is followed by its value.
const ALONE: [&str; 18] = [
    "-d",
    "-i",
    "-t",
    "-it",
    "-ti",
    "-itd",
    "-dit",
    "-P",
    "--rm",
    "--detach",
    "--init",
    "--interactive",
    "--tty",
    "--privileged",
    "--read-only",
    "--publish-all",
    "--no-healthcheck",
    "--oom-kill-disable",
];

/// The server that a container holds.
fn container(all: &[Word]) -> Result<Option<Started>, SpecError> {
    let tool = |w: &Word| matches!(w.program(), "docker" | "podman" | "nerdctl" | "nvidia-docker");
    let Some(at) = all.iter().position(tool) else { return Ok(None) };
    let Some(run) = all.iter().skip(at).position(|w| matches!(w.text.as_str(), "run" | "exec")) else {
        return Ok(None);
    };
    if all[at + run].is("exec") {
        return server(all);
    }
    let mut found = Started::default();
    let mut entry: Option<Word> = None;
    let mut words = all[at + run + 1..].iter();
    let image = loop {
        let Some(word) = words.next() else {
            return Err(all[at + run].wrong("no image follows").hint("expected docker run OPTIONS IMAGE FLAGS"));
        };
        if !word.text.starts_with('-') {
            break word;
        }
        let (name, attached) = word.text.split_once('=').map_or((word.text.as_str(), None), |(n, v)| (n, Some(v)));
        if ALONE.contains(&name) {
            continue;
        }
        let value = attached.unwrap_or_else(|| words.next().map_or("", |w| w.text.as_str()));
        match name {
            "--gpus" | "--device" => found.gpus = found.gpus.or_else(|| cards(value)),
            "-e" | "--env" => {
                if let Some((name, value)) = value.split_once('=') {
                    found.env.insert(name.to_owned(), value.to_owned());
                }
            }
            "--name" => found.name = Some(value.to_owned()),
            "--entrypoint" => entry = Some(Word { text: value.to_owned(), ..word.clone() }),
            _ => {}
        }
    };
    found.image = Some(image.text.clone());
    let words: Vec<Word> = entry.into_iter().chain(words.cloned()).collect();
    imaged(found, &words, image).map(Some)
}

/// The server of an image that is given words: they name one, or the image's own takes them.
fn imaged(mut found: Started, words: &[Word], said: &Word) -> Result<Started, SpecError> {
    let image = found.image.clone().unwrap_or_default();
    found.version = version_of(&image);
    if let Some(inner) = server(words)? {
        let env = inner.env.into_iter().chain(found.env).collect();
        return Ok(Started { program: inner.program, list: inner.list, words: inner.words, env, ..found });
    }
    let lower = image.to_ascii_lowercase();
    let (program, list) = if lower.contains("vllm") {
        (Program::Vllm, "vllm")
    } else if lower.contains("llama.cpp") {
        (Program::LlamaCpp, "llama-server")
    } else if lower.contains("sglang") || lower.contains("tensorrt") {
        return Err(said.wrong("the image starts no server by itself").hint("give the command behind it"));
    } else {
        return Err(said.wrong("an image of no server that is known here").hint(KNOWN));
    };
    let serve = words.first().is_some_and(|w| w.is("serve"));
    found.words = words[usize::from(serve)..].to_vec();
    Ok(Started { program: Some(program), list: Some(list), ..found })
}

/// The version in an image's tag: `vllm/vllm-openai:v0.19.0`, `rocm/vllm:..._vllm_0.23.0`.
fn version_of(image: &str) -> Option<String> {
    let tag = image.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.contains('/'))?;
    let own = tag.rfind("vllm_").or_else(|| tag.rfind("vllm-")).map_or(tag, |at| &tag[at + 5..]);
    let bare = own.trim_start_matches(['v', 'b']);
    let end = bare.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(bare.len());
    let version = &bare[..end];
    let sound = version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.');
    sound.then(|| version.to_owned())
}

/// How many cards `--gpus` or a list of devices names: `2`, `device=0,1`, `"device=0,1"`.
fn cards(text: &str) -> Option<u64> {
    let text = text.trim_matches(['"', '\'']);
    if let Some(list) = text.strip_prefix("device=") {
        return Some(list.split(',').filter(|one| !one.is_empty()).count() as u64);
    }
    text.parse::<u64>().ok().filter(|n| *n > 0)
}

/// Every server of a compose file or of manifests.
pub fn of_yaml(text: &str) -> Result<Vec<Started>, SpecError> {
    let mut all = Vec::new();
    let mut seen = Vec::new();
    for document in yaml::documents(text)? {
        if let Some(services) = document.get("services").and_then(Value::as_object) {
            for (name, service) in services {
                seen.push(name.clone());
                all.extend(of_container(name, service, true)?);
            }
        }
        pods(&document, None, &mut |container, replicas| {
            let name = container.get("name").and_then(Value::as_str).unwrap_or("container").to_owned();
            if let Some(mut one) = of_container(&name, container, false)? {
                one.replicas = replicas;
                all.push(one);
            }
            seen.push(name);
            Ok(())
        })?;
    }
    if all.is_empty() {
        let problem = if seen.is_empty() {
            "a YAML file with no container".to_owned()
        } else {
            format!("no container starts a server that is known here: {}", seen.join(", "))
        };
        return Err(SpecError::said(problem).hint("expected a compose file or a manifest whose container runs one"));
    }
    Ok(all)
}

type Visit<'a> = dyn FnMut(&Value, Option<u64>) -> Result<(), SpecError> + 'a;

/// Goes through all containers of a manifest, whatever kind they belong to.
fn pods(value: &Value, replicas: Option<u64>, visit: &mut Visit) -> Result<(), SpecError> {
    match value {
        Value::Array(list) => list.iter().try_for_each(|one| pods(one, replicas, visit)),
        Value::Object(map) => {
            let replicas = map.get("replicas").and_then(Value::as_u64).or(replicas);
            for (key, inner) in map {
                match (key.as_str(), inner) {
                    ("containers", Value::Array(list)) => list.iter().try_for_each(|one| visit(one, replicas))?,
                    ("initContainers", _) => {}
                    _ => pods(inner, replicas, visit)?,
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn of_container(name: &str, container: &Value, compose: bool) -> Result<Option<Started>, SpecError> {
    let within = |e: SpecError| e.within(format!("container {name}"));
    let mut found = Started { name: Some(name.to_owned()), ..Started::default() };
    found.image = container.get("image").and_then(Value::as_str).map(str::to_owned);
    found.env = variables(container.get(if compose { "environment" } else { "env" }));
    if let Some(image) = &mut found.image {
        *image = words::filled(image, &found.env);
    }
    let (first, second) = if compose { ("entrypoint", "command") } else { ("command", "args") };
    let mut words = Vec::new();
    for key in [first, second] {
        words.extend(word_list(container.get(key)).map_err(within)?);
    }
    for (at, word) in words.iter_mut().enumerate() {
        word.text = words::filled(&round(&word.text, &found.env).replace("$$", "$"), &found.env);
        word.place = at + 1;
    }
    let limits =
        ["limits", "requests"].into_iter().find_map(|kind| gpus_of(container.pointer(&format!("/resources/{kind}"))));
    let devices = container.pointer("/deploy/resources/reservations/devices").and_then(Value::as_array);
    let reserved = devices.and_then(|list| {
        let count = |one: &Value| {
            let ids = one.get("device_ids").and_then(Value::as_array).map(|ids| ids.len() as u64);
            ids.or_else(|| one.get("count").and_then(Value::as_u64))
        };
        list.iter().find_map(count)
    });
    found.gpus = limits.or(reserved);
    let known = |w: &str| {
        let lower = w.to_ascii_lowercase();
        ["vllm", "sglang", "tensorrt", "llama.cpp"].iter().any(|engine| lower.contains(engine))
    };
    let image = found.image.clone().unwrap_or_default();
    let own = server(&words).map_err(within)?;
    if own.is_none() && !known(&image) {
        return Ok(None);
    }
    // Routers and load tests stand beside servers.
    let router = |w: &Word| w.text.contains("router") || w.text.contains("bench_serving");
    if own.is_none() && words.iter().take(4).any(router) {
        return Ok(None);
    }
    let said = Word { text: image, place: 0, quoted: true };
    imaged(found, &words, &said).map(Some).map_err(within)
}

/// Kubernetes writes `$(NAME)` for a variable; what is not set stays.
fn round(text: &str, set: &BTreeMap<String, String>) -> String {
    let (mut all, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("$(") {
        all.push_str(before);
        let known = after.split_once(')').and_then(|(name, behind)| Some((set.get(name)?.as_str(), behind)));
        let (value, behind) = known.unwrap_or(("$(", after));
        all.push_str(value);
        rest = behind;
    }
    all + rest
}

fn variables(value: Option<&Value>) -> BTreeMap<String, String> {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    match value {
        Some(Value::Object(map)) => map.iter().map(|(name, v)| (name.clone(), text(v))).collect(),
        Some(Value::Array(list)) => {
            let one = |item: &Value| match item {
                Value::String(line) => line.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())),
                _ => Some((item.get("name")?.as_str()?.to_owned(), text(item.get("value")?))),
            };
            list.iter().filter_map(one).collect()
        }
        _ => BTreeMap::new(),
    }
}

fn word_list(value: Option<&Value>) -> Result<Vec<Word>, SpecError> {
    match value {
        Some(Value::String(line)) => words::split(line),
        Some(Value::Array(list)) => {
            let texts: Vec<String> =
                list.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect();
            Ok(words::listed(texts.iter().map(String::as_str)))
        }
        _ => Ok(Vec::new()),
    }
}

fn gpus_of(value: Option<&Value>) -> Option<u64> {
    let map = value?.as_object()?;
    let card = |name: &str| name.ends_with("/gpu") || name.ends_with("/tpu") || name.contains("nvidia.com/mig");
    let (_, n) = map.iter().find(|(name, _)| card(name))?;
    n.as_u64().or_else(|| n.as_str()?.parse().ok())
}

/// The one server asked for by the name of its container, or the only one.
pub fn chosen(mut all: Vec<Started>, name: Option<&str>) -> Result<Started, SpecError> {
    let names = |all: &[Started]| {
        let each: Vec<String> = all.iter().map(|s| s.name.clone().unwrap_or_else(|| "unnamed".into())).collect();
        each.join(", ")
    };
    match name {
        Some(name) => {
            let valid = names(&all);
            let at = all.iter().position(|s| s.name.as_deref() == Some(name));
            at.map(|at| all.swap_remove(at)).ok_or_else(|| {
                SpecError::value(
                    "container",
                    format!("\"{name}\""),
                    format!("one of those that start a server: {valid}"),
                )
            })
        }
        None if all.len() > 1 => {
            let problem = format!("{} containers start a server: {}", all.len(), names(&all));
            Err(SpecError::said(problem).hint("say which one with {container}"))
        }
        None => all.pop().ok_or_else(|| SpecError::said("no server")),
    }
}

impl std::str::FromStr for Program {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text.trim().to_ascii_lowercase().replace(['-', '_', '.'], "").as_str() {
            "tensorrtllm" | "trt" => Ok(Self::TrtLlm),
            word => one_of("server", word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Started {
        chosen(find(text).unwrap(), None).unwrap()
    }

    fn words(s: &Started) -> String {
        s.words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn commands_of_every_server_are_found() {
        for (line, program, rest) in [
            ("vllm serve Qwen/Qwen3-8B -tp 2", Program::Vllm, "Qwen/Qwen3-8B -tp 2"),
            ("python3 -m vllm.entrypoints.openai.api_server --model m", Program::Vllm, "--model m"),
            ("nohup sudo -E /opt/bin/vllm serve m > x.log 2>&1 &", Program::Vllm, "m"),
            ("python -m sglang.launch_server --model-path m", Program::Sglang, "--model-path m"),
            ("sglang serve --model-path m", Program::Sglang, "--model-path m"),
            ("mpirun -n 8 trtllm-llmapi-launch trtllm-serve m --tp_size 8", Program::TrtLlm, "m --tp_size 8"),
            ("trtllm-serve serve m", Program::TrtLlm, "m"),
            ("./build/bin/llama-server -m x.gguf -ngl 99", Program::LlamaCpp, "-m x.gguf -ngl 99"),
            ("bash -c 'cd /x && vllm serve m --port 1'", Program::Vllm, "m --port 1"),
        ] {
            let found = one(line);
            assert_eq!((found.program, words(&found).as_str()), (Some(program), rest), "{line}");
        }
        let found = one("export M=a/b; CUDA_VISIBLE_DEVICES=0,1 VLLM_USE_V1=0 vllm serve $M");
        assert_eq!(words(&found), "a/b");
        assert_eq!(found.env["CUDA_VISIBLE_DEVICES"], "0,1");
        assert!(one("-tp 8 --max-num-seqs 4").program.is_none());
        assert!(find("ollama run x").unwrap_err().to_string().contains("word 1"));
        assert!(find("vllm bench serve").is_err());
    }

    #[test]
    fn containers_name_version_cards_and_flags() {
        let run = "docker run --runtime nvidia --gpus '\"device=0,1\"' -v ~/.cache:/cache --env \"HF_TOKEN=x\" \
                   -p 8000:8000 --ipc=host vllm/vllm-openai:v0.19.0 --model Qwen/Qwen3-8B -tp 2";
        let found = one(run);
        assert_eq!((found.version.as_deref(), found.gpus), (Some("0.19.0"), Some(2)));
        assert_eq!(words(&found), "--model Qwen/Qwen3-8B -tp 2");
        let found = one("docker run --gpus all lmsysorg/sglang:v0.5.9-cu129 python3 -m sglang.launch_server --model m");
        assert_eq!((found.version.as_deref(), found.program), (Some("0.5.9"), Some(Program::Sglang)));
        let rocm = version_of("rocm/vllm:rocm7.14.0_cdna_ubuntu24.04_py3.14_pytorch_2.11.0_vllm_0.23.0");
        assert_eq!(rocm.as_deref(), Some("0.23.0"));
        assert_eq!(version_of("vllm/vllm-openai:latest"), None);
        assert_eq!(version_of("localhost:5000/vllm"), None);
    }

    #[test]
    fn a_compose_file_and_a_manifest_are_read() {
        let compose = "services:\n  web:\n    image: nginx\n  llm:\n    image: vllm/vllm-openai:v0.15.1\n    command: >\n      --model Qwen/Qwen3-8B\n      --max-model-len 8192\n    environment:\n      - HF_TOKEN=x\n    deploy:\n      resources:\n        reservations:\n          devices:\n            - driver: nvidia\n              count: 2\n              capabilities: [gpu]\n";
        let found = one(compose);
        assert_eq!(
            (found.name.as_deref(), found.gpus, found.version.as_deref()),
            (Some("llm"), Some(2), Some("0.15.1"))
        );
        assert_eq!(words(&found), "--model Qwen/Qwen3-8B --max-model-len 8192");
        let manifest = "apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: 3\n  template:\n    spec:\n      containers:\n      - name: vllm\n        image: vllm/vllm-openai:v0.19.1\n        command: [\"/bin/sh\", \"-c\"]\n        args: [\"vllm serve mistralai/Mistral-7B-v0.3 --tensor-parallel-size $(TP) --enable-chunked-prefill\"]\n        env:\n        - name: TP\n          value: \"4\"\n        resources:\n          limits:\n            nvidia.com/gpu: \"4\"\n      - name: side\n        image: busybox\n";
        let found = one(manifest);
        assert_eq!((found.gpus, found.replicas), (Some(4), Some(3)));
        assert_eq!(words(&found), "mistralai/Mistral-7B-v0.3 --tensor-parallel-size 4 --enable-chunked-prefill");
        let two = compose.replace(
            "  web:\n    image: nginx\n",
            "  web:\n    image: vllm/vllm-openai:v0.15.1\n    command: --model x\n",
        );
        let err = chosen(find(&two).unwrap(), None).unwrap_err().to_string();
        assert!(err.contains("2 containers start a server: llm, web") || err.contains("web, llm"), "{err}");
        assert!(chosen(find(&two).unwrap(), Some("web")).is_ok());
        assert!(find("services:\n  a:\n    image: nginx\n").unwrap_err().to_string().contains("no container"));
    }
}
