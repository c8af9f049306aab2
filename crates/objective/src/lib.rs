//! From a trace's log-probabilities to log J and the weight of every step.
