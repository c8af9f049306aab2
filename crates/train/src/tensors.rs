//! Tensors between the device and safetensors files.

use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use catamount_base::AtomicFile;
use catamount_model::Backend;
use memmap2::Mmap;
use safetensors::tensor::Metadata;
use safetensors::{Dtype, SafeTensorError, SafeTensors, View};

use crate::{Error, Result};

/// Writes a safetensors file and waits until it is on the disk.
pub(crate) fn write_tensors<S: AsRef<str> + Ord + std::fmt::Display, V: View>(
    path: &Path,
    tensors: impl IntoIterator<Item = (S, V)>,
) -> Result<()> {
    let file = AtomicFile::create(path).map_err(Error::file(path))?;
    safetensors::serialize_to_file(tensors, None, file.unfinished()).map_err(|e| match e {
        SafeTensorError::IoError(source) => Error::file(path)(source),
        other => Error::checkpoint(path, other.to_string()),
    })?;
    file.commit().map_err(Error::file(path))
}

/// A tensor on the device, brought to the host only when its turn to be written comes.
pub(crate) struct Remote<'a, B: Backend> {
    pub backend: &'a B,
    pub tensor: &'a B::Tensor,
    pub shape: [usize; 2],
    /// Where a failed transfer is noted.
    pub failed: &'a Mutex<Option<catamount_model::Error>>,
}

impl<B: Backend> View for Remote<'_, B> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let mut host = vec![0.0f32; self.shape[0] * self.shape[1]];
        if let Err(error) = self.backend.download(self.tensor, 0, &mut host) {
            // The trait has no way to say so; whoever writes the file asks afterwards.
            *self.failed.lock().unwrap_or_else(|e| e.into_inner()) = Some(error);
        }
        host.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>().into()
    }

    fn data_len(&self) -> usize {
        4 * self.shape[0] * self.shape[1]
    }
}

/// A safetensors file of a checkpoint, mapped.
pub(crate) struct Tensors {
    path: PathBuf,
    map: Mmap,
    metadata: Metadata,
    /// Where the numbers begin.
    data: usize,
}

impl Tensors {
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::file(path))?;
        // SAFETY: checkpoints are never changed in place, only written beside and renamed, or
        // removed as a whole.
        let map = unsafe { Mmap::map(&file) }.map_err(Error::file(path))?;
        let (header, metadata) = SafeTensors::read_metadata(&map)
            .map_err(|e| Error::checkpoint(path, format!("is damaged: {e}")))?;
        Ok(Tensors { path: path.to_owned(), data: size_of::<u64>() + header, map, metadata })
    }

    /// The bytes of a tensor of `len` numbers.
    pub fn bytes(&self, name: &str, dtype: Dtype, len: usize) -> Result<&[u8]> {
        let refuse = |reason: String| Error::checkpoint(&self.path, reason);
        let missing = || {
            refuse(format!("tensor `{name}` is missing; it belongs to another model or adapter"))
        };
        let info = self.metadata.info(name).ok_or_else(missing)?;
        if info.dtype != dtype || info.shape.iter().product::<usize>() != len {
            return Err(refuse(format!(
                "tensor `{name}` has shape {:?}, where {len} numbers are expected",
                info.shape
            )));
        }
        let (start, end) = info.data_offsets;
        Ok(&self.map[self.data + start..self.data + end])
    }

    /// A tensor of `len` numbers.
    pub fn f32(&self, name: &str, len: usize) -> Result<Vec<f32>> {
        Ok(self
            .bytes(name, Dtype::F32, len)?
            .as_chunks()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect())
    }
}
