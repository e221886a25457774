//! What `gauge` and `watch` share: flags that say which server may be asked with which key, the client made of them, and the first Ctrl-C.

use crate::menu::{option, path};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};
use rackmath::Error;
use rackmath_measure::gauge::{Client, Key, Limits, Stop, Target};
use std::path::PathBuf;

const KEY: &str = "OPENAI_API_KEY";

/// The address, unless the named flag brings a file instead.
pub fn url(unless: &'static str) -> Arg {
    let help = "Where the server is, such as http://127.0.0.1:8000";
    Arg::new("url").value_name("URL").help(help).required_unless_present(unless)
}

pub fn args() -> [Arg; 4] {
    [
        option("served-model-name", "NAME", "The name requests give, where several models are served"),
        option("i-may-load", "HOST", "Says that a host outside this machine and private networks is yours to load")
            .action(ArgAction::Append),
        option("key-env", "NAME", "Environment variable with the key; it is neither printed nor saved")
            .default_value(KEY),
        path("ca", "FILE", "Certificates to trust, as PEM, instead of the system's"),
    ]
}

pub fn model(given: &ArgMatches) -> Option<&str> {
    given.get_one::<String>("served-model-name").map(String::as_str)
}

/// A client of the server that was named, if it may be loaded.
pub fn client(given: &ArgMatches, limits: Limits) -> Result<Client, Error> {
    let url = given.get_one::<String>("url").map_or("", String::as_str);
    let target = Target::read(url)?;
    let addresses = target.addresses()?;
    let may: Vec<String> = given.get_many::<String>("i-may-load").into_iter().flatten().cloned().collect();
    target.allowed(&addresses, &may)?;
    let name = given.get_one::<String>("key-env").map_or(KEY, String::as_str);
    let key = std::env::var(name).ok().filter(|key| !key.trim().is_empty()).map(|key| Key::new(&key)).transpose()?;
    if key.is_none() && given.value_source("key-env") == Some(ValueSource::CommandLine) {
        return Err(Error::value("key-env", name, "the name of an environment variable that is set"));
    }
    let ca = given.get_one::<PathBuf>("ca").map(|p| p.display().to_string());
    Client::new(target, addresses, key, limits, ca.as_deref())
}

/// The first Ctrl-C ends the work and keeps what there is, the second ends the process.
pub fn stopping() -> Stop {
    let stop = Stop::default();
    let handler = stop.clone();
    let _ = ctrlc::set_handler(move || {
        if handler.stopped() {
            std::process::exit(130);
        }
        handler.now();
    });
    stop
}

/// A time as it is typed: 500ms, 60s, 2min, 1h.
pub fn seconds(given: &ArgMatches, name: &str) -> Result<Option<f64>, Error> {
    let Some(text) = given.get_one::<String>(name) else { return Ok(None) };
    let text = text.trim();
    let wrong = || Error::value(name, text, "a time such as 500ms, 60s, 2min, 1h");
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let scale = match text[split..].trim() {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let n: f64 = text[..split].trim().parse().map_err(|_| wrong())?;
    Some(n * scale).filter(|s| s.is_finite() && *s >= 0.0).map(Some).ok_or_else(wrong)
}
