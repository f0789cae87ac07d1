#!/bin/bash
# The memory that a running step uses.
# Prints: ^[\d.]+[KM]?\n$
job=$(sbatch --parsable --output=/dev/null --wrap='srun sleep 600')
until sstat --noheader --jobs="$job.0" --format=maxrss 2>/dev/null | grep --extended-regexp --only-matching '[1-9][0-9.]*[KM]?'; do sleep 0.5; done
scancel "$job"
