//! One request to one service.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use catamount_search::Fault;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::http::Response;

use crate::protocol::{Refused, Status};

/// The longest that an answer may take: opening a large Lean file.
const LONGEST: Duration = Duration::from_secs(2000);
/// The longest that a service may take to be reached, or to say how it is.
const REACH: Duration = Duration::from_secs(5);
/// Between two looks whether an answer is still waited for.
const LOOK: Duration = Duration::from_millis(50);
/// The largest answer that is read.
const LARGEST: u64 = 32 << 20;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It has too much to do: later.
    Busy,
    /// It does not know the session any more: to be opened anew.
    Forgotten,
    /// It is not there any more.
    Lost(String),
    /// The prover itself, or the service, says no; asking again would not help.
    Refused(String),
    /// Nobody waits for the answer any more.
    Given(Fault),
}

/// Sends requests, over connections that are kept.
pub(crate) struct Client {
    agent: Agent,
}

impl Client {
    pub fn new(connections: usize) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(LONGEST))
            .timeout_connect(Some(REACH))
            .http_status_as_error(false)
            .max_idle_connections_per_host(connections)
            // Provers are near; a proxy is for the outside world.
            .proxy(None);
        Client { agent: config.build().into() }
    }

    /// Waits for the answer as long as `wanted` finds nothing against it: a service that hangs is
    /// left to a thread of its own.
    pub fn post<A: DeserializeOwned>(
        &self,
        address: &str,
        path: &str,
        body: &impl Serialize,
        wanted: impl Fn() -> Result<(), Failure>,
    ) -> Result<A, Failure> {
        let text = serde_json::to_string(body).map_err(|e| Failure::Refused(e.to_string()))?;
        let request = self.agent.post(format!("http://{address}{path}"));
        let request = request.header("Content-Type", "application/json");
        let (sender, answered) = sync_channel(1);
        let send = move || drop(sender.send(read(request.send(text))));
        let asking = thread::Builder::new().name("asking".into()).spawn(send);
        asking.map_err(|e| Failure::Refused(format!("no thread to ask a prover with: {e}")))?;
        loop {
            match answered.recv_timeout(LOOK) {
                Ok(said) => return answer(address, said),
                Err(RecvTimeoutError::Timeout) => wanted()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return answer(address, Err("asking it failed; please report this".into()));
                }
            }
        }
    }

    pub fn status(&self, address: &str) -> Result<Status, Failure> {
        let request = self.agent.get(format!("http://{address}/status"));
        let request = request.config().timeout_global(Some(REACH)).build();
        answer(address, read(request.call()))
    }
}

/// The status and the text of an answer, or why there is none.
type Said = Result<(u16, String), String>;

fn read(sent: Result<Response<ureq::Body>, ureq::Error>) -> Said {
    let mut response = sent.map_err(|error| error.to_string())?;
    let body = response.body_mut().with_config().limit(LARGEST).read_to_string();
    Ok((response.status().as_u16(), body.map_err(|error| error.to_string())?))
}

fn answer<A: DeserializeOwned>(address: &str, said: Said) -> Result<A, Failure> {
    let lost = |reason: String| Failure::Lost(format!("the prover at {address}: {reason}"));
    let (status, body) = said.map_err(lost)?;
    let said = || serde_json::from_str::<Refused>(&body).map(|refused| refused.error);
    match status {
        200 => serde_json::from_str(&body)
            .map_err(|error| lost(format!("what it says is not understood ({error})"))),
        503 => Err(Failure::Busy),
        404 => Err(Failure::Forgotten),
        // The prover's own words, as a prover in this process would have them.
        400..=599 => {
            Err(said().map_or_else(|_| lost(format!("status {status}")), Failure::Refused))
        }
        _ => Err(lost(format!("status {status}"))),
    }
}
