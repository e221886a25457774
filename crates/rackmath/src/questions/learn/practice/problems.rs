//! Problems made at random: round numbers of the right size, answered by the theory.

use super::Topic::{Batch, Lifecycle, Pipeline, Prices, Racks, Reversible};
use super::{Problem, Topic};
use crate::desk::prelude::*;
use rackmath_theory::board::closed;
use rackmath_theory::network::cross_rack_slowdown;
use rackmath_theory::placement::lecture_memory;
use rackmath_theory::reversible::Keep;
use rackmath_theory::scaling::Point;
use rackmath_theory::{crossover, experts, lifecycle, pipeline, roofline, station};
use rackmath_units::{BytesPerParam, BytesPerToken, Chance, Flop, FlopRate};
use std::fmt::Display;

/// The same problems for the same seed on every machine.
struct Dice(Chance);

impl Dice {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.below(of.len() as u64) as usize]
    }

    fn each<const N: usize>(&mut self, of: [&[f64]; N]) -> [f64; N] {
        of.map(|of| self.one(of))
    }
}

/// What a problem is made with: the values of its question, its answer, and the working.
type Made = (Vec<String>, f64, Vec<String>);

fn made<const N: usize>(values: &[&dyn Display], answer: f64, working: [String; N]) -> Made {
    (values.iter().map(ToString::to_string).collect(), answer, working.into())
}

/// Topic, values, claim, unit, equation and question.
type Kind = (Topic, fn(&mut Dice) -> Made, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip] // a table
const KINDS: &[Kind] = &[
    (Batch, ridge, "D9", "tokens", "R = F w / (2 W)",
        "A chip multiplies at {} PFLOP/s dense and reads {} TB/s. Weights take {} bytes each. How many tokens must share a weight for compute to take as long as reading it?"),
    (Batch, balance, "D9", "sequences", "B = R S, S = N_tot / N_act",
        "A machine has R = {} tokens. A model has {} B parameters, {} B of them active per token. Ignoring the cache, at which batch does compute take as long as memory?"),
    (Batch, step, "D1", "ms", "t = max(2 B N_act / F, (w N_tot + B L kv) / W)",
        "{} chips of {} PFLOP/s and {} TB/s each decode with {} B parameters of one byte, {} B active. The batch is {} sequences of {} tokens, {} bytes of cache per token. How long is a step at least?"),
    (Batch, cost, "D6", "$/Mtok", "cost = price x t / B",
        "A machine of {} chips is rented at {} dollars per chip and hour. A step takes {} ms and gives each of {} sequences one token. How many dollars does a million tokens cost?"),
    (Batch, drain, "D13", "ms", "t = capacity / W",
        "A chip has {} GB of memory and reads {} TB/s. How long does reading all of it once take?"),
    (Batch, fast, "D7", "times", "B / B_fast = price x speed",
        "A fast mode costs {} times the price and is {} times as fast on the same machine. If price follows cost, how many times smaller is its batch?"),
    (Batch, slow, "D8", "%", "saving = 1 / (1 + x)",
        "In the usual batch reading the caches takes {} times as long as reading the weights, and memory binds. Which share of the price could waiting for ever save at most?"),
    (Batch, train, "D12", "requests/s", "rate = seats / (t x tokens)",
        "A step takes {} ms, the batch has {} seats, and an answer is {} tokens long. How many requests per second can be served for ever?"),
    (Racks, shared, "D17", "tokens", "B k / E",
        "A layer has {} experts and each token goes to {} of them. With {} tokens in the batch, how many does an expert get on average?"),
    (Racks, across, "D20", "times", "beta (R - 1) / R",
        "Inside a rack a chip sends {} times as fast as between racks. The experts of a layer are spread evenly over {} racks. How many times longer does the exchange take than inside one rack?"),
    (Racks, networks, "D25", "times", "2 k layers / beta",
        "Each pipeline stage is a rack with {} expert layers, and each token visits {} experts. The network inside the rack is {} times as fast as the one between racks. How many times longer is the inner network busy than the outer one?"),
    (Pipeline, bubble, "D28", "%", "(P - 1) / (M + P - 1)",
        "A training pipeline has {} stages and {} micro-batches, with equal passes and one barrier per step. Which share of the time does a stage idle?"),
    (Pipeline, micro_batches, "D28", "slots", "2 (M + P - 1)",
        "Forward and backward passes take one slot each. {} micro-batches run through {} stages, all forwards, then all backwards. How many slots does the step take?"),
    (Pipeline, stages, "D33", "GB", "N w / (E P) + b L kv / E",
        "{} GB of weights are cut into {} stages of {} chips. Every stage works on {} sequences, and the cache of a sequence takes {} MB over all layers. The pipe is kept full. How many GB does a chip hold?"),
    (Lifecycle, served, "D41", "trillion tokens", "D = rate x lifetime",
        "A model serves {} million tokens per second for {} days. How many trillion tokens is that?"),
    (Lifecycle, over, "D42", "times", "D / (20 N)",
        "A model of {} B parameters is trained on {} trillion tokens. How many times more data is that than 20 tokens per parameter?"),
    (Lifecycle, budget, "D38", "days", "6 N D / (F MFU)",
        "{} B parameters are trained on {} trillion tokens by {} chips of {} PFLOP/s at {} % MFU. How many days does it take?"),
    (Prices, cache_bytes, "D45", "kB", "kv = w N_act / (R L)",
        "A price steps up at {} k tokens of context. The model has {} B active parameters of one byte, the machine R = {}. If the step sits where cache reading overtakes compute, how many kB of cache does a token have?"),
    (Prices, crossing, "D5", "thousand tokens", "L = w N_act / (R kv)",
        "A model of {} B active one-byte parameters keeps {} kB of cache per token on a machine with R = {}. In a very large batch, beyond how many thousand tokens of context is it memory-bound?"),
    (Prices, shape, "D46", "kB", "2 layers heads dim bytes",
        "A model has {} layers with {} KV heads of {} values, {} bytes each, keys and values. How many kB of cache does a token have?"),
    (Prices, premium, "D48", "%", "decode MFU = prefill MFU / r",
        "Output costs {} times as much as input. Prompts run at {} % of the peak. If both prices are cost, at which share of the peak does decoding run?"),
    (Prices, tier, "D52", "s", "T = C / W",
        "A device holds {} GB and reads {} GB/s. After how long does holding a cache there have cost as much device time as fetching it?"),
    (Reversible, activations, "D57", "GB", "2 bytes x (layers - 2) x tokens x width",
        "Full recompute keeps the two-byte input of each of {} layers for {} tokens, {} wide. A reversible network keeps two streams of the same kind instead. How many GB does it save?"),
    (Reversible, shrinkage, "D57", "times", "34 layers / (34 + 4)",
        "An ordinary network keeps 34 bytes per token, width and layer for its backward pass; a reversible one keeps two streams of 2 bytes and one layer at a time. How many times less is that at {} layers?"),
];

