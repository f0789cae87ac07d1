package review_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/webhook/review"
)

var controllerTests = map[string]test{
	"that is plain": {is: "spec: {}", silent: true},
	"whose references exist": {
		is: "spec: {accountingRef: {name: db}, slurmKeyRef: {name: keys, key: slurm.key}}", silent: true,
		found: existing(map[review.Target]metav1.Object{
			{Kind: review.AccountingKind, Name: "db"}: &slinkyv1beta1.Accounting{},
			{Kind: review.SecretKind, Name: "keys"}:   &metav1.PartialObjectMetadata{},
		}),
	},
	"whose references could not be looked up": {
		is: "spec: {accountingRef: {name: db}, slurmKeyRef: {name: keys, key: slurm.key}}", silent: true,
	},
	"whose references lead nowhere": {
		is: `spec:
  accountingRef: {name: db}
  slurmKeyRef: {name: keys, key: slurm.key}
  jwtHs256KeyRef: {name: keys, key: jwt}
  jwksKeyRef: {name: jwks, key: jwks.json}
  configFileRefs: [{name: files}, {name: more}]
  epilogScriptRefs: [{name: epilog}]
  persistence: {existingClaim: state}`,
		found: missing(
			review.Target{Kind: review.AccountingKind, Name: "db"}, review.Target{
				Kind: review.SecretKind, Name: "keys",
			},
			review.Target{Kind: review.ConfigMapKind, Name: "jwks"}, review.Target{
				Kind: review.ConfigMapKind, Name: "more",
			},
			review.Target{Kind: review.ConfigMapKind, Name: "epilog"}, review.Target{
				Kind: review.ClaimKind, Name: "state",
			},
		),
	},
	"that takes a Secret for a ConfigMap": {
		is: "spec: {configFileRefs: [{name: files}]}",
		found: review.Found{Objects: map[review.Target]review.Result{
			{Kind: review.ConfigMapKind, Name: "files"}: {Kind: review.SecretKind},
		}},
	},
	"whose Accounting is in another namespace": {
		is: "spec: {accountingRef: {name: db}}",
		found: review.Found{Objects: map[review.Target]review.Result{
			{Kind: review.AccountingKind, Name: "db"}: {InOtherNamespace: true},
		}},
	},
	"whose name is too long with its namespace": {
		is: "metadata: {name: " + strings.Repeat("x", 37) + "}", refused: true,
	},
	"with mistakes in extraConf": {
		is: `spec:
  extraConf: |
    # The first line.
    SchedulerParameters=defer
    SlurmdTimeout
    SlurmctldTimeout=30 SlurmdTimeout=60
    SchedulerParameters+=bf_continue
    PriorityType="priority/multifactor`, refused: true,
	},
	"with keys of the operator's in extraConf": {
		is: `spec:
  extraConf: |
    ClusterName=other
    slurmctldhost=elsewhere
    MaxNodeCount=4096
    StateSaveLocation=/tmp
    AccountingStoragePass=secret
    SlurmctldParameters=config_hash=1
    Include more.conf`, refused: true,
	},
	"that repeats what the operator says": {
		is: `spec:
  clusterName: prod
  accountingRef: {name: db}
  maxNodeCount: 4096
  metrics: {enabled: true}
  extraConf: |
    ClusterName=prod
    MaxNodeCount=4096
    AuthType=auth/slurm
    MetricsType=metrics/openmetrics
    AccountingStorageType=accounting_storage/slurmdbd
    AccountingStorageHost=db-accounting.hpc`, silent: true,
	},
	"that repeats where an external Accounting is": {
		is: `spec:
  accountingRef: {name: db}
  extraConf: AccountingStorageHost=dbd.example.com`, silent: true,
		found: existing(map[review.Target]metav1.Object{
			{Kind: review.AccountingKind, Name: "db"}: &slinkyv1beta1.Accounting{Spec: slinkyv1beta1.AccountingSpec{
				External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "dbd.example.com"},
			}},
		}),
	},
	"with one partition twice": {is: "spec: {extraConf: \"PartitionName=a\\nPartitionName=a\"}", refused: true},
	"with the partition of a NodeSet": {
		is: "spec: {extraConf: \"PartitionName=gpu Nodes=ALL\"}", found: nodeSets(nodeSet("gpu", 2)),
	},
	"with a script in extraConf and others in ConfigMaps": {
		is: "spec: {extraConf: Prolog=/opt/prolog, prologScriptRefs: [{name: files}]}",
		found: existing(map[review.Target]metav1.Object{
			{Kind: review.ConfigMapKind, Name: "files"}: configMap(map[string]string{"prolog.sh": ""}),
		}),
	},
	"with files that it cannot have": {
		is: "spec: {configFileRefs: [{name: files}, {name: more}]}",
		found: existing(map[review.Target]metav1.Object{
			{Kind: review.ConfigMapKind, Name: "files"}: configMap(map[string]string{
				"slurm.conf": "", "gres.conf": "Name=gpu File=/dev/nvidia0",
			}),
			{Kind: review.ConfigMapKind, Name: "more"}: configMap(map[string]string{
				"gres.conf": "", "cgroup.conf": "CgroupPlugin=autodetect\nConstrainCores yes\n",
			}),
		}),
	},
	"with a mistake that it had before": {
		was: "spec: {extraConf: ClusterName=other}",
		is:  "spec: {extraConf: ClusterName=other, metrics: {enabled: true}}",
	},
	"with another mistake than before": {
		was: "spec: {extraConf: ClusterName=other}", is: "spec: {extraConf: \"ClusterName=other\\nSlurmUser=root\"}",
		refused: true,
	},
	"with backups and no shared volume": {
		is: "spec: {ha: {enabled: true, backups: 1}, persistence: {accessModes: [ReadWriteOnce]}}", refused: true,
	},
	"with backups and a shared volume": {
		is: "spec: {ha: {enabled: true, backups: 1}, persistence: {accessModes: [ReadWriteMany]}}", silent: true,
	},
	"with backups and a volume that it has from before": {
		was: "spec: {}", is: "spec: {ha: {enabled: true, backups: 1}}",
		found: review.Found{
			Objects: map[review.Target]review.Result{
				{Kind: review.ClaimKind, Name: "x-controller-state"}: {
					Object: claim("x-controller-state", corev1.ReadWriteOnce),
				},
			},
			NodeSets: []slinkyv1beta1.NodeSet{nodeSet("gpu", 16), nodeSet("cpu", 4)},
		},
	},
	"without confinement":   {is: "spec: {jobConfinement: None}"},
	"on the host's network": {is: "spec: {template: {spec: {hostNetwork: true}}}"},
	"with a limit below the nodes that there are": {
		is: "spec: {maxNodeCount: 10}", status: "status: {nodes: {total: 12}}",
	},
	"that is external and has a configuration here": {
		is: "spec: {external: true, externalConfig: {host: ctl}, extraConf: ClusterName=x, configFileRefs: [{name: " +
			"files}]}",
	},
	"that becomes external": {
		was: "spec: {}", is: "spec: {external: true, externalConfig: {host: ctl}}", found: nodeSets(nodeSet("gpu", 16)),
	},
	"that is no longer external": {was: "spec: {external: true, externalConfig: {host: ctl}}", is: "spec: {}"},
	"that moves elsewhere while external": {
		was: "spec: {external: true, externalConfig: {host: ctl}}",
		is:  "spec: {external: true, externalConfig: {host: other}}", found: nodeSets(nodeSet("gpu", 16)),
	},
	"that gets another volume":    {was: "spec: {}", is: "spec: {persistence: {existingClaim: other}}"},
	"that no longer has a volume": {was: "spec: {}", is: "spec: {persistence: {enabled: false}}"},
	"that wants a larger volume than it has": {
		was: "spec: {}", is: "spec: {persistence: {resources: {requests: {storage: 8Gi}}}}",
		found: existing(map[review.Target]metav1.Object{
			{Kind: review.ClaimKind, Name: "x-controller-state"}: claim("x-controller-state"),
		}),
	},
	"that wants a larger volume in time": {
		was: "spec: {}", is: "spec: {persistence: {resources: {requests: {storage: 8Gi}}}}", silent: true,
	},
	"that gets another image": {
		was: "spec: {}", is: "spec: {slurmctld: {image: other}, template: {metadata: {labels: {a: b}}}}",
	},
	"that gets another key": {
		was: "spec: {}", is: "spec: {slurmKeyRef: {name: mine, key: slurm.key}}", found: nodeSets(nodeSet("gpu", 16)),
	},
	"that gets another JWT key": {was: "spec: {}", is: "spec: {jwtKeyRef: {name: mine, key: jwt.key}}"},
	"that leaves its Accounting and the key of it": {
		was: "spec: {accountingRef: {name: db}}", is: "spec: {}",
		found: existing(map[review.Target]metav1.Object{
			{Kind: review.AccountingKind, Name: "db"}: &slinkyv1beta1.Accounting{
				ObjectMeta: metav1.ObjectMeta{Name: "db"},
			},
		}),
	},
	"that joins an Accounting which is not there": {
		was: "spec: {}", is: "spec: {accountingRef: {name: db}}", found: missing(review.Target{
			Kind: review.AccountingKind, Name: "db",
		}),
	},
	"that leaves its Accounting": {
		was: "spec: {accountingRef: {name: db}, slurmKeyRef: {name: k, key: k}}",
		is:  "spec: {slurmKeyRef: {name: k, key: k}}",
	},
	"whose configuration alone changes": {
		was: "spec: {extraConf: SlurmdTimeout=60}", is: "spec: {extraConf: SlurmdTimeout=90}", silent: true,
	},
	"that gets a policy for Tokens": {
		was: "spec: {}", is: "spec: {tokenPolicy: {maxLifetime: 1h, deniedUsers: [root, slurm]}}",
	},
	"that no longer has a policy for Tokens": {
		was: "spec: {tokenPolicy: {maxLifetime: 1h}}", is: "spec: {}", silent: true,
	},
	"that gets more metrics": {was: "spec: {}", is: "spec: {metrics: {enabled: true}}", silent: true},
	"that names its key as before": {
		was: "spec: {}", is: "spec: {slurmKeyRef: {name: x-auth-slurm, key: slurm.key}}", silent: true,
	},
	"that renames the field of JWT": {
		was: "spec: {jwtHs256KeyRef: {name: k, key: k}}", is: "spec: {jwtKeyRef: {name: k, key: k}}", silent: true,
	},
}
