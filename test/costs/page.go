package costs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Nothing is the record of a change that costs nothing.
const Nothing = "nothing"

// base is a slurm.conf like that in which the settings were changed.
const base = `SelectType=select/cons_tres
SlurmdSpoolDir=/var/spool/slurmd
ProctrackType=proctrack/linuxproc
JobAcctGatherType=jobacct_gather/linux
NodeName=node-[0-1] CPUs=2 RealMemory=500
PartitionName=all Nodes=ALL Default=YES
`

// Treatment returns what the operator does about a change that costs something; empty if nothing.
func Treatment(setting, cost string) (string, error) {
	document, err := slurmconf.Parse(base)
	if err != nil {
		return "", err
	}
	changed, err := With(document, setting)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(cost, "back: ") {
		document, changed = changed, document
	}
	never := func(string) bool { return false }
	_, keys := slurmconf.KeepForJobs(changed, document, nil)
	_, nodes := slurmconf.KeepNodes(changed, document, never, never)
	_, partitions := slurmconf.KeepPartitions(changed, document, never)
	switch {
	case len(keys) > 0:
		return "waits until no job runs", nil
	case len(nodes.Kept) > 0:
		return "waits until the node is drained and empty, or no job runs", nil
	case len(partitions) > 0:
		return "the partition stays until it is empty", nil
	case strings.Contains(cost, "exits"), strings.Contains(cost, "refuses"):
		return "a validation run refuses it", nil
	}
	return "", nil
}

// Page returns the page of the documentation about the costs.
func Page(versions []string) (string, error) {
	settings, err := Settings()
	if err != nil {
		return "", err
	}
	recorded := map[string]map[string]string{}
	for _, version := range versions {
		if recorded[version], err = Recorded(version); err != nil {
			return "", err
		}
	}
	var rows strings.Builder
	var free []string
	for _, setting := range settings {
		cells, treatment := []string{"`" + setting + "`"}, ""
		for _, version := range versions {
			cost := recorded[version][setting]
			cells = append(cells, cost)
			if cost != Nothing && treatment == "" {
				if treatment, err = Treatment(setting, cost); err != nil {
					return "", err
				}
			}
		}
		if !slices.ContainsFunc(cells[1:], func(cost string) bool { return cost != Nothing }) {
			free = append(free, cells[0])
			continue
		}
		fmt.Fprintf(&rows, "| %s |\n", strings.Join(append(cells, treatment), " | "))
	}
	return fmt.Sprintf(`# What changes of slurm.conf cost running jobs

Each setting was added on real Slurm while a job ran on two nodes, of which it had used one, and removed ("back") below
another job, unless no job starts with it. "Nothing" means that the jobs used their second node afterwards and completed
without a restart, a pending job was still pending, and all nodes were idle in the end. [What the operator
does](configuration.md#what-a-change-costs-running-jobs) about the others. Recorded by
%s, so do not edit this page.

| setting | %s | the operator |
|---|%s---|
%s
These cost nothing in any of these releases: %s.
`, "`make test-costs COSTS_FLAGS=-update`", strings.Join(versions, " | "), strings.Repeat("---|", len(versions)), rows.String(),
		strings.Join(free, ",\n")), nil
}
