//! Reversible networks for real: a transformer small enough to train on one core, and ciphers beside it.
//!
//! $$ y_1 = x_1 + F(x_2), \quad y_2 = x_2 + G(y_1) \qquad\Longleftrightarrow\qquad x_2 = y_2 - G(y_1), \quad x_1 = y_1 - F(x_2) $$
//!
//! A block that adds a function of one half to the other half can be undone whatever the function is: a Feistel round with
//! XOR replaced by addition (lecture D55, D56). So the backward pass can rebuild activations instead of keeping them
//! (D57). [`step`] trains with three ways of keeping: everything, block inputs, nothing. [`drift`] asks how exactly the
//! inverse comes back in three arithmetics, [`feistel`] and [`avalanche`] set ciphers beside networks.
//!
//! Backward passes are written by hand. An automatic tape would hold what it likes, and what is held is the subject here:
//! every activation is a [`Buffer`] that a [`Meter`] counts from birth to drop, so peak memory is a number that does not
//! depend on an allocator. Two sublayers and a norm are little to differentiate, and finite differences check them.
//! Sources: Gomez et al. 2017 (RevNet, arXiv 1707.04585); Chen et al. 2016 (checkpointing, arXiv 1604.06174).

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod avalanche;
pub mod drift;
pub mod feistel;
mod meter;
mod model;
mod ops;
pub mod step;
mod sublayer;

pub use meter::{Buffer, Meter};
pub use model::{Config, Weights};
