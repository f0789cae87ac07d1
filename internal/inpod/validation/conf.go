package validation

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// pairs yields the keys and values of a line of a configuration file.
func pairs(line string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) == 2 && strings.EqualFold(fields[0], "Include") {
			yield(fields[0], fields[1])
			return
		}
		for field := range strings.FieldsSeq(line) {
			if key, value, ok := strings.Cut(field, "="); ok && !yield(key, strings.Trim(value, `"`)) {
				return
			}
		}
	}
}

// settings returns the values of a whole file, for keys that occur once, by key in lower case.
func settings(conf string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(conf) {
		for key, value := range pairs(line) {
			found[strings.ToLower(key)] = value
		}
	}
	return found
}

// cgroupPlugins are Slurm's plugins.
var cgroupPlugins = []string{"autodetect", "cgroup/v1", "cgroup/v2", "disabled"}

// checkCgroup returns what is wrong with a cgroup.conf that slurmctld silently accepts, but with which every slurmd
// exits. slurmctld refuses unknown keys, but never loads the plugin.
func checkCgroup(conf string) string {
	plugin, given := settings(conf)["cgroupplugin"]
	if !given || slices.Contains(cgroupPlugins, strings.ToLower(plugin)) {
		return ""
	}
	return fmt.Sprintf("%s\nthere is no such plugin: use one of %s",
		locate([]string{"CgroupPlugin " + plugin}, map[string]string{"cgroup.conf": conf}), strings.Join(cgroupPlugins,
			", "))
}
