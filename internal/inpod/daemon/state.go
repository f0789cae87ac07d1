package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// clusterName is the file that a slurmctld writes first of all into the directory where it saves its state.
const clusterName = "clustername"

// HasState holds that a slurmctld has saved its state in a directory. One that starts without the state that there was knows no job, and
// has every job ended that its nodes run.
func HasState(directory string) error {
	_, err := os.Stat(filepath.Join(directory, clusterName))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not hold the state that slurmctld had, and a slurmctld that starts without it ends every job that runs: "+
			"put back the volume that has it, or restore a backup as docs/backup.md says", directory)
	}
	if err != nil {
		return fmt.Errorf("looking for the state that slurmctld had: %w", err)
	}
	return nil
}
