// Package trial finds out whether slurmctld would take a configuration, by letting it.
//
// Slurm has no way to check a configuration: a slurmctld that is told to read a bad one ends. So a throwaway slurmctld of
// the same image is started on a copy of the candidate's files, with keys that open nothing and state that nobody keeps.
// When it answers, the candidate is accepted; when it ends or waits for a file that does not exist, the candidate is
// refused, in slurmctld's own words and with the line that they are about. Anything else is a trial that has failed:
// nobody knows, so nothing may be accepted.
package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Options say what to try and where.
type Options struct {
	// Config is the directory with the candidate's files, the slurm.conf among them made for a trial.
	Config string
	// Scratch is a writable directory; the slurm.conf keeps its state there.
	Scratch string
	// Timeout bounds the whole trial.
	Timeout time.Duration
	// Log gets what slurmctld prints.
	Log io.Writer
}

// Hold holds a trial and reports how it ended.
func Hold(ctx context.Context, opts Options) Report {
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	version, err := slurmVersion(ctx)
	if err != nil {
		return Report{Outcome: Failed, Detail: err.Error()}
	}
	report := try(ctx, opts)
	report.SlurmVersion = version
	return report
}

func try(ctx context.Context, opts Options) Report {
	etc := filepath.Join(opts.Scratch, "etc")
	files, err := prepare(opts.Config, etc)
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
func slurmVersion(ctx context.Context) (string, error) {
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
