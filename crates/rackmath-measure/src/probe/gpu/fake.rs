//! Libraries that only record what they are called with: the probe's own code runs against them as against real ones.

#![allow(unsafe_code)]
// A list of every function, some with many arguments, that hand out made-up addresses.
#![allow(clippy::too_many_lines, clippy::too_many_arguments, clippy::type_complexity, clippy::manual_dangling_ptr)]

use super::driver::Handle;
use super::library::{Finder, Library};
use super::{Vendor, all};
use crate::probe::Deadline;
use rackmath_spec::probe::Device;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};

#[derive(Default)]
struct Log {
    calls: Vec<String>,
    /// Bytes by address of what is held, and of what was freed.
    held: BTreeMap<u64, usize>,
    next: u64,
    devices: i32,
    /// Calls that fail, with their status.
    fails: BTreeMap<&'static str, i32>,
    absent: Vec<&'static str>,
}

thread_local!(static LOG: RefCell<Log> = RefCell::default());

fn called(name: &'static str, more: impl std::fmt::Display) -> i32 {
    LOG.with_borrow_mut(|log| {
        log.calls.push(format!("{name}{more}"));
        log.fails.get(name).copied().unwrap_or(0)
    })
}

struct Fake;

impl Finder for Fake {
    fn open(&self, names: &[&str]) -> Result<Box<dyn Library>, String> {
        let gone = LOG.with_borrow(|log| log.absent.iter().any(|a| names.iter().any(|n| n.contains(a))));
        if gone { Err(format!("{} is not installed here", names[0])) } else { Ok(Box::new(Fake)) }
    }
}

