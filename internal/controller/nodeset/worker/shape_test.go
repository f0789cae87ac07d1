package worker_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/podshape"
)

// TestShapeMatchesPodTemplate changes each field of the spec, and checks that the pod template changes if and only if
// the pod shape does.
func TestShapeMatchesPodTemplate(t *testing.T) {
	// exempt are fields that affect the template and do not create a revision, with the reason.
	exempt := map[string]string{
		"controllerRef": "is immutable",
		"scalingMode":   "changes the names of pods, so that other pods are created",
		"logfile":       "configures a container that only some templates have",
	}
	changes := map[string]string{
		"replicas": `7`, "slurmd": `{"image":"other"}`, "ssh": `{"enabled":true}`,
		"template":  `{"spec":{"priorityClassName":"high"}}`,
		"extraConf": `"Weight=7"`, "partition": `{"enabled":true}`,
		"volumeClaimTemplates": `[{"metadata":{"name":"x"}}]`,
		"updateStrategy":       `{"type":"OnDelete"}`, "revisionHistoryLimit": `1`,
		"persistentVolumeClaimRetentionPolicy": `{"whenScaled":"Delete"}`,
		"minReadySeconds":                      `7`, "ordinalPadding": `3`, "pinToNode": `true`,
		"workloadDisruptionProtection": `false`,
		"pruneSlurmNodeRecords":        `"Always"`, "oversubscribeNode": `true`, "registrationTimeout": `"7m"`,
		"drainOnNodeConditions": `[{"type":"GPUBroken","status":"True"}]`, "nodeLabels": `{}`,
		"drainOnNodeTaints": `[{"key":"spot"}]`,
		"gres":              `[{"resource":"example.com/card","name":"card"}]`, "cgroupAccess": `"Privileged"`,
		"reservedMemory": `"64Mi"`, "taintKubeNodes": `true`, "elastic": `{"maxReplicas":3}`,
	}
	withCards := `{"resources":{"limits":{"cpu":"2","memory":"1Gi","example.com/card":"2"}}}`
	for name := range jsonFields(reflect.TypeFor[slinkyv1beta1.NodeSetSpec]()) {
		if exempt[name] != "" {
			continue
		}
		change, known := changes[name]
		if !known {
			t.Errorf("spec.%s: add a change of it to this test", name)
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
			was, is := setOf(before), setOf(after)
			was.Confined, is.Confined = true, true
			if replaced := template(t, was) != template(t, is); replaced != shapes {
				t.Errorf("the template changes: %t; the shape changes: %t", replaced, shapes)
			}
		})
	}
}

// jsonFields returns the JSON names of a struct's fields.
func jsonFields(structType reflect.Type) map[string]bool {
	names := map[string]bool{}
	for field := range structType.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}
