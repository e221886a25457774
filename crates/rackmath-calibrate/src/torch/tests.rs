use super::*;
use rackmath_spec::Model;

/// Runs a check on an H200 whose copies take 1 us and 2.5 TB/s.
fn with_machine(check: impl Fn(&Machine<'_>, &Model)) {
    let catalog = Catalog::embedded();
    let chip = catalog.chip("h200").unwrap();
    let (gemms, attentions) = (catalog.gemm_kernels().unwrap(), catalog.attention_kernels().unwrap());
    let gemm = Gemm::of(&chip, gemms.find(&chip, GemmFormat::Bf16, "torch").unwrap()).unwrap();
    let silicon = Silicon::of(&chip, Math::Bf16).unwrap();
    let ceilings = Ceilings { copy: ByteRate::tb_per_s(2.5), floor: Seconds::us(1.0) };
    let machine = Machine { chip: &chip, silicon, gemm, attentions: &attentions, ceilings };
    check(&machine, &catalog.model("llama-3.1-8b").unwrap());
}

#[test]
fn a_folder_without_tables_says_what_is_missing() {
    let error = score(Path::new("/nowhere")).unwrap_err().to_string();
    assert!(error.contains("ceilings.json"), "{error}");
}

#[test]
fn small_kernels_pay_a_floor_each_and_their_bytes() {
    // 1000 tokens, 8,192 + 12,288 values of two bytes: 40.96 MB at 2.5 TB/s is 16.38 us, and two floors.
    with_machine(|machine, _| {
        let time = machine.small(1000.0, &[8192.0, 12288.0]);
        assert!((time / Seconds::us(18.384) - 1.0).abs() < 1e-9, "{time:?}");
    });
}

#[test]
fn flash_stops_splitting_at_27_sequences_of_8_heads() {
    // 0.8 x 2 x 132 cores is 211.2 blocks: 26 x 8 = 208 stay below, 27 x 8 = 216 do not.
    with_machine(|machine, model| {
        let stack = dense(&model.body).unwrap();
        let time = |batch| machine.decode(stack.attention, batch, 8192.0);
        assert!(time(26.0) < time(25.0) * 1.1, "{:?} {:?}", time(25.0), time(26.0));
        assert!(time(27.0) > time(26.0) * 1.3, "{:?} {:?}", time(26.0), time(27.0));
    });
}

#[test]
fn a_decode_step_is_above_the_read_of_its_weights_and_below_twice_that() {
    // 16.06 GB of bf16 weights, the embedding's table not read, at 4.8 TB/s are 3.13 ms; measured at batch 1: 5.22 ms.
    with_machine(|machine, model| {
        let step = machine.step(&dense(&model.body).unwrap(), true, 1.0, 512.0);
        assert!(step > Seconds::ms(3.13) && step < Seconds::ms(6.26), "{step:?}");
    });
}

#[test]
fn models_with_experts_are_not_taken_for_dense_ones() {
    let catalog = Catalog::embedded();
    assert!(dense(&catalog.model("mixtral-8x7b").unwrap().body).is_none());
    assert!(dense(&catalog.model("llama-3.1-70b").unwrap().body).is_some());
}
