//! Clock, pacer, worker loop, driver, recorder, phases, events. Knows no protocol, prints nothing.

pub mod agent;
pub mod seam;
pub mod worker;
