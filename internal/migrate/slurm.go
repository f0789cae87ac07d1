package migrate

// slurmRules translate values of the slurm chart.
var slurmRules = []rule{
	{"", keepNames},
	{"", keepPlainHTTP},
	dropped("asciiArt", "it only decorates the notes after an installation"),
	{"slurmKey", key("slurmKeyRef")},
	{"jwtKey", key("jwtKeyRef")},
	moved("jwtHs256KeyRef", "jwtKeyRef"),
	{"jwksKeys", jwks},
	{"priorityClass", priorityClass},
	{"configFileRefs", references},
	{"prologScriptRefs", references},
	{"epilogScriptRefs", references},
	{"prologSlurmctldScriptRefs", references},
	{"epilogSlurmctldScriptRefs", references},
	droppedUnless("controller.externalConfig", "controller.external"),
	droppedUnless("accounting.externalConfig", "accounting.external"),
	{"controller.persistence.storageClassName", storageClass},
	{"controller.persistence.existingClaim", withoutEmptyText},
	dropped("restapi.pdb", "the operator creates a PodDisruptionBudget for two replicas or more"),
	dropped("accounting.initconf", "pods of slurmdbd have no such container"),
	dropped("slurm-exporter", "it is a chart of its own; controller.metrics.enabled serves metrics of slurmctld"),
	{"partitions", disabledPartitions},
	dropped("nodesetDefaults.taintKubeNodes", noTaints),
	dropped("nodesets.*.taintKubeNodes", noTaints),
	dropped("nodesetDefaults.useResourceLimits", alwaysLimits),
	dropped("nodesets.*.useResourceLimits", alwaysLimits),
	{"vendor.nvidia.dcgm", dcgm},
	dropped("vendor.google", "a recipe for one vendor's machines; put its parts into slurmd and podSpec of a NodeSet"),
	{"", ownEntry("nodesets", "worker")},
	{"", ownEntry("loginsets", "login")},
}

const (
	noTaints     = "the operator does not taint Kubernetes nodes; taint them with kubectl, and tolerate that in podSpec"
	alwaysLimits = "Slurm nodes always have the CPUs and the memory of the limits of their pods"
)

// keepNames names objects as the other chart does, so that they replace those that exist.
func keepNames(t *translation, _ string) {
	if text(t.get("fullnameOverride")) == "" && text(t.get("nameOverride")) == "" {
		t.set("nameOverride", string(Slurm))
		t.note("nameOverride", "added, so that names are the same if the release name does not contain %s", Slurm)
	}
}

// keepPlainHTTP lets clients of slurmrestd work as before.
func keepPlainHTTP(t *translation, _ string) {
	if t.get("restapi.tls.plainHTTP") == nil {
		t.set("restapi.tls.plainHTTP", "Allowed")
		t.note("restapi.tls.plainHTTP", "added, because clients of slurmrestd use http://, where their tokens can be read "+
			"on the network; change them to https://, then remove it")
	}
}

// key translates the settings of a key's Secret.
func key(to string) func(*translation, string) {
	return func(t *translation, path string) {
		reference := t.take(path + ".secretRef")
		created := t.take(path + ".create")
		if reference != nil {
			t.set(to, reference)
			t.note(path+".secretRef", "moved to %s", to)
			if truth(created) {
				t.note(path+".create", "dropped: the chart does not create that Secret; keep the existing one, or remove "+
					"%s, and the operator generates a key", to)
			}
		} else if created != nil {
			t.note(path+".create", "dropped: the operator generates a key if it does not exist")
		}
		if t.take(path+".annotations") != nil {
			t.note(path+".annotations", "dropped: the operator creates the Secret, which survives the release; "+
				"annotate it with kubectl")
		}
	}
}

// jwks translates the keys of other issuers of tokens, which slurmctld and slurmdbd verify.
func jwks(t *translation, path string) {
	reference := t.get(path + ".configMapRef")
	enabled := truth(t.get(path + ".enabled"))
	t.take(path)
	switch {
	case !enabled:
		t.note(path, "dropped: it is not enabled")
	case reference == nil:
		t.note(path, "dropped: it names no ConfigMap; set controller.jwksKeyRef")
	default:
		t.set("controller.jwksKeyRef", reference)
		t.note(path, "moved to controller.jwksKeyRef")
		if truth(t.get("accounting.enabled")) {
			t.set("accounting.jwksKeyRef", reference)
			t.note(path, "copied to accounting.jwksKeyRef")
		}
	}
}

// priorityClass translates the priority class of all pods, and its creation.
func priorityClass(t *translation, path string) {
	class, _ := t.take(path).(values)
	if !truth(class["enabled"]) {
		t.note(path, "dropped: it is not enabled")
		return
	}
	defaults := values{
		"name": "slurm-system-critical", "value": 1000000000, "preemptionPolicy": "PreemptLowerPriority",
	}
	for name, value := range defaults {
		if class[name] == nil {
			class[name] = value
		}
	}
	t.set("priorityClassName", class["name"])
	t.note(path, "moved to priorityClassName")
	if !truth(class["create"]) {
		return
	}
	object := values{
		"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": values{"name": class["name"]},
		"value": class["value"], "preemptionPolicy": class["preemptionPolicy"],
	}
	if description := text(class["description"]); description != "" {
		object["description"] = description
	}
	t.add("extraObjects", object)
	t.note(path+".create", "moved to extraObjects")
}

// references moves references to ConfigMaps to the Controller.
func references(t *translation, path string) {
	items, _ := t.take(path).([]any)
	t.add("controller."+path, items...)
	t.note(path, "moved to controller.%s", path)
}

// storageClass translates the dash that stands for no StorageClass.
func storageClass(t *translation, path string) {
	if t.get(path) == "-" {
		t.set(path, "")
		t.note(path, "changed to the empty string, which means the same")
	}
}

// withoutEmptyText removes an empty string, which means the same as none.
func withoutEmptyText(t *translation, path string) {
	if t.get(path) == "" {
		t.take(path)
	}
}

// disabledPartitions disables partitions that the other chart leaves out unless they are enabled.
func disabledPartitions(t *translation, path string) {
	for _, name := range names(t.get(path)) {
		enabled := path + "." + name + ".enabled"
		if t.get(enabled) == nil {
			t.set(enabled, false)
			t.note(enabled, "added: the other chart left this partition out, because it did not enable it")
		}
	}
}

// ownEntry disables an entry of this chart's defaults that the other chart does not have.
func ownEntry(entries, name string) func(*translation, string) {
	return func(t *translation, _ string) {
		path := entries + "." + name
		if t.get(path) == nil {
			t.set(path+".enabled", false)
			t.note(path, "disabled: it is a default of this chart only")
		}
	}
}
