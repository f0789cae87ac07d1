package output

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Watch draws again and again until the context ends: over the previous drawing on a terminal, or one after the other,
// if they differ, elsewhere. An error of draw is shown and does not end it, so that a watch outlives an outage of the
// API server; an error of the first drawing does.
func Watch(ctx context.Context, out io.Writer, interval time.Duration, draw func() (string, error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	previous, terminal := "", IsTerminal(out)
	for first := true; ; first = false {
		text, err := draw()
		switch {
		case ctx.Err() != nil:
			return nil // the user has ended the watch
		case err != nil && first:
			return err
		case err != nil:
			text = fmt.Sprintf("%v; trying again\n", err)
		}
		if err := redraw(out, terminal, previous, text); err != nil {
			return err
		}
		previous = text
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Escape sequences of terminals: to the upper left corner and clear from there.
const clearScreen = "\x1b[H\x1b[J"

func redraw(out io.Writer, terminal bool, previous, text string) error {
	switch {
	case terminal:
		text = clearScreen + text
	case text == previous:
		return nil
	case previous != "":
		text = "\n" + text
	}
	_, err := io.WriteString(out, text)
	return err
}
