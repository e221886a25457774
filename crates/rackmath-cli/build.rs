//! Where the program lies in memory is settled when it is linked: 14,000 addresses need not be mended at every start, which
//! was a third of the time of a short command. The code is safe Rust throughout; stack, heap and libraries still move.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key: &str| env::var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
