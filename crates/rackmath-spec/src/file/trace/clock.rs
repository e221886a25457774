//! A date and time of day as traces write it, in seconds since 1970.

use crate::Date;

/// Reads "2023-11-16 18:15:46.6805900", with a T for the space, with Z or an offset from UTC such as +00:00 behind it.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let (date, time) = text.trim().split_once(['T', ' '])?;
    let date: Date = (date.len() == 10).then(|| date.parse().ok())??;
    let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
        None => (time, 0.0),
        Some(at) if matches!(&time[at..], "Z" | "z") => (&time[..at], 0.0),
        Some(at) => {
            let sign = if time[at..].starts_with('-') { -1.0 } else { 1.0 };
            let (hours, minutes) = time[at + 1..].split_once(':')?;
            (&time[..at], sign * (part(hours, 14.0)? * 3600.0 + part(minutes, 59.0)? * 60.0))
        }
    };
    let mut parts = clock.splitn(3, ':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let day = part(hour, 23.0)? * 3600.0 + part(minute, 59.0)? * 60.0 + part(second, 60.999_999_999)?;
    Some(date.days() as f64 * 86_400.0 + day - offset)
}

/// Digits, with a fraction or without, up to a bound.
fn part(text: &str, most: f64) -> Option<f64> {
    let plain = !text.is_empty() && text.len() <= 16 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    plain.then(|| text.parse::<f64>().ok()).flatten().filter(|n| *n <= most)
}
