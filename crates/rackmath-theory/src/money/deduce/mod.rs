//! What a price sheet says about the model behind it, with honest error bars.
//!
//! In reading order: [`crate::crossover`] (the lecture's formulas, which take prices for costs), [`shapes`] (architectures that give a
//! cache size), then the Bayesian answer: [`space`] (models and ways to serve them, and what they cost), [`evidence`] (a price
//! sheet as a likelihood with policies), [`posterior`] (weighted lattice points), [`quantity`] (what is shown of them),
//! [`level`] (what hosts of known models charge above cost), [`simulate`] (sheets drawn from the model itself, to test it).
//!
//! What no price can tell, however many there are: mark-up, chip price, utilisation, MFU and active parameters enter the
//! input price only as a product; batch and total parameters enter decode as N_t w / B; cache bytes and context enter as a
//! product; precision moves peak and width together; and if the batch grows with the balance batch, sparsity cancels from
//! the output price. A calibrated level from open models, or a measured speed, breaks the first of these.

pub mod evidence;
pub mod lattice;
pub mod level;
pub mod pareto;
pub mod posterior;
pub mod quantity;
pub mod shapes;
pub mod simulate;
pub mod space;

pub use evidence::{Datum, Evidence, Sheet};
pub use posterior::{Posterior, Refusal, Sampler, Sampling};
pub use quantity::Unknown;
pub use space::Space;
