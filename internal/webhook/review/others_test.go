package review_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/webhook/review"
)

// noController is the result if Controller c does not exist.
var noController = missing(review.Target{Kind: review.ControllerKind, Name: "c"})

// prefixed returns a NodeSet that is named in Slurm after the prefix of its host names, and older than others.
func prefixed(name, prefix string) slinkyv1beta1.NodeSet {
	set := nodeSet(name, 0)
	set.Spec.Template.Spec.Raw = []byte(`{"hostname":"` + prefix + `"}`)
	set.Annotations = map[string]string{slinkyv1beta1.AnnotationSlurmName: prefix}
	return set
}

// policies returns a result with a Controller that has a policy for Tokens with the key jwt of the Secret keys.
func policies(policy slinkyv1beta1.TokenPolicy) review.Found {
	return review.Found{Policies: []review.Policy{{Controller: &slinkyv1beta1.Controller{
		ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: slinkyv1beta1.ControllerSpec{
			JWTKeyRef: &slinkyv1beta1.SecretKeyReference{Name: "keys", Key: "jwt"}, TokenPolicy: &policy,
		},
	}}}}
}

var nodeSetTests = map[string]test{
	"that is plain":          {is: "spec: {controllerRef: {name: c}}", silent: true},
	"without its Controller": {is: "spec: {controllerRef: {name: c}}", found: noController},
	"that names an Accounting": {is: "spec: {controllerRef: {name: c}}",
		found: review.Found{Objects: map[review.Target]review.Result{
			{Kind: review.ControllerKind, Name: "c"}: {Kind: review.AccountingKind},
		}}},
	"of another namespace's Controller": {is: "spec: {controllerRef: {name: c}}",
		found: review.Found{Objects: map[review.Target]review.Result{
			{Kind: review.ControllerKind, Name: "c"}: {InOtherNamespace: true},
		}}},
	"with a mistake in extraConf": {is: "spec: {extraConf: \"Weight=10 Gres\"}", refused: true},
	"with a schedule in an unknown time zone": {
		is: `spec: {extraConf: CPUs=1 RealMemory=1, elastic: {maxReplicas: 2, schedules: [
  {warmReplicas: 1, from: "07:00", to: "19:00", timeZone: Europe/Berlin},
  {warmReplicas: 1, from: "07:00", to: "19:00", timeZone: Europe/Belrin}]}}`, refused: true,
	},
	"with a node name in extraConf": {is: "spec: {extraConf: \"NodeName=a Weight=10\"}", refused: true},
	"with a mistake in its partition": {
		is: "spec: {partition: {enabled: true, config: \"Default=YES MaxTime\"}}", refused: true,
	},
	"with more memory than its limit": {
		is: "spec: {slurmd: {resources: {limits: {memory: 1Gi}}}, extraConf: RealMemory=1025}",
	},
	"with all its memory reserved": {
		is: "spec: {slurmd: {resources: {limits: {memory: 1Gi}}}, reservedMemory: 1Gi}", refused: true,
	},
	"with nodes in its partition":    {is: "spec: {partition: {enabled: true, config: \"Nodes=ALL\"}}", refused: true},
	"with a mistake in no partition": {is: "spec: {partition: {config: \"Default\"}}", silent: true},
	"with a partition of the Controller's": {
		is: "spec: {controllerRef: {name: c}, partition: {enabled: true}}",
		found: existing(
			map[review.Target]metav1.Object{{Kind: review.ControllerKind, Name: "c"}: &slinkyv1beta1.Controller{
				ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: slinkyv1beta1.ControllerSpec{
					ExtraConf: "partitionname=x Nodes=ALL",
				},
			}}),
	},
	"with host names of another": {
		is:    "spec: {controllerRef: {name: c}, template: {spec: {hostname: gpu-}}}",
		found: nodeSets(nodeSet("gpu", 0), nodeSet("x", 0), nodeSet("cpu", 0)),
	},
	"with a partition of the Controller's, by its host names": {
		is: "spec: {controllerRef: {name: c}, partition: {enabled: true}, template: {spec: {hostname: gpu-}}}",
		found: existing(
			map[review.Target]metav1.Object{{Kind: review.ControllerKind, Name: "c"}: &slinkyv1beta1.Controller{
				ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: slinkyv1beta1.ControllerSpec{
					ExtraConf: "PartitionName=gpu Nodes=ALL\nPartitionName=x Nodes=x",
				},
			}}),
	},
	"with a prefix of host names": {
		is:     "spec: {controllerRef: {name: c}, template: {spec: {hostname: dgx-}}}",
		found:  nodeSets(nodeSet("gpu", 0), nodeSet("x", 0)),
		silent: true,
	},
	"with a prefix that is the name of another": {
		is:    "spec: {controllerRef: {name: c}, template: {spec: {hostname: gpu}}}",
		found: nodeSets(nodeSet("gpu", 0), nodeSet("x", 0), nodeSet("cpu", 0)),
	},
	"with a name that is the prefix of another": {
		is:    "spec: {controllerRef: {name: c}}",
		found: nodeSets(prefixed("gpu", "x")),
	},
	"with sshd":                        {is: "spec: {ssh: {enabled: true}}", silent: true},
	"with taints for Kubernetes nodes": {is: "spec: {taintKubeNodes: true}"},
	"whose update is over": {
		is: "spec: {updateStrategy: {type: ScheduledUpdate, scheduledUpdate: {startTime: \"2030-01-31T11:00:00Z\", " +
			"duration: 1h}}}",
	},
	"whose update is to come": {
		is: "spec: {updateStrategy: {type: ScheduledUpdate, scheduledUpdate: {startTime: \"2030-01-31T11:00:00Z\", " +
			"duration: 2h}}}", silent: true,
	},
	"that gets another image": {
		status: "status: {replicas: 16}",
		was:    "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}}",
		is: "spec: {slurmd: {image: other}, extraConf: Weight=1, updateStrategy: {type: RollingUpdate, " +
			"rollingUpdate: {maxUnavailable: 2}}}",
	},
	"that gets another image on deletion": {
		status: "status: {replicas: 16}", was: "spec: {updateStrategy: {type: OnDelete}}",
		is: "spec: {slurmd: {image: other}, updateStrategy: {type: OnDelete}}",
	},
	"that gets another image later": {
		status: "status: {replicas: 16}", was: "spec: {}",
		is: "spec: {slurmd: {image: other}, updateStrategy: {type: ScheduledUpdate, scheduledUpdate: {startTime: " +
			"\"2030-01-31T22:00:00Z\", duration: 1h}}}",
	},
	"that gets another image now": {
		status: "status: {replicas: 16}", was: "spec: {}",
		is: "spec: {slurmd: {image: other}, updateStrategy: {type: ScheduledUpdate, scheduledUpdate: {startTime: " +
			"\"2030-01-31T11:30:00Z\", duration: 1h}}}",
	},
	"that gets another image without pods": {was: "spec: {}", is: "spec: {slurmd: {image: other}}", silent: true},
	"that is scaled": {
		status: "status: {replicas: 16}", was: "spec: {replicas: 16}", is: "spec: {replicas: 8}", silent: true,
	},
	"that gets other names": {
		status: "status: {replicas: 16}", was: "spec: {}", is: "spec: {scalingMode: DaemonSet, ordinalPadding: 3}",
	},
	"that no longer keeps claims": {
		was: "spec: {volumeClaimTemplates: [{metadata: {name: scratch}}]}",
		is: "spec: {volumeClaimTemplates: [{metadata: {name: scratch}}], persistentVolumeClaimRetentionPolicy: " +
			"{whenScaled: Delete, whenDeleted: Delete}}",
	},
	"that has no claims to keep": {
		was: "spec: {}", is: "spec: {persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}", silent: true,
	},
}

