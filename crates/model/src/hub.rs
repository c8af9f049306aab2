//! Checkpoints from the Hugging Face hub, by name.

use std::path::PathBuf;

use crate::{Error, Result};

/// Downloads what [`crate::load`] and [`crate::load_adapter`] read of `owner/name` into the hub's
/// cache, and returns the folder. What is there already is not fetched again.
pub fn download(name: &str, revision: Option<&str>) -> Result<PathBuf> {
    let Some((owner, repository)) = name.split_once('/') else {
        return Err(Error::Input(format!(
            "`{name}` is not a model on the hub: names look like owner/model"
        )));
    };
    let fail = |e: hf_hub::HFError| Error::Input(format!("the hub could not give `{name}`: {e}"));
    let client = hf_hub::HFClientSync::new().map_err(fail)?;
    let wanted = ["*.json", "*.safetensors"].map(String::from).to_vec();
    let model = client.model(owner, repository);
    let request =
        model.snapshot_download().allow_patterns(wanted).maybe_revision(revision.map(String::from));
    request.send().map_err(fail)
}
