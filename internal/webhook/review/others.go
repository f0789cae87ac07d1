package review

import (
	"strings"

	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/tokenpolicy"
)

// LoginSets reviews LoginSets.
var LoginSets = Reviewer[*slinkyv1beta1.LoginSet]{
	Spec: func(set *slinkyv1beta1.LoginSet) any { return set.Spec },
	References: func(set *slinkyv1beta1.LoginSet) []Reference {
		return append(secretKey("spec.sssdConfRef", set.Spec.SSSDConfRef, "no pod is created"),
			named("spec.controllerRef.name", ControllerKind, set.Spec.ControllerRef.Name, "no pod is created"))
	},
	Cautions: loginSetCautions,
	Changes:  loginSetChanges,
}

// loginSetCautions returns warnings about keys that sshd would silently ignore.
func loginSetCautions(set *slinkyv1beta1.LoginSet, _ Found) []Finding {
	var findings []Finding
	number := 0
	for line := range strings.Lines(set.Spec.RootSSHAuthorizedKeys) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err != nil {
			findings = append(findings, find("spec.rootSshAuthorizedKeys", "",
				"line %d is not a public key, and sshd ignores it; write a line as in authorized_keys, such as "+
					"ssh-ed25519 AAAA… admin@example.com", number))
		}
	}
	return findings
}

// RestAPIs reviews RestApis.
var RestAPIs = Reviewer[*slinkyv1beta1.RestApi]{
	Spec: func(api *slinkyv1beta1.RestApi) any { return api.Spec },
	References: func(api *slinkyv1beta1.RestApi) []Reference {
		references := []Reference{
			named("spec.controllerRef.name", ControllerKind, api.Spec.ControllerRef.Name, "no pod is created"),
		}
		if given := api.Spec.TLS.CertificateRef; given != nil {
			references = append(references, named("spec.tls.certificateRef.name", SecretKind, given.Name,
				"pods keep their certificate, and the operator has no connection to Slurm"))
		}
		return references
	},
	Cautions: restAPICautions,
}

// restAPICautions returns warnings about settings that take the operator's connection away or expose tokens.
func restAPICautions(api *slinkyv1beta1.RestApi, _ Found) []Finding {
	var findings []Finding
	if api.Spec.Replicas != nil && *api.Spec.Replicas == 0 {
		findings = append(findings, find("spec.replicas", "0",
			"the operator reaches Slurm through slurmrestd: without any, no node is drained, so none is updated or "+
				"scaled in; use 1 or more"))
	}
	if api.Spec.TLS.PlainHTTP == slinkyv1beta1.PlainHTTPAllowed {
		findings = append(findings, find("spec.tls.plainHTTP", string(slinkyv1beta1.PlainHTTPAllowed),
			"tokens in requests without TLS can be read on the network; change clients to https://, then remove it"))
	}
	return findings
}

// Accountings reviews Accountings.
var Accountings = Reviewer[*slinkyv1beta1.Accounting]{
	Spec:       func(accounting *slinkyv1beta1.Accounting) any { return accounting.Spec },
	References: accountingReferences,
	Faults:     accountingFaults,
	Changes:    accountingChanges,
}

func accountingReferences(accounting *slinkyv1beta1.Accounting) []Reference {
	const until = "slurmdbd does not start"
	spec := &accounting.Spec
	references := secretKey("spec.slurmKeyRef", spec.SlurmKeyRef, until)
	references = append(references, secretKey("spec.jwtKeyRef", spec.JWTKey(), until)...)
	references = append(references, configMapKey("spec.jwksKeyRef", spec.JWKSKeyRef, until)...)
	if spec.StorageConfig != nil && !spec.External {
		references = append(references,
			secretKey("spec.storageConfig.passwordKeyRef", spec.StorageConfig.PasswordKeyRef, until)...)
		references = append(references, storageTLS(spec.StorageConfig.TLS, until)...)
	}
	return references
}

// storageTLS returns the references for TLS to the database.
func storageTLS(tls *slinkyv1beta1.StorageTLS, until string) []Reference {
	if tls == nil {
		return nil
	}
	const field = "spec.storageConfig.tls."
	references := append(secretKey(field+"caSecretRef", tls.CASecretRef, until),
		configMapKey(field+"caConfigMapRef", tls.CAConfigMapRef, until)...)
	if client := tls.ClientCertificateRef; client != nil {
		references = append(references, named(field+"clientCertificateRef.name", SecretKind, client.Name, until))
	}
	return references
}

// accountingFaults returns the lines that are invalid in any slurmdbd.conf.
func accountingFaults(accounting *slinkyv1beta1.Accounting, _ Found) []Finding {
	spec := &accounting.Spec
	if spec.External || spec.StorageConfig == nil {
		return nil
	}
	_, err := slurmconf.BuildDatabase(clusterconf.Database(accounting))
	return lines("spec.extraConf", err)
}

// Tokens reviews Tokens.
var Tokens = Reviewer[*slinkyv1beta1.Token]{
	Spec: func(token *slinkyv1beta1.Token) any { return token.Spec },
	References: func(token *slinkyv1beta1.Token) []Reference {
		return append(secretKey("spec.jwtKeyRef", token.Spec.JWTKey(), "no token is signed"),
			lookUp(SecretKind, naming.TokenSecret(token).Name))
	},
	Policies: true,
	Faults:   tokenFaults,
	Cautions: tokenCautions,
	Changes:  tokenChanges,
}

func tokenFaults(token *slinkyv1beta1.Token, _ Found) []Finding {
	secret, key := naming.TokenSecret(token).Name, token.Spec.JWTKey()
	if key == nil || secret != key.Name {
		return nil
	}
	return []Finding{find("spec.secretRef.name", secret,
		"this is the Secret of the key that signs the token, and anyone who may read the token could sign others; "+
			"choose another name")}
}

func tokenCautions(token *slinkyv1beta1.Token, found Found) []Finding {
	return append(secretCautions(token, found), policyCautions(token, found)...)
}

// policyCautions returns a warning for each policy that forbids the Token, because it is signed only when none does.
func policyCautions(token *slinkyv1beta1.Token, found Found) []Finding {
	var findings []Finding
	for _, policy := range found.Policies {
		if !tokenpolicy.Governs(policy.Controller, policy.Accounting, token) {
			continue
		}
		if refusal := tokenpolicy.Check(policy.Controller, token); refusal != nil {
			findings = append(findings, find(refusal.Path, "", "no token is issued: %v", refusal.Err))
		}
	}
	return findings
}

func secretCautions(token *slinkyv1beta1.Token, found Found) []Finding {
	secret := naming.TokenSecret(token).Name
	taken := found.Objects[Target{SecretKind, secret}].Object
	if taken == nil || len(tokenFaults(token, found)) > 0 || metav1.IsControlledBy(taken, token) && token.UID != "" {
		return nil
	}
	return []Finding{find("spec.secretRef.name", secret,
		"a Secret of this name exists and is not owned by this Token, so no token is written; delete it, or "+
			"choose another name")}
}
