package migrate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/slurm-operator/slurm-operator/internal/migrate"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// translate translates values, and returns them as YAML values without what is added to every file.
func translate(t *testing.T, chart migrate.Chart, given map[string]any) (map[string]any, string) {
	t.Helper()
	translated, notes, err := migrate.Values(chart, given)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(translated)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, note := range notes {
		lines = append(lines, note.String())
	}
	return parse(t, string(text)), strings.Join(lines, "\n")
}

// own is what the translation adds to every values file of the slurm chart.
const own = "nodesets: {worker: {enabled: false}}\nloginsets: {login: {enabled: false}}\nnameOverride: slurm\n" +
	"restapi: {tls: {plainHTTP: Allowed}}\n"

func TestClusterValues(t *testing.T) {
	for name, test := range map[string]struct{ given, want, note string }{
		"nothing": {"{}", own, "nodesets.worker: disabled"},
		"null and empty values": {
			"clusterName: null\ncontroller: {metadata: {}, slurmctld: {args: []}, extraConf: null}", own, "",
		},
		"an empty entry is kept": {
			"nodesets: {gpu: {}}\nloginsets: {login: {}}\nfullnameOverride: hpc",
			"nodesets: {gpu: {}, worker: {enabled: false}}\nloginsets: {login: {}}\nfullnameOverride: hpc\n" +
				"restapi: {tls: {plainHTTP: Allowed}}", "",
		},
		"an empty value in a list is kept": {
			own + "controller: {podSpec: {volumes: [{name: a, emptyDir: {}}]}}",
			own + "controller: {podSpec: {volumes: [{name: a, emptyDir: {}}]}}", "",
		},
		"plain HTTP for clients of slurmrestd": {"{}", own, "restapi.tls.plainHTTP: added"},
		"a value that no chart knows":          {"colour: red", own + "colour: red", ""},
		"a key that the other chart created": {
			"slurmKey: {create: true, secretRef: {name: a, key: b}}", own + "slurmKeyRef: {name: a, key: b}",
			"slurmKey.create: dropped: the chart does not create that Secret",
		},
		"a partition that was not enabled": {
			"partitions: {all: {nodesets: [ALL]}}", own + "partitions: {all: {nodesets: [ALL], enabled: false}}",
			"partitions.all.enabled: added",
		},
		"no StorageClass": {
			`controller: {persistence: {storageClassName: "-", existingClaim: ""}}`,
			own + `controller: {persistence: {storageClassName: ""}}`, "storageClassName: changed",
		},
		"references next to others": {
			"prologScriptRefs: [{name: b}]\ncontroller: {prologScriptRefs: [{name: a}]}",
			own + "controller: {prologScriptRefs: [{name: a}, {name: b}]}",
			"prologScriptRefs: moved to controller.prologScriptRefs",
		},
		"JWKS for slurmdbd too": {
			"jwksKeys: {enabled: true, configMapRef: {name: a, key: b}}\naccounting: {enabled: true}",
			own + "controller: {jwksKeyRef: {name: a, key: b}}\n" +
				"accounting: {enabled: true, jwksKeyRef: {name: a, key: b}}", "accounting.jwksKeyRef",
		},
		"an address that is not used": {
			"controller: {external: false, externalConfig: {host: a}}", own + "controller: {external: false}",
			"controller.externalConfig: dropped: it is used only with controller.external",
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := parse(t, test.given)
			got, notes := translate(t, migrate.Slurm, given)
			if diff := cmp.Diff(parse(t, test.want), got); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(notes, test.note) {
				t.Errorf("no note %q in\n%s", test.note, notes)
			}
			if diff := cmp.Diff(parse(t, test.given), given); diff != "" {
				t.Errorf("the given values changed: %s", diff)
			}
		})
	}
}

func TestGPUsAreMappedToJobsInNodeSetsWithGPUs(t *testing.T) {
	got, _ := translate(t, migrate.Slurm, parse(t, `
vendor: {nvidia: {dcgm: {enabled: true, jobMappingDir: /srv/jobs, scriptPriority: 5}}}
prologScripts: {00-check.sh: check}
nodesetDefaults:
  podSpec: {volumes: [{name: home}]}
  slurmd: {resources: {limits: {nvidia.com/gpu: 8}}}
nodesets: {gpu: {}, cpu: {slurmd: {resources: {limits: {cpu: 1}}}}}`))
	scripts := got["prologScripts"].(map[string]any)
	if scripts["00-check.sh"] != "check" || !strings.Contains(scripts["5-dcgm.sh"].(string), `>>"/srv/jobs/$gpu"`) {
		t.Errorf("the scripts are %v", scripts)
	}
	want := parse(t, `
gpu:
  podSpec: {volumes: [{name: home}, {name: dcgm-job-mapping, hostPath: {path: /srv/jobs, type: DirectoryOrCreate}}]}
  slurmd: {volumeMounts: [{name: dcgm-job-mapping, mountPath: /srv/jobs}]}
cpu: {slurmd: {resources: {limits: {cpu: 1}}}}
worker: {enabled: false}`)
	if diff := cmp.Diff(want, got["nodesets"]); diff != "" {
		t.Error(diff)
	}
}

func TestOperatorValues(t *testing.T) {
	for name, test := range map[string]struct{ given, want, note string }{
		"one level for both": {
			"operator: {logLevel: 2}\nwebhook: {logLevel: error}", "log: {level: debug}",
			"webhook.logLevel: dropped: log.level is for operator and webhook",
		},
		"the level of the webhook only": {"webhook: {logLevel: panic}", "log: {level: error}", "moved to log.level"},
		"the lowest number":             {`operator: {logLevel: "0"}`, "log: {level: info}", "moved to log.level"},
		"one pull policy for both": {
			"imagePullPolicy: Never\noperator: {imagePullPolicy: Always}\nwebhook: {imagePullPolicy: Never}",
			"image: {pullPolicy: Always}", "webhook.imagePullPolicy: dropped",
		},
		"the same namespaces for both": {
			"operator: {namespaces: 'a, b'}\nwebhook: {namespaces: 'a,b'}", "namespaces: [a, b]",
			"webhook.namespaces: dropped",
		},
		"no namespaces":         {`operator: {namespaces: ""}`, "{}", ""},
		"an operator that runs": {"operator: {enabled: true}", "{}", "operator.enabled: dropped"},
		"a form that is ours": {
			"operator: {leaderElection: {enabled: true}}", "operator: {leaderElection: {enabled: true}}", "",
		},
		"a certificate of its own": {
			"certManager: {enabled: false, duration: 1h}", "webhook: {certificates: {managedBy: webhook}}",
			"renews its own",
		},
		"conditions name their rule": {
			"propagatedNodeConditions: [A, B]", "{}", "drainOnNodeConditions: [{type: A}, {type: B}]",
		},
		"profiles": {
			"operator: {profile: true, profileAddr: ':1'}", "operator: {pprofAddress: ':1'}", "moved to operator.pprofAddress",
		},
		"profiles that are not served": {"operator: {profile: false, profileAddr: ':1'}", "{}", "operator.profile: dropped"},
	} {
		t.Run(name, func(t *testing.T) {
			got, notes := translate(t, migrate.Operator, parse(t, test.given))
			if diff := cmp.Diff(parse(t, test.want), got); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(notes, test.note) {
				t.Errorf("no note %q in\n%s", test.note, notes)
			}
		})
	}
}
