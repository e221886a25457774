//! Every number opened into its equation: with symbols, with values, with sources.

use crate::setting::{Resolved, Setting, resolve, tokens};
use crate::{Error, step};
use rackmath_spec::{Catalog, nearest};
use rackmath_theory::board::{Balance, Counting, Step};
use rackmath_theory::count::Part;
use rackmath_theory::roofline::Overlap;
use rackmath_theory::term::{Expr, Input, max, min, num, sym};
use rackmath_units::{
    ByteRate, Bytes, BytesPerParam, DollarRate, DollarsPerToken, FlopPerToken, FlopRate, Seconds, SecondsPerToken,
    TokenRate, Tokens, grouped, significant,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to explain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine.
    pub setting: Setting,
    /// Which number: step, weights, compute, kv, cost, balance, context, ridge, sparsity, drain, rate, or all.
    #[schemars(extend("x-position" = 1))]
    pub what: String,
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
        Self { setting: s.setting, what: "step".into(), batch: s.batch, context: s.context }
    }
}

/// The numbers that can be explained, and what each is.
pub const TOPICS: [(&str, &str); 11] = [
    ("step", "time of one decode step"),
    ("weights", "time to read the weights, t_w"),
    ("compute", "time to multiply one token, c"),
    ("kv", "time to read one sequence's cache, k"),
    ("cost", "dollars per million tokens"),
    ("balance", "batch at which compute takes as long as memory, B*"),
    ("context", "context at which an endless batch is balanced, L*"),
    ("ridge", "the dimensionless ridge, R"),
    ("sparsity", "parameters read over parameters multiplied, S"),
    ("drain", "time to read all of the memory once"),
    ("rate", "tokens per second of the machine"),
];

/// The workings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub system: String,
    /// One per number, the one asked for first, then those it is made of.
    pub workings: Vec<Working>,
    /// What the numbers assume.
    pub assumptions: Vec<String>,
}

/// One number and its equation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Working {
    /// Its symbol.
    pub symbol: String,
    /// What it is.
    pub meaning: String,
    /// The equation in symbols.
    pub equation: String,
    /// The equation in values.
    pub substituted: String,
    /// The result with its unit.
    pub result: String,
    /// The result in base units.
    pub value: f64,
    /// What goes in.
    pub inputs: Vec<InputShown>,
}

/// One input of an equation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InputShown {
    /// Its symbol.
    pub symbol: String,
    /// What it is.
    pub meaning: String,
    /// Its value with its unit.
    pub value: String,
    /// Where it comes from.
    pub source: String,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let r = resolve(catalog, &request.setting)?;
    let context = tokens("context", request.context, 0.0)?;
    let step_request =
        step::Request { setting: request.setting.clone(), batch: request.batch, context: request.context, pass: 1.0 };
    let batch = Tokens::new(step::answer(catalog, &step_request)?.batch);
    let e = Explainer { step: r.board.step(batch, context, Tokens::new(1.0)), r: &r };
    let workings = match request.what.as_str() {
        "step" => vec![e.step(), e.weights(), e.compute(), e.kv()],
        "weights" => vec![e.weights()],
        "compute" => vec![e.compute()],
        "kv" => vec![e.kv(), e.kv_bytes()],
        "cost" => vec![e.cost(), e.step()],
        "balance" => vec![e.balance(), e.weights(), e.compute(), e.kv()],
        "context" => vec![e.balanced_context(), e.compute(), e.kv_bytes()],
        "ridge" => vec![e.ridge()],
        "sparsity" => vec![e.sparsity()],
        "drain" => vec![e.drain()],
        "rate" => vec![e.rate(), e.step()],
        "all" => vec![
            e.step(),
            e.weights(),
            e.compute(),
            e.kv(),
            e.kv_bytes(),
            e.cost(),
            e.balance(),
            e.balanced_context(),
            e.ridge(),
            e.sparsity(),
            e.drain(),
            e.rate(),
        ],
        other => {
            let near = nearest(other, TOPICS.iter().map(|(name, _)| *name));
            let near = near.first().map_or(String::new(), |n| format!("; did you mean \"{n}\"?"));
            let all: Vec<&str> = TOPICS.iter().map(|(name, _)| *name).collect();
            return Err(Error::value("what", format!("\"{other}\""), format!("{} or all{near}", all.join(", "))));
        }
    };
    Ok(Answer { model: r.model.name.clone(), system: r.system.name.clone(), workings, assumptions: r.assumptions() })
}

