// Package confinement tests on a machine with cgroup v2 that no job can take another's memory, cores, devices or life.
package confinement
