//! Where an axis puts its ticks.

use rackmath::figure::{Axis, Figure, Scale, Unit};
use rackmath_units::{Seconds, float};

/// An axis with its range, mapping values to 0..1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    scale: Scale,
    pub low: f64,
    pub high: f64,
    /// What steps are counted in: minutes, hours or days where times are shown in them.
    unit: f64,
}

/// Across and up, the latter opened to full ticks.
pub(crate) fn ranges(figure: &Figure) -> (Range, Range) {
    let points = || figure.series.iter().flat_map(|s| s.points.iter());
    let up = Range::of(&figure.y, points().map(|p| p.1));
    (Range::of(&figure.x, points().map(|p| p.0)), up.widened())
}

impl Range {
    fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in values.filter(|v| v.is_finite() && (axis.scale == Scale::Linear || *v > 0.0)) {
            (low, high) = (low.min(v), high.max(v));
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        if low == high {
            (low, high) = (low * 0.5, high * 2.0 + f64::from(u8::from(high == 0.0)));
        }
        let unit = if axis.unit == Unit::Seconds { Seconds::s(high.max(0.0)).shown_in() } else { 1.0 };
        Self { scale: axis.scale, low, high, unit }
    }

    /// The same, opened to the next 1, 2 or 5 on both sides.
    fn widened(self) -> Self {
        match self.scale {
            Scale::Log => Self { low: step_below(self.low), high: step_above(self.high), ..self },
            Scale::Linear => {
                let step = self.step();
                Self { low: (self.low / step).floor() * step, high: (self.high / step).ceil() * step, ..self }
            }
        }
    }

    fn step(&self) -> f64 {
        self.unit * step_above((self.high - self.low) / self.unit / 6.0)
    }

    /// Where a value lies between the ends.
    pub fn at(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Log => float::ln(value / self.low) / float::ln(self.high / self.low),
            Scale::Linear => (value - self.low) / (self.high - self.low),
        }
    }

    /// The value at a place between the ends.
    pub fn value(&self, at: f64) -> f64 {
        match self.scale {
            Scale::Log => self.low * float::exp(at * float::ln(self.high / self.low)),
            Scale::Linear => self.low + at * (self.high - self.low),
        }
    }

    /// Tick values: decades, with 2 and 5 where there are few.
    pub fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Log => {
                let decades = float::log10(self.high / self.low);
                let steps: &[f64] = if decades > 3.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let first = float::log10(self.low).floor() as i32 - 1;
                let last = float::log10(self.high).ceil() as i32 + 1;
                let all = (first..=last).flat_map(|d| steps.iter().map(move |s| s * float::pow(10.0, f64::from(d))));
                all.filter(|v| *v >= self.low * 0.999_999 && *v <= self.high * 1.000_001).collect()
            }
            Scale::Linear => {
                let step = self.step();
                let (from, to) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
                (from..=to).map(|i| i as f64 * step).collect()
            }
        }
    }
}

fn decade(value: f64) -> f64 {
    float::pow(10.0, float::log10(value).floor())
}

fn step_below(value: f64) -> f64 {
    let d = decade(value * 1.000_000_1);
    [5.0, 2.0, 1.0].into_iter().map(|s| s * d).find(|v| *v <= value * 1.000_001).unwrap_or(d)
}

fn step_above(value: f64) -> f64 {
    let d = decade(value);
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * d).find(|v| *v >= value * 0.999_999).unwrap_or(10.0 * d)
}
