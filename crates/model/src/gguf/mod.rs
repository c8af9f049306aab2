//! GGUF files: llama.cpp's single-file checkpoints, usually quantised. Everything is turned into
//! f32 here.

mod quant;
mod vocabulary;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use crate::checkpoint::{Source, load_from};
use crate::names::Piece;
use crate::{Backend, Config, Error, Family, Heads, Model, Result, Tokenizer};

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
enum Meta {
    Number(f64),
    Text(String),
    List(Vec<Meta>),
}

struct Entry {
    shape: Vec<usize>,
    kind: u32,
    offset: usize,
}

/// An opened file.
pub(crate) struct Gguf {
    path: PathBuf,
    map: Mmap,
    meta: HashMap<String, Meta>,
    tensors: HashMap<String, Entry>,
    data: usize,
}

/// Loads a GGUF file with the tokenizer inside it; `trained` makes the base trainable.
pub fn load_gguf<B: Backend>(
    path: &Path,
    backend: Arc<B>,
    trained: bool,
) -> Result<(Model<B>, Tokenizer)> {
    let file = Gguf::open(path)?;
    let config = file.config()?;
    let tokenizer = file.tokenizer()?;
    tokenizer.check(config.vocab)?;
    Ok((load_from(&file, backend, config, trained)?, tokenizer))
}

/// The tokenizer inside a GGUF file.
pub(crate) fn gguf_tokenizer(path: &Path) -> Result<Tokenizer> {
    Gguf::open(path)?.tokenizer()
}

/// The longest list of metadata: more than any vocabulary has.
const LONGEST_LIST: usize = 1 << 22;

/// Reads the header; every step may find the file's end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let slice = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(slice)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn size(&mut self) -> Option<usize> {
        self.array().map(|b| u64::from_le_bytes(b) as usize)
    }

    fn text(&mut self) -> Option<String> {
        let len = self.size()?;
        Some(String::from_utf8_lossy(self.take(len)?).into_owned())
    }

    fn value(&mut self, kind: u32) -> Option<Meta> {
        Some(Meta::Number(match kind {
            0 | 7 => f64::from(self.array::<1>()?[0]),
            1 => f64::from(self.array::<1>()?[0] as i8),
            2 => f64::from(u16::from_le_bytes(self.array()?)),
            3 => f64::from(i16::from_le_bytes(self.array()?)),
            4 => f64::from(self.u32()?),
            5 => f64::from(i32::from_le_bytes(self.array()?)),
            6 => f64::from(f32::from_le_bytes(self.array()?)),
            8 => return self.text().map(Meta::Text),
            9 => {
                let (kind, len) = (self.u32()?, self.size()?);
                // Nested lists have no use here and would let a small file ask for deep recursion;
                // a value takes more room here than in the file, so a list has a longest length.
                if kind == 9 || len > LONGEST_LIST {
                    return None;
                }
                let mut list = Vec::new();
                for _ in 0..len {
                    list.push(self.value(kind)?);
                }
                return Some(Meta::List(list));
            }
            10 => u64::from_le_bytes(self.array()?) as f64,
            11 => i64::from_le_bytes(self.array()?) as f64,
            12 => f64::from_le_bytes(self.array()?),
            _ => return None,
        }))
    }
}

