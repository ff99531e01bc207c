#!/bin/sh
# Runs the programs given, one after the other; stops at one that fails.
set -e
# Perfetto's programs, where they are: some benchmarks measure beside them.
TRACED=$("$(dirname "$0")/../peers/fetch" --folder)/perfetto/run
export TRACED
for bench; do
	echo "== $(basename "$bench")"
	"$bench"
	echo
done
