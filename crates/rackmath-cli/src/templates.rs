//! `rackmath templates`: files to begin with, as they stand in `examples/`.

use crate::output::{Output, print};
use clap::ArgMatches;
use rackmath::{Catalog, Error};

/// A name, what it is for, and its text.
const FILES: &[(&str, &str, &str)] = &[
    (
        "my-chip.toml",
        "a chip of your own: --catalog FOLDER with it in FOLDER/chips",
        include_str!("../../../examples/catalog/chips/my-chip.toml"),
    ),
    (
        "rackmath.toml",
        "settings to begin with, in this folder or in ~/.config/rackmath",
        include_str!("../../../examples/rackmath.toml"),
    ),
    (
        "trace.csv",
        "requests of a day, for simulate --trace and plan --trace",
        include_str!("../../../examples/trace.csv"),
    ),
    (
        "trace.jsonl",
        "the same with shared prefixes, for trace, plan and simulate",
        include_str!("../../../examples/trace.jsonl"),
    ),
    ("world.toml", "a world of clients to simulate: simulate --world", include_str!("../../../examples/world.toml")),
    (
        "request.json",
        "a question as JSON: rackmath ask step request.json",
        include_str!("../../../examples/request.json"),
    ),
];

pub fn run(_: Catalog, given: &ArgMatches, _: &Output) -> Result<(), Error> {
    let Some(name) = given.get_one::<String>("name") else {
        let lines: Vec<String> = FILES.iter().map(|(name, about, _)| format!("{name:<15} {about}\n")).collect();
        return print(&lines.concat());
    };
    let found = FILES.iter().find(|(file, ..)| file == name || file.split('.').next() == Some(name.as_str()));
    let near = || rackmath_spec::nearest(name, FILES.iter().map(|(file, ..)| *file)).first().cloned();
    let hint = || near().map_or_else(|| "rackmath templates lists them".to_owned(), |n| format!("did you mean {n}?"));
    let (.., text) = found.ok_or_else(|| Error::said(format!("no template \"{name}\"")).hint(hint()))?;
    print(text)
}
