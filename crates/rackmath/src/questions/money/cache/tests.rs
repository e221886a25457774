//! The envelope as a question, published lifetimes, and a trace.

use super::*;

fn ask(q: &Request) -> Answer {
    answer(&Catalog::embedded(), q).unwrap()
}

#[test]
fn all_candidates_are_shown_for_a_lifetime() {
    let a = ask(&Request::default());
    assert_eq!(a.lines.len(), 2 + Catalog::embedded().tier_ids().count());
    let five = &a.durations[0];
    assert_eq!(five.candidates.len(), a.lines.len() - 1, "recomputing has no drain time");
    assert_eq!(five.candidates[0].id, "nvme-local");
    assert!((five.candidates[0].ratio - 300.0 / 285.714).abs() < 1e-3);
    // The envelope goes from the chip's own memory to cheaper places, and ends with computing anew.
    assert_eq!((a.envelope[0].id.as_str(), a.envelope[0].from_s), ("HBM", 0.0));
    assert_eq!(a.envelope.last().unwrap().id, "rematerialise");
}

#[test]
fn the_envelope_is_the_lowest_line_at_its_own_ends() {
    let a = ask(&Request::default());
    for s in &a.envelope {
        let cost = |l: &LineCard, t: f64| Some(l.retrieve_usd_per_mtok? + l.hold_usd_per_mtok_hour? * t / 3600.0);
        for t in [Some(s.from_s), s.to_s].into_iter().flatten() {
            let mine = cost(a.lines.iter().find(|l| l.id == s.id).unwrap(), t).unwrap();
            assert!(a.lines.iter().filter_map(|l| cost(l, t)).all(|c| mine <= c * (1.0 + 1e-9) + 1e-15));
        }
    }
}

#[test]
fn a_trace_gives_hit_rates_and_best_lifetimes() {
    let line = |ms: u64, ids: &str| {
        format!("{{\"timestamp\": {ms}, \"input_length\": 1024, \"output_length\": 1, \"hash_ids\": [{ids}]}}\n")
    };
    let text = line(0, "1, 2") + &line(20_000, "1, 2") + &line(400_000, "1, 3");
    let reuse = ReuseRequest { trace_name: "t".into(), trace_text: Some(text), gaps: Vec::new() };
    let a = ask(&Request { reuse: Some(reuse), ..Request::default() });
    let card = a.reuse.unwrap();
    let hit = |t: f64| card.hit_rates.iter().find(|h| h.0 == t).unwrap().1;
    assert!((hit(30.0) - 2.0 / 6.0).abs() < 1e-12 && (hit(600.0) - 3.0 / 6.0).abs() < 1e-12);
    assert!(card.best[0].usd_per_mtok < card.no_cache_usd_per_mtok);
    assert!(a.hit_figure.is_some());
}

#[test]
fn nonsense_is_refused() {
    let catalog = Catalog::embedded();
    let error = |q: Request| answer(&catalog, &q).unwrap_err().to_string();
    assert!(error(Request { durations_s: vec![-1.0], ..Request::default() }).contains("duration"));
    let shares = ReuseRequest { gaps: vec![(10.0, 0.9), (20.0, 0.9)], ..ReuseRequest::default() };
    assert!(error(Request { reuse: Some(shares), ..Request::default() }).contains("add up to at most 1"));
    assert!(error(Request { tiers: vec!["hd".into()], ..Request::default() }).contains("hdd"));
}
