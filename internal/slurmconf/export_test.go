package slurmconf

// NewKeys are what the tests on real Slurm compare with what it knows.
var NewKeys = newKeys
