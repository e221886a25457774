//! The page, as it was when the binary was built.

pub struct Asset {
    pub path: &'static str,
    pub mime: &'static str,
    /// Changes when the content does.
    pub tag: &'static str,
    pub bytes: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

pub fn all() -> impl Iterator<Item = &'static Asset> {
    ASSETS.iter()
}

/// The file of a path and its number; a folder is its index.
pub fn find(path: &str) -> Option<(usize, &'static Asset)> {
    let path = path.trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    all().enumerate().find(|(_, a)| a.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_light_and_names_no_other_host() {
        let weight: usize = ASSETS.iter().map(|a| a.bytes.len()).sum();
        assert!(weight < 1_500_000, "{weight} bytes");
        // Our own files only: the libraries mention their home pages in comments.
        for asset in ASSETS.iter().filter(|a| !a.path.starts_with("vendor/") && !a.mime.starts_with("font")) {
            let text = std::str::from_utf8(asset.bytes).expect("UTF-8");
            for word in ["src=\"http", "href=\"http", "import(\"http", "from \"http", "url(http", "fetch(\"http"] {
                assert!(!text.contains(word), "{} has {word}", asset.path);
            }
        }
    }

    #[test]
    fn every_library_comes_with_its_licence() {
        for folder in ["vendor/uplot", "vendor/katex"] {
            assert!(find(&format!("{folder}/LICENSE.txt")).is_some(), "{folder}");
            assert!(find("vendor/VERSIONS.txt").is_some());
        }
    }
}
