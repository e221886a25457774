//! Accelerators: NVIDIA's through its driver, AMD's through HIP, by the same calls under other names. Nothing of either is needed when this
//! program is built; what is absent when it runs is an answer.

mod blas;
mod collective;
mod compiler;
mod data;
mod device;
mod driver;
#[cfg(test)]
mod fake;
mod library;
mod manage;

use super::{Deadline, Options};
use library::{Finder, Installed};
use rackmath_spec::probe::{Device, Missing};

/// Whose devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    Nvidia,
    Amd,
}

impl Vendor {
    fn name(self) -> &'static str {
        match self {
            Self::Nvidia => "NVIDIA",
            Self::Amd => "AMD",
        }
    }

    /// One of two, by whose it is.
    fn of<T>(self, nvidia: T, amd: T) -> T {
        match self {
            Self::Nvidia => nvidia,
            Self::Amd => amd,
        }
    }
}

/// The kernels as the run-time compilers get them.
pub fn kernels_source() -> &'static str {
    include_str!("gpu/kernels.cu")
}

pub fn probe(options: &Options, deadline: Deadline, tell: &dyn Fn(&str)) -> (Vec<Device>, Vec<Missing>) {
    let installed = Installed::new(&options.libraries);
    let mut found = (Vec::new(), Vec::new());
    for vendor in [Vendor::Nvidia, Vendor::Amd] {
        match all(&installed, vendor, options.quick, deadline, tell) {
            Ok(devices) => found.0.extend(devices),
            Err(why) => found.1.push(Missing::new(format!("{} devices", vendor.name()), why)),
        }
    }
    found
}

/// Every device of a vendor; why there is none.
fn all(
    finder: &dyn Finder,
    vendor: Vendor,
    quick: bool,
    deadline: Deadline,
    tell: &dyn Fn(&str),
) -> Result<Vec<Device>, String> {
    let driver = driver::Driver::load(finder, vendor)?;
    let n = driver.count()?;
    if n == 0 {
        return Err("the driver is there and knows of no device".into());
    }
    let manager = manage::Manager::load(finder, vendor);
    let libraries = device::Libraries { finder, driver: &driver, manager: manager.as_ref(), quick, deadline };
    let mut devices = Vec::new();
    for index in 0..n {
        tell(&format!("{} device {index}", vendor.name()));
        // Of several alike, the first is measured in full.
        devices.push(device::probe(&libraries, index, index == 0, tell));
    }
    if n > 1 {
        tell("links between devices");
        device::links(&libraries, &mut devices);
    }
    Ok(devices)
}
