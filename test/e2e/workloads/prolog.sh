#!/bin/bash
# The site's prolog prepares a directory on the node, and its epilog removes it.
# Prints: ^prepared for alice\ncleaned up\n$
node=$(sbatch --parsable --wait --output=log --wrap='cat /var/log/slurm/prolog-$SLURM_JOB_ID; hostname')
sed --quiet 1p log
host=$(sed --quiet 2p log)
srun --nodelist="$host" bash -c "until test ! -e /var/log/slurm/prolog-$node; do sleep 0.5; done; echo cleaned up"
