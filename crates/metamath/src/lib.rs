//! Metamath as the embedded proving environment.
