package applied

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Objects come and go for as long as the operator runs, and what it remembers of them must not pile up.
func TestVanishedObjectsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memory Memory[string]
		memory.Remember("lasting", "asked", "is")
		for i := range 1000 {
			memory.Remember(fmt.Sprint("job-", i), i, i)
			time.Sleep(time.Hour)
			if !memory.Settled("lasting", "asked", "is") {
				t.Fatalf("what is still asked for was forgotten after %d hours", i)
			}
		}
		if count := len(memory.records); count > 30 {
			t.Errorf("%d are remembered", count)
		}
	})
}
