package clusterconf

import (
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// CleanFile is the epilog that deletes what ended jobs left in shared memory.
const CleanFile = "clean-shared-memory.sh"

// AddClean adds the epilog after those of the user, if each job has an extern step: without it, a job that has no step
// at the moment cannot be seen, and its files would be deleted. The same holds if slurmd's sockets are in a directory
// whose name the operator does not know.
func AddClean(document slurmconf.Document, files Files) slurmconf.Document {
	spool, _ := document.Get("SlurmdSpoolDir")
	if slurmconf.HasExternStep(document) && spool != "" && !strings.ContainsAny(spool, `%'`) {
		files[CleanFile] = cleanScript(spool)
		document.AddParameter("Epilog", CleanFile)
	}
	return document
}

// cleanScript returns the epilog. It does nothing on nodes outside of the operator's pods. If an epilog fails, Slurm
// drains the node, so this one never does.
func cleanScript(spool string) string {
	return `#!/bin/sh
[ -x ` + naming.HelperPath + ` ] || exit 0
[ -n "$(ls -A /dev/shm)" ] || exit 0
` + naming.HelperPath + ` clean --spool='` + spool + `' --node="$SLURMD_NODENAME" "$SLURM_JOB_ID"
exit 0
`
}
