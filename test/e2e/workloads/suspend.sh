#!/bin/bash
# A job that an admin suspends does not run until it is resumed. Slurm calls a job running before it is launched, and one
# that is suspended and resumed in between stays stopped.
# User: root
# Prints: ^SUSPENDED\nCOMPLETED\n$
job=$(runuser --login alice --command="sbatch --parsable --output=/dev/null --wrap='touch suspend-started; sleep 5'")
until runuser --login alice --command="test -f suspend-started"; do sleep 0.5; done
scontrol suspend "$job"
squeue --noheader --jobs="$job" --format=%T
scontrol resume "$job"
until sacct --jobs="$job" --allocations --noheader --format=state%20 | grep --only-matching COMPLETED; do sleep 0.5; done
