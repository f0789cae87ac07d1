package process

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
)

func newLogging(t *testing.T, arguments ...string) *Logging {
	t.Helper()
	logging := &Logging{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	logging.AddFlags(flags)
	logging.AddSlurmFlag(flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return logging
}

func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{
		"json":    `"msg":"created Pod","name":"gpu-0"`,
		"console": `msg="created Pod" name=gpu-0`,
	} {
		var log bytes.Buffer
		logger, _, err := newLogging(t, "--log-format="+format).loggers(&log)
		if err != nil {
			t.Fatal(err)
		}
		logger.Info("created Pod", "name", "gpu-0")
		if !strings.Contains(log.String(), want) {
			t.Errorf("format %s: %q does not contain %q", format, log.String(), want)
		}
	}
	if _, _, err := newLogging(t, "--log-format=xml").loggers(nil); err == nil {
		t.Error("format xml was accepted")
	}
}

func TestSlurmRequestsHaveTheirOwnLogLevel(t *testing.T) {
	var log bytes.Buffer
	logger, requests, err := newLogging(t, "--slurm-log-level=debug").loggers(&log)
	if err != nil {
		t.Fatal(err)
	}
	logger.V(4).Info("applied Service")
	requests.V(4).Info("Slurm request")
	if text := log.String(); strings.Contains(text, "applied Service") || !strings.Contains(text, "Slurm request") {
		t.Errorf("got log %q", text)
	}
}

func TestLogLevelsAreReloadedFromFiles(t *testing.T) {
	directory := t.TempDir()
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(directory, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(levelFile, "debug\n")
	logging := newLogging(t, "--log-levels="+directory, "--slurm-log-level=warn")
	if err := logging.readLevels(logr.Discard()); err != nil {
		t.Fatal(err)
	}
	if logging.Level.Level() != slog.LevelDebug || logging.SlurmLevel.Level() != slog.LevelWarn {
		t.Errorf("the levels are %s and %s", logging.Level, logging.SlurmLevel)
	}
	write(levelFile, "error")
	write(slurmLevelFile, "debug")
	if err := logging.readLevels(logr.Discard()); err != nil {
		t.Fatal(err)
	}
	if logging.Level.Level() != slog.LevelError || logging.SlurmLevel.Level() != slog.LevelDebug {
		t.Errorf("the levels are %s and %s", logging.Level, logging.SlurmLevel)
	}
	write(levelFile, "loud")
	if err := logging.readLevels(logr.Discard()); err == nil || !strings.Contains(err.Error(), "log-level") {
		t.Errorf("an unknown level: %v", err)
	}
	if logging.Level.Level() != slog.LevelError {
		t.Errorf("an unknown level changed the level to %s", logging.Level)
	}
}
