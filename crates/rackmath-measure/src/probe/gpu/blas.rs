//! Matrix products by cuBLASLt or hipBLASLt, which have the same functions and other numbers for the same words.
//!
//! ```text
//! y[m, n] = x[m, k] w[n, k]^T          2 m n k FLOP
//! ```
//!
//! As engines multiply: weights lie row by row, which the libraries, counting columns first, call transposed. The library's first choice of
//! kernel is taken, as programs take it that do not search.

#![allow(unsafe_code)]

use super::driver::{Buffer, Context, Handle};
use super::library::{Finder, Library, calls};
use super::{Vendor, data};
use rackmath_spec::Math;
use rackmath_spec::probe::{Product, Reading};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::time::Duration;

type Status = i32;

calls!(
    Calls {
        create: fn(*mut Handle) -> Status,
        destroy: fn(Handle) -> Status,
        desc: fn(*mut Handle, i32, i32) -> Status,
        desc_set: fn(Handle, i32, *const c_void, usize) -> Status,
        desc_end: fn(Handle) -> Status,
        layout: fn(*mut Handle, i32, u64, u64, i64) -> Status,
        layout_end: fn(Handle) -> Status,
        preference: fn(*mut Handle) -> Status,
        preference_set: fn(Handle, i32, *const c_void, usize) -> Status,
        preference_end: fn(Handle) -> Status,
        heuristic: fn(Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut c_void, *mut i32) -> Status,
        matmul: fn(
            Handle, Handle, *const c_void, u64, Handle, u64, Handle, *const c_void, u64, Handle, u64, Handle, *const c_void, u64, usize, Handle
        ) -> Status,
    }
);

/// The libraries' numbers for what is asked.
struct Words {
    transposed: i32,
    trans_a: i32,
    /// Sums of fp8 products in the units' own precision, where that can be chosen.
    fast_sums: Option<i32>,
    /// Bytes of a kernel's description within a choice.
    algorithm: usize,
}

const WORDS: [Words; 2] = [
    Words { transposed: 1, trans_a: 3, fast_sums: Some(25), algorithm: 64 },
    Words { transposed: 112, trans_a: 0, fast_sums: None, algorithm: 24 },
];

/// Numbers of types: of the factors, of the product, of the sums, of the scale.
struct Types {
    factors: i32,
    product: i32,
    sums: i32,
    scale: i32,
}

fn types(math: Math, vendor: Vendor) -> Option<Types> {
    let (f32_type, half, brain, byte, word) = (0, 2, 14, 3, 10);
    let e4m3 = 28;
    let (sums_f32, sums_tf32, sums_i32) = vendor.of((68, 77, 72), (2, 6, 9));
    let of = |factors, product, sums, scale| Some(Types { factors, product, sums, scale });
    match math {
        Math::Bf16 => of(brain, brain, sums_f32, f32_type),
        Math::Fp16 => of(half, half, sums_f32, f32_type),
        Math::Fp8 => of(e4m3, brain, sums_f32, f32_type),
        Math::Tf32 => of(f32_type, f32_type, sums_tf32, f32_type),
        Math::Int8 => of(byte, word, sums_i32, word),
        _ => None,
    }
}

/// Bytes of a factor and of the product.
fn widths(math: Math) -> (usize, usize) {
    match math {
        Math::Fp8 => (1, 2),
        Math::Int8 => (1, 4),
        Math::Tf32 | Math::Fp32 => (4, 4),
        _ => (2, 2),
    }
}

pub struct Blas {
    calls: Calls,
    handle: Handle,
    vendor: Vendor,
    _library: Box<dyn Library>,
}

impl Drop for Blas {
    fn drop(&mut self) {
        // SAFETY: made by `load`, ended once.
        unsafe {
            (self.calls.destroy)(self.handle);
        }
    }
}

fn checked(what: &str, status: Status) -> Result<(), String> {
    let words = match status {
        0 => return Ok(()),
        7 => " (a value it does not take)",
        13 => " (it did not run)",
        15 => " (not supported)",
        _ => "",
    };
    Err(format!("{what}: error {status} of the library{words}"))
}

/// What is made by the library and has to be ended.
struct Made {
    handle: Handle,
    end: unsafe extern "C" fn(Handle) -> Status,
}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: made by the library, ended once.
        unsafe {
            (self.end)(self.handle);
        }
    }
}

