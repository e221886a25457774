//! Names as people have them: what clouds call their machines. The tables say what is true of the machine, whoever reads the name.

use rackmath_catalog::embedded;

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
        let Ok(system) = catalog.system(name) else { continue };
        known += 1;
        if (system.n_chips.to_string().as_str(), system.chip.id.as_str()) != (count, chip) {
            wrong.push(format!("{name}: {} x {}, not {count} x {chip}", system.n_chips, system.chip.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(known >= 80, "{known} of {} are known", table.len());
}
