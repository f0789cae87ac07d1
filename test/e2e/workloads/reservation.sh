#!/bin/bash
# A node that an admin reserves for one user.
# User: root
# Prints: (?m)^alice\nbob: .* Access denied to requested reservation$
scontrol --quiet create reservation=course users=alice nodes=worker-2 starttime=now duration=10 flags=ignore_jobs
trap 'scontrol delete reservation=course' EXIT
runuser --login alice --command='srun --reservation=course id --user --name'
echo "bob: $(runuser --login bob --command='srun --reservation=course true' 2>&1 | head --lines=1)"
