/*
 * Judges an NFSv2 server with libnfs's raw interface: MOUNT version 1 and every procedure of NFS
 * version 2 that does something, over TCP or UDP.
 *
 *   libnfs_v2 PORT tcp|udp
 *
 * Prints "judged" and exits with 0 when every answer meant what RFC 1094 says.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

/* In the library, not in its headers. */
struct rpc_context *rpc_init_udp_context(void);
int rpc_bind_udp(struct rpc_context *rpc, char *address, int port);
int rpc_set_udp_destination(struct rpc_context *rpc, char *address, int port, int is_broadcast);

enum { UNSET = -1, NOENT = 2, EXIST = 17, NOTEMPTY = 66, STALE = 70 };

static struct rpc_context *rpc;
static const char *doing;
static int is_done;
static fhandle2 root, file, dir;

static void fail(const char *why)
{
	fprintf(stderr, "%s: %s\n", doing, why ? why : "no reason given");
	exit(1);
}

static void check(int holds, const char *what)
{
	if (!holds)
		fail(what);
}

/* Waits until the callback of the call just made has run. */
static void await(int queued)
{
	if (queued)
		fail(rpc_get_error(rpc));
	for (is_done = 0; !is_done;) {
		struct pollfd watched = { .fd = rpc_get_fd(rpc), .events = rpc_which_events(rpc) };

		if (poll(&watched, 1, 5000) <= 0)
			fail("no answer for 5 s");
		if (rpc_service(rpc, watched.revents) < 0)
			fail(rpc_get_error(rpc));
	}
}

static void *ended(int status, void *data)
{
	is_done = 1;
	if (status != RPC_STATUS_SUCCESS)
		fail("the call failed");
	return data;
}

static void on_connected(struct rpc_context *c, int status, void *data, void *unused)
{
	(void)c, (void)unused;
	ended(status, data);
}

static void on_mount(struct rpc_context *c, int status, void *data, void *unused)
{
	mountres1 *res = ended(status, data);
	(void)c, (void)unused;
	check(res->fhs_status == MNT1_OK, "refused");
	memcpy(root, res->mountres1_u.mountinfo.fhandle, sizeof root);
}

/* Answers that are a status only: `expected` says which. */
static void on_status(struct rpc_context *c, int status, void *data, void *expected)
{
	nfsstat3 *got = ended(status, data);
	char words[64];
	(void)c;
	snprintf(words, sizeof words, "status %d", (int)*got);
	check((intptr_t)*got == (intptr_t)expected, words);
}

static void on_create(struct rpc_context *c, int status, void *data, void *into)
{
	CREATE2res *res = ended(status, data);
	(void)c;
	check(res->status == 0, "refused");
	memcpy(into, res->CREATE2res_u.resok.file, sizeof(fhandle2));
}

static void on_mkdir(struct rpc_context *c, int status, void *data, void *into)
{
	MKDIR2res *res = ended(status, data);
	(void)c;
	check(res->status == 0, "refused");
	check(res->MKDIR2res_u.resok.attributes.type == NF2DIR, "not a directory");
	memcpy(into, res->MKDIR2res_u.resok.file, sizeof(fhandle2));
}

static void on_lookup(struct rpc_context *c, int status, void *data, void *expected)
{
	LOOKUP2res *res = ended(status, data);
	(void)c;
	check(res->status == 0, "refused");
	check(!memcmp(res->LOOKUP2res_u.resok.file, expected, sizeof(fhandle2)), "another handle");
}

static void on_link(struct rpc_context *c, int status, void *data, void *into)
{
	LOOKUP2res *res = ended(status, data);
	(void)c;
	check(res->status == 0, "refused");
	check(res->LOOKUP2res_u.resok.attributes.type == NF2LNK, "not a symbolic link");
	memcpy(into, res->LOOKUP2res_u.resok.file, sizeof(fhandle2));
}

