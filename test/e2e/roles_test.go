//go:build e2e

package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/test/cluster"
	"github.com/slurm-operator/slurm-operator/test/cluster/audit"
)

var compareRoles = flag.Bool("roles", false,
	"after all tests, compare the granted permissions with those used since our own cluster was started")

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	fmt.Println(summary())
	if code == 0 && *compareRoles {
		if err := compareRolesWithLog(); err != nil {
			fmt.Fprintf(os.Stderr, "the roles do not match the audit log:\n%v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// operatorUser is the operator's user name at the API server.
const operatorUser = "system:serviceaccount:slurm-operator:slurm-operator"

// users maps user names to the files with their roles.
var users = map[string]string{
	operatorUser: "role.yaml",
	"system:serviceaccount:slurm-operator:slurm-operator-webhook": "webhook_role.yaml",
}

// unseen are grants that do not show up in the audit log, with the reason.
var unseen = map[string]string{
	"coordination.k8s.io/leases":                "is not in the log",
	"/events":                                   "is not in the log",
	"events.k8s.io/events":                      "is not in the log",
	"monitoring.coreos.com/servicemonitors":     "the CRDs of the Prometheus operator are not installed",
	"autoscaling.x-k8s.io/provisioningrequests": "the CRD of cluster-autoscaler is not installed",
	"/podtemplates":                             "the CRD of cluster-autoscaler is not installed",
	"authentication.k8s.io/tokenreviews":        "the tests do not read the metrics",
	"authorization.k8s.io/subjectaccessreviews": "the tests do not read the metrics",
	"slinky.slurm.net/nodesets/finalizers: update": "is needed only with the admission plugin " +
		"OwnerReferencesPermissionEnforcement",
}

func compareRolesWithLog() error {
	found, err := cluster.Open()
	if err != nil {
		return err
	}
	return checkRoles(found.Plane.AuditLog())
}

// checkRoles checks that every granted permission was used according to an audit log, and that no request was
// forbidden.
func checkRoles(log string) error {
	requests, err := audit.ReadFile(log, time.Time{},
		func(request audit.Request) bool { return users[request.User] != "" })
	if err != nil {
		return err
	}
	var faults []error
	for user, file := range users {
		granted, err := readGrants(file)
		if err != nil {
			return err
		}
		used, forbidden := permissions(requests, user)
		for need := range forbidden {
			// A permission that was used at other times was forbidden only while the operator was being uninstalled.
			if !used[need] {
				faults = append(faults, fmt.Errorf("%s may not %s", user, need))
			}
		}
		for _, grant := range slices.Sorted(maps.Keys(granted)) {
			resource, _, _ := strings.Cut(grant, ": ")
			if !used[grant] && unseen[grant] == "" && unseen[resource] == "" {
				faults = append(faults, fmt.Errorf("%s never needed %s", user, grant))
			}
		}
	}
	return errors.Join(faults...)
}

// permissions returns what a user was allowed and forbidden, as group/resource: verb.
func permissions(requests []audit.Request, user string) (allowed, forbidden map[string]bool) {
	allowed, forbidden = map[string]bool{}, map[string]bool{}
	for _, request := range requests {
		if request.User != user {
			continue
		}
		for _, verb := range requiredVerbs(request) {
			need := request.Group + "/" + request.Resource + ": " + verb
			if request.Code == http.StatusForbidden {
				forbidden[need] = true
			} else {
				allowed[need] = true
			}
		}
	}
	return allowed, forbidden
}

// read stands for get, list and watch: each of them grants read access, and which of them a cache uses depends on the
// versions of client-go and of the API server.
const read = "read"

func normalizeVerb(verb string) string {
	if slices.Contains([]string{"get", "list", "watch"}, verb) {
		return read
	}
	return verb
}

// requiredVerbs returns the verbs that a request needs. Applying an object for the first time also needs create.
func requiredVerbs(request audit.Request) []string {
	if request.Verb == "patch" && request.Code == http.StatusCreated {
		return []string{"patch", "create"}
	}
	return []string{normalizeVerb(request.Verb)}
}

// readGrants returns the permissions that the roles in a file grant, as group/resource: verb.
func readGrants(file string) (map[string]bool, error) {
	root, err := repo.Root()
	if err != nil {
		return nil, err
	}
	content, err := os.Open(filepath.Join(root, "config", "rbac", file))
	if err != nil {
		return nil, err
	}
	defer content.Close()
	granted := map[string]bool{}
	for documents := yaml.NewYAMLOrJSONDecoder(content, 4096); ; {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := documents.Decode(&role); errors.Is(err, io.EOF) {
			return granted, nil
		} else if err != nil {
			return nil, err
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						granted[group+"/"+resource+": "+normalizeVerb(verb)] = true
					}
				}
			}
		}
	}
}
