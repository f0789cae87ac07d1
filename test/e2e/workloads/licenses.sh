#!/bin/bash
# Two jobs share one licence: the second waits for the first.
# Prints: ^Licenses\nfirst\nsecond\n$
first=$(sbatch --parsable --licenses=matlab:1 --open-mode=append --output=log --wrap='echo first; until test -e go; do sleep 0.5; done')
until grep --quiet first log 2>/dev/null; do sleep 0.5; done
second=$(sbatch --parsable --licenses=matlab:1 --open-mode=append --output=log --wrap='echo second')
until squeue --noheader --jobs="$second" --format=%r | grep Licenses; do sleep 0.5; done
touch go
until grep --quiet second log; do sleep 0.5; done
cat log
