//! From traffic to machines: replicas, chips, racks, megawatts, dollars, and how much is left at the peak.

use crate::desk::prelude::*;
use crate::serving::{Draw, RatesCard, RatesRequest, rates};
pub use rackmath_theory::fleet::Pool as PoolCard;
use rackmath_theory::fleet::{Fleet, Machines, Pool, Traffic, fleet, peak_over_mean, per_month, rack_share};

/// Traffic and the machines to serve it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine.
    pub setting: Setting,
    /// How fast a chip is.
    pub rates: RatesRequest,
    /// Input tokens per second on average.
    #[schemars(extend("x-flag" = "input-tok-s"))]
    pub input_tok_s: Option<f64>,
    /// Output tokens per second on average.
    #[schemars(extend("x-flag" = "output-tok-s"))]
    pub output_tok_s: Option<f64>,
    /// Requests per second on average, with `prompt` tokens in (of the rates) and `answer` tokens out.
    #[serde(alias = "requests_s")]
    #[schemars(extend("x-flag" = "rate requests-s", "x-old" = "request-rate"))]
    pub rate_per_s: Option<f64>,
    /// Output tokens of a request.
    #[schemars(extend("x-flag" = "answer osl"))]
    #[educe(Default = 500.0)]
    pub answer: f64,
    /// Tokens announced per month, input and output together.
    pub tokens_per_month: Option<f64>,
    /// Input tokens for each output token, where only their sum is known.
    // 608 billion in and 168 billion out on DeepSeek's published day.
    #[educe(Default = 3.6)]
    pub input_per_output: f64,
    /// Share of input found in the cache.
    #[schemars(extend("x-unit" = "share"))]
    pub hit: f64,
    /// The day in equal parts, as any numbers in proportion to traffic.
    pub curve: Vec<f64>,
    /// The busiest part of the day over the mean, where the day is not given.
    // 278 nodes at the peak, 226.75 on average, on the same day.
    #[educe(Default = 278.0 / 226.75)]
    pub peak: f64,
    /// Share of capacity in use at the peak.
    #[schemars(extend("x-unit" = "share"))]
    #[educe(Default = 0.8)]
    pub target: f64,
    /// Chips of a prefill replica; the machine's unless given.
    pub prefill_chips: Option<u64>,
    /// Chips of a decode replica; the machine's unless given.
    pub decode_chips: Option<u64>,
    /// Output tokens per second of a whole market, for one machine's share.
    #[schemars(extend("x-flag" = "world-tok-s"))]
    pub world_tok_s: Option<f64>,
    /// Power of the building over power of the machines; where given, the machine's own power counts and no figure that has the
    /// building in it.
    #[schemars(extend("x-none" = "1.2, or what is in the catalogue's power of a chip"))]
    pub pue: Option<f64>,
}

/// The fleet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model.
    pub model: String,
    /// The machine.
    pub system: String,
    /// Chips of one machine.
    pub system_chips: u64,
    /// Input tokens per second on average, hits included.
    pub input_tok_s: f64,
    /// Output tokens per second on average.
    pub output_tok_s: f64,
    /// Where the traffic comes from, in words.
    pub traffic: Remark,
    /// The busiest part of the day over the mean.
    pub peak_over_mean: f64,
    /// How fast a chip is, and where that comes from.
    pub rates: RatesCard,
    /// Reading prompts.
    pub prefill: PoolCard,
    /// Writing answers.
    pub decode: PoolCard,
    /// Chips.
    pub chips: u64,
    /// Machines: racks or nodes.
    pub machines: u64,
    /// Power with the building.
    pub power_w: f64,
    /// What it costs to buy, where a price is known.
    pub capex_usd: Option<f64>,
    /// What a day costs, where a price is known.
    pub usd_per_day: Option<f64>,
    /// What a million output tokens cost, everything else included.
    pub usd_per_output_mtok: Option<f64>,
    /// How few of the chips the traffic needs, where whole replicas are many more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Remark>,
    /// One machine's output over the market's.
    pub machine_share: Option<f64>,
    /// The day: demand and capacity of the decode pool.
    pub figure: Figure,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// Answers.
