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

var compareRoles = flag.Bool("roles", false, "after all tests, compare what the roles grant with what was used since our own cluster came up")

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	fmt.Println(summary())
	if code == 0 && *compareRoles {
		if err := compareRolesWithLog(); err != nil {
			fmt.Fprintf(os.Stderr, "roles and the audit log do not agree:\n%v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// operatorUser is the operator, to the API server.
const operatorUser = "system:serviceaccount:slurm-operator:slurm-operator"

// Users that have roles, by the files that the roles are in.
var users = map[string]string{
	operatorUser: "role.yaml",
	"system:serviceaccount:slurm-operator:slurm-operator-webhook": "webhook_role.yaml",
}

// unseen is granted although no test shows it in the log.
var unseen = map[string]string{
	"coordination.k8s.io/leases":                   "is not in the log",
	"/events":                                      "is not in the log",
	"events.k8s.io/events":                         "is not in the log",
	"monitoring.coreos.com/servicemonitors":        "Prometheus' kinds are not in the cluster",
	"authentication.k8s.io/tokenreviews":           "nobody reads the metrics",
	"authorization.k8s.io/subjectaccessreviews":    "nobody reads the metrics",
	"slinky.slurm.net/nodesets/finalizers: update": "counts where the admission plugin OwnerReferencesPermissionEnforcement is on",
}

func compareRolesWithLog() error {
	found, err := cluster.Open()
	if err != nil {
		return err
	}
	return rolesFit(found.Plane.AuditLog())
}

// rolesFit holds that everything granted was used in a log, and that nothing was tried that is not granted.
func rolesFit(log string) error {
	requests, err := audit.ReadFile(log, time.Time{}, func(request audit.Request) bool { return users[request.User] != "" })
	if err != nil {
		return err
	}
	var faults []error
	for user, file := range users {
		granted, err := readGrants(file)
		if err != nil {
			return err
		}
		used, forbidden := uses(requests, user)
		for need := range forbidden {
			// What was allowed at other times was forbidden while the operator was being uninstalled.
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

// uses are what a user was allowed and forbidden, as group/resource: verb.
func uses(requests []audit.Request, user string) (allowed, forbidden map[string]bool) {
	allowed, forbidden = map[string]bool{}, map[string]bool{}
	for _, request := range requests {
		if request.User != user {
			continue
		}
		for _, verb := range needed(request) {
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

// read stands for get, list and watch: whoever may do one of them may read the object. Which of them a cache uses is for the
// versions of its library and of the API server to decide.
const read = "read"

func plain(verb string) string {
	if slices.Contains([]string{"get", "list", "watch"}, verb) {
		return read
	}
	return verb
}

// needed are the verbs that a request needs. An object that is applied for the first time has to be created too.
func needed(request audit.Request) []string {
	if request.Verb == "patch" && request.Code == http.StatusCreated {
		return []string{"patch", "create"}
	}
	return []string{plain(request.Verb)}
}

// readGrants are what the roles in a file grant, as group/resource: verb.
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
						granted[group+"/"+resource+": "+plain(verb)] = true
					}
				}
			}
		}
	}
}
