//! A file or directory that a client has open.

use std::sync::Arc;

use async_trait::async_trait;
use smb_server::{Bytes, DirEntry, FileInfo, FileTimes, Handle, SmbResult};

use super::node::Node;
use plimsoll_servers::delay::{DelayLaw, Work, now_ns};

/// An open. It keeps a removed file until it is closed.
pub(super) struct Open {
    node: Arc<Node>,
    delay: Option<Arc<DelayLaw>>,
    work: Work,
}

impl Open {
    /// `delay` holds what is read; `work` is done for each read and write.
    pub(super) fn of(node: Arc<Node>, delay: Option<Arc<DelayLaw>>, work: Work) -> Self {
        Self { node, delay, work }
    }
}

#[async_trait]
impl Handle for Open {
    async fn read(&self, offset: u64, len: u32) -> SmbResult<Bytes> {
        let passage = self.delay.as_ref().map(|law| (law, law.arrive()));
        self.work.spend();
        let mut bytes = Vec::new();
        {
            let data = self.node.data()?;
            let there = data.size().saturating_sub(offset).min(u64::from(len));
            bytes.reserve_exact(usize::try_from(there).unwrap_or(0));
            data.read(offset, len, &mut bytes);
        }
        if let Some((law, passage)) = passage {
            law.hold(passage).await;
            // The crate sends the reply as soon as it has it; nobody here sees that.
            law.sent(passage, now_ns());
        }
        Ok(bytes.into())
    }

    async fn write(&self, offset: u64, data: &[u8]) -> SmbResult<u32> {
        self.work.spend();
        self.node.write(offset, data)?;
        Ok(u32::try_from(data.len()).unwrap_or(u32::MAX))
    }

    async fn flush(&self) -> SmbResult<()> {
        Ok(())
    }

    async fn stat(&self) -> SmbResult<FileInfo> {
        Ok(self.node.info())
    }

    async fn set_times(&self, times: FileTimes) -> SmbResult<()> {
        self.node.set_times(&times);
        Ok(())
    }

    async fn set_attributes(&self, attributes: u32) -> SmbResult<()> {
        self.node.set_attributes(attributes)
    }

    async fn truncate(&self, len: u64) -> SmbResult<()> {
        self.node.resize(len)
    }

    async fn list_dir(&self, pattern: Option<&str>) -> SmbResult<Vec<DirEntry>> {
        self.node.list(pattern)
    }

    async fn close(self: Box<Self>) -> SmbResult<()> {
        Ok(())
    }

    async fn link_count(&self) -> SmbResult<u32> {
        Ok(self.node.links())
    }

    async fn dir_is_empty(&self) -> SmbResult<bool> {
        self.node.is_empty()
    }
}
