// Package invalid defines the error about an invalid field of a spec.
package invalid

import (
	"errors"
	"fmt"
)

// A Field is an error about a field with an invalid value.
type Field struct {
	// Path of the field, such as spec.extraConf.
	Path string
	// Err describes what is wrong and the remedy.
	Err error
}

// New returns an error about a field.
func New(path, format string, arguments ...any) *Field {
	return &Field{Path: path, Err: fmt.Errorf(format, arguments...)}
}

// Error returns the path and the error.
func (f *Field) Error() string { return f.Path + ": " + f.Err.Error() }

// Unwrap returns the error without the path.
func (f *Field) Unwrap() error { return f.Err }

// Split returns the path of an invalid field and the error without it. For other errors, the path is otherwise.
func Split(err error, otherwise string) (path string, cause error) {
	if field, ok := errors.AsType[*Field](err); ok {
		return field.Path, field.Err
	}
	return otherwise, err
}
