//! Threads that each run on a processor of their own and begin together.

use std::sync::Barrier;
use std::time::Instant;

/// Logical processors, one a thread, and on how many sockets they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Team {
    pub cpus: Vec<usize>,
    pub sockets: usize,
}

impl Team {
    /// Every thread makes what it works on, then does its work so often, all beginning together. Seconds of each repeat, from the
    /// first that begins to the last that ends; the first repeat warms up and is dropped.
    pub fn timed<S>(
        &self,
        repeats: usize,
        make: impl Fn(usize) -> Option<S> + Sync,
        work: impl Fn(&mut S) + Sync,
    ) -> Option<Vec<f64>> {
        let n = self.cpus.len().max(1);
        let barrier = Barrier::new(n);
        let one = |at: usize| -> Option<Vec<(Instant, Instant)>> {
            if let Some(cpu) = self.cpus.get(at) {
                pin(*cpu);
            }
            let made = make(at);
            // Who could not make its part still keeps step, or the others would wait for ever.
            let mut state = made;
            let mut times = Vec::with_capacity(repeats + 1);
            for _ in 0..=repeats {
                barrier.wait();
                let start = Instant::now();
                if let Some(state) = &mut state {
                    work(state);
                }
                times.push((start, Instant::now()));
                barrier.wait();
            }
            state.is_some().then_some(times)
        };
        let threads: Option<Vec<Vec<(Instant, Instant)>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..n)
                .map(|at| {
                    scope.spawn({
                        let one = &one;
                        move || one(at)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().ok().flatten()).collect()
        });
        let threads = threads?;
        let repeat = |i: usize| {
            let first = threads.iter().map(|t| t[i].0).min()?;
            let last = threads.iter().map(|t| t[i].1).max()?;
            Some(last.duration_since(first).as_secs_f64())
        };
        (1..=repeats).map(repeat).collect()
    }
}

/// Keeps the calling thread on one processor, where the system lets it.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn pin(cpu: usize) {
    if cpu >= libc::CPU_SETSIZE as usize {
        return;
    }
    // SAFETY: the set lives on this stack and is as large as the call is told; a refusal leaves the thread where it was.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_thread_works_every_time_and_the_first_is_dropped() {
        let done = AtomicUsize::new(0);
        let team = Team { cpus: vec![0, 0, 0], sockets: 1 };
        let times = team
            .timed(
                4,
                |_| Some(()),
                |()| {
                    done.fetch_add(1, Ordering::Relaxed);
                },
            )
            .unwrap();
        assert_eq!((times.len(), done.into_inner()), (4, 15));
        assert!(times.iter().all(|t| *t >= 0.0));
    }

    #[test]
    fn who_cannot_prepare_keeps_nobody_waiting() {
        let team = Team { cpus: vec![0, 0], sockets: 1 };
        assert_eq!(team.timed(2, |at| (at == 0).then_some(()), |()| {}), None);
    }
}
