//! What turns pictures and sound into tokens of a model: an encoder, its way in and out, and how much of it a picture fills.
//!
//! A tower is a run of layers over patches (or over steps of sound) in which every patch sees every other, with products
//! before and behind them: the patch embedding, a merger, a projector to the width of the model. The rule says how a picture
//! is cut; what follows from it is counted in the theory crate's `towers` page.

use crate::model::Shape;

#[derive(Clone, Debug, PartialEq)]
pub struct Tower {
    pub sense: Sense,
    /// The layers, with their position table and outer norms; no vocabulary.
    pub layers: Shape,
    /// Products outside the layers.
    pub products: Vec<Product>,
    /// Values of norms and single vectors outside the layers.
    pub vectors: u64,
    pub rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    Sight,
    Hearing,
}

/// One product outside the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    pub d_in: u64,
    pub d_out: u64,
    pub bias: bool,
    /// Patches that become one row of it.
    pub patches: u64,
}

impl Product {
    pub fn plain(d_in: u64, d_out: u64, patches: u64) -> Self {
        Self { d_in, d_out, bias: false, patches }
    }

    pub fn biased(d_in: u64, d_out: u64, patches: u64) -> Self {
        Self { bias: true, ..Self::plain(d_in, d_out, patches) }
    }
}

/// How a picture or a stretch of sound becomes patches and tokens; sides and areas in pixels.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Both sides rounded to whole tokens of `merge` x `merge` patches, the area kept between two limits (Qwen-VL, GLM-V).
    /// The limits are on `frames` times the area; `pair` frames of a film are one picture.
    Rounded { patch: u64, merge: u64, least: u64, most: u64, frames: u64, pair: u64 },
    /// Every picture resized to one size (LLaVA 1.5, Gemma 3): so many patches, so many tokens. Long pictures may be cut
    /// into pieces beside (pan and scan), which engines do only when told.
    Fixed { patches: u64, tokens: u64 },
    /// The picture small, and as tiles of the grid that wastes least (LLaVA-NeXT, LLaVA-OneVision): `side` tokens along a
    /// tile, `patches` in it, grids as height and width in pixels, rows ended by a token, and at most `most` tiles' worth.
    AnyRes { tile: u64, side: u64, patches: u64, grids: Vec<(u64, u64)>, most: Option<u64> },
    /// No side above `longest`, one token per `merge` x `merge` patches and one for the end of each row (Pixtral).
    Rows { patch: u64, merge: u64, longest: u64 },
    /// Tiles whose grid is nearest in shape, at most `most`, and the picture small where they are several (InternVL);
    /// `around` tokens mark begin and end.
    Tiles { tile: u64, most: u64, patches: u64, tokens: u64, around: u64 },
    /// Tiles of the canvas on which it is scaled least (Llama 4), tokens between tiles, and the picture small.
    Canvas { tile: u64, most: u64, patches: u64, tokens: u64 },
    /// Never enlarged, shrunk to `most` patches and `side` patches along a side, padded to whole tokens (Kimi).
    Padded { patch: u64, merge: u64, most: u64, side: u64 },
    /// Scaled to fill `tokens` as well as whole tokens of `pool` x `pool` patches do (Gemma 4).
    Filled { patch: u64, pool: u64, tokens: u64 },
    /// A hundred steps of a spectrogram a second, halved once by the encoder; `pool` of its positions are a token.
    Sound { pool: u64, window: Window },
}

/// What happens to sound longer or shorter than the thirty seconds such encoders were made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Padded to whole windows, as many as it takes (Whisper, Voxtral).
    Padded,
    /// What is beyond one window is dropped; a shorter one takes its length (Qwen2-Audio).
    Cut,
    /// As long as it is (Qwen2.5-Omni).
    Open,
}
