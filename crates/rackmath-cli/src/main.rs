//! The `rackmath` command: what was typed becomes a request, the request an answer, the answer a page.

mod checkpoint;
mod config;
mod failure;
mod fit;
mod flags;
mod folder;
mod gauge;
mod gguf;
mod glossary;
mod inputs;
mod llms;
mod man;
mod mcp;
mod menu;
mod output;
mod plan;
mod probe;
mod simulate;
mod socket;
mod still;
mod stubs;
mod sweep;
mod templates;
mod tools;
mod watch;

use inputs::Inputs;
use menu::{Does, Entry};
use output::{Output, tell};
use rackmath::Error;
use rackmath::ask::{Question, Reply};
use rackmath::field::Field;
use rackmath_report::reply::Part;
use std::process::ExitCode;

fn main() -> ExitCode {
    let typed: Vec<String> = std::env::args_os().map(|word| spelled(&word.to_string_lossy())).collect();
    let chosen = menu::chosen(&typed);
    let typed = guessed(typed, chosen.and_then(Entry::question));
    let fields = chosen.map_or_else(Vec::new, Entry::fields);
    let asked = config::settled(typed.clone(), &fields);
    match asked.and_then(|typed| run(&typed, chosen, &fields)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            tell(failure::text(&error, &fields, &typed).trim_end());
            // 2 is misuse: what was asked cannot be answered as asked.
            ExitCode::from(2)
        }
    }
}

/// Words of several letters behind one hyphen, as llama.cpp has them, with the two they are typed with here.
fn spelled(word: &str) -> String {
    let ours = [("-ngl", "--ngl"), ("-ncmoe", "--n-cpu-moe"), ("-cmoe", "--cpu-moe")];
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    let Some((_, known)) = ours.iter().find(|(theirs, _)| *theirs == name) else { return word.to_owned() };
    value.map_or_else(|| (*known).to_owned(), |value| format!("{known}={value}"))
}

/// Flags that people guess, as they are typed here: `--ttft-p99 1s` is `--ttft p99=1s`, and the line that is checked needs no flag.
fn guessed(typed: Vec<String>, question: Option<Question>) -> Vec<String> {
    let mut all: Vec<String> = Vec::with_capacity(typed.len());
    let mut words = typed.into_iter().peekable();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        if question == Some(Question::Check) && matches!(name, "--flags" | "--command") {
            all.extend(value.map(str::to_owned));
            continue;
        }
        let percentile = name.rsplit_once("-p").filter(|(of, n)| {
            matches!(*of, "--ttft" | "--tpot" | "--itl" | "--e2e")
                && n.parse::<u8>().is_ok_and(|n| (1..100).contains(&n))
        });
        let limit = percentile.and_then(|(of, n)| {
            let limit = value.map(str::to_owned).or_else(|| words.next_if(|next| !next.starts_with('-')))?;
            Some([of.to_owned(), format!("p{n}={limit}")])
        });
        match limit {
            Some(both) => all.extend(both),
            None => all.push(word),
        }
    }
    all
}

/// The exit code of an answer: 0, or 3 where a server that was checked would not start.
fn run(typed: &[String], chosen: Option<Entry>, fields: &[Field]) -> Result<u8, Error> {
    menu::moved(typed, chosen)?;
    let matches = menu::command(typed, chosen, fields).get_matches_from(typed);
    let output = Output::new(&matches);
    let folder = |id| matches.get_one::<std::path::PathBuf>(id).map(std::path::PathBuf::as_path);
    let catalog = fit::with(inputs::catalog(folder("catalog"))?, folder("with"))?;
    let (Some(entry), Some((_, given))) = (chosen, matches.subcommand()) else {
        return tools::headline(&catalog, &output).map(|()| 0);
    };
    let question = match entry.does {
        Does::Answer(question, _) => question,
        Does::Tool(tool) => return tool(catalog, given, &output).map(|()| 0),
        Does::Measure { run, .. } => return run(catalog, given, &output),
        Does::Sweep(question) => {
            let (Some(question), Some((_, given))) = (question, given.subcommand()) else { return Ok(2) };
            let mut inputs = Inputs::new(&catalog, given);
            let request = flags::request(fields, given, &mut inputs)?;
            return sweep::run(&catalog, question, given, inputs, request).map(|()| 0);
        }
    };
    if !matches.get_flag("quiet") {
        flags::remark(fields, typed);
    }
    let mut inputs = Inputs::new(&catalog, given);
    let mut request = flags::request(fields, given, &mut inputs)?;
    // Whether it fits is the engine's to say: the one that people take, unless another is named.
    if entry.part(given) == Part::Memory {
        request.entry("engine").or_insert_with(|| "auto".into());
    }
    let planning = |inputs| plan::Asked { question, catalog: &catalog, given, inputs };
    let mut code = 0;
    match question {
        Question::Plan => plan::run(&mut planning(inputs), request, &output),
        Question::Outlook => plan::outlook(&mut planning(inputs), request, &output),
        Question::Whatif => plan::whatif(&mut planning(inputs), request, &output),
        Question::Simulate => simulate::run(&catalog, &inputs, request, given, &output),
        Question::Validate => folder::run(&catalog, request, given, &output),
        _ => {
            if question == Question::Deduce {
                inputs::not_ahead(&request)?;
            }
            let reply = question.answer(&catalog, inputs.with_files(request), &inputs::terms())?;
            if let (Reply::Capacity(answer), Some(folder)) =
                (&reply, given.try_get_one::<std::path::PathBuf>("files").ok().flatten())
                && output::into(folder, &answer.files)?
            {
                return Ok(0);
            }
            output.reply(&reply, entry.part(given), given)?;
            if question == Question::Reversible && entry.part(given) == Part::Timed {
                tools::times(&reply, &output)?;
            }
            if matches!(&reply, Reply::Check(check) if !check.starts) {
                code = 3;
            }
            Ok(())
        }
    }?;
    Ok(code)
}
