//! Once a layout is prepared, timing a pass or finding a steady state asks for no memory.

use allocation_counter::measure;
use rackmath::plan::{Request, space};
use rackmath::setting::Setting;
use rackmath_spec::Layout;
use rackmath_spec::layout::Degrees;
use rackmath_theory::board::{Board, Rules};
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::measured::{Measured, Point};
use rackmath_theory::pass::KernelSet;
use rackmath_theory::steady::{Load, Requests};
use rackmath_theory::timer::{Chunk, Decodes, Many, StepTimer, Work};
use std::hint::black_box;

fn deployments() -> Vec<Ready> {
    let catalog = rackmath_catalog::embedded();
    let kernels = KernelSet::of(&catalog).unwrap();
    let one = Degrees::default();
    // Grouped-query, latent, windowed and recurrent layers; dense and routed networks.
    let cases = [
        ("llama-3.1-70b", "8xh200", Degrees { tp: 8, etp: 8, ..one }),
        ("deepseek-v3", "gb200-nvl72", Degrees { dp: 32, ep: 32, ..one }),
        ("gemma-3-27b", "8xh200", Degrees { tp: 2, etp: 2, ..one }),
        ("qwen3-next-80b-a3b", "8xh200", Degrees { tp: 2, etp: 2, ..one }),
    ];
    cases
        .into_iter()
        .map(|(model, system, degrees)| {
            let on = Deployment::named(&catalog, model, system, "vllm").unwrap();
            Ready::new(&kernels, Deployment { layout: Layout::new(degrees).unwrap(), ..on }).unwrap()
        })
        .collect()
}

#[test]
fn the_counter_counts() {
    assert!(measure(|| drop(black_box(vec![1_u8; 10]))).count_total > 0);
}

#[test]
fn a_pass_does_not_allocate() {
    for d in deployments() {
        let decode = Work { drafts: 3.0, ..Work::decode(64.0, 4096.0) };
        let chunk = Chunk { tokens: 2048.0, prompts: 2.0, past: 0.0 };
        let many = [Decodes { sequences: 3.0, context: 100.0 }, Decodes { sequences: 5.0, context: 9000.0 }];
        let chunks = [chunk, Chunk { tokens: 64.0, prompts: 1.0, past: 4000.0 }];
        let several = Work { decodes: Many::List(&many), chunks: Many::List(&chunks), ..Work::default() };
        let works = [decode, Work::prefill(2.0, 1024.0, 512.0), decode.with(chunk), several];
        let board = Board::new(&d.deployment, &Rules::default()).unwrap();
        let info = measure(|| {
            for work in &works {
                black_box(d.pass.cost(black_box(work)));
                black_box(board.time(black_box(work)).is_ok());
            }
        });
        assert_eq!(info.count_total, 0, "{}", d.deployment.model.id);
        let point =
            |n: f64| Point { sequences: n, context: 4096.0, prompt: 0.0, past: 0.0, cost: d.pass.cost(&decode) };
        let table = Measured::new(&[point(1.0), point(128.0)], 3.0);
        assert_eq!(measure(|| assert!(table.time(black_box(&decode)).is_ok())).count_total, 0);
    }
}

#[test]
fn a_steady_state_does_not_allocate() {
    let requests = Requests::of(1000.0, 1000.0);
    let closed = Load::Closed { concurrency: 64.0, clump: 2.0, burst: 0.1, cold: false, convoy: false };
    for d in deployments() {
        let room = d.room(&requests);
        let info = measure(|| {
            for load in [closed, Load::Open { rate: 1.0 }, Load::Full] {
                black_box(d.steady(room, black_box(&requests), load));
            }
        });
        assert_eq!(info.count_total, 0, "{}", d.deployment.model.id);
    }
}

#[test]
fn one_configuration_of_a_plan_does_not_allocate() {
    let setting = Setting { model: "llama-3.1-8b".into(), on: "8xh200".into(), ..Setting::default() };
    let request = Request { setting, tpot_ms: Some(20.0.into()), ttft_ms: Some(500.0.into()), ..Request::default() };
    let (space, q) = space(&rackmath_catalog::embedded(), &request, 1).unwrap();
    let mut good = 0;
    let info = measure(|| {
        // A prime step meets every kind of configuration: one pool and two, every level and ratio.
        for index in (0..space.len()).step_by(7) {
            let estimate = space.estimate(black_box(index), q.output, q.traffic);
            good += u64::from(estimate.is_some_and(|e| q.limits.broken(&e) == 0));
        }
    });
    assert!(good > 100, "{good}");
    assert_eq!(info.count_total, 0);
}
