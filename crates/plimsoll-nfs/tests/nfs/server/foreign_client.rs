//! The NFS server tested with the crate `nfs3_client`: every procedure of NFSv3 over TCP, found
//! through the portmapper.

use super::running::{Running, with_portmapper};
use nfs3_client::nfs3_types::nfs3::{
    ACCESS3args, COMMIT3args, CREATE3args, FSINFO3args, FSSTAT3args, GETATTR3args, LINK3args,
    LOOKUP3args, MKDIR3args, MKNOD3args, Nfs3Option, Nfs3Result, PATHCONF3args, READ3args,
    READDIR3args, READDIRPLUS3args, READLINK3args, REMOVE3args, RENAME3args, RMDIR3args,
    SETATTR3args, SYMLINK3args, WRITE3args, createhow3, diropargs3, mknoddata3, nfs_fh3, nfsstat3,
    sattr3, sattrguard3, stable_how, symlinkdata3,
};
use nfs3_client::nfs3_types::rpc::{auth_unix, opaque_auth};
use nfs3_client::nfs3_types::xdr_codec::Opaque;
use nfs3_client::tokio::{TokioConnector, TokioIo};
use nfs3_client::{Nfs3Connection, Nfs3ConnectionBuilder};
use tokio::net::TcpStream;

type Connection = Nfs3Connection<TokioIo<TcpStream>>;

async fn connect(server: &Running) -> Connection {
    let credential = opaque_auth::auth_unix(&auth_unix {
        stamp: 7,
        machinename: Opaque::borrowed(b"judge"),
        uid: 1000,
        gid: 1000,
        gids: vec![],
    });
    Nfs3ConnectionBuilder::new(TokioConnector, "127.0.0.1", "/export")
        .connect_from_privileged_port(false)
        .portmapper_port(server.portmapper.unwrap().port())
        .credential(credential)
        .mount()
        .await
        .unwrap()
}

fn dir_op_args<'a>(dir: &nfs_fh3, name: &'a str) -> diropargs3<'a> {
    diropargs3 { dir: dir.clone(), name: name.as_bytes().into() }
}

/// What came with success.
fn ok<T, E: std::fmt::Debug>(result: Nfs3Result<T, E>) -> T {
    result.expect("it succeeds")
}

fn refusal<T, E>(result: Nfs3Result<T, E>) -> nfsstat3 {
    match result {
        Nfs3Result::Ok(_) => panic!("it succeeds"),
        Nfs3Result::Err((status, _)) => status,
    }
}

async fn content(nfs: &mut Connection, root: &nfs_fh3) -> nfs_fh3 {
    let how = createhow3::GUARDED(sattr3::default());
    let made = nfs.create(&CREATE3args { where_: dir_op_args(root, "file"), how }).await.unwrap();
    let Nfs3Option::Some(file) = ok(made).obj else { panic!("a handle comes with it") };
    let data: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
    let (count, stable) = (data.len() as u32, stable_how::UNSTABLE);
    let bytes = Opaque::borrowed(&data);
    let args = WRITE3args { file: file.clone(), offset: 10, count, stable, data: bytes };
    let written = ok(nfs.write(&args).await.unwrap());
    assert_eq!(written.count, count);
    let args = COMMIT3args { file: file.clone(), offset: 0, count: 0 };
    assert_eq!(ok(nfs.commit(&args).await.unwrap()).verf, written.verf);
    let args = READ3args { file: file.clone(), offset: 10, count };
    let read = ok(nfs.read(&args).await.unwrap());
    assert!(read.data.as_ref() == data && read.eof);
    let looked_up = ok(nfs.lookup(&LOOKUP3args { what: dir_op_args(root, "file") }).await.unwrap());
    assert_eq!(looked_up.object, file);
    file
}

