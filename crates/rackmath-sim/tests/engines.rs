//! Laws that hold for every engine on random worlds, and small schedules worked by hand.

mod common;

use common::{Crooked, Told};
use rackmath_sim::Ns;
use rackmath_sim::blocks::Segment;
use rackmath_sim::clock::{Clock, Law, Stretch, Timed};
use rackmath_sim::engine::{Engine, Sequence, Settings, sglang, trtllm, vllm};
use rackmath_sim::replica::{Pace, Replica, Sink};
use rackmath_units::Chance;
use std::collections::BTreeMap;

/// SGLang as it starts, with the numbers of the catalogue.
fn sglang() -> sglang::Settings {
    let (engine, _) = rackmath_catalog::embedded().engine("sglang").unwrap();
    sglang::Settings::new(engine.reckoning.unwrap())
}

#[derive(Debug, Default, PartialEq)]
struct Record {
    finished: BTreeMap<u64, (Ns, Ns, Ns, u32, u32)>,
    steps: Vec<(Ns, Ns, u32, u32)>,
    tokens: u64,
}

impl Sink for Record {
    fn finished(&mut self, s: &Sequence, at: Ns, stalled: Ns) {
        assert!(s.arrival <= s.first_scheduled && s.first_scheduled < s.first_token && s.first_token <= at);
        assert!(stalled <= at - s.first_token);
        assert_eq!(s.sampled, s.output);
        let twice = self.finished.insert(s.id, (s.first_scheduled, s.first_token, at, s.preempted, s.cached));
        assert!(twice.is_none(), "request {} ended twice", s.id);
        self.tokens += u64::from(s.sampled);
    }

    fn gaps(&mut self, _: Ns, _: Stretch, _: u32) {}

    fn steps(&mut self, start: Ns, end: Ns, decodes: u32, prompt: u32) {
        self.steps.push((start, end, decodes, prompt));
    }
}

