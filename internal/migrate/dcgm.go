package migrate

import (
	"fmt"
	"slices"
)

// The scripts that tell the DCGM exporter which jobs use a GPU: a file for each GPU, with a line for each job.
const (
	dcgmProlog = `#!/bin/sh
for gpu in $(echo "${SLURM_JOB_GPUS:-}" | tr , ' '); do
  echo "$SLURM_JOB_ID" >>"%[1]s/$gpu"
done
`
	dcgmEpilog = `#!/bin/sh
for gpu in $(echo "${SLURM_JOB_GPUS:-}" | tr , ' '); do
  [ ! -e "%[1]s/$gpu" ] || sed -i "/^$SLURM_JOB_ID\$/d" "%[1]s/$gpu"
done
`
	dcgmVolume = "dcgm-job-mapping"
)

// dcgm translates the mapping of GPUs to jobs: scripts, and a directory of the Kubernetes node in NodeSets with GPUs.
func dcgm(t *translation, path string) {
	settings, _ := t.take(path).(values)
	if !truth(settings["enabled"]) {
		t.note(path, "dropped: it is not enabled")
		return
	}
	directory, priority := "/var/lib/dcgm-exporter/job-mapping", "90"
	if given := text(settings["jobMappingDir"]); given != "" {
		directory = given
	}
	if given := settings["scriptPriority"]; given != nil {
		priority = fmt.Sprint(given)
	}
	t.set("prologScripts", with(t.get("prologScripts"), priority+"-dcgm.sh", fmt.Sprintf(dcgmProlog, directory)))
	t.set("epilogScripts", with(t.get("epilogScripts"), priority+"-dcgm.sh", fmt.Sprintf(dcgmEpilog, directory)))
	t.note(path, "moved to prologScripts and epilogScripts")
	for _, name := range names(t.get("nodesets")) {
		entry := "nodesets." + name
		limits, _ := t.inherited(entry, "slurmd.resources.limits").(values)
		if limits["nvidia.com/gpu"] == nil {
			continue
		}
		volumes, _ := t.inherited(entry, "podSpec.volumes").([]any)
		t.set(entry+".podSpec.volumes", append(slices.Clip(volumes), values{
			"name": dcgmVolume, "hostPath": values{"path": directory, "type": "DirectoryOrCreate"},
		}))
		mounts, _ := t.inherited(entry, "slurmd.volumeMounts").([]any)
		t.set(entry+".slurmd.volumeMounts", append(slices.Clip(mounts), values{
			"name": dcgmVolume, "mountPath": directory,
		}))
		t.note(entry, "mounts the directory of %s", path)
	}
}

// inherited returns a value of a NodeSet, or that of the defaults.
func (t *translation) inherited(entry, field string) any {
	if own := t.get(entry + "." + field); own != nil {
		return own
	}
	return t.get("nodesetDefaults." + field)
}

// with returns a mapping with one more value.
func with(mapping any, name string, value any) values {
	result, ok := mapping.(values)
	if !ok {
		result = values{}
	}
	result[name] = value
	return result
}
