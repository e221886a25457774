//! How a plan is asked: by users, by price, with parts fixed, prices behind machines, fleets joined by +, how sure, and with
//! what stands by. Every request is typed as in a terminal.

use proptest::prelude::*;
use rackmath::ask::Question;
use rackmath::plan::{Answer, Plan, Request, answer_on};
use rackmath::{Catalog, field};
use serde_json::{Map, Value};
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);

/// Flags without their hyphens, a value behind each but `aggregated`.
fn typed(flags: &str) -> Result<Request, String> {
    let fields = Question::Plan.fields();
    let mut texts = Map::new();
    for flag in flags.split(" --").map(|f| f.trim_start_matches("--").trim()).filter(|f| !f.is_empty()) {
        let (name, value) = flag.split_once(' ').unwrap_or((flag, "false"));
        texts.insert(name.to_owned(), Value::String(value.trim().to_owned()));
    }
    let request = field::typed(&fields, &texts).map_err(|e| e.to_string())?;
    serde_json::from_value(Value::Object(request)).map_err(|e| e.to_string())
}

fn answered(flags: &str) -> Result<Answer, String> {
    answer_on(&CATALOG, &typed(&format!("--model llama-3.1-8b --aggregated {flags}"))?, 1).map_err(|e| e.to_string())
}

fn asked(flags: &str) -> Answer {
    answered(flags).unwrap_or_else(|e| panic!("{flags}: {e}"))
}

fn best(flags: &str) -> Plan {
    let answer = asked(flags);
    answer.plans.into_iter().next().unwrap_or_else(|| panic!("{flags}: {:?}", answer.verdict))
}

#[rustfmt::skip]
const REFUSED: &[(&str, &[&str])] = &[
    ("--on 8xh100@cheap", &["8xh100@cheap", "8xh100@2.10"]),
    ("--on 8xh100@-1", &["8xh100@-1", "0 to 1,000,000"]),
    ("--on 8xh100@", &["8xh100@", "2.10"]),
    ("--on 8xh10o@2", &["h10o", "h100"]),
    ("--on 8xl4,8xgb200", &["on-demand of 8xl4", "contract of 8xgb200", "8xh100@2.10"]),
    ("--on 8xh100 --basis spot", &["no spot price", "h100"]),
    ("--on 8xh100 --basis rented", &["rented", "rental"]),
    ("--on 8xh100 --users 10 --rate 5", &["users", "not both"]),
    ("--on 8xh100 --users 1.5", &["1.5", "whole number"]),
    ("--on 8xh100 --think 20s", &["think", "users as well"]),
    ("--on 8xh100 --users 10 --headroom 20%", &["headroom", "a rate as well"]),
    ("--on 8xh100 --cost 0", &["cost", "above 0"]),
    ("--on 8xh100 --cost cheap", &["cheap"]),
    ("--on 8xh100 --tp 16", &["tp = 16", "1, 2, 4, 8"]),
    ("--on 8xh100 --tp 0", &["tp = 0", "1 to"]),
    ("--on 8xh100 --tp 8 --pp 8", &["tp 8 pp 8", "nearest tp 8 pp 1"]),
    ("--on 8xh100 --dp 4", &["dp = 4", "1"]),
    ("--on 8xh100 --sure 40%", &["40%", "50%"]),
    ("--on 8xh100 --spare 1 --availability 99%", &["spare", "not both"]),
    ("--on 8xh100 --availability 100%", &["availability", "99.9%"]),
    ("--on 8xh100 --repair 2h", &["availability", "as well"]),
    ("--on 8xh100+", &["8xh100+", "8xh100+8xh200"]),
    ("--on 8xh100+8xh200,8xb200", &["one fleet"]),
    ("--on 8xh100+8xh200 --budget $20/h", &["not split"]),
    ("--on 8xh100+8xh20o", &["h20o", "h200"]),
    ("--on 8xh100+8xh200 --rate 5 --ttft p90=1s", &["8xh100+8xh200", "p90=1000ms", "mean", "one kind"]),
];

#[test]
fn what_cannot_be_asked_names_what_was_given_and_what_would_do() {
    for (flags, words) in REFUSED {
        let error = answered(flags).expect_err(flags);
        let said = format!("{error:?}");
        assert!(words.iter().all(|word| said.contains(word)), "{flags}: {said}");
    }
}

