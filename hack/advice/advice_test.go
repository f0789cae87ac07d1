package advice_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/slurm-operator/slurm-operator/hack/advice"
	"github.com/slurm-operator/slurm-operator/hack/repo"
)

func root(t *testing.T) string {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestRepositoryGivesNoWrongAdvice(t *testing.T) {
	mistakes, err := advice.Check(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, mistake := range mistakes {
		t.Error(mistake)
	}
}

// All sources are read: without one of them, its commands would not be checked.
func TestCommandsOfAllSourcesAreFound(t *testing.T) {
	commands, err := advice.Commands(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"internal/plugin/doctor/remedies.go":      "kubectl --namespace X edit X X",
		"internal/plugin/doctor/operator.go":      "kubectl scale deployment X --replicas=1",
		"internal/plugin/why/reasons.go":          "kubectl slurm -- scontrol release X",
		"internal/plugin/command/config.go":       "kubectl slurm config check --filename=-",
		"internal/controller/nodeset/status.go":   "sinfo -R for the reasons",
		"internal/plugin/upgrade/testdata/":       "kubectl --namespace slurm",
		"hack/monitoring/rules/node.go":           "sinfo -R",
		"charts/slurm-operator/files/monitoring/": "sinfo -R",
		"charts/slurm/templates/NOTES.txt":        "kubectl --namespace X get slurm",
		"docs/runbooks/NodesDown.md":              "sinfo -R",
		"docs/reference/configuration.md":         "kubectl annotate controller.slinky.slurm.net/slurm",
		"docs/reference/kubectl-slurm.md":         "kubectl slurm plan",
	} {
		if !slices.ContainsFunc(commands, func(command advice.Command) bool {
			return strings.HasPrefix(command.Where, source) && strings.HasPrefix(strings.Join(command.Words, " "), want)
		}) {
			t.Errorf("%s: %q was not found", source, want)
		}
	}
}

// repository is a small one, whose document has a text.
func repository(text string) fstest.MapFS {
	return fstest.MapFS{
		"docs/page.md": {Data: []byte(text)},
		"config/crd/bases/nodesets.yaml": {Data: []byte(`
spec:
  names: {plural: nodesets, singular: nodeset, shortNames: [nss], categories: [slurm]}
  versions:
  - schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer}
              slurmd: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties:
              conditions: {type: array, items: {type: object, properties: {type: {type: string}}}}
`)},
		"api/v1beta1/wellknown.go": {Data: []byte(
			"package v1beta1\nconst (\n\tAnnotationPodCordon = \"nodeset.\" + GroupName + \"/pod-cordon\"\n" +
				"\tConditionReady = \"Ready\"\n)\n")},
		"charts/slurm/values.schema.json": {Data: []byte(`{"additionalProperties": false, "properties": {
			"log": {"$ref": "#/definitions/log"}, "labels": {"type": "object", "additionalProperties": {"type": "string"}}},
			"definitions": {"log": {"additionalProperties": false, "properties": {"level": {"type": "string"}}}}}`)},
	}
}

func TestMistakesAreFound(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"`kubectl slurm statuss`",
			"there is no sub-command statuss"},
		{"`kubectl slurm config chek`",
			`unknown command "chek" for "kubectl slurm config"`},
		{"`kubectl explain nodeset.spec.replica`",
			"there is no field spec.replica; there are replicas, slurmd"},
		{"`kubectl slurm status --everything`",
			"unknown flag: --everything"},
		{"    kubectl slurm config check",
			`required flag(s) "filename" not set`},
		{"    kubectl slurm why",
			"accepts 1 arg(s), received 0"},
		{"`kubectl slurm -- sinfo --reasons`",
			"there is no flag --reasons"},
		{"`kubectl slurm -- scontrol show jobz`",
			"scontrol show knows no jobz"},
		{"`kubectl gett pods`",
			"kubectl has no command gett"},
		{"`kubectl get nodesetz`",
			"there is no resource nodesetz"},
		{"`kubectl get pods --sellector=a`",
			"there is no flag --sellector"},
		{"`kubectl get nss -o jsonpath='{.spec.image}'`",
			"there is no field spec.image; there are replicas, slurmd"},
		{"`kubectl patch nodeset x --type=merge --patch='{\"spec\":{\"replica\":1}}'`",
			"there is no field spec.replica; there are replicas, slurmd"},
		{"`kubectl patch nodeset x --type=merge --patch='{\"spec\":{\"replicas\":\"1\"}}'`",
			"the field spec.replicas is of the type integer, not string"},
		{"`kubectl patch nodeset x --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/x\"}]'`",
			"there is no field spec.x; there are replicas, slurmd"},
		{"`kubectl patch nodeset x --patch='{\"spec\"}'`",
			"the patch is not JSON: invalid character '}' after object key"},
		{"`kubectl annotate pod x nodeset.slinky.slurm.net/pod-cordoned-`",
			"there is no annotation or label nodeset.slinky.slurm.net/pod-cordoned"},
		{"`kubectl wait nodeset/x --for=condition=Redy`",
			"there is no condition Redy"},
		{"`kubectl get pods -l app.kubernetes.io/name=slurm`",
			"no pod has the label app.kubernetes.io/name=slurm"},
		{"`kubectl logs x --container=slurm`",
			"no pod has a container slurm"},
		{"`helm upgrade x charts/slurm --set logs.level=debug`",
			"the chart has no value logs.level"},
		{"`helm instal x charts/slurm`",
			"helm has no command instal"},
		{"`helm install x charts/slurms`",
			"there is no chart slurms"},
		{"`scontrol update nodname=x state=resume`",
			"scontrol update knows no nodname"},
		{"`scontrol update nodename=x state=resumed`",
			"nothing can be given the state resumed"},
		{"`squeue --nodelist=gpu-[0-3]`",
			"a shell takes --nodelist=gpu-[0-3] for a pattern; put it into quotes"},
		{"`sacctmgr show asociation`",
			"sacctmgr show knows no asociation"},
		{"```sh\nfor x in $(kubectl get nodesetz); do\n  true | squeue --stats=all\ndone\n```",
			"there is no resource nodesetz\nthere is no flag --stats"},
		{"    $ kubectl get pods \\\n        --sellector=a # comment\n",
			"there is no flag --sellector"},
	} {
		mistakes, err := advice.Check(repository(test.text))
		if err != nil {
			t.Fatal(err)
		}
		wanted := strings.Split(test.want, "\n")
		differs := func(mistake string) bool {
			return !slices.ContainsFunc(wanted, func(want string) bool { return strings.HasSuffix(mistake, ": "+want) })
		}
		if len(mistakes) != len(wanted) || slices.ContainsFunc(mistakes, differs) {
			t.Errorf("%s: %q, want %q", test.text, mistakes, wanted)
		}
	}
}

