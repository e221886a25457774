//! Weights in the host's memory, as people ask for it: `-ngl`, `--n-cpu-moe`, `--cpu-offload-gb`, and which of them would fit.

use super::prelude::*;
use rackmath_spec::engine::Engine;
use rackmath_spec::model::{Ffn, Shape};
use rackmath_spec::{Kind, System};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::placement::{Fit, Load, place};
use rackmath_theory::split::{self, Card, Split};

/// The host that is taken where none is named: for cards on desks, and for chips whose files name a server's memory.
const DESK: &str = "ryzen-9-7950x";
const SERVER: &str = "xeon-8480";
const GRACE: &str = "grace";

/// What of the model lies in the host's memory, and whose memory that is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Offloaded {
    /// Layers on the card as llama.cpp counts them, the output being one more; the others lie in the host's memory (`-ngl`).
    #[schemars(extend("x-flag" = "ngl gpu-layers n-gpu-layers", "x-none" = "all"))]
    pub gpu_layers: Option<u64>,
    /// Layers in the host's memory, instead.
    #[schemars(extend("x-flag" = "offload-layers cpu-layers", "x-none" = "none"))]
    pub offload_layers: Option<u64>,
    /// Layers, from the first on, whose experts lie in the host's memory.
    #[schemars(extend("x-flag" = "n-cpu-moe ncmoe", "x-none" = "none"))]
    pub n_cpu_moe: Option<u64>,
    /// All experts lie in the host's memory.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("x-flag" = "cpu-moe cmoe"))]
    pub cpu_moe: bool,
    /// GiB of each chip's weights that lie in the host's memory and are sent in every pass, as vLLM and SGLang count.
    #[schemars(extend("x-none" = "none"))]
    pub cpu_offload_gb: Option<f64>,
    /// The host: a processor of the catalogue, such as `epyc-9654` or `ryzen-9-7950x`.
    #[schemars(extend("x-flag" = "host cpu", "x-none" = "a usual one for the card"))]
    pub host: Option<String>,
    /// Memory of the host, such as 512 GB.
    #[schemars(extend("x-none" = "the processor's"))]
    pub host_memory_bytes: Option<f64>,
    /// Bandwidth of that memory, such as 400 GB/s.
    #[schemars(extend("x-none" = "the processor's"))]
    pub host_bandwidth_gb_per_s: Option<f64>,
    /// The link between host and card one way, such as 32 GB/s.
    #[schemars(extend("x-none" = "the card's"))]
    pub host_link_gb_per_s: Option<f64>,
    /// Shares of the model on cards joined by +, in their order, such as 3,1 (`--tensor-split`).
    #[schemars(extend("x-none" = "by their memory"))]
    pub tensor_split: Option<Vec<f64>>,
    /// Rate of the disk that weights come from where the host's memory is too small for them (`mmap`), such as 5 GB/s.
    #[schemars(extend("x-flag" = "disk mmap", "x-none" = "none"))]
    pub disk_gb_per_s: Option<f64>,
}

/// Where weights lie.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OffloadCard {
    /// The host's name.
    pub host: String,
    /// Layers of the model.
    pub layers: u64,
    /// Layers in the host's memory; part of one where bytes were asked for.
    pub layers_on_host: f64,
    /// Layers of which only the experts lie there.
    pub expert_layers_on_host: f64,
    /// Weights there.
    pub host_weight_bytes: f64,
    /// Cache there.
    pub host_kv_bytes: f64,
    /// Memory there.
    pub host_memory_bytes: f64,
    /// Bandwidth of that memory.
    pub host_bandwidth_gb_per_s: f64,
    /// The link, one way.
    pub link_gb_per_s: f64,
    /// Share of the host's part that comes from the disk in every pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_disk: Option<f64>,
    /// Cards that share the layers, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<CardHeld>,
    /// In words.
    pub says: Remark,
}

/// One of several cards.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CardHeld {
    /// Its name.
    pub card: String,
    /// Layers it computes.
    pub layers: f64,
    /// What it holds.
    pub held_bytes: f64,
    /// What of its memory the engine takes.
    pub room_bytes: f64,
}

/// Cards of one machine, before the last of them, which the setting is left with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cards {
    pub(crate) others: Vec<Arc<System>>,
    pub(crate) name: Option<String>,
}

