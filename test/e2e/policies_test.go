//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/test/cluster"
	"github.com/slurm-operator/slurm-operator/test/cluster/addons"
	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// TestNetworkPolicies installs the charts on a network that enforces NetworkPolicies. Without policies, every pod can
// connect to every port. With them, Slurm works, and pods can connect only to the ports that docs/security.md lists.
func TestNetworkPolicies(t *testing.T) {
	run := startPolicyRun(t, ownCluster(t))
	t.Run("without policies every pod connects to every port", func(t *testing.T) {
		run.install(t, false)
		run.findPods(t)
		everything := slices.Sorted(maps.Keys(run.ports))
		for from := range connects {
			run.connectsTo(t, from, everything)
		}
	})
	run.install(t, true)
	t.Run("jobs run, and nodes join", run.runsJobs)
	t.Run("slurmctld is replaced and reconfigured", run.replacesSlurmctld)
	t.Run("users log in by ssh", run.acceptsLogins)
	t.Run("with policies pods connect only to the documented ports", func(t *testing.T) {
		run.findPods(t)
		for from, want := range connects {
			run.connectsTo(t, from, want)
		}
	})
	t.Run("an allowed pod uses the REST API", run.servesPortal)
}

// The pods that try to connect.
const (
	loginPod       = "a login pod"
	jobPod         = "a job"
	guestPod       = "another pod of the namespace"
	neighbourLogin = "a login pod of another cluster"
	portalPod      = "a pod in restapiFrom"
	strangerPod    = "a pod of another namespace"
	operatorPod    = "the operator"
)

// connects lists the ports that each pod can connect to with policies, in order.
var connects = map[string][]string{
	loginPod:       {"login 22", "slurmctld 6817", "slurmd 6818", "slurmdbd 6819", "webhook 9443"},
	jobPod:         {"login 22", "slurmctld 6817", "slurmd 6818", "slurmdbd 6819", "webhook 9443"},
	guestPod:       {"login 22", "webhook 9443"},
	neighbourLogin: {"login 22", "slurmctld of another cluster 6817", "webhook 9443"},
	portalPod:      {"Service of slurmrestd 6820", "login 22", "slurmrestd 6820", "webhook 9443"},
	strangerPod:    {"login 22", "webhook 9443"},
	operatorPod: {
		"Service of slurmrestd 6820", "agent of slurmctld 6816", "agent of slurmdbd 6816", "login 22",
		"operator's probes 8081", "slurmctld 6817", "slurmctld of another cluster 6817", "slurmrestd 6820",
		"webhook 9443",
	},
}

// A policyRun is a cluster on a network that enforces policies, another cluster, and pods that are part of neither.
type policyRun struct {
	*slurmCluster
	devcluster                  *cluster.Cluster
	authorized                  string
	neighbour, portal, stranger kube.Namespace
	// pods are the UIDs of the pods that try to connect.
	pods map[string]string
	// ports are the addresses that they try to connect to.
	ports map[string]string
}

