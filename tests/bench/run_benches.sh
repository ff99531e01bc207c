#!/bin/sh
# Runs the programs given, one after the other; stops at one that fails.
set -e
for bench; do
	echo "== $(basename "$bench")"
	"$bench"
	echo
done
