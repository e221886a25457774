//! What a token costs to serve: dollars, joules, grams, and what a price leaves above that.
//!
//! $$ c_{in} = \frac{C}{U\,v_p} \qquad c_{out} = \frac{C\,(1 + d)}{U\,v_d\,a} \qquad \bar c_{in} = h\,c_{read} + (1 - h)\,c_{in} $$
//! $$ C_{own} = \frac{1}{A}\left(\frac{K\,crf(r, n)}{8760\,h} + P\,pue\,p_e + colo + staff\right) \qquad crf = \frac{r (1 + r)^n}{(1 + r)^n - 1} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | C | chip_hour | $/h | one chip for an hour, on whatever basis |
//! | U | utilisation | 1 | share of held chip time that serves |
//! | v_p, v_d | rates | tok/s | prefill and decode rate of one chip of its pool |
//! | a, d | accepted, draft | 1 | tokens accepted per step with speculation (1 without), extra work of drafting |
//! | h | hit | 1 | share of input tokens found in the cache |
//! | K, n, r | capex, years, capital | $, a, 1 | price of a chip with its share of the machine, life, cost of capital |
//! | P, pue, p_e | power, pue, energy | W, 1, $/kWh | all-in power at the server, cooling factor, price |
//! | A | availability | 1 | share of hours a chip can be used |
//!
//! Of a price p and a cost c: gross margin 1 - c/p, mark-up p/c, "cost profit margin" p/c - 1.
//!
//! Ignores: taxes, financing beyond the annuity, spare parts, people who write the software.
//! Source: section 5 rows 20-22, 24, 25; the published day of DeepSeek's service in the tests.

use rackmath_units::{DollarRate, Dollars, DollarsPerToken, Fraction, Joules, TokenRate, Tokens, Watts, float};

const HOURS_PER_YEAR: f64 = 8760.0;

/// Tokens per second of one chip in each pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    pub prefill: TokenRate,
    pub decode: TokenRate,
}

/// What an owner pays for one chip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Owner {
    pub capex: Dollars,
    pub years: f64,
    pub capital: f64,
    pub power: Watts,
    pub pue: f64,
    pub energy_per_kwh: f64,
    pub colo: DollarRate,
    /// People who keep it running.
    pub staff: DollarRate,
    pub availability: Fraction,
}

/// Where an owner's hour goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnerHour {
    /// Writing off and capital.
    pub capital: DollarRate,
    pub energy: DollarRate,
    pub colo: DollarRate,
    pub staff: DollarRate,
    /// Hours paid and not usable.
    pub downtime: DollarRate,
}

impl OwnerHour {
    pub fn total(&self) -> DollarRate {
        self.capital + self.energy + self.colo + self.staff + self.downtime
    }
}

/// Share of a debt paid back each year, interest included.
pub fn capital_recovery(rate: f64, years: f64) -> f64 {
    if rate.abs() < 1e-12 {
        return 1.0 / years;
    }
    // r (1 + r)^n / ((1 + r)^n - 1), written so that small rates keep their digits.
    rate / -float::exp_m1(-years * float::ln_1p(rate))
}

