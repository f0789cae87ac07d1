// Package trial finds out whether slurmctld would take a configuration, by letting it.
//
// Slurm has no way to check a configuration: a slurmctld that is told to read a bad one ends. So a throwaway slurmctld of
// the same image is started on a copy of the candidate's files, with keys that open nothing and state that nobody keeps.
// When it answers, the candidate is accepted; when it ends or waits for a file that does not exist, the candidate is
// refused, in slurmctld's own words and with the line that they are about. Anything else is a trial that has failed:
// the outcome is unknown, so nothing may be accepted.
//
// One NodeSet must not hold up the others. The candidate may come with the changes that NodeSets ask for; when slurmctld
// refuses it, the trial finds the changes without which slurmctld accepts it, and reports them as left out.
package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Options say what to try and where.
type Options struct {
	// Config is the directory with the candidate's files, the slurm.conf among them made for a trial.
	Config string
	// Scratch is a writable directory; the slurm.conf keeps its state there.
	Scratch string
	// Timeout bounds each start of slurmctld.
	Timeout time.Duration
	// Log gets what slurmctld prints.
	Log io.Writer
}

// Hold validates a candidate and reports the result.
func Hold(ctx context.Context, opts Options) Report {
	version, err := slurmVersion(ctx, opts.Timeout)
	if err != nil {
		return Report{Outcome: Failed, Detail: err.Error()}
	}
	report := validate(ctx, opts)
	report.SlurmVersion = version
	return report
}

// validate starts slurmctld on the candidate and, when it refuses that, on variants of it without changes of NodeSets.
func validate(ctx context.Context, opts Options) Report {
	changes, err := readChanges(opts.Config)
	if err != nil {
		return Report{Outcome: Failed, Detail: err.Error()}
	}
	return search(changes.Names(), func(leftOut []string) Report {
		if len(leftOut) > 0 {
			fmt.Fprintf(opts.Log, "=== without the changes of NodeSets %s\n", strings.Join(leftOut, ", "))
		}
		ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
		defer cancel()
		return try(ctx, opts, func(conf string) (string, error) {
			if len(leftOut) == 0 {
				return conf, nil
			}
			document, err := slurmconf.Parse(conf)
			return changes.LeaveOut(document, leftOut).Render(), err
		})
	})
}

// readChanges reads the changes of NodeSets that lie beside a candidate. There may be none.
func readChanges(config string) (changes slurmconf.Changes, err error) {
	content, err := os.ReadFile(filepath.Join(config, slurmconf.ChangesFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return changes, nil
	case err != nil:
		return changes, err
	}
	return changes, json.Unmarshal(content, &changes)
}

// try starts slurmctld on the candidate with a variant of its slurm.conf.
func try(ctx context.Context, opts Options, variant func(conf string) (string, error)) Report {
	etc := filepath.Join(opts.Scratch, "etc")
	files, err := prepare(opts.Config, etc, variant)
	if err != nil {
		return Report{Outcome: Failed, Detail: "preparing the trial: " + err.Error()}
	}
	if complaint := checkCgroup(files["cgroup.conf"]); complaint != "" {
		return Report{Outcome: Refused, Detail: complaint}
	}
	log, err := runSlurmctld(ctx, filepath.Join(etc, "slurm.conf"), opts.Log)
	switch {
	case err == nil:
		return Report{Outcome: Accepted}
	case errors.Is(err, errRefused) && !failedByItself(log):
		return Report{Outcome: Refused, Detail: explain(log, etc, files)}
	default:
		return Report{Outcome: Failed, Detail: strings.TrimSpace(err.Error() + "\n" + explain(log, etc, files))}
	}
}

// slurmVersion is the version of the slurmctld that will run, such as 26.05.5.
func slurmVersion(ctx context.Context, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	output, err := exec.CommandContext(ctx, "slurmctld", "-V").Output()
	if err != nil {
		return "", fmt.Errorf("asking slurmctld for its version: %w", err)
	}
	words := strings.Fields(string(output)) // "slurm-wlm 26.05.5"
	if len(words) == 0 {
		return "", errors.New("asking slurmctld for its version: it printed nothing")
	}
	return words[len(words)-1], nil
}
