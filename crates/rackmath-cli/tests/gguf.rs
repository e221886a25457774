//! GGUF files: read by their headers alone, their sizes exact by type, in one piece and in parts.
//!
//! The files in `tests/gguf` were written by the `gguf` package with the script beside them, and cut off behind their headers;
//! `sizes.txt` is what the package counted. Where a Python with the package is there (`RACKMATH_PYTHON`, or `python3`), the
//! script runs again and its files are compared with data and all.

mod common;

use common::{folder, json, read, refused, said, shown, temp};
use rackmath_spec::file::gguf::{Header, header};
use rackmath_spec::ggml::TYPES;
use std::path::Path;
use std::process::Command;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gguf");

/// The header of a file, or of all its parts.
fn whole(folder: &str, name: &str) -> Header {
    let path = Path::new(folder).join(name);
    let parts = if path.is_file() {
        vec![path]
    } else {
        let stem = name.trim_end_matches(".gguf");
        (1..=3).map(|i| Path::new(folder).join(format!("{stem}-{i:05}-of-00003.gguf"))).collect()
    };
    let mut all = parts.iter().map(|part| {
        let bytes = std::fs::read(part).expect("there");
        header(name, &bytes).expect("sound").expect("whole")
    });
    let mut first = all.next().expect("a part");
    all.for_each(|part| first.join(part));
    first
}

fn sizes_are(folder: &str, sizes: &str) {
    for line in sizes.lines() {
        let mut words = line.split(' ');
        let name = words.next().expect("a name");
        let found = whole(folder, name);
        let by_type: Vec<(&str, u64)> = found.by_type().iter().map(|(kind, bytes)| (kind.name, *bytes)).collect();
        let mut told = 0;
        for word in words {
            let (kind, bytes) = word.split_once('=').expect("TYPE=BYTES");
            let bytes: u64 = bytes.parse().expect("bytes");
            assert!(by_type.contains(&(kind, bytes)), "{name}: {kind} {bytes}, found {by_type:?}");
            told += bytes;
        }
        assert_eq!(found.bytes(), told, "{name}");
    }
}

#[test]
fn sizes_by_type_are_those_the_package_counted() {
    let sizes = read(&format!("{HERE}/sizes.txt"));
    sizes_are(HERE, &sizes);
    let types = sizes.lines().next().expect("a line");
    let there = TYPES.iter().filter(|t| types.contains(&format!(" {}=", t.name))).count();
    assert_eq!(there, TYPES.len() - 5, "all but whole numbers and 64-bit floats");
}

#[test]
fn files_that_the_package_writes_now_have_the_sizes_it_counts() {
    let python = std::env::var("RACKMATH_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python).args(["-c", "import gguf, numpy"]).output().is_ok_and(|run| run.status.success());
    if !has {
        eprintln!("no Python with the gguf package; set RACKMATH_PYTHON to one for this test");
        return;
    }
    let written = folder("gguf-written");
    let run = Command::new(&python).args([&format!("{HERE}/write.py"), &written]).output().expect("ran");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    sizes_are(&written, &String::from_utf8(run.stdout).expect("UTF-8"));
    assert!(shown(&format!("models {written}/types.gguf")).contains("17,382,144"));
}

#[test]
fn a_model_has_the_parameters_and_the_bytes_of_its_file() {
    // Sums of the sides and of the sizes in write.py: bytes to a millionth, since widths are means over a part.
    for (file, params, bytes) in [
        ("types.gguf", 17_382_144, 12_264_704.0),
        ("experts.gguf", 4_224_304, 2_905_280.0),
        ("latent.gguf", 4_815_184, 3_277_632.0),
        ("parts-00001-of-00003.gguf", 1_312_000, 840_704.0),
        ("parts-00003-of-00003.gguf", 1_312_000, 840_704.0),
    ] {
        let model = json(&format!("models {HERE}/{file}"));
        let model = &model["models"][0];
        let text = model.to_string();
        assert!(text.contains(&format!("\"total\":{params}")) || text.contains(&params.to_string()), "{file}: {text}");
        let held = model["weights_bytes"].as_f64().expect("bytes");
        assert!((held / bytes - 1.0).abs() < 1e-6, "{file}: {held} and {bytes}");
    }
    let page = shown(&format!("estimate {HERE}/experts.gguf --on rtx-4090 --engine llamacpp --isl 100 --osl 100"));
    assert!(page.contains("tiny gpt-oss"), "{page}");
    assert!(shown(&format!("memory {HERE}/latent.gguf --on rtx-4090")).starts_with("Starts: llama.cpp"));
}

#[test]
fn a_folder_with_one_model_is_that_model_and_a_missing_part_is_named() {
    let there = folder("gguf-parts");
    for i in [1, 2] {
        let name = format!("parts-{i:05}-of-00003.gguf");
        std::fs::copy(format!("{HERE}/{name}"), format!("{there}/{name}")).expect("copied");
    }
    let error = refused(&format!("models {there}"));
    assert!(error.contains("parts-00003-of-00003.gguf") && error.contains("one folder"), "{error}");
    let name = "parts-00003-of-00003.gguf";
    std::fs::copy(format!("{HERE}/{name}"), format!("{there}/{name}")).expect("copied");
    assert!(shown(&format!("models {there}")).contains("1,312,000"));
}

#[test]
fn files_that_are_none_are_refused_with_a_sentence() {
    let bytes = std::fs::read(format!("{HERE}/experts.gguf")).expect("there");
    let with = |at: usize, value: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    };
    let cases: [(&str, Vec<u8>, &str); 7] = [
        ("none.gguf", b"PK\x03\x04 and so on".to_vec(), "not a GGUF file"),
        ("empty.gguf", Vec::new(), "ends before its header"),
        ("cut.gguf", bytes[..bytes.len() / 2].to_vec(), "ends before its header"),
        ("old.gguf", with(4, &1u32.to_le_bytes()), "version 1 of GGUF"),
        ("many.gguf", with(8, &u64::MAX.to_le_bytes()), "more than any model has"),
        ("keys.gguf", with(16, &(1u64 << 40).to_le_bytes()), "more than any model has"),
        ("key.gguf", with(24, &(1u64 << 60).to_le_bytes()), "a key is said to have"),
    ];
    for (name, bytes, expected) in cases {
        said(&[(&format!("models {}", temp(name, &bytes)), expected)]);
    }
    // A hundred gigabytes behind the header are not read: the file has no such bytes on the disk.
    let path = temp("sparse.gguf", &bytes);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100 << 30).unwrap();
    assert!(shown(&format!("models {path}")).contains("4,224,304"));
    std::fs::remove_file(path).unwrap();
}
