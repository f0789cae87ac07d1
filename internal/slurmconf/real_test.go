//go:build slurm

package slurmconf_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// password has every character that needs quotes or escapes.
const password = `p a#s\w=o'rd`

// TestRealSlurmRunsGeneratedConfiguration starts a cluster with built files and uses it like users and the operator.
func TestRealSlurmRunsGeneratedConfiguration(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 1, Accounting: true})
			useDatabase(t, slurm)
			hash := useCluster(t, slurm, version)

			configuration := slurm.Login.MustRun(t, "scontrol", "show", "config")
			for line := range strings.Lines(configuration) {
				key, value, _ := strings.Cut(line, "=")
				if strings.TrimSpace(key) == "SlurmctldParameters" && slurmconf.HashOf(value) != hash {
					t.Errorf("the running slurmctld has the hash %q, want %q", slurmconf.HashOf(value), hash)
				}
			}
			if got := slurm.Login.MustRun(t, "srun", "-p", "cpu", "-w", "node-0", "hostname"); got != "node-0" {
				t.Errorf("srun printed %q", got)
			}
			for path, host := range map[string]*slurmnet.Daemon{
				"/tmp/first": slurm.Nodes[0], "/tmp/second": slurm.Nodes[0], "/tmp/controller": slurm.Slurmctld,
			} {
				slurm.WaitFor(t, path+" of "+host.Name, func(ctx context.Context) error {
					_, err := host.Run(ctx, "test", "-e", path)
					return err
				})
			}
			useREST(t, slurm)
		})
	}
}

// useDatabase changes the password of the database and restarts slurmdbd with it.
func useDatabase(t *testing.T, slurm *slurmnet.Cluster) {
	t.Helper()
	document, err := slurmconf.BuildDatabase(slurmconf.Database{
		Host: "slurmdbd", Port: 6819, SlurmUser: "slurm", Storage: slurmconf.Endpoint{Host: "mariadb", Port: 3306},
		User: "slurm", Password: password, Name: "slurm_acct_db",
		ExtraConf: "PurgeJobAfter=12months\nDebugLevel=verbose",
	})
	if err != nil {
		t.Fatal(err)
	}
	escaped := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password)
	slurm.MariaDB.MustRun(t, "mariadb", "-e", fmt.Sprintf("SET PASSWORD FOR slurm@'%%' = PASSWORD('%s')", escaped))
	slurm.Slurmdbd.Write(t, "/etc/slurm/slurmdbd.conf", document.Render())
	slurm.Slurmdbd.Stop(t)
	slurm.Slurmdbd.Start(t)
	slurm.WaitFor(t, "slurmdbd", func(ctx context.Context) error {
		_, err := slurm.Login.Run(ctx, "sacctmgr", "-n", "list", "cluster")
		return err
	})
}

// useCluster restarts slurmctld and slurmrestd with a built configuration and returns its hash.
func useCluster(t *testing.T, slurm *slurmnet.Cluster, version string) string {
	t.Helper()
	document, err := slurmconf.Build(slurmconf.Cluster{
		Name: "slurmnet", Hosts: []slurmconf.Host{{Name: "slurmctld"}}, Port: 6817, SlurmUser: "slurm",
		Accounting: &slurmconf.Endpoint{Host: "slurmdbd", Port: 6819}, Metrics: version != "24.11", MaxNodeCount: 1024,
		NodeSets: []slurmconf.NodeSet{
			{Name: "slurm-worker-cpu", SlurmName: "cpu", Partition: new("Default=YES MaxTime=1-0")}, {Name: "gpu"},
		},
		Prolog: []string{"first.sh", "second.sh"}, PrologSlurmctld: []string{"controller.sh"},
		ExtraConf: "SlurmctldParameters=idle_on_node_suspend\nSchedulerParameters=defer\nPartitionName=all Nodes=ALL",
	})
	if err != nil {
		t.Fatal(err)
	}
	hash := slurmconf.Hash(map[string]string{slurmconf.FileName: document.Render()})
	document = slurmconf.WithHash(document, hash)
	for _, name := range []string{"first", "second", "controller"} {
		path := slurmconf.Directory + "/" + name + ".sh"
		slurm.Slurmctld.Write(t, path, "#!/bin/sh\ntouch /tmp/"+name+"\n")
		slurm.Slurmctld.MustRun(t, "chmod", "0755", path)
	}
	slurm.Slurmctld.Write(t, slurmconf.Directory+"/slurm.conf", document.Render())
	slurm.Slurmrestd.Write(t, slurmconf.Directory+"/slurm.conf", slurmconf.Clients(document).Render())
	slurm.Slurmctld.Stop(t)
	slurm.Slurmctld.Start(t)
	slurm.Slurmrestd.Kill(t)
	slurm.Slurmrestd.Start(t)
	slurm.WaitReady(t)
	slurm.Login.MustRun(t, "scontrol", "update", "NodeName=node-0", "AvailableFeatures=cpu", "ActiveFeatures=cpu")
	slurm.Login.MustRun(t, "scontrol", "reconfigure")
	return hash
}

