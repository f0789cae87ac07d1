package operator

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/process"
)

// transform returns an object as the cache keeps it.
func transform(t *testing.T, object client.Object) client.Object {
	t.Helper()
	for kind, by := range CacheOptions(process.Settings{}).ByObject {
		if fmt.Sprintf("%T", kind) != fmt.Sprintf("%T", object) {
			continue
		}
		kept, err := by.Transform(object.DeepCopyObject())
		if err != nil {
			t.Fatal(err)
		}
		return kept.(client.Object)
	}
	t.Fatalf("%T has no transformation", object)
	return nil
}

func TestCacheKeepsContentsOfOwnObjectsOnly(t *testing.T) {
	managed := map[string]string{"app.kubernetes.io/managed-by": "slurm-operator"}
	ownedBy := func(kind, group string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: "x", Controller: new(true)}}
	}
	tests := map[string]struct {
		meta metav1.ObjectMeta
		kept bool
	}{
		"foreign object": {
			meta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/name": "web"}},
		},
		"owned by a Deployment": {
			meta: metav1.ObjectMeta{OwnerReferences: ownedBy("ReplicaSet", "apps/v1")},
		},
		"owned by a NodeSet of another group": {
			meta: metav1.ObjectMeta{OwnerReferences: ownedBy("NodeSet", "other.example/v1")},
		},
		"operator's label": {meta: metav1.ObjectMeta{Labels: managed}, kept: true},
		"owned by a NodeSet, without labels": {
			meta: metav1.ObjectMeta{OwnerReferences: ownedBy("NodeSet", "slinky.slurm.net/v1beta1")}, kept: true,
		},
		"daemon that may be adopted": {
			meta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/name": "slurmd"}}, kept: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.meta.Name, test.meta.UID, test.meta.ResourceVersion = "a", "uid", "7"
			before := &corev1.Secret{ObjectMeta: test.meta, Data: map[string][]byte{"a": []byte("b")}}
			secret := transform(t, before).(*corev1.Secret)
			configMap := transform(t,
				&corev1.ConfigMap{ObjectMeta: test.meta, Data: map[string]string{"a": "b"},
					BinaryData: map[string][]byte{"c": nil}}).(*corev1.ConfigMap)
			pod := transform(t,
				&corev1.Pod{ObjectMeta: test.meta, Spec: corev1.PodSpec{NodeName: "n"},
					Status: corev1.PodStatus{Phase: corev1.PodRunning}}).(*corev1.Pod)
			if got := len(secret.Data) > 0; got != test.kept {
				t.Errorf("the Secret is %v", secret)
			}
			if got := len(configMap.Data)+len(configMap.BinaryData) > 0; got != test.kept {
				t.Errorf("the ConfigMap is %v", configMap)
			}
			if got := pod.Spec.NodeName != "" && pod.Status.Phase != ""; got != test.kept {
				t.Errorf("the Pod is %v", pod)
			}
			for _, object := range []client.Object{secret, configMap, pod} {
				// Identity and version are kept.
				if object.GetName() != "a" || object.GetUID() != "uid" || object.GetResourceVersion() != "7" {
					t.Errorf("the metadata is %v", object)
				}
			}
		})
	}
}

// store is a fake API server or cache with one Secret.
type store struct {
	client.Client
	secret *corev1.Secret
	reads  int
}

func (s *store) Get(_ context.Context, name client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.reads++
	if s.secret == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name.Name)
	}
	s.secret.DeepCopyInto(object.(*corev1.Secret))
	return nil
}

func TestContentsAreReadOncePerVersion(t *testing.T) {
	version := func(version, value string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "key", UID: "u", ResourceVersion: version},
			Data:       map[string][]byte{"key": []byte(value)},
		}
	}
	server := &store{secret: version("1", "first")}
	cached := &store{secret: transform(t, server.secret).(*corev1.Secret)}
	reader := &referenceReader{Client: cached, live: server}
	read := func(want string, requests int) {
		t.Helper()
		secret := &corev1.Secret{}
		err := reader.Get(t.Context(), client.ObjectKey{Name: "key"}, secret)
		if string(secret.Data["key"]) != want || apierrors.IsNotFound(err) != (want == "") || server.reads != requests {
			t.Errorf("%q after %d requests: %v", secret.Data["key"], server.reads, err)
		}
		if secret.Data != nil {
			secret.Data["key"] = []byte("spoiled") // callers may modify the result
		}
	}
	read("first", 1)
	read("first", 1)
	server.secret = version("2", "second")
	cached.secret = transform(t, server.secret).(*corev1.Secret)
	read("second", 2)
	read("second", 2)
	server.secret, cached.secret = nil, nil
	read("", 2)
	if len(reader.read) != 0 {
		t.Errorf("%d contents of deleted objects are kept", len(reader.read))
	}
	// The operator's own objects come from the cache unchanged.
	cached.secret = version("3", "own")
	read("own", 2)
	for i := range maxContents + 10 {
		reader.remember(contents{name: client.ObjectKey{Name: strconv.Itoa(i)}})
	}
	if len(reader.read) > maxContents {
		t.Errorf("%d contents are kept", len(reader.read))
	}
}
