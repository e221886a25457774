//! `rackmath station`

use crate::args::{Common, StationArgs};
use crate::failure::Failure;
use crate::output;
use rackmath::station::{self, Arrivals};
use rackmath_report::text;

pub fn run(common: &Common, a: &StationArgs) -> Result<(), Failure> {
    let request = station::Request {
        interval_s: a.interval.get(),
        seats: a.seats,
        rate_per_s: a.rate,
        tokens: a.tokens,
        requests: a.requests,
        arrivals: if a.even { Arrivals::Even } else { Arrivals::Poisson },
        seed: a.seed,
    };
    let answer = station::answer(&request)?;
    output::answer(common, &answer, |style| text::station(&answer, style))
}
