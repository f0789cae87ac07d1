#!/bin/bash
# A job that has its node for itself.
# Prints: ^OverSubscribe=(NO|EXCLUSIVE)\n$
sbatch --quiet --exclusive --wait --output=log --wrap='scontrol show job $SLURM_JOB_ID'
grep --only-matching 'OverSubscribe=[A-Z]*' log