// useREST calls slurmrestd like the operator and its users.
func useREST(t *testing.T, slurm *slurmnet.Cluster) {
	t.Helper()
	for _, path := range []string{"nodes/", "jobs/", "partitions/"} {
		if answer := call(t, slurm, http.MethodGet, path,
			nil); len(answer[strings.TrimSuffix(path, "/")].([]any)) == 0 {
			t.Errorf("%s: nothing in %v", path, answer)
		}
	}
	answer := call(t, slurm, http.MethodPost, "job/submit", map[string]any{
		"script": "#!/bin/sh\nhostname\n",
		"job": map[string]any{
			"name": "rest", "partition": "all", "current_working_directory": "/tmp", "environment": []string{
				"PATH=/usr/bin:/bin",
			},
		},
	})
	job := fmt.Sprint(answer["job_id"])
	slurm.WaitFor(t, "job "+job, func(ctx context.Context) error {
		record, err := slurm.Run(ctx, "scontrol", "show", "job", job)
		if err == nil && !strings.Contains(record, "JobState=COMPLETED ") {
			err = fmt.Errorf("job record: %s", record)
		}
		return err
	})
}

// call calls slurmrestd as root and fails the test if it reports an error.
func call(t *testing.T, slurm *slurmnet.Cluster, method, path string, body any) map[string]any {
	t.Helper()
	var encoded bytes.Buffer // empty without a body, because slurmrestd would parse it
	if body != nil {
		if err := json.NewEncoder(&encoded).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), method, slurm.URL+"/slurm/v0.0.42/"+path, &encoded)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-SLURM-USER-TOKEN", slurm.Token("root"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(content, &answer); err != nil {
		t.Fatalf("%s: %s: %v", path, content, err)
	}
	if failures, _ := answer["errors"].([]any); response.StatusCode != http.StatusOK || len(failures) > 0 {
		t.Fatalf("%s: %s: %v", path, response.Status, failures)
	}
	return answer
}

// validate runs a throwaway slurmctld next to the real one until it answers or exits.
const validate = `
set -eu
cp /etc/slurm/cgroup.conf /trial/etc/
head -c 1024 /dev/urandom >/trial/etc/slurm.key
head -c 32 /dev/urandom >/trial/etc/jwt_hs256.key
echo '{"keys":[]}' >/trial/etc/jwks.json
for script in announce report; do
    printf '#!/bin/sh\n' >/trial/etc/$script.sh
    chmod 0755 /trial/etc/$script.sh
done
chmod 0600 /trial/etc/*.key
rm -rf /trial/state
mkdir /trial/state
chown -R slurm:slurm /trial
export SLURM_CONF=/trial/etc/slurm.conf
setpriv --reuid=slurm --regid=slurm --clear-groups slurmctld -D 2>&1 &
until scontrol ping >/dev/null 2>&1; do
    kill -0 $! 2>/dev/null || exit 1
    sleep 0.1
done
kill $!
wait
`

// TestRealSlurmValidatesConfigurations proves that a validation run accepts good configurations, refuses bad ones, and
// neither hangs nor disturbs the real slurmctld.
func TestRealSlurmValidatesConfigurations(t *testing.T) {
	content, err := os.ReadFile("testdata/full.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 1})
			full := string(content)
			if version == "24.11" {
				full = strings.ReplaceAll(full, "MetricsType=metrics/openmetrics\n", "") // not known to it
			}
			for name, test := range map[string]struct{ extra, want string }{
				"everything":                    {"", ""},
				"a typo":                        {"SlurmdTimeuot=3", "unrecognized key: SlurmdTimeuot"},
				"a partition of unknown nodes":  {"PartitionName=p Nodes=nowhere", "Invalid node names in partition p"},
				"a missing plugin":              {"JobSubmitPlugins=nosuch", "failed to initialize job_submit plugin"},
				"an invalid value":              {"SelectTypeParameters=nonsense", "Bad SelectTypeParameter: nonsense"},
				"a parameter of another record": {"NodeName=x Nodes=y", "unrecognized key: Nodes"},
				"one address for all nodes":     {"NodeName=x[1-3] NodeAddr=x.example", ""},
				"an address for each node":      {"NodeName=x[1-3] NodeAddr=x[1-3].example", ""},
				"an address too few":            {"NodeName=x[1-3] NodeAddr=x[1-2].example", "NodeAddr"},
				"an address too many":           {"NodeName=x[1-3] NodeAddr=x[1-4].example", "NodeAddr"},
			} {
				t.Run(name, func(t *testing.T) {
					document, err := slurmconf.Parse(full + test.extra)
					if err != nil {
						t.Fatal(err)
					}
					variant := slurmconf.ForValidation(document, slurmconf.ValidationOptions{
						Host: "slurmctld", Port: 16817, Directory: "/trial/etc", State: "/trial/state",
						PidFile: "/trial/pid",
					})
					slurm.Slurmctld.Write(t, "/trial/etc/slurm.conf", variant.Render())
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
					defer cancel()
					log, err := slurm.Slurmctld.Run(ctx, "bash", "-c", validate)
					if accepted := err == nil; accepted != (test.want == "") || !strings.Contains(log, test.want) {
						t.Errorf("accepted: %t, want %q in:\n%s", accepted, test.want, log)
					}
				})
			}
			slurm.WaitReady(t)
		})
	}
}
