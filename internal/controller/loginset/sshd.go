package loginset

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Names in the ConfigMap of sshd.
const (
	sshdConfigFile     = "sshd_config"
	authorizedKeysFile = "authorized_keys"
)

// sshdConfig is the configuration of sshd.
//
// Of two lines for one keyword sshd takes the first, so the user's lines stand before ours. But from the first Match on,
// lines hold for some logins only: that part of the user's lines stands behind ours.
//
// The keys of root are printed by a command because sshd takes no file from a directory that everybody may write to,
// which the mounted directories of Kubernetes look like. The command runs at each login, so it prints what is there then.
func sshdConfig(set *slinkyv1beta1.LoginSet, hostKeys []string) string {
	global, matches := splitAtMatch(set.Spec.ExtraSshdConfig)
	var config strings.Builder
	section := func(comment string, lines ...string) {
		lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
		if len(lines) > 0 {
			fmt.Fprintf(&config, "# %s\n%s\n", comment, strings.Join(lines, "\n"))
		}
	}
	section("From spec.extraSshdConfig, before the operator's lines, so that it wins.", global)
	var keys []string
	for _, name := range hostKeys {
		keys = append(keys, "HostKey "+hostKeysPath+"/"+name)
	}
	section("The same in all pods of the LoginSet.", keys...)
	section("As Debian has it.", "UsePAM yes", "KbdInteractiveAuthentication no", "PrintMotd no", "AcceptEnv LANG LC_*", "Subsystem sftp internal-sftp")
	section("From spec.extraSshdConfig, from its first Match on.", matches)
	section("From spec.rootSshAuthorizedKeys, besides root's own file.",
		"Match User root",
		"    AuthorizedKeysCommand /usr/bin/cat "+configurationPath+"/"+authorizedKeysFile,
		"    AuthorizedKeysCommandUser nobody")
	return config.String()
}

// splitAtMatch splits a configuration before its first Match line.
func splitAtMatch(config string) (global, matches string) {
	lines := strings.Split(strings.TrimRight(config, "\n"), "\n")
	first := slices.IndexFunc(lines, func(line string) bool {
		fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '=' })
		return len(fields) > 0 && strings.EqualFold(fields[0], "Match")
	})
	if first < 0 {
		first = len(lines)
	}
	return strings.Join(lines[:first], "\n"), strings.Join(lines[first:], "\n")
}

// digest changes with everything that a pod takes up only when it starts. It stands in the pod template for all to see,
// so it is keyed with what only the pods know: from a plain hash a password in sssd.conf could be guessed.
func digest(scope *scope, sshdConfig string) string {
	key := sha256.New()
	for _, name := range privateKeys(scope.hostKeys) {
		key.Write(scope.hostKeys.Data[name])
	}
	mac := hmac.New(sha256.New, key.Sum(nil))
	for _, part := range [][]byte{[]byte(sshdConfig), scope.sssdConf, scope.slurmKey} {
		fmt.Fprintf(mac, "%d:", len(part))
		mac.Write(part)
	}
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
