#!/bin/bash
# A shell with a terminal on a node.
# Prints: /dev/pts/\d+\s+worker-\d
script --quiet --return --command 'srun --pty bash -c "tty; hostname"' /dev/null
