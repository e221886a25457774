//! What requests bring beside text: pictures, frames of a film, sound; and who encodes it.

use super::prelude::*;
use rackmath_spec::Model;
use rackmath_spec::tower::{Rule, Sense, Tower};
use rackmath_theory::pass::{Senses, Spread};
use rackmath_theory::towers::{self, Picture, Seen};

/// Pictures, frames and sound of each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Media {
    /// Pictures of a request.
    pub images: u64,
    /// Their size in pixels, width x height, such as `1280x960`; that of frames too.
    #[educe(Default = "1024x1024")]
    pub image_size: String,
    /// Frames of a film in a request.
    pub frames: u64,
    /// Sound of a request.
    pub audio_s: f64,
    /// Chips that do nothing but encode; 0 for as many as balance the others.
    #[schemars(extend("x-none" = "none: those that serve"))]
    pub encoder_chips: Option<u64>,
    /// Whether the encoder is cut over the chips of a tensor-parallel group, or each has a copy and takes other pictures.
    #[schemars(extend("x-flag" = "mm-encoder-tp-mode encoder-tp-mode", "enum" = ["weights", "data"]))]
    #[educe(Default = "weights")]
    pub encoder_tp_mode: String,
}

/// Most pictures or frames of a request, pixels of a side, and seconds of sound.
const MOST: u64 = 100_000;
const SIDE: u64 = 100_000;
const HOURS: f64 = 24.0 * 3600.0;

impl Media {
    /// Whether anything is brought.
    pub(crate) fn any(&self) -> bool {
        self.images > 0 || self.frames > 0 || self.audio_s > 0.0
    }

    /// What towers of a model see of it, beside so many tokens of text.
    pub(crate) fn senses(&self, model: &Model, text: f64) -> Result<Option<Senses>, Error> {
        let spread = match (self.encoder_chips, self.encoder_tp_mode.as_str()) {
            (Some(_), _) => Spread::Apart,
            (None, "weights") => Spread::Cut,
            (None, "data") => Spread::Copied,
            (None, other) => return Err(Error::value("media.encoder_tp_mode", other, "weights or data")),
        };
        for (field, n) in [("media.images", self.images), ("media.frames", self.frames)] {
            refuse_if(n > MOST, field, n, "at most 100,000")?;
        }
        within("media.audio_s", self.audio_s, 0.0, HOURS)?;
        refuse_if(
            self.encoder_chips.is_some_and(|n| n > MOST),
            "media.encoder_chips",
            self.encoder_chips.unwrap_or(0),
            "at most 100,000",
        )?;
        if !self.any() {
            let expected = "none without --images, --frames or --audio";
            refuse_if(self.encoder_chips.is_some(), "media.encoder_chips", self.encoder_chips.unwrap_or(0), expected)?;
            return Ok(None);
        }
        let mut seen: Vec<(Sense, Seen)> = Vec::new();
        if self.images > 0 || self.frames > 0 {
            let field = if self.images > 0 { ("media.images", self.images) } else { ("media.frames", self.frames) };
            let tower = tower(model, Sense::Sight, field.0, field.1)?;
            let size = size(&self.image_size, &tower.rule)?;
            let one = towers::picture(&tower.rule, size);
            if self.images > 0 {
                let (tokens, sequences) = (one.tokens * self.images, one.sequences * self.images);
                seen.push((Sense::Sight, Seen { tokens, sequences, ..one }));
            }
            if self.frames > 0 {
                seen.push((Sense::Sight, towers::film(&tower.rule, size, self.frames)));
            }
        }
        if self.audio_s > 0.0 {
            let tower = tower(model, Sense::Hearing, "media.audio_s", self.audio_s)?;
            seen.push((Sense::Hearing, towers::sound(&tower.rule, self.audio_s)));
        }
        let prompt = text + seen.iter().map(|(_, s)| s.tokens as f64).sum::<f64>();
        refuse_if(prompt > 1e9, "media.images", self.images, "prompts of at most 1e9 tokens")?;
        let chips = self.encoder_chips.filter(|n| *n > 0).map(|n| n as f64);
        Ok(Some(Senses { seen, prompt, spread, chips }))
    }
}

/// What is said of a model with a tower that is not read: only its text is counted.
pub(crate) fn text_only(model: &Model) -> Option<Remark> {
    let unread = model.shape().is_some_and(|shape| shape.unread_towers > 0);
    unread.then(|| says("text_only").with("model", &model.name))
}

fn tower<'a>(model: &'a Model, sense: Sense, field: &str, given: impl ToString) -> Result<&'a Tower, Error> {
    let found = model.shape().and_then(|shape| towers::tower(shape, sense));
    let what = match sense {
        Sense::Sight => "pictures",
        Sense::Hearing => "sound",
    };
    let such = match sense {
        Sense::Sight => "qwen2.5-vl-7b",
        Sense::Hearing => "qwen2-audio-7b",
    };
    let expected = format!("0: no encoder of {what} is known of {}; one is of {such}", model.name);
    found.ok_or_else(|| Error::value(field, given, expected))
}

/// Width and height as typed.
fn size(text: &str, rule: &Rule) -> Result<Picture, Error> {
    let expected = "width x height in pixels, such as 1280x960";
    let bad = || Error::value("media.image_size", text, expected);
    let (w, h) = text.split_once(['x', 'X', '×']).ok_or_else(bad)?;
    let side = |s: &str| s.trim().parse::<u64>().ok().filter(|n| (1..=SIDE).contains(n)).ok_or_else(bad);
    let (width, height) = (side(w)?, side(h)?);
    let long = width.max(height) > towers::LONGEST * width.min(height) && matches!(rule, Rule::Rounded { .. });
    refuse_if(long, "media.image_size", text, "at most 200 times as long as wide: the model's processor refuses more")?;
    Ok(Picture { width, height })
}

/// That a model could see or hear and is asked about text alone.
pub(crate) fn unasked(model: &Model) -> Option<Remark> {
    let shape = model.shape()?;
    let has = |sense| towers::tower(shape, sense).is_some();
    match (has(Sense::Sight), has(Sense::Hearing)) {
        (true, false) => Some(says("pictures_not_counted").with("model", &model.name)),
        (false, true) => Some(says("sound_not_counted").with("model", &model.name)),
        (true, true) => Some(says("senses_not_counted").with("model", &model.name)),
        (false, false) => None,
    }
}
