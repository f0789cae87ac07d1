package applied

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Objects are created and deleted for as long as the operator runs, so records of deleted objects must not accumulate.
func TestUnusedRecordsAreEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memory Memory[string]
		memory.Remember("lasting", "asked", "is")
		for i := range 1000 {
			memory.Remember(fmt.Sprint("job-", i), i, i)
			time.Sleep(time.Hour)
			if !memory.Unchanged("lasting", "asked", "is") {
				t.Fatalf("a record in use was dropped after %d hours", i)
			}
		}
		if count := len(memory.records); count > 30 {
			t.Errorf("%d records are kept", count)
		}
	})
}
