//! The blackboard as files that any file host serves: the same page, its questions answered by an engine in the browser.
//!
//! The engine (`rackmath.wasm`) and the catalogue stand packed in the folder `engine`; `lib/transport.js` asks them instead of a
//! server. The document of the HTTP interface stays behind: there is no such interface.

use crate::assets::{self, ASSETS};
use std::borrow::Cow;

/// A file of the page: where it stands, and what is in it.
pub type File = (&'static str, Cow<'static, [u8]>);

/// What the page says of who computes it, and what it says instead.
const ABOUT: (&str, &str) = (
    r#"<span>Computed by this binary, offline. <a href="docs.html">HTTP interface</a> · <a href="openapi.json">OpenAPI</a></span>"#,
    "<span>Computed by this page, in your browser: nothing leaves it.</span>",
);

/// What stands where the board will be until its code runs, which browsers refuse to a file opened from disk.
const EMPTY: (&str, &str) = (
    r#"<main id="main" tabindex="-1"></main>"#,
    r#"<main id="main" tabindex="-1"><p>Loading. If this stays, the page was opened from disk, where this browser runs no modules: let any file host serve the folder, such as <code>python3 -m http.server</code>.</p></main>"#,
);

/// Every file of the page but those in `engine`.
pub fn page() -> Vec<File> {
    let own = |path: &str| !matches!(path, "docs.html" | "lib/docs.js" | "lib/transport-static.js");
    ASSETS.iter().filter(|asset| own(asset.path)).map(|asset| (asset.path, content(asset))).collect()
}

fn content(asset: &assets::Asset) -> Cow<'static, [u8]> {
    match asset.path {
        "index.html" => {
            let text = String::from_utf8_lossy(asset.bytes);
            Cow::Owned([ABOUT, EMPTY].iter().fold(text.into_owned(), |text, (from, to)| text.replace(from, to)).into())
        }
        "lib/transport.js" => Cow::Borrowed(assets::find("lib/transport-static.js").map_or(&[], |(_, a)| a.bytes)),
        _ => Cow::Borrowed(asset.bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_without_a_server_speaks_of_none() {
        let files = page();
        let text = |path: &str| {
            let found = files.iter().find(|(p, _)| *p == path).expect("there");
            String::from_utf8(found.1.to_vec()).expect("UTF-8")
        };
        assert!(text("index.html").contains(ABOUT.1) && text("index.html").contains(EMPTY.1));
        assert!(!text("index.html").contains("docs.html"));
        assert!(text("lib/transport.js").contains("new Worker"));
        assert!(files.iter().all(|(path, bytes)| *path != "docs.html" && !bytes.is_empty()));
        // Nothing but the transport and the document asks over HTTP.
        for (path, bytes) in files.iter().filter(|(p, _)| p.starts_with("lib/") || p.starts_with("pages/")) {
            let asks = String::from_utf8_lossy(bytes).contains("fetch(");
            assert!(!asks || *path == "lib/transport.js", "{path} asks a server");
        }
    }
}
