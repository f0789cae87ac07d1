package slurmconf

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// GresFile is the name of the GRES configuration that slurmctld sends to every slurmd.
	GresFile = "gres.conf"
	// PodGresFile is the name, in Directory, of the file about the devices of one pod. Its content differs between
	// slurmd pods, and it is empty for slurmctld. IncludePodGres in GresFile includes it.
	PodGresFile = "gres-pod.conf"
	// IncludePodGres is a GresFile that lets the pods describe their devices. A daemon that does not find an included
	// file gives up after a minute, so every pod needs PodGresFile, even if empty.
	IncludePodGres = include + " " + Directory + "/" + PodGresFile + "\n"
)

// ParseNode parses the parameters of a Slurm node, such as "Weight=10 Gres=gpu:4". They may span several lines.
func ParseNode(config string) ([]Pair, error) {
	var joined strings.Builder
	for rest := config; rest != ""; {
		var line string
		line, rest, _ = cutLine(rest)
		joined.WriteString(unescape(line) + " ")
	}
	if strings.Contains(joined.String(), "\x00") {
		return nil, errors.New("it has a NUL character; remove it")
	}
	pairs, fault := parsePairs(joined.String())
	if fault != nil {
		return nil, fmt.Errorf("%s: %s; %s", shorten(joined.String()), fault.reason, fault.remedy)
	}
	return pairs, nil
}

// RenderNode renders the parameters of a Slurm node for slurmd's option --conf. Slurm parses it like a line of a file,
// but without comments and backslashes.
func RenderNode(pairs []Pair) string {
	words := make([]string, len(pairs))
	for i, pair := range pairs {
		words[i] = pair.Key + "=" + pair.Value
		if pair.Value == "" || strings.ContainsAny(pair.Value, spaces) {
			words[i] = pair.Key + `="` + pair.Value + `"`
		}
	}
	return strings.Join(words, " ")
}