struct World {
    settings: Settings,
    requests: Vec<(Ns, u32, u32, Vec<Segment>)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Which {
    Vllm,
    /// vLLM's engine V0.
    Before,
    Sglang,
    Trtllm,
}

fn world(which: Which, seed: u64) -> World {
    let mut chance = Chance::new(seed);
    let mut pick = |all: &[u32]| all[chance.below(all.len() as u64) as usize];
    let room = pick(&[1100, 1800, 6000, 100_000]);
    let (seqs, chunk) = (pick(&[2, 8, 128]), pick(&[64, 512, 2048]));
    let (caching, overlap) = (pick(&[0, 1, 1]) == 1, pick(&[0, 1]) == 1);
    let settings: Settings = match which {
        Which::Vllm => vllm::Settings {
            max_num_seqs: seqs,
            max_num_batched_tokens: chunk,
            enable_prefix_caching: caching,
            async_scheduling: overlap,
            num_blocks: room / 16,
            ..vllm::Settings::default()
        }
        .into(),
        Which::Before => {
            let alone = pick(&[0, 1]) == 1;
            vllm::Settings {
                max_num_seqs: seqs,
                max_num_batched_tokens: 2048,
                enable_chunked_prefill: !alone,
                enable_prefix_caching: caching,
                prompts_alone: alone,
                num_scheduler_steps: pick(&[1, 4, 15]),
                watermark: 0.01,
                num_blocks: room / 16,
                ..vllm::Settings::default()
            }
            .into()
        }
        Which::Sglang => sglang::Settings {
            chunked_prefill_size: (pick(&[0, 1, 1, 1]) == 1).then_some(chunk),
            max_prefill_tokens: pick(&[300, 16_384]),
            max_running_requests: seqs,
            max_total_tokens: room,
            enable_mixed_chunk: pick(&[0, 0, 1]) == 1,
            disable_radix_cache: !caching,
            schedule_policy: if pick(&[0, 1]) == 1 { sglang::Policy::Lpm } else { sglang::Policy::Fcfs },
            schedule_conservativeness: f64::from(pick(&[0, 1, 10])) / 10.0,
            disable_overlap_schedule: !overlap,
            prefill_decode_interval: pick(&[0, 0, 3]),
            scheduler_recv_interval: pick(&[1, 1, 10]),
            ..sglang()
        }
        .into(),
        Which::Trtllm => trtllm::Settings {
            max_batch_size: seqs,
            max_num_tokens: chunk.max(130),
            capacity: match pick(&[0, 1, 1, 2]) {
                0 => trtllm::Capacity::GuaranteedNoEvict,
                1 => trtllm::Capacity::MaxUtilization,
                _ => trtllm::Capacity::StaticBatch,
            },
            chunking: match pick(&[0, 1, 2]) {
                0 => None,
                1 => Some(trtllm::Chunking::FirstComeFirstServed),
                _ => Some(trtllm::Chunking::EqualProgress),
            },
            enable_block_reuse: caching,
            blocks: room / 32,
            disable_overlap_scheduler: !overlap,
            ..trtllm::Settings::default()
        }
        .into(),
    };
    let (longest, answer, gap) = (pick(&[40, 300, 700]), pick(&[1, 30, 150]), pick(&[1, 20, 200]));
    let sharing = pick(&[0, 1, 2]);
    let mut now = 0;
    let mut requests = Vec::new();
    for i in 0..100_u64 {
        now += chance.below(u64::from(gap) * 2_000_000 + 1);
        let prompt = 1 + chance.below(longest.into()) as u32;
        let output = 1 + chance.below(answer.into()) as u32;
        let common = chance.below(u64::from(prompt)) as u32;
        let segments = match sharing {
            0 => Vec::new(),
            1 => vec![Segment { stream: chance.below(3), offset: 0, tokens: common }],
            _ => vec![
                Segment { stream: chance.below(3), offset: 0, tokens: common },
                Segment { stream: 100 + i / 2, offset: 0, tokens: prompt - common + output },
            ],
        };
        requests.push((now, prompt, output, segments));
    }
    World { settings, requests }
}

fn run(world: &World) -> (Record, String) {
    let clock = &mut Law::default();
    let mut replica = Replica::new(&world.settings, Pace::General);
    let mut record = Record::default();
    let mut forward = |replica: &mut Replica, to: Ns, record: &mut Record| {
        while let Some(next) = replica.next().filter(|next| *next < to) {
            replica.advance(clock, next + 1, false, record);
            let e = &replica.engine;
            assert_eq!(e.held() + e.free(), e.usable(), "at {next}, {:?}", world.settings);
        }
        replica.advance(clock, to, false, record);
    };
    for (i, (at, prompt, output, segments)) in world.requests.iter().enumerate() {
        forward(&mut replica, *at, &mut record);
        let place = replica.engine.place(0, segments.iter().copied().filter(|s| s.tokens > 0));
        replica.arrive(*at, Sequence { place, ..Sequence::new(i as u64, *at, *prompt, *output) });
    }
    forward(&mut replica, Ns::MAX, &mut record);
    let e = &replica.engine;
    assert_eq!((e.running(), e.waiting(), replica.queued()), (0, 0, replica.queued()));
    assert_eq!(e.free(), e.usable(), "all is given back");
    (record, format!("{:?} {}", replica.totals, e.free_list()))
}

fn told(world: &World, clock: &mut impl Clock, pace: Pace) -> (Told, String) {
    let (mut replica, mut told) = (Replica::new(&world.settings, pace), Told::default());
    for (i, (at, prompt, output, segments)) in world.requests.iter().enumerate() {
        replica.advance(clock, *at, false, &mut told);
        let place = replica.engine.place(0, segments.iter().copied().filter(|s| s.tokens > 0));
        replica.arrive(*at, Sequence { place, ..Sequence::new(i as u64, *at, *prompt, *output) });
        if i % 3 == 0 {
            let e = &replica.engine;
            assert_eq!(e.held() + e.free(), e.usable(), "{pace:?}, {:?}", world.settings);
        }
    }
    replica.advance(clock, Ns::MAX, false, &mut told);
    (told, format!("{:?} {}", replica.totals, replica.engine.free_list()))
}

#[test]
fn steps_at_once_are_the_steps_one_by_one() {
    for which in [Which::Sglang, Which::Trtllm] {
        let (mut leaps, mut evicted) = (0, 0);
        for seed in 0..300 {
            let world = world(which, seed);
            let [(one, all), (quick, after)] = [Pace::General, Pace::Jumps].map(|pace| match seed % 2 {
                0 => told(&world, &mut Law::default(), pace),
                _ => told(&world, &mut Timed::new(Crooked), pace),
            });
            for (x, y) in quick.finished.iter().zip(&one.finished) {
                assert_eq!(x, y, "seed {seed}, {:?}", world.settings);
            }
            assert_eq!((one.finished.len(), &one.gaps, all), (world.requests.len(), &quick.gaps, after), "seed {seed}");
            leaps += quick.leaps;
            evicted += one.finished.iter().filter(|f| f.5 > 0).count();
        }
        assert!(leaps > 2000 && evicted > 50, "{which:?}: {leaps} leaps, {evicted} evicted");
    }
}

/// Steps follow each other unless nothing is there: whoever came before a step that does not had ended.
fn works_on(world: &World, record: &Record) -> bool {
    let mut before = 0;
    record.steps.iter().all(|(start, end, decodes, prompt)| {
        let idle = *start > before;
        let ended = |i: usize| record.finished[&(i as u64)].2 <= before;
        let rested = world.requests.iter().enumerate().all(|(i, r)| !idle || r.0 >= *start || ended(i));
        let fine = *start >= before && end > start && decodes + prompt > 0 && rested;
        before = *end;
        fine
    })
}

#[test]
fn nothing_is_lost_and_nobody_rests() {
    for which in [Which::Vllm, Which::Before, Which::Sglang, Which::Trtllm] {
        let (mut given_way, mut mixed) = (0, 0);
        for seed in 0..150 {
            let world = world(which, seed);
            let (record, _) = run(&world);
            let settings = &world.settings;
            assert_eq!(record.finished.len(), world.requests.len(), "{seed}: {settings:?}");
            assert_eq!(record.tokens, world.requests.iter().map(|r| u64::from(r.2)).sum::<u64>());
            assert!(works_on(&world, &record), "{seed}: {settings:?}");
            let evicted = record.finished.values().map(|f| f.3).sum::<u32>();
            let together = record.steps.iter().filter(|s| s.2 > 0 && s.3 > 0).count();
            match settings {
                Settings::Trtllm(s) if s.capacity != trtllm::Capacity::MaxUtilization => assert_eq!(evicted, 0),
                Settings::Sglang(s) if !s.enable_mixed_chunk => assert_eq!(together, 0),
                Settings::Vllm(s) if s.prompts_alone => assert_eq!(together, 0),
                _ => {}
            }
            given_way += evicted;
            mixed += together;
        }
        assert!(given_way > 30 && mixed > 100, "worlds are tight enough to tell: {which:?} {given_way} {mixed}");
    }
}

#[test]
fn the_same_world_gives_the_same_bytes() {
    for which in [Which::Sglang, Which::Trtllm] {
        for seed in 0..20 {
            let world = world(which, seed);
            assert_eq!(run(&world), run(&world), "{which:?} {seed}");
        }
    }
}

#[test]
fn one_request_alone_takes_its_chunks_and_then_its_decodes() {
    let (prompt, output, chunk) = (1000_u32, 20_u32, 256_u32);
    let blocks = 4096;
    let of: [(Settings, u32); 4] = [
        (
            vllm::Settings { max_num_batched_tokens: chunk, num_blocks: blocks, ..vllm::Settings::default() }.into(),
            chunk,
        ),
        (sglang::Settings { chunked_prefill_size: Some(chunk), ..sglang() }.into(), chunk),
        (trtllm::Settings { blocks, ..trtllm::Settings::default() }.into(), prompt),
        (
            trtllm::Settings {
                max_num_tokens: chunk,
                chunking: Some(trtllm::Chunking::FirstComeFirstServed),
                ..trtllm::Settings::default()
            }
            .into(),
            chunk,
        ),
    ];
    for (settings, chunk) in of {
        let world = World { settings, requests: vec![(77, prompt, output, Vec::new())] };
        let law = Law::default();
        let mut at = 77;
        let mut before = 0;
        while before < prompt {
            let n = chunk.min(prompt - before);
            at += law.time(n.into(), 1, before.into());
            before += n;
        }
        let first = at;
        for k in 0..output - 1 {
            at += law.time(1, 1, (prompt + k).into());
        }
        let (record, _) = run(&world);
        assert_eq!(record.finished[&0], (77, first, at, 0, 0), "{:?}", world.settings);
    }
}

/// Steps of an engine as text, results of a step known before the next is chosen: requests come before the step they are
/// given with as (step, id, prompt, output, tokens in common with others).
fn steps(settings: impl Into<Settings>, requests: &[(usize, u64, u32, u32, u32)], most: usize) -> Vec<String> {
    let mut engine = Engine::new(settings.into());
    let mut lines = Vec::new();
    for step in 0..most {
        for (_, id, prompt, output, common) in requests.iter().filter(|r| r.0 == step) {
            let content = Segment { stream: 5, offset: 0, tokens: *common };
            let place = engine.place(0, [content].into_iter().filter(|s| s.tokens > 0));
            engine.add(Sequence { place, ..Sequence::new(*id, step as Ns, *prompt, *output) });
        }
        engine.schedule();
        let decision = engine.decision().clone();
        let name = |engine: &Engine, slot: u32| char::from(b'a' + engine.sequence(slot).id as u8);
        let mut line: Vec<String> = Vec::new();
        for slot in &decision.preempted {
            line.push(format!("-{}", name(&engine, *slot)));
        }
        for s in &decision.shares {
            line.push(format!("{}{}+{}", name(&engine, s.slot), s.before, s.tokens));
        }
        for share in &decision.shares {
            engine.receive(share, 0);
        }
        lines.push(format!("{} | {}", line.join(" "), engine.free()));
    }
    lines
}

/// vLLM's engine V0 with a room of 100 tokens.
fn before(tokens: u32, alone: bool, steps: u32) -> vllm::Settings {
    vllm::Settings {
        max_num_batched_tokens: tokens,
        enable_chunked_prefill: !alone,
        enable_prefix_caching: false,
        prompts_alone: alone,
        num_scheduler_steps: steps,
        block_size: 1,
        num_blocks: 101,
        ..vllm::Settings::default()
    }
}

#[test]
fn prompts_that_are_not_cut_go_first_and_alone() {
    // b's prompt does not fit beside a's; a and b decode when no prompt is left.
    let got = steps(before(16, true, 1), &[(0, 0, 5, 4, 0), (0, 1, 12, 3, 0), (2, 2, 6, 2, 0)], 6);
    assert_eq!(got, ["a0+5 | 95", "b0+12 | 83", "c0+6 | 77", "a5+1 b12+1 c6+1 | 81", "a6+1 b13+1 | 93", "a7+1 | 100"]);
}

#[test]
fn several_steps_of_one_choice_admit_nobody() {
    // Prompts alone: b comes while the second of two decodes of a is already chosen.
    let got = steps(before(16, true, 2), &[(0, 0, 5, 5, 0), (2, 1, 6, 2, 0)], 6);
    assert_eq!(got, ["a0+5 | 95", "a5+1 | 94", "a6+1 | 93", "b0+6 | 87", "a7+1 b6+1 | 92", "a8+1 | 100"]);
    // In chunked mode b, which does not fit beside a, is not cut either: it waits until two steps later.
    let got = steps(before(8, false, 2), &[(0, 0, 5, 4, 0), (0, 1, 7, 2, 0)], 4);
    assert_eq!(got, ["a0+5 | 95", "a5+1 | 94", "a6+1 b0+7 | 86", "a7+1 b7+1 | 100"]);
}

#[test]
fn sglang_by_hand() {
    // Chunks of 8. b's prompt of 12 is cut behind a's of 5; decodes of a wait until b's is done; c comes later and stops both.
    let s = sglang::Settings { chunked_prefill_size: Some(8), max_total_tokens: 100, ..sglang() };
    let got = steps(s, &[(0, 0, 5, 4, 0), (0, 1, 12, 3, 0), (3, 2, 6, 2, 0)], 7);
    assert_eq!(
        got,
        [
            "a0+5 b0+3 | 92",
            "b3+8 | 84",
            "b11+1 | 83",
            "c0+6 | 77",
            "a5+1 b12+1 c6+1 | 81",
            "a6+1 b13+1 | 93",
            "a7+1 | 100",
        ]
    );
}

#[test]
fn sglang_mixed_by_hand() {
    // b's chunks are one token shorter for the decode of a beside them.
    let s =
        sglang::Settings { chunked_prefill_size: Some(8), max_total_tokens: 100, enable_mixed_chunk: true, ..sglang() };
    let got = steps(s, &[(0, 0, 5, 4, 0), (1, 1, 12, 3, 0)], 5);
    assert_eq!(got, ["a0+5 | 95", "b0+7 a5+1 | 87", "b7+5 a6+1 | 81", "b12+1 a7+1 | 87", "b13+1 | 100"]);
}

#[test]
fn sglang_retracts_by_hand() {
    // 24 tokens. At step 8 two more do not fit: a and b have sampled 7 each, the longer prompt goes, and waits until a is done.
    let s = sglang::Settings {
        max_total_tokens: 24,
        schedule_conservativeness: 0.01,
        disable_radix_cache: true,
        ..sglang()
    };
    let got = steps(s, &[(0, 0, 5, 10, 0), (1, 1, 6, 10, 0)], 14);
    assert_eq!(
        got,
        [
            "a0+5 | 19",
            "b0+6 | 13",
            "a5+1 b6+1 | 11",
            "a6+1 b7+1 | 9",
            "a7+1 b8+1 | 7",
            "a8+1 b9+1 | 5",
            "a9+1 b10+1 | 3",
            "a10+1 b11+1 | 1",
            "-b a11+1 | 12",
            "a12+1 | 11",
            "a13+1 | 24",
            "b0+13 | 11",
            "b13+1 | 10",
            "b14+1 | 24",
        ]
    );
}

#[test]
fn sglang_shares_by_hand() {
    // Equal prompts of one batch are both computed, one copy is kept; a later one finds all but its last token.
    let s = sglang::Settings { max_total_tokens: 100, ..sglang() };
    let got = steps(s, &[(0, 0, 10, 2, 10), (0, 1, 10, 2, 10), (1, 2, 10, 2, 10)], 3);
    assert_eq!(got, ["a0+10 b0+10 | 90", "c9+1 | 90", "a10+1 b10+1 c10+1 | 100"]);
}

fn trtllm(blocks: u32) -> trtllm::Settings {
    trtllm::Settings { tokens_per_block: 4, blocks, ..trtllm::Settings::default() }
}

#[test]
fn trtllm_reserves_by_hand() {
    // a needs 4 blocks to its end, b 6, c 2: of 10, none is left for c until a is done.
    let got = steps(trtllm(10), &[(0, 0, 8, 5, 0), (0, 1, 12, 9, 0), (0, 2, 4, 2, 0)], 9);
    assert_eq!(
        got,
        [
            "a0+8 b0+12 | 5",
            "a8+1 b12+1 | 3",
            "a9+1 b13+1 | 3",
            "a10+1 b14+1 | 3",
            "a11+1 b15+1 | 6",
            "b16+1 c0+4 | 4",
            "b17+1 c4+1 | 5",
            "b18+1 | 5",
            "b19+1 | 10",
        ]
    );
}

#[test]
fn trtllm_pauses_by_hand() {
    // 5 blocks: b's ninth token has none at step 3, and b, the last started, pauses until a is done.
    let s = trtllm::Settings { capacity: trtllm::Capacity::MaxUtilization, ..trtllm(5) };
    let got = steps(s, &[(0, 0, 7, 8, 0), (0, 1, 6, 8, 0)], 10);
    assert_eq!(
        got,
        [
            "a0+7 b0+6 | 1",
            "a7+1 b6+1 | 1",
            "a8+1 b7+1 | 0",
            "-b a9+1 | 2",
            "a10+1 | 2",
            "a11+1 | 2",
            "a12+1 | 1",
            "a13+1 | 5",
            "b0+9 | 2",
            "b9+1 | 2",
        ]
    );
}

#[test]
fn trtllm_waits_for_a_block_by_hand() {
    // b's first block is being computed by a: it starts a step later and finds two.
    let got = steps(trtllm(10), &[(0, 0, 9, 2, 8), (0, 1, 9, 2, 8)], 3);
    assert_eq!(got, ["a0+9 | 7", "a9+1 b8+1 | 7", "b9+1 | 10"]);
}

#[test]
fn trtllm_cuts_by_hand() {
    let cut = |how, tokens| trtllm::Settings { chunking: Some(how), max_num_tokens: tokens, ..trtllm(20) };
    // In order: a whole, b a whole block of what is left.
    let got = steps(cut(trtllm::Chunking::FirstComeFirstServed, 10), &[(0, 0, 6, 3, 0), (0, 1, 9, 2, 0)], 3);
    assert_eq!(got, ["a0+6 b0+4 | 15", "a6+1 b4+5 | 15", "a7+1 b9+1 | 20"]);
    // In turn: a block each, then one more for a.
    let got = steps(cut(trtllm::Chunking::EqualProgress, 12), &[(0, 0, 9, 2, 0), (0, 1, 9, 2, 0)], 3);
    assert_eq!(got, ["a0+8 b0+4 | 14", "a8+1 b4+5 | 14", "a9+1 b9+1 | 20"]);
    // Not at all: b does not fit beside a.
    let whole = trtllm::Settings { max_num_tokens: 12, ..trtllm(20) };
    let got = steps(whole, &[(0, 0, 9, 2, 0), (0, 1, 9, 2, 0)], 3);
    assert_eq!(got, ["a0+9 | 17", "a9+1 b0+9 | 17", "b9+1 | 20"]);
}