/// Claims that have problems, in the order of the lecture.
pub fn claims(topic: Option<Topic>) -> impl Iterator<Item = &'static str> {
    let kinds = KINDS.iter().filter(move |kind| topic.is_none_or(|t| t == kind.0));
    // Two kinds of one claim stand together.
    let mut last = "";
    kinds.map(|kind| kind.2).filter(move |claim| std::mem::replace(&mut last, claim) != *claim)
}

/// Makes problems of the wanted topics and claims.
pub fn make(seed: u64, count: usize, wanted: impl Fn(Topic, &str) -> bool) -> Vec<Problem> {
    let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| wanted(kind.0, kind.2)).collect();
    let mut dice = Dice(Chance::new(seed));
    // Every kind once, in any order, before one comes again.
    let mut bag = Vec::new();
    let one = |_| {
        if bag.is_empty() {
            bag.clone_from(&kinds);
        }
        let &(topic, make, claim, unit, equation, text) = bag.swap_remove(dice.0.below(bag.len() as u64) as usize);
        let (values, answer, working) = make(&mut dice);
        let question = values.iter().fold(text.to_owned(), |text, value| text.replacen("{}", value, 1));
        Problem { topic, claim, question, unit, equation, answer, working, given: None, right: None }
    };
    (0..count).map(one).collect()
}

fn s(value: f64) -> String {
    significant(value, 3)
}

/// A chip: dense PFLOP/s, TB/s of memory, GB of memory. Round numbers, no product.
fn chip(dice: &mut Dice) -> [f64; 3] {
    dice.each([&[1.0, 2.0, 2.5, 4.0, 5.0], &[2.0, 3.2, 4.0, 5.0, 8.0], &[80.0, 128.0, 192.0, 288.0]])
}

fn rates(pflops: f64, tbs: f64) -> (FlopRate, ByteRate) {
    (FlopRate::flop_per_s(pflops * 1e15), ByteRate::b_per_s(tbs * 1e12))
}

fn ridge(dice: &mut Dice) -> Made {
    let [pflops, tbs, _] = chip(dice);
    let width = dice.one(&[0.5, 1.0, 2.0]);
    let (peak, bandwidth) = rates(pflops, tbs);
    let r = roofline::ridge(peak, BytesPerParam::new(width), bandwidth);
    made(&[&pflops, &tbs, &width], r, [format!("R = {pflops}e15 x {width} / (2 x {tbs}e12) = {} tokens", s(r))])
}

