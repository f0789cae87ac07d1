package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// files are those that slurmctld reads, as they are mounted.
type files struct {
	config, pidFile string

	last observation // saves reading files that have not changed
}

// Look sees whether anything has changed. The kubelet replaces all files at once, by pointing the link ..data elsewhere.
func (f *files) Look() observation {
	conf := filepath.Join(f.config, "slurm.conf")
	data, _ := os.Readlink(filepath.Join(f.config, "..data")) // there is none when the directory is no volume
	seen := observation{Files: data + " " + stamp(conf), Slurmctld: stamp(f.pidFile), Marker: f.last.Marker}
	if seen.Files != f.last.Files {
		seen.Marker = markerOf(conf)
	}
	f.last = seen
	return seen
}

// stamp changes when a file is written or replaced.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d bytes of %d", info.Size(), info.ModTime().UnixNano())
}

// markerOf is the marker in a slurm.conf, empty when it has none, or when the key beside it is not yet the one that the
// file was written for: the kubelet learns of Secrets and ConfigMaps on different ways.
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

// markerIn finds the marker among the settings of a text, such as the output of `scontrol show config`.
func markerIn(text string) string { return slurmconf.HashOf(parametersIn(text)) }

// parametersIn is the value of SlurmctldParameters among the settings of a text.
func parametersIn(text string) string {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, "=")
		if strings.EqualFold(strings.TrimSpace(key), "SlurmctldParameters") {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
