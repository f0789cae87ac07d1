package accounting

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// databaseFile is the name of slurmdbd's own configuration file.
const databaseFile = "slurmdbd.conf"

// A configuration is the set of files that slurmdbd starts with.
type configuration struct {
	// files are the contents of the Secret, by name.
	files map[string][]byte
	// digest changes with any of the files, the password, the keys or the certificates.
	digest string
}

// configure builds slurmdbd.conf, and the slurm.conf with which the probe queries slurmdbd.
func configure(scope *scope) (configuration, error) {
	from := clusterconf.Database(scope.accounting)
	from.Password = scope.password
	database, err := slurmconf.BuildDatabase(from)
	if err != nil {
		return configuration{}, err
	}
	files := map[string][]byte{
		databaseFile:       []byte(database.Render()),
		slurmconf.FileName: []byte(clientConf(database).Render()),
	}
	return configuration{files: files, digest: digest(scope, files)}, nil
}

// clientConf returns the configuration of a client in slurmdbd's own pod. It authenticates like slurmdbd and is not
// part of any cluster.
func clientConf(database slurmconf.Document) slurmconf.Document {
	conf := slurmconf.Clients(database)
	conf.Set("ClusterName", "none")
	conf.Set("SlurmctldHost", "localhost")
	conf.Set("AccountingStorageType", "accounting_storage/slurmdbd")
	conf.Set("AccountingStorageHost", "localhost")
	conf.Set("AccountingStoragePort", strconv.Itoa(naming.PortSlurmdbd))
	return conf
}

// digest returns a hash of the files, the password and the keys. It is keyed with the cluster's key, because it is
// visible in the pod template and a password could be guessed from a plain hash.
func digest(scope *scope, files map[string][]byte) string {
	slurmKey := value(scope.slurmKey, scope.keys.Slurm)
	hash := hmac.New(sha256.New, slurmKey)
	for _, content := range [][]byte{
		files[databaseFile], files[slurmconf.FileName], slurmKey, value(scope.jwtKey, scope.keys.JWT),
		[]byte(scope.jwks),
	} {
		fmt.Fprintf(hash, "%d\n", len(content))
		hash.Write(content)
	}
	// Without TLS nothing is added, so that the digest is that of earlier versions and no pod is replaced.
	for _, file := range slices.Sorted(maps.Keys(scope.tls)) {
		fmt.Fprintf(hash, "%s %d\n", file, len(scope.tls[file]))
		hash.Write(scope.tls[file])
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}
