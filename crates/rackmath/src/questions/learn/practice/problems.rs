//! Problems made at random: round numbers of the right size, answered by the theory.

use super::Problem;
use rackmath_theory::board::closed;
use rackmath_theory::reversible::Keep;
use rackmath_theory::scaling::Point;
use rackmath_theory::{crossover, experts, lifecycle, pipeline, roofline, station};
use rackmath_units::{
    ByteRate, Bytes, BytesPerParam, Chance, FlopRate, Fraction, Params, Seconds, TokenRate, Tokens, grouped,
    significant,
};

/// The topics, in the order of the lecture.
pub const TOPICS: &[&str] = &["batch", "racks", "pipeline", "lifecycle", "prices", "reversible"];

/// The same problems for the same seed on every machine.
struct Dice(Chance);

impl Dice {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.below(of.len() as u64) as usize]
    }
}

type Make = fn(&mut Dice) -> Problem;

const KINDS: &[(&str, Make)] = &[
    ("batch", ridge),
    ("batch", balance),
    ("batch", step),
    ("batch", drain),
    ("batch", fast),
    ("batch", train),
    ("racks", shared),
    ("racks", networks),
    ("pipeline", bubble),
    ("pipeline", micro_batches),
    ("lifecycle", served),
    ("lifecycle", over),
    ("lifecycle", budget),
    ("prices", cache_bytes),
    ("prices", crossing),
    ("prices", shape),
    ("reversible", activations),
    ("reversible", shrinkage),
];

/// Makes problems of the wanted topics.
pub fn make(seed: u64, count: usize, wanted: impl Fn(&str) -> bool) -> Vec<Problem> {
    let kinds: Vec<&(&str, Make)> = KINDS.iter().filter(|(topic, _)| wanted(topic)).collect();
    let mut dice = Dice(Chance::new(seed));
    // Every kind once, in any order, before one comes again.
    let mut bag: Vec<&(&str, Make)> = Vec::new();
    (0..count)
        .map(|_| {
            if bag.is_empty() {
                bag.clone_from(&kinds);
            }
            let (topic, make) = bag.swap_remove(dice.0.below(bag.len() as u64) as usize);
            Problem { topic: (*topic).to_owned(), ..make(&mut dice) }
        })
        .collect()
}

fn problem<const N: usize>(
    claim: &str,
    question: String,
    (answer, unit): (f64, &str),
    equation: &str,
    working: [String; N],
) -> Problem {
    Problem {
        topic: String::new(),
        claim: claim.into(),
        question,
        unit: unit.into(),
        equation: equation.into(),
        answer,
        working: working.into(),
        given: None,
        right: None,
    }
}

fn s(value: f64) -> String {
    significant(value, 3)
}

/// A chip: dense PFLOP/s, TB/s of memory, GB of memory. Round numbers, no product.
fn chip(dice: &mut Dice) -> (f64, f64, f64) {
    (dice.one(&[1.0, 2.0, 2.5, 4.0, 5.0]), dice.one(&[2.0, 3.2, 4.0, 5.0, 8.0]), dice.one(&[80.0, 128.0, 192.0, 288.0]))
}

fn rates(pflops: f64, tbs: f64) -> (FlopRate, ByteRate) {
    (FlopRate::flop_per_s(pflops * 1e15), ByteRate::b_per_s(tbs * 1e12))
}

fn ridge(dice: &mut Dice) -> Problem {
    let (pflops, tbs, _) = chip(dice);
    let width = dice.one(&[0.5, 1.0, 2.0]);
    let (peak, bandwidth) = rates(pflops, tbs);
    let r = roofline::ridge(peak, BytesPerParam::new(width), bandwidth);
    let question = format!(
        "A chip multiplies at {pflops} PFLOP/s dense and reads {tbs} TB/s. Weights take {width} bytes each. How many tokens must share a weight for compute to take as long as reading it?"
    );
    let working = [format!("R = {pflops}e15 x {width} / (2 x {tbs}e12) = {} tokens", s(r))];
    problem("D9", question, (r, "tokens"), "R = F w / (2 W)", working)
}

fn balance(dice: &mut Dice) -> Problem {
    let r = dice.one(&[200.0, 250.0, 281.0, 300.0, 400.0]);
    let (total, active) = dice.one(&[(600.0, 40.0), (1000.0, 100.0), (200.0, 20.0), (400.0, 16.0), (70.0, 70.0)]);
    let b = closed::balance_batch(r, total / active);
    let question = format!(
        "A machine has R = {r} tokens. A model has {total} B parameters, {active} B of them active per token. Ignoring the cache, at which batch does compute take as long as memory?"
    );
    let working = [
        format!("S = {total} / {active} = {}", s(total / active)),
        format!("B = {r} x {} = {}", s(total / active), s(b)),
    ];
    problem("D9", question, (b, "sequences"), "B = R S, S = N_tot / N_act", working)
}

