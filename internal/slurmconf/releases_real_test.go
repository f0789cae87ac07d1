//go:build slurm

package slurmconf_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// TestRealReleasesDifferInHeldBackKeys tests every word in Slurm's libraries as a key: the keys that the
// newest release knows and the oldest does not must be those that are held back.
func TestRealReleasesDifferInHeldBackKeys(t *testing.T) {
	parsers := map[string]parser{}
	var words []string
	for _, version := range images.Versions {
		slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 1})
		parsers[version] = parser{slurm, slurm.Slurmctld.MustRun(t, "cat", "/etc/slurm/slurm.conf")}
		words = append(words, strings.Fields(slurm.Login.MustRun(t, "sh", "-c",
			`find /usr/lib -name libslurmfull.so -exec grep --text --only-matching --extended-regexp '[A-Z][A-Za-z0-9]{2,40}' {} + | sort --unique`))...)
	}
	slices.Sort(words)
	words = slices.DeleteFunc(slices.Compact(words), func(word string) bool {
		return strings.EqualFold(word, "FrontendName") // an old parser exits there
	})
	oldest, newest := parsers[slices.Min(images.Versions)], parsers[slices.Max(images.Versions)]
	var found []string
	for _, record := range []string{"", "NodeName", "NodeSet", "PartitionName", "DownNodes"} {
		known := newest.knows(t, record, words)
		for word := range oldest.knows(t, record, words) {
			delete(known, word)
		}
		for word := range known {
			if strings.ToUpper(word) != word { // keys are case-insensitive
				found = append(found, strings.TrimSpace(record+" "+word))
			}
		}
	}
	slices.Sort(found)
	if listed := slices.Sorted(maps.Keys(slurmconf.NewKeys)); !slices.Equal(found, listed) {
		t.Errorf("the oldest release does not know\n%q, but held back are\n%q", found, listed)
	}
}

// A parser is the parser of one release, with a valid configuration.
type parser struct {
	*slurmnet.Cluster
	configuration string
}

// knows returns the words that are keys of slurm.conf or of one of its records.
func (p parser) knows(t *testing.T, record string, words []string) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	var text strings.Builder
	text.WriteString(p.configuration + "\n")
	for i, word := range words {
		known[word] = true
		if record != "" {
			fmt.Fprintf(&text, "%s=try%d ", record, i)
		}
		text.WriteString(word + "=1\n")
	}
	p.Login.Write(t, "/tmp/slurm.conf", text.String())
	out := p.Login.MustRun(t, "sh", "-c", "SLURM_CONF=/tmp/slurm.conf scontrol show config 2>&1 || true")
	unknown := regexp.MustCompile(`unrecognized key: (\S+)`).FindAllStringSubmatch(out, -1)
	const end = "fatal: Unable to process configuration file" // only after all lines were read
	if !strings.HasSuffix(strings.TrimSpace(out), end) {
		t.Fatalf("scontrol did not read all:\n%s", out[max(0, len(out)-500):])
	}
	for _, match := range unknown {
		delete(known, match[1])
	}
	return known
}
