package controlplane

import (
	"cmp"
	"net"
	"strconv"
)

// auditPolicy records user, verb and object of requests, without bodies. It omits leases and events, which every
// cluster writes all the time.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  resources: [{group: coordination.k8s.io, resources: [leases]}, {group: "", resources: [events]},
    {group: events.k8s.io}]
- level: None
  nonResourceURLs: ["/*"]
- level: Metadata
`

func (p Plane) etcdArguments() []string {
	client := "http://" + net.JoinHostPort(p.Address, strconv.Itoa(etcdPort))
	peer := "http://" + net.JoinHostPort(p.Address, strconv.Itoa(peerPort))
	return []string{
		"--data-dir=" + p.file("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		// A test cluster that loses power is re-created, so it need not wait for its disk.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=5m",
		"--log-level=warn",
	}
}

func (p Plane) apiserverArguments() []string {
	return []string{
		"--etcd-servers=http://" + net.JoinHostPort(p.Address, strconv.Itoa(etcdPort)),
		"--bind-address=" + p.Address,
		"--advertise-address=" + p.Address,
		"--secure-port=" + strconv.Itoa(securePort),
		"--service-cluster-ip-range=" + p.ServiceCIDR,
		"--tls-cert-file=" + p.file("pki/apiserver.crt"),
		"--tls-private-key-file=" + p.file("pki/apiserver.key"),
		"--client-ca-file=" + p.file("pki/ca.crt"),
		"--kubelet-certificate-authority=" + p.file("pki/ca.crt"),
		"--kubelet-client-certificate=" + p.file("pki/apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + p.file("pki/apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=" + p.file("pki/service-account.key"),
		"--service-account-key-file=" + p.file("pki/service-account.pub"),
		"--requestheader-client-ca-file=" + p.file("pki/ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.file("pki/front-proxy-client.crt"),
		"--proxy-client-key-file=" + p.file("pki/front-proxy-client.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		// No kube-proxy runs next to the API server: it reaches webhooks at the addresses of their pods.
		"--enable-aggregator-routing=true",
		"--audit-policy-file=" + p.file("audit-policy.yaml"),
		"--audit-log-path=" + p.AuditLog(),
		"--audit-log-mode=batch",
		// Tests count requests in a single file, so it is never rotated.
		"--audit-log-maxsize=0",
	}
}

// clientRates raises the rate limits of Kubernetes' own controllers, so that comparisons with them are fair.
func clientRates() []string { return []string{"--kube-api-qps=500", "--kube-api-burst=1000"} }

func (p Plane) controllerManagerArguments() []string {
	return append([]string{
		"--bind-address=" + p.Address,
		"--kubeconfig=" + p.file("pki/controller-manager.kubeconfig"),
		"--authentication-kubeconfig=" + p.file("pki/controller-manager.kubeconfig"),
		"--authorization-kubeconfig=" + p.file("pki/controller-manager.kubeconfig"),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
		"--root-ca-file=" + p.file("pki/ca.crt"),
		"--service-account-private-key-file=" + p.file("pki/service-account.key"),
		"--cluster-signing-cert-file=" + p.file("pki/ca.crt"),
		"--cluster-signing-key-file=" + p.file("pki/ca.key"),
		"--service-cluster-ip-range=" + p.ServiceCIDR,
		"--cluster-cidr=" + p.PodCIDR,
		"--allocate-node-cidrs=false",
		"--node-monitor-grace-period=" + cmp.Or(p.NodeGracePeriod, defaultNodeGracePeriod).String(),
		// These controllers read all pods of a Service whenever one of them changes.
		"--endpointslice-updates-batch-period=1s", "--endpoint-updates-batch-period=1s",
	}, clientRates()...)
}

func (p Plane) schedulerArguments() []string {
	return append([]string{
		"--bind-address=" + p.Address,
		"--kubeconfig=" + p.file("pki/scheduler.kubeconfig"),
		"--authentication-kubeconfig=" + p.file("pki/scheduler.kubeconfig"),
		"--authorization-kubeconfig=" + p.file("pki/scheduler.kubeconfig"),
		"--leader-elect=false",
	}, clientRates()...)
}