static void on_size(struct rpc_context *c, int status, void *data, void *expected)
{
	GETATTR2res *res = ended(status, data);
	(void)c;
	check(res->status == 0, "refused");
	check(res->GETATTR2res_u.resok.attributes.type == NF2REG, "not a file");
	check(res->GETATTR2res_u.resok.attributes.size == (intptr_t)expected, "another size");
}

static void on_read(struct rpc_context *c, int status, void *data, void *expected)
{
	READ2res *res = ended(status, data);
	nfsdata2 *got = &res->READ2res_u.resok.data;
	(void)c;
	check(res->status == 0, "refused");
	check(got->nfsdata2_len == strlen(expected), "another length");
	check(!memcmp(got->nfsdata2_val, expected, got->nfsdata2_len), "other bytes");
}

static void on_readlink(struct rpc_context *c, int status, void *data, void *expected)
{
	READLINK2res *res = ended(status, data);
	(void)c;
	check(res->status == 0, "refused");
	check(!strcmp(res->READLINK2res_u.resok.data, expected), "another text");
}

static void on_statfs(struct rpc_context *c, int status, void *data, void *unused)
{
	STATFS2res *res = ended(status, data);
	(void)c, (void)unused;
	check(res->status == 0, "refused");
	check(res->STATFS2res_u.resok.tsize >= 1024 && res->STATFS2res_u.resok.blocks > 0, "no sizes");
}

static void on_readdir(struct rpc_context *c, int status, void *data, void *unused)
{
	READDIR2res *res = ended(status, data);
	int found = 0;
	entry2 *entry;
	(void)c, (void)unused;
	check(res->status == 0, "refused");
	for (entry = res->READDIR2res_u.resok.entries; entry; entry = entry->nextentry)
		found += !strcmp(entry->name, "renamed") || !strcmp(entry->name, "link") ||
			 !strcmp(entry->name, "hard");
	check(found == 3, "not the three names that are there");
}

static diropargs2 name_in(const fhandle2 parent, char *name)
{
	diropargs2 place;
	memcpy(place.dir, parent, sizeof(fhandle2));
	place.name = name;
	return place;
}

static sattr2 mode(unsigned bits)
{
	nfstime3 unset = { UNSET, UNSET };
	sattr2 set = { bits, UNSET, UNSET, UNSET, unset, unset };
	return set;
}

static void expect_missing(char *name)
{
	LOOKUP2args args = { name_in(dir, name) };
	await(rpc_nfs2_lookup_async(rpc, on_status, &args, (void *)NOENT));
}

static void make_and_write(void)
{
	MKDIR2args make = { name_in(root, "judged"), mode(0755) };
	CREATE2args create;
	WRITE2args write = { .totalcount = 5, .data = { 5, "hello" } };
	GETATTR2args ask;

	doing = "MKDIR";
	await(rpc_nfs2_mkdir_async(rpc, on_mkdir, &make, dir));
	doing = "MKDIR again";
	await(rpc_nfs2_mkdir_async(rpc, on_status, &make, (void *)EXIST));
	doing = "CREATE";
	create.where = name_in(dir, "file");
	create.attributes = mode(0644);
	await(rpc_nfs2_create_async(rpc, on_create, &create, file));
	doing = "WRITE";
	memcpy(write.file, file, sizeof file);
	await(rpc_nfs2_write_async(rpc, on_size, &write, (void *)5));
	doing = "GETATTR";
	memcpy(ask.fhandle, file, sizeof file);
	await(rpc_nfs2_getattr_async(rpc, on_size, &ask, (void *)5));
}

static void read_back(void)
{
	LOOKUP2args lookup = { name_in(dir, "file") };
	READ2args read = { .offset = 1, .count = 100 };
	SETATTR2args cut;
	STATFS2args room;

	doing = "LOOKUP";
	await(rpc_nfs2_lookup_async(rpc, on_lookup, &lookup, file));
	doing = "LOOKUP of a missing name";
	expect_missing("missing");
	doing = "READ";
	memcpy(read.file, file, sizeof file);
	await(rpc_nfs2_read_async(rpc, on_read, &read, "ello"));
	doing = "SETATTR";
	memcpy(cut.fhandle, file, sizeof file);
	cut.attributes = mode(UNSET);
	cut.attributes.size = 2;
	await(rpc_nfs2_setattr_async(rpc, on_size, &cut, (void *)2));
	doing = "STATFS";
	memcpy(room.dir, dir, sizeof dir);
	await(rpc_nfs2_statfs_async(rpc, on_statfs, &room, NULL));
}

