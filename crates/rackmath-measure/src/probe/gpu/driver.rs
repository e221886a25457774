//! The driver: devices, memory, kernels, events, graphs. NVIDIA's driver interface and AMD's HIP have the same functions with the same arguments
//! under other names; only how a device is made current differs.

#![allow(unsafe_code)]

use super::Vendor;
use super::library::{Finder, Library, calls};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

type Status = i32;
/// A stream, an event, a module: whatever the driver's pointers point at.
pub type Handle = *mut c_void;

calls!(
    /// What the probe calls.
    Calls {
        init: fn(u32) -> Status,
        version: fn(*mut i32) -> Status,
        count: fn(*mut i32) -> Status,
        get: fn(*mut i32, i32) -> Status,
        name: fn(*mut c_char, i32, i32) -> Status,
        bus: fn(*mut c_char, i32, i32) -> Status,
        attribute: fn(*mut i32, i32, i32) -> Status,
        memory: fn(*mut usize, *mut usize) -> Status,
        alloc: fn(*mut u64, usize) -> Status,
        free: fn(u64) -> Status,
        host_alloc: fn(*mut Handle, usize, u32) -> Status,
        host_free: fn(Handle) -> Status,
        to_device: fn(u64, *const c_void, usize, Handle) -> Status,
        to_host: fn(Handle, u64, usize, Handle) -> Status,
        within: fn(u64, u64, usize, Handle) -> Status,
        module: fn(*mut Handle, *const c_void) -> Status,
        function: fn(*mut Handle, Handle, *const c_char) -> Status,
        launch: fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut Handle, *mut Handle) -> Status,
        stream: fn(*mut Handle, u32) -> Status,
        wait: fn(Handle) -> Status,
        event: fn(*mut Handle, u32) -> Status,
        record: fn(Handle, Handle) -> Status,
        event_wait: fn(Handle) -> Status,
        elapsed: fn(*mut f32, Handle, Handle) -> Status,
        capture: fn(Handle, i32) -> Status,
        captured: fn(Handle, *mut Handle) -> Status,
        instantiate: fn(*mut Handle, Handle, u64) -> Status,
        replay: fn(Handle, Handle) -> Status,
        can_peer: fn(*mut i32, i32, i32) -> Status,
        peer: fn(u64, usize, u64, usize, usize, Handle) -> Status,
        explain: fn(Status, *mut *const c_char) -> Status,
    }
);

/// The names of [`Calls`]: ours, NVIDIA's, AMD's.
const NAMES: [(&str, &str, &str); 31] = [
    ("init", "cuInit", "hipInit"),
    ("version", "cuDriverGetVersion", "hipDriverGetVersion"),
    ("count", "cuDeviceGetCount", "hipGetDeviceCount"),
    ("get", "cuDeviceGet", "hipDeviceGet"),
    ("name", "cuDeviceGetName", "hipDeviceGetName"),
    ("bus", "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId"),
    ("attribute", "cuDeviceGetAttribute", "hipDeviceGetAttribute"),
    ("memory", "cuMemGetInfo_v2", "hipMemGetInfo"),
    ("alloc", "cuMemAlloc_v2", "hipMalloc"),
    ("free", "cuMemFree_v2", "hipFree"),
    ("host_alloc", "cuMemHostAlloc", "hipHostMalloc"),
    ("host_free", "cuMemFreeHost", "hipHostFree"),
    ("to_device", "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync"),
    ("to_host", "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"),
    ("within", "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync"),
    ("module", "cuModuleLoadData", "hipModuleLoadData"),
    ("function", "cuModuleGetFunction", "hipModuleGetFunction"),
    ("launch", "cuLaunchKernel", "hipModuleLaunchKernel"),
    ("stream", "cuStreamCreate", "hipStreamCreateWithFlags"),
    ("wait", "cuStreamSynchronize", "hipStreamSynchronize"),
    ("event", "cuEventCreate", "hipEventCreateWithFlags"),
    ("record", "cuEventRecord", "hipEventRecord"),
    ("event_wait", "cuEventSynchronize", "hipEventSynchronize"),
    ("elapsed", "cuEventElapsedTime", "hipEventElapsedTime"),
    ("capture", "cuStreamBeginCapture_v2", "hipStreamBeginCapture"),
    ("captured", "cuStreamEndCapture", "hipStreamEndCapture"),
    ("instantiate", "cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags"),
    ("replay", "cuGraphLaunch", "hipGraphLaunch"),
    ("can_peer", "cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer"),
    ("peer", "cuMemcpyPeerAsync", "hipMemcpyPeerAsync"),
    ("explain", "cuGetErrorString", "hipDrvGetErrorString"),
];

