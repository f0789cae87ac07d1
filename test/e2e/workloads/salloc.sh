#!/bin/bash
# An interactive allocation of two nodes.
# Prints: ^worker-\d\nworker-\d\n$
salloc --quiet --nodes=2 srun hostname
