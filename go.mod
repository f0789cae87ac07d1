module github.com/slurm-operator/slurm-operator

go 1.26.0
