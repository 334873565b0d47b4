//! The `[workload]` table of suites with `protocol = "smb"`.
