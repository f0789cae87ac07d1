#!/bin/bash
# A job that an admin suspends does not run until it is resumed.
# User: root
# Prints: ^SUSPENDED\nCOMPLETED\n$
job=$(runuser --login alice --command="sbatch --parsable --output=/dev/null --wrap='sleep 5'")
until squeue --noheader --jobs="$job" --format=%T | grep --quiet RUNNING; do sleep 0.5; done
scontrol suspend "$job"
squeue --noheader --jobs="$job" --format=%T
scontrol resume "$job"
until sacct --jobs="$job" --allocations --noheader --format=state%20 | grep --only-matching COMPLETED; do sleep 0.5; done
