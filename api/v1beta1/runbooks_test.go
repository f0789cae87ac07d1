package v1beta1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const runbooks = "../../docs/runbooks"

// TestEveryReasonHasARunbook checks that each reason of a condition has a page of its name with what a person needs,
// that each page is about a reason or an alert (whose names begin with Slurm), and that the index lists all pages.
func TestEveryReasonHasARunbook(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	index := readPage(t, "README")
	reasons := conditionReasons(t)
	for reason := range reasons {
		page := readPage(t, reason)
		for _, part := range []string{"# " + reason + "\n", "\n- **On** ", "\n- **Jobs**: ", "\n## Fix\n"} {
			if !strings.Contains(page, part) {
				t.Errorf("the runbook %s lacks %q", reason, strings.TrimSpace(part))
			}
		}
	}
	for _, path := range pages {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		if name == "README" {
			continue
		}
		if !reasons[name] && (!strings.HasPrefix(name, "Slurm") || strings.Contains(readPage(t, name), "**On**")) {
			t.Errorf("the runbook %s is about no reason and no alert", name)
		}
		if !strings.Contains(index, "| ["+name+"]("+name+".md) | ") {
			t.Errorf("the index does not list the runbook %s", name)
		}
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(runbooks, name+".md"))
	if err != nil {
		t.Error(err)
	}
	return string(page)
}

// conditionReasons returns the values of the constants Reason… in conditions.go.
func conditionReasons(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		constant, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(constant.Names[0].Name, "Reason") {
			return true
		}
		if literal, ok := constant.Values[0].(*ast.BasicLit); ok {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			reasons[value] = true
		}
		return true
	})
	if len(reasons) < 50 {
		t.Fatalf("only %d reasons were found", len(reasons))
	}
	return reasons
}
