//! A blocking client for errands.