struct Explainer<'a> {
    r: &'a Resolved,
    step: Step,
}

/// Digits that let a reader check the arithmetic.
const DIGITS: usize = 5;

fn input(symbol: &str, meaning: &str, value: f64, shown: String, source: impl Into<String>) -> Input {
    Input { symbol: symbol.into(), meaning: meaning.into(), value, shown, source: source.into() }
}

fn working(symbol: &str, meaning: &str, equation: &Expr, inputs: &[Input], show: impl Fn(f64) -> String) -> Working {
    let value = equation.value(inputs);
    Working {
        symbol: symbol.into(),
        meaning: meaning.into(),
        equation: equation.symbolic(),
        substituted: equation.substituted(inputs),
        result: if value.is_finite() && value >= 0.0 { show(value) } else { "does not exist".into() },
        value,
        inputs: inputs
            .iter()
            .map(|i| InputShown {
                symbol: i.symbol.clone(),
                meaning: i.meaning.clone(),
                value: i.shown.clone(),
                source: i.source.clone(),
            })
            .collect(),
    }
}

fn time(symbol: &str, meaning: &str, value: f64) -> Input {
    input(symbol, meaning, value, seconds(value), "derived below")
}

/// A count in full when it is whole.
fn whole(value: f64) -> String {
    if value.fract() == 0.0 { grouped(value) } else { significant(value, DIGITS) }
}

fn seconds(value: f64) -> String {
    Seconds::s(value).show(DIGITS)
}

