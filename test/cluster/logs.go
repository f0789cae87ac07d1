package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// KeptLogs are the logs of all containers since KeepLogs, also of those whose pods were deleted.
type KeptLogs struct {
	dir  string
	stop context.CancelFunc
	done chan error
}

// KeepLogs keeps the logs of containers until Stop. It misses those of a container that exists for less than a second.
func (c *Cluster) KeepLogs() (*KeptLogs, error) {
	// Next to the logs, because they are kept as hard links.
	kept := &KeptLogs{dir: filepath.Join(c.Plane.Processes.Dir, "nodes", "kept-logs"), done: make(chan error, 1)}
	if err := errors.Join(os.RemoveAll(kept.dir), os.MkdirAll(kept.dir, 0o755)); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, kept.stop = context.WithCancel(context.Background())
	go func() {
		err := wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
			return false, kept.linkAll(c)
		})
		if ctx.Err() != nil {
			err = nil // it was stopped
		}
		kept.done <- err
	}()
	return kept, nil
}

// linkAll links all logs of all nodes that are not linked yet.
func (k *KeptLogs) linkAll(c *Cluster) error {
	for _, node := range c.Nodes {
		logs, err := filepath.Glob(filepath.Join(node.PodLogs(), "*", "*", "*.log"))
		if err != nil {
			return err
		}
		for _, log := range logs {
			name, err := filepath.Rel(node.PodLogs(), log)
			if err != nil {
				return err
			}
			err = os.Link(log, filepath.Join(k.dir, strings.ReplaceAll(name, string(filepath.Separator), "_")))
			if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("keeping a log: %w", err)
			}
		}
	}
	return nil
}

// Stop stops keeping logs, and returns whether all were kept.
func (k *KeptLogs) Stop() error {
	k.stop()
	return <-k.done
}

// Read returns the logs of a namespace's containers. The names are those of files: namespace, pod, UID and container.
func (k *KeptLogs) Read(namespace string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(k.dir, namespace+"_*"))
	if err != nil {
		return nil, err
	}
	logs := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		logs[filepath.Base(file)] = string(content)
	}
	return logs, nil
}
