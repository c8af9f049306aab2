//! `--device`: where models compute.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Result, bail};
use catamount_cuda::Cuda;
use catamount_model::{Backend, Cpu};

/// A device, or whichever is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// A GPU if there is one, else the processor.
    Auto,
    /// The processor.
    Cpu,
    /// A GPU by number.
    Cuda(usize),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Auto => f.write_str("auto"),
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

/// One device, or several that processes are spread over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Devices {
    /// One, for one process.
    One(Device),
    /// Several, each with a process of its own.
    Several(Vec<Device>),
    /// Every GPU of this machine.
    AllCards,
}

impl FromStr for Devices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "cuda:all" {
            return Ok(Devices::AllCards);
        }
        let devices: Vec<Device> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        if let [one] = devices[..] {
            return Ok(Devices::One(one));
        }
        for (index, device) in devices.iter().enumerate() {
            match device {
                Device::Auto => return Err("`auto` is one device; name them all".to_string()),
                Device::Cuda(_) if devices[..index].contains(device) => {
                    return Err(format!("{device} is listed twice"));
                }
                _ => {}
            }
        }
        Ok(Devices::Several(devices))
    }
}

impl Devices {
    /// The devices, by name; none where one process is enough.
    pub fn several(&self) -> Result<Option<Vec<Device>>> {
        match self {
            Devices::One(_) => Ok(None),
            Devices::Several(devices) => Ok(Some(devices.clone())),
            Devices::AllCards => match Cuda::count() {
                Ok(0) => bail!("--device cuda:all: the driver shows no GPU (see nvidia-smi)"),
                Ok(count) => Ok(Some((0..count).map(Device::Cuda).collect())),
                Err(error) => bail!("--device cuda:all: {error}"),
            },
        }
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            // The processor's number only tells several processes apart.
            Some(("cpu", number)) if number.parse::<usize>().is_ok() => Ok(Device::Cpu),
            None if text == "auto" => Ok(Device::Auto),
            None if text == "cpu" => Ok(Device::Cpu),
            None if text == "cuda" => Ok(Device::Cuda(0)),
            Some(("cuda", number)) => number
                .parse()
                .map(Device::Cuda)
                .map_err(|_| format!("`{number}` is not the number of a GPU; use cuda:0")),
            _ => Err(format!("unknown device `{text}`; use auto, cpu or cuda:0")),
        }
    }
}

/// Work that runs on any device.
pub trait OnDevice {
    /// What comes of it.
    type Output;
    /// Does it.
    fn run<B: Backend>(self, backend: Arc<B>) -> Result<Self::Output>;
}

impl Device {
    /// The device that `auto` stands for on this machine; others stand for themselves.
    pub fn settled(self) -> Self {
        match self {
            Device::Auto => match Cuda::new(0) {
                Ok(_) => Device::Cuda(0),
                Err(error) => fall_back(&error),
            },
            device => device,
        }
    }

    /// Runs work on this device.
    pub fn run<W: OnDevice>(self, work: W) -> Result<W::Output> {
        match self {
            Device::Cpu => work.run(Arc::new(Cpu)),
            Device::Cuda(ordinal) => match Cuda::new(ordinal) {
                Ok(cuda) => work.run(Arc::new(cuda)),
                Err(error) => bail!("--device cuda:{ordinal}: {error}"),
            },
            Device::Auto => match Cuda::new(0) {
                Ok(cuda) => work.run(Arc::new(cuda)),
                Err(error) => fall_back(&error).run(work),
            },
        }
    }
}

/// The processor, where `auto` finds no GPU that it can use.
fn fall_back(error: &dyn fmt::Display) -> Device {
    if let Some(remark) = remark(Cuda::is_expected(), error) {
        eprintln!("{remark}");
    }
    Device::Cpu
}

/// What is said where `auto` falls back to the processor: nothing on a machine without a GPU, but
/// whoever has one should know that it is not used.
fn remark(expected: bool, error: &dyn std::fmt::Display) -> Option<String> {
    expected.then(|| {
        format!(
            "warning: --device auto: the GPU of this machine cannot be used ({error}); computing \
             on the processor (--device cpu does so without this warning)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_cannot_be_used_is_not_passed_over_in_silence() {
        assert_eq!(remark(false, &"no driver"), None);
        let said = remark(true, &"out of memory").unwrap();
        assert!(said.contains("cannot be used (out of memory)"), "{said}");
    }
}
