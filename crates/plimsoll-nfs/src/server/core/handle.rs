//! File handles: 32 bytes in both versions, which is all that NFSv2 has room for.
//!
//! instance (8) · id (8) · generation (8) · nothing (8). The instance tells starts of the server
//! apart, the generation objects that had the same id. Nothing in a handle is secret: whoever invents one
//! reaches only what the store would find for him anyway.

use crate::server::store::{Object, Status3};

/// Bytes of a handle.
pub(super) const BYTES: usize = 32;

pub(super) fn write(instance: u64, object: Object) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let words = [instance, object.id, object.generation];
    for (part, word) in bytes.chunks_exact_mut(8).zip(words) {
        part.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

pub(super) fn read(instance: u64, handle: &[u8]) -> Result<Object, Status3> {
    let handle: &[u8; BYTES] = handle.try_into().map_err(|_| Status3::BADHANDLE)?;
    let (words, _) = handle.as_chunks::<8>();
    let [found, id, generation] = [0, 1, 2].map(|at| u64::from_be_bytes(words[at]));
    if found != instance {
        return Err(Status3::STALE);
    }
    Ok(Object { id, generation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_and_a_foreign_one_does_not() {
        let object = Object { id: 7, generation: 8 };
        let handle = write(3, object);
        assert_eq!(read(3, &handle), Ok(object));
        assert_eq!(read(4, &handle), Err(Status3::STALE));
        for wrong in [0, 31, 33, 64] {
            assert_eq!(read(3, &vec![0; wrong]), Err(Status3::BADHANDLE));
        }
    }
}
