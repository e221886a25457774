//! Kernels from their source, by NVRTC or hipRTC, which have the same functions. NVIDIA's are carried ready as well.

#![allow(unsafe_code)]

use super::library::{Finder, calls};
use super::{Vendor, kernels_source};
use std::ffi::{CString, c_char, c_void};
use std::ptr::{null, null_mut};

type Program = *mut c_void;

calls!(
    Calls {
        create: fn(*mut Program, *const c_char, *const c_char, i32, *const *const c_char, *const *const c_char) -> i32,
        compile: fn(Program, i32, *const *const c_char) -> i32,
        code_size: fn(Program, *mut usize) -> i32,
        code: fn(Program, *mut c_char) -> i32,
        destroy: fn(*mut Program) -> i32,
    }
);

/// Kernels that the driver translates for whatever device it has.
pub fn carried(vendor: Vendor) -> Option<&'static [u8]> {
    vendor.of(Some(include_bytes!("kernels.ptx").as_slice()), None)
}

/// Kernels compiled here, for a device of this capability.
pub fn compiled(finder: &dyn Finder, vendor: Vendor, capability: &str) -> Result<Vec<u8>, String> {
    let names: &[&str] = match vendor {
        Vendor::Nvidia => &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"],
        Vendor::Amd => &["libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so"],
    };
    let library = finder.open(names)?;
    let start = vendor.of("nvrtc", "hiprtc");
    let calls = Calls::find(&*library, |own| match own {
        "create" => format!("{start}CreateProgram"),
        "compile" => format!("{start}CompileProgram"),
        "code_size" => format!("{start}{}", vendor.of("GetPTXSize", "GetCodeSize")),
        "code" => format!("{start}{}", vendor.of("GetPTX", "GetCode")),
        _ => format!("{start}DestroyProgram"),
    })?;
    let checked = |what: &str, status: i32| {
        if status == 0 { Ok(()) } else { Err(format!("{what}: error {status} of the compiler")) }
    };
    let source = CString::new(kernels_source()).map_err(|e| e.to_string())?;
    // AMD's compiles for the device that is current.
    let option = vendor.of(Some(format!("--gpu-architecture=compute_{}", capability.replace('.', ""))), None);
    let option = option.map(CString::new).transpose().map_err(|e| e.to_string())?;
    let options: Vec<*const c_char> = option.iter().map(|o| o.as_ptr()).collect();
    let mut program = null_mut();
    let mut code = Vec::new();
    // SAFETY: source and options end in zeros and outlive the calls; the code is written into as many bytes as it says it takes.
    unsafe {
        checked("begin", (calls.create)(&raw mut program, source.as_ptr(), c"probe.cu".as_ptr(), 0, null(), null()))?;
        let done =
            checked("compile", (calls.compile)(program, options.len() as i32, options.as_ptr())).and_then(|()| {
                let mut size = 0;
                checked("measure the code", (calls.code_size)(program, &raw mut size))?;
                code = vec![0_u8; size];
                checked("take the code", (calls.code)(program, code.as_mut_ptr().cast()))
            });
        (calls.destroy)(&raw mut program);
        done?;
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carried_kernels_are_those_of_the_source() {
        let carried = String::from_utf8_lossy(carried(Vendor::Nvidia).unwrap());
        let named = |text: &str, before: &str| -> Vec<String> {
            let after = text.split(before).skip(1).map(|rest| rest.split('(').next().unwrap_or_default().to_owned());
            after.collect()
        };
        let source = named(kernels_source(), "__global__ void ");
        assert_eq!(source, named(&carried, ".visible .entry "));
        assert_eq!(source, ["empty_kernel", "read_kernel", "copy_kernel", "triad_kernel"]);
    }
}
