#!/bin/bash
# A job that is requeued starts again, and knows that it does.
# Prints: ^started 0\nstarted 1\n$
job=$(sbatch --parsable --requeue --open-mode=append --output=log \
    --wrap='echo started ${SLURM_RESTART_COUNT:-0}; test -n "$SLURM_RESTART_COUNT" || sleep 600')
until grep --quiet 'started 0' log 2>/dev/null; do sleep 0.5; done
scontrol requeue "$job"
until grep --quiet 'started 1' log; do sleep 0.5; done
grep '^started' log # slurmstepd and the shell may report that they were terminated