func TestRightAdviceIsAccepted(t *testing.T) {
	for _, text := range []string{
		"`kubectl slurm doctor slurm --namespace=x`, `kubectl slurm`, `kubectl slurm why`",
		"`kubectl --namespace x get nss,pods,slurm --output=jsonpath='{.spec.replicas} {.status.conditions[?(@.type==\"Ready\")].type}'`",
		"`kubectl patch nodeset x --type=merge --patch='{\"spec\":{\"slurmd\":{\"image\":\"x\"},\"replicas\":null}}'`",
		"`kubectl annotate pod x nodeset.slinky.slurm.net/pod-cordon-`",
		"`kubectl exec x -c slurmctld -- scontrol update nodename=a state=resume`",
		"`helm upgrade x charts/slurm --set log.level=debug,labels.a=b`",
		"```sh\ncat <<'EOF' | kubectl apply --filename=-\nkubectl nothing\nEOF\nsrun -N2 prog --flag >out 2>&1\n```",
		"```\nkubectl has no word for it: don't\n```\n",
		"`scontrol show node <node>`, then `squeue --user=<user> --nodelist='gpu-[0-3]' -t running`",
	} {
		mistakes, err := advice.Check(repository(text))
		if err != nil || len(mistakes) > 0 {
			t.Errorf("%s: %v %q", text, err, mistakes)
		}
	}
}

// After the words of a command, a sentence goes on.
func TestCommandsInSentences(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`"the operator cannot reach Slurm: kubectl slurm statuss"`,
			"there is no sub-command statuss"},
		{`"see the log: kubectl logs " + pod + " --container=slurm; then go on"`,
			"no pod has a container slurm"},
		{`fmt.Sprintf("run kubectl slurm doctor --namespaces=%s, and read", x)`,
			"unknown flag: --namespaces"},
		{`"kubectl slurm nodes lists what there is, and kubectl drain is no help"`,
			""},
		{`"none (sinfo --format='%n %v' shows the releases); see kubectl get pods."`,
			""},
		{`kubectl(x, "patch", "nodeset", name, "--patch="+` + "`'{\"spec\":{\"x\":1}}'`)",
			"there is no field spec.x; there are replicas, slurmd"},
	} {
		files := repository("")
		files["internal/x.go"] = &fstest.MapFile{Data: []byte("package x\nvar x = " + test.text + "\n")}
		mistakes, err := advice.Check(files)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(mistakes, "\n"); test.want == "" && got != "" || !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: %q, want %q", test.text, got, test.want)
		}
	}
}
