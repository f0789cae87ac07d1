// Package slurm holds the scripts of Slurm's images that the operator runs in images of others, too.
package slurm

import _ "embed" // for the script

// Login is the script that runs a login node. Its arguments are those of sackd.
//
//go:embed login
var Login string
