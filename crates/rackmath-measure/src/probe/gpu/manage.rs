//! Clocks, power and what holds them back, from NVIDIA's management library. Ignores: AMD's, which is not read yet.

#![allow(unsafe_code)]

use super::Vendor;
use super::driver::Handle;
use super::library::{Finder, Library, calls};
use rackmath_spec::probe::State;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;

type Status = i32;

calls!(
    Calls {
        init: fn() -> Status,
        find: fn(*const c_char, *mut Handle) -> Status,
        version: fn(*mut c_char, u32) -> Status,
        clock: fn(Handle, i32, *mut u32) -> Status,
        clock_most: fn(Handle, i32, *mut u32) -> Status,
        power: fn(Handle, *mut u32) -> Status,
        cap: fn(Handle, *mut u32) -> Status,
        temperature: fn(Handle, i32, *mut u32) -> Status,
        reasons: fn(Handle, *mut u64) -> Status,
        generation: fn(Handle, *mut u32) -> Status,
        width: fn(Handle, *mut u32) -> Status,
        processes: fn(Handle, *mut u32, *mut c_void) -> Status,
    }
);

const NAMES: [(&str, &str); 12] = [
    ("init", "nvmlInit_v2"),
    ("find", "nvmlDeviceGetHandleByPciBusId_v2"),
    ("version", "nvmlSystemGetDriverVersion"),
    ("clock", "nvmlDeviceGetClockInfo"),
    ("clock_most", "nvmlDeviceGetMaxClockInfo"),
    ("power", "nvmlDeviceGetPowerUsage"),
    ("cap", "nvmlDeviceGetEnforcedPowerLimit"),
    ("temperature", "nvmlDeviceGetTemperature"),
    ("reasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
    ("generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
    ("width", "nvmlDeviceGetCurrPcieLinkWidth"),
    ("processes", "nvmlDeviceGetComputeRunningProcesses_v3"),
];

/// What may slow the clocks down, by the bit that says so. Being idle does not.
const REASONS: [(u64, &str); 8] = [
    (0x2, "application clocks"),
    (0x4, "power cap"),
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "temperature (software)"),
    (0x40, "temperature (hardware)"),
    (0x80, "power brake"),
    (0x100, "display clocks"),
];

pub struct Manager {
    calls: Calls,
    _library: Box<dyn Library>,
}

impl Manager {
    pub fn load(finder: &dyn Finder, vendor: Vendor) -> Result<Self, String> {
        if vendor == Vendor::Amd {
            return Err("AMD's management library is not read yet".into());
        }
        let library = finder.open(&["libnvidia-ml.so.1", "libnvidia-ml.so", "nvml.dll"])?;
        let named =
            |own: &str| NAMES.iter().find(|(ours, _)| *ours == own).map_or(own, |(_, theirs)| theirs).to_owned();
        let calls = Calls::find(&*library, named)?;
        // SAFETY: the first call, without arguments.
        match unsafe { (calls.init)() } {
            0 => Ok(Self { calls, _library: library }),
            status => Err(format!("NVML does not start: error {status}")),
        }
    }

    pub fn driver(&self) -> Option<String> {
        let mut buffer = [0_u8; 96];
        // SAFETY: the buffer is as long as it is said to be.
        let status = unsafe { (self.calls.version)(buffer.as_mut_ptr().cast(), 95) };
        let text = CStr::from_bytes_until_nul(&buffer).ok()?.to_string_lossy().into_owned();
        (status == 0 && !text.is_empty()).then_some(text)
    }

    /// How a device is at this moment, by its place on the bus.
    pub fn state(&self, bus: &str) -> Result<State, String> {
        let bus = CString::new(bus).map_err(|e| e.to_string())?;
        let mut device = null_mut();
        // SAFETY: the text ends in a zero; one pointer is written.
        let status = unsafe { (self.calls.find)(bus.as_ptr(), &raw mut device) };
        if status != 0 {
            return Err(format!("NVML does not find the device: error {status}"));
        }
        // SAFETY, of all calls below: the device was just found and one number is written.
        let number = |call: &dyn Fn(*mut u32) -> Status| {
            let mut n = 0;
            (call(&raw mut n) == 0).then_some(n)
        };
        let c = &self.calls;
        // 1: the multiprocessors' clock; 2: the memory's.
        let clock = |which| number(&|n| unsafe { (c.clock)(device, which, n) }).map(f64::from);
        let watts = |milli: Option<u32>| milli.map(|mw| f64::from(mw) / 1e3);
        let mut bits = 0_u64;
        let known = unsafe { (c.reasons)(device, &raw mut bits) } == 0;
        let reasons = REASONS.iter().filter(|(bit, _)| known && bits & bit != 0).map(|(_, words)| (*words).to_owned());
        // Asked with no room, it says how many there are.
        let mut processes = 0_u32;
        let status = unsafe { (c.processes)(device, &raw mut processes, null_mut()) };
        Ok(State {
            clock_mhz: clock(1),
            clock_most_mhz: number(&|n| unsafe { (c.clock_most)(device, 1, n) }).map(f64::from),
            memory_clock_mhz: clock(2),
            power_w: watts(number(&|n| unsafe { (c.power)(device, n) })),
            power_cap_w: watts(number(&|n| unsafe { (c.cap)(device, n) })),
            temperature_c: number(&|n| unsafe { (c.temperature)(device, 0, n) }).map(f64::from),
            throttled_by: reasons.collect(),
            link_generation: number(&|n| unsafe { (c.generation)(device, n) }),
            link_width: number(&|n| unsafe { (c.width)(device, n) }),
            // 7: there are some, and no room was given.
            processes: (status == 0 || status == 7).then_some(processes),
        })
    }
}