async fn attributes(nfs: &mut Connection, root: &nfs_fh3, file: &nfs_fh3) {
    let size = Nfs3Option::Some(5);
    let new_attributes = sattr3 { size, mode: Nfs3Option::Some(0o600), ..sattr3::default() };
    let (object, guard) = (file.clone(), sattrguard3::None);
    ok(nfs.setattr(&SETATTR3args { object, new_attributes, guard }).await.unwrap());
    let args = GETATTR3args { object: file.clone() };
    let current = ok(nfs.getattr(&args).await.unwrap()).obj_attributes;
    assert_eq!((current.size, current.mode), (5, 0o600));
    let args = ACCESS3args { object: root.clone(), access: 0x1f };
    assert_eq!(ok(nfs.access(&args).await.unwrap()).access, 0x1f);
    let args = FSSTAT3args { fsroot: root.clone() };
    assert!(ok(nfs.fsstat(&args).await.unwrap()).fbytes > 0);
    let args = FSINFO3args { fsroot: root.clone() };
    assert_eq!(ok(nfs.fsinfo(&args).await.unwrap()).rtmax, 1 << 20);
    let args = PATHCONF3args { object: root.clone() };
    assert_eq!(ok(nfs.pathconf(&args).await.unwrap()).name_max, 255);
}

async fn names(nfs: &mut Connection, root: &nfs_fh3, file: &nfs_fh3) {
    let args = MKDIR3args { where_: dir_op_args(root, "directory"), attributes: sattr3::default() };
    let Nfs3Option::Some(directory) = ok(nfs.mkdir(&args).await.unwrap()).obj else {
        panic!("a handle comes with it")
    };
    let symlink = symlinkdata3 {
        symlink_attributes: sattr3::default(),
        symlink_data: b"directory/file".to_vec().into(),
    };
    let args = SYMLINK3args { where_: dir_op_args(root, "link"), symlink };
    let Nfs3Option::Some(link) = ok(nfs.symlink(&args).await.unwrap()).obj else {
        panic!("a handle comes with it")
    };
    let text = ok(nfs.readlink(&READLINK3args { symlink: link }).await.unwrap());
    assert_eq!(text.data.0.as_ref(), b"directory/file");
    let what = mknoddata3::NF3FIFO(sattr3::default());
    ok(nfs.mknod(&MKNOD3args { where_: dir_op_args(root, "pipe"), what }).await.unwrap());
    let args = LINK3args { file: file.clone(), link: dir_op_args(&directory, "second") };
    ok(nfs.link(&args).await.unwrap());
    let args =
        RENAME3args { from: dir_op_args(root, "file"), to: dir_op_args(&directory, "first") };
    ok(nfs.rename(&args).await.unwrap());
    let (cookieverf, count) = (Default::default(), 4096);
    let args = READDIR3args { dir: directory.clone(), cookie: 0, cookieverf, count };
    let listed = ok(nfs.readdir(&args).await.unwrap());
    assert_eq!((listed.reply.entries.0.len(), listed.reply.eof), (4, true));
    let args = READDIRPLUS3args {
        dir: root.clone(),
        cookie: 0,
        cookieverf: Default::default(),
        dircount: 4096,
        maxcount: 32_768,
    };
    let listed = ok(nfs.readdirplus(&args).await.unwrap());
    assert_eq!((listed.reply.entries.0.len(), listed.reply.eof), (5, true));
    let args = RMDIR3args { object: dir_op_args(root, "directory") };
    assert_eq!(refusal(nfs.rmdir(&args).await.unwrap()), nfsstat3::NFS3ERR_NOTEMPTY);
    for name in ["first", "second"] {
        let args = REMOVE3args { object: dir_op_args(&directory, name) };
        ok(nfs.remove(&args).await.unwrap());
    }
    ok(nfs.rmdir(&RMDIR3args { object: dir_op_args(root, "directory") }).await.unwrap());
    let args = GETATTR3args { object: file.clone() };
    assert_eq!(refusal(nfs.getattr(&args).await.unwrap()), nfsstat3::NFS3ERR_STALE);
}

#[test]
fn every_procedure_works_for_a_foreign_client() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = with_portmapper();
    runtime.block_on(async {
        let mut nfs = connect(&server).await;
        nfs.null().await.unwrap();
        let root = nfs.root_nfs_fh3();
        let file = content(&mut nfs, &root).await;
        attributes(&mut nfs, &root, &file).await;
        names(&mut nfs, &root, &file).await;
        nfs.unmount().await.unwrap();
    });
}
