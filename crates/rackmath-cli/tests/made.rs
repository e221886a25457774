//! Files made of the questions are what the questions say.

mod common;

use common::shown;

/// The stubs of the Python package are those of the schemas; `RACKMATH_UPDATE=1` writes them.
#[test]
fn stubs_and_the_file_for_assistants_are_those_of_the_questions() {
    for (line, file) in
        [("schema --python", "/../rackmath-py/python/rackmath/__init__.pyi"), ("schema --llms", "/../../llms.txt")]
    {
        let path = format!("{}{file}", env!("CARGO_MANIFEST_DIR"));
        let made = shown(line);
        if std::env::var_os("RACKMATH_UPDATE").is_some() {
            std::fs::write(&path, &made).expect("writable");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == made, "{path} is not what `rackmath {line}` prints");
    }
}