pub fn answer(catalog: &Catalog, q: &Request) -> Result<Answer, Error> {
    let r = resolve(catalog, &q.setting)?;
    let card = rates(catalog, &q.setting, &r, &q.rates)?;
    let rates = card.rates();
    let mut assumptions = vec![card.prefill.words.clone(), card.decode.words.clone()];
    let (traffic, words) = traffic(q)?;
    let replica = |field, chips: Option<u64>| up_to(field, chips.unwrap_or(r.system.n_chips), 1_000_000);
    let target = Fraction::checked(q.target).filter(|t| t.get() >= 0.01);
    let draw = Draw::of(&r, None, q.pue)?;
    assumptions.push(draw.said("power_of_building"));
    assumptions.push(says("price_from").with("source", r.price_source.remark()));
    assumptions.push(says("whole_replicas"));
    let machines = Machines {
        rates,
        prefill_chips: replica("prefill_chips", q.prefill_chips)?,
        decode_chips: replica("decode_chips", q.decode_chips)?,
        rack_chips: r.system.n_chips,
        target: target.ok_or_else(|| Error::value("target", q.target, "a share from 0.01 to 1"))?,
        power: draw.fed(),
        capex: r.system.chip.purchase.as_ref().map(|p| p.value),
        chip_hour: r.chip_price,
    };
    let f = fleet(&traffic, &machines);
    let endless = f.prefill.replicas.max(f.decode.replicas) >= Pool::MOST;
    let given = format!("{} out", traffic.output);
    refuse_if(endless, "traffic", given, "less, or faster chips: a trillion replicas")?;
    let needs = needs(&traffic, &machines, &f, r.priced());
    let world = q.world_tok_s.map(|w| rate("world_tok_s", w)).transpose()?;
    Ok(Answer {
        model: r.model.name.clone(),
        system: r.system.name.clone(),
        system_chips: r.system.n_chips,
        input_tok_s: traffic.input.get(),
        output_tok_s: traffic.output.get(),
        traffic: words,
        peak_over_mean: traffic.peak,
        rates: card,
        prefill: f.prefill,
        decode: f.decode,
        chips: f.chips,
        machines: f.racks,
        power_w: f.power.get(),
        capex_usd: f.capex.map(rackmath_units::Dollars::get),
        usd_per_day: r.priced().then_some(f.day.get()),
        usd_per_output_mtok: (r.priced() && traffic.output.get() > 0.0)
            .then(|| f.day.get() / (traffic.output.get() * 86_400.0) * 1e6),
        needs,
        machine_share: world.filter(|w| w.get() > 0.0).map(|w| rack_share(rates.decode, r.system.n_chips, w)),
        figure: figure(q, &f.decode, r.titled("over_a_day")),
        assumptions,
    })
}

/// Whole replicas are many more chips than the traffic needs where it would do with this share of them.
const SPARE: f64 = 0.8;

/// How few chips would do in replicas of one chip each, and what a token would cost then.
fn needs(traffic: &Traffic, machines: &Machines, whole: &Fleet, priced: bool) -> Option<Remark> {
    let single = fleet(traffic, &Machines { prefill_chips: 1, decode_chips: 1, ..*machines });
    let per_day = traffic.output.get() * 86_400.0;
    let cost = (priced && per_day > 0.0).then(|| DollarsPerToken::per_mtok(single.day.get() / per_day * 1e6));
    let said = says("fleet_needs").with("chips", single.chips).with("target", machines.target.get()).with("cost", cost);
    let said = said.with("prefill", machines.prefill_chips).with("decode", machines.decode_chips);
    ((single.chips as f64) < SPARE * whole.chips as f64).then_some(said)
}

fn rate(field: &'static str, value: f64) -> Result<TokenRate, Error> {
    let rate = TokenRate::checked(value).filter(|v| v.get() <= 1e15);
    rate.ok_or_else(|| Error::value(field, value, "tokens per second from 0 to 1e15"))
}

/// Traffic as tokens per second, whichever way it was given.
fn traffic(q: &Request) -> Result<(Traffic, Remark), Error> {
    let split = within("input_per_output", q.input_per_output, 0.0, 1e6)?;
    let (input, output, words) = match (q.input_tok_s, q.output_tok_s, q.rate_per_s, q.tokens_per_month) {
        (None, Some(out), None, None) => {
            let out = rate("output_tok_s", out)?;
            (out * split, out, says("out_and_in").with("out", out).with("split", split))
        }
        (Some(input), out, None, None) => {
            (rate("input_tok_s", input)?, rate("output_tok_s", out.unwrap_or(0.0))?, says("as_given"))
        }
        (None, None, Some(requests), None) => {
            let requests = rate("rate_per_s", requests)?;
            let (prompt, answer) = (tokens("prompt", q.rates.prompt, 0.0)?, tokens("answer", q.answer, 0.0)?);
            let words = says("requests_of").with("requests", requests).with("prompt", prompt).with("answer", answer);
            (requests * prompt.get(), requests * answer.get(), words)
        }
        (None, None, None, Some(month)) => {
            let month = Tokens::new(within("tokens_per_month", month, 0.0, 1e21)?);
            let all = per_month(month);
            let words = says("tokens_a_month").with("month", month).with("split", split);
            (all * (split / (1.0 + split)), all / (1.0 + split), words)
        }
        (None, None, None, None) => {
            return Err(Error::value("traffic", "none", "output_tok_s, rate_per_s or tokens_per_month"));
        }
        _ => return Err(Error::value("traffic", "given twice", "one of tok/s, rate_per_s or tokens_per_month")),
    };
    let peak = if q.curve.is_empty() {
        Some(q.peak).filter(|p| p.is_finite() && (1.0..=1000.0).contains(p))
    } else {
        peak_over_mean(&q.curve)
    };
    let peak =
        peak.ok_or_else(|| Error::value("peak or curve", q.peak, "1 to 1,000, or numbers that are not all 0"))?;
    refuse_if(input.get() + output.get() <= 0.0, "traffic", "no token", "more than nothing: 5 requests a second, say")?;
    let hit = Fraction::new(within("hit", q.hit, 0.0, 1.0)?);
    Ok((Traffic { input, output, hit, peak }, words))
}

