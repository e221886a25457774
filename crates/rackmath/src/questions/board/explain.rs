//! Every number opened into its equation: with symbols, with values, with sources.

use crate::desk::prelude::*;
use crate::step;
use rackmath_spec::Cited;
use rackmath_theory::board::{Counting, Step};
use rackmath_theory::count::Part;
use rackmath_theory::roofline::Overlap;
use rackmath_theory::term::{self, Expr, max, min, num, sym};
use rackmath_units::{BytesPerParam, FlopPerToken, FlopRate, Quantity, SecondsPerToken};

type Input = term::Input<Remark>;

/// What to explain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine.
    pub setting: Setting,
    /// Which number.
    #[schemars(extend("x-position" = 1))]
    pub what: What,
    /// Sequences in the batch.
    #[schemars(extend("x-flag" = "batch -b max-num-seqs batch-size", "x-none" = "where compute meets memory"))]
    pub batch: Option<f64>,
    /// Tokens of context of each sequence: 4096, 128k, 128Ki.
    #[schemars(extend("x-flag" = "context -c isl max-model-len context-length"))]
    pub context: f64,
}

impl Default for Request {
    fn default() -> Self {
        let s = step::Request::default();
        Self { setting: s.setting, what: What::Step, batch: s.batch, context: s.context }
    }
}

/// A number that can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// Time of one decode step.
    Step,
    /// Time to read the weights, t_w.
    Weights,
    /// Time to multiply one token, c.
    Compute,
    /// Time to read one sequence's cache, k.
    Kv,
    /// Dollars per million tokens.
    Cost,
    /// Batch at which compute takes as long as memory, B*.
    Balance,
    /// Context at which an endless batch is balanced, L*.
    Context,
    /// The dimensionless ridge, R.
    Ridge,
    /// Parameters read over parameters multiplied, S.
    Sparsity,
    /// Time to read all of the memory once.
    Drain,
    /// Tokens per second of the machine.
    Rate,
    /// All of them.
    All,
}

/// The workings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub system: String,
    /// One per number, the one asked for first, then those it is made of.
    pub workings: Vec<Working>,
    /// Says that the machine does not hold what the numbers speak of, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_held: Option<Remark>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// One number and its equation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Working {
    /// Its symbol.
    pub symbol: String,
    /// What it is.
    pub meaning: Remark,
    /// The equation in symbols.
    pub equation: String,
    /// The equation in values.
    pub substituted: String,
    /// The result with its unit.
    pub result: Remark,
    /// The result in base units.
    pub value: f64,
    /// What goes in.
    pub inputs: Vec<Input>,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let asked = step::Request {
        setting: request.setting.clone(),
        batch: request.batch,
        context: request.context,
        ..step::Request::default()
    };
    let r = resolve(catalog, &request.setting)?;
    let e = Explainer { step: step::of(&r, &asked)?, r: &r };
    let asked = match request.what {
        What::Step => vec![e.step()],
        What::Weights => vec![e.weights()],
        What::Compute => vec![e.compute()],
        What::Kv => vec![e.kv(), e.kv_bytes()],
        What::Cost => vec![e.cost()],
        What::Balance => vec![e.balance()],
        What::Context => vec![e.balanced_context()],
        What::Ridge => vec![e.ridge()],
        What::Sparsity => vec![e.sparsity()],
        What::Drain => vec![e.drain()],
        What::Rate => vec![e.rate()],
        What::All => {
            let times = [e.step(), e.weights(), e.compute(), e.kv(), e.kv_bytes(), e.cost()];
            let others = [e.balance(), e.balanced_context(), e.ridge(), e.sparsity(), e.drain(), e.rate()];
            times.into_iter().chain(others).collect()
        }
    };
    let workings = e.opened(asked);
    // What a machine or a model is by itself holds whether or not one holds the other.
    let alone = matches!(request.what, What::Ridge | What::Sparsity | What::Drain);
    let not_held = if alone { None } else { e.not_held(matches!(request.what, What::Balance | What::All)) };
    let (model, system) = (r.model.name.clone(), r.system.name.clone());
    Ok(Answer { model, system, workings, not_held, assumptions: r.assumptions() })
}

struct Explainer<'a> {
    r: &'a Resolved,
    step: Step,
}

