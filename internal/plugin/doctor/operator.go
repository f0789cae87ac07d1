package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// The labels of the operator's own objects, as the chart sets them.
const (
	labelComponent    = "app.kubernetes.io/component"
	operatorComponent = "operator"
	// OperatorSelector selects the Deployments of the operator and of its webhook.
	OperatorSelector = "app.kubernetes.io/name=slurm-operator"
	// OperatorLease is the name of the lease of the operator's leader.
	OperatorLease = "slurm-operator"
)

const operatorDocs = "docs/installation.md#the-operator"

// noOperator is what it means that nothing reconciles.
const noOperator = "running jobs go on; no change of a spec is applied, no failed pod is replaced, and tokens are " +
	"not renewed"

// operators finds an operator that does not run, or that does not watch a namespace.
func operators(s *Snapshot) []Finding {
	if !s.Deployments.Known || len(s.Objects.Controllers) == 0 {
		return nil
	}
	var findings []Finding
	var watching []*appsv1.Deployment
	for i := range s.Deployments.Items {
		if deployment := &s.Deployments.Items[i]; deployment.Labels[labelComponent] == operatorComponent {
			watching = append(watching, deployment)
		}
	}
	if len(watching) == 0 {
		return []Finding{{
			Severity: Error, Check: "OperatorMissing", Object: "Deployment/slurm-operator",
			Problem: "there is no Deployment of the operator in any namespace", Effect: noOperator,
			Advice: "install the chart slurm-operator",
			Fix: "helm install slurm-operator charts/slurm-operator --namespace slurm-operator " +
				"--create-namespace",
			Docs: operatorDocs,
		}}
	}
	for _, deployment := range watching {
		if deployment.Status.AvailableReplicas > 0 {
			continue
		}
		finding := Finding{
			Severity: Error, Check: "OperatorDown", Object: "Deployment/" + deployment.Name, Namespace: deployment.Namespace,
			Problem: "no pod of the operator is available", Effect: noOperator,
			Advice: "see why its pods do not run",
			Fix:    kubectl(deployment.Namespace, "describe", "pods", "--selector="+OperatorSelector),
			Docs:   "docs/runbooks/SlurmOperatorDown.md",
		}
		if wanted := deployment.Spec.Replicas; wanted != nil && *wanted == 0 {
			finding.Problem, finding.Advice = "the operator is scaled to 0 replicas", "start it"
			finding.Fix = kubectl(deployment.Namespace, "scale", "deployment", deployment.Name, "--replicas=1")
		}
		findings = append(findings, finding)
	}
	for _, namespace := range s.namespaces() {
		watched := slices.ContainsFunc(watching, func(deployment *appsv1.Deployment) bool {
			only := watchedNamespaces(deployment)
			return len(only) == 0 || slices.Contains(only, namespace)
		})
		if watched {
			continue
		}
		all := append(watchedNamespaces(watching[0]), namespace)
		findings = append(findings, Finding{
			Severity: Error, Check: "NamespaceNotWatched", Object: "Namespace/" + namespace, Namespace: namespace,
			Problem: "the operator watches only the namespaces " + strings.Join(all[:len(all)-1], ", "),
			Effect:  noOperator, Advice: "add the namespace to the value namespaces of the operator's chart",
			Fix: fmt.Sprintf("helm upgrade %s charts/slurm-operator --namespace %s --reuse-values --set namespaces='{%s}'",
				release(watching[0]), watching[0].Namespace, strings.Join(all, ",")),
			Docs: operatorDocs,
		})
	}
	return findings
}

// release returns the Helm release of an object of the operator.
func release(deployment *appsv1.Deployment) string {
	if name := deployment.Annotations["meta.helm.sh/release-name"]; name != "" {
		return name
	}
	return "slurm-operator"
}

// watchedNamespaces returns the namespaces that an operator is limited to; none if it watches all.
func watchedNamespaces(deployment *appsv1.Deployment) []string {
	for i := range deployment.Spec.Template.Spec.Containers {
		for _, argument := range deployment.Spec.Template.Spec.Containers[i].Args {
			if list, found := strings.CutPrefix(argument, "--namespaces="); found {
				return strings.Split(list, ",")
			}
		}
	}
	return nil
}

// leaseGrace is added to the duration of a lease, for clocks that differ and for slow API servers.
const leaseGrace = 30 * time.Second

// leaders finds an operator that runs, and whose leader does not renew its lease: all its pods hang, or none may.
func leaders(s *Snapshot) []Finding {
	var findings []Finding
	for i := range s.Leases.Items {
		lease := &s.Leases.Items[i]
		if lease.Name != OperatorLease || lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
			continue
		}
		valid := time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second + leaseGrace
		running := slices.ContainsFunc(s.Deployments.Items, func(deployment appsv1.Deployment) bool {
			return deployment.Namespace == lease.Namespace && deployment.Labels[labelComponent] == operatorComponent &&
				deployment.Status.AvailableReplicas > 0
		})
		if !running || s.Now.Sub(lease.Spec.RenewTime.Time) < valid {
			continue
		}
		findings = append(findings, Finding{
			Severity: Error, Check: "NoLeader", Object: "Lease/" + lease.Name, Namespace: lease.Namespace,
			Problem: "pods of the operator run, and none has renewed the lease of the leader for " +
				s.age(lease.Spec.RenewTime.Time),
			Effect: noOperator, Advice: "restart the operator, and see its log if this does not help",
			Fix:  kubectl(lease.Namespace, "rollout", "restart", "deployment", "--selector="+OperatorSelector),
			Docs: "docs/runbooks/SlurmOperatorDown.md",
		})
	}
	return findings
}

