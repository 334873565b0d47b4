//! Why a server refuses clients, as text: the reason, and what to do next.

use plimsoll_model::units::Bytes;

use super::wire::{Refusal, VERSION, Welcome};

/// Why a client that requested a segment of `segment_bytes` cannot accept this welcome; `None` if
/// it can.
pub(crate) fn message(welcome: &Welcome, segment_bytes: u64) -> Option<String> {
    let segment = Bytes(segment_bytes);
    Some(match welcome.refusal {
        Some(Refusal::Version) => format!(
            "the server speaks version {} of the transaction protocol and this program version \
             {VERSION}; use a server and a program of the same version",
            welcome.version
        ),
        Some(Refusal::SegmentSize) => format!(
            "the server allows no data segment of {segment}, or has that client's open with \
             another size; start it with a larger --segment-max, lower workload.segment_mib, or \
             wait for the other run's end"
        ),
        Some(Refusal::NoRoom) => format!(
            "the server has no room for a data segment of {segment}; free some, or lower \
             workload.segment_mib"
        ),
        Some(Refusal::Full) => "the server takes no more connections; start it with a larger \
                                --connections-max (one more than clients: the run's own question \
                                for figures takes one), or ask for fewer clients"
            .to_owned(),
        Some(Refusal::Storage) => {
            "the server cannot use the file of the data segment; its own log says why".to_owned()
        }
        Some(Refusal::Ending) => "the server is about to end; start it again".to_owned(),
        None if segment_bytes > 0 && welcome.calibrated => {
            "the server is calibrated and holds no data segments; ask it for client/server \
             transactions only"
                .to_owned()
        }
        None if segment_bytes != welcome.segment_bytes => format!(
            "the server gives a data segment of {} instead of {segment}; see what it says of \
             itself",
            Bytes(welcome.segment_bytes)
        ),
        None => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_server_is_told_of_the_connection_that_is_nobodys() {
        let text = message(&Welcome::refused(Refusal::Full), 0).unwrap();
        assert!(text.contains("one more than clients"), "{text}");
    }
}