/// Digits that let a reader check the arithmetic.
const DIGITS: usize = 5;

fn input(symbol: &str, meaning: impl Into<Remark>, value: impl Quantity, source: impl Into<Remark>) -> Input {
    let (symbol, meaning, source) = (symbol.into(), meaning.into(), source.into());
    Input { symbol, meaning, value: value.number(), shown: value.text(DIGITS), source }
}

/// A count, in full when it is whole.
fn whole(symbol: &str, meaning: impl Into<Remark>, n: f64, source: impl Into<Remark>) -> Input {
    let input = input(symbol, meaning, n, source);
    if n.fract() == 0.0 { Input { shown: grouped(n), ..input } } else { input }
}

fn time(symbol: &str, meaning: impl Into<Remark>, value: Seconds) -> Input {
    input(symbol, meaning, value, says("derived_below"))
}

/// A value of the catalogue with its source.
fn cited<Q: Quantity>(symbol: &str, meaning: impl Into<Remark>, value: &Cited<Q>) -> Input {
    input(symbol, meaning, value.value, &value.source)
}

/// An equation worked out, its result in the unit that `unit` makes of it.
fn working<Q: Quantity>(
    symbol: &str,
    meaning: Remark,
    equation: &Expr,
    inputs: &[Input],
    unit: fn(f64) -> Q,
) -> Working {
    let value = equation.value(inputs);
    Working {
        symbol: symbol.into(),
        meaning,
        equation: equation.symbolic(),
        substituted: equation.substituted(inputs),
        result: if value.is_finite() && value >= 0.0 {
            unit(value).text(DIGITS).into()
        } else {
            says("does_not_exist")
        },
        value,
        inputs: inputs.to_vec(),
    }
}

