# Answers a line on standard input with a line, or with the texts of files, until there are no more
# lines. POSIX shell; writes nothing, installs nothing, and is gone with its input.
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/sbin:/sbin
ports=
held=
roots=
members=
threads=
groups=
children=
looked=
shaped=
all=
turn=0

# The processes that listen on the ports, and all below them. First the holders of the sockets:
holders() {
	[ -n "$ports" ] || return
	sockets=$(cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 2>/dev/null |
		awk -v ports=" $ports " '$4 == "0A" || $4 == "07" {
			n = split($2, part, ":")
			if (index(ports, " " part[n] " ")) printf " %s", $10
		}')
	[ -n "$sockets" ] || return
	ls -l /proc/[0-9]*/fd 2>/dev/null | awk -v sockets="$sockets " '
		/^\/proc\// { split($0, part, "/"); pid = part[3] }
		/ socket:\[/ {
			inode = $NF
			gsub(/[^0-9]/, "", inode)
			# The first process only keeps sockets for others.
			if (pid > 1 && index(sockets, " " inode " ")) printf " %s", pid
		}'
}

# Roots are those of $1 whose parent is none of them. Prints roots, members, and members whose
# threads are read one by one while they are not too many.
tree() {
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v held=" $1 " '
		$1 ~ /^[0-9]+$/ {
			pid = $1
			sub(/^.*\) /, "")
			parent[pid] = $2
			threads[pid] = $18
		}
		END {
			for (pid in parent) {
				top = pid
				for (i = 0; i < 64 && (top in parent) && !index(held, " " top " "); i++)
					top = parent[top]
				if (!index(held, " " top " ")) continue
				if (top == pid && !index(held, " " parent[pid] " ")) roots = roots " " pid
				if (++n > 256) continue
				members = members " " pid
				if ((all += threads[pid]) <= 512) some = some " " pid
			}
			print roots "|" members "|" some
		}'
}

look() {
	[ -n "$held" ] || return
	found=$(tree "$held")
	roots=${found%%|*}
	found=${found#*|}
	members=${found%%|*}
	threads=${found#*|}
	groups=
	for pid in $roots; do
		group_files "$pid"
	done
	looked=yes
}

# Files of the control groups of a process, from its own up to the mount, of both versions.
group_files() {
	[ -r "/proc/$1/cgroup" ] || return
	while IFS=: read -r _ controllers path; do
		mount=/sys/fs/cgroup${controllers:+/$controllers}
		[ -d "$mount" ] || continue
		case $controllers in
		'') wanted="cpu.stat cpu.max memory.current memory.max memory.events memory.stat io.stat io.max" ;;
		*cpu*) wanted="cpu.stat cpu.cfs_quota_us cpu.cfs_period_us" ;;
		memory) wanted="memory.usage_in_bytes memory.limit_in_bytes memory.failcnt memory.stat" ;;
		blkio) wanted="blkio.throttle.*" ;;
		*) continue ;;
		esac
		while :; do
			for file in $wanted; do
				groups="$groups $mount$path/$file"
			done
			case $path in
			/?*) path=${path%/*} ;;
			*) break ;;
			esac
		done
	done <"/proc/$1/cgroup"
}

# The kernel looks through a table of all sockets for those of a port: milliseconds, where there are
# not too many.
few_sockets() {
	inuse=9999 tw=0
	while read -r what _ inuse _ _ _ tw _; do
		[ "$what" = TCP: ] && break
	done </proc/net/sockstat
	[ $((inuse + tw)) -lt 20000 ]
}

# Those of the server's ports in the namespace of the process $1, in the form in which head puts
# files.
sockets() {
	for table in "/proc/$1/net/tcp" "/proc/$1/net/tcp6"; do
		awk -v ports=" $ports " -v table="$table" '
			NR == 1 { printf "\n==> %s <==\n%s\n", table, $0 }
			NR > 1 {
				n = split($2, part, ":")
				if (index(ports, " " part[n] " ")) print
			}' "$table" 2>/dev/null
	done
}

# Have the roots other children than at the last question?
forked() {
	before=$children
	children=
	for pid in $roots; do
		line=
		read -r line 2>/dev/null <"/proc/$pid/task/$pid/children"
		children="$children $line"
	done
	[ "$children" != "$before" ]
}

alive() {
	[ -n "$roots" ] || return 1
	for pid in $roots; do
		[ -d "/proc/$pid" ] || return 1
	done
}

scan() {
	alive || held=$(holders)
	look
	# Rates that interfaces are shaped to: the kernel reports them over netlink only, which tc reads.
	shaped=$(tc qdisc show 2>/dev/null | grep '^qdisc tbf')
}

# Which cores each thread may use: a line of a long file, in the form in which head puts files.
affinities() {
	files=
	for pid in $threads; do
		files="$files /proc/$pid/task/*/status"
	done
	[ -n "$files" ] || return
	grep '^Cpus_allowed_list:' $files /dev/null 2>/dev/null | awk '{
		end = index($0, ":")
		printf "\n==> %s <==\n%s\n", substr($0, 1, end - 1), substr($0, end + 1)
	}'
}

