//go:build integration

package operator_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/operator"
	"github.com/slurm-operator/slurm-operator/internal/process"
)

var foreign = flag.Int("foreign", 50,
	"foreign Secrets and ConfigMaps, and a quarter of the foreign Pods, that TestForeignObjectsAreNotCached creates")

// Foreign objects cost the operator almost no memory, however many there are.
func TestForeignObjectsAreNotCached(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.readyController(t)
	world.stopManager() // the same process would cache the same objects
	world.createForeign(t, *foreign)

	settings := process.Settings{Namespaces: []string{world.namespace}}
	all, heapAll := world.cached(t, settings.Cache())
	kept, heap := world.cached(t, operator.CacheOptions(settings))
	t.Logf("%d foreign Pods, %d Secrets and %d ConfigMaps of 10 kB: the cache takes %.1f MiB, and %.1f MiB with all "+
		"their contents",
		4**foreign, *foreign, *foreign, float64(heap)/(1<<20), float64(heapAll)/(1<<20))
	for kind, count := range map[string]int{"Pod": 4 * *foreign, "Secret": *foreign, "ConfigMap": *foreign} {
		if all[kind] < count {
			t.Errorf("only %d of %d foreign %ss are cached with contents by a plain cache", all[kind], count, kind)
		}
		if own := all[kind] - count; kept[kind] != own {
			t.Errorf("contents of %d %ss are cached, but the operator owns %d", kept[kind], kind, own)
		}
	}
	if kept["Secret"] < 2 || kept["ConfigMap"] < 1 || kept["Pod"] < 1 {
		t.Errorf("the operator's own objects are not cached: %v", kept)
	}
}

// createForeign creates objects that the operator does not own.
func (w *world) createForeign(t *testing.T, count int) {
	t.Helper()
	large := bytes.Repeat([]byte("x"), 10<<10)
	objects := make(chan client.Object)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for object := range objects {
				if err := w.Create(t.Context(), object); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 4 * count {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("web-", i), Labels: map[string]string{"app.kubernetes.io/name": "web"},
			},
		}
		pod.Spec.Containers = []corev1.Container{
			{Name: "web", Image: "web", Env: []corev1.EnvVar{{Name: "TEXT", Value: strings.Repeat("x", 1<<10)}}},
		}
		objects <- pod
		if i%4 == 0 {
			objects <- &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("web-", i)}, Data: map[string][]byte{"a": large},
			}
			objects <- &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("web-", i)}, Data: map[string]string{"a": string(large)},
			}
		}
	}
	close(objects)
	workers.Wait()
}

// cached counts the objects that a cache keeps with contents, and measures its heap.
func (w *world) cached(t *testing.T, options cache.Options) (counts map[string]int, heap int64) {
	t.Helper()
	options.Scheme = operator.Scheme()
	before := heapInUse()
	kept, err := cache.New(server.Config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- kept.Start(ctx) }()
	if !kept.WaitForCacheSync(ctx) { // it waits for Start
		t.Fatal("the cache does not start")
	}
	counts = countWithContents(t, kept)
	heap = heapInUse() - before
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return counts, heap
}

// countWithContents counts the objects that are cached with their contents.
func countWithContents(t *testing.T, kept cache.Cache) map[string]int {
	t.Helper()
	pods, secrets, configMaps := &corev1.PodList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{pods, secrets, configMaps} {
		if err := kept.List(t.Context(), list, client.UnsafeDisableDeepCopy); err != nil {
			t.Fatal(err)
		}
	}
	counts := map[string]int{}
	for i := range pods.Items {
		counts["Pod"] += min(len(pods.Items[i].Spec.Containers), 1)
	}
	for i := range secrets.Items {
		counts["Secret"] += min(len(secrets.Items[i].Data), 1)
	}
	for i := range configMaps.Items {
		counts["ConfigMap"] += min(len(configMaps.Items[i].Data), 1)
	}
	return counts
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // far below the limit
}