/// The decode pool over the day; without a curve, a day that swings like a cosine up to the peak.
fn figure(q: &Request, pool: &Pool, title: Remark) -> Figure {
    let mean = pool.mean_tok_s;
    let demand: Vec<(f64, f64)> = if q.curve.is_empty() {
        let rise = pool.peak_tok_s - mean;
        // One turn of a circle in 48 steps by the angle-addition rule: no platform's cosine is asked.
        let (c, s) = (0.991_444_861_373_810_4, 0.130_526_192_220_051_6);
        let (mut x, mut y) = (-1.0f64, 0.0f64);
        (0..=48)
            .map(|i| {
                let point = (f64::from(i) / 2.0, (mean + rise * x).max(0.0));
                (x, y) = (x * c - y * s, x * s + y * c);
                point
            })
            .collect()
    } else {
        let (n, sum) = (q.curve.len() as f64, q.curve.iter().sum::<f64>());
        q.curve.iter().enumerate().map(|(i, d)| ((i as f64 + 0.5) * 24.0 / n, d * n / sum * mean)).collect()
    };
    let level = |name: &str, role, value: f64| Series::new(name, role, [(0.0, value), (24.0, value)]);
    let each = pool.chips / pool.replicas.max(1);
    let subtitle = says("replicas_of").with("replicas", pool.replicas).with("chips", each);
    let axes = (Axis::linear("hour", Unit::Number), Axis::linear("output tokens per second", Unit::Count));
    let (capacity, mean) = (level("capacity", Role::Floor, pool.capacity_tok_s), level("mean", Role::Compute, mean));
    Figure::of(title, subtitle, axes, [Series::new("demand", Role::Envelope, demand), capacity, mean])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::remark::Part;

    #[test]
    fn traffic_is_given_once_and_only_once() {
        let catalog = rackmath_catalog::embedded();
        let (some, none) = (Some(1.0), Request::default());
        for (wrong, word) in [
            (none.clone(), "traffic = none"),
            (Request { output_tok_s: some, rate_per_s: some, ..none.clone() }, "given twice"),
            (Request { output_tok_s: some, curve: vec![0.0, 0.0], ..none.clone() }, "curve"),
        ] {
            assert!(answer(&catalog, &wrong).unwrap_err().to_string().contains(word));
        }
        // A month and a second agree.
        let month = Request { tokens_per_month: Some(1e15), ..none };
        let a = answer(&catalog, &month).unwrap();
        assert!(((a.input_tok_s + a.output_tok_s) / 380_264_999.0 - 1.0).abs() < 1e-6);
        assert!(a.prefill.headroom >= 0.249 && a.decode.headroom >= 0.249, "a target of 80 % leaves a quarter");
        assert!((a.figure.series[0].points[24].1 / a.decode.peak_tok_s - 1.0).abs() < 1e-9, "noon is the peak");
    }
    #[test]
    fn what_does_not_fit_says_so_with_its_rates() {
        let setting = |on: &str| Setting { model: "llama-3.1-70b".into(), on: on.into(), ..Setting::default() };
        let on = |on: &str| Request { setting: setting(on), rate_per_s: Some(10.0), ..Request::default() };
        let of = |name: &str| answer(&rackmath_catalog::embedded(), &on(name)).unwrap();
        assert_eq!(of("1xl4").rates.nobody_serves().map(|why| &*why.says), Some("board_only"));
        assert!(of("8xh100").rates.nobody_serves().is_none());
        let kept = crate::cache::Request { setting: setting("1xl4"), ..Default::default() };
        let kept = crate::cache::answer(&rackmath_catalog::embedded(), &kept).unwrap();
        assert_eq!(kept.nobody_serves.map(|why| why.says), Some("board_only".into()));
    }

    #[test]
    fn whole_racks_say_how_few_of_their_chips_the_traffic_needs() {
        let catalog = rackmath_catalog::embedded();
        let setting = Setting { model: "qwen3-32b".into(), on: "gb200-nvl72".into(), ..Setting::default() };
        let q = Request { setting, rate_per_s: Some(100.0), ..Request::default() };
        let whole = answer(&catalog, &q).unwrap();
        let Some(Part::Number(chips)) = whole.needs.as_ref().and_then(|n| n.with.get("chips")).cloned() else {
            panic!("{:?}", whole.needs)
        };
        // What each pool needs in its own rate, with a fifth of it free, in whole chips.
        let least = |p: &PoolCard| (p.peak_tok_s / (p.capacity_tok_s / p.chips as f64) / 0.8).ceil();
        assert!(
            (chips - least(&whole.prefill) - least(&whole.decode)).abs() < 1e-9 && chips < whole.chips as f64 / 2.0
        );
        let small = answer(&catalog, &Request { prefill_chips: Some(1), decode_chips: Some(1), ..q }).unwrap();
        assert!(small.needs.is_none() && small.chips as f64 == chips);
    }
}
