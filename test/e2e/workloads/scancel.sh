#!/bin/bash
# A job that is cancelled ends at once, and its trap handler runs.
# Prints: (?s)^terminated\nCANCELLED
job=$(sbatch --parsable --output=log --wrap='trap "echo terminated; exit" TERM; echo started; sleep 600 & wait')
until grep --quiet started log 2>/dev/null; do sleep 0.5; done
scancel --full "$job"
until grep terminated log; do sleep 0.5; done
until sacct --jobs="$job" --allocations --noheader --format=state%20 | grep --only-matching CANCELLED; do sleep 0.5; done
