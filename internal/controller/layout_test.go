package controller_test

import (
	"os"
	"path/filepath"
	"testing"
)

// Every controller has the same files, so that a reader who knows one finds their way in all. A large part is a package
// of the same name instead of a file.
func TestControllersHaveTheSameFiles(t *testing.T) {
	controllers, err := filepath.Glob("*/setup.go")
	if err != nil || len(controllers) == 0 {
		t.Fatalf("there are %d controllers: %v", len(controllers), err)
	}
	for _, setup := range controllers {
		controller := filepath.Dir(setup)
		for _, part := range []string{"controller", "observe", "plan", "desired", "act", "status"} {
			_, file := os.Stat(filepath.Join(controller, part+".go"))
			_, directory := os.Stat(filepath.Join(controller, part))
			if file != nil && directory != nil {
				t.Errorf("%s has no %s.go", controller, part)
			}
		}
	}
}
