//! Worked bills, the rules of every provider in the catalogue from its documentation, and the laws bills obey.

use super::*;
use crate::close;
use proptest::prelude::*;
use rackmath_spec::Date;
use rackmath_spec::price::Sheet;

fn sheet(name: &str) -> std::sync::Arc<Sheet> {
    rackmath_catalog::embedded().price(name).unwrap()
}

fn listed(name: &str, day: &str) -> List {
    sheet(name).at(day.parse::<Date>().unwrap()).unwrap().clone()
}

fn opus() -> List {
    listed("opus-4.8", "2026-08-08")
}

const NOW: When = When { mode: Factors::ONE, start: None };

fn mtok(n: f64) -> Tokens {
    Tokens::new(n * 1e6)
}

/// One provider's rules as its documentation gives them: sheet, day and offer; write and read in multiples of the input
/// price; storage by the hour; and what a long tier has as its threshold and as multiples of input and output.
type Rule = (&'static str, &'static str, &'static str, f64, f64, Option<f64>, Option<(f64, f64, f64)>);

#[test]
fn fourteen_providers_charge_as_their_documentation_says() {
    let long = |threshold, input, output| Some((threshold, input, output));
    let rules: [Rule; 25] = [
        // platform.claude.com prompt caching: 1.25x for 5 minutes, 2x for an hour, read 0.1x; Haiku 3 reads at 0.12x.
        ("opus-4.8", "2026-08-08", "5m", 1.25, 0.1, None, None),
        ("opus-4.8", "2026-08-08", "1h", 2.0, 0.1, None, None),
        ("claude-3-haiku", "2026-08-08", "5m", 1.2, 0.12, None, None),
        ("sonnet-4.5", "2026-08-08", "1h", 2.0, 0.1, None, long(200e3, 2.0, 1.5)),
        // developers.openai.com: no write fee before GPT-5.6, then 1.25x; reads 0.5x (4o), 0.25x (4.1), 0.1x (5 on).
        ("gpt-4o", "2026-08-08", "automatic", 1.0, 0.5, None, None),
        ("gpt-4.1", "2026-08-08", "automatic", 1.0, 0.25, None, None),
        ("gpt-5.5", "2026-08-08", "automatic", 1.0, 0.1, None, long(272e3, 2.0, 1.5)),
        ("gpt-5.6", "2026-08-08", "30m", 1.25, 0.1, None, long(272e3, 2.0, 1.5)),
        // ai.google.dev context caching: created at the input price, 90 % off, storage by the hour ($4.50 for Pro).
        ("gemini-3.1-pro", "2026-08-08", "explicit", 1.0, 0.1, Some(4.5), long(200e3, 2.0, 1.5)),
        ("gemini-2.5-flash", "2026-08-08", "explicit", 1.0, 0.1, Some(1.0), None),
        // docs.x.ai/developers/pricing: 0.25x, and twice everything from 200k on.
        ("grok-4.7", "2026-10-01", "automatic", 1.0, 0.25, None, long(200e3, 2.0, 2.0)),
        // api-docs.deepseek.com: free writes to disk; hits 0.1x for V3.2, a thirtieth for V4 Pro since August 2026.
        ("deepseek-deepseek-v3.2", "2026-08-08", "automatic", 1.0, 0.1, None, None),
        ("deepseek-deepseek-v4-pro", "2026-10-27", "automatic", 1.0, 1.0 / 30.0, None, None),
        // platform.kimi.ai: cache hit $0.15 against $0.60 for K2, $0.10 for K2.5.
        ("moonshot-kimi-k2", "2026-08-08", "automatic", 1.0, 0.25, None, None),
        ("moonshot-kimi-k2.5", "2026-08-08", "automatic", 1.0, 1.0 / 6.0, None, None),
        // docs.z.ai: cached input a fifth for GLM-5.
        ("zai-glm-5", "2026-08-08", "automatic", 1.0, 0.2, None, None),
        // platform.minimax.io: write 1.25x, read 0.1x; M3 doubles above 512k.
        ("minimax-m2.5", "2026-08-08", "5m", 1.25, 0.1, None, None),
        ("minimax-m3", "2026-08-08", "automatic", 1.0, 0.2, None, long(512e3, 2.0, 2.0)),
        // docs.mistral.ai: cached tokens at 10 %.
        ("mistral-medium", "2026-08-08", "automatic", 1.0, 0.1, None, None),
        // AWS price page: Nova reads 75 % below input.
        ("nova-pro", "2026-08-08", "5m", 1.0, 0.25, None, None),
        // alibabacloud.com: explicit 125 % and 10 %, implicit 100 % and 20 %.
        ("qwen3.7-max", "2026-10-11", "5m", 1.25, 0.1, None, None),
        ("qwen3.6-plus", "2026-10-11", "implicit", 1.0, 0.2, None, long(256e3, 4.0, 2.0)),
        // console.groq.com: half price, two hours without use.
        ("groq", "2026-08-08", "automatic", 1.0, 0.5, None, None),
        // docs.fireworks.ai: half price unless the model page says otherwise.
        ("fireworks", "2026-08-08", "automatic", 1.0, 0.5, None, None),
        ("muse-spark-1.2", "2026-08-08", "automatic", 1.0, 0.12, None, None),
    ];
    let mut providers = std::collections::BTreeSet::new();
    for (name, on, offer, write, read, storage, tier) in rules {
        let list = &listed(name, on);
        let offer = list.cache(offer).unwrap();
        providers.insert(sheet(name).provider.clone());
        // Bills of one token are prices: write it, read it, and do the same in a prompt of a long tier.
        let one = |written: f64, read: f64, pad: f64| {
            let (written, read) = (Tokens::new(written), Tokens::new(read));
            let used = CacheUse { offer, written, read, kept: Seconds::hours(1.0) };
            bill(list, &Usage { fresh: Tokens::new(pad), caches: vec![used], output: Tokens::new(1.0) }, Factors::ONE)
        };
        let p = list.input.get();
        close(one(1.0, 0.0, 0.0).written / p, write, 1e-9);
        close(one(0.0, 1.0, 0.0).read / p, read, 1e-9);
        assert_eq!(list.tiers.len(), usize::from(tier.is_some()), "{name}");
        if let Some(per_hour) = storage {
            close(one(0.0, 1.0, 0.0).storage * 1e6, per_hour, 1e-9);
        }
        if let Some((threshold, input, output)) = tier {
            let (short, long) = (one(0.0, 1.0, threshold - 2.0), one(0.0, 1.0, threshold));
            assert_eq!((short.long, long.long), (0, 1), "{name}");
            close(long.output / short.output, output, 1e-9);
            // The whole request is dearer, not only what lies above the threshold, and so is what the cache gives.
            close(long.fresh / (threshold * p), input, 1e-9);
            close(long.read / short.read, input, 1e-9);
        }
    }
    assert!(providers.len() >= 14, "{providers:?}");
    // A threshold is passed (Claude) or reached (Grok).
    for (name, day, last_short) in [("sonnet-4.5", "2026-08-08", 200e3), ("grok-4.7", "2026-10-01", 199_999.0)] {
        let usage = |n: f64| Usage { fresh: Tokens::new(n), caches: Vec::new(), output: Tokens::ZERO };
        let long = |n: f64| bill(&listed(name, day), &usage(n), Factors::ONE).long;
        assert_eq!((long(last_short), long(last_short + 1.0)), (0, 1), "{name}");
    }
}

#[test]
fn modes_and_hours_multiply() {
    let list = &opus();
    let usage = Usage { fresh: mtok(0.1), caches: Vec::new(), output: mtok(0.02) };
    let total = |mode: &str| bill(list, &usage, list.mode(mode).unwrap()).total().get();
    // 0.1 x $5 + 0.02 x $25 = $1; batch halves it, fast doubles it.
    for (mode, usd) in [("standard", 1.0), ("batch", 0.5), ("fast", 2.0)] {
        close(total(mode), usd, 1e-12);
    }
    let error = list.mode("fsat").unwrap_err().to_string();
    assert!(error.contains("\"fast\""), "{error}");
    // DeepSeek's peak hours on a Tuesday and a Sunday.
    let list = &listed("deepseek-flash", "2026-10-27");
    let factor = |moment: &str| list.hour(Some(moment.parse().unwrap())).output;
    assert_eq!((factor("2026-10-27T02:30"), factor("2026-10-27T05:00"), factor("2026-11-01T02:30")), (2.0, 1.0, 1.0));
    // Google's cache discount does not stack with batch.
    assert_eq!(listed("gemini-3.1-pro", "2026-08-08").mode("batch").unwrap().cache, 1.0);
}

#[test]
fn an_hour_in_the_cache_is_not_billed_as_five_minutes() {
    // The slip of at least nine trackers: 100k tokens written for an hour at $5 input cost $1.00, not $0.625.
    let list = &opus();
    let text = "time_s,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,cache_write_1h_tokens\n\
                0,150000,0,0,0,100000\n60,150000,1000,100000,40000,0\n";
    let trace = rackmath_spec::file::trace("usage.csv", text).unwrap();
    let b = logged(list, &trace, NOW).unwrap();
    let expected = [1.0 + 0.04 * 6.25, 0.1 * 0.5, (0.05 + 0.01) * 5.0, 0.001 * 25.0];
    [b.written, b.read, b.fresh, b.output].into_iter().zip(expected).for_each(|(got, usd)| close(got, usd, 1e-12));
}

#[test]
fn g78_g79_the_storage_two_write_prices_imply_and_uses_to_break_even() {
    let list = &opus();
    let of = |name: &str| {
        let offer = list.cache(name).unwrap();
        let Ttl::Fixed(ttl) = offer.ttl else { panic!("fixed") };
        (offer.write.unwrap(), ttl)
    };
    let (slope, intercept) = implied_storage(of("5m"), of("1h")).unwrap();
    close(slope.as_per_mtok_hour(), 4.0909, 1e-4);
    close(intercept.as_per_mtok(), 5.909, 1e-4);
    let uses = |name: &str, gap: f64| break_even_uses(list.input, list.cache(name).unwrap(), Seconds::s(gap));
    close(uses("5m", 60.0).unwrap(), 1.278, 1e-3);
    close(uses("1h", 60.0).unwrap(), 2.111, 1e-3);
    assert_eq!(uses("5m", 301.0), None, "beyond the lifetime nothing is saved");
    // Gemini Pro: $2 - $0.20 saved against $4.50 an hour: worth it up to 24 minutes between uses.
    let list = &listed("gemini-3.1-pro", "2026-08-08");
    let explicit = list.cache("explicit").unwrap();
    let gap = break_even_gap(list.input, explicit.read, explicit.storage.unwrap());
    close(gap.get() / 60.0, 24.0, 1e-9);
    assert!(break_even_uses(list.input, explicit, gap * 1.01).is_none());
    assert!(break_even_uses(list.input, explicit, gap * 0.9).is_some());
}

#[test]
fn the_cheapest_policy_follows_the_gap() {
    for (uses, gap, best) in
        [(1, 60.0, "none"), (2, 60.0, "5m"), (2, 600.0, "none"), (3, 600.0, "1h"), (50, 4000.0, "none")]
    {
        let p = Pattern { prefix: mtok(0.1), suffix: mtok(0.001), output: mtok(0.001), uses, gap: Seconds::s(gap) };
        assert_eq!(policies(&opus(), &p, Factors::ONE)[0].0, best);
    }
}

/// 10k of tools, two turns of 1k and answers of 2k.
fn talk(gap: f64) -> Conversation {
    let (system, user, answer) = (Tokens::new(10e3), Tokens::new(1e3), Tokens::new(2e3));
    Conversation { system, turns: 2, user, answer, gap: Seconds::s(gap) }
}

#[test]
fn a_conversation_reads_what_it_said_and_pays_for_what_it_kept() {
    // Opus a minute apart: write 11k, then read 11k and write 3k.
    let list = &opus();
    let b = conversation(list, &talk(60.0), Some(list.cache("5m").unwrap()), Factors::ONE);
    close(b.written, (11e3 + 3e3) * 6.25e-6, 1e-12);
    close(b.read, 11e3 * 0.5e-6, 1e-12);
    close(b.output, 4e3 * 25e-6, 1e-12);
    // Ten minutes apart the entry is gone and everything is written again.
    let late = conversation(list, &talk(600.0), Some(list.cache("5m").unwrap()), Factors::ONE);
    close(late.written, (11e3 + 14e3) * 6.25e-6, 1e-12);
    // Gemini 3.1 Pro an hour apart: 11k are kept for that hour.
    let list = &listed("gemini-3.1-pro", "2026-08-08");
    let b = conversation(list, &talk(3600.0), Some(list.cache("explicit").unwrap()), Factors::ONE);
    close(b.storage, 11e3 * 4.5e-6, 1e-12);
    close(b.written, 14e3 * 2e-6, 1e-12);
}

#[test]
fn a_trace_is_billed_by_its_blocks_and_its_hours() {
    let lines = "{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 10, \"hash_ids\": [1, 2]}\n\
                 {\"timestamp\": 60000, \"input_length\": 1536, \"output_length\": 10, \"hash_ids\": [1, 2, 3]}\n";
    let requests = rackmath_spec::file::trace("t.jsonl", lines).unwrap();
    let list = &opus();
    let b = trace(list, &requests, Some(list.cache("5m").unwrap()), NOW);
    close(b.written, (1024.0 + 512.0) * 6.25e-6, 1e-12);
    close(b.read, 1024.0 * 0.5e-6, 1e-12);
    close(trace(list, &requests, None, NOW).fresh, 2560.0 * 5e-6, 1e-12);
    // Two equal requests two hours apart: one at 00:30, one at 02:30 UTC of a Tuesday, when DeepSeek charges twice.
    let text = "time_s,input_tokens,output_tokens\n0,1000000,0\n7200,1000000,0\n";
    let requests = rackmath_spec::file::trace("t.csv", text).unwrap();
    let when = When { start: Some("2026-10-27T00:30".parse().unwrap()), ..NOW };
    close(trace(&listed("deepseek-flash", "2026-10-27"), &requests, None, when).fresh, 0.15 + 0.30, 1e-12);
}

proptest! {
    #[test]
    fn the_best_policy_never_costs_more_than_recomputing(
        prefix in 1.0f64..1e6, suffix in 0.0f64..1e5, uses in 1u64..100, gap in 0.0f64..1e5, which in 0usize..46
    ) {
        let catalog = rackmath_catalog::embedded();
        let id = catalog.ids(rackmath_spec::Kind::Prices).nth(which).unwrap().to_owned();
        let s = catalog.price(&id).unwrap();
        let list = s.lists.last().unwrap();
        let p = Pattern {
            prefix: Tokens::new(prefix), suffix: Tokens::new(suffix), output: Tokens::new(10.0), uses, gap: Seconds::s(gap),
        };
        let all = policies(list, &p, Factors::ONE);
        let none = all.iter().find(|(name, _)| name == "none").unwrap().1.total();
        prop_assert!(all[0].1.total() <= none);
        // One more use that reads never costs more than one more use that recomputes.
        let more = Pattern { uses: uses + 1, ..p };
        let recompute = pattern(list, &more, None, Factors::ONE).total().get() - none.get();
        let best = policies(list, &more, Factors::ONE)[0].1.total().get() - all[0].1.total().get();
        prop_assert!(best <= recompute * (1.0 + 1e-9));
    }

    #[test]
    fn cheaper_prices_never_raise_a_bill(prompt in 1.0f64..1e6, output in 0.0f64..1e5, cut in 0.01f64..1.0) {
        let list = &listed("sonnet-4.5", "2026-08-08");
        let mut cheaper = list.clone();
        cheaper.tiers[0].input = cheaper.tiers[0].input * cut;
        cheaper.tiers[0].output = cheaper.tiers[0].output * cut;
        let usage = Usage { fresh: Tokens::new(prompt), caches: Vec::new(), output: Tokens::new(output) };
        prop_assert!(bill(&cheaper, &usage, Factors::ONE).total() <= bill(list, &usage, Factors::ONE).total());
    }

    #[test]
    fn caching_with_a_lifetime_that_covers_the_gap_never_loses_to_one_that_does_not(
        uses in 2u64..50, gap in 301.0f64..3600.0
    ) {
        let list = &opus();
        let p = Pattern { prefix: mtok(0.05), suffix: Tokens::ZERO, output: Tokens::ZERO, uses, gap: Seconds::s(gap) };
        let total = |name: &str| pattern(list, &p, Some(list.cache(name).unwrap()), Factors::ONE).total();
        // Written anew each time: n x 1.25 against 2 + (n - 1) x 0.1.
        prop_assert!(total("1h") <= total("5m"));
    }
}
