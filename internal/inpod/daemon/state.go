package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// clusterName is the first file that slurmctld writes into its state directory.
const clusterName = "clustername"

// HasState returns an error unless a directory holds the saved state of a slurmctld. A slurmctld that starts without
// its state knows no job, and has every running job killed.
func HasState(directory string) error {
	_, err := os.Stat(filepath.Join(directory, clusterName))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(
			"%s does not contain the saved state of slurmctld, and a slurmctld that starts without it terminates every job "+
				"that runs: "+
				"put back the volume that has it, or restore a backup as docs/backup.md says", directory)
	}
	if err != nil {
		return fmt.Errorf("reading the saved state of slurmctld: %w", err)
	}
	return nil
}