# A line for each process, and at the end one that is none where there are too many.
processes() {
	printf '\n==> /plimsoll/processes <==\n'
	cat /proc/[0-9]*/stat 2>/dev/null |
		awk '(bytes += length($0)) > 6000000 { print "cut"; exit } { print }'
}

sample() {
	files=
	[ -n "$all" ] && files="/proc/interrupts /proc/softirqs"
	for pid in $roots; do
		files="$files /proc/$pid/cgroup /proc/$pid/net/dev"
	done
	for pid in $members; do
		files="$files /proc/$pid/stat /proc/$pid/status /proc/$pid/task/$pid/children"
	done
	for pid in $threads; do
		files="$files /proc/$pid/task/*/stat /proc/$pid/task/*/schedstat /proc/$pid/task/*/wchan"
	done
	printf '=plimsoll begin %s\n=plimsoll servers %s\n' "$1" "$roots"
	# One program for all files. It puts a line with its name before each.
	head -n 100000 /proc/stat /proc/loadavg /proc/meminfo /proc/vmstat /proc/net/snmp \
		/proc/net/snmp6 /proc/net/netstat /proc/net/softnet_stat /proc/net/dev /proc/diskstats \
		/proc/pressure/cpu /proc/pressure/io /proc/pressure/memory /proc/net/rpc/nfsd "/proc/$$/stat" "/proc/$PPID/stat" \
		/proc/self/mountinfo /sys/block/*/size /sys/class/net/*/speed $groups $files 2>/dev/null
	[ -n "$all" ] && processes
	all=
	[ -n "$looked" ] && affinities
	if [ $((turn % 3)) -eq 0 ] && few_sockets; then
		for pid in $roots; do
			sockets "$pid"
		done
	fi
	looked=
	[ -n "$shaped" ] && printf '\n==> /plimsoll/shaping <==\n%s\n' "$shaped"
	printf '\n=plimsoll end %s\n' "$1"
}

# The last line of this script calls it: a shell may have read ahead in what it executes, and must
# not find a question there.
answer() {
	printf '=plimsoll hello 1 %s %s %s\n' "$$" "$PPID" "$(uname -srm)"
	while read -r word number; do
		case $word in
		describe)
			printf '=plimsoll begin %s\n' "$number"
			head -n 100000 /proc/net/fib_trie /proc/net/if_inet6 /proc/self/mountinfo \
				/proc/diskstats /sys/block/*/size /sys/block/*/*/partition \
				/sys/block/*/slaves/*/size 2>/dev/null
			printf '\n=plimsoll end %s\n' "$number"
			;;
		ping) printf '=plimsoll pong %s %s\n' "$number" "$(date +%s%N)" ;;
		scan)
			[ "$ports" = "$number" ] || { roots= members= threads= held=; }
			ports=$number
			scan
			;;
		all) all=yes ;;
		sample)
			sample "$number"
			turn=$((turn + 1))
			# After the answer: nobody waits for it.
			if forked || [ $((turn % 10)) -eq 0 ]; then look; fi
			;;
		esac
	done
}

answer
