//! The trained parameters, copied to the host: the warm-up checkpoint that branches start from.

use catamount_model::{Backend, Model};

use crate::{Error, Result};

/// A copy of the trained parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot(Vec<(String, Vec<f32>)>);

impl Snapshot {
    /// Copies the parameters that are being trained: the adapter's, or all.
    pub fn take<B: Backend>(model: &Model<B>) -> Result<Self> {
        let copy =
            |p: &catamount_model::Parameter<B>| Ok((p.name.clone(), p.to_host(&model.backend)?));
        Ok(Snapshot(model.trained().map(copy).collect::<Result<_>>()?))
    }

    /// Puts them back.
    pub fn restore<B: Backend>(&self, model: &mut Model<B>) -> Result<()> {
        let backend = model.backend.clone();
        let names: Vec<(String, usize)> =
            model.trained().map(|p| (p.name.clone(), p.len())).collect();
        let ours = self.0.iter().map(|(name, values)| (name, values.len()));
        if !names.iter().map(|(name, len)| (name, *len)).eq(ours) {
            return Err(Error::Data(
                "the snapshot was taken from a model with other trained parameters".into(),
            ));
        }
        for (parameter, (_, values)) in model.trained_mut().zip(&self.0) {
            backend.upload(values, &mut parameter.value, 0)?;
        }
        Ok(())
    }
}