var loginSetTests = map[string]test{
	"that is plain":          {is: "spec: {controllerRef: {name: c}}", silent: true},
	"without its Controller": {is: "spec: {controllerRef: {name: c}}", found: noController},
	"without its sssd.conf": {
		is: "spec: {sssdConfRef: {name: sssd, key: sssd.conf}}", found: missing(review.Target{
			Kind: review.SecretKind, Name: "sssd",
		}),
	},
	"with keys that are none": {is: `spec:
  rootSshAuthorizedKeys: |
    # Administrators
    ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ000000000000000000000000000000000000000000 admin@example.com
    ssh-ed25519 AAAA
    admin@example.com`},
	"that gets another image": {
		status: "status: {replicas: 2}", was: "spec: {}", is: "spec: {login: {image: other}}",
	},
	"that gets another image without pods": {was: "spec: {}", is: "spec: {login: {image: other}}", silent: true},
	"that is scaled": {
		status: "status: {replicas: 2}", was: "spec: {replicas: 2}", is: "spec: {replicas: 3}", silent: true,
	},
}

var accountingTests = map[string]test{
	"that is plain": {is: "spec: {storageConfig: {host: db, username: slurm}}", silent: true},
	"whose references lead nowhere": {
		is: `spec:
  slurmKeyRef: {name: keys, key: slurm.key}
  jwksKeyRef: {name: jwks, key: jwks.json}
  storageConfig: {host: db, username: slurm, passwordKeyRef: {name: password, key: password}}`,
		found: missing(
			review.Target{Kind: review.SecretKind, Name: "keys"}, review.Target{
				Kind: review.SecretKind, Name: "password",
			},
			review.Target{Kind: review.ConfigMapKind, Name: "jwks"},
		),
	},
	"whose files for TLS do not exist": {
		is: `spec:
  storageConfig:
    host: db
    username: slurm
    tls: {caConfigMapRef: {name: ca, key: ca.crt}, clientCertificateRef: {name: client}}`,
		found: missing(review.Target{Kind: review.ConfigMapKind, Name: "ca"}, review.Target{
			Kind: review.SecretKind, Name: "client",
		}),
	},
	"with mistakes in extraConf": {
		is: `spec:
  storageConfig: {host: db, username: slurm}
  extraConf: |
    PurgeJobAfter=12months
    StoragePass=secret
    DebugLevel`, refused: true,
	},
	"that becomes external": {
		was: "spec: {storageConfig: {host: db, username: slurm}, slurmKeyRef: {name: k, key: k}}",
		is:  "spec: {external: true, externalConfig: {host: dbd.example.com}, slurmKeyRef: {name: k, key: k}}",
	},
	"that moves to another database": {
		was: "spec: {storageConfig: {host: db, port: 3306, database: slurm_acct_db, username: slurm}}",
		is:  "spec: {storageConfig: {host: db2, port: 3306, database: slurm_acct_db, username: slurm}}",
	},
	"that gets another key": {
		was: "spec: {storageConfig: {host: db}}",
		is:  "spec: {storageConfig: {host: db}, slurmKeyRef: {name: mine, key: slurm.key}}",
	},
}

