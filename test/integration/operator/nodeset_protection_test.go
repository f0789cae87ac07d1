//go:build integration

package operator_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientrest "k8s.io/client-go/rest"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Nothing happens any more when these pods are drained and empty: no event ends their protection.
func TestProtectionEndsWithoutEvents(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ahead  time.Duration // of the operator's clock, the API server's
		silent bool
	}{
		"created, registered and drained within a second": {},
		"created in the future of the operator's clock":   {ahead: 5 * time.Second},
		"never registered": {silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := newNodeSet(0)
			set.Spec.RegistrationTimeout = metav1.Duration{Duration: 10 * time.Second}
			w := newNodeWorld(t, set)
			w.slurm.SetUptime(time.Hour)
			w.kubelet.silent = test.silent
			kubernetesNode := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.kubelet.nodeName}}
			w.patch(t, kubernetesNode, `{"spec":{"unschedulable":true}}`)
			w.stopManager()
			defer w.run(t, withClockAhead(countWrites(server.Config, &w.writes), test.ahead))()
			w.waitUntilIdle(t)
			<-time.After(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			w.scale(t, 1)
			pod := &corev1.Pod{}
			w.eventually(t, "gpu-0", pod, func() error {
				if _, protected := pod.Labels[slinkyv1beta1.LabelPodProtect]; protected {
					return errors.New("evictions are still refused")
				}
				return nil
			})
		})
	}
}

// withClockAhead returns a configuration whose clients see the times of creation of an API server whose clock is ahead.
func withClockAhead(config *clientrest.Config, ahead time.Duration) *clientrest.Config {
	shifted := clientrest.CopyConfig(config)
	shifted.ContentType = runtime.ContentTypeJSON
	shifted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			request.Header.Del("Accept-Encoding")
			response, err := next.RoundTrip(request)
			if err == nil {
				response.Body = shiftCreations(response.Body, ahead)
			}
			return response, err
		})
	})
	return shifted
}

var creation = regexp.MustCompile(`"creationTimestamp":"([^"]+)"`)

// shiftCreations shifts the times of creation in an answer, or in the lines of a watch.
func shiftCreations(body io.ReadCloser, by time.Duration) io.ReadCloser {
	read, write := io.Pipe()
	go func() {
		defer body.Close()
		lines := bufio.NewReader(body)
		for {
			line, err := lines.ReadBytes('\n')
			line = creation.ReplaceAllFunc(line, func(field []byte) []byte {
				created, failure := time.Parse(time.RFC3339, string(creation.FindSubmatch(field)[1]))
				if failure != nil {
					return field
				}
				return []byte(`"creationTimestamp":"` + created.Add(by).Format(time.RFC3339) + `"`)
			})
			if _, closed := write.Write(line); closed != nil {
				return
			}
			if err != nil {
				write.CloseWithError(err)
				return
			}
		}
	}()
	return read
}
