package slurmconf

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// GresFile is the name of the file about generic resources, which slurmctld sends to every slurmd.
	GresFile = "gres.conf"
	// PodGresFile is the name, in Directory, of the file about the devices of one pod. It is of another content in every
	// slurmd pod, and empty in slurmctld's. IncludePodGres in GresFile draws it in.
	PodGresFile = "gres-pod.conf"
	// IncludePodGres is a GresFile that leaves it to the pods to say which devices they have. A daemon that does not find
	// what it includes gives up after a minute, so PodGresFile has to be in every pod, if only as an empty file.
	IncludePodGres = include + " " + Directory + "/" + PodGresFile + "\n"
)

// ParseNode reads the parameters of a node, such as "Weight=10 Gres=gpu:4". They may stand on several lines.
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

// RenderNode writes the parameters of a node for slurmd's option --conf. Slurm reads it as it does a line of a file, but
// knows neither comments nor backslashes there.
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