impl Explainer<'_> {
    /// The workings asked for, and below them one for every symbol of theirs that is derived, with the value it is used with.
    fn opened(&self, asked: Vec<Working>) -> Vec<Working> {
        let (mut opened, mut next) = (asked, 0);
        while next < opened.len() {
            for i in opened[next].inputs.clone() {
                if i.source == says("derived_below") && !opened.iter().any(|w| w.symbol == i.symbol) {
                    opened.push(self.derived(&i.symbol));
                }
            }
            next += 1;
        }
        opened
    }

    /// The working of a symbol that equations call derived.
    fn derived(&self, symbol: &str) -> Working {
        match symbol {
            "t" => self.step(),
            "t_w" => self.weights(),
            "t_w(B*)" => self.weights_at_balance(),
            "c" => self.compute(),
            "c0" => self.multiply(),
            "k" => self.kv(),
            "k'" => self.slope(),
            "kv(L*)" => self.kv_bytes_at(self.star(), "L*", says("where_they_meet")),
            _ => unreachable!("{symbol} is not derived"),
        }
    }

    /// What the machine cannot hold: this batch, or that of the balance.
    fn not_held(&self, balance: bool) -> Option<Remark> {
        let m = step::memory(self.r, &self.step);
        if !m.fits {
            let missing = says("step_does_not_fit").with("missing", Bytes::b(m.missing_bytes));
            return Some(missing.with("chips", m.chips_min));
        }
        let star = self.r.board.balance_batch(self.step.context).filter(|_| balance)?;
        let most = m.batch_max.filter(|most| *most < star)?;
        Some(says("balance_does_not_fit").with("most", most))
    }

    fn batch(&self) -> Input {
        whole("B", says("sequences_in_batch"), self.step.batch.get(), says("the_question"))
    }

    fn bandwidth(&self) -> Input {
        let each = &self.r.system.chip.memory.bandwidth;
        let source = says("bandwidth_of_all").with("chips", self.r.system.n_chips).with("each", each.value);
        let source = source.with("source", &each.source);
        input("W", says("bandwidth_of_machine"), self.r.system.bandwidth(), source)
    }

    /// Parameters a step reads, and those of them multiplied with each token.
    fn counted(&self) -> [Input; 2] {
        let (source, count) = (says("counted_from").with("source", &self.r.model.source), &self.r.count);
        let read = input("N_tot", says("parameters_read"), count.read(), source.clone());
        [read, input("N_act", says("parameters_multiplied"), count.multiplied(), source)]
    }

    fn step(&self) -> Working {
        let (t, b) = (self.step.terms, self.step.batch.get());
        let inputs = [
            self.batch(),
            time("t_w", says("reading_weights"), t.weights),
            time("c", says("multiplying_one_token"), t.compute / b),
            time("k", says("reading_cache"), t.kv / b),
        ];
        let (compute, kv) = (sym("B") * sym("c"), sym("B") * sym("k"));
        let equation = match self.r.overlap {
            Overlap::Max => max(compute, sym("t_w") + kv),
            Overlap::Sum => compute + sym("t_w") + kv,
            Overlap::KvThenMax => kv + max(sym("t_w"), compute),
            Overlap::Partial(share) => {
                let (m, s) = (max(compute.clone(), sym("t_w") + kv.clone()), compute + sym("t_w") + kv);
                num(share.get()) * m + num(share.rest().get()) * s
            }
        };
        working("t", says("time_of_decode_step"), &equation, &inputs, Seconds::s)
    }

    /// Weight bytes: those always read and those of the experts a batch touches.
    fn weights(&self) -> Working {
        self.weights_read("t_w", self.step.terms.weights)
    }

    /// The same for the batch at which compute takes as long as memory; all of them where there is none.
    fn weights_at_balance(&self) -> Working {
        self.weights_read("t_w(B*)", self.balance_weights())
    }

    fn balance_weights(&self) -> Seconds {
        let (board, context) = (&self.r.board, self.step.context);
        let at = |b: f64| board.step(Tokens::new(b.max(1e-9)), context, Tokens::new(1.0)).terms.weights;
        board.balance_batch(context).map_or_else(|| board.weights(), at)
    }

    fn weights_read(&self, symbol: &str, time: Seconds) -> Working {
        let routed = self.r.count.read_bytes_in(Part::Routed, &self.r.formats).get();
        let all = self.r.board.weights().get() * self.r.system.bandwidth().get();
        let source = says("counted_in").with("formats", self.r.format_words());
        if routed == 0.0 || self.r.counting == Counting::Lecture || self.r.model.shape().is_none() {
            let per_param = BytesPerParam::new(all / self.r.count.read().get());
            let width = input("w", says("bytes_per_parameter"), per_param, source);
            let [read, _] = self.counted();
            let (equation, inputs) = (sym("w") * sym("N_tot") / sym("W"), [width, read, self.bandwidth()]);
            return working(symbol, says("time_to_read_every_weight"), &equation, &inputs, Seconds::s);
        }
        let touched = (time.get() * self.r.system.bandwidth().get() - (all - routed)) / routed;
        let chosen = says("chosen_at_random");
        let inputs = [
            input("M_always", says("bytes_always_read"), Bytes::b(all - routed), source.clone()),
            input("M_routed", says("bytes_of_routed_experts"), Bytes::b(routed), source),
            input("f", says("share_of_experts_touched"), touched, chosen),
            self.bandwidth(),
        ];
        let equation = (sym("M_always") + sym("M_routed") * sym("f")) / sym("W");
        working(symbol, says("time_to_read_touched_weights"), &equation, &inputs, Seconds::s)
    }

    fn compute(&self) -> Working {
        let (mut equation, mut inputs) = self.products();
        if let Some([flop, peak]) = self.attention(self.step.context, "A") {
            inputs.extend([flop, peak]);
            equation = equation + sym("A") / sym("F_a");
        }
        working("c", says("time_to_multiply_token"), &equation, &inputs, SecondsPerToken::new)
    }

    /// The part of it that does not depend on the context.
    fn multiply(&self) -> Working {
        let (equation, inputs) = self.products();
        working("c0", says("multiplying_without_attention"), &equation, &inputs, SecondsPerToken::new)
    }

    /// Multiplying a token with the weights.
    fn products(&self) -> (Expr, Vec<Input>) {
        // Parts may run in different arithmetics: the rate shown is the one that gives the same time.
        let rate = 2.0 * self.r.count.multiplied().get() / self.r.board.compute_per_token().get();
        let (m, p) = self.r.main_math().expect("a resolved setting has a peak");
        let math = says("peak_of_all").with("chips", self.r.system.n_chips).with("peak", p).with("math", m);
        let math = math.with("source", &self.r.system.chip.peak[&m].source);
        let peak = says("dense_peak_of_machine");
        let [_, multiplied] = self.counted();
        // A multiplication and an addition per parameter.
        let equation = num(2.0) * sym("N_act") / sym("F");
        (equation, vec![multiplied, input("F", peak, FlopRate::flop_per_s(rate), math)])
    }

    /// Attention FLOP of a token at a context, and the peak they run at; nothing where they are not counted.
    fn attention(&self, context: Tokens, symbol: &str) -> Option<[Input; 2]> {
        let time = self.r.board.attention_per_token(context).get();
        let flop = self.r.cache.decode_flop(context).get();
        (time > 0.0).then(|| {
            let (flop, peak) = (FlopPerToken::new(flop), FlopRate::flop_per_s(flop / time));
            let flop = input(symbol, says("attention_flop_of_token"), flop, says("counted_from_layers"));
            [flop, input("F_a", says("dense_peak_for_cache"), peak, says("data_sheet"))]
        })
    }

    fn kv(&self) -> Working {
        let bytes = self.r.cache.read(self.step.context);
        let what = says("bytes_of_cache_read");
        let inputs = [input("kv(L)", what, bytes, says("explained_by_kv")), self.bandwidth()];
        working("k", says("time_to_read_cache"), &(sym("kv(L)") / sym("W")), &inputs, Seconds::s)
    }

    /// The cache read kind by kind.
    fn kv_bytes(&self) -> Working {
        self.kv_bytes_at(self.step.context, "L", says("the_question"))
    }

    fn kv_bytes_at(&self, context: Tokens, name: &str, source_of_context: Remark) -> Working {
        let mut inputs = vec![whole(name, says("tokens_of_context"), context.get(), source_of_context)];
        let mut equation: Option<Expr> = None;
        let source = &self.r.model.source;
        for (i, piece) in self.r.cache.pieces.iter().enumerate() {
            let [n, bytes, cap] = ["n", "b", "w"].map(|letter| format!("{letter}{}", i + 1));
            let each = if piece.fixed > 0.0 { piece.fixed } else { piece.per_token };
            let unit = if piece.fixed > 0.0 { says("bytes_per_layer") } else { says("bytes_per_layer_and_token") };
            inputs.push(whole(&n, says("layers_of_piece").with("kind", piece.what), piece.layers as f64, source));
            inputs.push(input(&bytes, unit, Bytes::b(each), says("cache_in").with("format", self.r.kv)));
            let mut term = sym(&n) * sym(&bytes);
            if piece.fixed == 0.0 && piece.cap.is_finite() {
                inputs.push(whole(&cap, says("tokens_at_most"), piece.cap, source));
                term = term * min(sym(name), sym(&cap));
            } else if piece.fixed == 0.0 {
                term = term * sym(name);
            }
            equation = Some(equation.map_or(term.clone(), |sum| sum + term));
        }
        let equation = equation.unwrap_or(num(0.0));
        working(&format!("kv({name})"), says("bytes_of_cache_read"), &equation, &inputs, Bytes::b)
    }

    fn cost(&self) -> Working {
        let price = input("p", says("price_of_machine"), self.r.price(), self.r.price_source.remark());
        let inputs = [price, time("t", says("time_of_step"), self.step.time), self.batch()];
        let equation = sym("p") * sym("t") / sym("B");
        working("cost", says("cost_of_token"), &equation, &inputs, DollarsPerToken::usd_per_token)
    }

    fn balance(&self) -> Working {
        let (board, context) = (&self.r.board, self.step.context);
        let c = board.compute_per_token() + board.attention_per_token(context);
        let k = board.kv_per_sequence(context);
        let inputs = [
            time("t_w(B*)", says("reading_touched_weights"), self.balance_weights()),
            time("c", says("multiplying_with_attention"), Seconds::s(c.get())),
            time("k", says("reading_cache"), Seconds::s(k.get())),
        ];
        let equation = sym("t_w(B*)") / (sym("c") - sym("k"));
        let mut w = working("B*", says("batch_of_balance"), &equation, &inputs, f64::from);
        if c.get() <= k.get() {
            w.result = says("cache_takes_longer");
        }
        w
    }

    fn balanced_context(&self) -> Working {
        let (board, what) = (&self.r.board, says("context_of_balance"));
        if board.balanced_context().is_none() {
            let context = whole("L", says("tokens_of_context"), self.step.context.get(), says("the_question"));
            return Working {
                equation: "c(L) = k(L)".into(),
                substituted: "no solution".into(),
                result: says("cache_keeps_pace"),
                ..working("L*", what, &sym("L"), &[context], f64::from)
            };
        }
        let inputs = [
            time("c0", says("multiplying_without_attention"), Seconds::s(board.compute_per_token().get())),
            time("k'", says("cache_time_less_attention"), Seconds::s(self.slope().value)),
        ];
        working("L*", what, &(sym("c0") / sym("k'")), &inputs, f64::from)
    }

    /// The balanced context; nothing where there is none.
    fn star(&self) -> Tokens {
        self.r.board.balanced_context().unwrap_or_default()
    }

    /// Cache time less attention time, per token of context: between two corners both are lines, so L* is where the mean
    /// slope up to it meets the time of multiplying.
    fn slope(&self) -> Working {
        let star = self.star();
        let mut inputs = vec![
            input("kv(L*)", says("bytes_of_cache_read"), self.r.cache.read(star), says("derived_below")),
            self.bandwidth(),
            whole("L*", says("context_of_balance"), star.get(), says("where_they_meet")),
        ];
        let mut gap = sym("kv(L*)") / sym("W");
        if let Some([flop, peak]) = self.attention(star, "A(L*)") {
            inputs.extend([flop, peak]);
            gap = gap - sym("A(L*)") / sym("F_a");
        }
        let slope = working("k'", says("cache_time_less_attention"), &(gap / sym("L*")), &inputs, Seconds::s);
        if star.get() > 0.0 { slope } else { Working { value: 0.0, ..slope } }
    }

    fn ridge(&self) -> Working {
        let chip = &self.r.system.chip;
        let (math, _) = self.r.main_math().expect("a resolved setting has a peak");
        let format = self.r.main_format();
        let inputs = [
            cited("F", says("dense_peak_of_chip").with("math", math), &chip.peak[&math]),
            input("w", says("bytes_per_weight"), format.width(), says("weights_of").with("format", format)),
            cited("W", says("bandwidth_of_chip"), &chip.memory.bandwidth),
        ];
        // Half of the FLOP are multiplications.
        let equation = sym("F") / num(2.0) * sym("w") / sym("W");
        let what = says("tokens_to_share_a_weight");
        working("R", what, &equation, &inputs, f64::from)
    }

    fn sparsity(&self) -> Working {
        let (what, equation) = (says("read_over_multiplied"), sym("N_tot") / sym("N_act"));
        working("S", what, &equation, &self.counted(), f64::from)
    }

    fn drain(&self) -> Working {
        let memory = &self.r.system.chip.memory;
        let capacity = cited("C", says("memory_of_chip"), memory.usable.as_ref().unwrap_or(&memory.capacity));
        let inputs = [capacity, cited("W", says("bandwidth_of_chip"), &memory.bandwidth)];
        working("T_drain", says("time_to_drain"), &(sym("C") / sym("W")), &inputs, Seconds::s)
    }

    fn rate(&self) -> Working {
        let inputs = [self.batch(), time("t", says("time_of_step"), self.step.time)];
        working("rate", says("rate_of_machine"), &(sym("B") / sym("t")), &inputs, TokenRate::per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of each working must be the number the board computes, however many equations lie between.
    #[test]
    fn workings_agree_with_the_board() {
        const MODELS: &str = "deepseek-v3 deepseek-v3.2 deepseek-v4-pro gpt-oss-120b gemma-3-27b qwen3.5-397b-a17b \
                              llama-3.1-8b lecture-frontier";
        let catalog = rackmath_catalog::embedded();
        let (batch, context) = (96.0, Tokens::new(20_000.0));
        let countings = ["max", "sum", "kv+max", "0.3"].map(|o| ["strict", "lecture"].map(|c| (o, c))).concat();
        for (model, (overlap, counting)) in MODELS.split(' ').flat_map(|m| countings.iter().map(move |c| (m, c))) {
            let mut setting = Setting { model: model.into(), overlap: (*overlap).into(), ..Setting::default() };
            setting.counting = (*counting).into();
            let r = resolve(&catalog, &setting).unwrap();
            let request = Request { setting, what: What::All, batch: Some(batch), context: context.get() };
            let workings = answer(&catalog, &request).unwrap().workings;
            let s = r.board.step(Tokens::new(batch), context, Tokens::new(1.0));
            let mut expected = vec![
                ("t", s.time.get()),
                ("t_w", s.terms.weights.get()),
                ("c", s.terms.compute.get() / batch),
                ("k", s.terms.kv.get() / batch),
                ("kv(L)", r.cache.read(context).get()),
                ("cost", s.cost.get()),
                ("rate", s.rate().get()),
            ];
            expected.extend(r.board.balance_batch(context).map(|b| ("B*", b)));
            expected.extend(r.board.balanced_context().filter(|l| l.get() > 0.0).map(|l| ("L*", l.get())));
            for (symbol, value) in expected {
                let got = workings.iter().find(|w| w.symbol == symbol).unwrap().value;
                let close = (got / value - 1.0).abs() < 1e-9;
                assert!(close, "{model} {overlap} {counting} {symbol}: {got} is not {value}");
            }
        }
    }

    /// The value a symbol is used with is the value it opens into, and no symbol stands for two values.
    #[test]
    fn every_symbol_opens_into_the_value_it_was_used_with() {
        let catalog = rackmath_catalog::embedded();
        let whats = [What::Step, What::Cost, What::Balance, What::Context, What::Rate, What::All];
        let on = ["b200", "8xh100", "h100", "gb200-nvl72", "rtx-4090", "8xmi300x"];
        let (models, mut looked, mut state) = (catalog.ids(rackmath_spec::Kind::Models), 0, 7_u64);
        let mut draw = move |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        for model in models {
            let (on, what) = (on[draw(on.len())], whats[draw(whats.len())]);
            let batch = [None, Some(1.0), Some(97.0), Some(20_000.0)][draw(4)];
            let context = [0.0, 512.0, 4096.0, 100_000.0][draw(4)];
            let setting = Setting { model: model.into(), on: on.into(), ..Setting::default() };
            let Ok(a) = answer(&catalog, &Request { setting, what, batch, context }) else { continue };
            let mut values: std::collections::BTreeMap<&str, f64> = std::collections::BTreeMap::new();
            for w in &a.workings {
                assert!(values.insert(&w.symbol, w.value).is_none(), "{model} on {on}: {} stands twice", w.symbol);
            }
            for (w, i) in a.workings.iter().flat_map(|w| w.inputs.iter().map(move |i| (w, i))) {
                let opened = values.get(&*i.symbol);
                let derived = i.source == says("derived_below");
                assert!(opened.is_some() || !derived, "{model} on {on}: {} of {} is not opened", i.symbol, w.symbol);
                // Letters of data sheets (F and W of a chip, of a machine) are not opened.
                let Some(value) = opened.filter(|v| v.is_finite()) else { continue };
                let close = (value - i.value).abs() <= 1e-9 * i.value.abs().max(f64::MIN_POSITIVE);
                assert!(close, "{model} on {on}: {} of {} is {}, opened {value}", i.symbol, w.symbol, i.value);
                looked += 1;
            }
        }
        assert!(looked > 200, "{looked}");
    }

    #[test]
    fn the_balance_of_a_mixture_reads_the_experts_of_its_own_batch() {
        // DeepSeek V3 on a B200: 671.3 GB at 8 TB/s are 83.9 ms, all experts being touched by 7,179 tokens.
        let setting = Setting { model: "deepseek-v3".into(), on: "b200".into(), ..Setting::default() };
        let request = Request { setting, what: What::Balance, ..Request::default() };
        let a = answer(&rackmath_catalog::embedded(), &request).unwrap();
        let opened = a.workings.iter().find(|w| w.symbol == "t_w(B*)").unwrap();
        assert!((opened.value - 83.9e-3).abs() < 0.05e-3, "{}", opened.value);
        assert_eq!(a.not_held.unwrap().says, "step_does_not_fit");
    }
}
