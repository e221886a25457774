//! The search against looking at everything, on random small spaces.

use super::bounds::{Pools, Prompts};
use super::*;
use crate::pass::Limit;
use proptest::prelude::*;
use std::cmp::Ordering;

const OUTPUT: f64 = 10.0;
const CLASSES: usize = 3;
const BUSY: State = State { tpot: 0.01, ttft: 0.1, rate: 1.0, headroom: 0.5, binding: Limit::Memory };

fn state() -> impl Strategy<Value = State> {
    // Small whole numbers, so that ties are common.
    (1..6_u8, 1..6_u8, 0..6_u8, 0..4_u8).prop_map(|(tpot, ttft, rate, free)| State {
        tpot: f64::from(tpot) / 100.0,
        ttft: f64::from(ttft) / 10.0,
        rate: f64::from(rate),
        headroom: f64::from(free) / 4.0,
        binding: Limit::Memory,
    })
}

fn row() -> impl Strategy<Value = Row> {
    // Machines that offer as many chips as the limit, twice or half as many.
    (0..2_u32, 0..3_u32, 0..CLASSES, 1..5_u8, 1..4_u8).prop_map(|(key, machine, class, chips, usd)| Row {
        key,
        machine,
        class: class as u32,
        scale: [1.0, 0.5, 2.0][machine as usize],
        chips: f64::from(chips),
        usd_s: f64::from(usd) / 1000.0,
        watts: 500.0 * f64::from(usd),
        host: [1.0, 4.0, 2.0][machine as usize],
        offered: 30.0,
    })
}

