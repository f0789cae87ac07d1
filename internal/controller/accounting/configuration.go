package accounting

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// databaseFile is the name of slurmdbd's own configuration file.
const databaseFile = "slurmdbd.conf"

// A configuration is what slurmdbd starts with.
type configuration struct {
	// files go into the Secret, by name.
	files map[string][]byte
	// digest changes with any of the files, the password or the keys.
	digest string
}

// configure makes slurmdbd.conf, and the slurm.conf with which the probe asks slurmdbd a question.
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

// clientConf is the configuration of a client in slurmdbd's own pod: it authenticates as slurmdbd does, and belongs to no
// cluster.
func clientConf(database slurmconf.Document) slurmconf.Document {
	conf := slurmconf.Clients(database)
	conf.Set("ClusterName", "none")
	conf.Set("SlurmctldHost", "localhost")
	conf.Set("AccountingStorageType", "accounting_storage/slurmdbd")
	conf.Set("AccountingStorageHost", "localhost")
	conf.Set("AccountingStoragePort", strconv.Itoa(naming.PortSlurmdbd))
	return conf
}

// digest is keyed with the key of the cluster, because it lies where many can read it and a password could be guessed from
// a plain hash.
func digest(scope *scope, files map[string][]byte) string {
	slurmKey := value(scope.slurmKey, scope.keys.Slurm)
	hash := hmac.New(sha256.New, slurmKey)
	for _, content := range [][]byte{
		files[databaseFile], files[slurmconf.FileName], slurmKey, value(scope.jwtKey, scope.keys.JWT), []byte(scope.jwks),
	} {
		fmt.Fprintf(hash, "%d\n", len(content))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}
