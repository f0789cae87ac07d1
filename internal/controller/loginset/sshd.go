package loginset

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
)

// Keys of sshd's ConfigMap.
const (
	sshdConfigFile = "sshd_config"
	// startFile is the script that runs in the login container.
	startFile          = "start"
	authorizedKeysFile = "authorized_keys"
)

// sshdConfig returns the configuration of sshd.
//
// A command prints root's authorized keys, because sshd rejects files in world-writable directories, as which
// Kubernetes' mounts appear. The command runs at each login, so it prints the current keys.
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

// digest returns a hash of everything that a pod reads only when it starts. It is keyed with the host keys, because it
// is visible in the pod template and a password in sssd.conf could be guessed from a plain hash.
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
