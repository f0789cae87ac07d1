#!/bin/bash
# A job of an urgent partition takes the nodes of a job that can be requeued.
# Prints: ^low 0\nurgent\nlow 1\n$
low=$(sbatch --parsable --partition=low --requeue --nodes=3 --exclusive --open-mode=append --output=log \
    --wrap='echo low ${SLURM_RESTART_COUNT:-0}; test -n "$SLURM_RESTART_COUNT" || sleep 600')
until grep --quiet 'low 0' log 2>/dev/null; do sleep 0.5; done
sbatch --quiet --wait --partition=urgent --nodes=3 --exclusive --open-mode=append --output=log --wrap='echo urgent'
until grep --quiet 'low 1' log; do sleep 0.5; done
grep --invert-match CANCELLED log
