//! What can be typed about money.

use super::SettingArgs;
use clap::Args as ClapArgs;
use rackmath_units::{DollarRate, Dollars, DollarsPerToken, Fraction, Seconds, TokenRate, Tokens, Watts};
use std::path::PathBuf;

/// Where pictures go.
#[derive(ClapArgs, Clone)]
pub struct PictureArgs {
    /// Save the picture as SVG (- writes to standard output)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Save the picture as PNG
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
}

/// How fast one chip is.
#[derive(ClapArgs, Clone)]
pub struct RatesArgs {
    /// Prompt tokens per second of one chip, as known
    #[arg(long, value_name = "RATE")]
    pub prefill_tok_s: Option<TokenRate>,
    /// Output tokens per second of one chip, as known
    #[arg(long, value_name = "RATE")]
    pub decode_tok_s: Option<TokenRate>,
    /// Where other rates come from: predicted (for --engine), board (its bound times an efficiency), or auto:
    /// predicted where the model is known layer by layer and fits
    #[arg(long, default_value = "auto", value_name = "SOURCE")]
    pub rates: String,
    /// Engine to predict for, with a version where it matters: vllm, sglang, trtllm, ideal
    #[arg(long, visible_alias = "backend", default_value = "vllm", value_name = "NAME")]
    pub engine: String,
    /// Tensor parallel degree to predict for [default: the fastest layout, for prompts and answers each]
    #[arg(long, visible_aliases = ["tensor-parallel-size", "tp-size"], value_name = "N")]
    pub tp: Option<u64>,
    /// Pipeline stages
    #[arg(long, visible_aliases = ["pipeline-parallel-size", "pp-size"], value_name = "N")]
    pub pp: Option<u64>,
    /// Data-parallel groups
    #[arg(long, visible_aliases = ["data-parallel-size", "dp-size"], value_name = "N")]
    pub dp: Option<u64>,
    /// Expert parallel degree
    #[arg(long, visible_aliases = ["expert-parallel-size", "ep-size"], value_name = "N")]
    pub ep: Option<u64>,
    /// Share of the board's prefill rate that is reached; takes rates from the board [default there: 0.4]
    #[arg(long, value_name = "SHARE")]
    pub prefill_efficiency: Option<Fraction>,
    /// Share of the board's decode rate that is reached; takes rates from the board [default there: 0.5]
    #[arg(long, value_name = "SHARE")]
    pub decode_efficiency: Option<Fraction>,
    /// Longest time per output token that is sold, for predicted rates without --batch
    #[arg(long, visible_alias = "tpot-slo", default_value = "50ms", value_name = "TIME")]
    pub tpot: Seconds,
    /// Sequences decoded together on the machine [default: what memory, engine and --tpot allow; 4096 for the board]
    #[arg(long, short = 'b', visible_aliases = ["concurrency", "batch-size"], value_name = "N")]
    pub batch: Option<Tokens>,
    /// Mean context of each sequence
    #[arg(long, short = 'c', default_value = "4096", value_name = "TOKENS")]
    pub context: Tokens,
    /// Tokens of a prompt
    #[arg(long, visible_alias = "isl", default_value = "4096", value_name = "TOKENS")]
    pub prompt: Tokens,
}

#[derive(ClapArgs, Clone)]
pub struct PriceArgs {
    /// Price sheets: names, or paths of .toml files; all when left out
    pub names: Vec<String>,
    /// Prices of this day, such as 2026-08-05 [default: the day each sheet was checked]
    #[arg(long, value_name = "DATE")]
    pub as_of: Option<String>,
    /// Moment of the requests in UTC, such as 2026-10-27T02:30, for prices by the hour
    #[arg(long, value_name = "MOMENT")]
    pub at: Option<String>,
    /// standard, batch, flex, priority, fast
    #[arg(long, default_value = "standard", value_name = "MODE")]
    pub mode: String,
    /// Another sheet for the same model: report where they disagree
    #[arg(long, value_name = "SHEET")]
    pub against: Option<String>,
    /// Tokens of the prompt; with --uses, of the prefix that comes back
    #[arg(long, short = 'i', value_name = "TOKENS")]
    pub input: Option<Tokens>,
    /// Tokens of the answer
    #[arg(long, short = 'o', default_value = "0", value_name = "TOKENS")]
    pub output: Tokens,
    /// Of the prompt, tokens read from a cache
    #[arg(long, default_value = "0", value_name = "TOKENS")]
    pub cached: Tokens,
    /// Of the prompt, tokens written to a cache
    #[arg(long, default_value = "0", value_name = "TOKENS")]
    pub written: Tokens,
    /// Which cache offer they were read from or written to: 5m, 1h, automatic, explicit
    #[arg(long, value_name = "OFFER")]
    pub offer: Option<String>,
    /// Requests with the same prefix
    #[arg(long, value_name = "N")]
    pub uses: Option<u64>,
    /// New tokens behind the prefix
    #[arg(long, default_value = "0", value_name = "TOKENS")]
    pub suffix: Tokens,
    /// Time between two requests or turns
    #[arg(long, default_value = "60s", value_name = "TIME")]
    pub gap: Seconds,
    /// Turns of a conversation that sends all that was said before
    #[arg(long, value_name = "N", conflicts_with_all = ["uses", "input"])]
    pub turns: Option<u64>,
    /// Tokens of instructions and tools before the first turn
    #[arg(long, default_value = "10k", value_name = "TOKENS")]
    pub instructions: Tokens,
    /// New tokens of each turn
    #[arg(long, default_value = "500", value_name = "TOKENS")]
    pub user: Tokens,
    /// Tokens of each turn's answer
    #[arg(long, default_value = "500", value_name = "TOKENS")]
    pub answer: Tokens,
    /// A trace: JSON lines as Mooncake writes them, or CSV with time_s,input_tokens,output_tokens
    #[arg(long, value_name = "FILE", conflicts_with_all = ["uses", "input", "turns"])]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub picture: PictureArgs,
}

