//! `--device`: where models compute.

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

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "auto" => Ok(Device::Auto),
            None if text == "cpu" => Ok(Device::Cpu),
            None if text == "cuda" => Ok(Device::Cuda(0)),
            Some(("cuda", number)) => number
                .parse()
                .map(Device::Cuda)
                .map_err(|_| format!("`{number}` is no GPU's number")),
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
    /// Runs work on this device.
    pub fn run<W: OnDevice>(self, work: W) -> Result<W::Output> {
        match self {
            Device::Cpu => work.run(Arc::new(Cpu)),
            Device::Cuda(ordinal) => match Cuda::new(ordinal) {
                Ok(cuda) => work.run(Arc::new(cuda)),
                Err(error) => bail!("--device cuda:{ordinal}: {error}"),
            },
            // Quietly: `auto` promises no GPU, and manifests say which device it was.
            Device::Auto => match Cuda::new(0) {
                Ok(cuda) => work.run(Arc::new(cuda)),
                Err(_) => work.run(Arc::new(Cpu)),
            },
        }
    }
}