/// Cards that one llama.cpp takes at most (`LLAMA_MAX_DEVICES` of llama.h).
pub(crate) const MOST: u64 = 16;

/// Whether the layers of a model are dealt to the cards of a machine: those joined by +, and those llama.cpp finds where no layout
/// is asked for.
pub(crate) fn dealt(catalog: &Catalog, setting: &Setting, engine: &Engine, cut: bool) -> bool {
    let llama = engine.family == "llamacpp";
    if setting.on.contains('+') {
        return llama;
    }
    let machine = || catalog.system(super::setting::machine(&setting.on).ok()?.0).ok();
    let several = |s: &System| (2..=MOST).contains(&setting.chips.unwrap_or(s.n_chips)) && !s.chip.processor;
    let cards = || machine().is_some_and(|s| several(&s));
    llama && !cut && cards()
}

/// Takes the cards of one machine, joined by + where they differ, out of a setting: they are stages of one llama.cpp, computed one
/// after another.
pub(crate) fn cards(catalog: &Catalog, setting: &Setting) -> Result<(Setting, Cards), Error> {
    let mut all: Vec<Arc<System>> = Vec::new();
    let mut price = Some(0.0);
    let mut names: Vec<String> = Vec::new();
    for part in setting.on.split('+') {
        let (name, stated) = super::setting::machine(part)?;
        let system = catalog.system(name).map_err(|e| e.at("setting.on"))?;
        refuse_if(system.chip.processor, "setting.on", part, "a card; the processor beside it is {host}")?;
        let n = setting.chips.unwrap_or(system.n_chips);
        refuse_if(
            all.len() as u64 + n > MOST,
            "setting.on",
            &setting.on,
            format!("at most {MOST} cards of one machine"),
        )?;
        let usual = system.chip.usual_price().map(|p| p.value.get() * 3600.0);
        let known = super::setting::paid(part, stated, setting.price_usd_per_chip_hour)?.or(usual);
        price = price.zip(known).map(|(sum, one)| sum + one * n as f64);
        let one = catalog.system(&system.chip.id).map_err(|e| e.at("setting.on"))?;
        all.extend((0..n).map(|_| one.clone()));
        let own = &system.chip.name;
        names.push(if n == system.n_chips { system.name.clone() } else { format!("{n} x {own}") });
    }
    let name = Some(names.join(" + "));
    let last = all.pop().map_or_else(String::new, |last| last.id.clone());
    // The mean of a card: figures of a chip and dollars of all of them are of the cards together.
    let price = price.filter(|p| *p > 0.0).map(|sum| sum / (all.len() + 1) as f64);
    let setting = Setting { on: last, price_usd_per_chip_hour: price, chips: None, ..setting.clone() };
    Ok((setting, Cards { others: all, name }))
}

/// Deals the layers that do not lie with the host to cards, as llama.cpp does: the output counts as one more layer, and a layer goes to
/// the first card whose share, with those before it, reaches beyond the layer's own place. The last card gets what is left.
///
/// Source: ggml-org/llama.cpp src/llama-model.cpp, `load_tensors` (`get_layer_buft_list`).
pub(crate) fn deal(split: &mut Split, layers: u64, others: &[Arc<System>], shares: &[f64]) {
    let here = layers as f64 - split.layers;
    let sum: f64 = shares.iter().sum();
    let (mut dealt, mut before) = (0.0, 0.0);
    for (system, share) in others.iter().zip(shares) {
        before += share;
        let to = ((here + 1.0) * before / sum).ceil().min(here);
        split.cards.push(Card { system: system.clone(), layers: to - dealt });
        dealt = to;
    }
}

/// An engine that keeps no weights with the host.
pub(crate) fn unknown(on: &Deployment) -> Error {
    let expected =
        "an engine that is known to: llamacpp computes with them there, vllm and sglang send them in every pass";
    Error::value("engine", format!("{} with weights in host memory", on.engine.id), expected)
}

impl Offloaded {
    /// Whether anything lies with the host.
    pub(crate) fn asked(&self) -> bool {
        self.gpu_layers.is_some()
            || self.offload_layers.is_some()
            || self.n_cpu_moe.is_some()
            || self.cpu_moe
            || self.cpu_offload_gb.is_some()
    }

