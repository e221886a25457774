//! The catalogue's data, as it was when the program was built. Only faces and tests use it: the mathematics takes any
//! [`Catalog`], and does not change when a file of `data/` does.

use rackmath_spec::Catalog;
use std::sync::LazyLock;

/// A file: its id, its text, and the same packed for reading.
type File = (&'static str, &'static str, Option<&'static str>);

static FILES: &[(&str, &[File])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

static ALL: LazyLock<Catalog> = LazyLock::new(|| {
    let mut catalog = Catalog::default();
    for (folder, files) in FILES {
        let kind = folder.parse().expect("the folders are named for kinds");
        catalog.put(kind, files).expect("the files that have to have fixed names have them");
    }
    catalog
});

/// Everything in `data/`, each file read when it is first asked for and then kept.
pub fn embedded() -> Catalog {
    ALL.clone()
}
