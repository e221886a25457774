//! Names as people have them: ids of models, and what clouds call their machines. The tables say what is true of the checkpoint
//! or the machine, whoever reads the name.

use rackmath_catalog::embedded;
use rackmath_spec::{Dtype, Kind, Model};

/// The rows of a table without its header; a comma inside quotes does not part two fields.
fn rows(table: &str) -> Vec<Vec<&str>> {
    let row = |line| {
        let mut quoted = false;
        let part = |c: char| {
            quoted ^= c == '"';
            c == ',' && !quoted
        };
        str::split(line, part).map(|field| field.trim_matches('"')).collect()
    };
    table.lines().skip(1).filter(|line| !line.is_empty()).map(row).collect()
}

#[test]
fn a_clouds_name_of_a_machine_is_so_many_of_that_chip_or_unknown() {
    let catalog = embedded();
    let table = rows(include_str!("data/machines.csv"));
    let (mut known, mut wrong) = (0, Vec::new());
    for row in &table {
        let &[name, count, chip, _] = &row[..] else { panic!("{row:?}") };
        // A chip that the catalogue has not is no reason to take another.
        let exists = catalog.ids(Kind::Chips).any(|id| id == chip);
        match catalog.system(name) {
            Ok(system) if (system.n_chips.to_string().as_str(), system.chip.id.as_str()) != (count, chip) => {
                wrong.push(format!("{name}: {} x {}, not {count} x {chip}", system.n_chips, system.chip.id));
            }
            Err(error) if exists => wrong.push(format!("{name} is {count} x {chip}: {error}")),
            _ => known += 1,
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(known >= 190, "{known} of {}", table.len());
}

/// The table of ids: the catalogue's model with the same shapes, or `none` where no model of the catalogue has them, and the
/// format of the weights. A repository of GGUF files named without a file stands for Q4_K_M, which llama.cpp and Ollama take;
/// NF4 with nested scales (bnb-4bit, 4.13 bits) for int4 in groups of 128.
#[test]
fn the_table_of_ids_speaks_of_models_and_formats_that_exist() {
    let catalog = embedded();
    let table = rows(include_str!("data/ids.csv"));
    let mut ids = std::collections::BTreeSet::new();
    for row in &table {
        let &[id, architecture, weights, source] = &row[..] else { panic!("{row:?}") };
        assert!(ids.insert(id.to_lowercase()), "{id} twice");
        assert!(!source.is_empty(), "{id}");
        if architecture == "none" {
            assert_eq!(weights, "-", "{id}");
            continue;
        }
        assert!(catalog.ids(Kind::Models).any(|model| model == architecture), "{id}: {architecture}");
        let format: Dtype = weights.parse().unwrap_or_else(|e| panic!("{id}: {weights}: {e}"));
        assert_eq!(format.name(), weights, "{id}");
    }
    assert!(table.len() >= 220, "{}", table.len());
}

/// The narrowest format of the weights, which is what an id states.
fn narrowest(model: &Model) -> Dtype {
    let f = model.formats();
    if f.routed.bits() < f.linear.bits() { f.routed } else { f.linear }
}

#[test]
fn popular_ids_are_read_as_what_they_are_or_refused() {
    let catalog = embedded();
    let (mut known, mut missed, mut wrong) = (0_usize, Vec::new(), Vec::new());
    for row in rows(include_str!("data/ids.csv")) {
        let [id, architecture, weights] = [row[0], row[1], row[2]];
        known += usize::from(architecture != "none");
        match catalog.model(id) {
            Ok(model) if model.id != architecture => wrong.push(format!("{id}: {}, not {architecture}", model.id)),
            // Which 16 bits they are is a matter of the release.
            Ok(model) if narrowest(&model).name() != weights && !weights.ends_with("16") => {
                wrong.push(format!("{id}: {}, not {weights}", narrowest(&model)));
            }
            Err(error) if architecture != "none" => missed.push(format!("{id} is {architecture}: {error}")),
            _ => {}
        }
    }
    println!("{} of {known} read; not read:\n{}", known - missed.len(), missed.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(missed.len() * 20 <= known, "{} of {known} are not read:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn a_checkpoint_is_fetched_by_the_id_that_was_meant_or_by_none() {
    let catalog = embedded();
    for (name, id) in [
        ("llama-3.1-70b", "meta-llama/Llama-3.1-70B"),
        ("llama3.1-70b", "meta-llama/Llama-3.1-70B"),
        ("meta-llama/llama-3.1-70b", "meta-llama/Llama-3.1-70B"),
        ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct"),
        ("Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        ("someone/Llama-3.3-70B-Instruct-AWQ", "someone/Llama-3.3-70B-Instruct-AWQ"),
        ("qwen3-30b", "Qwen/Qwen3-30B-A3B"),
        ("qwen3-coder-30b-a3b", "Qwen/Qwen3-Coder-30B-A3B-Instruct"),
        ("gptoss-120b", "openai/gpt-oss-120b"),
        ("deepseek-r1", "deepseek-ai/DeepSeek-R1"),
        // Another name of the same file, with an owner.
        ("glm-5.1", "zai-org/GLM-5.1"),
        // Other weights, and nothing says by which id: a person has to complete the name.
        ("hermes-4-70b", "hermes-4-70b"),
        ("qwen3-32b-awq", "qwen3-32b-awq"),
    ] {
        let model = catalog.model(name).unwrap();
        assert_eq!(catalog.checkpoint(name, &model).as_deref(), Some(id), "{name}");
    }
    // Whatever a model is called, its own id is that of its own checkpoint.
    for id in catalog.ids(Kind::Models) {
        let model = catalog.model(id).unwrap();
        assert_eq!(catalog.checkpoint(id, &model), model.hf, "{id}");
    }
}
