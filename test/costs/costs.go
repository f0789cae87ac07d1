// Package costs records what changes of slurm.conf cost running jobs, as real Slurm shows it.
package costs

import (
	"fmt"
	"os"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Settings returns the settings that are changed: each is one or more pairs, or a line of a record.
func Settings() ([]string, error) {
	text, err := os.ReadFile("testdata/settings.txt")
	return strings.Split(strings.TrimSpace(string(text)), "\n"), err
}

// Recorded returns what the settings cost in a version of Slurm.
func Recorded(version string) (map[string]string, error) {
	text, err := os.ReadFile("testdata/" + version + ".txt")
	if err != nil {
		return nil, err
	}
	recorded := map[string]string{}
	for line := range strings.Lines(string(text)) {
		setting, cost, _ := strings.Cut(strings.TrimSpace(line), "\t")
		recorded[setting] = cost
	}
	return recorded, nil
}

// With returns a slurm.conf with a setting. A line of a record replaces the one about all nodes or partitions; the
// other nodes keep their line.
func With(base slurmconf.Document, setting string) (slurmconf.Document, error) {
	if !strings.HasPrefix(setting, "NodeName=") && !strings.HasPrefix(setting, "PartitionName=") {
		for pair := range strings.FieldsSeq(setting) {
			key, value, _ := strings.Cut(pair, "=")
			base.Set(key, value)
		}
		return base, nil
	}
	key, _, _ := strings.Cut(setting, "=")
	var text strings.Builder
	for line := range strings.Lines(base.Render()) {
		if !strings.HasPrefix(line, key+"=") {
			text.WriteString(line)
			continue
		}
		if key == "NodeName" {
			text.WriteString(strings.Replace(line, "node-[0-1]", "node-0", 1))
		}
		fmt.Fprintln(&text, setting)
	}
	return slurmconf.Parse(text.String())
}
