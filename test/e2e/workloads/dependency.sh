#!/bin/bash
# Jobs that wait for others: the first fails, so only one of the next two runs.
# Prints: ^first\nafter a failure\n$
first=$(sbatch --parsable --open-mode=append --output=log --wrap='echo first; exit 1')
sbatch --quiet --kill-on-invalid-dep=yes --open-mode=append --output=log --dependency="afterok:$first" --wrap='echo after success'
sbatch --quiet --wait --open-mode=append --output=log --dependency="afternotok:$first" --wrap='echo after a failure'
cat log
