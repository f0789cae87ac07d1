// Package invalid has the error that says which field of a spec is wrong.
package invalid

import (
	"errors"
	"fmt"
)

// A Field is a field whose value cannot be used.
type Field struct {
	// Path is that of the field, such as spec.extraConf.
	Path string
	// Err says what is wrong with it, and what to do.
	Err error
}

// New makes an error about a field.
func New(path, format string, arguments ...any) *Field {
	return &Field{Path: path, Err: fmt.Errorf(format, arguments...)}
}

// Error names the field first.
func (f *Field) Error() string { return f.Path + ": " + f.Err.Error() }

// Unwrap is what is wrong, without the field.
func (f *Field) Unwrap() error { return f.Err }

// Split returns the path of the field that an error is about, and what is wrong with it; the path is otherwise when it is about no field.
func Split(err error, otherwise string) (path string, cause error) {
	if field, ok := errors.AsType[*Field](err); ok {
		return field.Path, field.Err
	}
	return otherwise, err
}
