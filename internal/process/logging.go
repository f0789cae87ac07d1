package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Log formats.
const (
	logJSON    = "json"
	logConsole = "console"
)

// Logging holds the settings of the log.
type Logging struct {
	// Level is the minimum level that is logged, and SlurmLevel that of requests to slurmrestd.
	Level, SlurmLevel *slog.LevelVar
	// Format is json or console.
	Format string
	// Levels is a directory with files that override the levels at run time; empty for none.
	Levels string
}

// The files in the directory of levels, which are keys of the chart's ConfigMap, and how often they are read.
const (
	levelFile      = "log-level"
	slurmLevelFile = "slurm-log-level"
	levelInterval  = 5 * time.Second
)

// AddFlags adds a flag for each setting.
func (l *Logging) AddFlags(flags *pflag.FlagSet) {
	l.Level, l.SlurmLevel = new(slog.LevelVar), new(slog.LevelVar)
	flags.TextVar(l.Level, "log-level", l.Level, "what is logged: debug, info, warn or error")
	flags.StringVar(&l.Format, "log-format", logJSON, "json or console")
	flags.StringVar(&l.Levels, "log-levels", "",
		"a directory with the files "+levelFile+" and "+slurmLevelFile+", which override those flags and are read "+
			"again every "+levelInterval.String())
}

// AddSlurmFlag adds the flag for requests to slurmrestd, which the webhook does not make.
func (l *Logging) AddSlurmFlag(flags *pflag.FlagSet) {
	flags.TextVar(l.SlurmLevel, "slurm-log-level", l.SlurmLevel,
		"the log level of requests to slurmrestd: debug logs each of them")
}

// StartLogging makes controller-runtime and client-go log to a writer, and polls the level files until the context is
// cancelled. It returns the logger for requests to slurmrestd.
func (l *Logging) StartLogging(ctx context.Context, to io.Writer) (requests logr.Logger, err error) {
	logger, requests, err := l.loggers(to)
	if err != nil {
		return requests, err
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if l.Levels != "" {
		if err := l.readLevels(logger); err != nil {
			return requests, err
		}
		go l.followLevels(ctx, logger)
	}
	return requests, nil
}

// loggers returns the general logger and the one for requests to slurmrestd.
func (l *Logging) loggers(to io.Writer) (everything, requests logr.Logger, err error) {
	options := &slog.HandlerOptions{Level: slog.Level(-128)} // leveled filters by level
	var handler slog.Handler
	switch l.Format {
	case logJSON:
		handler = slog.NewJSONHandler(to, options)
	case logConsole:
		handler = slog.NewTextHandler(to, options)
	default:
		return everything, requests, fmt.Errorf("--log-format=%s: it must be %s or %s", l.Format, logJSON, logConsole)
	}
	return logr.FromSlogHandler(leveled{handler, l.Level}), logr.FromSlogHandler(leveled{handler, l.SlurmLevel}), nil
}

// followLevels polls the level files. A level that cannot be read stays unchanged.
func (l *Logging) followLevels(ctx context.Context, logger logr.Logger) {
	failed := ""
	for ticker := time.NewTicker(levelInterval); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()
			return
		case <-ticker.C:
		}
		err := l.readLevels(logger)
		if err != nil && err.Error() != failed {
			logger.Error(err, "reading log levels")
			failed = err.Error()
		}
		if err == nil {
			failed = ""
		}
	}
}

// readLevels sets the levels from the files.
func (l *Logging) readLevels(logger logr.Logger) error {
	var failures []error
	for file, level := range map[string]*slog.LevelVar{levelFile: l.Level, slurmLevelFile: l.SlurmLevel} {
		text, err := os.ReadFile(filepath.Join(l.Levels, file)) //nolint:gosec // an administrator chooses the directory
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var wanted slog.Level
		if err == nil {
			err = wanted.UnmarshalText([]byte(strings.TrimSpace(string(text))))
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s in %s: %w", file, l.Levels, err))
			continue
		}
		if before := level.Level(); before != wanted {
			level.Set(wanted)
			logger.Info("changed log level", "of", file, "from", before.String(), "to", wanted.String())
		}
	}
	return errors.Join(failures...)
}

// leveled is a handler with its own level.
type leveled struct {
	slog.Handler
	level slog.Leveler
}

// Enabled reports whether a record of a level is logged.
func (l leveled) Enabled(_ context.Context, level slog.Level) bool { return level >= l.level.Level() }

// WithAttrs returns a handler with more attributes and the same level.
func (l leveled) WithAttrs(attributes []slog.Attr) slog.Handler {
	return leveled{l.Handler.WithAttrs(attributes), l.level}
}

// WithGroup returns a handler with a group and the same level.
func (l leveled) WithGroup(name string) slog.Handler {
	return leveled{l.Handler.WithGroup(name), l.level}
}
