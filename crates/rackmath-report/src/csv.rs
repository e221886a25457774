//! Tables as comma-separated values, units in the header.

use crate::words::words;
use rackmath::curve::Answer;
use rackmath::estimate::sweep;
use rackmath::figure::Figure;
use rackmath::frontier::Curve;
use rackmath::{hardware, plan, simulate};
use serde::Serialize;
use serde_json::Value;

/// A line for each row, a cell for each column. A column is a field of the row and the field's name, or `name=field` where
/// they differ; a field inside another is reached by dots, and one in quotation marks is always written in them.
fn table<T: Serialize>(columns: &str, rows: impl IntoIterator<Item = T>) -> String {
    let columns: Vec<(&str, String, bool)> = columns
        .split(',')
        .map(|column| {
            let (name, path) = column.split_once('=').unwrap_or((column, column));
            let quoted = path.starts_with('"');
            (name.trim_matches('"'), format!("/{}", path.trim_matches('"').replace('.', "/")), quoted)
        })
        .collect();
    let header: Vec<&str> = columns.iter().map(|(name, ..)| *name).collect();
    let mut out = header.join(",") + "\n";
    for row in rows {
        let row = serde_json::to_value(row).unwrap_or_default();
        let cells = columns.iter().map(|(_, path, quoted)| {
            let cell = shown(row.pointer(path).unwrap_or(&Value::Null));
            if *quoted { format!("\"{cell}\"") } else { cell }
        });
        out += &(cells.collect::<Vec<_>>().join(",") + "\n");
    }
    out
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(n) if n.is_f64() => n.as_f64().unwrap_or_default().to_string(),
        Value::Object(_) => serde_json::from_value(value.clone()).map_or_else(|_| String::new(), |r| words(&r)),
        other => other.to_string(),
    }
}

pub fn curve(answer: &Answer) -> String {
    let over: &str = answer.over.as_ref();
    let rest = "label,time_s,compute_s,weights_s,kv_s,cost_usd_per_mtok,mfu,tokens_per_s,binding,fits";
    table(&format!("{over}=x,{rest}"), &answer.rows)
}

pub fn estimate_sweep(answer: &sweep::Answer) -> String {
    let speeds = "concurrency,output_tok_s_per_user,output_tok_s_per_chip,tpot_ms,ttft_ms,e2e_ms,requests_per_s";
    table(&format!("{speeds},of_limit,usd_per_mtok_output,binding,waiting"), &answer.rows)
}

/// What each request of a run met, whether it was answered or not: the last column says.
pub fn requests(answer: &simulate::Answer) -> String {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Met<'a> {
        Answered(&'a simulate::Waited),
        Not(&'a simulate::Failed),
    }
    #[derive(Serialize)]
    struct Row<'a> {
        #[serde(flatten)]
        met: Met<'a>,
        outcome: &'static str,
    }
    let answered = answer.each.iter().map(|w| (w.request, Row { met: Met::Answered(w), outcome: "answered" }));
    let failed = answer.failed.iter().map(|f| {
        let outcome = match f.why {
            simulate::Reason::TimedOut => "timed out",
            simulate::Reason::Refused => "refused",
            simulate::Reason::Lost => "lost",
        };
        (f.request, Row { met: Met::Not(f), outcome })
    });
    let mut all: Vec<(u64, Row)> = answered.chain(failed).collect();
    all.sort_by_key(|row| row.0);
    let who = "request,replica,arrival_s,prompt,cached,output,queue_ms,prompt_ms,decode_ms,others_prompts_ms";
    let below = if answer.tiers.is_empty() { "" } else { ",fetched,fetch_ms" };
    table(
        &format!(
            "{who},evicted_ms,transfer_ms,outside_ms,retried_ms,ttft_ms,tpot_ms,e2e_ms,preemptions{below},attempts,after_ms,outcome"
        ),
        all.into_iter().map(|row| row.1),
    )
}

/// The points of a figure, one row per point: line, x, y.
pub fn figure(figure: &Figure) -> String {
    let quoted = |text: &str| if text.contains(',') { format!("\"{text}\"") } else { text.to_owned() };
    let mut out = format!("line,{},{}\n", quoted(&figure.x.label), quoted(&figure.y.label));
    for series in &figure.series {
        let name = quoted(&words(&series.name));
        out.extend(series.points.iter().map(|(x, y)| format!("{name},{x},{y}\n")));
    }
    out
}

const POINT: &str = "index,tok_s_per_user,tok_s_per_chip,usd_per_mtok,ttft_ms,tpot_ms,chips_per_replica,concurrency_per_group,\"deployment\"";

/// The frontier of a plan, fastest user first.
pub fn plan_frontier(answer: &plan::Answer) -> String {
    table(POINT, &answer.frontier)
}

/// Frontiers, one row per point, the curve in the first column.
pub fn frontiers<'a>(curves: impl Iterator<Item = &'a Curve>) -> String {
    #[derive(Serialize)]
    struct Row<'a> {
        curve: &'a Curve,
        #[serde(flatten)]
        point: &'a plan::Point,
    }
    let rows = curves.flat_map(|curve| curve.points.iter().map(move |point| Row { curve, point }));
    table(&format!("curve=\"curve.name\",model=\"curve.model\",system=\"curve.system\",{POINT}"), rows)
}

/// Hardware, best first.
pub fn hardware(answer: &hardware::Answer) -> String {
    let cost = "usd_per_mtok=plan.usd_per_mtok.value,usd_per_mtok_low=plan.usd_per_mtok.low,usd_per_mtok_high=plan.usd_per_mtok.high";
    let speeds =
        "tok_s_per_chip=plan.tok_s_per_chip.value,tok_s_per_user=plan.tok_s_per_user.value,ttft_ms=plan.ttft_ms.value";
    let row = "name,system=\"plan.system\",usd_per_chip_hour,price_basis";
    let rest = "chips=plan.chips,power_kw=plan.power_kw,deployment=\"plan.deployment\"";
    table(&format!("{row},{cost},behind=behind.value,too_close,{speeds},{rest}"), &answer.rows)
}