fn step(dice: &mut Dice) -> Problem {
    let (pflops, tbs, _) = chip(dice);
    let chips = dice.one(&[8.0, 32.0, 64.0, 72.0]);
    let (total, active) = dice.one(&[(600.0, 40.0), (1000.0, 100.0), (200.0, 20.0), (70.0, 70.0)]);
    let batch = dice.one(&[64.0, 256.0, 1000.0, 4000.0]);
    let context = dice.one(&[4_000.0, 10_000.0, 32_000.0]);
    let kv = dice.one(&[2_048.0, 40_000.0, 80_000.0]);
    let (peak, bandwidth) = rates(pflops * chips, tbs * chips);
    let flop = rackmath_units::Flop::flop(2.0 * batch * active * 1e9);
    let (compute, weights) = (flop / peak, Bytes::gb(total) / bandwidth);
    let cache = Bytes::b(batch * context * kv) / bandwidth;
    let terms = roofline::Terms { compute, weights, kv: cache };
    let time = terms.time(roofline::Overlap::Max).as_ms();
    let question = format!(
        "{chips} chips of {pflops} PFLOP/s and {tbs} TB/s each decode with {total} B parameters of one byte, {active} B active. The batch is {} sequences of {} tokens, {} bytes of cache per token. How long is a step at least?",
        grouped(batch),
        grouped(context),
        grouped(kv)
    );
    let working = [
        format!("compute: 2 x {batch} x {active}e9 / {}e15 = {} ms", pflops * chips, s(compute.as_ms())),
        format!("weights: {total}e9 / {}e12 = {} ms", s(tbs * chips), s(weights.as_ms())),
        format!("cache: {batch} x {context} x {kv} / {}e12 = {} ms", s(tbs * chips), s(cache.as_ms())),
        format!("t = max({}, {} + {}) = {} ms", s(compute.as_ms()), s(weights.as_ms()), s(cache.as_ms()), s(time)),
    ];
    problem("D1", question, (time, "ms"), "t = max(2 B N_act / F, (w N_tot + B L kv) / W)", working)
}

fn drain(dice: &mut Dice) -> Problem {
    let (_, tbs, gb) = chip(dice);
    let t = roofline::drain(Bytes::gb(gb), ByteRate::b_per_s(tbs * 1e12)).as_ms();
    let question =
        format!("A chip has {gb} GB of memory and reads {tbs} TB/s. How long does reading all of it once take?");
    let working = [format!("t = {gb}e9 / {tbs}e12 = {} ms", s(t))];
    problem("D13", question, (t, "ms"), "t = capacity / W", working)
}

fn fast(dice: &mut Dice) -> Problem {
    let (price, speed) = dice.one(&[(6.0, 2.5), (5.0, 2.0), (4.0, 2.0), (3.0, 1.5), (2.0, 1.5)]);
    let ratio = closed::fast_batch_ratio(price, speed);
    let question = format!(
        "A fast mode costs {price} times the price and is {speed} times as fast on the same machine. If price follows cost, how many times smaller is its batch?"
    );
    let working = [
        "cost per token is machine time per token: t / B".into(),
        format!("B / B_fast = {price} x {speed} = {}", s(ratio)),
    ];
    problem("D7", question, (ratio, "times"), "B / B_fast = price x speed", working)
}

fn train(dice: &mut Dice) -> Problem {
    let (ms, seats, tokens) =
        (dice.one(&[10.0, 20.0, 25.0, 50.0]), dice.one(&[500.0, 1000.0, 2000.0]), dice.one(&[100.0, 250.0, 500.0]));
    let rate = station::sustainable_rate(seats, Seconds::ms(ms), tokens);
    let question = format!(
        "A step takes {ms} ms, the batch has {} seats, and an answer is {tokens} tokens long. How many requests per second can be served for ever?",
        grouped(seats)
    );
    let working = [format!("rate = {seats} / ({} s x {tokens}) = {} requests/s", ms / 1e3, s(rate))];
    problem("D12", question, (rate, "requests/s"), "rate = seats / (t x tokens)", working)
}

