//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/certificate"
)

// unprovoked are alerts that no fault in minutes causes, with the reason. promtool tests their rules.
var unprovoked = map[string]string{
	"SlurmOperatorReconcileErrors":   "errors of the API server over a quarter of an hour",
	"SlurmOperatorRequestErrors":     "a share of requests over ten minutes",
	"SlurmOperatorRequestsSlow":      "tens of thousands of jobs",
	"SlurmOperatorSnapshotStale":     "a defect of the operator",
	"SlurmWebhookCertificateExpires": "a defect of the webhook, for months",
	"SlurmNodesDrainedLong":          "a drain of three days",
	"SlurmAccountingQueueGrows":      "thousands of jobs without a database",
	"SlurmAgentQueueGrows":           "thousands of nodes that do not answer",
	"SlurmServerThreads":             "hundreds of requests at once",
	"SlurmSchedulerSlow":             "tens of thousands of pending jobs",
}

// A fault makes alerts fire until it is repaired.
type alertFault struct {
	name           string
	alerts         []string
	inject, repair func(*testing.T)
}

// alertsFire injects faults, one after another: their alerts fire, and resolve after the repair. Every alert is caused
// by a fault or is listed as unprovoked.
func (m *monitored) alertsFire(t *testing.T) {
	t.Helper()
	var provoked []string
	for _, fault := range m.alertFaults() {
		provoked = append(provoked, fault.alerts...)
		t.Run("alerts for "+fault.name, func(t *testing.T) {
			fault.inject(t)
			for _, alert := range fault.alerts {
				m.fires(t, alert)
			}
			fault.repair(t)
			for _, alert := range fault.alerts {
				m.resolves(t, alert)
			}
		})
	}
	for _, alert := range alertNames(t) {
		if _, listed := unprovoked[alert]; listed == slices.Contains(provoked, alert) {
			t.Errorf("%s must be either caused by a fault or listed as unprovoked", alert)
		}
	}
}

func (m *monitored) alertFaults() []alertFault {
	return []alertFault{
		m.nodesDown(), m.refusedConfiguration(), m.brokenUpdate(), m.scaleInAroundAJob(), m.noCapacity(),
		m.expiringCertificate(), m.hangingSlurmctld(), m.lostDatabase(), m.incompleteObjects(), m.stoppedOperator(),
		m.deletedState(),
	}
}

// apply applies objects.
func (m *monitored) apply(t *testing.T, objects string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	m.namespace.MustRun(t, "apply", "--server-side", "-f", file)
}

func (m *monitored) nodesDown() alertFault {
	set := func(t *testing.T, state string) {
		t.Helper()
		m.mustLogin(t, "scontrol", "update", "nodename=gpu-[2-3]", "state="+state, "reason=power")
	}
	return alertFault{
		"nodes that are down", []string{"SlurmNodesDown", "SlurmManyNodesDown"},
		func(t *testing.T) {
			t.Helper()
			set(t, "down")
		},
		func(t *testing.T) {
			t.Helper()
			set(t, "resume")
			m.waitUntilAllIdle(t)
		},
	}
}

func (m *monitored) refusedConfiguration() alertFault {
	const good = "SlurmdTimeout=30\nPartitionName=all Nodes=ALL Default=YES State=UP"
	return alertFault{
		"a refused configuration", []string{"SlurmConfigurationNotApplied", "SlurmConfigurationHeldBack"},
		func(t *testing.T) {
			t.Helper()
			m.setExtraConf(t, good+"\nSchedulerTpye=sched/backfill")
		},
		func(t *testing.T) {
			t.Helper()
			m.setExtraConf(t, good)
			m.configurationIs(t, "True|Applied")
		},
	}
}

func (m *monitored) brokenUpdate() alertFault {
	image := func(t *testing.T, image string) {
		t.Helper()
		m.patch(t, "nodeset/gpu", map[string]any{
			"slurmd": map[string]any{"image": image}, "registrationTimeout": "30s",
		})
	}
	return alertFault{
		"an update that does not start", []string{"SlurmUpdateStopped"},
		func(t *testing.T) {
			t.Helper()
			image(t, "slurm-operator/nothing:1")
		},
		func(t *testing.T) {
			t.Helper()
			image(t, smokeSettings{Version: m.version}.Image("slurmd", m.version))
			m.waitUntilAllIdle(t)
		},
	}
}

func (m *monitored) scaleInAroundAJob() alertFault {
	var job string
	return alertFault{
		"a scale-in that waits for a job", []string{"SlurmPodsWaitForJobs"},
		func(t *testing.T) {
			t.Helper()
			job = m.startJob(t, "--nodelist=gpu-1")
			m.scale(t, 0)
		},
		func(t *testing.T) {
			t.Helper()
			m.finishJob(t, job)
			m.scale(t, defaultNodes)
			m.waitUntilAllIdle(t)
		},
	}
}

// noCapacity is a job for a node of an elastic NodeSet whose pod has room on no Kubernetes node.
func (m *monitored) noCapacity() alertFault {
	var job string
	return alertFault{
		"a pod that has no room", []string{"SlurmCapacityUnavailable"},
		func(t *testing.T) {
			t.Helper()
			m.apply(t, fmt.Sprintf(`
{apiVersion: slinky.slurm.net/v1beta1, kind: NodeSet, metadata: {name: huge}, spec: {
  controllerRef: {name: slurm}, elastic: {maxReplicas: 1, startTimeout: 30s},
  partition: {enabled: true, config: State=UP},
  slurmd: {image: %q, resources: {limits: {cpu: "1", memory: 100Ti}}}}}
`, smokeSettings{Version: m.version}.Image("slurmd", m.version)))
			m.namespace.Eventually(t, 3*time.Minute, "the node of the NodeSet", func(ctx context.Context) error {
				return m.sinfoShows(ctx, "huge idle~ 1")
			})
			job = m.submit(t, "--partition=huge", "--wrap=true")
		},
		func(t *testing.T) {
			t.Helper()
			m.mustLogin(t, "scancel", job)
			m.namespace.MustRun(t, "delete", "--timeout=5m", "nodeset/huge")
			m.waitUntilAllIdle(t)
		},
	}
}

