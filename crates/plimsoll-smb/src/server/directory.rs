//! The share on a directory.
//!
//! The crate tells files apart by their inode numbers and forgets a deleted file only after its
//! name is gone. A file system gives a freed number to the next new file, which would then be
//! taken for the deleted one and refused as delete-pending. So a deleted file is held open, and
//! its number with it, until the crate has surely forgotten it.

use std::time::Duration;

use async_trait::async_trait;
use smb_server::{
    BackendCapabilities, Handle, LocalFsBackend, OpenAction, OpenOptions, ShareBackend, SmbPath,
    SmbResult, VolumeInfo,
};

/// How long a deleted file keeps its inode number, and its space.
const HELD: Duration = Duration::from_secs(1);

pub(super) struct DirectoryShare(pub(super) LocalFsBackend);

#[async_trait]
impl ShareBackend for DirectoryShare {
    async fn open(
        &self,
        path: &SmbPath,
        options: OpenOptions,
    ) -> SmbResult<(Box<dyn Handle>, OpenAction)> {
        self.0.open(path, options).await
    }

    async fn unlink(&self, path: &SmbPath) -> SmbResult<()> {
        // What cannot be opened may be deleted all the same.
        let held = self.0.open(path, OpenOptions::default()).await.ok();
        self.0.unlink(path).await?;
        tokio::spawn(async move {
            tokio::time::sleep(HELD).await;
            drop(held);
        });
        Ok(())
    }

    async fn rename(&self, from: &SmbPath, to: &SmbPath, replace: bool) -> SmbResult<()> {
        self.0.rename(from, to, replace).await
    }

    fn capabilities(&self) -> BackendCapabilities {
        self.0.capabilities()
    }

    async fn volume_info(&self) -> SmbResult<VolumeInfo> {
        self.0.volume_info().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smb_server::OpenIntent;

    async fn created(share: &DirectoryShare, name: &str) -> u64 {
        let options = OpenOptions { write: true, intent: OpenIntent::Create, ..Default::default() };
        let (handle, _) = share.open(&name.parse().unwrap(), options).await.unwrap();
        let index = handle.stat().await.unwrap().file_index;
        handle.close().await.unwrap();
        index
    }

    #[tokio::test]
    async fn a_new_file_is_not_taken_for_the_one_just_deleted() {
        let root = tempfile::tempdir().unwrap();
        let share = DirectoryShare(LocalFsBackend::new(root.path()).unwrap());
        let mut seen = Vec::new();
        for number in 0..50 {
            let name = format!("file{number:02}");
            let index = created(&share, &name).await;
            share.unlink(&name.parse().unwrap()).await.unwrap();
            assert!(!seen.contains(&index), "file {number}: {index} again");
            seen.push(index);
        }
    }
}