calls!(
    /// How NVIDIA's driver makes a device current: by a context that its programs share.
    Contexts {
        retain: fn(*mut Handle, i32) -> Status,
        current: fn(Handle) -> Status,
        enable: fn(Handle, u32) -> Status,
    }
);

calls!(
    /// How HIP does: by its number.
    Numbers {
        current: fn(i32) -> Status,
        enable: fn(i32, u32) -> Status,
    }
);

enum Making {
    Contexts(Contexts),
    Numbers(Numbers),
}

pub struct Driver {
    pub vendor: Vendor,
    calls: Calls,
    making: Making,
    _library: Box<dyn Library>,
}

/// What a device says of itself.
#[derive(Clone, Debug, Default)]
pub struct About {
    pub name: String,
    pub bus: String,
    pub cores: u64,
    pub l2_bytes: f64,
    pub capability: String,
}

impl Driver {
    pub fn load(finder: &dyn Finder, vendor: Vendor) -> Result<Self, String> {
        let names: &[&str] = match vendor {
            Vendor::Nvidia if cfg!(windows) => &["nvcuda.dll"],
            Vendor::Nvidia => &["libcuda.so.1", "libcuda.so"],
            Vendor::Amd if cfg!(windows) => &["amdhip64_6.dll", "amdhip64.dll"],
            Vendor::Amd => &["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"],
        };
        let library = finder.open(names)?;
        let named = |own: &str| {
            let entry = NAMES.iter().find(|(ours, ..)| *ours == own);
            entry.map_or_else(|| own.to_owned(), |(_, nvidia, amd)| vendor.of(*nvidia, *amd).to_owned())
        };
        let calls = Calls::find(&*library, named)?;
        let making = match vendor {
            Vendor::Nvidia => Making::Contexts(Contexts::find(&*library, |own| {
                let name = match own {
                    "retain" => "cuDevicePrimaryCtxRetain",
                    "current" => "cuCtxSetCurrent",
                    _ => "cuCtxEnablePeerAccess",
                };
                name.to_owned()
            })?),
            Vendor::Amd => Making::Numbers(Numbers::find(&*library, |own| {
                if own == "current" { "hipSetDevice".to_owned() } else { "hipDeviceEnablePeerAccess".to_owned() }
            })?),
        };
        let driver = Self { vendor, calls, making, _library: library };
        // SAFETY: the first call, with the only flags there are.
        driver.checked("start", unsafe { (driver.calls.init)(0) })?;
        Ok(driver)
    }

