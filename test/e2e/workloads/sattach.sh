#!/bin/bash
# The output of a running step.
# Prints: hello from a step
job=$(sbatch --parsable --output=/dev/null --wrap='srun bash -c "while sleep 0.5; do echo hello from a step; done"')
until squeue --steps --noheader --jobs="$job" --format=%i | grep --quiet --line-regexp "$job.0"; do sleep 0.5; done
timeout 5 sattach "$job.0" | head --lines=1 || true
scancel "$job"
