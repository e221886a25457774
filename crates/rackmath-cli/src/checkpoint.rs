//! A model's files: its `config.json` with what stands beside it, on this machine or, only when asked, on a hub.
//!
//! What the index or the heads of the weight files say is handed on inside the config as `stored`. The hub is
//! `HF_ENDPOINT`, or huggingface.co; a token in `HF_TOKEN` goes to the client over its standard input and is never shown. Fetching is done by
//! `curl`, which has this machine's certificates and proxies.

use crate::failure::at;
use crate::inputs;
use rackmath::Error;
use rackmath_spec::file::stored::{MAX_HEAD, Stored};
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const INDEX: &str = "model.safetensors.index.json";

/// Most weight files of one checkpoint.
const MOST_FILES: usize = 1000;

/// A config.json with what the weight files beside it say.
pub fn with_stored(config: &Path) -> Result<String, Error> {
    let text = inputs::read(config)?;
    let folder = config.parent().unwrap_or(Path::new("."));
    let is_config = config.file_name().is_some_and(|name| name == "config.json");
    match is_config.then(|| beside(folder)).transpose()?.flatten() {
        Some(stored) => Ok(joined(text, &stored)),
        None => Ok(text),
    }
}

/// The text of a config with what is stored inside it; as it was where it is no object.
fn joined(text: String, stored: &Stored) -> String {
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(mut config)) if !config.contains_key("stored") => {
            config.insert("stored".into(), serde_json::to_value(stored).unwrap_or_default());
            Value::Object(config).to_string()
        }
        _ => text,
    }
}

/// What the weight files of a folder hold: by their heads where all are there, else by the index.
fn beside(folder: &Path) -> Result<Option<Stored>, Error> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(None) };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|x| x == "safetensors") && path.is_file());
    files.sort();
    let index = folder.join(INDEX);
    if index.is_file() {
        let (listed, over) = Stored::of_index(&index.display().to_string(), &inputs::read(&index)?)?;
        if over != files.len() {
            return Ok(listed);
        }
    }
    let mut all: Option<Stored> = None;
    for file in files.iter().take(MOST_FILES) {
        let one = head(file)?;
        match &mut all {
            Some(all) => all.join(one),
            None => all = Some(one),
        }
    }
    Ok(all)
}

/// The head of a safetensors file: eight bytes of length, then JSON.
fn head(path: &Path) -> Result<Stored, Error> {
    let mut file = File::open(path).map_err(|e| at(path, e))?;
    let mut length = [0; 8];
    let short = |_| at(path, "shorter than the head of a safetensors file");
    file.read_exact(&mut length).map_err(short)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEAD {
        return Err(at(path, format!("its head is said to have {length} bytes")).hint("expected a safetensors file"));
    }
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).map_err(|e| at(path, e))?;
    let text = String::from_utf8(bytes).map_err(|_| at(path, "its head is not UTF-8 text"))?;
    Stored::of_head(&path.display().to_string(), &text)
}

/// Whether a word can be the id of a model on a hub.
pub fn is_id(word: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    word.split_once('/').is_some_and(|(owner, name)| plain(owner) && plain(name))
}

/// The config.json of a model on the hub, with its index where it has one.
pub fn fetched(id: &str) -> Result<String, Error> {
    if !is_id(id) {
        return Err(Error::said(format!("\"{id}\" cannot be fetched")).hint("expected OWNER/NAME as on Hugging Face"));
    }
    let config = get(id, "config.json")?.ok_or_else(|| {
        let hint = "some ask for a token (HF_TOKEN) after accepting their terms; GGUF repositories have no config.json: give the base model";
        Error::said(format!("{id} has no config.json on {}", endpoint())).hint(hint)
    })?;
    let stored = match get(id, INDEX)? {
        Some(index) => Stored::of_index(INDEX, &index)?.0,
        None => None,
    };
    Ok(stored.map_or(config.clone(), |stored| joined(config, &stored)))
}

fn endpoint() -> String {
    let given = std::env::var("HF_ENDPOINT").ok().filter(|url| !url.trim().is_empty());
    given.map_or_else(|| "https://huggingface.co".into(), |url| url.trim().trim_end_matches('/').to_owned())
}

/// One file of a model; nothing where there is none.
fn get(id: &str, file: &str) -> Result<Option<String>, Error> {
    let endpoint = endpoint();
    let url = format!("{endpoint}/{id}/resolve/main/{file}");
    let sound = (url.starts_with("https://") || url.starts_with("http://")) && !url.contains(['"', '\\', '\n', '\r']);
    if !sound {
        return Err(Error::said("HF_ENDPOINT is no address").hint("expected one such as https://huggingface.co"));
    }
    let token = std::env::var("HF_TOKEN").ok().map(|token| token.trim().to_owned());
    // A token in plain sight of the network is no secret.
    let token = token.filter(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\'));
    let token = token.filter(|_| url.starts_with("https://") || url.starts_with("http://127.0.0.1"));
    let header = token.map_or_else(String::new, |token| format!("header = \"Authorization: Bearer {token}\"\n"));
    let arguments =
        ["--silent", "--location", "--max-time", "60", "--max-filesize", "8388608", "--write-out", "\n%{http_code}"];
    let missing =
        |_| Error::said("--fetch needs the program curl, which is not here").hint("or give the path of a config.json");
    let mut child = Command::new("curl")
        .args(arguments)
        .args(["--proto", "=https,http", "--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(missing)?;
    if let Some(mut input) = child.stdin.take() {
        // A client that ended early says why by its code.
        _ = write!(input, "url = \"{url}\"\n{header}");
    }
    let done = child.wait_with_output().map_err(|e| Error::said(format!("curl: {e}")))?;
    let offline = |why: &str| {
        Error::said(format!("{endpoint} cannot be reached: {why}")).hint(format!(
            "without a network give the path of a config.json, or of its folder; {id} in the local Hugging Face cache is found by itself"
        ))
    };
    match done.status.code() {
        Some(0) => {}
        Some(6) => return Err(offline("no such host is known here")),
        Some(7) => return Err(offline("nothing answers there")),
        Some(28) => return Err(offline("no answer within a minute")),
        Some(35 | 51 | 58 | 60) => return Err(offline("its certificate is not accepted here")),
        Some(63) => return Err(Error::said(format!("{file} of {id} is larger than 8 MiB"))),
        code => return Err(offline(&format!("curl ended with {}", code.unwrap_or(-1)))),
    }
    let text = String::from_utf8(done.stdout).map_err(|_| Error::said(format!("{file} of {id} is not UTF-8 text")))?;
    let (body, status) = text.rsplit_once('\n').unwrap_or(("", &text));
    match status {
        "200" => Ok(Some(body.to_owned())),
        "404" => Ok(None),
        "401" | "403" => Err(Error::said(format!("{id} is closed, or does not exist, on {endpoint}"))
            .hint("a token goes in HF_TOKEN; accept the model's terms first")),
        other => Err(Error::said(format!("{endpoint} answered {other} for {file} of {id}"))),
    }
}
