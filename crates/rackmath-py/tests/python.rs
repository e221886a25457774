//! The package as Python loads it, where there is a Python: every question has the bytes of the terminal; with pytest, all its tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// `RACKMATH_PYTHON`, else `python3`, where it is one the package supports.
fn python() -> Option<String> {
    let python = std::env::var("RACKMATH_PYTHON").unwrap_or_else(|_| "python3".into());
    let recent = "import sys; sys.exit(sys.version_info < (3, 11))";
    let found = Command::new(&python).args(["-c", recent]).output().is_ok_and(|o| o.status.success());
    if !found {
        eprintln!("skipped: no {python} of version 3.11 or later");
    }
    found.then_some(python)
}

/// The package, laid out as a wheel would.
fn staged(built: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let package = folder.join("rackmath");
    let _ = std::fs::remove_dir_all(&package);
    std::fs::create_dir_all(&package).expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/rackmath");
    for entry in std::fs::read_dir(source).expect("the package") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            std::fs::copy(&path, package.join(path.file_name().expect("a name"))).expect("copied");
        }
    }
    std::fs::copy(built, package.join("_rackmath.abi3.so")).expect("copied");
    folder
}

#[cfg(unix)]
#[test]
fn every_question_has_the_bytes_of_the_terminal() {
    let Some(python) = python() else { return };
    let this = std::env::current_exe().expect("a path");
    let deps = this.parent().expect("a folder");
    let built = deps.join(format!("{}_rackmath{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX));
    let binary = deps.with_file_name("rackmath");
    // The whole suite builds it; a test of this package alone may not have it.
    if !binary.is_file() {
        return eprintln!("skipped: no {}; cargo build -p rackmath-cli", binary.display());
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let pytest = Command::new(&python).args(["-c", "import pytest"]).output().is_ok_and(|o| o.status.success());
    let mut command = Command::new(&python);
    command.env("PYTHONPATH", staged(&built)).env("PYTHONDONTWRITEBYTECODE", "1").env("RACKMATH", &binary);
    if pytest {
        command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(tests);
    } else {
        command.arg(tests.join("plain.py")).arg(&binary);
    }
    let output = command.output().expect("ran");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
