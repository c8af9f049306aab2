//! Tables, figures and the page made from logs.
