//go:build integration

package operator_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientrest "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/slurm-operator/slurm-operator/internal/operator"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
)

// Beats are the beginnings of the rounds of a loop.
type beats struct {
	mu   sync.Mutex
	last [3]time.Time
}

func (b *beats) beat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = [3]time.Time{time.Now(), b.last[0], b.last[1]}
}

// since reports whether that many rounds have begun since a moment: all but the last are complete.
func (b *beats) since(moment time.Time, rounds int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last[rounds-1].After(moment)
}

// Flights are the requests to the API server that are not answered yet, except for watches.
type flights struct {
	mu     sync.Mutex
	open   map[*http.Request]time.Time
	failed time.Time // the last request that may be repeated
}

// through returns a configuration whose requests are observed.
func (f *flights) through(config *clientrest.Config) *clientrest.Config {
	observed := clientrest.CopyConfig(config)
	observed.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.URL.Query().Get("watch") != "" || strings.Contains(request.URL.Path, "/leases/") {
				return next.RoundTrip(request)
			}
			f.mu.Lock()
			if f.open == nil {
				f.open = map[*http.Request]time.Time{}
			}
			f.open[request] = time.Now()
			f.mu.Unlock()
			response, err := next.RoundTrip(request)
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.open, request)
			if err != nil || response.StatusCode >= http.StatusInternalServerError ||
				response.StatusCode == http.StatusTooManyRequests {
				f.failed = time.Now()
			}
			return response, err
		})
	})
	return observed
}

// eventRetry is longer than the pause after which client-go repeats a request for an event.
const eventRetry = 15 * time.Second

// pending returns a request that was sent before a moment, or that writes, or that failed and may be repeated.
func (f *flights) pending(since time.Time) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for request, began := range f.open {
		if began.Before(since) || request.Method != http.MethodGet {
			return fmt.Sprintf("%s %s is not answered", request.Method, request.URL.Path)
		}
	}
	if time.Since(f.failed) < eventRetry {
		return "a request has failed, and may be repeated"
	}
	return ""
}

// An observedCache remembers what it watches.
type observedCache struct {
	cache.Cache
	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]bool
}

// GetInformer starts watching a type.
func (c *observedCache) GetInformer(ctx context.Context, object client.Object,
	options ...cache.InformerGetOption) (cache.Informer, error) {
	kind, err := apiutil.GVKForObject(object, operator.Scheme())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.kinds[kind] = true
	c.mu.Unlock()
	return c.Cache.GetInformer(ctx, object, options...)
}

// versions returns the versions of a world's objects in the API server, of all types that the cache watches and of
// events, and which object the cache does not show as it is. There is none if the operator has received all changes.
func (c *observedCache) versions(ctx context.Context, w *world) (versions, behind string, err error) {
	c.mu.Lock()
	kinds := []schema.GroupVersionKind{eventsv1.SchemeGroupVersion.WithKind("Event")}
	for kind := range c.kinds {
		kinds = append(kinds, kind)
	}
	c.mu.Unlock()
	known := map[string]string{}
	for i, kind := range kinds {
		live, cached := map[string]string{}, map[string]string{}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := w.versionsIn(ctx, w.unobserved, kind, list, live); meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return "", "", err
		}
		maps.Copy(known, live)
		if i == 0 {
			continue // the operator does not read events
		}
		empty, err := operator.Scheme().New(list.GroupVersionKind())
		if err != nil {
			return "", "", err
		}
		if err := w.versionsIn(ctx, c, kind, empty.(client.ObjectList), cached); err != nil {
			return "", "", err
		}
		for object, version := range live {
			if cached[object] != version {
				behind = object
			}
			delete(cached, object)
		}
		for object := range cached {
			behind = object
		}
	}
	return fmt.Sprint(known), behind, nil
}

// versionsIn adds the versions of a world's objects of one type. Objects without a namespace belong to the world whose
// namespace their names begin with.
func (w *world) versionsIn(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind,
	list client.ObjectList, versions map[string]string) error {
	options := []client.ListOption{}
	namespaced, err := apiutil.IsGVKNamespaced(kind, w.unobserved.RESTMapper())
	if err != nil {
		return err
	}
	if namespaced {
		options = append(options, client.InNamespace(w.namespace))
	}
	if _, cached := reader.(*observedCache); kind.Kind == "Secret" && !cached { // like the cache
		options = append(options, client.MatchingFieldsSelector{
			Selector: fields.OneTermNotEqualSelector("type", "helm.sh/release.v1"),
		})
	}
	if err := reader.List(ctx, list, options...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err == nil && (namespaced || strings.HasPrefix(object.GetName(), w.namespace)) {
			versions[kind.Kind+" "+object.GetName()] = string(object.GetUID()) + "/" + object.GetResourceVersion()
		}
		return err
	})
}

// A session is a client of the operator for one cluster, with the polls of its mirror.
type session struct {
	*rest.Client
	diags, nodes, jobs beats
	close              func()
}

// Diag reads slurmctld's statistics, with which each poll begins.
func (s *session) Diag(ctx context.Context) (slurm.Diag, error) {
	s.diags.beat()
	return s.Client.Diag(ctx)
}

// Nodes lists nodes.
func (s *session) Nodes(ctx context.Context, since slurm.Cursor) (slurm.NodeList, error) {
	s.nodes.beat()
	return s.Client.Nodes(ctx, since)
}

// Jobs lists jobs.
func (s *session) Jobs(ctx context.Context, since slurm.Cursor) (slurm.JobList, error) {
	s.jobs.beat()
	return s.Client.Jobs(ctx, since)
}

// JobStates lists the states of jobs, in place of a long list of jobs.
func (s *session) JobStates(ctx context.Context, each func(slurm.JobState) error) (int64, error) {
	s.jobs.beat()
	return s.Client.JobStates(ctx, each)
}

// Close closes the client at the end of its session.
func (s *session) Close() {
	s.close()
	s.Client.Close()
}

// has reports whether everything in Slurm was read since a moment, and events of that were published.
func (s *session) has(since time.Time) bool {
	return s.diags.since(since, 3) && s.nodes.since(since, 1) && s.jobs.since(since, 1)
}
