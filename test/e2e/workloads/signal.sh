#!/bin/bash
# A job that writes a checkpoint when its time is about to end. slurmstepd may report to its standard error that a process
# has exited before the signal.
# Prints: ^checkpoint\n$
cat >job.sbatch <<'EOF'
#!/bin/bash
#SBATCH --time=1
#SBATCH --signal=B:USR1@55
#SBATCH --output=log
#SBATCH --error=errors
trap 'echo checkpoint; exit 0' USR1
sleep 600 &
wait
EOF
sbatch --quiet --wait job.sbatch
cat log
