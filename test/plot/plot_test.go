package plot_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/plot"
)

func TestWrite(t *testing.T) {
	begin := time.Unix(0, 0)
	curve := plot.Curve{
		Name:   "goroutines",
		Points: []plot.Point{{begin, 0}, {begin.Add(time.Minute), 40}, {begin.Add(2 * time.Minute), 20}},
	}
	var page strings.Builder
	if err := plot.Write(&page, "a <soak>", "no job was lost", curve, plot.Curve{Name: "nothing"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a &lt;soak&gt;", "no job was lost", "goroutines: at most 40, at the end 20",
		`points="0.0,120.0 450.0,0.0 900.0,60.0"`, "nothing: at most 0"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q:\n%s", want, &page)
		}
	}
}
