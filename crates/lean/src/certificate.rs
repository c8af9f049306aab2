//! A proof as a file for other people's kernels: everything it rests on, down to the ground.

use catamount_search::{Checked, Fault};
use catamount_traces::Theorem;
use serde_json::json;

use crate::challenge::Extent;
use crate::environment::Lean;
use crate::session::Target;
use crate::terms::{Declaration, Limits, Terms};
use crate::worker::{Owner, Place};

/// The format that is written.
const FORMAT: &str = "3.1.0";

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Lines in the format of lean4export.
    pub text: String,
    /// Library theorems and definitions that come as axioms, because what they stand for is not at
    /// hand (the WebAssembly package has no proofs). A kernel's verdict is relative to them.
    pub library_statements: Vec<String>,
    /// The axioms proper.
    pub axioms: Vec<String>,
}

impl Lean {
    /// A proof for other kernels; the inner error is why there is none.
    pub fn certificate(
        &self,
        theorem: &Theorem,
        tactics: &[String],
    ) -> Result<Result<Certificate, String>, Fault> {
        match self.terms(theorem, tactics)? {
            Ok(terms) => self.certificate_of(theorem, &terms),
            Err(reason) => Ok(Err(reason)),
        }
    }

    /// The same for a proof that comes as terms, whoever made them. They are judged first: another
    /// kernel sees what they prove and not what they were to prove.
    pub fn certificate_of(
        &self,
        theorem: &Theorem,
        terms: &str,
    ) -> Result<Result<Certificate, String>, Fault> {
        if let Checked::Refused { reason } = self.judge(theorem, terms)? {
            return Ok(Err(reason));
        }
        let (place, target) =
            self.locate(theorem, Owner::User).map_err(|e| Fault(e.to_string()))?;
        self.certificate_at(&place, &target, terms)
    }

    /// The same for terms that were judged.
    pub(crate) fn certificate_at(
        &self,
        place: &Place,
        target: &Target,
        terms: &str,
    ) -> Result<Result<Certificate, String>, Fault> {
        let proof = match Terms::read(terms, &Limits::default()) {
            Ok(proof) => proof,
            Err(why) => return Ok(Err(format!("terms: {why}"))),
        };
        if proof.declarations.iter().any(|d| matches!(d, Declaration::Axiom(_))) {
            return Ok(Err("unsound: the proof declares an axiom".into()));
        }
        let challenge = match self.challenge(place, target, &proof, Extent::Whole)? {
            Ok(challenge) => challenge,
            Err(why) => return Ok(Err(why)),
        };
        let mut whole = challenge.terms;
        // The goal itself: the proof takes its place.
        whole.declarations.pop();
        whole.append(&proof.with_own_names());
        let (library_statements, axioms) = sorted_axioms(&whole, &challenge.stated);
        let meta = json!({"meta": {
            "exporter": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")},
            "lean": {"githash": challenge.githash, "version": challenge.lean},
            "format": {"version": FORMAT},
        }});
        let text = format!("{meta}\n{}", whole.ndjson());
        Ok(Ok(Certificate { text, library_statements, axioms }))
    }
}

/// The axioms that are declared: those that stand for something of the library's, and the others.
fn sorted_axioms(terms: &Terms, stated: &[String]) -> (Vec<String>, Vec<String>) {
    // Lean quotes parts of names that are no words; kernels do not.
    let bare = |name: &str| name.replace(['«', '»'], "");
    let stated: std::collections::HashSet<String> = stated.iter().map(|name| bare(name)).collect();
    let declared = terms.declarations.iter().filter_map(|d| match d {
        Declaration::Axiom(head) => Some(terms.name_text(head.name)),
        _ => None,
    });
    declared.partition(|name| stated.contains(&bare(name)))
}
