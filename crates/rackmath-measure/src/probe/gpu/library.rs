//! Shared libraries, looked for when the program runs: by name, then in folders where drivers, toolkits and Python packages put them.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::path::{Path, PathBuf};

/// A library that is open. Addresses stay good while it is.
pub trait Library {
    /// Where a function is.
    fn address(&self, name: &str) -> Option<*const c_void>;
}

/// Opens libraries; in tests, one that only records what it is asked.
pub trait Finder {
    /// The first of several names that opens, or why none did.
    fn open(&self, names: &[&str]) -> Result<Box<dyn Library>, String>;
}

/// What is installed on this machine.
pub struct Installed {
    folders: Vec<PathBuf>,
}

struct Opened(libloading::Library);

impl Library for Opened {
    fn address(&self, name: &str) -> Option<*const c_void> {
        // SAFETY: the address is only taken here; who calls it states the function's type.
        let symbol = unsafe { self.0.get::<*const c_void>(name) };
        symbol.ok().map(|s| *s).filter(|address| !address.is_null())
    }
}

impl Installed {
    /// With these folders first.
    pub fn new(first: &[PathBuf]) -> Self {
        let mut folders = first.to_vec();
        let listed = |name: &str| std::env::var_os(name).map_or_else(Vec::new, |v| std::env::split_paths(&v).collect());
        folders.extend(listed("RACKMATH_CUDA_LIBS"));
        folders.extend(listed("LD_LIBRARY_PATH"));
        for known in [
            "/usr/local/nvidia/lib64",
            "/usr/local/cuda/lib64",
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib/wsl/lib",
            "/usr/lib64",
            "/opt/rocm/lib",
        ] {
            folders.push(known.into());
        }
        folders.extend(versions(Path::new("/usr/local"), "cuda-").into_iter().map(|f| f.join("lib64")));
        folders.extend(versions(Path::new("/opt"), "rocm-").into_iter().map(|f| f.join("lib")));
        for packages in packages() {
            // nvidia/cu13/lib, nvidia/cublas/lib, torch/lib.
            let inner = std::fs::read_dir(packages.join("nvidia")).into_iter().flatten().flatten();
            let mut inner: Vec<PathBuf> = inner.map(|entry| entry.path().join("lib")).filter(|f| f.is_dir()).collect();
            inner.sort();
            folders.extend(inner);
            folders.push(packages.join("torch/lib"));
        }
        folders.retain(|folder| folder.is_dir());
        folders.dedup();
        Self { folders }
    }
}

/// Folders of a beginning, the last by name first.
fn versions(within: &Path, start: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(within).into_iter().flatten().flatten().map(|e| e.path());
    let named = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(start));
    let mut found: Vec<PathBuf> = entries.filter(named).collect();
    found.sort();
    found.reverse();
    found
}

/// Folders of Python packages: of the environment that is active, of the interpreter that is found first, of the system.
fn packages() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = Vec::new();
    roots.extend(["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os).map(PathBuf::from));
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        if folder.join("python3").exists() {
            // bin/python3 stands beside lib/python3.x.
            roots.extend(folder.parent().map(Path::to_owned));
        }
    }
    for within in ["/opt", "/home", "/root", "/workspace", "/venv"] {
        let entries = std::fs::read_dir(within).into_iter().flatten().flatten().map(|e| e.path());
        roots.extend(entries.flat_map(|e| [e.join(".venv"), e.join("venv"), e]));
    }
    roots.extend(["/usr/local".into(), "/usr".into()]);
    let mut found = Vec::new();
    for root in roots {
        for python in versions(&root.join("lib"), "python3") {
            found.extend(["site-packages", "dist-packages"].map(|p| python.join(p)).into_iter().filter(|p| p.is_dir()));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|folder| seen.insert(folder.clone()));
    found
}

impl Finder for Installed {
    fn open(&self, names: &[&str]) -> Result<Box<dyn Library>, String> {
        let plain = names.iter().map(PathBuf::from);
        let inside = self.folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        let mut broken = None;
        for path in plain.chain(inside.filter(|path| path.exists())) {
            // SAFETY: libraries of drivers run code of their own when they are opened, which is what they are asked for here.
            match unsafe { libloading::Library::new(&path) } {
                Ok(library) => return Ok(Box::new(Opened(library))),
                Err(error) if path.components().count() > 1 => broken = Some(format!("{}: {error}", path.display())),
                Err(_) => {}
            }
        }
        Err(broken.unwrap_or_else(|| format!("{} is not installed here", names.first().unwrap_or(&"the library"))))
    }
}

/// Structs of functions found by name: a struct, its fields with their types, and how it is filled.
macro_rules! calls {
    ($(#[$about:meta])* $name:ident { $($field:ident: fn($($argument:ty),*) $(-> $result:ty)?),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub struct $name {
            $(pub $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $name {
            /// Every function under the name it has here; which one is missing.
            pub fn find(library: &dyn $crate::probe::gpu::library::Library, named: impl Fn(&str) -> String) -> Result<Self, String> {
                Ok(Self {
                    $($field: {
                        let name = named(stringify!($field));
                        let address = library.address(&name).ok_or_else(|| format!("the library has no {name}"))?;
                        // SAFETY: the library's headers give the function this type.
                        unsafe {
                            std::mem::transmute::<*const std::ffi::c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(address)
                        }
                    },)*
                })
            }
        }
    };
}

pub(crate) use calls;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_an_answer() {
        let why = Installed::new(&[]).open(&["libno-such-thing.so.7"]).err().unwrap();
        assert_eq!(why, "libno-such-thing.so.7 is not installed here");
    }

    #[test]
    fn a_file_that_is_no_library_says_so() {
        let folder = std::env::temp_dir().join(format!("rackmath-library-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("libbroken-thing.so"), "text").unwrap();
        let why = Installed::new(std::slice::from_ref(&folder)).open(&["libbroken-thing.so"]).err().unwrap();
        assert!(why.contains("libbroken-thing.so:"), "{why}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
