//! Equations that print and evaluate themselves, so that an explanation cannot disagree with the number it explains.
//!
//! An [`Expr`] is built with ordinary operators from symbols and numbers. It can be shown with its symbols
//! (`w * N_tot / W`), shown with their values (`1 B/param * 671 B / 576 TB/s`), and evaluated.

use schemars::JsonSchema;
use serde::Serialize;
use std::ops::{Add, Div, Mul, Sub};

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Sym(String),
    /// A number with a reason, such as the 2 of a multiply-add.
    Num(f64),
    Add(Box<Self>, Box<Self>),
    Sub(Box<Self>, Box<Self>),
    Mul(Box<Self>, Box<Self>),
    Div(Box<Self>, Box<Self>),
    Max(Box<Self>, Box<Self>),
    Min(Box<Self>, Box<Self>),
}

pub fn sym(name: &str) -> Expr {
    Expr::Sym(name.to_owned())
}

pub fn num(value: f64) -> Expr {
    Expr::Num(value)
}

pub fn max(a: Expr, b: Expr) -> Expr {
    Expr::Max(Box::new(a), Box::new(b))
}

pub fn min(a: Expr, b: Expr) -> Expr {
    Expr::Min(Box::new(a), Box::new(b))
}

macro_rules! operator {
    ($trait:ident, $method:ident, $variant:ident) => {
        impl $trait for Expr {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self::$variant(Box::new(self), Box::new(other))
            }
        }
    };
}

operator!(Add, add, Add);
operator!(Sub, sub, Sub);
operator!(Mul, mul, Mul);
operator!(Div, div, Div);

/// An input of an equation: its symbol, what it means, its value in base units and as shown, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Input<S = String> {
    /// Its symbol.
    pub symbol: String,
    /// What it is.
    pub meaning: S,
    /// The value in base units, which the equation is evaluated with.
    #[serde(skip)]
    pub value: f64,
    /// Its value with its unit.
    #[serde(rename = "value")]
    pub shown: String,
    /// Where it comes from.
    pub source: S,
}

impl Expr {
    /// The value, given the inputs; panics on a symbol that is not among them.
    pub fn value<S>(&self, inputs: &[Input<S>]) -> f64 {
        match self {
            Self::Sym(name) => find(inputs, name).value,
            Self::Num(value) => *value,
            Self::Add(a, b) => a.value(inputs) + b.value(inputs),
            Self::Sub(a, b) => a.value(inputs) - b.value(inputs),
            Self::Mul(a, b) => a.value(inputs) * b.value(inputs),
            Self::Div(a, b) => a.value(inputs) / b.value(inputs),
            Self::Max(a, b) => a.value(inputs).max(b.value(inputs)),
            Self::Min(a, b) => a.value(inputs).min(b.value(inputs)),
        }
    }

    pub fn symbolic(&self) -> String {
        self.render(0, &|name| name.to_owned())
    }

    pub fn substituted<S>(&self, inputs: &[Input<S>]) -> String {
        self.render(0, &|name| find(inputs, name).shown.clone())
    }

    fn render(&self, outer: u8, name: &impl Fn(&str) -> String) -> String {
        let (level, text) = match self {
            Self::Sym(symbol) => (9, name(symbol)),
            Self::Num(value) => (9, value.to_string()),
            Self::Add(a, b) => (1, format!("{} + {}", a.render(1, name), b.render(1, name))),
            Self::Sub(a, b) => (1, format!("{} - {}", a.render(1, name), b.render(2, name))),
            Self::Mul(a, b) => (2, format!("{} × {}", a.render(2, name), b.render(2, name))),
            Self::Div(a, b) => (2, format!("{} / {}", a.render(2, name), b.render(3, name))),
            Self::Max(a, b) => (9, format!("max({}, {})", a.render(0, name), b.render(0, name))),
            Self::Min(a, b) => (9, format!("min({}, {})", a.render(0, name), b.render(0, name))),
        };
        if level < outer { format!("({text})") } else { text }
    }
}

fn find<'a, S>(inputs: &'a [Input<S>], symbol: &str) -> &'a Input<S> {
    inputs.iter().find(|i| i.symbol == symbol).unwrap_or_else(|| panic!("the equation has no input {symbol}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_only_where_needed() {
        let e = (sym("a") + sym("b")) * num(2.0) / (sym("c") * sym("d"));
        assert_eq!(e.symbolic(), "(a + b) × 2 / (c × d)");
        assert_eq!(max(sym("a") - (sym("b") - sym("c")), num(0.5)).symbolic(), "max(a - (b - c), 0.5)");
    }

    #[test]
    fn evaluates_what_it_prints() {
        let input = |symbol: &str, value: f64| {
            let (meaning, source) = (String::new(), String::new());
            Input { symbol: symbol.into(), meaning, value, shown: value.to_string(), source }
        };
        let inputs = [input("a", 3.0), input("b", 4.0)];
        let e = max(sym("a") * sym("b"), num(5.0)) / num(2.0);
        assert_eq!(e.value(&inputs), 6.0);
        assert_eq!(e.substituted(&inputs), "max(3 × 4, 5) / 2");
    }
}
