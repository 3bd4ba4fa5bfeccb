#!/bin/sh
# build.sh OUTPUT PACKAGE runs go build and reports on stderr what it does: how many
# packages are compiled, the last of them, and the time. On a terminal this is one line,
# else a line at the beginning, every 15 seconds and at the end. Packages in the build
# cache are not compiled again and do not count. GO names the go command.
set -u
output=$1
package=$2
start=$(date +%s)
terminal=
[ -t 2 ] && terminal=yes
width=$(stty size <&2 2>/dev/null | cut -d' ' -f2)

report() { # the line on a terminal, cut to its width
	printf '\r\033[K%.*s' "$((${width:-80} - 1))" "$1" >&2
}

if [ -n "$terminal" ]; then
	report "building $output"
else
	echo "building $output (only what the build cache does not have)" >&2
fi

# The last line of the pipe is the status of go build: sh has no pipefail.
{
	${GO:-go} build -v -o "$output" "$package" 2>&1
	echo "status $?"
} | {
	count=0
	status=1
	next=15
	while IFS= read -r line; do
		now=$(($(date +%s) - start))
		case $line in
		"status "*)
			status=${line#status }
			;;
		*" "* | "#"* | "	"*) # a message, and no package
			[ -n "$terminal" ] && printf '\r\033[K' >&2
			printf '%s\n' "$line" >&2
			;;
		*)
			count=$((count + 1))
			if [ -n "$terminal" ]; then
				report "building $output: $now s, packages: $count, $line"
			elif [ "$now" -ge "$next" ]; then
				echo "building $output: $now s, packages compiled: $count" >&2
				next=$((now + 15))
			fi
			;;
		esac
	done
	[ -n "$terminal" ] && printf '\r\033[K' >&2
	now=$(($(date +%s) - start))
	if [ "$status" -ne 0 ]; then
		echo "go build failed after $now s" >&2
	elif [ "$count" -eq 0 ]; then
		echo "$output was up to date" >&2
	else
		echo "built $output in $now s, packages compiled: $count" >&2
	fi
	exit "$status"
}
