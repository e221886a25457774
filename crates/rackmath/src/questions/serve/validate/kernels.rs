//! Single kernels: the operator by itself, as PyTorch runs it in a captured graph.

use rackmath_spec::attention::Wanted;
use rackmath_spec::validation::{AttentionShape, KernelRow, KernelShape};
use rackmath_spec::{Catalog, Dtype, GemmFormat, Math};
use rackmath_theory::operator::attention::{DecodeWork, PrefillWork, Residency, decode, on_chip, prefill};
use rackmath_theory::operator::gemm::{Gemm, Product, Scaling};
use rackmath_theory::operator::{Silicon, ideal};
use rackmath_theory::pass::KernelSet;

/// The kernels whose times were published are PyTorch's.
const BACKEND: &str = "torch";

/// The metric, the predicted time and the roofline's, in microseconds.
type Timed = (&'static str, f64, f64);

pub(super) fn predicted(kernels: &KernelSet, catalog: &Catalog, row: &KernelRow) -> Result<Timed, String> {
    let none = |what: &str| format!("no {what} kernel of PyTorch in {} is known for {}", row.format, row.system);
    let chip = catalog.system(&row.system).map_err(|e| e.to_string())?.chip.clone();
    let us = |s: rackmath_units::Seconds| s.get() * 1e6;
    match row.shape {
        KernelShape::Gemm { m, n, k } => {
            let missing = || none("gemm");
            let kernel = kernels.gemm.find(&chip, gemm_format(row.format).ok_or_else(missing)?, BACKEND);
            let gemm = kernel.and_then(|kernel| Gemm::of(&chip, kernel)).ok_or_else(missing)?.captured();
            let silicon = Silicon::of(&chip, gemm.kernel().format.math()).ok_or_else(missing)?;
            let product = Product::new(m as f64, n as f64, k as f64);
            let format = gemm.kernel().format;
            let (m, n, k) = (product.rows, product.columns, product.depth);
            let moved =
                n * k * format.weight().get() + m * k * format.activation().get() + m * n * format.output().get();
            let roof = ideal(silicon, product.flop(), rackmath_units::Bytes::b(moved));
            Ok(("gemm_us", us(gemm.time(product, Scaling::Given).time), us(roof.time)))
        }
        KernelShape::AttentionDecode(shape) | KernelShape::AttentionPrefill(shape) => {
            let AttentionShape { heads, kv_heads, head_dim, batch, context } = shape;
            let silicon = Silicon::of(&chip, Math::Bf16).ok_or_else(|| none("attention"))?;
            let wanted = Wanted { backend: BACKEND, math: Dtype::Bf16, kv: row.format, group: heads / kv_heads.max(1) };
            let (pair, head) = ((heads as f64, kv_heads as f64), head_dim as f64);
            let (b, length, width) = (batch as f64, context as f64, row.format.width());
            if matches!(row.shape, KernelShape::AttentionDecode(_)) {
                let work = DecodeWork::grouped(b, length, pair, head, width);
                let kernel = kernels.attention.decode(&chip, wanted);
                let time = decode(silicon, &kernel.constants, &work, Residency::Memory).time;
                return Ok(("decode_attention_us", us(time), us(ideal(silicon, work.flop(), work.bytes()).time)));
            }
            let work = PrefillWork::grouped(b, length, pair, head, width);
            let constants = on_chip(&kernels.attention, &chip, kernels.attention.prefill(&chip, wanted).constants);
            let time = prefill(silicon, &constants, &work, Residency::Memory).time;
            Ok(("prefill_attention_us", us(time), us(ideal(silicon, work.flop(), work.bytes()).time)))
        }
    }
}

fn gemm_format(format: Dtype) -> Option<GemmFormat> {
    match format {
        Dtype::Bf16 | Dtype::Fp16 => Some(GemmFormat::Bf16),
        Dtype::Fp8 => Some(GemmFormat::Fp8),
        _ => None,
    }
}

/// The kernel in words.
pub(super) fn what(row: &KernelRow) -> String {
    let KernelRow { shape, format, system, .. } = row;
    match shape {
        KernelShape::Gemm { m, n, k } => format!("{m} x {n} x {k} {format} on {system}"),
        KernelShape::AttentionDecode(shape) | KernelShape::AttentionPrefill(shape) => {
            let AttentionShape { heads, kv_heads, head_dim, batch, context } = shape;
            format!("{batch} x {context} tokens, {heads}/{kv_heads} heads of {head_dim} {format} on {system}")
        }
    }
}