var restAPITests = map[string]test{
	"that is plain":          {is: "spec: {controllerRef: {name: c}}", silent: true},
	"without its Controller": {is: "spec: {controllerRef: {name: c}}", found: noController},
	"without pods":           {is: "spec: {controllerRef: {name: c}, replicas: 0}"},
	"without its certificate": {
		is:    "spec: {tls: {certificateRef: {name: mine}}}",
		found: missing(review.Target{Kind: review.SecretKind, Name: "mine"}),
	},
	"with plain HTTP": {is: "spec: {controllerRef: {name: c}, tls: {plainHTTP: Allowed}}"},
}

var tokenTests = map[string]test{
	"that is plain": {is: "spec: {username: alice, jwtKeyRef: {name: keys, key: jwt}}", silent: true},
	"without its key": {
		is:    "spec: {username: alice, jwtKeyRef: {name: keys, key: jwt}}",
		found: missing(review.Target{Kind: review.SecretKind, Name: "keys"}),
	},
	"whose key is about to be generated": {
		is: "spec: {username: alice, jwtKeyRef: {name: c-auth-jwt, key: jwt_hs256.key}}", silent: true,
		found: review.Found{Objects: map[review.Target]review.Result{
			{Kind: review.SecretKind, Name: "c-auth-jwt"}: {}, {Kind: review.ControllerKind, Name: "c"}: {
				Object: &slinkyv1beta1.Controller{},
			},
		}},
	},
	"whose key nobody generates": {
		is: "spec: {username: alice, jwtKeyRef: {name: c-auth-jwt, key: jwt_hs256.key}}",
		found: missing(review.Target{Kind: review.SecretKind, Name: "c-auth-jwt"}, review.Target{
			Kind: review.ControllerKind, Name: "c",
		}),
	},
	"that would lie with its key": {
		is: "spec: {username: alice, jwtKeyRef: {name: keys, key: jwt}, secretRef: {name: keys}}", refused: true,
	},
	"whose Secret is somebody else's": {
		is: "spec: {username: alice, jwtKeyRef: {name: keys, key: jwt}}",
		found: existing(map[review.Target]metav1.Object{
			{Kind: review.SecretKind, Name: "x-jwt-alice"}: &metav1.PartialObjectMetadata{},
		}),
	},
	"whose Secret is its own": {
		was: "spec: {username: alice, jwtKeyRef: {name: keys, key: jwt}}",
		is:  "spec: {username: alice, lifetime: 1h, jwtKeyRef: {name: keys, key: jwt}}", silent: true,
		found: existing(
			map[review.Target]metav1.Object{{Kind: review.SecretKind,
				Name: "x-jwt-alice"}: &metav1.PartialObjectMetadata{
				ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "x", Controller: new(true)}}},
			}}),
	},
	"that a policy forbids": {
		is:    "spec: {username: root, lifetime: 2h, jwtKeyRef: {name: keys, key: jwt}}",
		found: policies(slinkyv1beta1.TokenPolicy{DeniedUsers: []slinkyv1beta1.PolicyUser{"root"}}),
	},
	"that lives longer than a policy allows": {
		is:    "spec: {username: root, lifetime: 2h, jwtKeyRef: {name: keys, key: jwt}}",
		found: policies(slinkyv1beta1.TokenPolicy{MaxLifetime: &metav1.Duration{Duration: time.Hour}}),
	},
	"that a policy allows": {
		is:    "spec: {username: alice, lifetime: 1h, jwtKeyRef: {name: keys, key: jwt}}",
		found: policies(slinkyv1beta1.TokenPolicy{AllowedUsers: []slinkyv1beta1.PolicyUser{"alice"}}), silent: true,
	},
	"with another key than the policy's": {
		is:    "spec: {username: root, jwtKeyRef: {name: others, key: jwt}}",
		found: policies(slinkyv1beta1.TokenPolicy{DeniedUsers: []slinkyv1beta1.PolicyUser{"root"}}), silent: true,
	},
	"that gets another user": {
		status: "status: {expiresAt: \"2030-01-31T13:00:00Z\"}",
		was:    "spec: {username: alice, jwtKeyRef: {name: keys, key: jwt}}",
		is:     "spec: {username: bob, jwtKeyRef: {name: keys, key: jwt}}",
	},
}