// webhooks finds webhook configurations whose webhook does not answer, or whose certificate expires.
func webhooks(s *Snapshot) []Finding {
	var findings []Finding
	for i := range s.Webhooks.Items {
		configuration := &s.Webhooks.Items[i]
		for j := range configuration.Webhooks {
			webhook := &configuration.Webhooks[j]
			service := webhook.ClientConfig.Service
			if service == nil || !reviewsOurs(webhook) {
				continue
			}
			if finding, found := s.unanswered(configuration.Name, webhook, service); found {
				findings = append(findings, finding)
			}
			if finding, found := s.untrusted(configuration, webhook, service); found {
				findings = append(findings, finding)
			}
			break // all webhooks of a configuration have the same Service and certificate
		}
	}
	return findings
}

func reviewsOurs(webhook *admissionv1.ValidatingWebhook) bool {
	return slices.ContainsFunc(webhook.Rules, func(rule admissionv1.RuleWithOperations) bool {
		return slices.Contains(rule.APIGroups, slinkyv1beta1.GroupName)
	})
}

const labelService = "kubernetes.io/service-name"

func (s *Snapshot) unanswered(
	name string, webhook *admissionv1.ValidatingWebhook, service *admissionv1.ServiceReference,
) (Finding, bool) {
	if !s.Endpoints.Known {
		return Finding{}, false
	}
	for i := range s.Endpoints.Items {
		slice := &s.Endpoints.Items[i]
		if slice.Namespace != service.Namespace || slice.Labels[labelService] != service.Name {
			continue
		}
		for j := range slice.Endpoints {
			if ready := slice.Endpoints[j].Conditions.Ready; ready == nil || *ready {
				return Finding{}, false
			}
		}
	}
	finding := Finding{
		Severity: Warning, Check: "WebhookDown", Object: "ValidatingWebhookConfiguration/" + name,
		Problem: fmt.Sprintf("the Service %s/%s of the webhook has no ready pod", service.Namespace, service.Name),
		Effect:  "objects are accepted without a review, each after a delay of some seconds; jobs are not affected",
		Advice:  "start the webhook again",
		Fix:     kubectl(service.Namespace, "rollout", "restart", "deployment", service.Name),
		Docs:    "docs/webhooks.md#when-it-is-down",
	}
	for i := range s.Deployments.Items {
		deployment := &s.Deployments.Items[i]
		if deployment.Namespace == service.Namespace && deployment.Name == service.Name &&
			deployment.Spec.Replicas != nil && *deployment.Spec.Replicas == 0 {
			finding.Fix = kubectl(service.Namespace, "scale", "deployment", service.Name, "--replicas=1")
		}
	}
	if policy := webhook.FailurePolicy; policy == nil || *policy == admissionv1.Fail {
		finding.Severity = Error
		finding.Effect = "every change of a custom resource is refused, also those that repair it; jobs are not affected"
	}
	return finding, true
}

// expirySoon is how long before its end a certificate is a finding. The webhook renews its own two months before.
const expirySoon = 14 * 24 * time.Hour

// untrusted finds a webhook that API servers do not trust, or soon will not.
func (s *Snapshot) untrusted(
	configuration *admissionv1.ValidatingWebhookConfiguration, webhook *admissionv1.ValidatingWebhook,
	service *admissionv1.ServiceReference,
) (Finding, bool) {
	finding := Finding{
		Severity: Warning, Check: "WebhookCertificate", Object: "ValidatingWebhookConfiguration/" + configuration.Name,
		Effect: "API servers do not reach the webhook: objects are accepted without a review",
		Advice: "replace the certificate: the webhook makes another one",
		Fix: kubectl(service.Namespace, "patch", "secret", service.Name+"-certificate", "--type=json",
			`--patch='[{"op": "remove", "path": "/data"}]'`),
		Docs: "docs/webhooks.md#certificates",
	}
	if policy := webhook.FailurePolicy; policy == nil || *policy == admissionv1.Fail {
		finding.Severity, finding.Effect = Error, "API servers do not reach the webhook: every change is refused"
	}
	if configuration.Annotations["cert-manager.io/inject-ca-from"] != "" {
		finding.Advice = "see why cert-manager does not renew it"
		finding.Fix = kubectl(service.Namespace, "describe", "certificates.cert-manager.io", service.Name)
	}
	last := lastExpiry(webhook.ClientConfig.CABundle)
	switch {
	case last.IsZero():
		finding.Problem = "its caBundle has no certificate, so API servers do not trust the webhook"
	case !s.Now.Before(last):
		finding.Problem = "the certificate in its caBundle expired " + s.age(last) + " ago"
	case last.Sub(s.Now) < expirySoon:
		finding.Severity, finding.Problem = Warning, "the certificate in its caBundle expires at "+
			last.UTC().Format(time.RFC3339)
	default:
		return Finding{}, false
	}
	return finding, true
}

// lastExpiry returns when the last certificate of a bundle expires; zero if there is none.
func lastExpiry(bundle []byte) time.Time {
	var last time.Time
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && certificate.NotAfter.After(last) {
			last = certificate.NotAfter
		}
	}
	return last
}
