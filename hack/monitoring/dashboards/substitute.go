package dashboards

import "strings"

// substitute replaces Grafana's variables by examples, so that a query can be parsed.
func substitute(expr string) string {
	return strings.NewReplacer(
		"$__rate_interval", "5m", "$__range", "6h", "$namespace", "slurm", "$controller", "slurm", "$nodeset", ".*",
	).Replace(expr)
}
