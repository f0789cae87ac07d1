#!/bin/bash
# A program that is copied to the disks of all nodes of a job.
# Prints: ^a copy on worker-\d\na copy on worker-\d\n$
cat >program <<'EOF'
#!/bin/bash
echo a copy on $(hostname)
EOF
chmod 755 program
salloc --quiet --nodes=2 bash -c 'sbcast program /tmp/$SLURM_JOB_ID && srun /tmp/$SLURM_JOB_ID'