    /// Puts the model's parts where they are asked for.
    pub(crate) fn apply(
        &self,
        catalog: &Catalog,
        on: &mut Deployment,
        load: &Load,
        cards: &Cards,
    ) -> Result<(), Error> {
        if let Some(name) = &cards.name {
            Arc::make_mut(&mut on.system).name.clone_from(name);
            return self.share(catalog, on, cards);
        }
        refuse_if(
            self.tensor_split.is_some(),
            "tensor_split",
            "one card, or a layout",
            "several cards under llamacpp, such as 2xrtx-3090, or joined by + in {setting.on}",
        )?;
        if !self.asked() {
            return Ok(());
        }
        let layers = on.model.shape().map_or(0, Shape::n_layers);
        let computes = on.engine.offload.as_ref().ok_or_else(|| unknown(on))?.computes;
        let wrong = |field: &'static str, given: String, expected: &str| Err(Error::value(field, given, expected));
        if let Some(gb) = self.cpu_offload_gb.filter(|gb| computes || !(0.0..1e6).contains(gb)) {
            let expected = if computes {
                "{gpu_layers} or {n_cpu_moe}: this engine computes where the weights lie"
            } else {
                "0 to 1,000,000 GiB"
            };
            return wrong("cpu_offload_gb", gb.to_string(), expected);
        }
        let by_layer =
            self.gpu_layers.is_some() || self.offload_layers.is_some() || self.n_cpu_moe.is_some() || self.cpu_moe;
        if by_layer && !computes {
            return wrong(
                "engine",
                on.engine.id.clone(),
                "llamacpp for layers and experts on the host; this engine takes {cpu_offload_gb}",
            );
        }
        if self.gpu_layers.is_some() && self.offload_layers.is_some() {
            return wrong(
                "offload_layers",
                "beside gpu_layers".into(),
                "one of them: they add up to the model's layers",
            );
        }
        if let Some(n) = self.offload_layers.filter(|n| *n > layers) {
            return wrong("offload_layers", n.to_string(), &format!("at most the {layers} layers of the model"));
        }
        if (self.cpu_moe || self.n_cpu_moe.is_some()) && on.model.shape().is_none_or(|s| s.moe().is_none()) {
            return wrong("n_cpu_moe", "a model without experts".into(), "{gpu_layers}, which moves whole layers");
        }
        if computes && on.layout.chips() > 1 {
            return wrong("layout", on.layout.to_string(), "one chip where the host computes a part of the model");
        }
        let mut split = self.split(catalog, on)?;
        if let Some(gib) = self.cpu_offload_gb {
            split.layers = split::layers_of(on, load, &split, Bytes::b(gib * f64::from(1 << 30)));
        }
        on.split = Some(split.clone().into());
        let (weights, kv) = split::on_host(on, load);
        let (held, room) = (weights.get() + kv.get(), split.host.capacity().get());
        if let Some(rate) = self.disk_gb_per_s.filter(|_| held > room) {
            split.disk = Some(((held - room) / held, rated("disk_gb_per_s", rate)?));
            on.split = Some(split.into());
        }
        Ok(())
    }

    /// What lies with the host where layers or experts are named.
    pub(crate) fn split(&self, catalog: &Catalog, on: &Deployment) -> Result<Split, Error> {
        let layers = on.model.shape().map_or(0, Shape::n_layers);
        let mut split = self.empty(catalog, on, false)?;
        // llama.cpp counts the output as one more layer, and more than there are as all.
        let hosted = self.gpu_layers.map_or(0, |n| (layers + 1).saturating_sub(n).min(layers));
        split.layers = self.offload_layers.unwrap_or(hosted) as f64;
        split.head = self.gpu_layers == Some(0);
        split.experts = if self.cpu_moe { layers } else { self.n_cpu_moe.unwrap_or(0).min(layers) } as f64;
        Ok(split)
    }

