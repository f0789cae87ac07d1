// Package config explains the configuration of a Slurm cluster: who set each line of slurm.conf, what differs between
// the configuration in force, the next one and the one that slurmctld runs with, and what a change of the objects would
// do.
//
// Build uses the operator's own builder (clusterconf and slurmconf). What the operator knows and the objects do not
// say, such as a key's digest, is taken from the configuration in force.
package config

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// An Input is what a configuration is made from.
type Input struct {
	Controller *slinkyv1beta1.Controller
	// Accounting is nil if there is none.
	Accounting *slinkyv1beta1.Accounting
	NodeSets   []slinkyv1beta1.NodeSet
	// ConfigMaps are those that the Controller refers to, by name. One that does not exist is missing.
	ConfigMaps map[string]*corev1.ConfigMap
	// InForce are the files that slurmctld runs or starts with; nil if there are none yet.
	InForce map[string]string
}

// document returns the slurm.conf in force.
func (in *Input) document() slurmconf.Document {
	document, _ := slurmconf.Parse(in.InForce[slurmconf.FileName]) // the operator wrote it
	return document
}

// A Line is a line of a configuration file, and who set it.
type Line struct {
	Text   string `json:"text"`
	Source string `json:"source,omitempty"`
}

// A Result is the answer of the command.
type Result struct {
	Controller string `json:"controller"`
	File       string `json:"file"`
	// Source is where the whole file comes from; empty for slurm.conf, whose lines have several sources.
	Source string `json:"source,omitempty"`
	Hash   string `json:"hash,omitempty"`
	Lines  []Line `json:"lines"`
	// Files are the other files of the configuration, and where they come from.
	Files []File `json:"files,omitempty"`
}

// A File is a configuration file, and where it comes from.
type File struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

const (
	byOperator = "the operator"
	byDefault  = "the operator's default"
	kept       = "kept from an earlier configuration"
)

// Explain returns a file of the configuration in force, with who set each line.
func Explain(in *Input, file string) (Result, error) {
	content, found := in.InForce[file]
	if !found {
		return Result{}, fmt.Errorf("the configuration has no file %s; it has %s", file,
			strings.Join(slices.Sorted(maps.Keys(in.InForce)), ", "))
	}
	result := Result{Controller: in.Controller.Name, File: file, Lines: []Line{}}
	parameters, _ := in.document().Get("SlurmctldParameters")
	result.Hash = slurmconf.HashOf(parameters)
	for _, name := range slices.Sorted(maps.Keys(in.InForce)) {
		if name != file {
			result.Files = append(result.Files, File{name, in.sourceOfFile(name)})
		}
	}
	if file != slurmconf.FileName {
		result.Source = in.sourceOfFile(file)
		for line := range strings.Lines(content) {
			result.Lines = append(result.Lines, Line{Text: strings.TrimRight(line, "\n")})
		}
		return result, nil
	}
	explain := newExplainer(in)
	for entry := range in.document().All() {
		result.Lines = append(result.Lines, Line{rendered(entry), explain.source(entry)})
	}
	return result, nil
}

// rendered returns an entry as a line.
func rendered(entry slurmconf.Entry) string {
	var document slurmconf.Document
	document.Append(entry.Pairs...)
	return strings.TrimSuffix(document.Render(), "\n")
}

// sourceOfFile returns where a file comes from.
func (in *Input) sourceOfFile(name string) string {
	for _, group := range clusterconf.Groups(in.Controller) {
		for _, reference := range group.References {
			if configMap := in.ConfigMaps[reference.Name]; configMap != nil {
				if _, found := configMap.Data[name]; found {
					return fmt.Sprintf("ConfigMap %s (%s)", reference.Name, group.Field)
				}
			}
		}
	}
	return byOperator
}

// An explainer finds out who set the entries of slurm.conf.
type explainer struct {
	*Input
	// written is the extraConf, own the operator's part, and names the NodeSets by their names in Slurm.
	written, own slurmconf.Document
	names        map[string]string
}

