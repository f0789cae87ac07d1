#!/bin/bash
# A heterogeneous job: one task on one node and two on two others.
# Prints: ^one\ntwo\ntwo\n$
srun --nodes=1 --ntasks=1 echo one : --nodes=2 --ntasks=2 echo two | sort
