#!/bin/bash
# MPICH with Slurm's own protocol, on three nodes.
# Prints: (?m)^world of 3 processes, latency [0-9.]+ us, bandwidth [0-9.]+ MB/s$
mpicc.mpich -O2 -o pingpong ~/pingpong.c
srun --nodes=3 --ntasks-per-node=1 --mpi=pmi2 ./pingpong
