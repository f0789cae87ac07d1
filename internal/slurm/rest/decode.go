package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// fields maps each member of an answer to the function that reads its value. Other members are skipped.
type fields map[string]func(*json.Decoder) error

// with returns fields with one more member.
func (f fields) with(member string, read func(*json.Decoder) error) fields {
	more := fields{member: read}
	maps.Copy(more, f)
	return more
}

// into decodes a value into a variable.
func into(target any) func(*json.Decoder) error {
	return func(decoder *json.Decoder) error { return decoder.Decode(target) }
}

// eachOf reads the elements of an array one by one, so that only one of them is in memory.
func eachOf[T any](keep func(*T) error) func(*json.Decoder) error {
	return func(decoder *json.Decoder) error {
		opening, err := decoder.Token()
		if err != nil {
			return err
		}
		if opening != json.Delim('[') {
			return fmt.Errorf("%v instead of an array", opening)
		}
		for decoder.More() {
			var element T
			if err := decoder.Decode(&element); err != nil {
				return err
			}
			if err := keep(&element); err != nil {
				return err
			}
		}
		_, err = decoder.Token()
		return err
	}
}

// decodeAnswer reads a whole answer: one object, with nothing after it, without duplicate members. It returns Slurm's
// errors in it. The required member may be missing only if there are errors.
func decodeAnswer(body io.Reader, wanted fields, required string) ([]slurm.Reason, error) {
	decoder := json.NewDecoder(body)
	opening, err := decoder.Token()
	if err != nil {
		return nil, endedEarly(err)
	}
	if opening != json.Delim('{') {
		return nil, fmt.Errorf("%v instead of an object", opening)
	}
	var reasons []wireReason
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, endedEarly(err)
		}
		name, _ := token.(string) // within an object, every second token is a string
		read := wanted[name]
		switch {
		case name == "errors":
			read = into(&reasons)
		case read == nil:
			read = into(new(skipped))
		}
		if seen[name] {
			return nil, fmt.Errorf("duplicate member %q", name)
		}
		seen[name] = true
		if err := read(decoder); err != nil {
			return nil, fmt.Errorf("reading %q: %w", name, endedEarly(err))
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, endedEarly(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the answer")
	}
	if !seen["errors"] {
		return nil, errors.New(`member "errors" is missing`)
	}
	if required != "" && !seen[required] && len(reasons) == 0 {
		return nil, fmt.Errorf("member %q is missing", required)
	}
	return reasonsOf(reasons), nil
}

// endedEarly ensures that a truncated answer is not mistaken for a complete one.
func endedEarly(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// skipped discards any value.
type skipped struct{}

// UnmarshalJSON does nothing.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// wireReason is an entry of "errors".
type wireReason struct {
	Description string `json:"description"`
	Number      int    `json:"error_number"`
	Text        string `json:"error"`
}

func reasonsOf(wire []wireReason) []slurm.Reason {
	var reasons []slurm.Reason
	for _, entry := range wire {
		reasons = append(reasons, slurm.Reason{Number: entry.Number, Text: entry.Text, Description: entry.Description})
	}
	return reasons
}
