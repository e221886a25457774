//! Flags to change, each tried through the engine's own sum before it is named.

use super::{Case, Change, gib, hosted, prints};
use crate::desk::prelude::*;
use crate::support::{self, Asked};
use rackmath_spec::launch::Start;
use rackmath_spec::layout::Degrees;
use rackmath_spec::line::Program;
use rackmath_theory::adapters::Adapters;
use rackmath_theory::budget::{self, Budget, Refusal, last};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::layout::check_shape;

/// Most that are named.
const MOST: usize = 6;

/// Shorter requests than these are not offered beside other changes.
const LEAST_CONTEXT: u64 = 4096;

/// A small change of a line, one of several.
#[derive(Clone)]
struct Step {
    knob: Knob,
    flag: String,
    change: fn(&mut Start),
}

/// What a flag is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Knob {
    Longest,
    Share,
    Sequences,
    Pass,
    Kv,
    Weights,
    Tp,
    Eager,
    Chunked,
    Layers,
    ExpertLayers,
    Experts,
    Adapters,
    Offload,
}

fn spelled(program: Program, knob: Knob) -> Option<&'static str> {
    let names = match program {
        Program::Vllm => [
            "--max-model-len",
            "--gpu-memory-utilization",
            "--max-num-seqs",
            "--max-num-batched-tokens",
            "--kv-cache-dtype fp8",
            "--quantization fp8",
            "--tensor-parallel-size",
            "--enforce-eager",
            "--enable-chunked-prefill",
            "",
            "",
            "--enable-expert-parallel",
            "--max-loras",
            "--cpu-offload-gb",
        ],
        Program::Sglang => [
            "--context-length",
            "--mem-fraction-static",
            "--max-running-requests",
            "--chunked-prefill-size",
            "--kv-cache-dtype fp8_e4m3",
            "--quantization fp8",
            "--tp-size",
            "--disable-cuda-graph",
            "",
            "",
            "",
            "--ep-size",
            "--max-loras-per-batch",
            "--cpu-offload-gb",
        ],
        Program::TrtLlm => [
            "--max_seq_len",
            "--kv_cache_free_gpu_memory_fraction",
            "--max_batch_size",
            "--max_num_tokens",
            "",
            "",
            "--tp_size",
            "",
            "",
            "",
            "",
            "--ep_size",
            "",
            "",
        ],
        Program::LlamaCpp => {
            ["-c", "", "-np", "-ub", "-ctk q8_0 -ctv q8_0", "", "", "", "", "-ngl", "--n-cpu-moe", "", "", ""]
        }
    };
    Some(names[knob as usize]).filter(|name| !name.is_empty())
}

/// Changes that make it start; where it does, those that make the cache larger.
pub(super) fn tried(catalog: &Catalog, case: &Case, b: &Budget, starts: bool) -> Vec<Change> {
    let mut all = Trials { catalog, case, b, starts, named: Vec::new() };
    if let Some(own) = case.positions {
        all.longest_to(own);
    }
    if case.cut_blocks {
        all.whole_experts();
    }
    // A model without a cache has nothing more to hold.
    if case.early.is_some() || (starts && b.tokens == 0) {
        return all.named;
    }
    all.adapters();
    all.longest();
    all.graphs();
    all.shares();
    all.buffers();
    all.passes();
    all.formats();
    all.offloaded();
    all.wider();
    if !starts && all.named.is_empty() {
        all.together();
    }
    if !starts && all.named.is_empty() {
        all.on_more_chips();
    }
    all.named.truncate(MOST);
    all.named
}

struct Trials<'a> {
    catalog: &'a Catalog,
    case: &'a Case,
    b: &'a Budget,
    starts: bool,
    named: Vec<Change>,
}

