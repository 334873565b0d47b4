# Profiles with perf and prints the samples as text. Before it come the lines scope=… (options of
# perf record that say what is sampled) and seconds=… (empty: only try). POSIX shell.
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/sbin:/sbin
[ "$scope" = self ] && scope="-p $$"
command -v perf >/dev/null || {
	echo '=plimsoll absent'
	exit
}
place=$(mktemp -d) || {
	echo '=plimsoll failed'
	echo 'mktemp -d makes no directory'
	exit
}
trap 'rm -rf "$place"' EXIT
trap 'exit 1' HUP INT TERM
perf record -F 99 -g $scope -o "$place/data" -- sleep "${seconds:-0}" >/dev/null 2>"$place/words" || {
	echo '=plimsoll failed'
	cat "$place/words"
	exit
}
echo '=plimsoll samples'
[ -n "$seconds" ] && perf script -i "$place/data" -F comm,pid,tid,event,ip,sym,dso 2>/dev/null
echo '=plimsoll end'
exit
