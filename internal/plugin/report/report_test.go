package report

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/golden"
)

// planted are secrets. None may be in a bundle, wherever it was planted.
var planted = map[string]string{
	"password": "hunter2-and-more",
	"jwt":      "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJyb290In0.c2lnbmF0dXJlLXNpZ25hdHVyZQ",
	"key":      "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQ",
	"private":  "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----",
}

// plant returns objects with secrets in all places where users put them.
func plant(t *testing.T) *Input {
	t.Helper()
	spec := func(name string) map[string]any {
		return map[string]any{
			name: map[string]any{
				"image": "registry/" + name + ":26.05",
				"env": []any{
					map[string]any{"name": "DB_PASSWORD", "value": planted["password"]},
					map[string]any{"name": "MOTD", "value": planted["password"]},
				},
				"args":      []any{"--password=" + planted["password"], planted["key"]},
				"command":   []any{"sh", "-c", "login " + planted["password"]},
				"lifecycle": map[string]any{"postStart": planted["password"]},
			},
			"template": map[string]any{"spec": map[string]any{
				"nodeSelector": map[string]any{"gpu": "yes"},
				"containers": []any{map[string]any{
					"name": "sidecar", "env": []any{map[string]any{"name": "TOKEN", "value": planted["jwt"]}},
				}},
				"volumes": []any{map[string]any{
					"name": "v", "secret": map[string]any{"secretName": "s"}, "unknown": planted["key"],
				}},
			}},
			"rootSshAuthorizedKeys": planted["private"], "extraSshdConfig": "Banner " + planted["password"],
			"extraConf":     "SlurmdTimeout=300\nJobCompPass=" + planted["password"] + "\n",
			"storageConfig": map[string]any{"host": "db", "username": planted["password"]},
			"unknownField":  planted["password"],
		}
	}
	object := func(name string, spec any) Object {
		return Object{
			"metadata": map[string]any{
				"namespace": "slurm", "name": name, "labels": map[string]any{"app": "x"},
				"annotations": map[string]any{
					"kubectl.kubernetes.io/last-applied-configuration": `{"password":"` + planted["password"] + `"}`,
					"note":                                  planted["password"],
					"controller.slinky.slurm.net/take-over": "true",
				},
				"managedFields": []any{planted["password"]},
			},
			"spec": spec,
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "Ready", "message": "login with password: " + planted["password"] + " and " + planted["jwt"],
			}}},
			"data": map[string]any{
				"slurm.conf":     "ClusterName=c\nAccountingStoragePass=" + planted["password"] + "\n",
				"job_submit.lua": "key = " + planted["password"], "prolog.sh": "export X=" + planted["key"],
				"jwks.json": planted["key"],
			},
		}
	}
	in := &Input{Objects: map[string][]Object{}, ConfigMaps: []Object{object("slurm-config", nil)}}
	for kind, field := range map[string]string{
		"Controller": "slurmctld", "NodeSet": "slurmd", "LoginSet": "login", "RestApi": "slurmrestd",
		"Accounting": "slurmdbd", "Token": "none", "Deployment": "none", "Pod": "none",
	} {
		in.Objects[kind] = []Object{object("slurm", spec(field))}
	}
	in.Objects["Pod"][0]["spec"] = map[string]any{"containers": []any{spec("x")["x"]}}
	in.Objects["Secret"] = []Object{object("slurm-auth-slurm", nil)}
	in.Objects["Event"] = []Object{{
		"metadata": map[string]any{"namespace": "slurm", "name": "e"}, "reason": "Failed", "note": "token=" + planted["jwt"],
	}}
	in.Logs = map[string]string{"slurm/slurm-controller-0/slurmctld": strings.Join([]string{
		"slurmctld: debug: X-SLURM-USER-TOKEN: " + planted["jwt"], "Authorization: Bearer " + planted["jwt"],
		"connecting to mysql://slurm:" + planted["password"] + "@db/slurm", "key " + planted["key"], planted["private"],
		`{"level":"INFO","password":"` + planted["password"] + `"}`, "slurmctld: error: node gpu-3 not responding",
	}, "\n")}
	in.Commands = map[string]string{
		"show config": "JobCompPass             = " + planted["password"] + "\nSlurmdTimeout = 300 sec\n",
	}
	in.Results = map[string]string{"doctor": `{"problem":"password=` + planted["password"] + `"}`}
	encoded, err := json.Marshal(in.Objects)
	if err != nil || !bytes.Contains(encoded, []byte(planted["password"])) {
		t.Fatalf("nothing is planted: %v", err)
	}
	return in
}

func TestBundleHasNoSecret(t *testing.T) {
	files, err := Files(plant(t))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := Write(&archive, "report", files, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	for name, content := range unpack(t, &archive) {
		for what, secret := range planted {
			for part := range strings.SplitSeq(secret, "\n") {
				if len(part) > 10 && strings.Contains(content, part) && !strings.HasPrefix(part, "-----") {
					t.Errorf("%s has the %s %q:\n%s", name, what, part, content)
				}
			}
		}
		if strings.Contains(name, "secret") {
			t.Errorf("there is %s", name)
		}
	}
}

func TestBundleHasWhatIsNeeded(t *testing.T) {
	files, err := Files(plant(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"objects/nodesets/slurm/slurm.yaml": {
			"image: registry/slurmd:26.05", "nodeSelector", "DB_PASSWORD", "SlurmdTimeout=300",
		},
		"objects/controllers/slurm/slurm.yaml":        {"controller.slinky.slurm.net/take-over", "conditions"},
		"configmaps/slurm/slurm-config.yaml":          {"ClusterName=c", "job_submit.lua", "bytes)"},
		"logs/slurm/slurm-controller-0/slurmctld.log": {"node gpu-3 not responding"},
		"slurm/show config.txt":                       {"SlurmdTimeout = 300 sec"},
		"README.txt":                                  {"Read it before you pass it on", "doctor.json"},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s does not have %q:\n%s", name, want, files[name])
			}
		}
	}
	golden.Compare(t, "files.txt", strings.Join(slices.Sorted(maps.Keys(files)), "\n")+"\n")
}

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"node gpu-3 not responding, setting DOWN":             "node gpu-3 not responding, setting DOWN",
		"pod slurm-operator-webhook-7d9f8c5b6d-abcde-fghij":   "pod slurm-operator-webhook-7d9f8c5b6d-abcde-fghij",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b",
		"StoragePass=abc StorageHost=db":                      "StoragePass=" + mark + " StorageHost=db",
		`{"token": "abc", "n": 1}`:                            `{"token": ` + mark + `, "n": 1}`,
		"  secret:\n    secretName: slurm-auth-slurm":         "  secret:\n    secretName: slurm-auth-slurm",
	} {
		if got := Redact(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestNamesDoNotLeaveTheDirectory(t *testing.T) {
	files, err := Files(&Input{Logs: map[string]string{"../../etc/passwd": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if strings.Contains(name, "..") {
			t.Error(name)
		}
	}
}

// unpack returns the files of an archive.
func unpack(t *testing.T, archive io.Reader) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(compressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", header.Name, err))
		}
		files[header.Name] = string(content)
	}
}