static void rename_and_link(void)
{
	RENAME2args rename = { name_in(dir, "file"), name_in(dir, "renamed") };
	LINK2args link;
	SYMLINK2args symlink = { name_in(dir, "link"), "to/nowhere", mode(0777) };
	LOOKUP2args find = { name_in(dir, "link") };
	READLINK2args text;
	READDIR2args list = { .count = 4096 };

	doing = "RENAME";
	await(rpc_nfs2_rename_async(rpc, on_status, &rename, 0));
	expect_missing("file");
	doing = "LINK";
	memcpy(link.from, file, sizeof file);
	link.to = name_in(dir, "hard");
	await(rpc_nfs2_link_async(rpc, on_status, &link, 0));
	doing = "SYMLINK";
	await(rpc_nfs2_symlink_async(rpc, on_status, &symlink, 0));
	doing = "LOOKUP of a link";
	await(rpc_nfs2_lookup_async(rpc, on_link, &find, text.file));
	doing = "READLINK";
	await(rpc_nfs2_readlink_async(rpc, on_readlink, &text, "to/nowhere"));
	doing = "READDIR";
	memcpy(list.dir, dir, sizeof dir);
	await(rpc_nfs2_readdir_async(rpc, on_readdir, &list, NULL));
}

static void remove_all(void)
{
	char *names[] = { "renamed", "hard", "link" };
	RMDIR2args gone = { name_in(root, "judged") };
	GETATTR2args stale;
	unsigned i;

	doing = "RMDIR of a directory with names in it";
	await(rpc_nfs2_rmdir_async(rpc, on_status, &gone, (void *)NOTEMPTY));
	for (i = 0; i < 3; i++) {
		REMOVE2args name = { name_in(dir, names[i]) };
		doing = "REMOVE";
		await(rpc_nfs2_remove_async(rpc, on_status, &name, 0));
		expect_missing(names[i]);
	}
	doing = "RMDIR";
	await(rpc_nfs2_rmdir_async(rpc, on_status, &gone, 0));
	doing = "GETATTR of a removed file";
	memcpy(stale.fhandle, file, sizeof file);
	await(rpc_nfs2_getattr_async(rpc, on_status, &stale, (void *)STALE));
}

static void reach(int port, int is_udp, int program, int version)
{
	doing = "reach the server";
	if (rpc)
		rpc_destroy_context(rpc);
	rpc = is_udp ? rpc_init_udp_context() : rpc_init_context();
	check(rpc != NULL, "no memory");
	if (is_udp) {
		check(!rpc_bind_udp(rpc, "127.0.0.1", 0), rpc_get_error(rpc));
		check(!rpc_set_udp_destination(rpc, "127.0.0.1", port, 0), rpc_get_error(rpc));
	} else {
		await(rpc_connect_port_async(rpc, "127.0.0.1", port, program, version, on_connected,
					     NULL));
	}
}

int main(int count, char **arguments)
{
	int port = count == 3 ? atoi(arguments[1]) : 0;
	int is_udp = count == 3 && !strcmp(arguments[2], "udp");

	if (!port) {
		fprintf(stderr, "libnfs_v2 PORT tcp|udp\n");
		return 2;
	}
	reach(port, is_udp, MOUNT_PROGRAM, 1);
	doing = "MNT";
	await(rpc_mount1_mnt_async(rpc, on_mount, "/export", NULL));
	reach(port, is_udp, NFS_PROGRAM, 2);
	make_and_write();
	read_back();
	rename_and_link();
	remove_all();
	rpc_destroy_context(rpc);
	puts("judged");
	return 0;
}
