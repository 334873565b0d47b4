/*
 * The rival of `cargo lab bench nfs`: libnfs's raw asynchronous interface, one connection with a
 * fixed number of calls outstanding.
 *
 *   libnfs_async URL getattr|read OUTSTANDING SECONDS LIST
 *
 * LIST names files below the export, one per line. Each GETATTR asks for a random one of them, each
 * READ for a random whole block of 8 KiB of one. Prints the calls answered and the time they took.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>

enum { BLOCK_BYTES = 8192, FILES_MAX = 65536 };

/* What nfs_get_fh() answers with; libnfs 4 keeps it out of its headers. */
struct nfs_fh {
	int len;
	char *val;
};

struct file {
	nfs_fh3 handle;
	uint64_t blocks;
};

static struct rpc_context *rpc;
static struct file files[FILES_MAX];
static uint64_t file_count;
static int is_read;
static int stopping;
static int in_flight;
static uint64_t answered;
static uint64_t state = 88172645463325252ULL;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why ? why : "no reason given");
	exit(1);
}

static uint64_t below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void issue(void);

static void on_reply(struct rpc_context *context, int status, void *data, void *unused)
{
	(void)context;
	(void)unused;
	in_flight--;
	if (status != RPC_STATUS_SUCCESS)
		fail("call", rpc_get_error(rpc));
	if (is_read) {
		READ3res *res = data;
		if (res->status != NFS3_OK || res->READ3res_u.resok.count != BLOCK_BYTES)
			fail("READ", "not a whole block");
	} else {
		GETATTR3res *res = data;
		if (res->status != NFS3_OK)
			fail("GETATTR", "refused");
	}
	answered++;
	if (!stopping)
		issue();
}

static void issue(void)
{
	struct file *file = &files[below(file_count)];
	int failed;

	if (is_read) {
		READ3args args;
		args.file = file->handle;
		args.offset = below(file->blocks) * BLOCK_BYTES;
		args.count = BLOCK_BYTES;
		failed = rpc_nfs3_read_async(rpc, on_reply, &args, NULL);
	} else {
		GETATTR3args args;
		args.object = file->handle;
		failed = rpc_nfs3_getattr_async(rpc, on_reply, &args, NULL);
	}
	if (failed)
		fail("issue", rpc_get_error(rpc));
	in_flight++;
}

/* Calls are waited for as libnfs's own examples do it. */
static void turn(void)
{
	struct pollfd watched = { .fd = rpc_get_fd(rpc), .events = rpc_which_events(rpc) };

	if (poll(&watched, 1, 5000) <= 0)
		fail("poll", "no answer for 5 s");
	if (rpc_service(rpc, watched.revents) < 0)
		fail("service", rpc_get_error(rpc));
}

static void open_files(struct nfs_context *nfs, const char *list)
{
	FILE *names = fopen(list, "r");
	char path[1024];

	if (!names)
		fail(list, "cannot read it");
	while (file_count < FILES_MAX && fgets(path, sizeof path, names)) {
		struct nfs_stat_64 attributes;
		struct nfsfh *open_file;
		const struct nfs_fh *handle;
		struct file *file = &files[file_count];

		path[strcspn(path, "\n")] = 0;
		if (nfs_open(nfs, path, O_RDONLY, &open_file) < 0)
			fail(path, nfs_get_error(nfs));
		if (nfs_fstat64(nfs, open_file, &attributes) < 0)
			fail(path, nfs_get_error(nfs));
		handle = nfs_get_fh(open_file);
		file->handle.data.data_len = handle->len;
		file->handle.data.data_val = malloc(handle->len);
		if (!file->handle.data.data_val)
			fail(path, "no memory");
		memcpy(file->handle.data.data_val, handle->val, handle->len);
		file->blocks = attributes.nfs_size / BLOCK_BYTES;
		nfs_close(nfs, open_file);
		if (!is_read || file->blocks > 0)
			file_count++;
	}
	fclose(names);
	if (file_count == 0)
		fail(list, "names no file that can be used");
}

int main(int argc, char **argv)
{
	struct nfs_context *nfs = nfs_init_context();
	struct nfs_url *url;
	double start, end;
	int outstanding;

	if (argc != 6 || !nfs)
		fail("usage", "libnfs_async URL getattr|read OUTSTANDING SECONDS LIST");
	is_read = strcmp(argv[2], "read") == 0;
	url = nfs_parse_url_dir(nfs, argv[1]);
	if (!url)
		fail(argv[1], nfs_get_error(nfs));
	if (nfs_mount(nfs, url->server, url->path) != 0)
		fail(argv[1], nfs_get_error(nfs));
	open_files(nfs, argv[5]);
	rpc = nfs_get_rpc_context(nfs);
	start = now();
	end = start + atof(argv[4]);
	for (outstanding = atoi(argv[3]); outstanding > 0; outstanding--)
		issue();
	while (in_flight > 0) {
		turn();
		stopping = now() >= end;
	}
	printf("requests=%llu seconds=%.6f\n", (unsigned long long)answered, now() - start);
	return 0;
}
