package output

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTableAlignsColouredCells(t *testing.T) {
	page := &Page{Style: Style{Colours: true}}
	page.Table([]string{"NAME", "STATE", "EMPTY", "AGE"}, [][]string{
		{"└─ a", page.Good("Ready"), "", "1d"},
		{"  a line of its own that is longer than the columns"},
		{"bb", page.Bad("x"), "", "2d"},
	})
	want := "\x1b[2mNAME\x1b[0m   \x1b[2mSTATE\x1b[0m   \x1b[2mAGE\x1b[0m\n" +
		"└─ a   \x1b[32mReady\x1b[0m   1d\n" +
		"  a line of its own that is longer than the columns\n" +
		"bb     \x1b[31mx\x1b[0m       2d\n"
	if diff := cmp.Diff(want, page.String()); diff != "" {
		t.Error(diff)
	}
}

func TestOutputThatIsNoTerminalHasNoColours(t *testing.T) {
	if StyleFor(&strings.Builder{}).Colours {
		t.Error("a pipe has colours")
	}
	if text := (Style{}).Bad("down"); text != "down" {
		t.Errorf("%q", text)
	}
}

func TestColoursInAPipeAreForced(t *testing.T) {
	for forced, want := range map[string]bool{"": false, "0": false, "1": true} {
		t.Setenv("CLICOLOR_FORCE", forced)
		if got := StyleFor(&strings.Builder{}).Colours; got != want {
			t.Errorf("CLICOLOR_FORCE=%s: %t", forced, got)
		}
	}
	t.Setenv("NO_COLOR", "1")
	if StyleFor(&strings.Builder{}).Colours {
		t.Error("NO_COLOR is ignored")
	}
}

func TestBar(t *testing.T) {
	for want, share := range map[string][2]int{
		"█████░░░░░░░░░░░░░░░ 1/4":   {1, 4},
		"████████████████████ 12/12": {14, 12},
		"░░░░░░░░░░░░░░░░░░░░ 0/5":   {-1, 5},
		"": {0, 0},
	} {
		if got := Bar(share[0], share[1]); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}

func TestWatchDrawsChangesAndOutlivesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var out strings.Builder
		drawings := []string{"one\n", "one\n", "", "two\n"}
		next := 0
		err := Watch(ctx, &out, time.Second, func() (string, error) {
			if next == len(drawings) {
				cancel()
				return "", ctx.Err()
			}
			drawing := drawings[next]
			next++
			if drawing == "" {
				return "", errors.New("no answer")
			}
			return drawing, nil
		})
		if want := "one\n\nno answer; trying again\n\ntwo\n"; err != nil || out.String() != want {
			t.Errorf("%q, %v", out.String(), err)
		}
	})
}

func TestWatchFailsIfTheFirstDrawingDoes(t *testing.T) {
	failure := errors.New("no answer")
	err := Watch(t.Context(), &strings.Builder{}, time.Second, func() (string, error) { return "", failure })
	if !errors.Is(err, failure) {
		t.Errorf("%v", err)
	}
}
