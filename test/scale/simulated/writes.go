package simulated

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/slurm-operator/slurm-operator/test/cluster/audit"
)

const flushTimeout = 10 * time.Minute

// Writes returns all write requests since a time, successful or not, except those to leases and events, which every
// cluster writes all the time.
func (c *Cluster) Writes(t *testing.T, since time.Time) []audit.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), flushTimeout)
	defer cancel()
	must(t, "waiting for the audit log", c.flushAuditLog(ctx))
	writes, err := audit.ReadFile(c.Plane.AuditLog(), since, audit.Request.IsWrite)
	must(t, "counting writes", err)
	return writes
}

// flushAuditLog returns when all earlier requests are in the log. The API server writes its log a little later than its
// responses, but in order: so we send a unique request, and wait until it is in the log.
func (c *Cluster) flushAuditLog(ctx context.Context) error {
	log, err := os.Open(c.Plane.AuditLog())
	if err != nil {
		return err
	}
	defer log.Close()
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("flush-%d", time.Now().UnixNano())
	if _, err := c.Client.CoreV1().ConfigMaps(corev1.NamespaceDefault).
		Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading a ConfigMap that does not exist: %w", err)
	}
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		if _, err := log.Seek(end, io.SeekStart); err != nil {
			return false, err
		}
		content, err := io.ReadAll(log)
		return bytes.Contains(content, []byte(name)), err
	})
}