/// An owner's figures.
#[derive(ClapArgs, Clone)]
pub struct OwnerArgs {
    /// Compute the hour an owner pays, instead of a price from the catalogue
    #[arg(long)]
    pub owner: bool,
    /// Price of a chip with its share of the machine [default: the catalogue's]
    #[arg(long, value_name = "PRICE")]
    pub capex: Option<Dollars>,
    /// Years it is written off over
    #[arg(long, default_value = "4", value_name = "YEARS")]
    pub years: f64,
    /// Cost of capital per year
    #[arg(long, default_value = "10%", value_name = "SHARE")]
    pub capital: Fraction,
    /// All-in power of a chip [default: the catalogue's]
    #[arg(long, value_name = "POWER")]
    pub power: Option<Watts>,
    /// Power of the building over power of the machines
    #[arg(long, default_value = "1.2", value_name = "X")]
    pub pue: f64,
    /// Dollars per kilowatt-hour
    #[arg(long, default_value = "0.08", value_name = "USD")]
    pub energy: f64,
    /// Space and cooling of one chip
    #[arg(long, default_value = "$0.10/h", value_name = "PRICE")]
    pub colo: DollarRate,
    /// People who keep one chip running
    #[arg(long, default_value = "$0.05/h", value_name = "PRICE")]
    pub staff: DollarRate,
    /// Share of hours a chip can be used
    #[arg(long, default_value = "95%", value_name = "SHARE")]
    pub availability: Fraction,
}

#[derive(ClapArgs, Clone)]
pub struct CostArgs {
    #[command(flatten)]
    pub setting: SettingArgs,
    #[command(flatten)]
    pub rates: RatesArgs,
    #[command(flatten)]
    pub owner: OwnerArgs,
    /// Share of held chip time that serves
    #[arg(long, short = 'u', visible_alias = "utilization", default_value = "0.5", value_name = "SHARE")]
    pub utilisation: Fraction,
    /// Share of input tokens found in the cache
    #[arg(long, default_value = "0.5", value_name = "SHARE")]
    pub hit: Fraction,
    /// What reading a cached token costs [default: fetching it from --cache-tier]
    #[arg(long, value_name = "PRICE")]
    pub cached_cost: Option<DollarsPerToken>,
    /// Memory tier the cache is read from
    #[arg(long, default_value = "nvme-local", value_name = "TIER")]
    pub cache_tier: String,
    /// How long a cached token is kept there between two uses
    #[arg(long, default_value = "5min", value_name = "TIME")]
    pub cache_hold: Seconds,
    /// Tokens accepted per step with speculative decoding
    #[arg(long, default_value = "1", value_name = "X")]
    pub accepted: f64,
    /// Extra work of drafting, as a share of a step
    #[arg(long, default_value = "0", value_name = "X")]
    pub draft: f64,
    /// Input tokens for each output token
    #[arg(long, default_value = "3.6", value_name = "X")]
    pub input_per_output: f64,
    /// Carbon of the electricity in grams per kilowatt-hour
    #[arg(long, value_name = "GRAMS")]
    pub carbon: Option<f64>,
    /// A price sheet to compare with
    #[arg(long, value_name = "SHEET")]
    pub sheet: Option<String>,
    /// Input price to compare with
    #[arg(long, value_name = "PRICE")]
    pub input_price: Option<DollarsPerToken>,
    /// Output price to compare with
    #[arg(long, value_name = "PRICE")]
    pub output_price: Option<DollarsPerToken>,
    #[command(flatten)]
    pub picture: PictureArgs,
}