fn shared(dice: &mut Dice) -> Problem {
    let (experts, top_k) = dice.one(&[(256.0, 8.0), (128.0, 8.0), (384.0, 8.0), (64.0, 6.0), (16.0, 2.0)]);
    let batch = dice.one(&[512.0, 1000.0, 2048.0, 4096.0]);
    let each = closed::tokens_per_expert(batch, top_k, experts);
    let question = format!(
        "A layer has {experts} experts and each token goes to {top_k} of them. With {} tokens in the batch, how many does an expert get on average?",
        grouped(batch)
    );
    let working = [format!("{batch} x {top_k} / {experts} = {} tokens", s(each))];
    problem("D17", question, (each, "tokens"), "B k / E", working)
}

fn networks(dice: &mut Dice) -> Problem {
    let (k, layers, beta) = (dice.one(&[2.0, 4.0, 8.0]), dice.one(&[1.0, 2.0, 4.0]), dice.one(&[8.0, 9.0, 16.0]));
    let ratio = experts::lecture_ratio(k, layers, beta);
    let question = format!(
        "Each pipeline stage is a rack with {layers} expert layers, and each token visits {k} experts. The network inside the rack is {beta} times as fast as the one between racks. How many times longer is the inner network busy than the outer one?"
    );
    let working = [
        "each layer sends a token to k experts and back; the hop to the next rack sends it once".into(),
        format!("2 x {k} x {layers} / {beta} = {}", s(ratio)),
    ];
    problem("D25", question, (ratio, "times"), "2 k layers / beta", working)
}

fn bubble(dice: &mut Dice) -> Problem {
    let (stages, micro) = (dice.one(&[2_usize, 4, 8, 16]), dice.one(&[4_usize, 8, 10, 32, 64]));
    let idle = pipeline::idle_fraction(stages, micro).get() * 100.0;
    let question = format!(
        "A training pipeline has {stages} stages and {micro} micro-batches, with equal passes and one barrier per step. Which share of the time does a stage idle?"
    );
    let working = [format!("({stages} - 1) / ({micro} + {stages} - 1) = {} %", s(idle))];
    problem("D28", question, (idle, "%"), "(P - 1) / (M + P - 1)", working)
}

fn micro_batches(dice: &mut Dice) -> Problem {
    let (stages, micro) = (dice.one(&[4_usize, 8, 12]), dice.one(&[8_usize, 16, 24]));
    let slots = pipeline::slots(stages, micro) as f64;
    let question = format!(
        "Forward and backward passes take one slot each. {micro} micro-batches run through {stages} stages, all forwards, then all backwards. How many slots does the step take?"
    );
    let working = [format!("2 x ({micro} + {stages} - 1) = {}", s(slots))];
    problem("D28", question, (slots, "slots"), "2 (M + P - 1)", working)
}

fn served(dice: &mut Dice) -> Problem {
    let (rate, days) = (dice.one(&[5.0, 20.0, 50.0, 100.0]), dice.one(&[30.0, 60.0, 90.0]));
    let tokens =
        lifecycle::served(TokenRate::per_s(rate * 1e6), Seconds::s(days * 86_400.0), Fraction::ONE).get() / 1e12;
    let question =
        format!("A model serves {rate} million tokens per second for {days} days. How many trillion tokens is that?");
    let working = [format!("{rate}e6 x {days} x 86,400 = {} trillion", s(tokens))];
    problem("D41", question, (tokens, "trillion tokens"), "D = rate x lifetime", working)
}

fn over(dice: &mut Dice) -> Problem {
    let (params, tokens) = (dice.one(&[8.0, 40.0, 70.0, 100.0]), dice.one(&[2.0, 15.0, 36.0, 200.0]));
    let factor =
        lifecycle::over_training(Point { params: Params::billion(params), tokens: Tokens::new(tokens * 1e12) });
    let question = format!(
        "A model of {params} B parameters is trained on {tokens} trillion tokens. How many times more data is that than 20 tokens per parameter?"
    );
    let working = [format!("{tokens}e12 / (20 x {params}e9) = {}", s(factor))];
    problem("D42", question, (factor, "times"), "D / (20 N)", working)
}

fn budget(dice: &mut Dice) -> Problem {
    let (params, tokens) = (dice.one(&[8.0, 37.0, 70.0, 405.0]), dice.one(&[2.0, 10.0, 15.0]));
    let (pflops, mfu, chips) =
        (dice.one(&[1.0, 2.0]), dice.one(&[0.3, 0.4, 0.5]), dice.one(&[1_000.0, 2_000.0, 16_000.0]));
    let flop = rackmath_units::Flop::flop(6.0 * params * 1e9 * tokens * 1e12);
    let days = (flop / FlopRate::flop_per_s(pflops * 1e15 * chips * mfu)).get() / 86_400.0;
    let question = format!(
        "{params} B parameters are trained on {tokens} trillion tokens by {} chips of {pflops} PFLOP/s at {} % MFU. How many days does it take?",
        grouped(chips),
        s(mfu * 100.0)
    );
    let working = [
        format!("6 x {params}e9 x {tokens}e12 = {:.2e} FLOP", flop.get()),
        format!("/ ({pflops}e15 x {chips} x {mfu}) / 86,400 = {} days", s(days)),
    ];
    problem("D38", question, (days, "days"), "6 N D / (F MFU)", working)
}

