//! `rackmath schema` and `rackmath ask`

use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::Catalog;
use rackmath::ask::{self, Question};
use std::io::Read as _;
use std::path::Path;

pub fn run(question: Question) -> Result<(), Failure> {
    output::print(&ask::json(&question.schema())?)
}

pub fn ask(catalog: &Catalog, question: Question, request: &Path) -> Result<(), Failure> {
    let body = if request == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .take(rackmath_spec::file::MAX_BYTES)
            .read_to_string(&mut text)
            .map_err(|e| Failure::new(format!("standard input: {e}")))?;
        text
    } else {
        inputs::read(request)?
    };
    output::print(&question.ask(catalog, &body)?)
}
