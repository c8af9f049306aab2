//! The policy on a thread of its own: it goes on sampling while searches are stepped and logged
//! elsewhere.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use catamount_search::{Policy, Request, RequestId};
use crossbeam_channel::{Receiver, Sender, TryRecvError};

use crate::driver::{Event, Reply};
use crate::redraw::Redraw;

/// Answers questions until nobody can ask any more. An empty answer says that the policy has given
/// up on what it was asked.
pub(crate) fn answer_questions(
    policy: &mut dyn Policy,
    questions: &Receiver<Vec<Request>>,
    events: &Sender<Event>,
) {
    let policy = &mut Redraw::new(policy);
    let mut open = HashSet::new();
    loop {
        if open.is_empty() {
            match questions.recv() {
                Ok(some) => submit(policy, some, &mut open),
                Err(_) => return,
            }
        }
        loop {
            match questions.try_recv() {
                Ok(some) => submit(policy, some, &mut open),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        let answers: Vec<(RequestId, Reply)> =
            match catch_unwind(AssertUnwindSafe(|| policy.poll())) {
                Ok(answers) => answers,
                Err(panic) => {
                    // The driver must not wait for answers that will never come.
                    let _ = events.send(Event::Answers(Vec::new()));
                    resume_unwind(panic);
                }
            };
        answers.iter().for_each(|(id, _)| _ = open.remove(id));
        if answers.is_empty() {
            open.clear();
        }
        if events.send(Event::Answers(answers)).is_err() {
            return;
        }
    }
}

fn submit(policy: &mut dyn Policy, requests: Vec<Request>, open: &mut HashSet<RequestId>) {
    for request in requests {
        open.insert(request.id);
        policy.submit(request);
    }
}
