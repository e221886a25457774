//! Rows of a sweep as comma-separated values, units in the header.

use rackmath::curve::Answer;
use rackmath::estimate::sweep;
use std::fmt::Write as _;

/// The sweep as CSV.
pub fn curve(answer: &Answer) -> String {
    let mut out = format!(
        "{},label,time_s,compute_s,weights_s,kv_s,cost_usd_per_mtok,mfu,tokens_per_s,binding,fits\n",
        answer.over.as_ref()
    );
    for r in &answer.rows {
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{}",
            r.x,
            r.label.as_deref().unwrap_or(""),
            r.time_s,
            r.compute_s,
            r.weights_s,
            r.kv_s,
            r.cost_usd_per_mtok.map_or(String::new(), |c| c.to_string()),
            r.mfu,
            r.tokens_per_s,
            r.binding,
            r.fits
        );
    }
    out
}

/// The curve of a deployment as CSV.
pub fn estimate_sweep(answer: &sweep::Answer) -> String {
    let mut out = String::from(
        "concurrency,output_tok_s_per_user,output_tok_s_per_chip,tpot_ms,ttft_ms,e2e_ms,requests_per_s,of_limit,usd_per_mtok_output,binding,waiting\n",
    );
    for r in &answer.rows {
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{}",
            r.concurrency,
            r.output_tok_s_per_user,
            r.output_tok_s_per_chip,
            r.tpot_ms,
            r.ttft_ms,
            r.e2e_ms,
            r.requests_per_s,
            r.of_limit,
            r.usd_per_mtok_output.map_or(String::new(), |c| c.to_string()),
            r.binding,
            r.waiting
        );
    }
    out
}

/// The points of a figure, one row per point: line, x, y.
pub fn figure(figure: &rackmath::figure::Figure) -> String {
    let quoted = |text: &str| if text.contains(',') { format!("\"{text}\"") } else { text.to_owned() };
    let mut out = format!("line,{},{}\n", quoted(&figure.x.label), quoted(&figure.y.label));
    for series in &figure.series {
        for (x, y) in &series.points {
            let _ = writeln!(out, "{},{x},{y}", quoted(&series.name));
        }
    }
    out
}

/// The frontier of a plan, fastest user first.
pub fn plan_frontier(answer: &rackmath::plan::Answer) -> String {
    let mut out = format!("{POINT}\n");
    for p in &answer.frontier {
        let _ = writeln!(out, "{}", point(p));
    }
    out
}

const POINT: &str = "index,tok_s_per_user,tok_s_per_chip,usd_per_mtok,ttft_ms,tpot_ms,chips_per_replica,concurrency_per_group,deployment";

fn point(p: &rackmath::plan::Point) -> String {
    format!(
        "{},{},{},{},{},{},{},{},\"{}\"",
        p.index,
        p.tok_s_per_user,
        p.tok_s_per_chip,
        p.usd_per_mtok,
        p.ttft_ms,
        p.tpot_ms,
        p.chips_per_replica,
        p.concurrency_per_group,
        p.deployment
    )
}

/// Frontiers, one row per point, the curve in the first column.
pub fn frontiers<'a>(curves: impl Iterator<Item = &'a rackmath::frontier::Curve>) -> String {
    let mut out = format!("curve,model,system,{POINT}\n");
    for c in curves {
        for p in &c.points {
            let _ = writeln!(out, "\"{}\",\"{}\",\"{}\",{}", c.name, c.model, c.system, point(p));
        }
    }
    out
}

/// Hardware, best first.
pub fn hardware(answer: &rackmath::hardware::Answer) -> String {
    let mut out = String::from(
        "name,system,usd_per_chip_hour,price_basis,usd_per_mtok,usd_per_mtok_low,usd_per_mtok_high,behind,too_close,tok_s_per_chip,tok_s_per_user,ttft_ms,chips,power_kw,deployment\n",
    );
    for r in &answer.rows {
        let p = &r.plan;
        let _ = writeln!(
            out,
            "{},\"{}\",{},{},{},{},{},{},{},{},{},{},{},{},\"{}\"",
            r.name,
            p.system,
            r.usd_per_chip_hour,
            r.price_basis,
            p.usd_per_mtok.value,
            p.usd_per_mtok.low,
            p.usd_per_mtok.high,
            r.behind.value,
            r.too_close,
            p.tok_s_per_chip.value,
            p.tok_s_per_user.value,
            p.ttft_ms.value,
            p.chips,
            p.power_kw,
            p.deployment
        );
    }
    out
}
