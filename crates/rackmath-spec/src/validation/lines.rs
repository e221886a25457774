//! Fields of rows that are read in a way of their own: requests of a run a line each, a load of one of three kinds, shares.

use super::{Load, Sent};
use rackmath_units::Fraction;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// Requests, one a line: sent, input, output, TTFT, TPOT, E2E (or -), then segments, with their tokens where first met, or none.
pub(super) fn requests<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Sent>, D::Error> {
    let mut known = BTreeMap::new();
    let mut one = |line: &str| {
        let mut words = line.split(' ');
        let mut time = || words.next()?.parse::<f64>().ok().filter(|x| *x >= 0.0 && x.is_finite());
        let at = time()?;
        let mut count = || words.next()?.parse::<u32>().ok().filter(|n| *n > 0);
        let (input, output) = (count()?, count()?);
        let mut time = || match words.next()? {
            "-" => Some(None),
            word => word.parse::<f64>().ok().filter(|x| *x > 0.0 && x.is_finite()).map(Some),
        };
        let (ttft, tpot, e2e) = (time()?, time()?, time()?);
        let mut segments = Vec::new();
        for word in words {
            let (number, tokens) = word.split_once(':').map_or((word, None), |(number, tokens)| (number, Some(tokens)));
            let number: u64 = number.parse().ok()?;
            if let Some(tokens) = tokens {
                known.insert(number, tokens.parse::<u32>().ok()?);
            }
            segments.push((number, *known.get(&number)?));
        }
        let whole = segments.iter().map(|(_, tokens)| u64::from(*tokens)).sum::<u64>() == u64::from(input);
        (whole || segments.is_empty()).then_some(Sent { at, input, output, ttft, tpot, e2e, segments })
    };
    let lines = String::deserialize(d)?;
    let read = lines.lines().filter(|line| !line.is_empty()).enumerate().map(|(i, line)| {
        let expected = "sent, input, output, TTFT, TPOT, E2E and segments that make up the input";
        one(line).ok_or_else(|| D::Error::custom(format!("line {}: {line}; expected {expected}", i + 1)))
    });
    read.collect()
}

pub(super) fn load<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Load>, D::Error> {
    #[derive(Deserialize)]
    struct Loads {
        concurrency: Option<u64>,
        rate_per_s: Option<f64>,
        batch: Option<u64>,
    }
    let all = Loads::deserialize(d)?;
    let each = [all.concurrency.map(Load::Concurrency), all.rate_per_s.map(Load::RatePerS), all.batch.map(Load::Batch)];
    let mut given = each.into_iter().flatten();
    match (given.next(), given.next()) {
        (load, None) => Ok(load),
        _ => Err(D::Error::custom("several of concurrency, rate_per_s and batch; expected at most one of the three")),
    }
}

pub(super) fn hit<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Fraction>, D::Error> {
    let share = f64::deserialize(d)?;
    let wrong = || D::Error::custom(format!("{share}; expected a share from 0 to 1"));
    Fraction::checked(share).map(Some).ok_or_else(wrong)
}
