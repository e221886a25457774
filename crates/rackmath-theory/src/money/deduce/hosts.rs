//! Many hosts of one model as one observation.
//!
//! A host that charges exactly what the maker charges has copied the list: all such hosts count once. Of what remains the
//! median is taken, input and output apart; over open models it follows size better than the lowest price or the lower
//! quartile does. What the hosts differ by is kept as the spread. Source: prices of 32 open models at up to 21 hosts, 2026.

use super::evidence::Sheet;
use crate::stats::median;
use rackmath_spec::deduce::HostPrice;
use rackmath_units::float;

/// The prices of a model over its hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub input: f64,
    pub output: f64,
    pub hosts: usize,
    /// Hosts that copied the maker's list and were folded into it.
    pub copies: usize,
    /// Standard deviation of the logarithm of the input price.
    pub spread: f64,
}

impl Summary {
    /// Of a list of hosts; `None` when it is empty.
    pub fn of(prices: &[HostPrice]) -> Option<Self> {
        let makers: Vec<(f64, f64)> = prices.iter().filter(|p| p.maker).map(|p| (p.input, p.output)).collect();
        let copied = |p: &HostPrice| !p.maker && makers.contains(&(p.input, p.output));
        let kept: Vec<&HostPrice> = prices.iter().filter(|p| !copied(p)).collect();
        let logs = |of: fn(&HostPrice) -> f64| -> Vec<f64> { kept.iter().map(|p| float::ln(of(p))).collect() };
        let (inputs, outputs) = (logs(|p| p.input), logs(|p| p.output));
        let n = inputs.len() as f64;
        let mean = inputs.iter().sum::<f64>() / n;
        let square = inputs.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
        Some(Self {
            input: float::exp(median(&inputs)?),
            output: float::exp(median(&outputs)?),
            hosts: kept.len(),
            copies: prices.len() - kept.len(),
            spread: if n > 1.0 { (square / (n - 1.0)).sqrt() } else { 0.0 },
        })
    }

    pub fn sheet(&self) -> Sheet {
        Sheet { input: Some(self.input), output: Some(self.output), hosts: self.hosts, ..Sheet::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: f64, output: f64, maker: bool) -> HostPrice {
        HostPrice { host: "h".into(), source: "s".into(), input, output, cached: None, maker }
    }

    #[test]
    fn copies_of_the_makers_list_count_once() {
        let list = [price(1.0, 4.0, true), price(1.0, 4.0, false), price(1.0, 4.0, false), price(4.0, 8.0, false)];
        let s = Summary::of(&list).unwrap();
        assert_eq!((s.hosts, s.copies), (2, 2));
        assert!((s.input - 2.0).abs() < 1e-12 && (s.output - 32.0_f64.sqrt()).abs() < 1e-12);
        assert!(Summary::of(&[]).is_none());
    }
}