#[derive(ClapArgs, Clone)]
pub struct FleetArgs {
    #[command(flatten)]
    pub setting: SettingArgs,
    #[command(flatten)]
    pub rates: RatesArgs,
    /// Input tokens per second on average
    #[arg(long, value_name = "RATE")]
    pub input_tok_s: Option<TokenRate>,
    /// Output tokens per second on average
    #[arg(long, value_name = "RATE")]
    pub output_tok_s: Option<TokenRate>,
    /// Requests per second on average, of --prompt tokens in and --answer out
    #[arg(long, visible_alias = "request-rate", value_name = "R")]
    pub requests_s: Option<f64>,
    /// Output tokens of a request
    #[arg(long, visible_alias = "osl", default_value = "500", value_name = "TOKENS")]
    pub answer: Tokens,
    /// Tokens announced per month, input and output together: 1e15
    #[arg(long, value_name = "TOKENS")]
    pub tokens_per_month: Option<Tokens>,
    /// Input tokens for each output token
    #[arg(long, default_value = "3.6", value_name = "X")]
    pub input_per_output: f64,
    /// Share of input tokens found in the cache
    #[arg(long, default_value = "0", value_name = "SHARE")]
    pub hit: Fraction,
    /// The day in equal parts, as numbers in proportion to traffic: 1,1,2,4,3,2
    #[arg(long, value_delimiter = ',', value_name = "X")]
    pub curve: Vec<f64>,
    /// Busiest part of the day over the mean [default: 278 / 226.75, DeepSeek's published day]
    #[arg(long, value_name = "X")]
    pub peak: Option<f64>,
    /// Share of capacity in use at the peak
    #[arg(long, default_value = "0.8", value_name = "SHARE")]
    pub target: Fraction,
    /// Chips of a prefill replica [default: the machine's]
    #[arg(long, value_name = "N")]
    pub prefill_chips: Option<u64>,
    /// Chips of a decode replica [default: the machine's]
    #[arg(long, value_name = "N")]
    pub decode_chips: Option<u64>,
    /// Output tokens per second of a whole market, for one machine's share
    #[arg(long, value_name = "RATE")]
    pub world_tok_s: Option<TokenRate>,
    /// Power of the building over power of the machines
    #[arg(long, default_value = "1.2", value_name = "X")]
    pub pue: f64,
    #[command(flatten)]
    pub picture: PictureArgs,
}

#[derive(ClapArgs, Clone)]
pub struct CacheArgs {
    #[command(flatten)]
    pub setting: SettingArgs,
    #[command(flatten)]
    pub rates: RatesArgs,
    /// Memory tiers [default: all of the catalogue]
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<String>,
    /// Published lifetimes to place
    #[arg(long, value_delimiter = ',', default_value = "5min,1h,1d", value_name = "TIME")]
    pub durations: Vec<Seconds>,
    /// A trace with hash_ids, JSON lines as Mooncake writes them
    #[arg(long, value_name = "FILE", conflicts_with = "gaps")]
    pub trace: Option<PathBuf>,
    /// Gaps and the share of prompt tokens wanted again after each: 30s:0.2,10min:0.1
    #[arg(long, value_delimiter = ',', value_parser = gap, value_name = "TIME:SHARE")]
    pub gaps: Vec<(f64, f64)>,
    /// Which picture to save: cost or hits
    #[arg(long, default_value = "cost", value_name = "WHICH")]
    pub figure: CacheFigure,
    #[command(flatten)]
    pub picture: PictureArgs,
}

/// Which picture of a cache.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CacheFigure {
    /// Cost against time.
    Cost,
    /// Hit rate against lifetime.
    Hits,
}

#[derive(ClapArgs, Clone)]
pub struct FastmodeArgs {
    /// A price sheet with a fast mode
    pub sheet: Option<String>,
    /// Price over the standard price
    #[arg(long, value_name = "X")]
    pub price: Option<f64>,
    /// Speed over the standard speed
    #[arg(long, value_name = "X")]
    pub speed: Option<f64>,
    #[command(flatten)]
    pub picture: PictureArgs,
}

/// "30s:0.2" as seconds and a share.
fn gap(text: &str) -> Result<(f64, f64), String> {
    let (time, share) = text.split_once(':').ok_or("expected a time and a share, such as 30s:0.2")?;
    let time: Seconds = time.parse().map_err(|e: rackmath_units::UnitError| e.to_string())?;
    let share: Fraction = share.parse().map_err(|e: rackmath_units::UnitError| e.to_string())?;
    Ok((time.get(), share.get()))
}
