// Package report makes a bundle of files about a Slurm cluster that a maintainer can debug from, without secrets.
//
// Two things keep secrets out. First, an allow-list (allow.go): only named fields of objects, named keys of the
// operator's own ConfigMaps and named commands are in the bundle. Secrets are never read, and neither are the scripts
// and environments of jobs. Values of environment variables, arguments of containers and files of users are left out
// even if they are in an object that is listed. Second, redaction (redact.go): what remains is searched for texts that
// look like a secret, such as a password in a log line.
package report

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// An Object is an object as the API server sends it.
type Object = map[string]any

// An Input is what was read.
type Input struct {
	// Objects are those of a few resource types by kind: custom resources, Pods, Events, Nodes, Deployments,
	// PodDisruptionBudgets, ResourceQuotas and PersistentVolumeClaims. Objects of other kinds are left out.
	Objects map[string][]Object
	// ConfigMaps are those of the operator.
	ConfigMaps []Object
	// Logs are the last lines of containers, by namespace/pod/container.
	Logs map[string]string
	// Commands are what Slurm's commands printed, by name of the file.
	Commands map[string]string
	// Results are results of other commands of this program, as JSON by name of the file.
	Results map[string]string
	// Notes are about what could not be read.
	Notes []string
}

// Files returns the files of the bundle by name.
func Files(in *Input) (map[string]string, error) {
	files := map[string]string{}
	for kind, objects := range in.Objects {
		allow, known := allowed[kind]
		if !known {
			continue
		}
		for _, object := range objects {
			kept, _ := allow.keep(object).(map[string]any)
			kept["kind"] = kind
			if err := add(files, path.Join("objects", strings.ToLower(kind)+"s"), object, kept); err != nil {
				return nil, err
			}
		}
	}
	for _, object := range in.ConfigMaps {
		if err := add(files, "configmaps", object, configMap(object)); err != nil {
			return nil, err
		}
	}
	for name, text := range in.Logs {
		files[path.Join("logs", clean(name)+".log")] = text
	}
	for name, text := range in.Commands {
		files[path.Join("slurm", clean(name)+".txt")] = text
	}
	for name, text := range in.Results {
		files[clean(name)+".json"] = text
	}
	for name, text := range files {
		files[name] = Redact(text)
	}
	files["README.txt"] = readme(files, in.Notes)
	return files, nil
}

// add adds an object as YAML.
func add(files map[string]string, directory string, object, kept Object) error {
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	text, err := yaml.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	files[path.Join(directory, clean(namespace), clean(name)+".yaml")] = string(text)
	return nil
}

// clean makes a name safe for a path: no part of it leaves the directory.
func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

func readme(files map[string]string, notes []string) string {
	var text strings.Builder
	text.WriteString(`A report of kubectl slurm. It has no Secrets, no scripts or environments of jobs, no values of environment
variables, no arguments of containers, and no files of users; texts that look like a secret are replaced by
` + mark + `. It has names of users, hosts, images and partitions. Read it before you pass it on.

`)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&text, "%s\n", name)
	}
	for _, note := range notes {
		fmt.Fprintf(&text, "\nnote: %s", note)
	}
	if len(notes) > 0 {
		text.WriteByte('\n')
	}
	return text.String()
}

// Write writes files as a compressed archive, below one directory.
func Write(out io.Writer, directory string, files map[string]string, now time.Time) error {
	compressed := gzip.NewWriter(out)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{
			Name: path.Join(directory, name), Mode: 0o600, Size: int64(len(files[name])), ModTime: now, Typeflag: tar.TypeReg,
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if _, err := io.WriteString(archive, files[name]); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return compressed.Close()
}
