package slurmconf

import (
	"fmt"
	"strconv"
	"strings"
)

// A Database holds everything that slurmdbd.conf is generated from.
type Database struct {
	// Host is the host name of slurmdbd's pod.
	Host string
	// Port is the port that slurmdbd listens on.
	Port int
	// SlurmUser is the user that slurmdbd runs as.
	SlurmUser string
	// JWKS adds a set of further keys for auth/jwt.
	JWKS bool
	// Storage is the address of the MariaDB or MySQL server.
	Storage Endpoint
	// User, Password and Name are those of the database.
	User, Password, Name string
	// TLS encrypts the connection to the database, and verifies the server's certificate with the CAs in
	// DatabaseCAFile. ClientCertificate also presents the certificate in DatabaseCertificateFile.
	TLS, ClientCertificate bool
	// ExtraConf holds the administrator's additions.
	ExtraConf string
}

// BuildDatabase generates slurmdbd.conf, which contains the password and so belongs into a Secret. Errors never show
// it.
func BuildDatabase(database Database) (Document, error) {
	var d Document
	d.Set("DbdHost", database.Host)
	d.Set("DbdPort", strconv.Itoa(database.Port))
	d.Set("SlurmUser", database.SlurmUser)
	d.Set("PidFile", SlurmdbdPidFile)
	setAuthentication(&d, database.JWKS)
	tokens := map[string][]string{"authinfo": {"use_client_ids"}}
	d.Set("AuthInfo", tokens["authinfo"][0])
	d.Set("StorageType", "accounting_storage/mysql")
	d.Set("StorageHost", storageHost(database))
	d.Set("StoragePort", strconv.Itoa(database.Storage.Port))
	d.Set("StorageUser", database.User)
	d.Set("StoragePass", database.Password)
	d.Set("StorageLoc", database.Name)
	if database.TLS {
		tokens["storageparameters"] = storageParameters(database)
		d.Set("StorageParameters", strings.Join(tokens["storageparameters"], ","))
	}
	var faults []error
	for entry := range d.All() {
		if err := checkValue(entry.Value()); err != nil {
			faults = append(faults, fmt.Errorf("the value of %s cannot be used: %w; change it", entry.Key(), err))
		}
	}
	m := merger{own: d, owned: databaseKeys, tokens: tokens, faults: faults}
	return m.merge(database.ExtraConf)
}

// storageHost returns the host for the client library. With only the parameters below, MariaDB Connector/C encrypts the
// connection and verifies nothing, and Slurm has no parameter for that. But since 3.3 the library reads a host with a
// semicolon as a connection string, which has one. Other libraries look for a host of this name, and find none.
func storageHost(database Database) string {
	if !database.TLS {
		return database.Storage.Host
	}
	return "host=" + database.Storage.Host + ";ssl-verify-server-cert=1"
}

// storageParameters returns the files that Slurm passes to the client library.
func storageParameters(database Database) []string {
	parameters := []string{"SSL_CA=" + DatabaseCAFile}
	if database.ClientCertificate {
		parameters = append(parameters, "SSL_CERT="+DatabaseCertificateFile, "SSL_KEY="+DatabaseKeyFile)
	}
	return parameters
}

// BuildCgroup generates cgroup.conf. The administrator's text is used unchanged. Without it, slurmd does not use
// cgroups, because an ordinary pod may not change them.
func BuildCgroup(text string) (Document, error) {
	document, err := Parse(text)
	if len(document.entries) == 0 {
		document.Set("CgroupPlugin", "disabled")
	}
	return document, err
}