prop_compose! {
    fn space()(n in 1..6_usize, levels in 1..5_usize, n_prefills in 0..7_usize)(
        rows in prop::collection::vec(row(), n),
        whole in prop::collection::vec(state(), n * levels),
        found in prop::collection::vec(state(), n * levels),
        prefills in prop::collection::vec((0..n, 1..9_u8, 1..4_u8, 1..3_u8), n_prefills),
        send in prop::collection::vec(0..3_u8, CLASSES * CLASSES),
        levels in Just(levels),
        standby in prop_oneof![
            4 => Just(Standby::None),
            1 => (1..3_u8).prop_map(|n| Standby::Replicas(n.into())),
            1 => (0.8..0.999_f64).prop_map(|target| Standby::Available { target, down: 0.01 }),
        ],
    ) -> Space {
        let prefill = |&(row, service, alone, groups): &(usize, u8, u8, u8)| Prefill {
            row,
            prompts: pools::Prompts {
                service: f64::from(service),
                alone: f64::from(alone) / 10.0,
                groups: f64::from(groups),
            },
        };
        Space {
            rows, levels,
            whole: whole.chunks(levels).collect(),
            found: found.chunks(levels).collect(),
            prefills: prefills.iter().map(prefill).collect(),
            send: send.chunks(CLASSES).map(|c| c.iter().map(|s| f64::from(*s) / 20.0).collect()).collect(),
            ratios: vec![(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (3.0, 2.0)],
            prompt_cv2: 0.0,
            standby,
            outrun: false,
        }
    }
}

fn question() -> impl Strategy<Value = Question> {
    let highest: [(u8, f64); 9] =
        [(12, 0.1), (7, 0.01), (20, 0.1), (12, 10.0), (4, 0.25), (30, 10.0), (30, 50.0), (30, 1000.0), (30, 1.0)];
    let limits = highest.map(|(high, unit)| prop::option::of((1..high).prop_map(move |x| f64::from(x) * unit)));
    let traffic = prop_oneof![
        (1..20_u8).prop_map(|r| Traffic::Rate(r.into())),
        (1..60_u8, 0..4_u8).prop_map(|(users, think)| Traffic::Users { users: users.into(), think: think.into() }),
        (1..30_u8).prop_map(|c| Traffic::Fill(c.into())),
        (1..30_u8, 1..30_u8, 1..30_u8).prop_map(|(c, usd, w)| Traffic::Within {
            chips: c.into(),
            usd_s: f64::from(usd) / 1000.0,
            watts: f64::from(w) * 1000.0,
        }),
        Just(Traffic::One)
    ];
    (limits, traffic, 0..7_usize, 1..4_usize, 0..3_u8).prop_map(|(limits, traffic, objective, keep, axis)| Question {
        output: OUTPUT,
        traffic,
        limits: Limits(limits),
        objective: Objective::ALL[objective],
        keep,
        frontier: [None, Some(Yield::PerChip), Some(Yield::PerDollar)][axis as usize],
        near: false,
    })
}

fn every(space: &Space, q: &Question) -> Vec<Ranked> {
    let one = |index| {
        let estimate = space.estimate(index, q.output, q.traffic)?;
        Some(Ranked { index, family: space.family(index), estimate })
    };
    (0..space.len()).filter_map(one).collect()
}

fn best_of_families(all: &[Ranked], q: &Question) -> Vec<u64> {
    let mut good: Vec<&Ranked> = all.iter().filter(|r| q.limits.broken(&r.estimate) == 0).collect();
    let score = |r: &Ranked| q.objective.score(&r.estimate);
    good.sort_by(|a, b| {
        let quick = a.estimate.e2e.total_cmp(&b.estimate.e2e);
        score(a).total_cmp(&score(b)).then(quick).then(a.index.cmp(&b.index))
    });
    let mut seen: Vec<u64> = Vec::new();
    good.retain(|r| {
        let new = !seen.contains(&r.family);
        seen.push(r.family);
        new
    });
    good.iter().take(q.keep).map(|r| r.index).collect()
}

fn undominated(all: &[Ranked], q: &Question) -> Vec<u64> {
    let free = Limits::with(q.limits, Bound::Tpot, None).with(Bound::E2e, None);
    let eligible: Vec<(u64, (f64, f64))> =
        all.iter().filter(|r| free.broken(&r.estimate) == 0).map(|r| (r.index, q.point(&r.estimate))).collect();
    let beats = |a: &(u64, (f64, f64)), b: &(u64, (f64, f64))| {
        let ((x1, y1), (x2, y2)) = (a.1, b.1);
        x1 >= x2 && y1 >= y2 && (x1 > x2 || y1 > y2 || a.0 < b.0)
    };
    let mut kept: Vec<_> = eligible.iter().filter(|b| !eligible.iter().any(|a| beats(a, b))).collect();
    kept.sort_by(|a, b| b.1.0.partial_cmp(&a.1.0).unwrap_or(Ordering::Equal));
    kept.iter().map(|r| r.0).collect()
}

#[test]
fn scores_that_differ_in_their_last_bits_are_equal_and_all_others_keep_their_order() {
    assert_eq!(even(0.1 + 0.2), even(0.3));
    assert_eq!([even(0.0), even(f64::INFINITY)], [0.0, f64::INFINITY]);
    for x in [1e-9, 0.202, 1.42, 3e7] {
        assert!(
            even(x) < even(x * (1.0 + 1e-11))
                && even(-x) > even(-x * (1.0 + 1e-11))
                && (even(x) / x - 1.0).abs() < 1e-12
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn numbers_and_configurations_are_one_to_one(space in space()) {
        for index in 0..space.len() {
            prop_assert_eq!(space.index(&space.configuration(index)), index);
            let family = space.family(index);
            prop_assert!(space.first(family) <= index && index < space.first(family + 1));
        }
    }

    #[test]
    fn the_search_finds_what_looking_at_everything_finds(space in space(), q in question()) {
        let all = every(&space, &q);
        let found = search_all(&space, &q, &1.into()).unwrap();
        prop_assert_eq!(found.top.iter().map(|r| r.index).collect::<Vec<_>>(), best_of_families(&all, &q));
        let front = if q.frontier.is_some() { undominated(&all, &q) } else { Vec::new() };
        prop_assert_eq!(found.frontier.iter().map(|r| r.index).collect::<Vec<_>>(), front);
    }

    #[test]
    fn threads_shards_and_parts_change_nothing(
        space in space(), q in question(), threads in 1..9_usize, cut in 0..40_u64, n in 1..8_u64
    ) {
        let one = search_all(&space, &q, &1.into()).unwrap();
        prop_assert_eq!(&search_all(&space, &q, &threads.into()).unwrap(), &one);
        let search = |families, seed| search_part(&space, &q, families, &threads.into(), seed).unwrap();
        prop_assert_eq!(&search(0..space.families(), Some(cut % space.len())), &one);
        let cut = cut.min(space.families());
        prop_assert_eq!(&search(cut..space.families(), None).merged(search(0..cut, None), &q), &one);
        // Parts follow each other and are everything.
        let (mut end, mut all) = (0, Found::default());
        for part in (0..n).map(|k| space.part(k, n)) {
            prop_assert_eq!(part.start, end);
            end = part.end;
            all = all.merged(search(part, None), &q);
        }
        prop_assert_eq!((end, all), (space.families(), one));
    }

    #[test]
    fn a_cancelled_search_ends_and_one_that_was_not_is_whole(space in space(), q in question(), checks in 0..40_u64) {
        let cancel = rackmath_units::Cancel::after(checks);
        let effort = rackmath_units::Effort { threads: 1, cancel: cancel.clone() };
        match search_all(&space, &q, &effort) {
            Ok(found) => prop_assert_eq!(found, search_all(&space, &q, &1.into()).unwrap()),
            // As soon as nothing is left: one check for every row and every row with its pools.
            Err(_) => prop_assert!(checks < 2 * space.rows.len() as u64),
        }
    }

    #[test]
    fn spaces_that_differ_have_other_fingerprints(space in space(), which in 0..40_usize) {
        prop_assert_eq!(space.fingerprint(), space.clone().fingerprint());
        let mut other = space.clone();
        other.found = States::default();
        for row in 0..space.rows.len() {
            let more = if row == which % space.rows.len() { &[BUSY][..] } else { &[] };
            other.found.push(&[space.found.of(row), more].concat());
        }
        prop_assert_ne!(space.fingerprint(), other.fingerprint());
        other = space.clone();
        other.send[0][0] += 1e-12;
        prop_assert_ne!(space.fingerprint(), other.fingerprint());
    }

    #[test]
    fn bounds_are_bounds(space in space(), q in question()) {
        for r in every(&space, &q) {
            let c = space.configuration(r.index);
            let Some((p, _)) = c.split else { continue };
            let pools = Pools::new(&space);
            let n = space.prefills.len();
            let (group, alone) = pools
                .seen(&space, c.row, 0..n)
                .find_map(|(least, mut own)| own.find(|(at, _)| *at == p).map(|(_, one)| (least, one)))
                .unwrap();
            let all = pools.seen(&space, c.row, 0..n).map(|(least, _)| least).reduce(Prompts::least).unwrap();
            prop_assert!(pools.seen(&space, c.row, p..p + 1).map(|(_, own)| own.count()).sum::<usize>() == 1);
            let level = space.found.of(c.row)[c.level];
            let row = space.best_found(c.row, |_| true).unwrap();
            for (state, prompts) in [(level, alone), (level, group), (level, all), (row, alone), (row, group), (row, all)] {
                let (best, (per_chip, per_dollar)) = space.bound(c.row, &state, &prompts, q.output, q.traffic);
                for objective in Objective::ALL {
                    prop_assert!(objective.score(&best) <= objective.score(&r.estimate), "{objective:?}");
                }
                for &bound in Bound::ALL {
                    prop_assert!(bound.signed(bound.amount(&best)) <= bound.signed(bound.amount(&r.estimate)), "{bound:?}");
                }
                prop_assert!(best.tpot <= r.estimate.tpot);
                let tokens = r.estimate.rate * q.output;
                prop_assert!(per_chip >= tokens / r.estimate.unit_chips && per_dollar >= tokens / r.estimate.unit_usd_s);
            }
        }
    }

    #[test]
    fn what_breaks_one_limit_least_is_found(space in space(), q in question()) {
        let q = Question { near: true, ..q };
        let mut want: Vec<(Bound, u64)> = Vec::new();
        for &bound in Bound::ALL {
            let broken = |r: &&Ranked| q.limits.broken(&r.estimate) == 1 << bound as u16;
            let far = |r: &Ranked| bound.signed(bound.amount(&r.estimate));
            let all = every(&space, &q);
            let least = all.iter().filter(broken).min_by(|a, b| far(a).total_cmp(&far(b)).then(a.index.cmp(&b.index)));
            want.extend(least.map(|r| (bound, r.index)));
        }
        let found = search_all(&space, &q, &2.into()).unwrap().near;
        prop_assert_eq!(found.iter().map(|n| (n.bound, n.ranked.index)).collect::<Vec<_>>(), want);
    }

    #[test]
    fn another_machine_or_a_looser_limit_is_never_worse(
        space in space(), q in question(), more in row(), s in state(), which in 0..8_usize, by in 1.0..3.0_f64
    ) {
        let best = |space: &Space, q: &Question| search_all(space, q, &1.into()).unwrap().top.first().map(|r| q.objective.score(&r.estimate));
        let Some(before) = best(&space, &q) else { return Ok(()) };
        let mut larger = space.clone();
        larger.rows.push(more);
        larger.whole.push(&vec![s; space.levels]);
        larger.found.push(&vec![s; space.levels]);
        prop_assert!(best(&larger, &q).is_some_and(|after| after <= before), "another machine");
        let bound = Bound::ALL[which];
        if let Some(limit) = q.limits.get(bound) {
            let looser = if bound.at_least() { limit / by } else { limit * by };
            let loose = Question { limits: q.limits.with(bound, Some(looser)), ..q };
            prop_assert!(best(&space, &loose).is_some_and(|after| after <= before), "a looser {bound:?}");
        }
    }
}

/// One deployment of so many chips, of a machine that offers so many, which ends a request a second.
fn single(chips: f64, offered: f64) -> Space {
    let row = Row { key: 0, machine: 0, class: 0, scale: 1.0, chips, usd_s: 0.001, watts: 1000.0, host: 1.0, offered };
    Space { rows: vec![row], levels: 1, whole: [BUSY].chunks(1).collect(), ..Space::default() }
}

#[test]
fn replicas_and_hosts_are_whole_and_paid_whole() {
    let space = single(2.0, 10.0);
    let at = |traffic| space.estimate(0, OUTPUT, traffic).unwrap();
    // 2.5 requests a second at 1 a replica: three replicas of two chips at $3.60/h each: $21.60/h for 25 tokens a second.
    let e = at(Traffic::Rate(2.5));
    assert_eq!((e.replicas, e.chips, e.watts), (3.0, 6.0, 6000.0));
    for (got, want) in [(e.usd_per_hour, 21.6), (e.usd_per_mtok, 240.0), (e.joules, 240.0), (e.e2e, 0.19)] {
        crate::close(got, want, 4e-12);
    }
    // $0.005 a second at $0.002 a replica of two chips: two replicas, although ten chips would hold five.
    for (traffic, replicas) in [
        (Traffic::Fill(7.0), 3.0),
        (Traffic::Within { chips: 10.0, usd_s: 0.005, watts: 1e9 }, 2.0),
        (Traffic::Within { chips: 10.0, usd_s: 1.0, watts: 6500.0 }, 3.0),
        (Traffic::Within { chips: 10.0, usd_s: 1.0, watts: 1e9 }, 5.0),
    ] {
        let e = at(traffic);
        assert_eq!((e.replicas, e.throughput), (replicas, 10.0 * replicas));
    }
    // 40 users who read 3.81 s after 0.19 s of waiting ask 10 times a second: ten replicas; without a pause 210.5 times.
    for (think, replicas, rate) in [(3.81, 10.0, 10.0), (0.0, 211.0, 40.0 / 0.19)] {
        let e = at(Traffic::Users { users: 40.0, think });
        assert_eq!(e.replicas, replicas);
        crate::close(e.throughput, 10.0 * rate, 1e-12);
    }
    // Two replicas stand by: five are paid for 2.5 requests a second, and of the three that seven chips hold one serves.
    let spare = Space { standby: Standby::Replicas(2.0), ..single(2.0, 10.0) };
    let e = spare.estimate(0, OUTPUT, Traffic::Rate(2.5)).unwrap();
    assert_eq!((e.replicas, e.standby, e.chips, e.taken), (3.0, 2.0, 10.0, 10.0));
    crate::close(e.usd_per_hour, 36.0, 1e-12);
    assert_eq!(spare.estimate(0, OUTPUT, Traffic::Fill(7.0)).unwrap().throughput, 10.0);
    // Five chips of hosts of eight: eight are paid; nine of ten on offer: ten.
    for (chips, offered, rate, paid) in [(5.0, 32.0, 1.0, 8.0), (8.0, 32.0, 2.0, 16.0), (9.0, 10.0, 1.0, 10.0)] {
        let mut space = single(chips, offered);
        space.rows[0].host = 8.0;
        let e = space.estimate(0, OUTPUT, Traffic::Rate(rate)).unwrap();
        assert_eq!((e.chips, e.watts, (e.usd_per_hour / 3.6).round()), (paid, 1000.0 * paid, paid));
    }
}

#[test]
fn levels_rise_and_end_where_asked() {
    let all = fill::levels(100.0);
    assert_eq!(&all[6..14], [7.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0]);
    assert_eq!(all.last(), Some(&100.0));
    assert!(all.windows(2).all(|w| w[0] < w[1]));
    assert_eq!(fill::levels(3.0), [1.0, 2.0, 3.0]);
}

#[test]
fn prompts_that_vary_wait_longer_for_each_other() {
    let ttft = |prompt_cv2: f64| {
        let prompts = pools::Prompts { service: 2.0, alone: 0.5, groups: 1.0 };
        let (whole, found) = ([State::NONE].chunks(1).collect(), [BUSY].chunks(1).collect());
        let (prefills, send, ratios) = (vec![Prefill { row: 0, prompts }], vec![vec![0.0]], vec![(1.0, 1.0)]);
        let space = Space { whole, found, prefills, send, ratios, prompt_cv2, ..single(1.0, 1.0) };
        space.estimate(1, OUTPUT, Traffic::One).unwrap().ttft
    };
    // Half busy: a fixed prompt of 0.5 s waits 0.25 s (M/D/1), one of cv 1 twice that (M/M/1).
    assert!((ttft(0.0) - 0.85).abs() < 1e-12 && (ttft(1.0) - 1.1).abs() < 1e-12, "{} {}", ttft(0.0), ttft(1.0));
}
