package validation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// otherPlugins are the keys for plugins that slurmctld does not load, with the prefixes of their files: without its
// plugin slurmd exits, and for certgen each command of the users. The value none means none of the plugins only for
// those with optional.
var otherPlugins = []struct {
	key, prefix string
	optional    bool
}{
	{"ProctrackType", "proctrack_", false}, {"TaskPlugin", "task_", true}, {"CertgenType", "certgen_", false},
	{"JobContainerType", "job_container_", true}, {"NamespaceType", "namespace_", true},
}

// checkSlurmd returns what is wrong with a slurm.conf that slurmctld accepts, but with which every slurmd exits, and
// all jobs with it. The configuration is as slurmctld understands it.
func checkSlurmd(config string, files map[string]string) string {
	values := running(config)
	if user := values["SlurmdUser"]; user != "" && user != "root(0)" {
		return locate([]string{"SlurmdUser " + user}, files) + "\nslurmd runs as root: remove SlurmdUser"
	}
	for _, plugin := range otherPlugins {
		for name := range strings.SplitSeq(values[plugin.key], ",") {
			name = name[strings.LastIndex(name, "/")+1:]
			if name == "" || name == "(null)" || name == "none" && plugin.optional {
				continue
			}
			if found := plugins(values["PluginDir"], plugin.prefix); len(found) > 0 && !slices.Contains(found, name) {
				return fmt.Sprintf("%s\n%s: there is no plugin %s in the image: use one of %s",
					locate([]string{plugin.key + " " + name}, files), plugin.key, name, strings.Join(found, ", "))
			}
		}
	}
	return ""
}

// running returns the values that `scontrol show config` prints, by key.
func running(config string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(config) {
		if key, value, found := strings.Cut(line, "="); found {
			values[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return values
}

// plugins returns the names of the plugins of a type in Slurm's directories of plugins.
func plugins(directories, prefix string) []string {
	var found []string
	for directory := range strings.SplitSeq(directories, ":") {
		entries, _ := os.ReadDir(directory) // without one there are no plugins
		for _, entry := range entries {
			if name, isPlugin := strings.CutPrefix(strings.TrimSuffix(entry.Name(), ".so"), prefix); isPlugin &&
				filepath.Ext(entry.Name()) == ".so" {
				found = append(found, name)
			}
		}
	}
	return found
}
