use super::*;

/// A few rows carried here by hand: aiconfigurator database 0.12.0.
const H100: &str = "\
backend,backend_version,kernel_source,moe_dtype,model_shape,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,num_tokens,latency_us
trtllm,1.3.0rc20,moe_torch_flow_cutlass,bfloat16,Qwen3-235B-A22B,4096,1536,8,128,1,1,balanced,64,1580
trtllm,1.3.0rc20,moe_torch_flow_cutlass,bfloat16,Qwen3-235B-A22B,4096,1536,8,128,1,8,balanced,4096,372
trtllm,1.3.0rc20,moe_torch_flow_cutlass,fp8_block,DeepSeek-V3/R1,7168,2048,8,256,1,8,power_law_1.01,1024,674
vllm,0.24.0,vllm_unquantizedfusedmoe_triton_tritonexperts,bfloat16,Qwen3-30B-A3B,2048,768,8,128,1,8,balanced,1024,148
trtllm,1.3.0rc20,moe_torch_flow_cutlass,nvfp4,DeepSeek-V3/R1,7168,2048,8,256,1,8,balanced,1024,674
";

#[test]
fn rows_are_read_with_their_kernels_and_counted_in_their_group() {
    let catalog = rackmath_catalog::embedded();
    let (chip, kernels) = (catalog.chip("h100-sxm").unwrap(), catalog.moe_kernels().unwrap());
    let table = crate::rows::parse(H100).unwrap();
    let rows: Rows<Row> = table.iter().map(|record| row(record, &chip, &kernels)).collect();
    let families: Vec<&str> = rows.rows.iter().map(|r| r.family).collect();
    assert_eq!(families, ["trtllm-cutlass", "trtllm-cutlass", "trtllm-cutlass", "vllm-triton"]);
    assert_eq!(rows.rows[2].call.draw, moe::Draw::PowerLaw(1.01));
    assert_eq!(rows.skipped["h100-sxm has no fp4"], 1);
    for row in &rows.rows {
        let error = off(&kernels, row).unwrap();
        assert!(error.abs() < 0.25, "a row carried here is predicted within a quarter: {row:?}: {error}");
    }
    let table = score_rows(&rows, &kernels);
    let counted: u64 = table.lines.iter().filter(|l| l.group[1] != "all").map(|l| l.fit.rows).sum();
    assert_eq!(counted, 4);
}

#[test]
fn a_fit_recovers_the_constants_that_made_the_rows() {
    let catalog = rackmath_catalog::embedded();
    let (chip, kernels) = (catalog.chip("h100-sxm").unwrap(), catalog.moe_kernels().unwrap());
    let template = row(&crate::rows::parse(H100).unwrap()[0], &chip, &kernels).unwrap();
    let made = kernels.find("trtllm-cutlass", MoeFormat::Bf16, "hopper").unwrap().kernel;
    let mut synthetic = Vec::new();
    for (hidden, inter, experts, ranks) in [(4096, 1536, 128, 1), (2048, 768, 128, 8), (4096, 14336, 8, 1)] {
        for power in 0..15 {
            let mut row = template.clone();
            let layer = moe::Layer { hidden, inter, experts, ranks, ..row.call.layer };
            row.call = moe::Call { layer, tokens: Tokens::new(f64::from(1 << power)), ..row.call };
            row.measured = moe::time(row.silicon, &made, &row.call).time;
            synthetic.push(row);
        }
    }
    let synthetic: Vec<&Row> = synthetic.iter().collect();
    let fitted = fit_rows(&synthetic, &kernels, Search::Shares).unwrap();
    let fit = |k: &MoeKernels| {
        let fits = &k.families["trtllm-cutlass"];
        fits.iter().find(|f| f.generation == "hopper" && f.format == MoeFormat::Bf16).unwrap().clone()
    };
    assert!(fit(&fitted).residual.p90 < 0.03, "{:?}", fit(&fitted));
    let again = fit_rows(&synthetic, &kernels, Search::Shares).unwrap();
    assert_eq!(fitted, again, "the same rows give the same constants");
    assert!(toml(&fitted).contains("[[family.trtllm-cutlass.fit]]"));
}

#[test]
fn formats_of_other_makers_are_read_and_refused_where_there_is_none() {
    let catalog = rackmath_catalog::embedded();
    let (chip, kernels) = (catalog.chip("mi355x").unwrap(), catalog.moe_kernels().unwrap());
    let csv = "\
backend,kernel_source,moe_dtype,model_shape,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,num_tokens,latency_us
aiter,fused_moe,a_float4_e2m1fn_x2/w_float4_e2m1fn_x2/per_1x32,some model,7168,512,8,257,,,random_router_scores,64,200
aiter,fused_moe,a_float8_e4m3fn/w_float8_e4m3fn/per_1x128,some model,7168,512,8,257,,,random_router_scores,64,200
aiter,fused_moe,a_bfloat16/w_int4/per_1x32,some model,7168,512,8,257,,,random_router_scores,64,200
aiter,fused_moe,a_abacus/w_bfloat16/No,some model,7168,512,8,257,,,random_router_scores,64,200
aiter,fused_moe,a_bfloat16/w_bfloat16/No,some model,7168,512,8,257,,,by hand,64,200
";
    let table = crate::rows::parse(csv).unwrap();
    let rows: Rows<Row> = table.iter().map(|record| row(record, &chip, &kernels)).collect();
    let formats: Vec<MoeFormat> = rows.rows.iter().map(|r| r.call.format).collect();
    assert_eq!(formats, [MoeFormat::NvFp4, MoeFormat::Fp8Block, MoeFormat::Int4A16]);
    assert!(rows.rows.iter().all(|r| r.call.layer.ranks == 1 && r.call.draw == moe::Draw::Random));
    assert_eq!(rows.skipped.values().sum::<usize>(), 2);
    assert!(rows.rows.iter().all(|r| off(&kernels, r).unwrap().is_finite()));
}
