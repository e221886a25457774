//! The products of a layer as PyTorch of 2024 ran them, launches and all: profiles that a simulator of that year is fed with.
//!
//! A row has four: queries, keys and values; the output of attention; both halves of the gated network in one; and its way back. They are
//! scored apart from products that were timed by replaying a graph.

use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, table_or_none};
use rackmath_spec::{Catalog, GemmFormat, GemmKernels, SpecError};
use rackmath_theory::operator::gemm::{Gemm, Product, Scaling};
use std::path::Path;

pub const FILE: &str = "vidur_profiles_mlp.csv";

pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let (names, kernels) = (Names::new(catalog), catalog.gemm_kernels()?);
    let mut all = Rows::none();
    for (at, record) in table_or_none(&folder.join(FILE))?.iter().enumerate() {
        match layer(&names, &kernels, record) {
            Ok(cases) => all.rows.extend(cases.into_iter().map(|case| Case { row: at + 1, ..case })),
            Err(reason) => all.skip(reason),
        }
    }
    Ok(all)
}

fn layer(names: &Names<'_>, kernels: &GemmKernels, record: &Record) -> Result<Vec<Case>, String> {
    let (name, word) = (record.needed("device")?, record.needed("model")?);
    let (chip, model) = (names.found(name)?, names.model(word).ok_or_else(|| format!("no model \"{word}\""))?);
    let format = GemmFormat::Bf16;
    let kernel = kernels.find(&chip, format, "torch").and_then(|kernel| Gemm::of(&chip, kernel));
    let gemm = kernel.ok_or_else(|| format!("no kernel for {format} on {name}"))?;
    let tp = record.degree("num_tensor_parallel_workers") as f64;
    let [rows, heads, kv_heads, hidden, wide] =
        ["num_tokens", "n_head", "n_kv_head", "n_embd", "n_expanded_embd"].map(|column| record.amount(column));
    let (rows, heads, kv_heads, hidden, wide) = (rows?, heads?, kv_heads?, hidden?, wide?);
    let head = hidden / heads;
    let case = |(column, n, k): (&str, f64, f64)| {
        let ms = record.number(column).filter(|ms| *ms > 0.0)?;
        let predicted = gemm.time(Product::new(rows, n, k), Scaling::Given).time.get();
        let what = format!("{rows} x {n} x {k}; {}", column.trim_end_matches("_ms"));
        let case = Case::on(&chip, FILE, "gemm with its launch").of("torch", &model, what);
        Some(Case { measured: ms / 1e3, predicted, ..case })
    };
    let products = [
        ("attn_pre_proj_ms", (heads + 2.0 * kv_heads) * head / tp, hidden),
        ("attn_post_proj_ms", hidden, heads * head / tp),
        ("mlp_up_proj_ms", 2.0 * wide / tp, hidden),
        ("mlp_down_proj_ms", hidden, wide / tp),
    ];
    Ok(products.into_iter().filter_map(case).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::parse;

    #[test]
    fn a_layer_has_four_products_cut_by_its_degree() {
        let csv = "\
device,model,n_head,n_kv_head,n_embd,n_expanded_embd,num_tokens,num_tensor_parallel_workers,attn_pre_proj_ms,attn_post_proj_ms,mlp_up_proj_ms,mlp_down_proj_ms
a100,meta-llama/Llama-2-70b-hf,64,8,8192,28672,4096,1,2.872,2.377,15.9405,8.0635
a100,meta-llama/Llama-2-70b-hf,64,8,8192,28672,4096,8,0.4,,2.1,1.1
abacus,meta-llama/Llama-2-70b-hf,64,8,8192,28672,4096,1,2.872,2.377,15.9405,8.0635
";
        let catalog = rackmath_catalog::embedded();
        let (names, kernels) = (Names::new(&catalog), catalog.gemm_kernels().unwrap());
        let rows: Vec<_> = parse(csv).unwrap().iter().map(|r| layer(&names, &kernels, r)).collect();
        let (whole, cut) = (rows[0].as_ref().unwrap(), rows[1].as_ref().unwrap());
        assert_eq!((whole.len(), cut.len()), (4, 3));
        // 2 x 4096 x 8192 x 57344 = 3.85 TFLOP is at least 12.3 ms at 312 TFLOP/s.
        assert!(whole[2].predicted > 12.3e-3 && whole[2].predicted < 25e-3, "{:?}", whole[2]);
        assert!(whole[2].predicted > 4.0 * cut[1].predicted, "{cut:?}");
        assert!(rows[2].as_ref().is_err_and(|said| said.contains("abacus")));
    }
}
