package cluster

// metrics reports whether slurmctld's own metrics are on: if the spec enables them and the release has them. They are
// off by default, because they contain user names and every client that reaches slurmctld can read them.
func metrics(scope *scope) bool {
	return scope.controller.Spec.Metrics.Enabled && hasHTTP(scope.slurmVersion)
}

// hasHTTP reports whether the daemons of a release serve health and metrics over HTTP.
func hasHTTP(release string) bool {
	age, known := compare(release, "25.11")
	return known && age >= 0
}
