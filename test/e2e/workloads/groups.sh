#!/bin/bash
# A partition for the members of a group.
# User: root
# Prints: ^alice physics\n(?s).*bob: .*group not permitted
runuser --login alice --command='srun --partition=physics bash -c "echo alice \$SLURM_JOB_PARTITION"'
echo "bob: $(runuser --login bob --command='srun --partition=physics true' 2>&1)"
