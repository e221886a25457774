//! Reads a network file.

use super::noun::cited;
use crate::{Network, SpecError};

pub fn network(id: &str, text: &str) -> Result<Network, SpecError> {
    let file = format!("network {id}");
    let network: Network = cited(&file, id, text, &[])?;
    match network.reach.iter().find(|(_, reach)| reach.full_rate_nodes == Some(0)) {
        None => Ok(network),
        Some((copies, _)) => {
            Err(SpecError::field(&file, format!("reach.{copies}.full_rate_nodes"), 0, "at least one node"))
        }
    }
}