// expiringCertificate is a given certificate that expires tomorrow.
func (m *monitored) expiringCertificate() alertFault {
	serve := func(t *testing.T, reference any) {
		t.Helper()
		m.patch(t, "restapi/slurm", map[string]any{"tls": map[string]any{"certificateRef": reference}})
	}
	return alertFault{
		"a certificate that expires", []string{"SlurmRestApiCertificateExpires"},
		func(t *testing.T) {
			t.Helper()
			pair, err := certificate.NewPair([]string{"slurm-restapi." + m.namespace.Name + ".svc"}, time.Now(), 24*time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			m.namespace.CreateSecret(t, "tomorrow", map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key})
			serve(t, map[string]any{"name": "tomorrow"})
		},
		func(t *testing.T) {
			t.Helper()
			serve(t, nil)
			becomesReady(t, m.namespace, 3*time.Minute, "restapi/slurm")
			m.waitUntilAllIdle(t)
		},
	}
}

func (m *monitored) hangingSlurmctld() alertFault {
	return alertFault{
		"a slurmctld that hangs", []string{"SlurmPodsWaitForSlurm"},
		func(t *testing.T) {
			t.Helper()
			m.signalSlurmctld(t, "STOP")
			m.namespace.Eventually(t, 2*time.Minute, "the NodeSet to notice", func(ctx context.Context) error {
				return conditionIs(ctx, m.namespace, "nodeset/gpu", "SlurmReachable", "False")
			})
			m.scale(t, 0)
		},
		func(t *testing.T) {
			t.Helper()
			m.scale(t, defaultNodes)
			m.signalSlurmctld(t, "CONT")
			m.waitUntilAllIdle(t)
		},
	}
}

func (m *monitored) lostDatabase() alertFault {
	return alertFault{
		"a lost database", []string{"SlurmDatabaseUnreachable", "SlurmAccountingUnavailable"},
		func(t *testing.T) {
			t.Helper()
			m.scaleDatabase(t, "0")
			m.namespace.DeletePod(t, "slurm-accounting-0") // a running slurmdbd reconnects, and reports nothing
		},
		func(t *testing.T) {
			t.Helper()
			m.scaleDatabase(t, "1")
			becomesReady(t, m.namespace, 4*time.Minute, "accounting/slurm")
		},
	}
}

// incompleteObjects are objects that cannot become ready, each for another reason, and a Token that is not renewed. The
// Controller has no RestApi either, so that it is not reachable for more than five minutes.
func (m *monitored) incompleteObjects() alertFault {
	const objects = `
{apiVersion: slinky.slurm.net/v1beta1, kind: Controller, metadata: {name: late}, spec: {accountingRef: {name: late}}}
---
{apiVersion: slinky.slurm.net/v1beta1, kind: LoginSet, metadata: {name: late}, spec: {controllerRef: {name: late}}}
---
{apiVersion: slinky.slurm.net/v1beta1, kind: NodeSet, metadata: {name: late}, spec: {
  controllerRef: {name: slurm}, replicas: 1, slurmd: {image: "slurm-operator/nothing:1"}}}
---
{apiVersion: slinky.slurm.net/v1beta1, kind: Token, metadata: {name: late}, spec: {
  username: root, lifetime: 1m, refresh: false, jwtKeyRef: {name: slurm-auth-jwt, key: jwt_hs256.key}}}
`
	return alertFault{
		"objects that do not become ready",
		[]string{
			"SlurmctldUnavailable", "SlurmLoginUnavailable", "SlurmNodeSetUnavailable", "SlurmObjectNotReady",
			"SlurmObjectDegraded", "SlurmTokenExpires", "SlurmUnreachable",
		},
		func(t *testing.T) {
			t.Helper()
			m.apply(t, objects) // the webhook warns about what is missing
		},
		func(t *testing.T) {
			t.Helper()
			m.namespace.MustRun(t, "delete", "--timeout=10m", "token/late", "nodeset/late", "loginset/late",
				"controller.slinky.slurm.net/late")
		},
	}
}

func (m *monitored) stoppedOperator() alertFault {
	return alertFault{
		"an operator that does not run", []string{"SlurmOperatorDown"},
		func(t *testing.T) {
			t.Helper()
			m.scaleOperator(t, 0)
		},
		func(t *testing.T) {
			t.Helper()
			m.scaleOperator(t, 1)
		},
	}
}

// deletedState comes last: the cluster is not usable afterwards.
func (m *monitored) deletedState() alertFault {
	return alertFault{
		"saved state that is being deleted", []string{"SlurmStateAtRisk"},
		func(t *testing.T) {
			t.Helper()
			m.namespace.MustRun(t, "delete", "persistentvolumeclaim/slurm-controller-state", "--wait=false")
		},
		func(t *testing.T) {
			t.Helper()
			m.namespace.MustRun(t, "delete", "--timeout=5m", "nodeset/gpu") // which needs slurmrestd
			m.namespace.MustRun(t, "delete", "--timeout=5m", "loginset/login", "restapi/slurm")
			m.namespace.MustRun(t, "delete", "--timeout=5m", "controller.slinky.slurm.net/slurm")
		},
	}
}
