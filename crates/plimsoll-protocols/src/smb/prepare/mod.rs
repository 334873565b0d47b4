//! Errands around a load point.
