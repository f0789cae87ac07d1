// Package validation validates a configuration by running a throwaway slurmctld with it.
//
// Slurm cannot check a configuration: a slurmctld that reads a bad one exits. So a throwaway slurmctld of the same
// image is started on a copy of the candidate's files, with random keys and disposable state. If it answers, the
// candidate is accepted; if it exits or waits for a file that does not exist, the candidate is refused, with
// slurmctld's own messages and the line that they refer to. Anything else is a failed validation run: the outcome is
// unknown, so nothing may be accepted.
//
// One NodeSet must not block the others. The candidate may come with the changes that NodeSets request; if slurmctld
// refuses it, the validation run finds the changes without which slurmctld accepts it, and reports them as left out.
package validation

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

	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmuser"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Options describe what to validate, and where.
type Options struct {
	// Config is the directory with the candidate's files; its slurm.conf is the variant for validation runs.
	Config string
	// Scratch is a writable directory; the slurm.conf keeps its state there.
	Scratch string
	// Passwd is the file with the image's users.
	Passwd string
	// Timeout bounds each run of slurmctld.
	Timeout time.Duration
	// Log receives slurmctld's output.
	Log io.Writer
}

// Run validates a candidate and returns the result.
func Run(ctx context.Context, opts Options) Report {
	version, err := slurmVersion(ctx, opts.Timeout)
	if err != nil {
		return Report{Outcome: Failed, Detail: err.Error()}
	}
	user, err := slurmuser.Find(opts.Passwd)
	if err != nil {
		return Report{Outcome: Refused, SlurmVersion: version, Detail: err.Error()}
	}
	report := Report{Outcome: Refused}
	if own := int64(os.Geteuid()); user.UID == own {
		report = validate(ctx, opts)
	} else {
		report.Detail = fmt.Sprintf("the image's user slurm has the ID %d and the group %d, and slurmctld is to run as %d; "+
			"use another image, or set spec.slurmUser to these numbers before the cluster is created", user.UID, user.GID, own)
	}
	report.SlurmVersion, report.SlurmUser = version, &user
	return report
}

// validate runs slurmctld on the candidate and, if it refuses that, on variants without changes of NodeSets.
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
		return validateVariant(ctx, opts, func(conf string) (string, error) {
			if len(leftOut) == 0 {
				return conf, nil
			}
			document, err := slurmconf.Parse(conf)
			return changes.LeaveOut(document, leftOut).Render(), err
		})
	})
}

// readChanges reads the changes of NodeSets next to a candidate. There may be none.
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

// validateVariant runs slurmctld on the candidate with a variant of its slurm.conf.
func validateVariant(ctx context.Context, opts Options, variant func(conf string) (string, error)) Report {
	etc := filepath.Join(opts.Scratch, "etc")
	files, err := prepare(opts.Config, etc, variant)
	if err != nil {
		return Report{Outcome: Failed, Detail: "preparing the validation run: " + err.Error()}
	}
	if complaint := checkCgroup(files["cgroup.conf"]); complaint != "" {
		return Report{Outcome: Refused, Detail: complaint}
	}
	log, config, err := runSlurmctld(ctx, filepath.Join(etc, "slurm.conf"), opts.Log)
	switch {
	case err == nil && checkSlurmd(config, files) != "":
		return Report{Outcome: Refused, Detail: checkSlurmd(config, files)}
	case err == nil:
		return Report{Outcome: Accepted}
	case errors.Is(err, errRefused) && !isEnvironmentFailure(log):
		return Report{Outcome: Refused, Detail: explain(log, etc, files)}
	default:
		return Report{Outcome: Failed, Detail: strings.TrimSpace(err.Error() + "\n" + explain(log, etc, files))}
	}
}

// slurmVersion returns the version of the installed slurmctld, such as 26.05.5.
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