impl Owner {
    pub fn hour(&self) -> OwnerHour {
        let capital = self.capex.get() * capital_recovery(self.capital, self.years) / HOURS_PER_YEAR;
        let energy = self.power.get() / 1e3 * self.pue * self.energy_per_kwh;
        let (capital, energy) = (DollarRate::per_hour(capital), DollarRate::per_hour(energy));
        let paid = capital + energy + self.colo + self.staff;
        let downtime = paid * (1.0 / self.availability.get() - 1.0);
        OwnerHour { capital, energy, colo: self.colo, staff: self.staff, downtime }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Serving {
    pub chip_hour: DollarRate,
    pub rates: Rates,
    pub utilisation: Fraction,
    pub hit: Fraction,
    /// What finding one costs.
    pub read: DollarsPerToken,
    pub accepted: f64,
    pub draft: f64,
    /// Power of a chip with its share of machine and building.
    pub power: Watts,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenCost {
    pub input: DollarsPerToken,
    pub cached: DollarsPerToken,
    pub blended: DollarsPerToken,
    pub output: DollarsPerToken,
    pub input_energy: Joules,
    pub output_energy: Joules,
}

impl Serving {
    /// Output tokens per second of a chip, speculation included.
    pub fn decode(&self) -> TokenRate {
        self.rates.decode * (self.accepted / (1.0 + self.draft))
    }

    pub fn cost(&self) -> TokenCost {
        // The idle share of a held chip is paid by the tokens it serves, in dollars and in joules.
        let per_token = |rate: TokenRate| {
            let seconds = 1.0 / (rate.get() * self.utilisation.get());
            (DollarsPerToken::usd_per_token(self.chip_hour.get() * seconds), Joules::j(self.power.get() * seconds))
        };
        let (input, input_energy) = per_token(self.rates.prefill);
        let (output, output_energy) = per_token(self.decode());
        let blended = self.read * self.hit.get() + input * self.hit.rest().get();
        TokenCost { input, cached: self.read, blended, output, input_energy, output_energy }
    }

    /// Chip-hours that tokens take, by pool: prefill of what misses the cache, and decode.
    pub fn chip_hours(&self, input: Tokens, output: Tokens) -> (f64, f64) {
        let hours = |tokens: Tokens, rate: TokenRate| (tokens / rate).get() / 3600.0 / self.utilisation.get();
        (hours(input * self.hit.rest().get(), self.rates.prefill), hours(output, self.decode()))
    }
}

/// Three words for one gap, told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    pub gross: f64,
    pub markup: f64,
    pub cost_profit: f64,
}

pub fn margin(price: f64, cost: f64) -> Margin {
    Margin { gross: 1.0 - cost / price, markup: price / cost, cost_profit: price / cost - 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
    use proptest::prelude::*;

    /// DeepSeek's published day, 2025-02-27/28: nodes of 8 H800 at $2 per chip and hour, rates per node.
    fn deepseek() -> Serving {
        Serving {
            chip_hour: DollarRate::per_hour(2.0),
            rates: Rates { prefill: TokenRate::per_s(73.7e3 / 8.0), decode: TokenRate::per_s(14.8e3 / 8.0) },
            utilisation: Fraction::ONE,
            // The prefill rate counts hits, so every input token passes at it.
            hit: Fraction::ZERO,
            read: DollarsPerToken::ZERO,
            accepted: 1.0,
            draft: 0.0,
            power: Watts::w(700.0),
        }
    }

    #[test]
    fn the_published_day_closes() {
        let day = deepseek();
        let (input, hits, output) = (Tokens::new(608e9), Tokens::new(342e9), Tokens::new(168e9));
        let (prefill, decode) = day.chip_hours(input, output);
        close(prefill / 8.0, 2291.6, 1e-4);
        close(decode / 8.0, 3153.2, 1e-4);
        // Against 226.75 nodes over 24 hours: 0.05 %.
        close((prefill + decode) / 8.0, 226.75 * 24.0, 1e-3);
        let cost = 226.75 * 24.0 * 8.0 * 2.0;
        close(cost, 87_072.0, 1e-9);
        let price = |usd: f64, tokens: Tokens| (DollarsPerToken::per_mtok(usd) * tokens).get();
        let revenue = price(0.14, hits) + price(0.55, input.less(hits)) + price(2.19, output);
        close(revenue, 562_027.0, 1e-3);
        let m = margin(revenue, cost);
        // They print 545 %.
        close(m.cost_profit, 5.456, 1e-3);
        close(m.gross, 0.845, 1e-3);
        close(m.markup, m.cost_profit + 1.0, 1e-12);
        // Per million tokens: output $0.300, input with hits $0.0603, misses only $0.138.
        let c = day.cost();
        close(c.output.as_per_mtok(), 0.300, 2e-3);
        close(c.input.as_per_mtok(), 0.0603, 1e-3);
        close(c.input.as_per_mtok() * 608.0 / 266.0, 0.138, 2e-3);
        // gpt-oss-120b on MI355X: 2.55 M tok/s per MW is 0.39 J a token.
        let rates = Rates { decode: TokenRate::per_s(2.55e6), ..day.rates };
        close(Serving { power: Watts::w(1e6), rates, ..day }.cost().output_energy.get(), 0.392, 2e-3);
    }

    #[test]
    fn an_owners_hour() {
        // Cross-check: $3.5 M / 72 chips over 4 years is $1.39 an hour, and 2.1 kW at $0.08 is $0.17.
        let owner = Owner {
            capex: Dollars::usd(3.5e6 / 72.0),
            years: 4.0,
            capital: 0.0,
            power: Watts::w(2100.0),
            pue: 1.0,
            energy_per_kwh: 0.08,
            colo: DollarRate::ZERO,
            staff: DollarRate::ZERO,
            availability: Fraction::ONE,
        };
        let hour = owner.hour();
        close(hour.capital.as_per_hour(), 1.387, 1e-3);
        close(hour.energy.as_per_hour(), 0.168, 1e-9);
        // An annuity of 10 % over 4 years is 31.547 % a year.
        close(capital_recovery(0.1, 4.0), 0.315_470_8, 1e-6);
        let down = Owner { availability: Fraction::new(0.8), ..owner }.hour();
        close(down.total().get(), hour.total().get() / 0.8, 1e-12);
    }

    proptest! {
        #[test]
        fn cost_falls_with_rate_use_and_hits(
            v in 1.0f64..1e5, u in 0.05f64..1.0, h in 0.0f64..1.0, more in 1.0f64..10.0, accepted in 1.0f64..4.0
        ) {
            let rates = |more: f64| Rates { prefill: TokenRate::per_s(v * more), decode: TokenRate::per_s(v) };
            let (utilisation, hit) = (Fraction::new(u), Fraction::new(h));
            let s = Serving { rates: rates(1.0), utilisation, hit, ..deepseek() };
            let base = s.cost();
            let (fast, drafted) = (Serving { rates: rates(more), ..s }.cost(), Serving { accepted, ..s }.cost());
            prop_assert!(fast.blended <= base.blended && drafted.output <= base.output);
            let busy = Serving { utilisation: Fraction::new((u * more).min(1.0)), ..s }.cost();
            prop_assert!(busy.output <= base.output && busy.output_energy <= base.output_energy);
            prop_assert!((0.0..=1.0).contains(&(base.blended.get() / base.input.get())));
        }

        #[test]
        fn capital_recovery_lies_between_straight_line_and_interest(r in 1e-6f64..0.5, n in 1.0f64..30.0) {
            let crf = capital_recovery(r, n);
            prop_assert!(crf >= (1.0 / n).max(r) && crf <= 1.0 / n + r);
        }
    }
}