func newExplainer(in *Input) *explainer {
	explain := &explainer{Input: in, names: map[string]string{}}
	explain.written = slurmconf.Written(in.Controller.Spec.ExtraConf)
	for set, name := range clusterconf.SlurmNames(in.NodeSets, in.document(), explain.written) {
		explain.names[name] = set
	}
	for i := range in.NodeSets { // a set is also known by its own name
		if name := in.NodeSets[i].Name; explain.names[name] == "" {
			explain.names[name] = name
		}
	}
	bare := *in
	controller := *in.Controller
	controller.Spec.ExtraConf, bare.Controller = "", &controller
	explain.own, _ = bare.Build()
	return explain
}

// source returns who set an entry.
func (e *explainer) source(entry slurmconf.Entry) string {
	for written := range e.written.All() {
		if slices.Equal(written.Pairs, entry.Pairs) {
			return line(written)
		}
	}
	if set := e.names[entry.Value()]; set != "" {
		switch {
		case entry.Is("NodeSet"):
			return "NodeSet " + set
		case entry.Is("PartitionName"):
			return "NodeSet " + set + ", spec.partition"
		}
	}
	for _, name := range []string{"Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld"} {
		if source := e.sourceOfFile(path.Base(entry.Value())); entry.Is(name) && source != byOperator {
			return source
		}
	}
	if len(entry.Pairs) > 1 { // a record has one source
		return kept
	}
	return e.sourceOfKey(entry.Key())
}

// sourceOfKey returns who set a key: the operator, lines of extraConf, or both.
func (e *explainer) sourceOfKey(key string) string {
	own := byDefault
	if reason, owned := slurmconf.Owner(key); owned {
		own = byOperator + ": " + reason
	}
	if _, found := e.own.Get(key); !found {
		own = ""
	}
	if strings.EqualFold(key, "GresTypes") {
		own = e.gresSource()
	}
	var lines []string
	for written := range e.written.All() { // merged lists have tokens of both
		if written.Is(key) {
			lines = append(lines, line(written))
		}
	}
	switch {
	case own != "" && len(lines) > 0 && own == byDefault:
		return byOperator + ", " + strings.Join(lines, ", ")
	case len(lines) > 0:
		return strings.Join(lines, ", ")
	case own == "":
		return kept
	default:
		return own
	}
}

func line(entry slurmconf.Entry) string { return "spec.extraConf line " + strconv.Itoa(entry.Line) }

// gresSource returns the NodeSets that have GRES.
func (e *explainer) gresSource() string {
	var sets []string
	for i := range e.NodeSets {
		if contribution, _, _ := clusterconf.NodeSet(&e.NodeSets[i]); len(contribution.GresTypes) > 0 {
			sets = append(sets, e.NodeSets[i].Name)
		}
	}
	if len(sets) == 0 {
		return ""
	}
	return "NodeSet " + strings.Join(sets, ", ")
}

// ofNodeSet begins the object of a problem of a NodeSet.
const ofNodeSet = "NodeSet "

// A Problem is why a configuration cannot be applied, or only in part.
type Problem struct {
	Object  string `json:"object"`
	Message string `json:"message"`
}

// Build builds the slurm.conf that the objects describe, with what the operator would refuse or leave out.
func (in *Input) Build() (slurmconf.Document, []Problem) {
	var problems []Problem
	owner := "Controller " + in.Controller.Name
	fail := func(object string, err error) {
		for text := range strings.SplitSeq(err.Error(), "\n") {
			problems = append(problems, Problem{object, text})
		}
	}
	if err := clusterconf.CheckName(in.Controller); err != nil {
		fail(owner, err)
	}
	if in.Controller.Spec.External {
		document, err := slurmconf.Build(clusterconf.OfExternal(in.Controller, in.Accounting))
		if err != nil {
			fail(owner, err)
		}
		return slurmconf.Clients(document), problems
	}
	cluster := clusterconf.Of(in.Controller, in.Accounting)
	in.complete(&cluster)
	files := clusterconf.NewFiles(false)
	for _, group := range clusterconf.Groups(in.Controller) {
		for _, reference := range group.References {
			configMap := in.ConfigMaps[reference.Name]
			if configMap == nil {
				problems = append(problems, Problem{owner,
					fmt.Sprintf("%s: there is no ConfigMap %s; create it", group.Field, reference.Name)})
				continue
			}
			content := clusterconf.FilesOf(reference.Name, configMap.Data)
			for _, file := range content {
				if err := files.Add(file); err != nil {
					fail(owner, err)
				}
			}
			clusterconf.AddScripts(&cluster, group.Use, content)
		}
	}
	problems = append(problems, in.contribute(&cluster)...)
	document, err := slurmconf.Build(cluster)
	if err != nil {
		fail(owner+", spec.extraConf", err)
	}
	return document, append(problems, in.tooNew(document)...)
}