#[test]
fn a_stated_price_at_the_catalogues_own_changes_nothing_but_its_kind() {
    let own = best("--on 8xh100");
    let price = own.usd_per_hour / own.chips as f64;
    for flags in
        [format!("--on 8xh100@{price}"), format!("--on 8xh100@${price}/h"), format!("--on 8xh100 --price ${price}/h")]
    {
        let given = best(&flags);
        assert_eq!((given.price_kind.as_str(), own.price_kind.as_str()), ("given", "contract"));
        assert!((given.usd_per_mtok.value / own.usd_per_mtok.value - 1.0).abs() < 1e-9, "{flags}");
        assert_eq!((given.index, given.replicas), (own.index, own.replicas));
    }
    // A price behind one machine leaves that of the other.
    let both = asked("--on 8xh100@0.01,8xh200 --basis on-demand");
    assert_eq!(both.plans[0].price_kind, "given");
    assert!(both.plans[0].usd_per_hour / (both.plans[0].chips as f64) < 0.0101);
}

#[test]
fn users_ask_as_often_as_their_answers_and_their_pauses_let_them() {
    let p = best("--on 64xh100 --users 2000 --think 20s --tpot 30ms");
    // The interactive response time law: X = N / (R + Z).
    let rate = 2000.0 / (p.e2e_ms.value / 1e3 + 20.0);
    assert!((p.throughput_tok_s / 1000.0 / rate - 1.0).abs() < 1e-9 && p.busy <= 1.0 && p.tpot_ms.value <= 30.0);
    // A host less would not do: its users would be more than it holds in flight and thinking. Within a host replicas are free.
    let (most, host) = (p.throughput_tok_s / p.busy / p.replicas as f64, 8 / p.chips_per_replica);
    assert!(most * (p.replicas.saturating_sub(host)) as f64 <= p.throughput_tok_s);
    // The same traffic as a rate takes the same replicas of that deployment, or something cheaper.
    let open = best(&format!("--on 64xh100 --rate {rate} --tpot 30ms"));
    assert!(open.usd_per_hour <= p.usd_per_hour * (1.0 + 1e-9));
}

#[test]
fn the_fastest_for_a_price_is_within_it_and_the_next_faster_is_not() {
    let answer = asked("--on 8xh100 --cost 0.5");
    let p = &answer.plans[0];
    assert!(p.usd_per_mtok.value <= 0.5);
    // Whoever is faster on the frontier costs more.
    let free = asked("--on 8xh100");
    let faster = free.frontier.iter().filter(|x| x.tok_s_per_user > p.tok_s_per_user.value * (1.0 + 1e-9));
    assert!(faster.clone().count() > 0 && faster.clone().all(|x| x.usd_per_mtok > 0.5));
    // What nobody can do says what the cheapest is.
    let cheapest = best("--on 8xh100");
    let none = asked("--on 8xh100 --cost 0.001");
    assert!(none.plans.is_empty() && none.verdict.says == "too_dear", "{:?}", none.verdict);
    assert!((none.relaxations[0].factor * 0.001 / cheapest.usd_per_mtok.value - 1.0).abs() < 1e-9);
}

#[test]
fn fixed_parts_are_kept() {
    let p = best("--on 8xh100 --tp 2 --batch 48");
    assert!(p.layout.contains("tp2") && p.concurrency_per_group == 48.0, "{}", p.layout);
    // The free plan is at least as good as any with parts fixed.
    let free = best("--on 8xh100").usd_per_mtok.value;
    for flags in ["--tp 1", "--tp 2", "--tp 4", "--tp 8", "--pp 2", "--batch 64", "--tp 2 --batch 16"] {
        assert!(best(&format!("--on 8xh100 {flags}")).usd_per_mtok.value >= free * (1.0 - 1e-12), "{flags}");
    }
    let none = asked("--on 8xh100 --batch 100000");
    assert!(none.plans.is_empty() && none.verdict.says == "nothing_fits");
    // Experts are cut too.
    let moe = "--model qwen3-30b-a3b --on 8xh100 --ep 8 --dp 8 --tp 1";
    let answer = answer_on(&CATALOG, &typed(&format!("{moe} --aggregated")).unwrap(), 1).unwrap();
    assert!(answer.plans[0].layout.contains("ep8"), "{}", answer.plans[0].layout);
}

