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
                Err(error) => {
                    if let Some(remark) = remark(Cuda::is_expected(), &error) {
                        eprintln!("{remark}");
                    }
                    work.run(Arc::new(Cpu))
                }
            },
        }
    }
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
