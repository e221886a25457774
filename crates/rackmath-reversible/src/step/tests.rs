use super::*;

fn at(depth: usize, keep: Keep, stored: Stored) -> Step {
    let c = Config::small(depth);
    step(&c, &Weights::new(&c, 1), keep, stored, 2)
}

#[test]
fn gradients_are_slopes() {
    // Along each tensor's own gradient the loss changes by the gradient's square; f32 leaves a few digits of that.
    let c = Config::small(2);
    let w = Weights::new(&c, 1);
    let g = step(&c, &w, Keep::Everything, Stored::F32, 2).gradient;
    for part in 0..w.parts().len() {
        let square: f32 = g.parts()[part].iter().map(|g| g * g).sum();
        let reach = 3e-3 / square.sqrt().max(1e-6);
        let moved = |sign: f32| {
            let mut moved = w.clone();
            let direction: Vec<f32> = g.parts()[part].to_vec();
            moved.parts_mut()[part].iter_mut().zip(&direction).for_each(|(w, g)| *w += sign * reach * g);
            step(&c, &moved, Keep::Everything, Stored::F32, 2).loss
        };
        let slope = (moved(1.0) - moved(-1.0)) / (2.0 * reach);
        assert!((slope / square - 1.0).abs() < 0.02, "tensor {part}: {slope} against {square}");
    }
}

#[test]
fn gradients_do_not_depend_on_what_is_kept() {
    for depth in [1, 4, 12, 24] {
        let ordinary = at(depth, Keep::Everything, Stored::F32);
        for keep in [Keep::Inputs, Keep::Spaced] {
            assert_eq!(at(depth, keep, Stored::F32).gradient, ordinary.gradient, "computing again gives the same bits");
        }
        let reversible = at(depth, Keep::Nothing, Stored::F32);
        let off = reversible.gradient.distance(&ordinary.gradient);
        assert!(off < 1e-5 && reversible.loss == ordinary.loss, "depth {depth}: {off}");
    }
}

#[test]
fn on_a_grid_the_inverse_is_exact_and_in_bf16_not_worth_having() {
    let off = |depth, stored| {
        let [ordinary, reversible] = [Keep::Everything, Keep::Nothing].map(|keep| at(depth, keep, stored).gradient);
        (reversible.distance(&ordinary), ordinary)
    };
    for depth in [4, 24] {
        let (apart, ordinary) = off(depth, Stored::Fixed);
        assert_eq!(apart, 0.0);
        // The grid itself moves the gradient little from f32's.
        assert!(ordinary.distance(&off(depth, Stored::F32).1) < 1e-2);
    }
    assert!(off(24, Stored::Bf16).0 > 1e-2);
}

#[test]
fn peak_memory_is_flat_in_depth_only_when_reversible() {
    let peak = |depth, keep| at(depth, keep, Stored::F32).peak_bytes as f64;
    let slope = |keep| (peak(32, keep) - peak(8, keep)) / 24.0;
    let [ordinary, checkpointed, spaced, reversible] = Keep::ALL.map(slope);
    assert!(spaced < ordinary);
    assert!(reversible < 0.03 * ordinary, "{reversible} of {ordinary}");
    // Checkpoints hold two streams of 32 x 32 numbers of four bytes per block.
    assert_eq!(checkpointed, 2.0 * 32.0 * 32.0 * 4.0);
}

#[test]
fn recomputing_costs_a_third_more() {
    let flop = |depth, keep| at(depth, keep, Stored::F32).flop as f64;
    // The difference of two depths leaves the blocks alone, without embedding and head.
    let block = |keep| flop(9, keep) - flop(8, keep);
    let [ordinary, checkpointed, spaced, reversible] = Keep::ALL.map(block);
    assert!((reversible / ordinary - 4.0 / 3.0).abs() < 1e-12);
    // The output of a checkpointed block's last sublayer is computed again too, though nobody reads it.
    assert_eq!((checkpointed, spaced), (reversible, reversible));
}

#[test]
fn all_of_them_learn_the_same() {
    let c = Config { batch: 8, ..Config::small(2) };
    let ways = [Keep::Everything, Keep::Spaced, Keep::Nothing];
    let [ordinary, spaced, reversible] =
        ways.map(|keep| train(&c, keep, Stored::F32, 60, 5, &Cancel::never()).unwrap());
    assert!(ordinary == spaced);
    let (first, last) = (ordinary[0], ordinary[59]);
    assert!(first > 2.0 && last < 1.2, "{first} to {last}");
    assert!((reversible[59] - last).abs() < 0.05, "{} against {last}", reversible[59]);
}
