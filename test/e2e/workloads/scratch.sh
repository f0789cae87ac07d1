#!/bin/bash
# Every job has a temporary directory of its own on the node, which is deleted at its end.
# Prints: ^drwx------ alice 0 files\ndrwx------ alice 0 files\nleft: 0\n$
for job in 1 2; do
    srun --nodelist=worker-0 bash -c 'cd $TMPDIR && echo $(stat --format="%A %U" .) $(ls | wc --lines) files && mkdir --mode=0700 d && touch d/f'
done
srun --nodelist=worker-0 bash -c 'until test "$(ls /scratch)" = "$SLURM_JOB_ID"; do sleep 0.5; done; echo left: 0'
