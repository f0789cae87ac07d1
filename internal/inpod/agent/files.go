package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// files are the mounted files that slurmctld reads.
type files struct {
	config, pidFile string

	last observation // avoids reading unchanged files
}

// Observe checks for changes. The kubelet replaces all files at once, by changing the link ..data.
func (f *files) Observe() observation {
	conf := filepath.Join(f.config, "slurm.conf")
	data, _ := os.Readlink(filepath.Join(f.config, "..data")) // missing if the directory is not a volume
	seen := observation{Files: data + " " + stamp(conf), Slurmctld: stamp(f.pidFile), Marker: f.last.Marker}
	if seen.Files != f.last.Files {
		seen.Marker = markerOf(conf)
	}
	f.last = seen
	return seen
}

// Key returns slurmctld's JWT key, which the kubelet may have replaced.
func (f *files) Key() ([]byte, error) {
	return os.ReadFile(filepath.Join(f.config, filepath.Base(slurmconf.JWTKeyFile)))
}

// stamp returns a value that changes when a file is written or replaced.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d bytes of %d", info.Size(), info.ModTime().UnixNano())
}

// markerOf returns the marker in a slurm.conf. It is empty if there is none, or if the key next to the file is not yet
// the one that the file was written for: the kubelet updates Secrets and ConfigMaps independently.
func markerOf(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	parameters := parametersIn(string(content))
	if digest := slurmconf.KeyDigestOf(parameters); digest != "" {
		key, err := os.ReadFile(filepath.Join(filepath.Dir(path), filepath.Base(slurmconf.JWTKeyFile)))
		if err != nil || slurmconf.KeyDigest(key) != digest {
			return ""
		}
	}
	return slurmconf.HashOf(parameters)
}

// markerIn returns the marker in a text such as the output of `scontrol show config`.
func markerIn(text string) string { return slurmconf.HashOf(parametersIn(text)) }

// parametersIn returns the value of SlurmctldParameters in a text.
func parametersIn(text string) string {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, "=")
		if strings.EqualFold(strings.TrimSpace(key), "SlurmctldParameters") {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
