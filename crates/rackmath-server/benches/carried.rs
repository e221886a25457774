//! All of these benches in one program, to be carried to a machine where nothing is built.
//!
//! `carried soak 30`, `carried attack 10`, `carried load 50 60 heavy=5`, `carried cancel 10`, `carried cost 500`: what follows the name is
//! what follows `--` of the bench of that name. Where `RACKMATH_BIN` names a `rackmath`, that is the server; else it is this program.

#![allow(clippy::duplicate_mod)] // each bench brings what it shares with the others

#[path = "attack.rs"]
mod attack;
#[path = "cancel.rs"]
mod cancel;
#[path = "cost.rs"]
mod cost;
#[path = "load.rs"]
mod load;
#[path = "soak.rs"]
mod soak;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("attack" | "serve") => attack::main(),
        Some("cancel") => cancel::main(),
        Some("cost") => cost::main(),
        Some("load") => load::main(),
        Some("soak") => soak::main(),
        _ => println!("attack, cancel, cost, load or soak, and what follows -- of each; see the top of this file"),
    }
}
