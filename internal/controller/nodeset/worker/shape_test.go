package worker_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/podshape"
)

// TestShapeMatchesPodTemplate changes each field of a spec in turn, and holds that the template of the pods changes if
// and only if their shape does.
func TestShapeMatchesPodTemplate(t *testing.T) {
	// exempt are the fields that are in the template and make no new revision, with the reason.
	exempt := map[string]string{
		"controllerRef": "is immutable",
		"scalingMode":   "gives pods other names, and so creates other pods",
		"logfile":       "is for a container that only some templates have",
	}
	changes := map[string]string{
		"replicas": `7`, "slurmd": `{"image":"other"}`, "ssh": `{"enabled":true}`,
		"template":  `{"spec":{"priorityClassName":"high"}}`,
		"extraConf": `"Weight=7"`, "partition": `{"enabled":true}`,
		"volumeClaimTemplates": `[{"metadata":{"name":"x"}}]`,
		"updateStrategy":       `{"type":"OnDelete"}`, "revisionHistoryLimit": `1`,
		"persistentVolumeClaimRetentionPolicy": `{"whenScaled":"Delete"}`,
		"minReadySeconds":                      `7`, "ordinalPadding": `3`, "pinToNode": `true`, "workloadDisruptionProtection": `false`,
		"pruneSlurmNodeRecords": `"Always"`, "oversubscribeNode": `true`, "registrationTimeout": `"7m"`,
		"drainOnNodeConditions": `[{"type":"GPUBroken","status":"True"}]`, "nodeLabels": `{}`,
		"gres": `[{"resource":"example.com/card","name":"card"}]`,
	}
	withCards := `{"resources":{"limits":{"example.com/card":"2"}}}`
	for name := range jsonFields(reflect.TypeFor[slinkyv1beta1.NodeSetSpec]()) {
		if exempt[name] != "" {
			continue
		}
		change, known := changes[name]
		if !known {
			t.Errorf("spec.%s: say in this test how to change it", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			before, after := nodeSet("gpu", withCards), nodeSet("gpu", withCards)
			if err := json.Unmarshal([]byte(`{"`+name+`":`+change+`}`), &after.Spec); err != nil {
				t.Fatal(err)
			}
			if reflect.DeepEqual(before.Spec, after.Spec) {
				t.Fatal("nothing was changed")
			}
			shapes := len(podshape.Changed(podshape.OfNodeSet(&before.Spec), podshape.OfNodeSet(&after.Spec))) > 0
			if replaced := template(t, of(before)) != template(t, of(after)); replaced != shapes {
				t.Errorf("the template changes: %t; the shape changes: %t", replaced, shapes)
			}
		})
	}
}

// jsonFields are the names of the fields of a struct.
func jsonFields(of reflect.Type) map[string]bool {
	names := map[string]bool{}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}
