//! What is asked and what comes back.

use super::coverage::CoverageCard;
use crate::desk::prelude::*;

/// Which tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Tables by name; all when empty; simulate replays whole runs and recorded schedules.
    #[schemars(extend("x-position" = 1))]
    pub tables: Vec<String>,
    /// Whether the answer holds every row.
    pub rows: bool,
}

/// How far off we are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// Published tables.
    pub sources: Vec<SourceCard>,
    /// All rows of the published tables together.
    pub total: Option<StratumCard>,
    /// Whether intervals hold with whole groups left out, by what is carried over; where all tables are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<CoverageCard>,
    /// A folder of measurements, where one was given.
    pub folder: Option<FolderCard>,
    /// Runs replayed request by request, where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulate: Option<SimulateCard>,
}

impl Answer {
    /// Keeps the summaries only.
    pub fn forget_rows(&mut self) {
        let given = self.folder.iter_mut().flat_map(|f| f.sources.iter_mut());
        for source in self.sources.iter_mut().chain(given) {
            source.rows.clear();
        }
    }
}

/// The simulator against runs and schedules of real engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulateCard {
    /// One for each source of runs.
    pub sources: Vec<ReplayCard>,
    /// Steps that a real scheduler chose.
    pub schedules: SchedulesCard,
}

/// The runs of one source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayCard {
    /// The table's name.
    pub id: String,
    /// A short name.
    pub name: String,
    /// Where it is.
    pub address: String,
    /// Whether the constants were fitted on these runs.
    pub fitted: String,
    /// What was assumed where the source does not say.
    pub assumed: String,
    /// One line for each metric and percentile.
    pub latencies: Vec<LatencyCard>,
    /// Every run.
    pub runs: Vec<RunCard>,
}

/// Distances of one percentile of a latency over runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyCard {
    /// TTFT, TPOT, ITL or E2E.
    pub metric: String,
    /// A percentile or the mean.
    pub at: String,
    /// Runs.
    pub n: usize,
    /// Median of |ln(predicted / measured)|.
    pub median: f64,
    /// Its 90th percentile.
    pub p90: f64,
    /// Median of ln(predicted / measured).
    pub bias: f64,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunCard {
    /// Its name.
    pub name: String,
    /// Requests replayed.
    pub requests: usize,
    /// What was measured.
    pub figures: Vec<FigureCard>,
}

/// One figure of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureCard {
    /// TTFT, TPOT, ITL or E2E.
    pub metric: String,
    /// A percentile or the mean.
    pub at: String,
    /// As measured.
    pub measured_ms: f64,
    /// As simulated.
    pub predicted_ms: f64,
}

/// Recorded schedules against ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchedulesCard {
    /// What recorded them.
    pub engine: String,
    /// Scenarios compared.
    pub scenarios: usize,
    /// Their steps.
    pub steps: usize,
    /// Names of those that differ.
    pub differ: Vec<String>,
}

/// A folder of measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FolderCard {
    /// The folder as given.
    pub folder: String,
    /// Its tables.
    pub sources: Vec<SourceCard>,
    /// All of its rows together.
    pub total: Option<StratumCard>,
    /// Tables of the folder that hold no serving measurements we read.
    pub unread: Vec<String>,
    /// Constants fitted without a group, and the group predicted.
    pub cross: Option<CrossCard>,
}

/// One source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceCard {
    /// The table's name.
    pub id: String,
    /// A short name.
    pub name: String,
    /// The title of the publication.
    pub title: String,
    /// Where it is.
    pub address: String,
    /// Measured figures, the ones left out included.
    pub n: usize,
    /// One line per metric.
    pub strata: Vec<StratumCard>,
    /// Whether the constants were fitted on these rows: yes, no or partly, and how; empty where not said.
    pub fitted: String,
    /// What was assumed to ask the question.
    pub notes: Vec<Remark>,
    /// What could not be predicted.
    pub skipped: Vec<SkipCard>,
    /// Every row, where asked for.
    pub rows: Vec<RowCard>,
}

/// Rows left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkipCard {
    /// Why.
    pub reason: String,
    /// How many.
    pub n: usize,
    /// Which.
    pub rows: Vec<String>,
}

/// The rows of one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StratumCard {
    /// The metric, with its condition where there is one.
    pub metric: String,
    /// Rows.
    pub n: usize,
    /// Median of |ln(predicted / measured)|.
    pub median: f64,
    /// Its 90th percentile.
    pub p90: f64,
    /// Median of ln(predicted / measured).
    pub bias: f64,
    /// Spearman's rank correlation; absent for fewer than three rows, or where all are equal.
    pub spearman: Option<f64>,
    /// Share of rows inside their 80 % interval; absent where no interval is given.
    pub coverage: Option<f64>,
    /// Median of the data-sheet roofline; 0, like the three below, where no row has one.
    pub roofline_median: f64,
    /// Its 90th percentile.
    pub roofline_p90: f64,
    /// Median of the roofline times one factor, fitted to these very rows.
    pub constant_median: f64,
    /// Its 90th percentile.
    pub constant_p90: f64,
}

/// One measured figure and its prediction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowCard {
    /// Its place in the table.
    pub place: String,
    /// What ran, on what, under which load.
    pub what: String,
    /// What was measured; the unit ends the word.
    pub metric: String,
    /// As predicted.
    pub predicted: f64,
    /// As published.
    pub measured: f64,
    /// Predicted over measured.
    pub ratio: f64,
    /// The natural logarithm of the ratio.
    pub error: f64,
    /// Lower end of the 80 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Whether the measured figure lies in it.
    pub inside: Option<bool>,
    /// The data-sheet roofline; 0 where the figure has none.
    pub roofline: f64,
    /// What was assumed to ask.
    pub assumed: Vec<Remark>,
}

/// Whole groups left out of the fit, and predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrossCard {
    /// What a group is: chip, model, engine.
    pub by: String,
    /// The groups.
    pub groups: Vec<String>,
    /// One line per metric.
    pub strata: Vec<CrossStratumCard>,
    /// All rows together.
    pub total: Option<CrossStratumCard>,
    /// What is fitted anew and what is not.
    pub notes: Vec<String>,
}

/// The rows of one metric, with the catalogue's constants and with constants that never saw their group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrossStratumCard {
    /// The metric, with its condition.
    pub metric: String,
    /// Rows.
    pub n: usize,
    /// Median with the catalogue's constants.
    pub sample_median: f64,
    /// Its 90th percentile.
    pub sample_p90: f64,
    /// Share inside the 80 % interval.
    pub sample_coverage: f64,
    /// Median with the group left out.
    pub median: f64,
    /// Its 90th percentile.
    pub p90: f64,
    /// Share inside the 80 % interval.
    pub coverage: f64,
}