// complete adds what the objects do not say.
func (in *Input) complete(cluster *slurmconf.Cluster) {
	inForce := in.document()
	parameters, _ := inForce.Get("SlurmctldParameters")
	cluster.JWTKeyDigest = slurmconf.KeyDigestOf(parameters)
	cluster.Confined = clusterconf.IsConfined(inForce)
	if in.InForce == nil {
		cluster.Confined = in.Controller.Spec.JobConfinement != slinkyv1beta1.JobConfinementNone
	}
	if _, found := inForce.Get("MetricsType"); in.InForce != nil && cluster.Metrics {
		cluster.Metrics = found || !older(in.Controller.Status.SlurmVersion, "25.11")
	}
	value, _ := inForce.Get("MaxNodeCount")
	current, _ := strconv.Atoi(value) // the operator wrote it
	cluster.MaxNodeCount = clusterconf.MaxNodeCount(in.Controller, in.NodeSets, current)
	cluster.Contain = in.InForce == nil || clusterconf.Contains(in.NodeSets, inForce)
}

// contribute adds the NodeSets, and returns those that would be left out.
func (in *Input) contribute(cluster *slurmconf.Cluster) []Problem {
	var problems []Problem
	inForce := in.document()
	written := slurmconf.Written(in.Controller.Spec.ExtraConf)
	names := clusterconf.SlurmNames(in.NodeSets, inForce, written)
	for i := range in.NodeSets {
		set := &in.NodeSets[i]
		contribution, _, err := clusterconf.NodeSet(set)
		contribution.SlurmName = names[set.Name]
		if err == nil {
			err = contribution.Check()
		}
		if err == nil {
			err = slurmconf.CheckAgainst(contribution, written, inForce)
		}
		if err == nil && contribution.SlurmName == "" {
			err = fmt.Errorf("another NodeSet has the name %s in Slurm already; give this one another name", set.Name)
		}
		if err != nil {
			problems = append(problems, Problem{ofNodeSet + set.Name, err.Error()})
			continue
		}
		cluster.NodeSets = append(cluster.NodeSets, contribution)
	}
	return problems
}

// tooNew returns the keys that the running slurmctld does not know.
func (in *Input) tooNew(document slurmconf.Document) []Problem {
	release := in.Controller.Status.SlurmVersion
	_, unknown := slurmconf.HoldBack(document, in.document(), func(needed string) bool { return older(release, needed) })
	var problems []Problem
	for _, key := range unknown {
		problems = append(problems, Problem{"Controller " + in.Controller.Name + ", spec.extraConf",
			fmt.Sprintf("%s is not known to Slurm %s, which slurmctld runs; remove it, or upgrade Slurm first", key, release)})
	}
	return problems
}

// older reports whether a release is known, and older than another.
func older(release, other string) bool {
	is, err := slurm.ParseVersion(release)
	if err != nil {
		return false
	}
	needed, err := slurm.ParseVersion(other)
	return err == nil && is.Compare(needed) < 0
}

// References returns the names of the ConfigMaps that a Controller's configuration comes from.
func References(controller *slinkyv1beta1.Controller) []string {
	var names []string
	for _, group := range clusterconf.Groups(controller) {
		for _, reference := range group.References {
			names = append(names, reference.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// LiveName returns the name of the ConfigMap with the configuration in force.
func LiveName(controller string) string { return naming.Configuration(controller) }

// CandidateName returns the name of the ConfigMap with the configuration that is being validated or was refused.
func CandidateName(controller string) string { return naming.Candidate(controller) }