    /// Deals the layers to cards by their memory, or as told.
    fn share(&self, catalog: &Catalog, on: &mut Deployment, cards: &Cards) -> Result<(), Error> {
        refuse_if(
            self.asked(),
            "setting.on",
            "several cards",
            "one card where a part of the model lies with the host",
        )?;
        let layers = on.model.shape().map_or(0, Shape::n_layers);
        let own =
            || cards.others.iter().map(|s| s.chip.memory.seen().get()).chain([on.system.chip.memory.seen().get()]);
        let shares: Vec<f64> = self.tensor_split.clone().unwrap_or_else(|| own().collect());
        let sum: f64 = shares.iter().sum();
        let sound =
            shares.len() == cards.others.len() + 1 && shares.iter().all(|s| s.is_finite() && *s >= 0.0) && sum > 0.0;
        let expected = format!("{} shares, one for each card", cards.others.len() + 1);
        refuse_if(!sound, "tensor_split", format!("{shares:?}"), expected)?;
        let mut split = self.empty(catalog, on, true)?;
        deal(&mut split, layers, &cards.others, &shares);
        on.split = Some(split.into());
        Ok(())
    }

    /// The same host with nothing asked to lie there.
    pub(crate) fn bare(&self) -> Self {
        let nothing = Self::default();
        let Self { gpu_layers, offload_layers, n_cpu_moe, cpu_moe, cpu_offload_gb, .. } = nothing;
        Self { gpu_layers, offload_layers, n_cpu_moe, cpu_moe, cpu_offload_gb, ..self.clone() }
    }

    /// The host and the link, with nothing there yet.
    pub(crate) fn empty(&self, catalog: &Catalog, on: &Deployment, cards: bool) -> Result<Split, Error> {
        let chip = &on.system.chip;
        let usual = match chip.host.memory.as_deref() {
            Some("lpddr-grace") => GRACE,
            Some(_) => SERVER,
            None => DESK,
        };
        let name = self.host.as_deref().unwrap_or(usual);
        let mut host = catalog.system(name).map_err(|e| e.at("host"))?;
        if !host.chip.processor {
            let known = processors(catalog);
            let near = Error::unknown("processor", name, known.iter().map(String::as_str));
            return Err(near.hint("expected a processor such as epyc-9654, xeon-8480 or ryzen-9-7950x").at("host"));
        }
        if self.host_memory_bytes.is_some() || self.host_bandwidth_gb_per_s.is_some() {
            let own = Arc::make_mut(&mut Arc::make_mut(&mut host).chip);
            if let Some(bytes) = self.host_memory_bytes {
                let sound = Bytes::checked(bytes).filter(|b| b.get() > 0.0);
                own.memory.capacity.value =
                    sound.ok_or_else(|| Error::value("host_memory_bytes", bytes, "more than nothing"))?;
                // What was said is meant: no sheet stands behind it that counts GiB.
                own.memory.usable = Some(own.memory.capacity.clone());
            }
            if let Some(rate) = self.host_bandwidth_gb_per_s {
                own.memory.bandwidth.value = rated("host_bandwidth_gb_per_s", rate)?;
            }
        }
        let between = chip.link.scale_up.as_ref().filter(|_| cards || chip.link.kind.starts_with("pcie"));
        let own = chip.link.host.as_ref().or(between);
        let link = match (self.host_link_gb_per_s, own) {
            (Some(rate), _) => rated("host_link_gb_per_s", rate)?,
            (None, Some(own)) => own.value,
            (None, None) => {
                let expected =
                    "the link between card and host, such as {host_link_gb_per_s} 32 GB/s: the catalogue names none";
                return Err(Error::value("setting.on", format!("\"{}\"", on.system.id), expected));
            }
        };
        let cache = on.engine.offload.as_ref().is_some_and(|o| o.computes);
        Ok(Split::none(host, link, cache))
    }
}

fn rated(field: &'static str, rate: f64) -> Result<ByteRate, Error> {
    let sound = ByteRate::checked(rate * 1e9).filter(|r| r.get() > 0.0 && rate < 1e6);
    sound.ok_or_else(|| Error::value(field, rate, "GB/s, more than 0"))
}

fn processors(catalog: &Catalog) -> Vec<String> {
    let all = catalog.ids(Kind::Chips).filter(|id| catalog.chip(id).is_ok_and(|chip| chip.processor));
    all.map(str::to_owned).collect()
}

/// How a model is laid out, in short: its degrees, or the cards its layers are dealt to.
pub(crate) fn layout_words(on: &Deployment) -> String {
    match on.split.as_ref().map_or(0, |split| split.cards.len()) {
        0 => crate::desk::cut::words(&on.model, &on.layout),
        others => format!("layers over {} cards", others + 1),
    }
}