impl Trials<'_> {
    /// Names a change of one flag where it makes it start, or hold more.
    fn add(&mut self, knob: Knob, value: Option<String>, on: &Deployment, start: &Start, caution: Option<Remark>) {
        let Some(name) = spelled(self.case.launch.program, knob) else { return };
        // What the engine does not run there is no way out, however well it would fit.
        let runs = support::stand(self.catalog, on, Asked::Given, self.case.version);
        if !runs.is_ok_and(|standing| standing.refusal.is_none() && standing.cuts(&on.layout)) {
            return;
        }
        let flag = value.map_or_else(|| name.to_owned(), |value| format!("{name} {value}"));
        self.push(flag, on, start, caution);
    }

    /// Names what was changed where it starts, or holds more.
    fn push(&mut self, flag: String, on: &Deployment, start: &Start, caution: Option<Remark>) {
        let (then, b) = (self.case.tried(on, start), self.b);
        // What leaves less than the engine's makers ask for is not named beside a share that was said.
        let sound = then.tight.is_none() || start.utilisation.is_none() || (self.starts && b.tight.is_some());
        let more = then.cache > b.cache * 1.02 || then.concurrency > b.concurrency * 1.02;
        if then.starts() && sound && (!self.starts || more) {
            self.named.push(Change {
                flag,
                caution,
                starts: then.starts(),
                kv_cache_gib: gib(then.cache),
                kv_cache_tokens: then.tokens,
                max_concurrency: then.concurrency,
                max_model_len: then.longest,
            });
        }
    }

    fn started(&mut self, knob: Knob, value: Option<String>, start: &Start, caution: Option<Remark>) {
        let case = self.case;
        self.add(knob, value, &case.on, start, caution);
    }

    /// Fewer slots for adapters, as many as leave room for the cache.
    fn adapters(&mut self) {
        let (case, start) = (self.case, &self.case.start);
        let Some((a, (slots, rank))) = case.on.adapters.zip(start.adapters).filter(|_| !self.starts) else { return };
        let with = |n: u64| {
            let on = Deployment { adapters: Some(Adapters { slots: n, served: n, ..a }), ..case.on.clone() };
            (on, Start { adapters: Some((n, rank)), ..start.clone() })
        };
        let fits = |n: u64| {
            let (on, start) = with(n);
            case.tried(&on, &start).starts()
        };
        let most = last(slots.saturating_sub(1), |n| n == 0 || fits(n));
        if most > 0 {
            let (on, start) = with(most);
            self.add(Knob::Adapters, Some(most.to_string()), &on, &start, Some(says("check_fewer_adapters")));
        }
    }

    /// Pairs of small changes, and three of them where no pair is enough: the first two that start, from those that cost least.
    fn together(&mut self) {
        let steps = self.steps();
        let n = steps.len();
        let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| vec![i, j]));
        let triples = (0..n).flat_map(|i| (i + 1..n).flat_map(move |j| (j + 1..n).map(move |k| vec![i, j, k])));
        let all: Vec<Vec<usize>> = pairs.chain(triples).collect();
        for chosen in all {
            if self.named.len() < 2 {
                self.all_of(&chosen.iter().map(|at| steps[*at].clone()).collect::<Vec<_>>());
            }
        }
    }

    /// Small changes of the line, the cheapest first.
    fn steps(&self) -> Vec<Step> {
        let (b, start) = (self.b, &self.case.start);
        let mut all = Vec::new();
        let mut step = |knob, value: Option<&str>, change: fn(&mut Start)| {
            if let Some(name) = spelled(self.case.launch.program, knob) {
                let flag = value.map_or_else(|| name.to_owned(), |value| format!("{name} {value}"));
                all.push(Step { knob, flag, change });
            }
        };
        if b.sequences > 256 {
            step(Knob::Sequences, Some("256"), |s| s.sequences = Some(256));
        }
        if b.pass > 2048 {
            step(Knob::Pass, Some("2048"), |s| s.pass = Some(2048));
        }
        if b.utilisation.get() < 0.95 {
            step(Knob::Share, Some("0.95"), |s| s.utilisation = Fraction::checked(0.95));
        }
        if !start.eager {
            step(Knob::Eager, None, |s| s.eager = true);
        }
        step(Knob::Longest, None, |_| {});
        all
    }

    /// Names several changes at once where they start together.
    fn all_of(&mut self, steps: &[Step]) {
        let case = self.case;
        let mut start = case.start.clone();
        for step in steps {
            (step.change)(&mut start);
        }
        let mut flags: Vec<String> = steps.iter().filter(|s| s.knob != Knob::Longest).map(|s| s.flag.clone()).collect();
        if let Some(longest) = steps.iter().find(|step| step.knob == Knob::Longest) {
            let most = budget::longest_that_starts(&case.on, &start, case.version, self.b.longest);
            // A context that nobody asks for is no way out.
            if most < self.b.longest.min(LEAST_CONTEXT) {
                return;
            }
            start.longest = Some(most);
            flags.insert(0, format!("{} {most}", longest.flag));
        }
        self.push(flags.join(" "), &case.on, &start, None);
    }

    fn longest_to(&mut self, most: u64) {
        let longest = budget::longest_that_starts(&self.case.on, &self.case.start, self.case.version, most);
        if longest > 0 {
            let said = Start { longest: Some(longest), ..self.case.start.clone() };
            self.started(Knob::Longest, Some(longest.to_string()), &said, None);
        }
    }

    fn longest(&mut self) {
        match self.b.refusal {
            Some(Refusal::TooLong { longest, .. }) => self.longest_to(longest),
            Some(Refusal::Uncut { pass, longest }) => {
                let cut = Start { chunked: Some(true), ..self.case.start.clone() };
                self.started(Knob::Chunked, None, &cut, Some(says("check_slower_prompts")));
                let whole = Start { pass: Some(longest), ..self.case.start.clone() };
                self.started(Knob::Pass, Some(longest.to_string()), &whole, None);
                self.longest_to(pass);
            }
            _ => {}
        }
    }

    fn graphs(&mut self) {
        if let Some(Refusal::Capture { .. }) = self.b.refusal {
            let eager = Start { eager: true, ..self.case.start.clone() };
            self.started(Knob::Eager, None, &eager, Some(says("check_no_graphs")));
        }
    }

    /// Another share of the memory: the smallest that is enough, the largest that leaves enough, or one that holds more.
    fn shares(&mut self) {
        let now = self.b.utilisation.get();
        let with = |share: f64| Start { utilisation: Fraction::checked(share), ..self.case.start.clone() };
        let hundredths = |from: u32, to: u32| (from..=to).map(|n| f64::from(n) / 100.0);
        // A share that leaves less than its makers ask for is none to recommend.
        let sound = |share: &f64| {
            let then = self.case.tried(&self.case.on, &with(*share));
            then.starts() && then.tight.is_none()
        };
        let found = match self.b.refusal {
            Some(Refusal::NotFree { free, .. }) => Some(prints::share_below(free, self.b.total)),
            Some(Refusal::Capture { .. } | Refusal::Sampler { .. } | Refusal::Prompt { .. }) => {
                let coarse = [0.9, 0.85, 0.8, 0.7].into_iter();
                coarse.chain(hundredths(5, 99).rev()).filter(|share| *share < now).find(sound)
            }
            Some(_) => hundredths(5, 99).filter(|share| *share > now).find(sound),
            None => [0.92, 0.95, 0.97].into_iter().filter(|share| *share > now).find(sound),
        };
        if let Some(share) = found {
            let caution = (share > 0.92 && share > now).then(|| says("check_little_spare"));
            self.started(Knob::Share, Some(format!("{share:.2}")), &with(share), caution);
        }
    }

    /// Buffers that llama.cpp asks for: the longest context there is room for, of all slots together, and what of the model the card
    /// has room for.
    fn buffers(&mut self) {
        let (b, start) = (self.b, &self.case.start);
        if self.case.launch.program != Program::LlamaCpp {
            return;
        }
        if let Some(Refusal::Buffers { .. }) = b.refusal
            && b.longest_possible >= 256
        {
            let slots = if start.unified { 1 } else { start.sequences.unwrap_or(1).max(1) };
            let longest = b.longest_possible.min(b.longest) / 256 * 256 * slots;
            let said = Start { longest: Some(longest), ..start.clone() };
            self.started(Knob::Longest, Some(longest.to_string()), &said, None);
        }
        if !self.starts {
            self.on_host();
        }
    }

    /// The most layers on the card, and the fewest layers of experts beside it, with which llama.cpp starts on one card.
    fn on_host(&mut self) {
        let (case, on) = (self.case, &self.case.on);
        let several = on.split.as_ref().is_some_and(|split| !split.cards.is_empty());
        let Some(shape) = on.model.shape().filter(|_| !several && !on.system.chip.processor) else { return };
        let layers = case.start.layers.map_or(shape.n_layers(), |n| n.min(shape.n_layers()));
        let split = |start: &Start| {
            let split = hosted(start).split(self.catalog, on).ok()?;
            Some(Deployment { split: Some(split.into()), ..on.clone() })
        };
        let fits = |start: &Start| split(start).is_some_and(|on| case.tried(&on, start).starts());
        let with = |n: u64| Start { layers: Some(n), ..case.start.clone() };
        let experts = |n: u64| Start { expert_layers: Some(n), ..case.start.clone() };
        let few = (shape.moe().is_some() && case.start.expert_layers.is_none())
            .then(|| shape.n_layers() - last(shape.n_layers(), |kept| fits(&experts(shape.n_layers() - kept))))
            .filter(|n| *n > 0 && fits(&experts(*n)));
        let most = Some(last(layers, |n| fits(&with(n)))).filter(|n| *n > 0);
        if let Some((n, next)) = few.and_then(|n| Some((n, split(&experts(n))?))) {
            self.add(Knob::ExpertLayers, Some(n.to_string()), &next, &experts(n), Some(says("check_experts_on_host")));
        }
        if let Some((n, next)) = most.and_then(|n| Some((n, split(&with(n))?))) {
            self.add(Knob::Layers, Some(n.to_string()), &next, &with(n), Some(says("check_layers_on_host")));
        }
    }

    /// Experts that are dealt out whole instead of cut.
    fn whole_experts(&mut self) {
        let (case, d) = (self.case, self.case.on.layout.degrees());
        let ep = d.tp * d.dp;
        let Ok(layout) = Layout::new(Degrees { ep, etp: 1, ..d }) else { return };
        let whole = Deployment { layout, ..case.on.clone() };
        let named = (case.launch.program != Program::Vllm).then(|| ep.to_string());
        self.add(Knob::Experts, named, &whole, &case.start, Some(says("check_whole_experts")));
    }

    fn passes(&mut self) {
        let (b, start) = (self.b, &self.case.start);
        // Fewer slots of llama.cpp share the same context.
        if b.sequences > 256 && self.case.launch.program != Program::LlamaCpp {
            let said = Start { sequences: Some(256), ..start.clone() };
            self.started(Knob::Sequences, Some("256".into()), &said, Some(says("check_fewer_sequences")));
        }
        if b.pass > 2048 {
            let said = Start { pass: Some(2048), sequences: Some(b.sequences.min(2048)), ..start.clone() };
            let slower = Some(says("check_slower_prompts"));
            // A shorter pass is refused where prompts are not cut; cutting them makes it shorter.
            if let Some(Refusal::Uncut { .. }) = self.case.tried(&self.case.on, &said).refusal {
                let cut = Start { chunked: Some(true), ..start.clone() };
                self.started(Knob::Chunked, None, &cut, slower);
            } else {
                self.started(Knob::Pass, Some("2048".into()), &said, slower);
            }
        }
    }

    fn formats(&mut self) {
        let (case, on) = (self.case, &self.case.on);
        if on.kv.bits() > 12.0 {
            let said = Start { halves: None, ..case.start.clone() };
            let kv = crate::desk::remedy::narrow_cache(&on.engine);
            self.add(Knob::Kv, None, &Deployment { kv, ..on.clone() }, &said, Some(says("check_narrow_cache")));
        }
        if !self.starts && on.formats.linear.bits() > 12.0 {
            let narrow = Deployment { formats: on.model.formats_in(Dtype::Fp8), ..on.clone() };
            self.add(Knob::Weights, None, &narrow, &case.start, Some(says("check_narrow_weights")));
        }
    }

    /// More of the weights with the host, where the line leaves some there already: the fewest GiB with which it starts.
    fn offloaded(&mut self) {
        let (case, gibibyte) = (self.case, Bytes::gib(1.0).get());
        let Some(now) = case.start.offload.filter(|_| !self.starts) else { return };
        let with = |n: u64| Start { offload: Some(Bytes::gib(n as f64)), ..case.start.clone() };
        let from = (now.get() / gibibyte).floor() as u64 + 1;
        let most = from + (self.b.weights.get() / gibibyte).ceil() as u64;
        let found = (from..=most).find(|n| case.tried(&case.on, &with(*n)).starts());
        if let Some(n) = found {
            let caution = says("check_more_offloaded").with("more", Bytes::gib(n as f64).less(now));
            self.started(Knob::Offload, Some(n.to_string()), &with(n), Some(caution));
        }
    }

    fn wider(&mut self) {
        let limit = self.case.limit;
        self.over(|on| limit.is_none_or(|most| on.layout.chips() <= most), None);
    }

    /// A larger machine, where nothing on this one is enough.
    fn on_more_chips(&mut self) {
        self.over(|_| true, self.case.limit);
    }

    /// Tensors over the fewest chips with which it starts.
    fn over(&mut self, there: impl Fn(&Deployment) -> bool, limit: Option<u64>) {
        if self.starts {
            return;
        }
        let (case, start) = (self.case, &self.case.start);
        let d = case.on.layout.degrees();
        let wider = |tp: &u64| widened(&case.on, d, *tp).filter(|on| there(on) && case.tried(on, start).starts());
        let found = [2, 4, 8, 16, 32].iter().filter(|tp| **tp > d.tp).find_map(|tp| Some((*tp, wider(tp)?)));
        let Some((tp, wider)) = found else { return };
        // SGLang's degree counts the groups that attention is cut into.
        let together = case.launch.flags.iter().any(|f| f.flag.contains("enable-dp-attention"));
        let groups = if together { d.dp } else { 1 };
        let caution = says("check_more_chips").with("chips", wider.layout.chips()).with("there", limit);
        self.add(Knob::Tp, Some((tp * groups).to_string()), &wider, start, Some(caution));
    }
}

fn widened(on: &Deployment, d: Degrees, tp: u64) -> Option<Deployment> {
    let etp = if d.etp >= d.tp { d.etp / d.tp * tp } else { d.etp };
    let ep = if d.ep > 1 && d.etp == 1 { d.ep / d.tp * tp } else { d.ep };
    let layout = Layout::new(Degrees { tp, etp, ep, ..d }).ok()?;
    let legal = on.model.shape().is_none_or(|shape| check_shape(shape, &layout.degrees()).is_ok());
    legal.then(|| Deployment { layout, ..on.clone() })
}