#[test]
fn a_fleet_serves_what_its_parts_serve() {
    let (a, b) = (best("--on 8xh100 --tpot 30ms"), best("--on 8xh200 --tpot 30ms"));
    let whole = asked("--on 8xh100+8xh200 --tpot 30ms");
    let served: f64 = whole.plans.iter().map(|p| p.throughput_tok_s).sum();
    assert!((served / (a.throughput_tok_s + b.throughput_tok_s) - 1.0).abs() < 1e-9);
    assert!((whole.parts.iter().map(|p| p.share).sum::<f64>() - 1.0).abs() < 1e-12);
    // With a rate the part with the cheaper tokens is filled first.
    let most = served / 1000.0;
    let cheap = usize::from(b.usd_per_mtok.value < a.usd_per_mtok.value);
    for share in [0.1, 0.5, 0.8, 1.0] {
        let some = asked(&format!("--on 8xh100+8xh200 --tpot 30ms --rate {}", most * share));
        let rates: Vec<f64> = some.parts.iter().map(|p| p.rate_per_s).collect();
        assert!((rates.iter().sum::<f64>() / (most * share) - 1.0).abs() < 1e-9, "{share}: {rates:?}");
        assert!(some.plans.iter().all(|p| p.tpot_ms.value <= 30.0 && p.busy <= 1.0 + 1e-9));
        let full = some.parts[cheap].most_per_s;
        // Or the other serves all alone, and is paid less for whole hosts.
        let other = rates[cheap] == 0.0 && {
            let alone = format!("--on {} --tpot 30ms --rate {}", ["8xh100", "8xh200"][cheap], most * share);
            asked(&alone).plans.first().is_none_or(|p| p.usd_per_hour > some.parts[1 - cheap].usd_per_hour)
        };
        let filled = (rates[cheap] / full - 1.0).abs() < 1e-9;
        assert!(rates[1 - cheap] == 0.0 || filled || other, "{share}: {rates:?}");
    }
    let short = asked(&format!("--on 8xh100+8xh200 --tpot 30ms --rate {}", most * 1.1));
    assert!(short.plans.is_empty() && short.verdict.says == "fleet_short" && short.because.len() == 2);
    let users = asked("--on 8xh100+8xh200 --tpot 30ms --users 100 --think 10s");
    assert!((users.parts.iter().map(|p| p.share).sum::<f64>() - 1.0).abs() < 1e-12);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Whole hosts are paid: filling the part with the best tokens may cost more than another part alone.
    #[test]
    fn a_fleet_never_costs_more_than_the_cheapest_part_that_serves_alone(
        parts in prop::collection::vec((1..17_u32, 0..4_usize, 1..40_u32), 2..4),
        rate in 1..400_u32,
        chips in any::<bool>(),
    ) {
        let name = |(n, chip, price): &(u32, usize, u32)| {
            format!("{n}x{}@{}", ["h100", "h200", "mi300x", "l40s"][*chip], f64::from(*price) / 4.0)
        };
        let names: Vec<String> = parts.iter().map(name).collect();
        let rest = format!("--rate {rate} --tpot 40ms --isl 500 --osl 200{}", if chips { " --objective chips" } else { "" });
        let paid = |p: &Plan| if chips { p.chips as f64 } else { p.usd_per_hour };
        let alone = names.iter().filter_map(|on| asked(&format!("--on {on} {rest}")).plans.first().map(paid));
        let least = alone.fold(f64::INFINITY, f64::min);
        let fleet = asked(&format!("--on {} {rest}", names.join("+")));
        let all: f64 = fleet.plans.iter().map(paid).sum();
        prop_assert!(least.is_infinite() || !fleet.plans.is_empty());
        prop_assert!(all <= least * (1.0 + 1e-12), "{names:?} {rest}: {all} over {least}");
    }
}

#[test]
fn spares_are_paid_and_availability_is_that_of_k_out_of_n() {
    let (none, two) =
        (best("--on 64xh100 --rate 100"), best("--on 64xh100 --rate 100 --spare 2 --no-whole-hosts true"));
    let card = two.spare.clone().expect("spares");
    assert_eq!((card.replicas, two.chips), (2, (two.replicas + 2) * two.chips_per_replica));
    assert!(none.spare.is_none() && card.available >= card.available_without);
    // 0.173 failures a year and 2.2 h: 4.345e-5 of the time for each chip.
    let down = 0.173 / 8760.0 * 2.2;
    assert!((card.up - 1.0 / (1.0 + two.chips_per_replica as f64 * down)).abs() < 1e-12);
    let kept = best("--on 64xh100 --rate 100 --availability 99.999% --failures-per-chip-year 1 --repair 24h");
    let card = kept.spare.expect("spares");
    assert!(card.replicas > 0 && card.available >= 0.99999 && card.needed == kept.replicas);
}

