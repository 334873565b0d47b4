//! Replay of dbench load files.
