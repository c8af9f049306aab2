//! The tactic generator: a Llama/Qwen2 transformer with hand-written forward and backward.
