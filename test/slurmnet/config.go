package slurmnet

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"text/template"
)

// slurmUser is the uid and gid of the Slurm user in Debian's packages, and so in our images.
const slurmUser = 64030

// authentication is the part that slurm.conf and slurmdbd.conf share.
const authentication = `
AuthType=auth/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt_hs256.key
SlurmUser=slurm
`

// slurmConf uses no cgroups, so that it works on hosts without a delegated cgroup tree.
var slurmConf = template.Must(template.New("slurm.conf").Parse(authentication + `
ClusterName=slurmnet
SlurmctldHost=slurmctld
SlurmctldParameters=enable_configless,reconfig_on_restart
SlurmctldPidFile=/run/slurmctld/slurmctld.pid
CredType=cred/slurm
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
ProctrackType=proctrack/linuxproc
JobAcctGatherType=jobacct_gather/linux
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
MaxNodeCount={{.MaxNodes}}
{{- if .Accounting}}
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=slurmdbd
{{- end}}
{{- if .Metrics}}
MetricsType=metrics/openmetrics
{{- end}}
{{- if .IPv6}}
CommunicationParameters=EnableIPv6
{{- end}}
{{- if .CloudNodes}}
NodeName=cloud-[0-{{.LastCloudNode}}] State=CLOUD CPUs=8 RealMemory=32768
{{- end}}
{{- if .NodeLine}}
NodeName=node-[0-{{.LastNode}}] {{.NodeLine}}
{{- end}}
PartitionName=all Nodes=ALL Default=YES
{{.ExtraConf}}
`))

const slurmdbdConf = authentication + `
DbdHost=slurmdbd
PidFile=/run/slurmdbd/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=mariadb
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
`

func (o Options) slurmdbdConf() string {
	if o.IPv6 {
		return slurmdbdConf + "CommunicationParameters=EnableIPv6\n"
	}
	return slurmdbdConf
}

func (o Options) slurmConf() (string, error) {
	var conf strings.Builder
	err := slurmConf.Execute(&conf, map[string]any{
		"Accounting":    o.Accounting,
		"Metrics":       o.Version != "24.11", // it does not support them
		"IPv6":          o.IPv6,
		"CloudNodes":    o.CloudNodes,
		"LastCloudNode": o.CloudNodes - 1,
		"NodeLine":      o.NodeLine,
		"LastNode":      o.Nodes - 1,
		"MaxNodes":      o.Nodes + o.CloudNodes + 100, // room for nodes that a test creates
		"ExtraConf":     o.ExtraConf,
	})
	return conf.String(), err
}

// configure writes each host's files. Only hosts that need a key get it.
func (c *Cluster) configure(opts Options) error {
	conf, err := opts.slurmConf()
	if err != nil {
		return err
	}
	c.jwtKey = randomBytes(32)
	slurmKey := randomBytes(1024)
	// The test needs an entry too, because Slurm looks up the names of its peers and is slow if it does not find them.
	hosts := []string{"127.0.0.1 localhost", "::1 localhost", c.sandbox.address(outside) + " test"}
	for _, daemon := range c.daemons {
		hosts = append(hosts, daemon.address+" "+daemon.Name)
	}
	for _, daemon := range c.daemons {
		files := []file{
			{"/etc/hosts", strings.Join(hosts, "\n") + "\n", 0, 0o644},
			{"/etc/resolv.conf", "", 0, 0o644},
		}
		key := file{"/etc/slurm/slurm.key", string(slurmKey), slurmUser, 0o600}
		jwtKey := file{"/etc/slurm/jwt_hs256.key", string(c.jwtKey), slurmUser, 0o600}
		config := file{"/etc/slurm/slurm.conf", conf, 0, 0o644}
		switch daemon {
		case c.Slurmctld:
			files = append(files, key, jwtKey, config, file{
				"/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n", 0, 0o644,
			})
			for name, content := range opts.Files {
				files = append(files, file{"/etc/slurm/" + name, content, 0, 0o644})
			}
		case c.Slurmdbd:
			files = append(files, key, jwtKey, file{
				"/etc/slurm/slurmdbd.conf", opts.slurmdbdConf(), slurmUser, 0o600,
			})
		case c.Slurmrestd:
			files = append(files, config)
		case c.MariaDB:
		default:
			files = append(files, key)
		}
		for _, file := range files {
			if err := file.write(c.sandbox.path(daemon.root())); err != nil {
				return fmt.Errorf("configuring %s: %w", daemon.Name, err)
			}
		}
	}
	return nil
}

// file is a file on a host; owner is both its uid and its gid.
type file struct {
	path, content string
	owner         int
	mode          os.FileMode
}

func (f file) write(root string) error {
	path := root + f.path
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(f.content), f.mode); err != nil {
		return err
	}
	return os.Chown(path, f.owner, f.owner)
}

func randomBytes(count int) []byte {
	content := make([]byte, count)
	_, _ = rand.Read(content) // never fails
	return content
}
