//! A proof as a file for other people's kernels: everything it rests on, down to the ground.

use catamount_search::Fault;
use catamount_traces::Theorem;
use serde_json::json;

use crate::challenge::Extent;
use crate::environment::Lean;
use crate::terms::{Limits, Terms};
use crate::worker::Owner;

/// The format that is written.
const FORMAT: &str = "3.1.0";

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Lines in the format of lean4export.
    pub text: String,
    /// Library theorems that come as axioms, because their proofs are not at hand (the WebAssembly
    /// package has none). A kernel's verdict is relative to them.
    pub library_statements: Vec<String>,
}

impl Lean {
    /// A proof for other kernels; the inner error is why there is none. It is not judged here.
    pub fn certificate(
        &self,
        theorem: &Theorem,
        tactics: &[String],
    ) -> Result<Result<Certificate, String>, Fault> {
        let (place, target) =
            self.locate(theorem, Owner::User).map_err(|e| Fault(e.to_string()))?;
        let terms = match self.prove(&place, &target, tactics)? {
            Ok(terms) => terms,
            Err(reason) => return Ok(Err(reason)),
        };
        let proof = match Terms::read(&terms, &Limits::default()) {
            Ok(proof) => proof,
            Err(why) => return Ok(Err(format!("terms: {why}"))),
        };
        let challenge = match self.challenge(&place, &target, &proof, Extent::Whole)? {
            Ok(challenge) => challenge,
            Err(why) => return Ok(Err(why)),
        };
        let mut whole = challenge.terms;
        // The goal itself: the proof takes its place.
        whole.declarations.pop();
        whole.append(&proof);
        let meta = json!({"meta": {
            "exporter": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")},
            "lean": {"githash": challenge.githash, "version": challenge.lean},
            "format": {"version": FORMAT},
        }});
        let text = format!("{meta}\n{}", whole.ndjson());
        Ok(Ok(Certificate { text, library_statements: challenge.stated }))
    }
}
