#!/bin/bash
# The site's job_submit.lua refuses jobs with a certain name, and gives others a comment.
# Prints: ^(?s)sbatch: error: .*jobs named forbidden are not allowed.*Comment=seen by Lua *\n$
sbatch --job-name=forbidden --wrap=true 2>&1 || true
sbatch --quiet --wait --output=log --wrap='scontrol show job $SLURM_JOB_ID'
grep --only-matching 'Comment=.*' log
