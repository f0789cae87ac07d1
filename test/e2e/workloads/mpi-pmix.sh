#!/bin/bash
# OpenMPI with PMIx, on three nodes. Debian's Slurm 26.05 has no PMIx plugin.
# Releases: 24.11
# Prints: (?m)^world of 3 processes, latency [0-9.]+ us, bandwidth [0-9.]+ MB/s$
mpicc.openmpi -O2 -o pingpong ~/pingpong.c
srun --nodes=3 --ntasks-per-node=1 --mpi=pmix ./pingpong
