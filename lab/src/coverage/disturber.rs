//! A process that takes a fifth of a core, in bursts.

use std::process::{Command, Stdio};
use std::time::Duration;

use xtask::verb::Result;

use super::DISTURBER;
use crate::process::{Running, now};

/// Of each burst, and of the pause after it: a fifth of a core.
const BURST: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_millis(20);
/// Nobody's core is taken for longer, whatever becomes of who asked for it.
const LIFE: Duration = Duration::from_secs(120);

/// Takes its share of whatever core it is on, and ends.
pub fn disturb() {
    let start = now();
    while start.elapsed() < LIFE {
        let burst = now();
        while burst.elapsed() < BURST {
            std::hint::spin_loop();
        }
        std::thread::sleep(PAUSE);
    }
}

/// Starts one on a core; it ends when dropped.
pub fn disturber(core: u32) -> Result<Running> {
    let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]).arg(program).arg(DISTURBER);
    let child = command.stdin(Stdio::null()).spawn();
    Ok(Running(child.map_err(|e| format!("taskset: {e}; it is part of util-linux"))?))
}