    /// An answer of the driver as a result, in its own words.
    fn checked(&self, what: &str, status: Status) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let mut words: *const c_char = std::ptr::null();
        // SAFETY: the driver writes a pointer to text of its own that stays.
        let known = unsafe { (self.calls.explain)(status, &raw mut words) } == 0 && !words.is_null();
        // SAFETY: it was just written and ends in a zero.
        let words = if known {
            unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
        } else {
            "no words for it".into()
        };
        Err(format!("{what}: error {status} of the driver ({words})"))
    }

    pub fn count(&self) -> Result<usize, String> {
        let mut n = 0;
        // SAFETY: one number is written.
        self.checked("count devices", unsafe { (self.calls.count)(&raw mut n) })?;
        Ok(usize::try_from(n).unwrap_or(0))
    }

    /// As 13.0.
    pub fn version(&self) -> String {
        let mut n = 0;
        // SAFETY: one number is written.
        let status = unsafe { (self.calls.version)(&raw mut n) };
        let large = self.vendor.of(1000, 10_000_000);
        let small = self.vendor.of(10, 100_000);
        if status == 0 { format!("{}.{}", n / large, n % large / small) } else { "unknown".into() }
    }

    pub fn about(&self, device: i32) -> Result<About, String> {
        let text = |call: unsafe extern "C" fn(*mut c_char, i32, i32) -> Status| {
            let mut buffer = [0_u8; 256];
            // SAFETY: the buffer is as long as it is said to be.
            let status = unsafe { call(buffer.as_mut_ptr().cast(), 255, device) };
            let text = CStr::from_bytes_until_nul(&buffer).map_or(String::new(), |t| t.to_string_lossy().into_owned());
            if status == 0 { text } else { String::new() }
        };
        let number = |which: i32| {
            let mut n = 0;
            // SAFETY: one number is written.
            let status = unsafe { (self.calls.attribute)(&raw mut n, which, device) };
            if status == 0 { n.max(0) } else { 0 }
        };
        let name = Some(text(self.calls.name)).filter(|name| !name.is_empty());
        let name = name.ok_or("the driver gives the device no name")?;
        // Numbers of the headers: multiprocessors, second cache, capability.
        let [cores, l2, major, minor] = self.vendor.of([16, 38, 75, 76], [63, 19, 23, 61]).map(number);
        let (cores, l2_bytes) = (u64::from(cores.unsigned_abs()), f64::from(l2));
        Ok(About { name, bus: text(self.calls.bus), cores, l2_bytes, capability: format!("{major}.{minor}") })
    }

    /// Makes a device current, with a stream and two events of its own.
    pub fn context(&self, index: usize) -> Result<Context<'_>, String> {
        let mut device = 0;
        let ordinal = i32::try_from(index).map_err(|_| "too many devices")?;
        // SAFETY: one number is written.
        self.checked("find the device", unsafe { (self.calls.get)(&raw mut device, ordinal) })?;
        let mut handle = null_mut();
        if let Making::Contexts(calls) = &self.making {
            // SAFETY: one pointer is written, which lives as long as the process.
            self.checked("open the device", unsafe { (calls.retain)(&raw mut handle, device) })?;
        }
        let mut made = Context { driver: self, device, handle, stream: null_mut(), events: [null_mut(); 2] };
        made.current()?;
        // 1: this stream waits for no other.
        // SAFETY: one pointer is written by each call.
        self.checked("make a stream", unsafe { (self.calls.stream)(&raw mut made.stream, 1) })?;
        for event in &mut made.events {
            // SAFETY: as above.
            self.checked("make an event", unsafe { (self.calls.event)(&raw mut *event, 0) })?;
        }
        Ok(made)
    }
}

/// A device in use.
pub struct Context<'a> {
    pub driver: &'a Driver,
    pub device: i32,
    handle: Handle,
    pub stream: Handle,
    events: [Handle; 2],
}

/// Memory of a device.
pub struct Buffer<'a> {
    pub at: u64,
    pub bytes: usize,
    context: &'a Context<'a>,
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let _ = self.context.current();
        // SAFETY: allocated by the driver and freed once; nothing is queued that uses it, since every measurement waits.
        unsafe {
            (self.context.driver.calls.free)(self.at);
        }
    }
}

/// Memory of the host that does not move.
pub struct Pinned<'a> {
    pub at: Handle,
    driver: &'a Driver,
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated by the driver and freed once.
        unsafe {
            (self.driver.calls.host_free)(self.at);
        }
    }
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    Address(u64),
    Float(f32),
}

/// A kernel of the loaded module.
#[derive(Clone, Copy)]
pub struct Kernel(Handle);

/// A captured run of kernels.
#[derive(Clone, Copy)]
pub struct Graph(Handle);

