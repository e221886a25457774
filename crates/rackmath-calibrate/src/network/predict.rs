//! Predicts a row through the equations, with the catalogue's constants or with others.

use super::rows::{Row, What};
use rackmath_spec::{Catalog, Chip, Network, SpecError};
use rackmath_theory::network::{Exchange, Group, Port, Shape, all_reduce_time, exchange_time, time};
use rackmath_units::{Seconds, float};
use std::collections::{BTreeMap, BTreeSet};

/// The machines that rows name, and the constants of their links.
#[derive(Clone, Debug)]
pub struct Machines {
    chips: BTreeMap<String, std::sync::Arc<Chip>>,
    /// Constants by kind of link. A fit replaces an entry.
    pub networks: BTreeMap<String, Network>,
}

/// The network between nodes.
pub const SCALE_OUT: &str = "infiniband";

impl Machines {
    /// Of all rows that the catalogue knows.
    pub fn of(rows: &[Row], catalog: &Catalog) -> Result<Self, SpecError> {
        let mut machines = Self { chips: BTreeMap::new(), networks: BTreeMap::new() };
        let mut seen = BTreeSet::new();
        machines.networks.insert(SCALE_OUT.into(), std::sync::Arc::unwrap_or_clone(catalog.network(SCALE_OUT)?));
        for row in rows {
            if !seen.insert(&row.system) {
                continue;
            }
            let known =
                catalog.system(&row.system).and_then(|s| Ok((catalog.network(&s.chip.link.kind)?, s.chip.clone())));
            if let Ok((network, chip)) = known {
                machines.networks.insert(chip.link.kind.clone(), std::sync::Arc::unwrap_or_clone(network));
                machines.chips.insert(row.system.clone(), chip);
            }
        }
        Ok(machines)
    }

    pub fn kind(&self, system: &str) -> Option<&str> {
        self.chips.get(system).map(|chip| chip.link.kind.as_str())
    }

    /// Ranks of one node that share the fast network.
    fn ranks_per_node(chip: &Chip) -> u64 {
        // Servers hold eight; a larger domain is one node.
        chip.link.domain.value.max(8)
    }

    /// Ranks and ranks per node of an exchange.
    pub fn span(&self, row: &Row) -> Option<(u64, u64)> {
        let chip = self.chips.get(&row.system)?;
        let What::Exchange { ranks, nodes, .. } = row.what else { return None };
        let per_node = Self::ranks_per_node(chip);
        // A table without ranks counts servers of eight.
        Some((ranks.or(nodes.map(|n| n * 8))?, per_node))
    }

    /// Time of a row, or why it cannot be told.
    pub fn predict(&self, row: &Row) -> Result<Seconds, String> {
        let chip = self.chips.get(&row.system).ok_or_else(|| format!("no chip \"{}\"", row.system))?;
        let network = &self.networks[&chip.link.kind];
        let bandwidth = chip.link.scale_up.as_ref().map(|c| c.value).ok_or_else(|| format!("{}: no links", chip.id))?;
        match &row.what {
            What::Collective { collective, engine, n, bytes } => {
                let shape = match chip.link.kind.as_str() {
                    "infinity-fabric" => Shape::Mesh { domain: chip.link.domain.value },
                    "ici" => Shape::Torus,
                    kind if kind.starts_with("pcie") => Shape::Tree,
                    _ => Shape::Switched,
                };
                let group = Group { network, n: *n, bandwidth, shape };
                let kernel = engine.as_ref().and_then(|(e, launch)| Some((network.all_reduce.get(e)?, *launch)));
                Ok(match kernel {
                    Some((kernel, launch)) => {
                        all_reduce_time(*bytes, &group, kernel, launch, chip.memory.bandwidth.value).total()
                    }
                    // Engines without a kernel for these links call the library.
                    None => time(*collective, *bytes, &group).total(),
                })
            }
            What::Exchange { kernel, phase, tokens, payload, top_k, experts, .. } => {
                let (ranks, ranks_per_node) = self.span(row).ok_or("neither ranks nor nodes given")?;
                let exchange = Exchange {
                    phase: *phase,
                    tokens: *tokens,
                    payload: *payload,
                    top_k: *top_k,
                    experts: *experts,
                    ranks,
                    ranks_per_node,
                };
                let up = network.exchange_kernel(kernel).map_err(|e| e.to_string())?;
                let reach = self.networks[SCALE_OUT].reach.get(&up.copies);
                let out = reach.zip(chip.link.scale_out.as_ref());
                let out = out.map(|(kernel, rate)| Port { kernel, bandwidth: rate.value });
                if exchange.nodes() > 1 && out.is_none() {
                    return Err(format!("{}: no way out of the node", chip.id));
                }
                Ok(exchange_time(&exchange, &Port { kernel: up, bandwidth }, out.as_ref()).total)
            }
        }
    }

    /// |ln(predicted / measured)| of a row.
    pub fn distance(&self, row: &Row) -> Result<f64, String> {
        Ok(float::ln(self.predict(row)? / row.measured).abs())
    }
}