impl Gguf {
    fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::file(path))?;
        // SAFETY: model files are not changed in place while they are read.
        let map = unsafe { Mmap::map(&file) }.map_err(Error::file(path))?;
        if map.get(..4) != Some(b"GGUF") {
            return Err(Error::format(path, "not a GGUF file"));
        }
        let (meta, tensors, data) = Self::header(&map).ok_or_else(|| {
            Error::format(
                path,
                "the header does not make sense or the file ends inside it; was it cut short?",
            )
        })?;
        Ok(Gguf { path: path.to_owned(), map, meta, tensors, data })
    }

    #[allow(clippy::type_complexity)]
    fn header(bytes: &[u8]) -> Option<(HashMap<String, Meta>, HashMap<String, Entry>, usize)> {
        let mut r = Reader { bytes, at: 4 };
        let version = r.u32()?;
        if !(2..=3).contains(&version) {
            return None;
        }
        let (tensor_count, meta_count) = (r.size()?, r.size()?);
        let mut meta = HashMap::new();
        for _ in 0..meta_count {
            let (key, kind) = (r.text()?, r.u32()?);
            meta.insert(key, r.value(kind)?);
        }
        let mut tensors = HashMap::new();
        for _ in 0..tensor_count {
            let name = r.text()?;
            let dims = r.u32()?;
            // The format knows no more.
            if dims > 4 {
                return None;
            }
            // The fastest dimension comes first in the file.
            let mut shape: Vec<usize> = (0..dims).map(|_| r.size()).collect::<Option<_>>()?;
            shape.reverse();
            let (kind, offset) = (r.u32()?, r.size()?);
            tensors.insert(name, Entry { shape, kind, offset });
        }
        let align = match meta.get("general.alignment") {
            Some(Meta::Number(n)) if *n >= 1.0 => *n as usize,
            _ => 32,
        };
        Some((meta, tensors, r.at.checked_next_multiple_of(align)?))
    }

    fn text(&self, key: &str) -> Result<&str> {
        match self.meta.get(key) {
            Some(Meta::Text(text)) => Ok(text),
            _ => Err(Error::format(&self.path, format!("metadata `{key}` is missing"))),
        }
    }

    fn number(&self, key: &str) -> Option<f64> {
        match self.meta.get(key) {
            Some(Meta::Number(n)) => Some(*n),
            _ => None,
        }
    }

    fn config(&self) -> Result<Config> {
        let arch = self.text("general.architecture")?;
        let family = match arch {
            "llama" => Family::Llama,
            "qwen2" => Family::Qwen2,
            other => {
                return Err(Error::format(
                    &self.path,
                    format!("architecture `{other}`; llama and qwen2 are known here"),
                ));
            }
        };
        let need = |key: &str| {
            let key = format!("{arch}.{key}");
            self.number(&key)
                .map(|n| n as usize)
                .ok_or_else(|| Error::format(&self.path, format!("metadata `{key}` is missing")))
        };
        if self.tensors.contains_key("rope_freqs.weight") {
            return Err(Error::format(
                &self.path,
                "stretched rotary frequencies are not known in GGUF; use the safetensors \
                 checkpoint",
            ));
        }
        let (hidden, heads) = (need("embedding_length")?, need("attention.head_count")?);
        let vocab = self
            .tensors
            .get("token_embd.weight")
            .and_then(|t| t.shape.first())
            .copied()
            .unwrap_or(0);
        let config = Config {
            family,
            vocab,
            hidden,
            intermediate: need("feed_forward_length")?,
            layers: need("block_count")?,
            heads: Heads {
                heads,
                kv_heads: need("attention.head_count_kv").unwrap_or(heads),
                dim: need("attention.key_length").unwrap_or(hidden / heads.max(1)),
            },
            norm_eps: self
                .number(&format!("{arch}.attention.layer_norm_rms_epsilon"))
                .unwrap_or(1e-5) as f32,
            rope_theta: self.number(&format!("{arch}.rope.freq_base")).unwrap_or(10_000.0),
            rope_scaling: None,
            positions: need("context_length")?,
            tied: !self.tensors.contains_key("output.weight"),
            qkv_bias: self.tensors.contains_key("blk.0.attn_q.bias"),
            o_bias: self.tensors.contains_key("blk.0.attn_output.bias"),
        };
        config.check().map_err(|e| Error::format(&self.path, e.to_string()))?;
        Ok(config)
    }
}

impl Source for Gguf {
    fn path(&self) -> &Path {
        &self.path
    }

    fn name<'a>(&self, piece: &'a Piece) -> &'a str {
        &piece.gguf
    }

    fn layer_prefix(&self) -> &'static str {
        "blk."
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.tensors.keys()
    }

    fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|entry| &entry.shape[..])
    }

    fn read(&self, piece: &Piece) -> Result<Vec<f32>> {
        let missing = || Error::MissingTensor { path: self.path.clone(), name: piece.gguf.clone() };
        let entry = self.tensors.get(&piece.gguf).ok_or_else(missing)?;
        let refuse = |reason: String| {
            Error::format(&self.path, format!("tensor `{}`: {reason}", piece.gguf))
        };
        let count = entry.shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let count = count.ok_or_else(|| refuse("its shape overflows".into()))?;
        let len = quant::bytes(entry.kind, count)
            .ok_or_else(|| refuse(format!("storage type {} is not known", entry.kind)))?;
        let first = self
            .data
            .checked_add(entry.offset)
            .ok_or_else(|| refuse("its offset overflows".into()))?;
        let bytes = first.checked_add(len).and_then(|end| self.map.get(first..end));
        let bytes =
            bytes.ok_or_else(|| refuse("the file ends inside it; was it cut short?".into()))?;
        let mut numbers = quant::numbers(entry.kind, bytes);
        // llama's converter interleaves the two halves that rotation pairs up; undo it.
        if piece.interleaved_heads > 0 && matches!(self.text("general.architecture"), Ok("llama")) {
            numbers = gather_halves(&numbers, piece.interleaved_heads, piece.shape[0]);
        }
        Ok(numbers)
    }
}

/// Moves row `2j + half` of every head to row `half * dim / 2 + j`.
fn gather_halves(numbers: &[f32], heads: usize, rows: usize) -> Vec<f32> {
    let (width, dim) = (numbers.len() / rows.max(1), rows / heads);
    let mut out = Vec::with_capacity(numbers.len());
    for row in 0..rows {
        let (head, within) = (row / dim, row % dim);
        let from = head * dim + 2 * (within % (dim / 2)) + within / (dim / 2);
        out.extend_from_slice(&numbers[from * width..][..width]);
    }
    out
}
