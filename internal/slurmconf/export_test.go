package slurmconf

// NewKeys is for the tests that compare it with real Slurm.
var NewKeys = newKeys