/// Room that kernels may use beside their factors.
const WORKSPACE: usize = 64 << 20;

/// A choice of kernel and what goes with it: its description, room it takes, whether it is sound.
#[repr(C, align(8))]
struct Choices([u8; 128]);

impl Blas {
    pub fn load(finder: &dyn Finder, vendor: Vendor) -> Result<Self, String> {
        let names: &[&str] = match vendor {
            Vendor::Nvidia => &["libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"],
            Vendor::Amd => &["libhipblaslt.so", "libhipblaslt.so.1", "libhipblaslt.so.0"],
        };
        let library = finder.open(names)?;
        let start = vendor.of("cublasLt", "hipblasLt");
        let calls = Calls::find(&*library, |own| {
            let end = match own {
                "create" => "Create",
                "destroy" => "Destroy",
                "desc" => "MatmulDescCreate",
                "desc_set" => "MatmulDescSetAttribute",
                "desc_end" => "MatmulDescDestroy",
                "layout" => "MatrixLayoutCreate",
                "layout_end" => "MatrixLayoutDestroy",
                "preference" => "MatmulPreferenceCreate",
                "preference_set" => "MatmulPreferenceSetAttribute",
                "preference_end" => "MatmulPreferenceDestroy",
                "heuristic" => "MatmulAlgoGetHeuristic",
                _ => "Matmul",
            };
            format!("{start}{end}")
        })?;
        let mut handle = null_mut();
        // SAFETY: one pointer is written.
        checked("start", unsafe { (calls.create)(&raw mut handle) })?;
        Ok(Self { calls, handle, vendor, _library: library })
    }

    fn layout(&self, kind: i32, (rows, columns): (u64, u64)) -> Result<Made, String> {
        let mut handle = null_mut();
        // SAFETY: one pointer is written.
        let status = unsafe { (self.calls.layout)(&raw mut handle, kind, rows, columns, rows as i64) };
        checked("describe a matrix", status)?;
        Ok(Made { handle, end: self.calls.layout_end })
    }

    /// What a product takes, made once for each size.
    fn product<'a>(
        &'a self,
        context: &'a Context<'a>,
        math: Math,
        (m, n, k): (u64, u64, u64),
    ) -> Result<Ready<'a>, String> {
        let types = types(math, self.vendor).ok_or("no such product in the library")?;
        let words = &WORDS[self.vendor.of(0, 1)];
        let mut handle = null_mut();
        // SAFETY: one pointer is written.
        checked("describe a product", unsafe { (self.calls.desc)(&raw mut handle, types.sums, types.scale) })?;
        let desc = Made { handle, end: self.calls.desc_end };
        let set = |which: i32, value: i32, bytes: usize| {
            // SAFETY: the value is read at once, of at most four bytes.
            checked("describe a product", unsafe {
                (self.calls.desc_set)(desc.handle, which, (&raw const value).cast(), bytes)
            })
        };
        set(words.trans_a, words.transposed, 4)?;
        if let Some(which) = words.fast_sums.filter(|_| math == Math::Fp8) {
            set(which, 1, 1)?;
        }
        let layouts = [
            self.layout(types.factors, (k, n))?,
            self.layout(types.factors, (k, m))?,
            self.layout(types.product, (n, m))?,
        ];
        let mut handle = null_mut();
        // SAFETY: one pointer is written; then a number is read at once.
        checked("state a preference", unsafe { (self.calls.preference)(&raw mut handle) })?;
        let preference = Made { handle, end: self.calls.preference_end };
        let room = WORKSPACE as u64;
        let status = unsafe { (self.calls.preference_set)(preference.handle, 1, (&raw const room).cast(), 8) };
        checked("state a preference", status)?;
        let mut choice = Choices([0; 128]);
        let mut found = 0;
        let [w, x, y] = layouts.each_ref().map(|l| l.handle);
        // SAFETY: one choice is at most 96 bytes.
        let status = unsafe {
            (self.calls.heuristic)(
                self.handle,
                desc.handle,
                w,
                x,
                y,
                y,
                preference.handle,
                1,
                (&raw mut choice).cast(),
                &raw mut found,
            )
        };
        checked("choose a kernel", status)?;
        if found < 1 {
            return Err("the library has no kernel for it".into());
        }
        let state = words.algorithm + 8;
        let state =
            i32::from_ne_bytes([choice.0[state], choice.0[state + 1], choice.0[state + 2], choice.0[state + 3]]);
        checked("choose a kernel", state)?;
        Ok(Ready { blas: self, context, desc, layouts, choice, whole: math == Math::Int8 })
    }
}