impl Context<'_> {
    fn checked(&self, what: &str, status: Status) -> Result<(), String> {
        self.driver.checked(what, status)
    }

    pub fn current(&self) -> Result<(), String> {
        // SAFETY: the device was opened before.
        let status = unsafe {
            match &self.driver.making {
                Making::Contexts(calls) => (calls.current)(self.handle),
                Making::Numbers(calls) => (calls.current)(self.device),
            }
        };
        self.checked("use the device", status)
    }

    /// Free and whole memory, in bytes.
    pub fn memory(&self) -> Result<(usize, usize), String> {
        let (mut free, mut all) = (0, 0);
        // SAFETY: two numbers are written.
        self.checked("ask for memory", unsafe { (self.driver.calls.memory)(&raw mut free, &raw mut all) })?;
        Ok((free, all))
    }

    pub fn buffer(&self, bytes: usize) -> Result<Buffer<'_>, String> {
        let mut at = 0;
        let what = format!("take {} MiB", bytes >> 20);
        // SAFETY: one address is written.
        self.checked(&what, unsafe { (self.driver.calls.alloc)(&raw mut at, bytes) })?;
        Ok(Buffer { at, bytes, context: self })
    }

    pub fn pinned(&self, bytes: usize) -> Result<Pinned<'_>, String> {
        let mut at = null_mut();
        // SAFETY: one pointer is written.
        self.checked("pin memory", unsafe { (self.driver.calls.host_alloc)(&raw mut at, bytes, 0) })?;
        Ok(Pinned { at, driver: self.driver })
    }

    /// Queues a copy from the host; `from` must hold so many bytes until it has been waited for.
    pub fn to_device(&self, to: &Buffer<'_>, from: *const c_void, bytes: usize) -> Result<(), String> {
        let bytes = bytes.min(to.bytes);
        // SAFETY: the buffer is at least as long; callers wait before they let go of either.
        self.checked("copy to the device", unsafe { (self.driver.calls.to_device)(to.at, from, bytes, self.stream) })
    }

    /// The other way.
    pub fn to_host(&self, to: Handle, from: &Buffer<'_>, bytes: usize) -> Result<(), String> {
        let bytes = bytes.min(from.bytes);
        // SAFETY: as above.
        self.checked("copy to the host", unsafe { (self.driver.calls.to_host)(to, from.at, bytes, self.stream) })
    }

    /// Fills a buffer with bytes over and over.
    pub fn fill(&self, buffer: &Buffer<'_>, pattern: &[u8]) -> Result<(), String> {
        let mut done = pattern.len().min(buffer.bytes);
        self.to_device(buffer, pattern.as_ptr().cast(), done)?;
        while done < buffer.bytes && done > 0 {
            let more = done.min(buffer.bytes - done);
            // SAFETY: both ranges lie within the buffer and do not overlap.
            let status = unsafe { (self.driver.calls.within)(buffer.at + done as u64, buffer.at, more, self.stream) };
            self.checked("copy on the device", status)?;
            done += more;
        }
        self.wait()
    }

    /// Queues a copy to another device's memory.
    pub fn to_peer(&self, to: (&Buffer<'_>, &Context<'_>), from: &Buffer<'_>, bytes: usize) -> Result<(), String> {
        let bytes = bytes.min(to.0.bytes).min(from.bytes);
        let name = |c: &Context<'_>| match self.driver.making {
            Making::Contexts(_) => c.handle as usize,
            Making::Numbers(_) => c.device as usize,
        };
        // SAFETY: both buffers are at least as long; callers wait before they let go of them.
        let status = unsafe { (self.driver.calls.peer)(to.0.at, name(to.1), from.at, name(self), bytes, self.stream) };
        self.checked("copy to a peer", status)
    }

    /// Whether this device may read another's memory; lets it, where so.
    pub fn reaches(&self, other: &Context<'_>) -> bool {
        let mut can = 0;
        // SAFETY: one number is written.
        let status = unsafe { (self.driver.calls.can_peer)(&raw mut can, self.device, other.device) };
        if status != 0 || can == 0 || self.current().is_err() {
            return false;
        }
        // SAFETY: both devices are open. Being told twice is an answer that changes nothing.
        unsafe {
            match &self.driver.making {
                Making::Contexts(calls) => (calls.enable)(other.handle, 0),
                Making::Numbers(calls) => (calls.enable)(other.device, 0),
            };
        }
        true
    }

    /// Kernels of a module, by name.
    pub fn kernels<const N: usize>(&self, code: &[u8], names: [&str; N]) -> Result<[Kernel; N], String> {
        let code = [code, &[0]].concat();
        let mut module = null_mut();
        // SAFETY: text ends in a zero; machine code says itself how long it is.
        self.checked("load kernels", unsafe { (self.driver.calls.module)(&raw mut module, code.as_ptr().cast()) })?;
        let mut found = [Kernel(null_mut()); N];
        for (kernel, name) in found.iter_mut().zip(names) {
            let text = CString::new(name).map_err(|e| e.to_string())?;
            // SAFETY: one pointer is written; the module stays loaded.
            let status = unsafe { (self.driver.calls.function)(&raw mut kernel.0, module, text.as_ptr()) };
            self.checked(name, status)?;
        }
        Ok(found)
    }

    /// Queues a kernel of so many blocks of so many threads.
    pub fn launch(&self, kernel: Kernel, (blocks, threads): (u32, u32), arguments: &[Argument]) -> Result<(), String> {
        let mut values: Vec<Argument> = arguments.to_vec();
        let mut places: Vec<Handle> = values
            .iter_mut()
            .map(|value| match value {
                Argument::Address(x) => (&raw mut *x).cast(),
                Argument::Float(x) => (&raw mut *x).cast(),
            })
            .collect();
        // SAFETY: one place for each argument of the kernel, read before the call returns.
        let status = unsafe {
            (self.driver.calls.launch)(
                kernel.0,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                self.stream,
                places.as_mut_ptr(),
                null_mut(),
            )
        };
        self.checked("launch a kernel", status)
    }

    pub fn wait(&self) -> Result<(), String> {
        // SAFETY: the stream is ours.
        self.checked("wait", unsafe { (self.driver.calls.wait)(self.stream) })
    }

    /// Seconds on the device's own clock that queued work takes, without what starts it.
    pub fn timed(&self, mut queue: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
        let [start, end] = self.events;
        // SAFETY: events and stream are ours.
        self.checked("mark", unsafe { (self.driver.calls.record)(start, self.stream) })?;
        queue()?;
        let mut ms = 0.0;
        // SAFETY: as above; one number is written.
        unsafe {
            self.checked("mark", (self.driver.calls.record)(end, self.stream))?;
            self.checked("wait", (self.driver.calls.event_wait)(end))?;
            self.checked("read the clock", (self.driver.calls.elapsed)(&raw mut ms, start, end))?;
        }
        Ok(f64::from(ms) / 1e3)
    }

    /// Seconds of each of several repeats of something that is done as often as fills `least` seconds.
    pub fn repeated(
        &self,
        repeats: usize,
        least: Duration,
        mut queue: impl FnMut(usize) -> Result<(), String>,
    ) -> Result<Vec<f64>, String> {
        queue(0)?;
        self.wait()?;
        let once = self.timed(|| queue(0))?;
        let times = if once > 0.0 { (least.as_secs_f64() / once).ceil() } else { 1.0 }.clamp(1.0, 500.0) as usize;
        let mut at = 0;
        let mut each = || {
            let time = self.timed(|| {
                (0..times).try_for_each(|_| {
                    at += 1;
                    queue(at)
                })
            })?;
            Ok(time / times as f64)
        };
        (0..repeats).map(|_| each()).collect()
    }

    /// What is queued meanwhile, to be replayed at once.
    pub fn graph(&self, mut queue: impl FnMut() -> Result<(), String>) -> Result<Graph, String> {
        // 2: only this stream is watched.
        // SAFETY: the stream is ours.
        self.checked("record a graph", unsafe { (self.driver.calls.capture)(self.stream, 2) })?;
        let queued = queue();
        let (mut graph, mut ready) = (null_mut(), null_mut());
        // SAFETY: one pointer is written by each call.
        self.checked("record a graph", unsafe { (self.driver.calls.captured)(self.stream, &raw mut graph) })?;
        queued?;
        self.checked("make a graph", unsafe { (self.driver.calls.instantiate)(&raw mut ready, graph, 0) })?;
        Ok(Graph(ready))
    }

    pub fn replay(&self, graph: Graph) -> Result<(), String> {
        // SAFETY: made by `graph`, on this device.
        self.checked("replay a graph", unsafe { (self.driver.calls.replay)(graph.0, self.stream) })
    }

    /// Seconds on the host's clock until queued work has ended.
    pub fn waited(&self, mut queue: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
        let start = Instant::now();
        queue()?;
        self.wait()?;
        Ok(start.elapsed().as_secs_f64())
    }
}