impl Explainer<'_> {
    fn batch(&self) -> Input {
        let b = self.step.batch.get();
        input("B", "sequences in the batch", b, whole(b), "the question")
    }

    fn context(&self) -> Input {
        let l = self.step.context.get();
        input("L", "tokens of context", l, whole(l), "the question")
    }

    fn bandwidth(&self) -> Input {
        let w = self.r.system.bandwidth().get();
        let chip = &self.r.system.chip;
        let source =
            format!("{} x {}: {}", self.r.system.n_chips, chip.memory.bandwidth.value, chip.memory.bandwidth.source);
        input("W", "memory bandwidth of the machine", w, ByteRate::b_per_s(w).show(DIGITS), source)
    }

    fn multiplied(&self) -> Input {
        let n = self.r.count.multiplied();
        input(
            "N_act",
            "parameters multiplied with each token",
            n.get(),
            n.show(DIGITS),
            format!("counted from {}", self.r.model.source),
        )
    }

    fn read(&self) -> Input {
        let n = self.r.count.read();
        input(
            "N_tot",
            "parameters a step reads: all but lookup tables",
            n.get(),
            n.show(DIGITS),
            format!("counted from {}", self.r.model.source),
        )
    }

    fn price(&self) -> Input {
        let p = self.r.price().get();
        input("p", "price of the machine", p, DollarRate::usd_per_s(p).show(DIGITS), self.r.price_source.to_string())
    }

    fn step(&self) -> Working {
        let t = self.step.terms;
        let inputs = [
            self.batch(),
            time("c", "multiplying one token", t.compute.get() / self.step.batch.get()),
            time("t_w", "reading the weights", t.weights.get()),
            time("k", "reading one sequence's cache", t.kv.get() / self.step.batch.get()),
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
        working("t", "time of one decode step", &equation, &inputs, seconds)
    }

    /// Weight bytes: those always read and those of the experts a batch touches.
    fn weights(&self) -> Working {
        let routed = self.r.count.read_bytes_in(Part::Routed, &self.r.formats).get();
        let all = self.r.board.weights().get() * self.r.system.bandwidth().get();
        let show = |b: f64| Bytes::b(b).show(DIGITS);
        let source = format!("counted, in {}", self.r.format_words());
        if routed == 0.0 || self.r.counting == Counting::Lecture || self.r.model.shape().is_none() {
            let per_param = all / self.r.count.read().get();
            let inputs = [
                input(
                    "w",
                    "bytes per parameter, scales included",
                    per_param,
                    BytesPerParam::new(per_param).show(DIGITS),
                    source,
                ),
                self.read(),
                self.bandwidth(),
            ];
            return working(
                "t_w",
                "time to read every weight once",
                &(sym("w") * sym("N_tot") / sym("W")),
                &inputs,
                seconds,
            );
        }
        let touched = (self.step.terms.weights.get() * self.r.system.bandwidth().get() - (all - routed)) / routed;
        let inputs = [
            input("M_always", "bytes of weights every batch reads", all - routed, show(all - routed), source.clone()),
            input("M_routed", "bytes of all routed experts", routed, show(routed), source),
            input(
                "f",
                "share of the experts this batch touches, 1 - (1 - k/E)^B",
                touched,
                significant(touched, DIGITS),
                "each token chooses k of E at random",
            ),
            self.bandwidth(),
        ];
        let equation = (sym("M_always") + sym("M_routed") * sym("f")) / sym("W");
        working("t_w", "time to read the weights this batch touches", &equation, &inputs, seconds)
    }

    fn compute(&self) -> Working {
        let n = self.r.count.multiplied().get();
        // Parts may run in different arithmetics: the rate shown is the one that gives the same time.
        let rate = 2.0 * n / self.r.board.compute_per_token().get();
        let math = self.r.main_math().map_or(String::new(), |(m, p)| {
            format!("{} x {p} in {m}: {}", self.r.system.n_chips, self.r.system.chip.peak[&m].source)
        });
        let mut inputs = vec![
            self.multiplied(),
            input(
                "F",
                "dense peak of the machine over the formats in use",
                rate,
                FlopRate::flop_per_s(rate).show(DIGITS),
                math,
            ),
        ];
        // A multiplication and an addition per parameter.
        let mut equation = num(2.0) * sym("N_act") / sym("F");
        let attention = self.r.board.attention_per_token(self.step.context).get();
        if attention > 0.0 {
            let flop = self.r.cache.decode_flop(self.step.context).get();
            let peak = flop / attention;
            inputs.push(input(
                "A",
                "attention FLOP of one token at this context",
                flop,
                FlopPerToken::new(flop).show(DIGITS),
                "counted from the layers",
            ));
            inputs.push(input(
                "F_a",
                "dense peak for the cache's format",
                peak,
                FlopRate::flop_per_s(peak).show(DIGITS),
                "the chip's data sheet",
            ));
            equation = equation + sym("A") / sym("F_a");
        }
        working("c", "time to multiply one token", &equation, &inputs, |v| SecondsPerToken::new(v).show(DIGITS))
    }

    fn kv(&self) -> Working {
        let bytes = self.r.cache.read(self.step.context).get();
        let inputs = [
            input(
                "kv(L)",
                "bytes of cache one sequence's step reads",
                bytes,
                Bytes::b(bytes).show(DIGITS),
                "explained by: explain kv",
            ),
            self.bandwidth(),
        ];
        working("k", "time to read one sequence's cache", &(sym("kv(L)") / sym("W")), &inputs, seconds)
    }

    /// The cache read kind by kind.
    fn kv_bytes(&self) -> Working {
        let mut inputs = vec![self.context()];
        let mut equation: Option<Expr> = None;
        for (i, piece) in self.r.cache.pieces().iter().enumerate() {
            let name = |letter: &str| format!("{letter}{}", i + 1);
            let (n, bytes) = (name("n"), name("b"));
            inputs.push(input(
                &n,
                &format!("layers: {}", piece.what),
                piece.layers as f64,
                piece.layers.to_string(),
                self.r.model.source.clone(),
            ));
            let per_layer = if piece.fixed > 0.0 { piece.fixed } else { piece.per_token };
            let unit =
                if piece.fixed > 0.0 { "bytes per layer, read and written" } else { "bytes per layer and token" };
            inputs.push(input(
                &bytes,
                unit,
                per_layer,
                Bytes::b(per_layer).show(DIGITS),
                format!("cache in {}", self.r.kv),
            ));
            let mut term = sym(&n) * sym(&bytes);
            if piece.fixed == 0.0 {
                let span = if piece.cap.is_finite() {
                    let cap = name("w");
                    inputs.push(input(
                        &cap,
                        "tokens at most",
                        piece.cap,
                        whole(piece.cap),
                        self.r.model.source.clone(),
                    ));
                    min(sym("L"), sym(&cap))
                } else {
                    sym("L")
                };
                term = term * span;
            }
            equation = Some(equation.map_or(term.clone(), |sum| sum + term));
        }
        let equation = equation.unwrap_or(num(0.0));
        working("kv(L)", "bytes of cache one sequence's step reads", &equation, &inputs, |v| Bytes::b(v).show(DIGITS))
    }

    fn cost(&self) -> Working {
        let inputs = [self.price(), time("t", "time of one step", self.step.time.get()), self.batch()];
        let show = |v: f64| DollarsPerToken::usd_per_token(v).show(DIGITS);
        working("cost", "cost of one token", &(sym("p") * sym("t") / sym("B")), &inputs, show)
    }

    fn balance(&self) -> Working {
        let c = self.r.board.compute_per_token().get() + self.r.board.attention_per_token(self.step.context).get();
        let k = self.r.board.kv_per_sequence(self.step.context).get();
        let weights = match self.r.board.balance_batch(self.step.context) {
            Balance::At(b) => {
                self.r.board.step(Tokens::new(b.max(1e-9)), self.step.context, Tokens::new(1.0)).terms.weights
            }
            Balance::NeverComputeBound => self.r.board.weights(),
        };
        let inputs = [
            time("t_w", "reading the weights that batch touches", weights.get()),
            time("c", "multiplying one token, attention included", c),
            time("k", "reading one sequence's cache", k),
        ];
        let equation = sym("t_w") / (sym("c") - sym("k"));
        let mut w = working("B*", "batch at which compute takes as long as memory", &equation, &inputs, |v| {
            significant(v, DIGITS)
        });
        if c <= k {
            w.result = "none: the cache alone takes longer than computing, at any batch".into();
        }
        w
    }

    fn balanced_context(&self) -> Working {
        let Some(star) = self.r.board.balanced_context() else {
            let inputs = [self.context()];
            let mut w = working("L*", "context at which an endless batch is balanced", &sym("L"), &inputs, |v| {
                significant(v, DIGITS)
            });
            w.equation = "c(L) = k(L)".into();
            w.substituted = "no solution".into();
            w.result = "none: attention arithmetic or a window keeps pace with the cache at any length".into();
            return w;
        };
        // Between two corners the curves are lines, so L* is a base point plus a gap over a difference of slopes.
        let here = star.get();
        let c = self.r.board.compute_per_token().get();
        let slope = |l: f64| {
            let k = self.r.board.kv_per_sequence(Tokens::new(l)).get();
            (k - self.r.board.attention_per_token(Tokens::new(l)).get()) / l
        };
        let per_token = if here > 0.0 { slope(here) } else { 0.0 };
        let inputs = [
            input("c", "multiplying one token", c, seconds(c), "derived below"),
            input(
                "k'",
                "cache time less attention time, per token of context",
                per_token,
                seconds(per_token),
                "mean slope up to L*",
            ),
        ];
        working("L*", "context at which an endless batch is balanced", &(sym("c") / sym("k'")), &inputs, |v| {
            significant(v, DIGITS)
        })
    }

    fn ridge(&self) -> Working {
        let chip = &self.r.system.chip;
        let (math, peak) = self.r.main_math().expect("a resolved setting has a peak");
        let w = self.r.main_format().width();
        let inputs = [
            input(
                "F",
                &format!("dense {math} peak of a chip"),
                peak.get(),
                peak.show(DIGITS),
                chip.peak[&math].source.clone(),
            ),
            input("w", "bytes per weight", w.get(), w.show(DIGITS), format!("{} weights", self.r.main_format())),
            input(
                "W",
                "memory bandwidth of a chip",
                chip.memory.bandwidth.value.get(),
                chip.memory.bandwidth.value.show(DIGITS),
                chip.memory.bandwidth.source.clone(),
            ),
        ];
        // Half of the FLOP are multiplications.
        let equation = sym("F") / num(2.0) * sym("w") / sym("W");
        working(
            "R",
            "tokens that must share a weight for compute to take as long as reading it",
            &equation,
            &inputs,
            |v| significant(v, DIGITS),
        )
    }

    fn sparsity(&self) -> Working {
        let inputs = [self.read(), self.multiplied()];
        working("S", "parameters read over parameters multiplied", &(sym("N_tot") / sym("N_act")), &inputs, |v| {
            significant(v, DIGITS)
        })
    }

    fn drain(&self) -> Working {
        let chip = &self.r.system.chip;
        let capacity = chip.memory.size();
        let source = chip.memory.usable.as_ref().map_or(&chip.memory.capacity.source, |u| &u.source);
        let inputs = [
            input("C", "memory of a chip", capacity.get(), capacity.show(DIGITS), source.clone()),
            input(
                "W",
                "memory bandwidth of a chip",
                chip.memory.bandwidth.value.get(),
                chip.memory.bandwidth.value.show(DIGITS),
                chip.memory.bandwidth.source.clone(),
            ),
        ];
        working("T_drain", "time to read all of the memory once", &(sym("C") / sym("W")), &inputs, seconds)
    }

    fn rate(&self) -> Working {
        let inputs = [self.batch(), time("t", "time of one step", self.step.time.get())];
        working("rate", "tokens per second of the machine", &(sym("B") / sym("t")), &inputs, |v| {
            TokenRate::per_s(v).show(DIGITS)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of each working must be the number the board computes, however many equations lie between.
    #[test]
    fn workings_agree_with_the_board() {
        let catalog = rackmath_catalog::embedded();
        for model in [
            "deepseek-v3",
            "deepseek-v3.2",
            "deepseek-v4-pro",
            "gpt-oss-120b",
            "gemma-3-27b",
            "qwen3.5-397b-a17b",
            "llama-3.1-8b",
            "lecture-frontier",
        ] {
            for overlap in ["max", "sum", "kv+max", "0.3"] {
                for counting in ["strict", "lecture"] {
                    let setting = Setting {
                        model: model.into(),
                        overlap: overlap.into(),
                        counting: counting.into(),
                        ..Setting::default()
                    };
                    let request =
                        Request { setting: setting.clone(), what: "all".into(), batch: Some(96.0), context: 20_000.0 };
                    let workings = answer(&catalog, &request).unwrap().workings;
                    let r = resolve(&catalog, &setting).unwrap();
                    let s = r.board.step(Tokens::new(96.0), Tokens::new(20_000.0), Tokens::new(1.0));
                    let value = |symbol: &str| workings.iter().find(|w| w.symbol == symbol).unwrap().value;
                    let close = |symbol: &str, expected: f64| {
                        let got = value(symbol);
                        assert!(
                            (got / expected - 1.0).abs() < 1e-9,
                            "{model} {overlap} {counting} {symbol}: {got} is not {expected}"
                        );
                    };
                    close("t", s.time.get());
                    close("t_w", s.terms.weights.get());
                    close("c", s.terms.compute.get() / 96.0);
                    close("k", s.terms.kv.get() / 96.0);
                    close("kv(L)", r.cache.read(Tokens::new(20_000.0)).get());
                    close("cost", s.cost.get());
                    close("rate", s.rate().get());
                    if let Balance::At(b) = r.board.balance_batch(Tokens::new(20_000.0)) {
                        close("B*", b);
                    }
                    if let Some(star) = r.board.balanced_context()
                        && star.get() > 0.0
                    {
                        close("L*", star.get());
                    }
                }
            }
        }
    }

    #[test]
    fn an_unknown_topic_names_the_nearest() {
        let request = Request { what: "wieghts".into(), ..Request::default() };
        let error = answer(&rackmath_catalog::embedded(), &request).unwrap_err().to_string();
        assert!(error.contains("did you mean \"weights\""), "{error}");
    }
}