struct Ready<'a> {
    blas: &'a Blas,
    context: &'a Context<'a>,
    desc: Made,
    layouts: [Made; 3],
    choice: Choices,
    whole: bool,
}

impl Ready<'_> {
    fn queue(&self, w: u64, x: u64, y: u64, room: &Buffer<'_>) -> Result<(), String> {
        // One and nothing, as the sums are counted.
        let (one, nothing, whole_one) = (1.0_f32, 0.0_f32, 1_i32);
        let alpha: *const c_void = if self.whole { (&raw const whole_one).cast() } else { (&raw const one).cast() };
        let beta: *const c_void = (&raw const nothing).cast();
        let [wl, xl, yl] = self.layouts.each_ref().map(|l| l.handle);
        // SAFETY: the layouts describe matrices that lie within the buffers; scales are read at once.
        let status = unsafe {
            (self.blas.calls.matmul)(
                self.blas.handle,
                self.desc.handle,
                alpha,
                w,
                wl,
                x,
                xl,
                beta,
                y,
                yl,
                y,
                yl,
                (&raw const self.choice).cast(),
                room.at,
                room.bytes,
                self.context.stream,
            )
        };
        checked("multiply", status)
    }
}

/// Weights and activations of one arithmetic on a device, for products of every m.
pub struct Factors<'a> {
    blas: &'a Blas,
    context: &'a Context<'a>,
    math: Math,
    n: u64,
    k: u64,
    weights: Vec<Buffer<'a>>,
    x: Buffer<'a>,
    y: Buffer<'a>,
    room: Buffer<'a>,
}

impl<'a> Factors<'a> {
    /// Several copies of the weights, so that the second cache does not serve them.
    pub fn new(
        blas: &'a Blas,
        context: &'a Context<'a>,
        math: Math,
        (m, n, k): (u64, u64, u64),
        l2_bytes: f64,
    ) -> Result<Self, String> {
        let (wide, result) = widths(math);
        let one = (n * k) as usize * wide;
        let copies = (4.0 * l2_bytes / one as f64).ceil().clamp(2.0, 8.0) as usize;
        // A prime length, so that rows do not repeat each other.
        let pattern = data::normal(math, 1_048_573);
        let filled = |bytes: usize| {
            let buffer = context.buffer(bytes)?;
            context.fill(&buffer, &pattern)?;
            Ok::<_, String>(buffer)
        };
        let weights = (0..copies).map(|_| filled(one)).collect::<Result<_, _>>()?;
        let (x, y) = (filled((m * k) as usize * wide)?, context.buffer((m * n) as usize * result)?);
        Ok(Self { blas, context, math, n, k, weights, x, y, room: context.buffer(WORKSPACE)? })
    }

    /// Products of so many rows, for about so long.
    pub fn rate(&self, m: u64, repeats: usize, least: Duration) -> Result<Product, String> {
        let ready = self.blas.product(self.context, self.math, (m, self.n, self.k))?;
        let weights = |at: usize| self.weights[at % self.weights.len()].at;
        let times =
            self.context.repeated(repeats, least, |at| ready.queue(weights(at), self.x.at, self.y.at, &self.room))?;
        let seconds = Reading::of(times).filter(|s| s.median > 0.0).ok_or("no repeat took any time")?;
        let (wide, result) = widths(self.math);
        let (m_, n, k) = (m as f64, self.n as f64, self.k as f64);
        Ok(Product {
            math: self.math.to_string(),
            m,
            n: self.n,
            k: self.k,
            seconds,
            rate: 2.0 * m_ * n * k / seconds.median,
            bytes: (n * k + m_ * k) * wide as f64 + m_ * n * result as f64,
            threads: 0,
        })
    }

    /// Queues products for about so long and returns at once.
    pub fn load(&self, m: u64, seconds: f64) -> Result<(), String> {
        let ready = self.blas.product(self.context, self.math, (m, self.n, self.k))?;
        let queue = || ready.queue(self.weights[0].at, self.x.at, self.y.at, &self.room);
        queue()?;
        let once = self.context.timed(queue)?;
        let times = (seconds / once.max(1e-5)).clamp(1.0, 2000.0) as usize;
        (0..times).try_for_each(|_| queue())
    }
}
