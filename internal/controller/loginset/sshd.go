package loginset

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
)

// Names in the ConfigMap of sshd.
const (
	sshdConfigFile     = "sshd_config"
	authorizedKeysFile = "authorized_keys"
)

// sshdConfig is the configuration of sshd.
//
// The keys of root are printed by a command because sshd takes no file from a directory that everybody may write to,
// which the mounted directories of Kubernetes look like. The command runs at each login, so it prints what is there then.
func sshdConfig(set *slinkyv1beta1.LoginSet, hostKeys []string) string {
	config := sshd.NewConfig("spec.extraSshdConfig", set.Spec.ExtraSshdConfig)
	var keys []string
	for _, name := range hostKeys {
		keys = append(keys, "HostKey "+hostKeysPath+"/"+name)
	}
	config.Section("The same in all pods of the LoginSet.", keys...)
	config.Common()
	config.Section("From spec.rootSshAuthorizedKeys, besides root's own file.",
		"Match User root",
		"    AuthorizedKeysCommand /usr/bin/cat "+configurationPath+"/"+authorizedKeysFile,
		"    AuthorizedKeysCommandUser nobody")
	return config.String()
}

// digest changes with everything that a pod takes up only when it starts. It stands in the pod template for all to see,
// so it is keyed with what only the pods know: from a plain hash a password in sssd.conf could be guessed.
func digest(scope *scope, sshdConfig string) string {
	key := sha256.New()
	for _, name := range sshd.PrivateKeys(scope.hostKeys) {
		key.Write(scope.hostKeys.Data[name])
	}
	mac := hmac.New(sha256.New, key.Sum(nil))
	for _, part := range [][]byte{[]byte(sshdConfig), scope.sssdConf, scope.slurmKey} {
		fmt.Fprintf(mac, "%d:", len(part))
		mac.Write(part)
	}
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