fn cache_bytes(dice: &mut Dice) -> Problem {
    let (r, active, context) =
        (dice.one(&[250.0, 300.0]), dice.one(&[20.0, 50.0, 100.0]), dice.one(&[100.0, 128.0, 200.0]));
    let kv =
        crossover::kv_from_crossover(r, BytesPerParam::new(1.0), Params::billion(active), Tokens::new(context * 1e3))
            .get()
            / 1e3;
    let question = format!(
        "A price steps up at {context} k tokens of context. The model has {active} B active parameters of one byte, the machine R = {r}. If the step sits where cache reading overtakes compute, how many kB of cache does a token have?"
    );
    let working = [format!("{active}e9 / ({r} x {context}e3) = {} kB", s(kv))];
    problem("D45", question, (kv, "kB"), "kv = w N_act / (R L)", working)
}

fn crossing(dice: &mut Dice) -> Problem {
    let (r, active, kv) = (dice.one(&[250.0, 300.0]), dice.one(&[20.0, 40.0, 100.0]), dice.one(&[2.0, 10.0, 70.0]));
    let context = crossover::crossover_from_kv(
        r,
        BytesPerParam::new(1.0),
        Params::billion(active),
        rackmath_units::BytesPerToken::new(kv * 1e3),
    );
    let context = context.get() / 1e3;
    let question = format!(
        "A model of {active} B active one-byte parameters keeps {kv} kB of cache per token on a machine with R = {r}. In a very large batch, beyond how many thousand tokens of context is it memory-bound?"
    );
    let working = [format!("{active}e9 / ({r} x {kv}e3) = {} thousand tokens", s(context))];
    problem("D5", question, (context, "thousand tokens"), "L = w N_act / (R kv)", working)
}

fn shape(dice: &mut Dice) -> Problem {
    let (layers, heads, dim, bytes) =
        (dice.one(&[32.0, 64.0, 80.0]), dice.one(&[4.0, 8.0]), dice.one(&[64.0, 128.0]), dice.one(&[1.0, 2.0]));
    let kv = crossover::kv_of_shape(layers, heads, dim, bytes).get() / 1e3;
    let question = format!(
        "A model has {layers} layers with {heads} KV heads of {dim} values, {bytes} bytes each, keys and values. How many kB of cache does a token have?"
    );
    let working = [format!("2 x {layers} x {heads} x {dim} x {bytes} = {} kB", s(kv))];
    problem("D46", question, (kv, "kB"), "2 layers heads dim bytes", working)
}

fn activations(dice: &mut Dice) -> Problem {
    let (layers, tokens, hidden) =
        (dice.one(&[32.0, 64.0, 96.0]), dice.one(&[4_096.0, 8_192.0]), dice.one(&[4_096.0, 8_192.0]));
    let gb = |keep: Keep| keep.activations(layers, tokens, hidden).as_gb();
    let saved = gb(Keep::Inputs) - gb(Keep::Reversible);
    let question = format!(
        "Full recompute keeps the two-byte input of each of {layers} layers for {} tokens, {} wide. A reversible network keeps two streams of the same kind instead. How many GB does it save?",
        grouped(tokens),
        grouped(hidden)
    );
    let working = [format!("2 x ({layers} - 2) x {tokens} x {hidden} = {} GB", s(saved))];
    problem("D57", question, (saved, "GB"), "2 bytes x (layers - 2) x tokens x width", working)
}

fn shrinkage(dice: &mut Dice) -> Problem {
    let layers = dice.one(&[24.0, 32.0, 48.0, 80.0, 126.0]);
    let of = |keep: Keep| keep.activations(layers, 1.0, 1.0).get();
    let ratio = of(Keep::Everything) / of(Keep::Reversible);
    let question = format!(
        "An ordinary network keeps 34 bytes per token, width and layer for its backward pass; a reversible one keeps two streams of 2 bytes and one layer at a time. How many times less is that at {layers} layers?"
    );
    let working = [format!("34 x {layers} / 38 = {}", s(ratio))];
    problem("D57", question, (ratio, "times"), "34 layers / (34 + 4)", working)
}
