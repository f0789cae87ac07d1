package node

import (
	"fmt"
	"path/filepath"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/test/cluster/network"
	"github.com/slurm-operator/slurm-operator/test/cluster/pki"
)

// PauseImage keeps the namespaces of a pod alive.
const PauseImage = "devcluster/pause:1"

// LocalPathDir is the directory for volumes of the default StorageClass on a node.
const LocalPathDir = "/var/local-path"

// mountTargets are the directories that a node mounts its own over; they are created on the host if they do not exist.
var mountTargets = []string{
	"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods", "/var/log/containers",
	"/etc/cni/net.d", "/etc/cni", "/run/containerd", LocalPathDir,
}

// files returns the node's configuration files by their names in its directory.
func (n Node) files(authority *pki.Authority) (map[string]string, error) {
	plugin, err := binaries.Find(n.Binaries, "ptp")
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"containerd.toml": n.containerdConfig(filepath.Dir(plugin)),
		"certs.d/_default/hosts.toml": fmt.Sprintf("server = %q\n[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n",
			n.Registry, n.Registry),
		"cni/10-pods.conflist": n.cniConfig(),
		"kubelet.yaml":         n.kubeletConfig(authority),
		"kube-proxy.yaml":      n.kubeProxyConfig(authority),
		"resolv.conf":          "",
	}, nil
}

func (n Node) containerdConfig(pluginDir string) string {
	return fmt.Sprintf(`version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "/run/containerd/containerd.sock"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = %[1]q

[plugins."io.containerd.cri.v1.images".registry]
config_path = %[2]q

[plugins."io.containerd.cri.v1.runtime"]
# The host may forbid lowering the OOM score of a process.
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [%[3]q]
conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
`, PauseImage, n.path("certs.d"), pluginDir)
}

func (n Node) cniConfig() string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {"type": "ptp", "mtu": 1500, "ipam": {
      "type": "host-local",
      "ranges": [[{"subnet": %q}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, n.Wire.PodCIDR())
}

func (n Node) kubeletConfig(authority *pki.Authority) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /%[1]s
failCgroupV1: false
failSwapOn: false
clusterDNS: [%[2]s]
clusterDomain: cluster.local
resolvConf: %[3]s
address: %[4]s
healthzBindAddress: %[4]s
tlsCertFile: %[5]s
tlsPrivateKeyFile: %[6]s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[7]s}
authorization: {mode: Webhook}
serializeImagePulls: false
nodeLeaseDurationSeconds: 20
# The nodes share one disk with everything else on the host: its fill level says nothing about the cluster.
evictionHard: {nodefs.available: "1Mi", imagefs.available: "1Mi", nodefs.inodesFree: "1", memory.available: "100Mi"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`, n.cgroup(), network.DNSAddress, n.path("resolv.conf"), n.Wire.Address(),
		authority.File(n.Name+".crt"), authority.File(n.Name+".key"), authority.File("ca.crt"))
}

func (n Node) kubeProxyConfig(authority *pki.Authority) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: %s}
hostnameOverride: %s
mode: nftables
clusterCIDR: %s
bindAddress: %[4]s
healthzBindAddress: %[4]s
metricsBindAddress: %[4]s
# The connection tracking limits belong to the host.
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, authority.File(n.Name+"-proxy.kubeconfig"), n.Name, network.PodCIDR, n.Wire.Address())
}
