//! From a suite and its targets to a preparation for each load point.