/// A function under a name.
macro_rules! function {
    ($wanted:ident, $name:literal, ($($a:ident: $t:ty),*), $body:expr) => {
        if $wanted == $name {
            extern "C" fn function($($a: $t),*) -> i32 {
                let run: fn(&'static str, $($t),*) -> i32 = $body;
                run($name, $($a),*)
            }
            return Some(function as *const c_void);
        }
    };
}

/// Functions of one kind under the names of both makers.
macro_rules! functions {
    ($wanted:ident: $($($name:literal)|+ => fn $arguments:tt $body:expr;)*) => {
        $($(function!($wanted, $name, $arguments, $body);)+)*
    };
}

fn write<T>(to: *mut T, value: T) {
    // SAFETY: the caller passes places of its own.
    unsafe { to.write(value) }
}

fn text(to: *mut c_char, words: &str) {
    for (i, byte) in words.bytes().chain([0]).enumerate() {
        // SAFETY: buffers here are at least 95 bytes and words shorter.
        unsafe { to.cast::<u8>().add(i).write(byte) }
    }
}

impl Library for Fake {
    fn address(&self, wanted: &str) -> Option<*const c_void> {
        type H = Handle;
        functions! { wanted:
            "cuInit" | "hipInit" => fn(_f: u32) |n, _| called(n, "");
            "cuDriverGetVersion" | "hipDriverGetVersion" => fn(v: *mut i32) |n, v| { write(v, 13_000); called(n, "") };
            "cuDeviceGetCount" | "hipGetDeviceCount" => fn(v: *mut i32) |n, v| { write(v, LOG.with_borrow(|l| l.devices)); called(n, "") };
            "cuDeviceGet" | "hipDeviceGet" => fn(v: *mut i32, i: i32) |n, v, i| { write(v, i); called(n, format_args!(" {i}")) };
            "cuDeviceGetName" | "hipDeviceGetName" => fn(t: *mut c_char, _l: i32, _d: i32) |n, t, _, _| { text(t, "NVIDIA H200"); called(n, "") };
            "cuDeviceGetPCIBusId" | "hipDeviceGetPCIBusId" => fn(t: *mut c_char, _l: i32, _d: i32) |n, t, _, _| { text(t, "0000:1b:00.0"); called(n, "") };
            "cuDeviceGetAttribute" | "hipDeviceGetAttribute" => fn(v: *mut i32, w: i32, _d: i32) |n, v, w, _| {
                write(v, match w { 16 | 63 => 132, 38 | 19 => 50 << 20, 75 | 23 => 9, _ => 0 });
                called(n, format_args!(" {w}"))
            };
            "cuMemGetInfo_v2" | "hipMemGetInfo" => fn(f: *mut usize, a: *mut usize) |n, f, a| { write(f, 140 << 30); write(a, 141 << 30); called(n, "") };
            "cuMemAlloc_v2" | "hipMalloc" => fn(at: *mut u64, b: usize) |n, at, b| {
                let status = called(n, format_args!(" {b}"));
                LOG.with_borrow_mut(|log| {
                    if status == 0 {
                        log.next += 1 << 40;
                        write(at, log.next);
                        log.held.insert(log.next, b);
                    }
                });
                status
            };
            "cuMemFree_v2" | "hipFree" => fn(at: u64) |n, at| {
                let held = LOG.with_borrow_mut(|log| log.held.remove(&at));
                called(n, if held.is_some() { "" } else { " of nothing" })
            };
            "cuMemHostAlloc" | "hipHostMalloc" => fn(at: *mut H, b: usize, _f: u32) |n, at, b, _| { write(at, 64 as H); called(n, format_args!(" {b}")) };
            "cuMemFreeHost" | "hipHostFree" => fn(_a: H) |n, _| called(n, "");
            "cuMemcpyHtoDAsync_v2" | "hipMemcpyHtoDAsync" => fn(to: u64, _f: *const c_void, b: usize, _s: H) |n, to, _, b, _| within(n, to, b);
            "cuMemcpyDtoHAsync_v2" | "hipMemcpyDtoHAsync" => fn(_t: H, from: u64, b: usize, _s: H) |n, _, from, b, _| within(n, from, b);
            "cuMemcpyDtoDAsync_v2" | "hipMemcpyDtoDAsync" => fn(to: u64, from: u64, b: usize, _s: H) |n, to, from, b, _| { within(n, from, b); within(n, to, b) };
            "cuModuleLoadData" | "hipModuleLoadData" => fn(m: *mut H, _c: *const c_void) |n, m, _| { write(m, 8 as H); called(n, "") };
            "cuModuleGetFunction" | "hipModuleGetFunction" => fn(f: *mut H, m: H, t: *const c_char) |n, f, m, t| {
                assert_eq!(m, 8 as H);
                write(f, 16 as H);
                // SAFETY: the name ends in a zero.
                called(n, format_args!(" {}", unsafe { std::ffi::CStr::from_ptr(t) }.to_string_lossy()))
            };
            "cuLaunchKernel" | "hipModuleLaunchKernel" => fn(f: H, x: u32, _y: u32, _z: u32, t: u32, _u: u32, _v: u32, _w: u32, s: H, _p: *mut H, _e: *mut H) |n, f, x, _, _, t, _, _, _, s, _, _| {
                assert_eq!((f, s), (16 as H, 24 as H));
                called(n, format_args!(" {x} x {t}"))
            };
            "cuStreamCreate" | "hipStreamCreateWithFlags" => fn(s: *mut H, f: u32) |n, s, f| { write(s, 24 as H); called(n, format_args!(" {f}")) };
            "cuStreamSynchronize" | "hipStreamSynchronize" => fn(_s: H) |n, _| called(n, "");
            "cuEventCreate" | "hipEventCreateWithFlags" => fn(e: *mut H, _f: u32) |n, e, _| { write(e, 32 as H); called(n, "") };
            "cuEventRecord" | "hipEventRecord" => fn(_e: H, _s: H) |n, _, _| called(n, "");
            "cuEventSynchronize" | "hipEventSynchronize" => fn(_e: H) |n, _| called(n, "");
            "cuEventElapsedTime" | "hipEventElapsedTime" => fn(ms: *mut f32, _a: H, _b: H) |n, ms, _, _| { write(ms, 25.0); called(n, "") };
            "cuStreamBeginCapture_v2" | "hipStreamBeginCapture" => fn(_s: H, m: i32) |n, _, m| called(n, format_args!(" {m}"));
            "cuStreamEndCapture" | "hipStreamEndCapture" => fn(_s: H, g: *mut H) |n, _, g| { write(g, 40 as H); called(n, "") };
            "cuGraphInstantiateWithFlags" | "hipGraphInstantiateWithFlags" => fn(e: *mut H, g: H, _f: u64) |n, e, g, _| { assert_eq!(g, 40 as H); write(e, 48 as H); called(n, "") };
            "cuGraphLaunch" | "hipGraphLaunch" => fn(e: H, _s: H) |n, e, _| { assert_eq!(e, 48 as H); called(n, "") };
            "cuDeviceCanAccessPeer" | "hipDeviceCanAccessPeer" => fn(v: *mut i32, a: i32, b: i32) |n, v, a, b| { write(v, 1); called(n, format_args!(" {a} {b}")) };
            "cuMemcpyPeerAsync" | "hipMemcpyPeerAsync" => fn(to: u64, _c: usize, from: u64, _d: usize, b: usize, _s: H) |n, to, _, from, _, b, _| { within(n, from, b); within(n, to, b) };
            "cuGetErrorString" | "hipDrvGetErrorString" => fn(_s: i32, t: *mut *const c_char) |_, _, t| { write(t, c"in its own words".as_ptr()); 0 };
            "cuDevicePrimaryCtxRetain" => fn(c: *mut H, d: i32) |n, c, d| { write(c, (100 + d as usize) as H); called(n, "") };
            "cuCtxSetCurrent" => fn(c: H) |n, c| called(n, format_args!(" {}", c as usize));
            "cuCtxEnablePeerAccess" => fn(c: H, _f: u32) |n, c, _| called(n, format_args!(" {}", c as usize));
            "hipSetDevice" => fn(d: i32) |n, d| called(n, format_args!(" {d}"));
            "hipDeviceEnablePeerAccess" => fn(d: i32, _f: u32) |n, d, _| called(n, format_args!(" {d}"));
            "nvrtcCreateProgram" | "hiprtcCreateProgram" => fn(p: *mut H, _s: *const c_char, _n: *const c_char, _c: i32, _h: *const *const c_char, _i: *const *const c_char) |n, p, _, _, _, _, _| { write(p, 56 as H); called(n, "") };
            "nvrtcCompileProgram" | "hiprtcCompileProgram" => fn(_p: H, o: i32, _t: *const *const c_char) |n, _, o, _| called(n, format_args!(" {o}"));
            "nvrtcGetPTXSize" | "hiprtcGetCodeSize" => fn(_p: H, s: *mut usize) |n, _, s| { write(s, 4); called(n, "") };
            "nvrtcGetPTX" | "hiprtcGetCode" => fn(_p: H, _c: *mut c_char) |n, _, _| called(n, "");
            "nvrtcDestroyProgram" | "hiprtcDestroyProgram" => fn(_p: *mut H) |n, _| called(n, "");
            "cublasLtCreate" | "hipblasLtCreate" => fn(h: *mut H) |n, h| { write(h, 72 as H); called(n, "") };
            "cublasLtDestroy" | "hipblasLtDestroy" => fn(_h: H) |n, _| called(n, "");
            "cublasLtMatmulDescCreate" | "hipblasLtMatmulDescCreate" => fn(d: *mut H, sums: i32, scale: i32) |n, d, sums, scale| { write(d, 80 as H); called(n, format_args!(" {sums} {scale}")) };
            "cublasLtMatmulDescSetAttribute" | "hipblasLtMatmulDescSetAttribute" => fn(_d: H, w: i32, v: *const c_void, b: usize) |n, _, w, v, b| {
                // SAFETY: at least one byte was passed.
                called(n, format_args!(" {w} {} {b}", unsafe { v.cast::<u8>().read() }))
            };
            "cublasLtMatmulDescDestroy" | "hipblasLtMatmulDescDestroy" => fn(_d: H) |n, _| called(n, "");
            "cublasLtMatrixLayoutCreate" | "hipblasLtMatrixLayoutCreate" => fn(l: *mut H, t: i32, r: u64, c: u64, ld: i64) |n, l, t, r, c, ld| { write(l, 88 as H); called(n, format_args!(" {t} {r} x {c} by {ld}")) };
            "cublasLtMatrixLayoutDestroy" | "hipblasLtMatrixLayoutDestroy" => fn(_l: H) |n, _| called(n, "");
            "cublasLtMatmulPreferenceCreate" | "hipblasLtMatmulPreferenceCreate" => fn(p: *mut H) |n, p| { write(p, 96 as H); called(n, "") };
            "cublasLtMatmulPreferenceSetAttribute" | "hipblasLtMatmulPreferenceSetAttribute" => fn(_p: H, w: i32, _v: *const c_void, b: usize) |n, _, w, _, b| called(n, format_args!(" {w} {b}"));
            "cublasLtMatmulPreferenceDestroy" | "hipblasLtMatmulPreferenceDestroy" => fn(_p: H) |n, _| called(n, "");
            "cublasLtMatmulAlgoGetHeuristic" | "hipblasLtMatmulAlgoGetHeuristic" => fn(_h: H, _d: H, _a: H, _b: H, _c: H, _e: H, _p: H, w: i32, _r: *mut c_void, f: *mut i32) |n, _, _, _, _, _, _, _, w, _, f| { write(f, 1); called(n, format_args!(" {w}")) };
            "cublasLtMatmul" | "hipblasLtMatmul" => fn(_h: H, _d: H, _al: *const c_void, a: u64, _ad: H, b: u64, _bd: H, _be: *const c_void, c: u64, _cd: H, d: u64, _dd: H, _g: *const c_void, w: u64, wb: usize, _s: H) |n, _, _, _, a, _, b, _, _, c, _, d, _, _, w, wb, _| {
                assert_eq!(c, d);
                assert!([a, b, c].iter().all(|at| LOG.with_borrow(|log| log.held.contains_key(at))));
                within("room", w, wb);
                called(n, "")
            };
            "nvmlInit_v2" => fn() |n| called(n, "");
            "nvmlDeviceGetHandleByPciBusId_v2" => fn(_t: *const c_char, d: *mut H) |n, _, d| { write(d, 104 as H); called(n, "") };
            "nvmlSystemGetDriverVersion" => fn(t: *mut c_char, _l: u32) |n, t, _| { text(t, "580.159"); called(n, "") };
            "nvmlDeviceGetClockInfo" | "nvmlDeviceGetMaxClockInfo" => fn(_d: H, w: i32, v: *mut u32) |n, _, w, v| { write(v, 1980); called(n, format_args!(" {w}")) };
            "nvmlDeviceGetPowerUsage" | "nvmlDeviceGetEnforcedPowerLimit" => fn(_d: H, v: *mut u32) |n, _, v| { write(v, 700_000); called(n, "") };
            "nvmlDeviceGetTemperature" => fn(_d: H, _w: i32, v: *mut u32) |n, _, _, v| { write(v, 40); called(n, "") };
            "nvmlDeviceGetCurrentClocksThrottleReasons" => fn(_d: H, v: *mut u64) |n, _, v| { write(v, 0x5); called(n, "") };
            "nvmlDeviceGetCurrPcieLinkGeneration" | "nvmlDeviceGetCurrPcieLinkWidth" => fn(_d: H, v: *mut u32) |n, _, v| { write(v, 5); called(n, "") };
            "nvmlDeviceGetComputeRunningProcesses_v3" => fn(_d: H, c: *mut u32, _i: *mut c_void) |n, _, c, _| { write(c, 1); called(n, ""); 7 };
            "ncclCommInitAll" => fn(c: *mut H, k: i32, _d: *const i32) |n, c, k, _| {
                // SAFETY: as many as are said.
                (0..k as usize).for_each(|i| write(unsafe { c.add(i) }, 112 as H));
                called(n, format_args!(" {k}"))
            };
            "ncclCommDestroy" => fn(_c: H) |n, _| called(n, "");
            "ncclGroupStart" | "ncclGroupEnd" => fn() |n| called(n, "");
            "ncclAllReduce" => fn(a: u64, b: u64, c: usize, t: i32, o: i32, _r: H, _s: H) |n, a, b, c, t, o, _, _| { assert_eq!(a, b); within(n, a, 4 * c); called(n, format_args!(" {c} {t} {o}")) };
        }
        None
    }
}

/// A copy must lie within what is held.
fn within(name: &'static str, at: u64, bytes: usize) -> i32 {
    let room = LOG.with_borrow(|log| {
        log.held.range(..=at).next_back().is_some_and(|(start, size)| at + bytes as u64 <= start + *size as u64)
    });
    assert!(room, "{name}: {bytes} bytes at {at:x} are not held");
    called(name, "")
}

fn probed(vendor: Vendor, devices: i32, change: impl FnOnce(&mut Log)) -> (Result<Vec<Device>, String>, Vec<String>) {
    LOG.with_borrow_mut(|log| {
        *log = Log { devices, ..Log::default() };
        change(log);
    });
    let found = all(&Fake, vendor, true, Deadline::after(600.0), &|_| {});
    let log = LOG.take();
    assert!(log.held.is_empty(), "not freed: {:?}", log.held);
    assert!(!log.calls.iter().any(|c| c.contains("of nothing")), "freed twice");
    (found, log.calls)
}

fn count(calls: &[String], start: &str) -> usize {
    calls.iter().filter(|call| call.starts_with(start)).count()
}

#[test]
fn a_device_of_either_maker_is_measured_by_the_same_calls() {
    for vendor in [Vendor::Nvidia, Vendor::Amd] {
        let (found, calls) = probed(vendor, 1, |_| {});
        let devices = found.unwrap();
        let [device] = &devices[..] else { panic!("{devices:?}") };
        assert_eq!((device.cores, device.l2_bytes, device.capability.as_str()), (132, 52_428_800.0, "9.0"));
        assert_eq!(device.verified, vendor == Vendor::Nvidia);
        let kernels: Vec<&str> = device.bandwidth.iter().map(|b| b.kernel.as_str()).collect();
        assert_eq!(kernels, ["read", "copy", "triad"], "{:?}", device.not_measured);
        // 25 ms for a read of the whole array, by the fake's clock.
        assert!((device.bandwidth[0].rate.median - device.bandwidth[0].bytes / 0.025).abs() < 1.0);
        assert!(device.bandwidth[0].bytes >= 10.0 * device.l2_bytes);
        assert_eq!(device.copies.len(), 4);
        assert!(device.launch.each_s.is_some() && device.launch.round_trip_s.is_some());
        assert!((device.launch.graph_node_s.unwrap().median - 25e-6).abs() < 1e-12);
        let maths: Vec<String> = device.peaks().into_keys().collect();
        assert_eq!(maths, ["bf16", "fp16", "fp8", "int8", "tf32"]);
        let product = device.products.iter().find(|p| p.m == 8192 && p.math == "bf16").unwrap();
        // Products fill 100 ms: four of 25 ms, which the fake's clock says took 25 ms together.
        assert!((product.rate - 4.0 * 2.0 * 8192_f64.powi(3) / 0.025).abs() < 1e6, "{product:?}");
        let (desc, layout) = match vendor {
            Vendor::Nvidia => {
                ("cublasLtMatmulDescSetAttribute 3 1 4", "cublasLtMatrixLayoutCreate 14 8192 x 8192 by 8192")
            }
            Vendor::Amd => {
                ("hipblasLtMatmulDescSetAttribute 0 112 4", "hipblasLtMatrixLayoutCreate 14 8192 x 8192 by 8192")
            }
        };
        assert!(count(&calls, desc) > 0 && count(&calls, layout) > 0);
        let starts = if vendor == Vendor::Nvidia { ["cu", "nvml"] } else { ["hip", "rccl"] };
        assert!(calls.iter().all(|c| c == "room" || starts.iter().any(|s| c.starts_with(s))), "{calls:?}");
    }
}

#[test]
fn amd_compiles_its_kernels_and_says_what_it_does_not_read() {
    let (found, calls) = probed(Vendor::Amd, 1, |_| {});
    assert_eq!(count(&calls, "hiprtcCompileProgram 0"), 1);
    let device = &found.unwrap()[0];
    assert!(device.not_measured.iter().any(|m| m.what == "clocks and power" && m.why.contains("AMD")));
}

#[test]
fn clocks_power_and_what_slows_them_are_read_idle_and_under_load() {
    let (found, _) = probed(Vendor::Nvidia, 1, |_| {});
    let device = &found.unwrap()[0];
    assert_eq!((device.state.power_cap_w, device.state.processes), (Some(700.0), Some(1)));
    // 0x5: idle, which slows nobody down, and the power cap.
    assert_eq!(device.loaded.as_ref().unwrap().throttled_by, ["power cap"]);
    assert_eq!(device.driver, "580.159");
}

#[test]
fn several_devices_have_links_and_all_reduces() {
    for vendor in [Vendor::Nvidia, Vendor::Amd] {
        let (found, calls) = probed(vendor, 3, |_| {});
        let devices = found.unwrap();
        assert_eq!(devices[0].peers.iter().map(|p| (p.to, p.direct)).collect::<Vec<_>>(), [(1, true), (2, true)]);
        assert_eq!(devices[0].collectives.len(), 3, "{:?}", devices[0].not_measured);
        let one = &devices[0].collectives[2];
        // 2 (n - 1) / n of three.
        assert!((one.bus_rate / one.algorithm_rate - 4.0 / 3.0).abs() < 1e-12);
        assert!(count(&calls, "ncclAllReduce 67108864 7 0") > 0);
        assert!(!devices[1].products.is_empty());
    }
}

#[test]
fn what_is_absent_or_fails_is_an_answer_and_the_rest_goes_on() {
    let (found, _) = probed(Vendor::Nvidia, 1, |log| log.absent.push("libcuda"));
    assert!(found.unwrap_err().contains("libcuda.so.1 is not installed"));
    let (found, _) = probed(Vendor::Nvidia, 0, |_| {});
    assert!(found.unwrap_err().contains("knows of no device"));
    let (found, _) = probed(Vendor::Nvidia, 1, |log| {
        log.fails.insert("cuInit", 100);
    });
    assert_eq!(found.unwrap_err(), "start: error 100 of the driver (in its own words)");
    let (found, _) = probed(Vendor::Nvidia, 1, |log| log.absent.extend(["cublasLt", "nvidia-ml"]));
    let device = &found.unwrap()[0];
    assert!(device.products.is_empty() && device.bandwidth.len() == 3);
    assert!(device.not_measured.iter().any(|m| m.what == "matrix products" && m.why.contains("libcublasLt")));
    for (call, what) in [
        ("cuModuleLoadData", "kernels"),
        ("cuMemHostAlloc", "pinned memory"),
        ("cublasLtMatmul", "bf16 product of 16 rows"),
        ("cublasLtMatmulAlgoGetHeuristic", "int8 product of 8192 rows"),
        ("cuGraphInstantiateWithFlags", "launches in a graph"),
        ("cuMemAlloc_v2", "memory bandwidth"),
    ] {
        let (found, _) = probed(Vendor::Nvidia, 1, |log| {
            log.fails.insert(call, 1);
        });
        let device = &found.unwrap()[0];
        let missing: Vec<&str> = device.not_measured.iter().map(|m| m.what.as_str()).collect();
        assert!(missing.contains(&what), "{call}: {missing:?}");
    }
}

#[test]
fn a_deadline_that_has_passed_stops_measuring_and_says_so() {
    LOG.with_borrow_mut(|log| *log = Log { devices: 1, ..Log::default() });
    let found = all(&Fake, Vendor::Nvidia, true, Deadline::after(0.0), &|_| {}).unwrap();
    assert!(found[0].not_measured.iter().all(|m| m.why == "time was up"), "{found:?}");
    assert_eq!(count(&LOG.take().calls, "cuLaunchKernel"), 0);
}
