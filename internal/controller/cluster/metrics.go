package cluster

// metrics tells whether slurmctld's own metrics are on: where they are wanted, and Slurm has them. Whoever reaches slurmctld may
// read them, and they name users, so they are never on unasked.
func metrics(scope *scope) bool {
	return scope.controller.Spec.Metrics.Enabled && hasHTTP(scope.slurmVersion)
}

// hasHTTP tells whether the daemons of a release answer HTTP: health, and metrics.
func hasHTTP(release string) bool {
	age, known := compare(release, "25.11")
	return known && age >= 0
}
