//! All devices of this machine together, by NCCL or RCCL, which have the same functions.
//!
//! ```text
//! algorithm rate = bytes / time,  bus rate = algorithm rate x 2 (n - 1) / n     of an all-reduce among n
//! ```
//!
//! Source: nccl-tests, PERFORMANCE.md.

#![allow(unsafe_code)]

use super::Vendor;
use super::driver::{Context, Handle};
use super::library::{Finder, calls};
use rackmath_spec::probe::{Collective, Reading};
use std::time::Instant;

type Status = i32;

calls!(
    Calls {
        init: fn(*mut Handle, i32, *const i32) -> Status,
        destroy: fn(Handle) -> Status,
        begin: fn() -> Status,
        end: fn() -> Status,
        all_reduce: fn(u64, u64, usize, i32, i32, Handle, Handle) -> Status,
    }
);

fn checked(what: &str, status: Status) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("{what}: error {status} of the library")) }
}

/// All-reduces of several sizes.
pub fn all_reduces(
    finder: &dyn Finder,
    vendor: Vendor,
    contexts: &[Context<'_>],
    sizes: &[usize],
) -> Result<Vec<Collective>, String> {
    let names: &[&str] = vendor.of(&["libnccl.so.2", "libnccl.so"], &["librccl.so.1", "librccl.so"]);
    let library = finder.open(names)?;
    let calls = Calls::find(&*library, |own| {
        let name = match own {
            "init" => "ncclCommInitAll",
            "destroy" => "ncclCommDestroy",
            "begin" => "ncclGroupStart",
            "end" => "ncclGroupEnd",
            _ => "ncclAllReduce",
        };
        name.to_owned()
    })?;
    let n = contexts.len();
    let devices: Vec<i32> = contexts.iter().map(|c| c.device).collect();
    let mut ranks = vec![std::ptr::null_mut(); n];
    // SAFETY: as many pointers are written as there are devices.
    checked("join the devices", unsafe { (calls.init)(ranks.as_mut_ptr(), n as i32, devices.as_ptr()) })?;
    let measured = sizes.iter().map(|bytes| all_reduce(&calls, contexts, &ranks, *bytes)).collect();
    for rank in ranks {
        // SAFETY: joined above, left once; nothing is under way.
        unsafe {
            (calls.destroy)(rank);
        }
    }
    measured
}

fn all_reduce(calls: &Calls, contexts: &[Context<'_>], ranks: &[Handle], bytes: usize) -> Result<Collective, String> {
    let mut buffers = Vec::new();
    for context in contexts {
        context.current()?;
        buffers.push(context.buffer(bytes)?);
    }
    let all = || {
        // SAFETY: buffers of this length on every device; 7 is 32-bit floats, 0 their sum.
        unsafe {
            checked("begin", (calls.begin)())?;
            for ((context, buffer), rank) in contexts.iter().zip(&buffers).zip(ranks) {
                let status = (calls.all_reduce)(buffer.at, buffer.at, bytes / 4, 7, 0, *rank, context.stream);
                checked("reduce", status)?;
            }
            checked("end", (calls.end)())
        }
    };
    let wait = || contexts.iter().try_for_each(|context| context.current().and_then(|()| context.wait()));
    for _ in 0..5 {
        all()?;
    }
    wait()?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..20 {
            all()?;
        }
        wait()?;
        times.push(start.elapsed().as_secs_f64() / 20.0);
    }
    let seconds = Reading::of(times).filter(|s| s.median > 0.0).ok_or("no repeat took any time")?;
    let (n, algorithm_rate) = (contexts.len() as f64, bytes as f64 / seconds.median);
    let bus_rate = algorithm_rate * 2.0 * (n - 1.0) / n;
    Ok(Collective {
        what: "all-reduce".into(),
        ranks: contexts.len(),
        bytes: bytes as f64,
        seconds,
        algorithm_rate,
        bus_rate,
    })
}
