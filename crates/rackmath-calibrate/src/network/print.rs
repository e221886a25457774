//! Prints fitted constants as the tables of a catalogue file.

use super::fit::Fitted;
use rackmath_spec::Residual;
use rackmath_units::Seconds;
use std::fmt;

impl fmt::Display for Fitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, network) in &self.networks {
            writeln!(f, "# {kind}")?;
            let library = &network.library;
            if let Some(fit) = library.evidence.fit {
                writeln!(f, "[library]\nlaunch = \"{}\"\nhop = \"{}\"", us(library.launch), us(library.hop))?;
                writeln!(f, "efficiency = {}\nown = {}", library.efficiency.get(), library.own.get())?;
                writeln!(f, "half = \"{} MB\"", library.half.get() / 1e6)?;
                if let Some(share) = library.in_network {
                    writeln!(f, "in_network = {}", share.get())?;
                }
                residual(f, fit)?;
            }
            for (name, k) in &network.all_reduce {
                let Some(fit) = k.evidence.fit else { continue };
                writeln!(f, "[all_reduce.{name}]\nlaunch = \"{}\"\npeer = \"{}\"", us(k.launch), us(k.peer))?;
                if let Some(second) = k.second {
                    writeln!(f, "second = \"{}\"", us(second))?;
                }
                writeln!(f, "efficiency = {}\neager_launch = \"{}\"", k.efficiency.get(), us(k.eager_launch))?;
                writeln!(f, "eager_extra = \"{}\"", us(k.eager_extra))?;
                residual(f, fit)?;
            }
            for (name, k) in &network.exchange {
                let Some(fit) = k.evidence.fit else { continue };
                writeln!(f, "[exchange.{name}]\nefficiency = {}", k.efficiency.get())?;
                writeln!(f, "loss_per_doubling = {}", k.loss_per_doubling.get())?;
                writeln!(f, "per_copy = \"{:.3} ns\"", k.per_copy.get() * 1e9)?;
                for (phase, floor) in [("dispatch", k.dispatch), ("combine", k.combine)] {
                    writeln!(f, "{phase} = {{ start = \"{}\", least = \"{}\" }}", us(floor.start), us(floor.least))?;
                }
                residual(f, fit)?;
            }
            for (copies, r) in &network.reach {
                let Some(fit) = r.evidence.fit else { continue };
                writeln!(f, "[reach.{copies}]\nefficiency = {}\noverlap = {}", r.efficiency.get(), r.overlap.get())?;
                for (phase, l) in [("dispatch", r.dispatch), ("combine", r.combine)] {
                    let (once, doubling) = (us(l.once), us(l.per_doubling));
                    writeln!(f, "{phase} = {{ once = \"{once}\", per_doubling = \"{doubling}\" }}")?;
                }
                residual(f, fit)?;
            }
        }
        Ok(())
    }
}

fn us(time: Seconds) -> String {
    // Three digits were kept; the division may add noise far behind them.
    format!("{} us", format!("{:.4e}", time.get() * 1e6).parse::<f64>().unwrap_or(0.0))
}

fn residual(f: &mut fmt::Formatter<'_>, fit: Residual) -> fmt::Result {
    writeln!(f, "fit = {{ rows = {}, median = {:.3}, p90 = {:.3} }}\n", fit.rows, fit.median, fit.p90)
}
