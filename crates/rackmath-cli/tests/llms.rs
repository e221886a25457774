//! The file for assistants is made of the questions.

mod common;

use common::shown;

/// `RACKMATH_UPDATE=1` writes it.
#[test]
fn the_file_for_assistants_is_that_of_the_questions() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../llms.txt");
    let made = shown("schema --llms");
    if std::env::var_os("RACKMATH_UPDATE").is_some() {
        std::fs::write(path, &made).expect("writable");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == made, "llms.txt is not what `rackmath schema --llms` prints");
}
