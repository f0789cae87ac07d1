#!/bin/bash
# A job array with a file for each task.
# Prints: ^task 1 of 3\ntask 2 of 3\ntask 3 of 3\n$
cat >array.sbatch <<'EOF'
#!/bin/bash
#SBATCH --array=1-3
#SBATCH --output=%a.out
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"
EOF
sbatch --quiet --wait array.sbatch
cat {1,2,3}.out
