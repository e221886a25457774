//! What a fast mode's price says about the batch behind it, how far money can buy speed, and what else could explain it.

use crate::desk::prelude::*;
use rackmath_theory::board::closed;
use rackmath_theory::fastmode::{Reading, reading};

/// A price and a speed multiple.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Price over the standard price; a sheet's unless given.
    #[schemars(extend("x-unit" = "multiple"))]
    pub price: Option<f64>,
    /// Speed over the standard speed; a sheet's unless given.
    #[schemars(extend("x-unit" = "multiple"))]
    pub speed: Option<f64>,
    /// Time to read the caches over that to read the weights at the standard batch, instead of a price or of a speed: what a
    /// speed costs, or what a price buys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// A price sheet with a fast mode.
    #[schemars(extend("x-position" = 1, "x-file" = "price"))]
    pub sheet: Option<String>,
}

/// What it means.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// Whose mode it is.
    pub of: Remark,
    /// Price over the standard price.
    pub price: f64,
    /// Speed over the standard speed.
    pub speed: f64,
    /// What they say about the batch, the chips or the drafts behind them.
    #[serde(flatten)]
    pub reading: Reading,
    /// Speeds and the price each costs.
    pub curve: Vec<(f64, f64)>,
    /// Modes of the catalogue with a price and a claimed speed, read the same way.
    pub known: Vec<KnownCard>,
    /// Price against speed.
    pub figure: Figure,
}

/// A mode of the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KnownCard {
    /// The sheet.
    pub sheet: String,
    /// The mode.
    pub mode: String,
    /// Price multiple of output.
    pub price: f64,
    /// Speed as claimed.
    pub speed: f64,
    /// What it would say about x.
    pub x: f64,
}

/// Price and speed as given; with x, one of them from the other.
fn solved(q: &Request) -> Result<(Option<f64>, Option<f64>), Error> {
    let Some(x) = q.x else { return Ok((q.price, q.speed)) };
    let x = within("x", x, 1e-6, 1e6)?;
    match (q.price, q.speed) {
        (None, Some(speed)) => {
            let limit = || format!("above 1 and below {}, which no price buys at x = {x}", 1.0 + x);
            let price = closed::fast_price(speed, x).filter(|_| speed > 1.0);
            Ok((Some(price.ok_or_else(|| Error::value("speed", speed, limit()))?), Some(speed)))
        }
        (Some(price), None) => {
            refuse_if(!(price > 1.0 && price <= 1e6), "price", price, "a multiple above 1")?;
            Ok((Some(price), Some(closed::fast_speed(price, x))))
        }
        _ => Err(Error::value("x", x, "a price or a speed beside it: the other follows")),
    }
}

/// Answers.
pub fn answer(catalog: &Catalog, q: &Request) -> Result<Answer, Error> {
    let known = known(catalog)?;
    let from_sheet = q.sheet.as_ref().map(|name| sheet_mode(catalog, name)).transpose()?;
    let usual = known.first().map(|k| (k.sheet.as_str().into(), k.price, Some(k.speed)));
    let neither = q.price.is_none() && q.speed.is_none() && q.x.is_none();
    let base = from_sheet.or(if neither { usual } else { None });
    let (own_price, own_speed) = solved(q)?;
    let price = own_price.or(base.as_ref().map(|b| b.1));
    let speed = own_speed.or(base.as_ref().and_then(|b| b.2));
    let price =
        price.ok_or_else(|| Error::value("price", "none", "a multiple such as 6, or a sheet with a fast mode"))?;
    let speed = speed.ok_or_else(|| Error::value("speed", "none", "a multiple such as 2.5; the sheet claims none"))?;
    let r = reading(price, speed).filter(|_| price <= 1e6 && speed <= 1e6);
    let r = r.ok_or_else(|| Error::value("price and speed", format!("{price} and {speed}"), "multiples above 1"))?;
    let speeds = (1..=40).map(|k| 1.0 + r.x * f64::from(k) / 41.0);
    let curve: Vec<(f64, f64)> = speeds.filter_map(|s| Some((s, closed::fast_price(s, r.x)?))).collect();
    Ok(Answer {
        of: base.map_or_else(|| says("as_given"), |b| b.0),
        price,
        speed,
        reading: r,
        figure: figure(price, speed, r.speed_limit, &curve),
        curve,
        known,
    })
}

/// Every mode of the catalogue's newest lists that costs more and claims a speed.
fn known(catalog: &Catalog) -> Result<Vec<KnownCard>, Error> {
    let mut all = Vec::new();
    for id in catalog.ids(rackmath_spec::Kind::Prices) {
        let sheet = catalog.price(id)?;
        let Some(list) = sheet.lists.last() else { continue };
        for m in &list.modes {
            if let Some(speed) = m.speed
                && let Some(r) = reading(m.factors.output, speed)
            {
                let (mode, price) = (m.name.clone(), m.factors.output);
                all.push(KnownCard { sheet: sheet.id.clone(), mode, price, speed, x: r.x });
            }
        }
    }
    Ok(all)
}

/// The dearest mode of a sheet, preferring one named fast.
fn sheet_mode(catalog: &Catalog, name: &str) -> Result<(Remark, f64, Option<f64>), Error> {
    let sheet = catalog.price(name)?;
    let list = sheet.at(sheet.as_of)?;
    let dearer = list.modes.iter().filter(|m| m.factors.output > 1.0);
    let best = dearer.max_by(|a, b| {
        let key = |m: &rackmath_spec::price::Mode| (m.name == "fast", m.factors.output);
        key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1))
    });
    let found =
        best.map(|m| (says("mode_of").with("sheet", &sheet.name).with("mode", &m.name), m.factors.output, m.speed));
    found.ok_or_else(|| Error::value("sheet", format!("\"{}\"", sheet.id), "one with a mode that costs more"))
}

fn figure(price: f64, speed: f64, limit: f64, curve: &[(f64, f64)]) -> Figure {
    let most = curve.last().map_or(price, |p| p.1);
    let y = Axis::log("price over the standard mode", Unit::Number);
    let axes = (Axis::linear("speed over the standard mode", Unit::Number), y);
    let at_most = Series::new("limit 1 + x", Role::Floor, [(limit, 1.0), (limit, most)]);
    let series = [Series::new("m = x / (1 + x - s)", Role::Envelope, curve.to_vec()), at_most];
    let subtitle = says("price_at_speed").with("price", price).with("speed", speed);
    let figure = Figure::of("What speed costs, if the batch is the only lever", subtitle, axes, series);
    figure.marked([Mark::at(speed, price, "as sold")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_without_a_speed_or_a_saving_is_refused() {
        let sheet = |name: &str| Request { sheet: Some(name.into()), ..Request::default() };
        let slower = Request { price: Some(2.0), speed: Some(0.9), ..Request::default() };
        for (wrong, word) in [(sheet("gpt-5.5"), "claims none"), (sheet("cerebras"), "costs more"), (slower, "above 1")]
        {
            assert!(answer(&rackmath_catalog::embedded(), &wrong).unwrap_err().to_string().contains(word));
        }
    }
}