/// Of so many layers after the first ones, those that have experts at all.
fn with_experts(shape: &Shape, from: f64, n: f64) -> f64 {
    let (mut first, mut all) = (0.0, 0.0);
    for run in &shape.runs {
        let next = first + run.n as f64;
        if matches!(run.block.ffn, Ffn::Moe(_)) {
            all += (next.min(from + n) - from.max(first)).max(0.0);
        }
        first = next;
    }
    all
}

/// What lies where; nothing where all lies on the chips.
pub(crate) fn card(on: &Deployment, load: &Load) -> Option<OffloadCard> {
    let split = on.split.as_deref()?;
    if !split.cards.is_empty() {
        return shared(on, load, split);
    }
    let (weights, kv) = split::on_host(on, load);
    let host: &System = &split.host;
    let layers = on.model.shape()?.n_layers();
    let (whole, experts) = split.among(0.0, layers as f64);
    let experts = with_experts(on.model.shape()?, whole, experts);
    let sends = on.engine.offload.as_ref().filter(|o| !o.computes).map(|_| split.link);
    let from = on.engine.offload.as_ref().filter(|o| o.computes).and_then(|o| o.stream_rows);
    let says = says("weights_with_host")
        .with("host", &host.name)
        .with("bandwidth", host.bandwidth())
        .with("layers", (whole > 0.0).then(|| (whole * 10.0).round() / 10.0))
        .with("of", layers)
        .with("experts", (experts > 0.0).then_some(experts))
        .with("weights", weights)
        .with("cache", (kv.get() > 0.0).then_some(kv))
        .with("memory", host.capacity())
        .with("sends", sends)
        .with("from", from)
        .with("link", from.map(|_| split.link));
    Some(OffloadCard {
        host: host.name.clone(),
        layers,
        layers_on_host: whole,
        expert_layers_on_host: experts,
        host_weight_bytes: weights.get(),
        host_kv_bytes: kv.get(),
        host_memory_bytes: host.capacity().get(),
        host_bandwidth_gb_per_s: host.bandwidth().get() / 1e9,
        link_gb_per_s: split.link.get() / 1e9,
        from_disk: split.disk.map(|(share, _)| share),
        cards: Vec::new(),
        says,
    })
}

/// The same of cards that share the layers.
fn shared(on: &Deployment, load: &Load, split: &Split) -> Option<OffloadCard> {
    let layers = on.model.shape()?.n_layers();
    let placed = place(on, load);
    let main = placed.stages.first()?.held;
    let reserve = main.reserve;
    let held = split::on_cards(on, load);
    let mut cards: Vec<CardHeld> = split
        .cards
        .iter()
        .zip(held)
        .map(|(card, (held, room))| CardHeld {
            card: card.system.chip.name.clone(),
            layers: card.layers,
            held_bytes: held.get(),
            room_bytes: room.get(),
        })
        .collect();
    let away = split.among(0.0, layers as f64).0;
    cards.push(CardHeld {
        card: on.system.chip.name.clone(),
        layers: layers as f64 - away,
        held_bytes: main.total().get() - reserve,
        room_bytes: placed.capacity.get() - reserve,
    });
    let each: Vec<Remark> = cards
        .iter()
        .map(|c| {
            says("layers_on_card")
                .with("card", &c.card)
                .with("layers", c.layers)
                .with("held", Bytes::b(c.held_bytes))
                .with("room", Bytes::b(c.room_bytes))
        })
        .collect();
    Some(OffloadCard {
        host: split.host.name.clone(),
        layers,
        layers_on_host: 0.0,
        expert_layers_on_host: 0.0,
        host_weight_bytes: 0.0,
        host_kv_bytes: 0.0,
        host_memory_bytes: split.host.capacity().get(),
        host_bandwidth_gb_per_s: split.host.bandwidth().get() / 1e9,
        link_gb_per_s: split.link.get() / 1e9,
        from_disk: None,
        cards,
        says: says("layers_on_cards").with("each", each),
    })
}

