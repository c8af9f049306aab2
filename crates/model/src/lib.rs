//! The tactic generator: a Llama/Qwen2 transformer with hand-written forward and backward.

mod activations;
mod adapter;
mod backend;
mod backward;
mod batch;
mod cache;
mod config;
mod cpu;
mod error;
mod forward;
mod model;
mod parameter;

pub use activations::{Activations, Keep};
pub use adapter::{Adapter, LoraConfig, LoraLinear, TARGETS, fused_shape, target_rows};
pub use backend::{AdamW, Backend, Dropout, Heads, Kind, Lora, Packed, Sampling, Span};
pub use batch::Batch;
pub use cache::{Cache, Runs};
pub use config::{Config, Family, RopeScaling};
pub use cpu::{Cpu, CpuTensor};
pub use error::{Error, Result};
pub use model::{Block, Linear, Model};
pub use parameter::Parameter;