fn balance(dice: &mut Dice) -> Made {
    let r = dice.one(&[200.0, 250.0, 281.0, 300.0, 400.0]);
    let (total, active) = dice.one(&[(600.0, 40.0), (1000.0, 100.0), (200.0, 20.0), (400.0, 16.0), (70.0, 70.0)]);
    let b = closed::balance_batch(r, total / active);
    let working = [
        format!("S = {total} / {active} = {}", s(total / active)),
        format!("B = {r} x {} = {}", s(total / active), s(b)),
    ];
    made(&[&r, &total, &active], b, working)
}

fn step(dice: &mut Dice) -> Made {
    let [pflops, tbs, _] = chip(dice);
    let chips = dice.one(&[8.0, 32.0, 64.0, 72.0]);
    let (total, active) = dice.one(&[(600.0, 40.0), (1000.0, 100.0), (200.0, 20.0), (70.0, 70.0)]);
    let sizes: [&[f64]; 3] = [&[64.0, 256.0, 1000.0, 4000.0], &[4e3, 1e4, 3.2e4], &[2_048.0, 4e4, 8e4]];
    let [batch, context, kv] = dice.each(sizes);
    let (peak, bandwidth) = rates(pflops * chips, tbs * chips);
    let flop = Flop::flop(2.0 * batch * active * 1e9);
    let (compute, weights) = (flop / peak, Bytes::gb(total) / bandwidth);
    let cache = Bytes::b(batch * context * kv) / bandwidth;
    let terms = roofline::Terms { compute, weights, kv: cache };
    let time = terms.time(roofline::Overlap::Max).as_ms();
    let working = [
        format!("compute: 2 x {batch} x {active}e9 / {}e15 = {} ms", pflops * chips, s(compute.as_ms())),
        format!("weights: {total}e9 / {}e12 = {} ms", s(tbs * chips), s(weights.as_ms())),
        format!("cache: {batch} x {context} x {kv} / {}e12 = {} ms", s(tbs * chips), s(cache.as_ms())),
        format!("t = max({}, {} + {}) = {} ms", s(compute.as_ms()), s(weights.as_ms()), s(cache.as_ms()), s(time)),
    ];
    made(&[&chips, &pflops, &tbs, &total, &active, &grouped(batch), &grouped(context), &grouped(kv)], time, working)
}

fn cost(dice: &mut Dice) -> Made {
    let [chips, dollars, ms, batch] = dice.each([
        &[8.0, 32.0, 64.0, 72.0],
        &[1.5, 2.0, 3.0, 4.0],
        &[10.0, 20.0, 25.0, 50.0],
        &[64.0, 256.0, 1000.0, 2000.0],
    ]);
    let machine = DollarRate::per_hour(chips * dollars);
    let each = (machine * (Seconds::ms(ms) / Tokens::new(batch))).as_per_mtok();
    let working = [
        format!("a token takes {} ms / {} = {} ms of the machine", ms, grouped(batch), s(ms / batch)),
        format!("{chips} x {dollars} / 3600 x {} s / {batch} x 1e6 = {} dollars", ms / 1e3, s(each)),
    ];
    made(&[&chips, &dollars, &ms, &grouped(batch)], each, working)
}

fn across(dice: &mut Dice) -> Made {
    let (beta, racks) = (dice.one(&[8.0, 9.0, 16.0, 18.0]), dice.one(&[2_u64, 3, 4, 8]));
    let slower = cross_rack_slowdown(beta, racks);
    let working = [
        format!("of the exchange ({racks} - 1) / {racks} leaves the rack"),
        format!("{beta} x ({racks} - 1) / {racks} = {}", s(slower)),
    ];
    made(&[&beta, &racks], slower, working)
}

fn stages(dice: &mut Dice) -> Made {
    let [weights, pp, ep] = dice.each([&[400.0, 700.0, 1000.0], &[2.0, 4.0, 8.0], &[8.0, 32.0, 64.0]]);
    let [batch, mb] = dice.each([&[256.0, 1000.0, 2000.0], &[70.0, 200.0, 320.0]]);
    let (w, kv) = lecture_memory(Bytes::gb(weights), ep, pp, batch, Bytes::gb(mb / 1e3));
    let held = (w + kv).as_gb();
    let working = [
        "a full pipe has as many micro-batches as stages, so the stages cancel for the cache".into(),
        format!("{weights} / ({ep} x {pp}) + {batch} x {} / {ep} = {} GB", mb / 1e3, s(held)),
    ];
    made(&[&weights, &pp, &ep, &grouped(batch), &mb], held, working)
}

