use rackmath::deployment::*;
use rackmath_spec::layout::Degrees;
use rackmath_spec::*;
use rackmath_theory::pass::*;
use rackmath_theory::serving::*;
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    // model weights kv chip n tp ep dp engine isl osl conc
    let f = |i: usize| a[i].parse::<f64>().unwrap();
    let u = |i: usize| a[i].parse::<u64>().unwrap();
    let catalog = Catalog::embedded();
    let kernels = KernelSet::of(&catalog).unwrap();
    let model = catalog.model(&a[0]).unwrap();
    let formats = if a[1] == "auto" {
        model.formats()
    } else {
        let d: Dtype = a[1].parse().unwrap();
        model::Formats { routed: d, linear: d, other: model.formats().other }
    };
    let system = catalog.system(&format!("{}x{}", a[4], a[3])).unwrap();
    let (tp, ep, dp) = (u(5), u(6), u(7));
    let layout = Layout::new(Degrees { tp, ep, dp, etp: tp * dp / ep, ..Degrees::default() }).unwrap();
    let (engine, _) = catalog.engine(&a[8]).unwrap();
    let parts = Parts { model, formats, kv: a[2].parse().unwrap(), system, layout, engine };
    let d = Deployment::new(&catalog, &kernels, parts).unwrap();
    let r = Requests::of(f(9), f(10));
    let room = d.room(&r);
    println!("room {room} assumed {:?}", d.pass.assumed());
    let s = steady(
        &d.server(room),
        &r,
        if a[11] == "full" {
            Load::Full
        } else {
            Load::Closed { concurrency: f(11) / dp as f64, clump: 2.2, burst: 0.1, convoy: false }
        },
    );
    println!(
        "tpot {:.3} ttft {:.1} queue {:.1} out/s/chip {:.1} n {:.1} running {:.1} share {:.4} size {:.0}",
        s.tpot.as_ms(),
        s.ttft.as_ms(),
        s.queue.as_ms(),
        s.rate * r.output * dp as f64 / (tp * dp) as f64,
        s.decoding,
        s.running,
        s.prompt_share,
        s.prompt_size
    );
    for (name, c) in
        [("decode", s.decode), ("mixed", s.mixed), ("prefill one", d.pass.cost(&Work::prefill(1.0, r.input, 0.0)))]
    {
        print!("{name:12} {:.3} ms ideal {:.3}: ", c.time().as_ms(), c.ideal().as_ms());
        for p in Part::ALL {
            print!("{} {:.3} | ", p.name(), c.part(p).as_ms());
        }
        println!();
        print!("             ");
        for p in Limit::ALL {
            print!("{} {:.3} | ", p.name(), c.limited(p).as_ms());
        }
        println!();
    }
}
