//! The nouns: models, chips, systems, networks, laws, each validated when it is made, and the catalogue that holds them.
//!
//! Strings end here. A face hands in names and file contents; what leaves is a [`Model`], a [`System`], a [`ClarkLaw`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod acceptance;
pub mod attention;
mod bundle;
mod catalog;
mod chip;
mod cited;
pub mod command;
pub mod constants;
mod date;
pub mod deduce;
pub mod draw;
mod dtype;
pub mod engine;
mod error;
pub mod evidence;
mod fallback;
pub mod file;
pub mod ggml;
mod gguf;
mod kernel_gemm;
mod kernel_moe;
mod kernel_small;
pub mod launch;
pub mod layout;
pub mod lengths;
pub mod line;
pub mod measurement;
pub mod memory;
pub mod mig;
pub mod model;
pub mod name;
pub mod naming;
mod network;
pub mod node;
pub mod price;
pub mod probe;
pub mod router;
pub mod run;
mod scaling;
pub mod scenario;
mod shelf;
pub mod support;
mod system;
pub mod tier;
pub mod tower;
pub mod trace;
pub mod training;
pub mod validation;
mod wire;

pub use attention::AttentionKernels;
pub use catalog::{Brief, Catalog, Kind};
pub use chip::{Basis, Bridge, Chip, Host, Link, Memory, Physical, Power, Price};
pub use cited::Cited;
pub use date::{Date, Moment};
pub use dtype::{Dtype, Math};
pub use engine::Engine;
pub use error::{Shown, SpecError, nearest, word};
pub use gguf::{Gguf, Mix};
pub use kernel_gemm::{GemmFormat, GemmKernel, GemmKernels, Pass, PowerRule};
pub use kernel_moe::{
    CacheUse, MoeFit, MoeFormat, MoeFound, MoeKernel, MoeKernels, MoeMatch, MoeRows, Popularity, StandIn,
};
pub use kernel_small::{AdapterKernels, Launches, SmallKernels, StreamKernels};
pub use layout::Layout;
pub use model::Model;
pub use network::{
    AllReduceKernel, Copies, Evidence, ExchangeKernel, Floor, Leaving, Library, Network, Reach, Residual, Span, Tree,
};
pub use router::RouterRules;
pub use run::{TrainingRun, rounded};
pub use scaling::{ClarkLaw, Counts, Fitted, LawForm, PowerLaw, Repetition, Router, ScalingLaw, StandardErrors};
pub use scenario::Scenario;
pub use strum::{IntoEnumIterator, VariantArray};
pub use support::{ChipFamilies, EngineSupport, Failures, QualityWords};
pub use system::{Level, System, Topology};
pub use tier::MemoryTier;
pub use training::{TrainingFormat, TrainingStack};
pub use wire::Wire;