func startPolicyRun(t *testing.T, own *cluster.Cluster) *policyRun {
	t.Helper()
	removeEverything(t)
	t.Cleanup(func() {
		if t.Failed() {
			clusterNamespace.Describe(t)
		}
		removeEverything(t)
	})
	private, authorized := sshKeyPair(t)
	run := &policyRun{
		slurmCluster: &slurmCluster{namespace: clusterNamespace, operator: operatorNamespace, sshKey: private},
		devcluster:   own, authorized: authorized,
		neighbour: kube.NewNamespace(t, "neighbour"), portal: kube.NewNamespace(t, "portal"),
		stranger: kube.NewNamespace(t, "stranger"),
	}
	t.Cleanup(func() {
		if err := own.EndEnforcement(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := own.EnforcePolicies(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	helmCharts(".").installCRDs(t)
	return run
}

// install installs or upgrades the operator and both clusters, with or without policies.
func (r *policyRun) install(t *testing.T, policies bool) {
	t.Helper()
	enabled := fmt.Sprintf("--set=networkPolicy.enabled=%t", policies)
	helmCharts(".").installOperator(t, enabled)
	helmCharts(".").installSlurm(t, enabled, "--set=accounting.enabled=true", "--set=mariadb.enabled=true",
		"--set=mariadb.image.repository="+*imagePrefix+"/mariadb", "--set=tokens.root.username=root",
		"--set=loginsets.login.rootSshAuthorizedKeys="+r.authorized,
		`--set=networkPolicy.restapiFrom[0].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=`+r.portal.Name)
	r.neighbour.MustHelm(t, "upgrade", "--install", "slurm", helmCharts(".").chart("slurm"), enabled,
		"--set=nodesets.worker.enabled=false")
	becomesReady(t, r.namespace, 3*time.Minute, "accounting/slurm", "token/root")
	becomesReady(t, r.neighbour, 3*time.Minute, "controller.slinky.slurm.net/slurm", "restapi/slurm", "loginset/login")
	login := r.namespace.MustRun(t, "get", "deployment/login",
		"--output=jsonpath={.spec.template.spec.containers[0].image}")
	startPod(t, r.namespace, "guest", addons.BusyboxImage)
	startPod(t, r.portal, "portal", addons.BusyboxImage)
	startPod(t, r.stranger, "stranger", login)
}

// startPod starts a pod that does nothing.
func startPod(t *testing.T, namespace kube.Namespace, name, image string) {
	t.Helper()
	namespace.Apply(t, fmt.Appendf(nil, `{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {
  containers: [{name: sleep, image: %q, command: [sleep, infinity]}]}}`, name, image))
	namespace.MustRun(t, "wait", "pod/"+name, "--for=condition=Ready", "--timeout=10m")
}

// findPods finds the pods that try to connect, and the ports that they try.
func (r *policyRun) findPods(t *testing.T) {
	t.Helper()
	get := func(namespace kube.Namespace, selector, path string) string {
		t.Helper()
		return namespace.MustRun(t, "get", "pods", "--selector="+selector, "--field-selector=status.phase=Running",
			"--output=jsonpath={.items[0]"+path+"}")
	}
	const name, component, uid, address = "app.kubernetes.io/name=", "app.kubernetes.io/component=", ".metadata.uid",
		".status.podIP"
	uidOf := func(namespace kube.Namespace, pod string) string {
		return namespace.MustRun(t, "get", "pod/"+pod, "--output=jsonpath={.metadata.uid}")
	}
	r.pods = map[string]string{
		loginPod:       get(r.namespace, name+"login", uid),
		jobPod:         get(r.namespace, name+"slurmd", uid),
		neighbourLogin: get(r.neighbour, name+"login", uid),
		operatorPod:    get(r.operator, component+"operator", uid),
		guestPod:       uidOf(r.namespace, "guest"),
		portalPod:      uidOf(r.portal, "portal"),
		strangerPod:    uidOf(r.stranger, "stranger"),
	}
	slurmctld, slurmdbd := get(r.namespace, name+"slurmctld", address), get(r.namespace, name+"slurmdbd", address)
	r.ports = map[string]string{
		"slurmctld 6817":          slurmctld + ":6817",
		"agent of slurmctld 6816": slurmctld + ":6816",
		"slurmd 6818":             get(r.namespace, name+"slurmd", address) + ":6818",
		"slurmdbd 6819":           slurmdbd + ":6819",
		"agent of slurmdbd 6816":  slurmdbd + ":6816",
		"slurmrestd 6820":         get(r.namespace, name+"slurmrestd", address) + ":6820",
		"Service of slurmrestd 6820": r.namespace.MustRun(t, "get", "service/slurm-restapi",
			"--output=jsonpath={.spec.clusterIP}") + ":6820",
		"MariaDB 3306":                      get(r.namespace, name+"mariadb", address) + ":3306",
		"login 22":                          get(r.namespace, name+"login", address) + ":22",
		"slurmctld of another cluster 6817": get(r.neighbour, name+"slurmctld", address) + ":6817",
		"operator's probes 8081":            get(r.operator, component+"operator", address) + ":8081",
		"webhook 9443":                      get(r.operator, component+"webhook", address) + ":9443",
	}
}

// connectsTo checks which ports a pod can connect to. On a busy computer, a connection may take several attempts.
func (r *policyRun) connectsTo(t *testing.T, from string, want []string) {
	t.Helper()
	var got []string
	r.namespace.Eventually(t, time.Minute, "connections from "+from, func(ctx context.Context) error {
		got = r.connected(ctx, from)
		for _, name := range want {
			if !slices.Contains(got, name) {
				return fmt.Errorf("it connects to %q only", got)
			}
		}
		return nil
	})
	if difference := cmp.Diff(want, got); difference != "" {
		t.Errorf("%s connects to other ports (-want +got):\n%s", from, difference)
	}
}

// connected returns the ports that a pod can connect to.
func (r *policyRun) connected(ctx context.Context, from string) []string {
	// Packets of a refused connection are dropped: it fails when the time is up.
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var dialing sync.WaitGroup
	var mu sync.Mutex
	var got []string
	for name, address := range r.ports {
		dialing.Go(func() {
			connection, err := r.devcluster.Dial(ctx, r.pods[from], "tcp", address)
			if err != nil {
				return
			}
			defer connection.Close()
			mu.Lock()
			defer mu.Unlock()
			got = append(got, name)
		})
	}
	dialing.Wait()
	slices.Sort(got)
	return got
}

func (r *policyRun) runsJobs(t *testing.T) {
	r.namespace.MustRun(t, "scale", "nodeset/worker", "--replicas=2")
	r.namespace.Eventually(t, 2*time.Minute, "two idle nodes", func(ctx context.Context) error {
		return r.sinfoShows(ctx, "worker* idle 2")
	})
	out, err := r.login(t.Context(), "srun", "--nodes=2", "--mem=100", "hostname")
	if nodes := strings.Fields(out); err != nil || len(nodes) != 2 {
		t.Fatalf("srun printed %q: %v", out, err)
	}
	job := r.submit(t, "--nodes=2", "--mem=100", "--wrap=srun hostname")
	r.namespace.Eventually(t, time.Minute, "the job in accounting", func(ctx context.Context) error {
		out, err := r.login(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--jobs="+job, "--format=state")
		if err == nil && strings.TrimSpace(out) != "COMPLETED" {
			err = fmt.Errorf("sacct shows %q", out)
		}
		return err
	})
}

// replacesSlurmctld checks that all daemons connect to another slurmctld, and that the operator can read what it
// reports.
func (r *policyRun) replacesSlurmctld(t *testing.T) {
	job := r.startJob(t, "--mem=100")
	r.namespace.DeletePod(t, "slurm-controller-0")
	r.namespace.Eventually(t, 2*time.Minute, "slurmctld with the running job", func(ctx context.Context) error {
		return r.jobIs(ctx, job, "JobState=RUNNING", "Restarts=0")
	})
	r.setExtraConf(t, "SlurmdTimeout=200")
	r.configurationIs(t, "True|Applied")
	r.finishJob(t, job)
	becomesReady(t, r.namespace, 2*time.Minute, "controller.slinky.slurm.net/slurm", "accounting/slurm", "restapi/slurm",
		"nodeset/worker")
}

func (r *policyRun) acceptsLogins(t *testing.T) {
	const writeKey = "umask 077 && cat >/tmp/key"
	if _, err := r.stranger.ExecWith(t.Context(), r.sshKey, "pod/stranger", "sh", "-c", writeKey); err != nil {
		t.Fatal(err)
	}
	r.stranger.Eventually(t, time.Minute, "srun through ssh", func(ctx context.Context) error {
		out, err := r.stranger.Exec(ctx, "pod/stranger", "ssh", "-i", "/tmp/key", "-o",
			"StrictHostKeyChecking=accept-new", "-o", "ConnectTimeout=10", "root@login."+r.namespace.Name,
			"srun --nodes=2 --mem=100 hostname")
		if err == nil && len(strings.Fields(out)) != 2 {
			err = fmt.Errorf("it printed %q", out)
		}
		return err
	})
}

// servesPortal checks that a pod in restapiFrom can use the Service of slurmrestd.
func (r *policyRun) servesPortal(t *testing.T) {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: r.trusted(t),
		DialContext: func(ctx context.Context, transport, _ string) (net.Conn, error) {
			return r.devcluster.Dial(ctx, r.pods[portalPod], transport, r.ports["Service of slurmrestd 6820"])
		},
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"https://slurm-restapi:6820/slurm/v0.0.42/nodes/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-SLURM-USER-TOKEN", r.token(t))
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("the REST API answers %s", response.Status)
	}
}