#[test]
fn half_sure_is_the_prediction_and_surer_is_never_cheaper() {
    let flags = "--on 64xh100 --rate 60 --tpot 30ms --ttft 500ms";
    let (plain, half) = (best(flags), best(&format!("{flags} --sure 50%")));
    assert_eq!((plain.index, plain.replicas, plain.tpot_ms), (half.index, half.replicas, half.tpot_ms));
    assert_eq!(plain.usd_per_mtok, half.usd_per_mtok);
    let mut before = plain.usd_per_hour;
    for share in ["60%", "75%", "90%", "95%"] {
        let p = best(&format!("{flags} --sure {share}"));
        let sure = p.sure.expect("asked for");
        assert!(sure.tpot_ms <= 30.0 && sure.ttft_ms <= 500.0 && sure.tpot_ms >= p.tpot_ms.value, "{share}: {sure:?}");
        assert!(p.usd_per_hour >= before * (1.0 - 1e-12), "{share}");
        before = p.usd_per_hour;
    }
    // Nine in ten are on the good side of the end of an interval of 80 %.
    let steady = best("--on 64xh100 --tpot 30ms --ttft 500ms --sure 90%");
    assert!((steady.sure.expect("asked for").tpot_ms / steady.tpot_ms.high - 1.0).abs() < 1e-6);
    // Where steps are that slow more requests are in flight,
    // so that under the same traffic a token takes longer yet.
    let p = best(&format!("{flags} --sure 90%"));
    assert!(p.sure.expect("asked for").tpot_ms >= p.tpot_ms.high * (1.0 - 1e-6));
}

proptest! {
    #[test]
    fn any_word_for_a_machine_is_read_or_refused(name in "[0-9a-z.x/@+,$-]{0,24}", price in "[0-9a-z./$%-]{0,8}") {
        let typed = format!("{name}@{price}");
        let (machine, stated) = rackmath::setting::with_price(&typed);
        prop_assert!(typed.starts_with(machine) && stated.is_none_or(|p| typed.trim_end().ends_with(p)));
        let _ = rackmath::setting::with_price(&name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn more_users_never_take_fewer_chips(users in 1..3000_u32, more in 1..1500_u32, think in 0.0..60.0_f64, tpot in 15.0..80.0_f64) {
        let chips = |n: u32| {
            let a = asked(&format!("--on 256xh100 --users {n} --think {think}s --tpot {tpot}ms"));
            a.plans.first().map_or(u64::MAX, |p| p.chips)
        };
        prop_assert!(chips(users + more) >= chips(users));
        // Who reads longer asks less.
        let idle = asked(&format!("--on 256xh100 --users {users} --think {}s --tpot {tpot}ms", think + 30.0));
        prop_assert!(idle.plans.first().map_or(u64::MAX, |p| p.chips) <= chips(users));
    }

    #[test]
    fn cost_rises_with_the_price_and_in_proportion(price in 0.1..20.0_f64, by in 1.0..5.0_f64) {
        let cost = |x: f64| best(&format!("--on 8xh100@{x} --tpot 30ms")).usd_per_mtok.value;
        prop_assert!((cost(price * by) / cost(price) / by - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_higher_price_is_never_a_slower_user(cost in 0.05..3.0_f64, by in 1.0..4.0_f64) {
        let speed = |x: f64| asked(&format!("--on 8xh100 --cost {x}")).plans.first().map_or(0.0, |p| p.tok_s_per_user.value);
        prop_assert!(speed(cost * by) >= speed(cost));
    }

    #[test]
    fn a_higher_availability_is_never_cheaper_nor_are_worse_chips(nines in 1..5_i32, failures in 0.05..2.0_f64, hours in 0.5..50.0_f64) {
        let usd = |target: f64, failures: f64| {
            let flags = format!("--availability {}% --failures-per-chip-year {failures} --repair {hours}h", target * 100.0);
            best(&format!("--on 256xh100 --rate 50 --tpot 30ms {flags}")).usd_per_hour
        };
        let (one, more) = (1.0 - 10.0_f64.powi(-nines), 1.0 - 10.0_f64.powi(-nines - 1));
        prop_assert!(usd(more, failures) >= usd(one, failures) * (1.0 - 1e-12));
        prop_assert!(usd(one, failures * 2.0) >= usd(one, failures) * (1.0 - 1e-12));
    }
}