fn premium(dice: &mut Dice) -> Made {
    let [ratio, prefill] = dice.each([&[3.0, 4.0, 5.0, 6.0], &[40.0, 50.0, 60.0]]);
    let mfu = crossover::mfu_ratio(ratio) * prefill;
    made(&[&ratio, &prefill], mfu, [format!("{prefill} / {ratio} = {} %", s(mfu))])
}

fn tier(dice: &mut Dice) -> Made {
    let (gb, rate) = dice.one(&[(192.0, 8000.0), (480.0, 500.0), (1_500.0, 460.0), (3_840.0, 7.0), (20_000.0, 0.28)]);
    let t = roofline::drain(Bytes::gb(gb), ByteRate::gb_per_s(rate)).get();
    made(&[&grouped(gb), &rate], t, [format!("T = {gb} / {rate} = {} s", s(t))])
}

fn drain(dice: &mut Dice) -> Made {
    let [_, tbs, gb] = chip(dice);
    let t = roofline::drain(Bytes::gb(gb), ByteRate::b_per_s(tbs * 1e12)).as_ms();
    made(&[&gb, &tbs], t, [format!("t = {gb}e9 / {tbs}e12 = {} ms", s(t))])
}

fn fast(dice: &mut Dice) -> Made {
    let (price, speed) = dice.one(&[(6.0, 2.5), (5.0, 2.0), (4.0, 2.0), (3.0, 1.5), (2.0, 1.5)]);
    let ratio = closed::fast_batch_ratio(price, speed);
    let working = [
        "cost per token is machine time per token: t / B".into(),
        format!("B / B_fast = {price} x {speed} = {}", s(ratio)),
    ];
    made(&[&price, &speed], ratio, working)
}

fn slow(dice: &mut Dice) -> Made {
    let x = dice.one(&[0.25, 0.5, 1.0, 1.5, 3.0, 4.0]);
    let saving = closed::slow_saving(x) * 100.0;
    made(&[&x], saving, [format!("1 / (1 + {x}) = {} %", s(saving))])
}

fn train(dice: &mut Dice) -> Made {
    let [ms, seats, tokens] = dice.each([&[10.0, 20.0, 25.0, 50.0], &[500.0, 1000.0, 2000.0], &[100.0, 250.0, 500.0]]);
    let rate = station::sustainable_rate(seats, Seconds::ms(ms), tokens);
    let working = [format!("rate = {seats} / ({} s x {tokens}) = {} requests/s", ms / 1e3, s(rate))];
    made(&[&ms, &grouped(seats), &tokens], rate, working)
}

fn shared(dice: &mut Dice) -> Made {
    let (experts, top_k) = dice.one(&[(256.0, 8.0), (128.0, 8.0), (384.0, 8.0), (64.0, 6.0), (16.0, 2.0)]);
    let batch = dice.one(&[512.0, 1000.0, 2048.0, 4096.0]);
    let each = closed::tokens_per_expert(batch, top_k, experts);
    made(&[&experts, &top_k, &grouped(batch)], each, [format!("{batch} x {top_k} / {experts} = {} tokens", s(each))])
}

fn networks(dice: &mut Dice) -> Made {
    let (k, layers, beta) = (dice.one(&[2.0, 4.0, 8.0]), dice.one(&[1.0, 2.0, 4.0]), dice.one(&[8.0, 9.0, 16.0]));
    let ratio = experts::lecture_ratio(k, layers, beta);
    let working = [
        "each layer sends a token to k experts and back; the hop to the next rack sends it once".into(),
        format!("2 x {k} x {layers} / {beta} = {}", s(ratio)),
    ];
    made(&[&layers, &k, &beta], ratio, working)
}

fn bubble(dice: &mut Dice) -> Made {
    let (stages, micro) = (dice.one(&[2_usize, 4, 8, 16]), dice.one(&[4_usize, 8, 10, 32, 64]));
    let idle = pipeline::idle_fraction(stages, micro).get() * 100.0;
    made(&[&stages, &micro], idle, [format!("({stages} - 1) / ({micro} + {stages} - 1) = {} %", s(idle))])
}

fn micro_batches(dice: &mut Dice) -> Made {
    let (stages, micro) = (dice.one(&[4_usize, 8, 12]), dice.one(&[8_usize, 16, 24]));
    let slots = pipeline::slots(stages, micro) as f64;
    made(&[&micro, &stages], slots, [format!("2 x ({micro} + {stages} - 1) = {}", s(slots))])
}

