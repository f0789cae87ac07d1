package node

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/slurm-operator/slurm-operator/test/cluster/network"
)

// PauseImage keeps the namespaces of a pod alive.
const PauseImage = "devcluster/pause:1"

// LocalPathDir is the directory for volumes of the default StorageClass on a node.
const LocalPathDir = "/var/local-path"

// mountTargets are the directories that a node mounts its own over; they are created on the host if they do not exist.
var mountTargets = []string{
	"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods", "/var/log/containers",
	networkDir, "/etc/cni", "/run/containerd", LocalPathDir,
}

// networkDir is the directory for the configuration of pod networks.
const networkDir = "/etc/cni/net.d"

// config is what the configuration files of a node depend on. Its paths are those on the node.
type config struct {
	name, address, podCIDR, registry string
	// directory has the configuration files, certificates the certificates and keys, plugins the network plugins.
	directory, certificates, plugins string
	// cgroup is the cgroup of all pods.
	cgroup string
	// runtime is the program that runs containers.
	runtime string
	// containerd is the part of containerd's configuration that depends on the type of the node.
	containerd string
	// taints are the node's taints, as a list in YAML.
	taints string
}

// files returns the configuration files by their names in the node's directory.
func (c config) files() map[string]string {
	return map[string]string{
		"containerd.toml":             c.containerdConfig(),
		"certs.d/_default/hosts.toml": registryConfig(c.registry),
		"cni/10-pods.conflist":        c.cniConfig(),
		"kubelet.yaml":                c.kubeletConfig(),
		"kube-proxy.yaml":             c.kubeProxyConfig(),
		"resolv.conf":                 "",
	}
}

// registryConfig lets containerd pull from the registry with a URL.
func registryConfig(url string) string {
	return fmt.Sprintf("server = %q\n[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", url, url)
}

// UseRegistry makes the node pull images whose names start with an address from the registry at that address, which has
// no TLS. It takes effect with the next pull.
func (n Node) UseRegistry(address string) error {
	path := n.path("certs.d/" + address + "/hosts.toml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(registryConfig("http://"+address)), 0o644)
}

func (c config) path(name string) string { return filepath.Join(c.directory, name) }

func (c config) certificate(name string) string { return filepath.Join(c.certificates, name) }

// daemons returns the node's daemons. Their paths, environments and logs are not set.
func (c config) daemons() []daemon {
	return []daemon{
		{Name: Containerd, Args: []string{"--config=" + c.path("containerd.toml")}},
		{Name: Kubelet, Args: []string{
			"--config=" + c.path("kubelet.yaml"),
			"--kubeconfig=" + c.certificate(c.name+".kubeconfig"),
			"--hostname-override=" + c.name,
			"--node-ip=" + c.address,
		}},
		{Name: KubeProxy, Args: []string{"--config=" + c.path("kube-proxy.yaml")}},
	}
}

func (c config) containerdConfig() string {
	return fmt.Sprintf(`version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "/run/containerd/containerd.sock"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = %[1]q

[plugins."io.containerd.cri.v1.images".registry]
config_path = %[2]q

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [%[3]q]
conf_dir = %[4]q

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = %[5]q
SystemdCgroup = false

%[6]s`, PauseImage, c.path("certs.d"), c.plugins, networkDir, c.runtime, c.containerd)
}

func (c config) cniConfig() string {
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
`, c.podCIDR)
}

func (c config) kubeletConfig() string {
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
registerWithTaints: %[8]s
serializeImagePulls: false
nodeLeaseDurationSeconds: 20
# The nodes share one disk with everything else on the host: its fill level says nothing about the cluster.
evictionHard: {nodefs.available: "1Mi", imagefs.available: "1Mi", nodefs.inodesFree: "1", memory.available: "100Mi"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`, c.cgroup, network.DNSAddress, c.path("resolv.conf"), c.address,
		c.certificate(c.name+".crt"), c.certificate(c.name+".key"), c.certificate("ca.crt"), c.taints)
}

func (c config) kubeProxyConfig() string {
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
`, c.certificate(c.name+"-proxy.kubeconfig"), c.name, network.PodCIDR, c.address)
}
