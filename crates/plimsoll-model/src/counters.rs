//! The counters of a load point, each declared once: in `with_counters`, with its name, its column
//! in `points.csv` and its column in the report. A new one needs a line there and the code that
//! counts it; journal, result, CSV and report follow.
//!
//! `adds_up` declares the totals of a worker, each field with the rule that adds it up.

/// Adds a field for each counter to the struct it is called with: `counts TYPE` for a field of that
/// type, `adds up` for a struct of `adds_up`.
macro_rules! with_counters {
    ($($item:tt)*) => {
        $crate::counters::struct_with_counters! {
            [
                /// Application bytes read by ops that finished in the window.
                BytesRead bytes_read "read_bytes" None;
                /// Application bytes written by ops that finished in the window.
                BytesWritten bytes_written "written_bytes" None;
                /// Bytes received on sockets in the window.
                WireBytesIn wire_bytes_in "wire_in_bytes" None;
                /// Bytes sent on sockets in the window.
                WireBytesOut wire_bytes_out "wire_out_bytes" None;
                /// Calls sent again because no reply came: over UDP, or on a new connection after the
                /// one before was lost.
                Retransmissions retransmissions "retransmissions" Some("sent again");
                /// Connections opened in the window.
                Connects connects "connects" None;
                /// Ops due in the window that were never sent: the backlog was full, or they still
                /// waited after the drain.
                NotSent not_sent "not_sent_ops" None;
                /// Ops sent again although the first try may have worked.
                Ambiguous ambiguous "ambiguous_ops" Some("ambiguous");
                /// Ops sent again because the connection was closed before they went out: the
                /// server cannot have seen them.
                Reconnected reconnected "reconnected_ops" Some("reconnected");
                /// Connections that the server closed after a reply that announced to keep them.
                Unkept unkept "unkept_connections" Some("closed although kept");
                /// Ops that the server reported as not processed, and that were sent again.
                Refused refused "refused_ops" Some("refused");
                /// Ops that waited because the server allows fewer streams at a time.
                StreamWaits stream_waits "stream_wait_ops" Some("waited for a stream");
                /// Ops that waited for a slot of their NFSv4.1 session, see RFC 8881 §2.10.6.
                SlotWaits slot_waits "slot_wait_ops" Some("waited for a slot");
                /// Replies that requested to wait and send the call again (NFS4ERR_DELAY).
                Delays delays "delay_replies" Some("asked to wait");
                /// Sessions made again because the server no longer knew the one before.
                SessionsRebuilt sessions_rebuilt "rebuilt_sessions" Some("sessions made again");
                /// Files opened again because the server no longer knew their stateid.
                Reopened reopened "reopened_files" Some("opened again");
                /// COMPOUND calls that were answered: those of ops, and all others.
                Compounds compounds "compounds" None;
                /// Operations in those compounds, with SEQUENCE, PUTFH and GETATTR.
                Operations operations "compound_operations" None;
                /// OPEN operations that were answered with a stateid.
                Opens opens "opens" None;
                /// Delegations that the server granted.
                Delegations delegations "delegations" Some("delegations");
                /// Delegations that the server recalled (CB_RECALL).
                Recalls recalls "recalls" Some("recalls");
                /// Ops whose content was verified in full.
                Verified verified "verified_ops" None;
            ]
            $($item)*
        }
    };
}

macro_rules! struct_with_counters {
    (
        [$($(#[$doc:meta])* $counter:ident $field:ident $heading:literal $label:expr;)*]
        $(#[$meta:meta])* pub enum $name:ident;
    ) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$doc])* $counter,)*
        }

        impl $name {
            /// All of them, in the order of their columns.
            pub const ALL: &'static [Self] = &[$(Self::$counter,)*];

            /// Its column in `points.csv`, and the one that it has in the report where a load point
            /// counted any.
            pub const fn columns(self) -> (&'static str, Option<&'static str>) {
                match self {
                    $(Self::$counter => ($heading, $label),)*
                }
            }
        }
    };
    (
        [$($(#[$doc:meta])* $counter:ident $field:ident $heading:literal $label:expr;)*]
        $(#[$meta:meta])* pub struct $name:ident counts $number:ty { $($own:tt)* }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($own)*
            $($(#[$doc])* #[serde(default)] pub $field: $number,)*
        }

        $crate::counters::counters_of! { $name $number [$($counter $field)*] }
    };
    (
        [$($(#[$doc:meta])* $counter:ident $field:ident $heading:literal $label:expr;)*]
        $(#[$meta:meta])* pub struct $name:ident adds up { $($own:tt)* }
    ) => {
        $crate::counters::adds_up! {
            $(#[$meta])*
            pub struct $name {
                $($own)*
                $($(#[$doc])* #[serde(default)] pub $field: u64 => sum,)*
            }
        }

        $crate::counters::counters_of! { $name u64 [$($counter $field)*] }
    };
}

macro_rules! counters_of {
    ($name:ident $number:ty [$($counter:ident $field:ident)*]) => {
        impl $name {
            /// What was counted.
            pub const fn counter(&self, counter: Counter) -> $number {
                match counter {
                    $(Counter::$counter => self.$field,)*
                }
            }

            /// The same, to be changed.
            pub const fn counter_mut(&mut self, counter: Counter) -> &mut $number {
                match counter {
                    $(Counter::$counter => &mut self.$field,)*
                }
            }
        }
    };
}

/// A struct whose fields add up, each by the function behind its arrow.
macro_rules! adds_up {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$attribute:meta])* pub $field:ident: $type:ty => $add:path,)*
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$attribute])* pub $field: $type,)*
        }

        impl $name {
            /// Adds what another worker counted.
            pub fn add(&mut self, part: Self) {
                $($add(&mut self.$field, part.$field);)*
            }
        }
    };
}

pub(crate) use {adds_up, counters_of, struct_with_counters, with_counters};

with_counters! {
    /// The counters of a load point, besides the counts of each op.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Counter;
}
