package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// operatorRules translate values of the slurm-operator chart.
var operatorRules = []rule{
	dropped("crds", "the CRDs have a chart of their own, slurm-operator-crds"),
	dropped("operator.image", "it is the image of the other operator; set image.repository and image.tag for this one"),
	dropped("webhook.image", "operator and webhook have the same image; set image.repository and image.tag"),
	moved("imagePullPolicy", "image.pullPolicy"),
	moved("operator.imagePullPolicy", "image.pullPolicy"),
	{"webhook.imagePullPolicy", sharedWith("image.pullPolicy")},
	{"operator.enabled", operatorEnabled},
	moved("operator.accountingWorkers", "operator.workersByKind.Accounting"),
	moved("operator.controllerWorkers", "operator.workersByKind.Controller"),
	moved("operator.loginsetWorkers", "operator.workersByKind.LoginSet"),
	moved("operator.nodesetWorkers", "operator.workersByKind.NodeSet"),
	moved("operator.restapiWorkers", "operator.workersByKind.RestApi"),
	moved("operator.tokenWorkers", "operator.workersByKind.Token"),
	dropped("operator.slurmclientWorkers", "connections to Slurm need no workers"),
	dropped("operator.slowStartInitialBatchSize", "pods are always created in batches that start with one"),
	{"operator.logLevel", logLevel},
	{"webhook.logLevel", webhookLogLevel},
	{"operator.leaderElection", leaderElection},
	dropped("webhook.leaderElection", "all webhook pods answer, so none is elected"),
	{"operator.namespaces", namespaces},
	{"webhook.namespaces", webhookNamespaces},
	moved("operator.pdb", "operator.podDisruptionBudget"),
	moved("webhook.pdb", "webhook.podDisruptionBudget"),
	moved("operator.metricsSecure", "metrics.secure"),
	{"webhook.metricsSecure", sharedWith("metrics.secure")},
	{"operator.profile", profile},
	dropped("operator.profileAddr", "it is used only with operator.profile"),
	{"webhook.matchPolicy", matchPolicy},
	dropped("webhook.podsBinding", "bindings of pods are always reviewed; they do not wait for a webhook that is down"),
	{"certManager", certManager},
	{"propagatedNodeConditions", nodeConditions},
}

// sharedWith is for a setting of the webhook that operator and webhook have in common here.
func sharedWith(common string) func(*translation, string) {
	return func(t *translation, path string) {
		value := t.take(path)
		if t.get(common) == nil {
			t.set(common, value)
			t.note(path, "moved to %s", common)
		} else {
			t.note(path, "dropped: %s is for operator and webhook", common)
		}
	}
}

// operatorEnabled translates an operator that is not installed to one without pods.
func operatorEnabled(t *translation, path string) {
	if truth(t.take(path)) {
		t.note(path, "dropped: the chart always has the operator")
		return
	}
	t.set("operator.replicas", 0)
	t.note(path, "translated to operator.replicas: 0")
}

// logLevel translates a log level, which may be a number that grows with the amount of detail.
func logLevel(t *translation, path string) {
	t.set("log.level", level(t.take(path)))
	t.note(path, "moved to log.level")
}

func webhookLogLevel(t *translation, path string) {
	t.set(path, level(t.get(path)))
	sharedWith("log.level")(t, path)
}

func level(given any) string {
	name := strings.ToLower(fmt.Sprint(given))
	if number, err := strconv.ParseFloat(name, 64); err == nil {
		if number > 0 {
			return "debug"
		}
		return "info"
	}
	switch name {
	case "debug", "info", "warn", "error":
		return name
	}
	return "error" // panic, fatal: levels at which the operator logs nothing
}

func leaderElection(t *translation, path string) {
	if enabled, ok := t.get(path).(bool); ok {
		t.set(path+".enabled", enabled)
		t.note(path, "moved to operator.leaderElection.enabled")
	}
}

// namespaces translates a comma-separated list.
func namespaces(t *translation, path string) {
	if chosen := list(text(t.take(path))); len(chosen) > 0 {
		t.set("namespaces", chosen)
		t.note(path, "moved to namespaces, as a list")
	}
}

// webhookNamespaces limits the webhook to namespaces other than those of the operator.
func webhookNamespaces(t *translation, path string) {
	chosen := list(text(t.take(path)))
	if len(chosen) == 0 {
		return
	}
	if common, _ := t.get("namespaces").([]any); slices.Equal(common, chosen) {
		t.note(path, "dropped: namespaces is for operator and webhook")
		return
	}
	only := values{"matchExpressions": []any{
		values{"key": "kubernetes.io/metadata.name", "operator": "In", "values": chosen},
	}}
	for _, webhook := range []string{"webhook.validating", "webhook.mutating"} {
		if t.get(webhook+".namespaceSelector") == nil {
			t.set(webhook+".namespaceSelector", only)
			t.note(path, "moved to %s.namespaceSelector", webhook)
		}
	}
}

// profile translates the address of profiles, which are served only if enabled.
func profile(t *translation, path string) {
	address := text(t.take("operator.profileAddr"))
	if !truth(t.take(path)) {
		t.note(path, "dropped: profiles are not served without operator.pprofAddress")
		return
	}
	if address == "" {
		address = "localhost:6060"
	}
	t.set("operator.pprofAddress", address)
	t.note(path, "moved to operator.pprofAddress, with operator.profileAddr")
}

// matchPolicy translates a setting of all webhooks.
func matchPolicy(t *translation, path string) {
	policy := t.take(path)
	t.set("webhook.validating.matchPolicy", policy)
	t.set("webhook.mutating.matchPolicy", policy)
	t.note(path, "moved to webhook.validating and webhook.mutating")
}

// certManager translates who manages the webhook's certificate.
func certManager(t *translation, path string) {
	settings, _ := t.take(path).(values)
	if enabled, given := settings["enabled"].(bool); given && !enabled {
		t.set("webhook.certificates.managedBy", "webhook")
		t.note(path, "translated to webhook.certificates.managedBy: webhook, which renews its own certificate")
		return
	}
	t.set("webhook.certificates.managedBy", "cert-manager")
	t.note(path, "translated to webhook.certificates.managedBy: cert-manager")
	for _, field := range []string{"duration", "renewBefore"} {
		if value := settings[field]; value != nil {
			t.set("webhook.certificates."+field, value)
			t.note(path+"."+field, "moved to webhook.certificates.%s", field)
		}
	}
	if settings["secretName"] != nil {
		t.note(path+".secretName", "dropped: the chart names the Secret, which only its webhook uses")
	}
}

// nodeConditions says where conditions of Kubernetes nodes are set, which is in the other chart.
func nodeConditions(t *translation, path string) {
	conditions, _ := t.take(path).([]any)
	var rules []string
	for _, condition := range conditions {
		rules = append(rules, fmt.Sprintf("{type: %v}", condition))
	}
	t.note(path, "dropped: it is a setting of NodeSets; to drain nodes with these conditions, set "+
		"nodesetDefaults.drainOnNodeConditions: [%s] in the slurm chart", strings.Join(rules, ", "))
}