/// The first of several cards that is too small for its layers, and what it lacks.
pub(crate) fn card_lacks(on: &Deployment, load: &Load) -> Option<(String, Bytes)> {
    let split = on.split.as_deref()?;
    let lacking = split.cards.iter().zip(split::on_cards(on, load)).find(|(_, (held, room))| held > room);
    lacking.map(|(card, (held, room))| (card.system.chip.name.clone(), held.less(room)))
}

/// Shares of several cards with which each holds its layers: one layer after another goes from the fullest card to the emptiest.
pub(crate) fn other_shares(on: &Deployment, load: &Load, starts: impl Fn(&Deployment) -> bool) -> Option<Remark> {
    let layers = on.model.shape()?.n_layers();
    let mut next = on.clone();
    for _ in 0..layers {
        let split = next.split.as_deref()?;
        let cards = shared(&next, load, split)?.cards;
        let over = |at: &usize| cards[*at].held_bytes - cards[*at].room_bytes;
        let fullest = (0..cards.len()).max_by(|a, b| over(a).total_cmp(&over(b)))?;
        let emptiest = (0..cards.len()).min_by(|a, b| over(a).total_cmp(&over(b)))?;
        if over(&fullest) <= 0.0 && starts(&next) {
            // The output counts as a layer of the last card.
            let last = cards.len() - 1;
            let share = |(at, card): (usize, &CardHeld)| (card.layers + f64::from(u8::from(at == last))).to_string();
            let shares: Vec<String> = cards.iter().enumerate().map(share).collect();
            return Some(says("other_shares").with("shares", shares.join(",")));
        }
        if over(&emptiest) >= 0.0 || cards[fullest].layers < 1.0 || fullest == emptiest {
            return None;
        }
        let mut moved = split.clone();
        for (at, change) in [(fullest, -1.0), (emptiest, 1.0)] {
            if let Some(card) = moved.cards.get_mut(at) {
                card.layers += change;
            }
        }
        next.split = Some(moved.into());
    }
    None
}

/// What the host's memory lacks for its part, where nothing comes from the disk.
pub(crate) fn host_lacks(on: &Deployment, load: &Load) -> Option<Bytes> {
    let split = on.split.as_deref().filter(|split| split.disk.is_none() && split.cards.is_empty())?;
    let (weights, kv) = split::on_host(on, load);
    let missing = weights.get() + kv.get() - split.host.capacity().get();
    (missing > 0.0).then(|| Bytes::b(missing))
}

/// Whole requests that take less than this share of the time of others are faster.
const FASTER: f64 = 0.98;

/// The split that would make it fit on one card: most layers there, and the fewest layers of experts elsewhere; which of the two is
/// faster is for who can tell how long a request takes with it.
pub(crate) fn would_fit(
    catalog: &Catalog,
    asked: &Offloaded,
    on: &Deployment,
    load: &Load,
    takes: impl Fn(&Offloaded) -> Option<f64>,
) -> Option<Remark> {
    if on.split.as_ref().is_some_and(|split| !split.cards.is_empty()) {
        return None;
    }
    let (engine, _) = catalog.engine("llamacpp").ok()?;
    let on = Deployment { split: None, engine, ..on.clone() };
    if asked.tensor_split.is_some()
        || on.layout.chips() > 1
        || on.system.chip.processor
        || matches!(place(&on, load).fit, Fit::Fits { .. })
    {
        return None;
    }
    let empty = asked.empty(catalog, &on, false).ok()?;
    let layers = on.model.shape()?.n_layers();
    // The output is one more layer to llama.cpp.
    let most = split::fewest_layers(&on, load, &empty).map(|n| layers + 1 - n).filter(|n| *n > 0);
    let experts = split::fewest_expert_layers(&on, load, &empty);
    if most.is_none() && experts.is_none() {
        return None;
    }
    let of_layers = most.and_then(|n| takes(&Offloaded { gpu_layers: Some(n), ..asked.bare() }));
    let of_experts = experts.and_then(|n| takes(&Offloaded { n_cpu_moe: Some(n), ..asked.bare() }));
    let faster = of_layers.zip(of_experts).filter(|(layers, experts)| *experts < layers * FASTER);
    let said = says("split_that_fits").with("layers", most).with("of", layers + 1).with("experts", experts);
    let said = said.with("faster", faster.map(|(layers, experts)| 1.0 - experts / layers));
    Some(said.with("moe", on.model.shape()?.moe_layers()).with("host", &empty.host.name))
}
