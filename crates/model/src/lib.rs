#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod activations;
mod adapter;
mod backend;
mod backward;
mod batch;
mod cache;
mod checkpoint;
mod config;
mod cpu;
mod deployed;
mod draws;
mod error;
mod forward;
mod fused;
mod generator;
mod gguf;
#[cfg(feature = "hub")]
mod hub;
mod identity;
mod model;
mod named;
mod names;
mod parameter;
mod peft;
mod prefix;
mod reference;
mod tokenizer;

pub use activations::{Activations, Keep};
pub use adapter::{Adapter, LoraConfig, LoraLinear, TARGETS, target_rows};
pub use backend::{
    AdamW, Affine, Attended, Backend, Decode, Direction, Dropout, Head, HeadGradients, Heads,
    Inner, Kind, Layers, Lora, LoraGradients, Memory, Norm, NormInput, Normed, Optimize, Packed,
    Place, Scores, Shape, Span, Update,
};
pub use batch::Batch;
pub use cache::{Cache, Runs};
pub use checkpoint::{load, save};
pub use config::{Config, Family, RopeScaling};
pub use cpu::{Cpu, CpuTensor};
pub use deployed::fitting;
pub use draws::{Draws, Sampling};
pub use error::{Error, Result};
pub use fused::{Each, Fused};
pub use generator::{Generator, GeneratorConfig, Work};
pub use gguf::load_gguf;
#[cfg(feature = "hub")]
pub use hub::download;
pub use identity::identity;
pub use model::{Block, Linear, Model};
pub use named::{locate, obtainable, open, tokenizer_of};
pub use names::{Piece, peft_name, pieces};
pub use parameter::Parameter;
pub use peft::{load_adapter, save_adapter};
pub use reference::Reference;
pub use tokenizer::{END, SEPARATOR, Tokenizer};
