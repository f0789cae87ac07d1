package trace

import (
	"context"
	"reflect"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Kubernetes returns a client that logs its changes, except for Apply: only its caller knows the previous state of the
// object. See Applied.
func Kubernetes(next client.Client) client.Client { return kubernetes{next} }

type kubernetes struct{ client.Client }

// Create creates an object, and logs it unless it is a dry run.
func (k kubernetes) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	err := k.Client.Create(ctx, object, options...)
	if dryRun := (&client.CreateOptions{}).ApplyOptions(options).DryRun; err == nil && len(dryRun) == 0 {
		k.log(ctx, "created", object)
	}
	return err
}

// Update updates an object, and logs it.
func (k kubernetes) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	err := k.Client.Update(ctx, object, options...)
	if err == nil {
		k.log(ctx, "updated", object)
	}
	return err
}

// Patch patches an object, and logs it.
func (k kubernetes) Patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.PatchOption) error {
	err := k.Client.Patch(ctx, object, patch, options...)
	if err == nil {
		k.log(ctx, "patched", object)
	}
	return err
}

// Delete deletes an object, and logs it.
func (k kubernetes) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	err := k.Client.Delete(ctx, object, options...)
	if err == nil {
		k.log(ctx, "deleted", object)
	}
	return err
}

// Status returns a client of the status subresource that logs its changes.
func (k kubernetes) Status() client.SubResourceWriter {
	return status{k.Client.Status(), k}
}

type status struct {
	client.SubResourceWriter
	kubernetes kubernetes
}

// Patch patches the status of an object, and logs it.
func (s status) Patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.SubResourcePatchOption) error {
	err := s.SubResourceWriter.Patch(ctx, object, patch, options...)
	if err == nil {
		s.kubernetes.log(ctx, "patched status of", object)
	}
	return err
}

func (k kubernetes) log(ctx context.Context, did string, object client.Object) {
	kind := "object"
	if known, err := k.GroupVersionKindFor(object); err == nil {
		kind = known.Kind
	}
	log.FromContext(ctx).Info(did+" "+kind, "name", object.GetName())
}

// Applied logs that an object was applied, with the changed fields. If nothing changed, as after a restart of the
// operator, which applies everything once, it logs at level debug.
func Applied(ctx context.Context, kind, name string, created bool, changed []string) {
	switch {
	case created:
		log.FromContext(ctx).Info("created "+kind, "name", name)
	case len(changed) == 0:
		Debug(ctx).Info("applied "+kind, "name", name)
	default:
		log.FromContext(ctx).Info("changed "+kind, "name", name, "fields", changed)
	}
}

// The maximum number and nesting depth of the fields that Fields returns.
const maxFields, maxDepth = 10, 6

// Fields returns the paths of the fields that differ between two objects, never their values, because some are secret.
func Fields(before, after map[string]any) []string {
	var fields []string
	differences(before, after, "", 1, &fields)
	slices.Sort(fields)
	if len(fields) > maxFields {
		fields = append(fields[:maxFields], "…")
	}
	return fields
}

func differences(before, after map[string]any, path string, depth int, fields *[]string) {
	for key := range before {
		if _, stays := after[key]; !stays {
			*fields = append(*fields, path+key)
		}
	}
	for key, now := range after {
		was, known := before[key]
		if known && reflect.DeepEqual(was, now) {
			continue
		}
		inner, wasMap := was.(map[string]any)
		outer, isMap := now.(map[string]any)
		if wasMap && isMap && depth < maxDepth {
			differences(inner, outer, path+key+".", depth+1, fields)
			continue
		}
		*fields = append(*fields, path+key)
	}
}