fn served(dice: &mut Dice) -> Made {
    let (rate, days) = (dice.one(&[5.0, 20.0, 50.0, 100.0]), dice.one(&[30.0, 60.0, 90.0]));
    let served = lifecycle::served(TokenRate::per_s(rate * 1e6), Seconds::s(days * 86_400.0), Fraction::ONE);
    let tokens = served.get() / 1e12;
    made(&[&rate, &days], tokens, [format!("{rate}e6 x {days} x 86,400 = {} trillion", s(tokens))])
}

fn over(dice: &mut Dice) -> Made {
    let (params, tokens) = (dice.one(&[8.0, 40.0, 70.0, 100.0]), dice.one(&[2.0, 15.0, 36.0, 200.0]));
    let at = Point { params: Params::billion(params), tokens: Tokens::new(tokens * 1e12) };
    let factor = lifecycle::over_training(at);
    made(&[&params, &tokens], factor, [format!("{tokens}e12 / (20 x {params}e9) = {}", s(factor))])
}

fn budget(dice: &mut Dice) -> Made {
    let (params, tokens) = (dice.one(&[8.0, 37.0, 70.0, 405.0]), dice.one(&[2.0, 10.0, 15.0]));
    let [pflops, mfu, chips] = dice.each([&[1.0, 2.0], &[0.3, 0.4, 0.5], &[1_000.0, 2_000.0, 16_000.0]]);
    let flop = Flop::flop(6.0 * params * 1e9 * tokens * 1e12);
    let days = (flop / FlopRate::flop_per_s(pflops * 1e15 * chips * mfu)).get() / 86_400.0;
    let working = [
        format!("6 x {params}e9 x {tokens}e12 = {:.2e} FLOP", flop.get()),
        format!("/ ({pflops}e15 x {chips} x {mfu}) / 86,400 = {} days", s(days)),
    ];
    made(&[&params, &tokens, &grouped(chips), &pflops, &s(mfu * 100.0)], days, working)
}

fn cache_bytes(dice: &mut Dice) -> Made {
    let [r, active, context] = dice.each([&[250.0, 300.0], &[20.0, 50.0, 100.0], &[100.0, 128.0, 200.0]]);
    let (byte, params, crossing) = (BytesPerParam::new(1.0), Params::billion(active), Tokens::new(context * 1e3));
    let kv = crossover::kv_from_crossover(r, byte, params, crossing).get() / 1e3;
    made(&[&context, &active, &r], kv, [format!("{active}e9 / ({r} x {context}e3) = {} kB", s(kv))])
}

fn crossing(dice: &mut Dice) -> Made {
    let (r, active, kv) = (dice.one(&[250.0, 300.0]), dice.one(&[20.0, 40.0, 100.0]), dice.one(&[2.0, 10.0, 70.0]));
    let (byte, params, cache) = (BytesPerParam::new(1.0), Params::billion(active), BytesPerToken::new(kv * 1e3));
    let context = crossover::crossover_from_kv(r, byte, params, cache).get() / 1e3;
    made(&[&active, &kv, &r], context, [format!("{active}e9 / ({r} x {kv}e3) = {} thousand tokens", s(context))])
}

fn shape(dice: &mut Dice) -> Made {
    let [layers, heads, dim, bytes] = dice.each([&[32.0, 64.0, 80.0], &[4.0, 8.0], &[64.0, 128.0], &[1.0, 2.0]]);
    let kv = crossover::kv_of_shape(layers, heads, dim, bytes).get() / 1e3;
    made(&[&layers, &heads, &dim, &bytes], kv, [format!("2 x {layers} x {heads} x {dim} x {bytes} = {} kB", s(kv))])
}

fn activations(dice: &mut Dice) -> Made {
    let [layers, tokens, hidden] = dice.each([&[32.0, 64.0, 96.0], &[4_096.0, 8_192.0], &[4_096.0, 8_192.0]]);
    let gb = |keep: Keep| keep.activations(layers, tokens, hidden).as_gb();
    let saved = gb(Keep::Inputs) - gb(Keep::Reversible);
    let working = [format!("2 x ({layers} - 2) x {tokens} x {hidden} = {} GB", s(saved))];
    made(&[&layers, &grouped(tokens), &grouped(hidden)], saved, working)
}

fn shrinkage(dice: &mut Dice) -> Made {
    let layers = dice.one(&[24.0, 32.0, 48.0, 80.0, 126.0]);
    let of = |keep: Keep| keep.activations(layers, 1.0, 1.0).get();
    let ratio = of(Keep::Everything) / of(Keep::Reversible);
    made(&[&layers], ratio, [format!("34 x {layers} / 38 = {}", s(ratio))])
}
