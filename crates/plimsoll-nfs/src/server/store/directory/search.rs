//! Looking for what is not where it was seen, or was never seen.

use std::sync::{Arc, PoisonError};

use rustix::fs::{Dir, FileType};

use super::places::{DEPTH_MAX, Found, Places};
use super::status::{self, fault};
use crate::server::store::{Object, Status3, plain_name};

impl Places {
    /// One pass over the directory that the handle names.
    pub(super) fn search(&self, object: Object) -> Result<Found, Status3> {
        let directory = self.directory_of_id(object.parent).map_err(|_| Status3::STALE)?;
        for entry in Dir::read_from(&directory).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = entry.file_name().to_bytes();
            if entry.ino() != object.id || plain_name(name).is_err() {
                continue;
            }
            let status = status::of_name(&directory, name)?.same_mount(&self.root_status)?;
            if (status.id(), status.generation) == (object.id, object.generation) {
                let name: Arc<[u8]> = name.into();
                self.saw(&status, object.parent, Arc::clone(&name))?;
                return Ok(Found { directory, name, status });
            }
        }
        Err(Status3::STALE)
    }

    /// Finds all directories, once in the life of the server; false: that was done before.
    pub(super) fn walk(&self) -> Result<bool, Status3> {
        let mut walked = self.walked.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *walked, true) {
            return Ok(false);
        }
        let mut left = vec![(self.root_id(), 0)];
        while let Some((id, depth)) = left.pop() {
            // What has gone since, or cannot be entered, is not served either.
            let Ok(directory) = self.way_to(id) else { continue };
            for entry in Dir::read_from(&*directory).map_err(fault)? {
                let entry = entry.map_err(fault)?;
                let name = entry.file_name().to_bytes();
                let may_be = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
                if !may_be || plain_name(name).is_err() || depth >= DEPTH_MAX {
                    continue;
                }
                let found = status::of_name(&directory, name);
                let found = found.and_then(|found| found.same_mount(&self.root_status));
                if let Ok(found) = found
                    && found.is_directory()
                {
                    self.saw(&found, id, name.into())?;
                    left.push((found.id(), depth + 1));
                }
            }
        }
        Ok(true)
    }
}
