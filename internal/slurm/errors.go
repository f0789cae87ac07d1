package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Kind classifies an answer that is not plain success. It is an error, so that errors.Is(err, slurm.NotFound) works.
// No Kind means that a node is drained, and only NotFound means that something does not exist.
type Kind uint8

// The error kinds.
const (
	// Unreachable: no connection to slurmrestd, or it broke before the end of the answer.
	Unreachable Kind = iota + 1
	// Timeout: no complete answer within the deadline.
	Timeout
	// Unauthorized: the token is missing, invalid or expired, or its user lacks the permission.
	Unauthorized
	// NotFound: slurmctld itself reports that the object to change does not exist. Reads never return it: only a list
	// of all nodes proves that a node is gone.
	NotFound
	// Rejected: slurmctld or slurmrestd refused; Error.Reasons says why. Nothing was changed.
	Rejected
	// PartialEffect: a change of several objects was refused for some of them and may have taken effect for others.
	PartialEffect
	// Malformed: the answer does not fit the request. It may be truncated, garbage, or from another server.
	Malformed
	// TooLarge: the answer exceeds the size limit.
	TooLarge
	// Unsupported: slurmrestd serves no API version that we know, or this version lacks the operation.
	Unsupported
	// ControllerDown: slurmrestd answers, and reports that slurmctld does not.
	ControllerDown
	// Failed: slurmrestd or a proxy failed without a reason; a retry may succeed.
	Failed
)

var kindNames = map[Kind]string{
	Unreachable:    "slurmrestd is not reachable",
	Timeout:        "slurmrestd did not answer in time",
	Unauthorized:   "not authorized",
	NotFound:       "does not exist",
	Rejected:       "refused",
	PartialEffect:  "partially refused",
	Malformed:      "malformed answer",
	TooLarge:       "answer too large",
	Unsupported:    "not supported by this Slurm",
	ControllerDown: "slurmctld does not answer",
	Failed:         "slurmrestd failed",
}

// Error returns a short description of the kind.
func (k Kind) Error() string { return kindNames[k] }

// A Reason is an entry of the error list in an answer of slurmrestd.
type Reason struct {
	// Number is Slurm's error number. 0 and -1 carry no information.
	Number      int
	Text        string
	Description string
}

// The Slurm error numbers that the operator interprets.
const (
	NumberAuthentication      = 1007 // the token is not valid
	NumberControllerUnreached = 1800 // slurmctld does not answer slurmrestd
	NumberInvalidUser         = 2010 // the user may not do this
	NumberNodesBusy           = 2016 // the node has jobs
	NumberInvalidJob          = 2017 // no such job
	NumberInvalidNodeName     = 2018 // no such node
	NumberInvalidNodeState    = 2028 // 24.11: the node's state does not allow the change
	NumberInvalidReservation  = 2053 // no such reservation
	NumberTopology            = 2178 // no such topology unit
	NumberInvalidTransition   = 2180 // 26.05: the node's state does not allow the change
)

// An Error is a failed request. It never contains a token.
type Error struct {
	Kind Kind
	// Op is the operation, such as "update nodes gpu-[0-3]".
	Op string
	// Status is the HTTP status, 0 if there was no answer.
	Status int
	// Reasons are Slurm's errors.
	Reasons []Reason
	// Err is the cause on the client side, such as a network error.
	Err error
}

// Error returns the operation, the kind and Slurm's reasons.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(e.Op + ": " + e.Kind.Error())
	if e.Status != 0 {
		fmt.Fprintf(&text, " (HTTP %d)", e.Status)
	}
	for _, reason := range e.Reasons {
		fmt.Fprintf(&text, ": %s: %s (error %d)", reason.Description, reason.Text, reason.Number)
	}
	if e.Err != nil {
		text.WriteString(": " + e.Err.Error())
	}
	return text.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, kind) work.
func (e *Error) Is(target error) bool {
	kind, ok := target.(Kind)
	return ok && kind == e.Kind
}

// HasNumber reports whether Slurm returned one of the error numbers.
func (e *Error) HasNumber(numbers ...int) bool {
	return slices.ContainsFunc(e.Reasons, func(reason Reason) bool { return slices.Contains(numbers, reason.Number) })
}

// ErrorNumber reports whether err is an answer of Slurm with one of the error numbers.
func ErrorNumber(err error, numbers ...int) bool {
	slurmError, ok := errors.AsType[*Error](err)
	return ok && slurmError.HasNumber(numbers...)
}

// MayHaveTakenEffect reports whether a change that returned err may have been made nevertheless, fully or in part. The
// caller must then read the current state before it assumes anything.
func MayHaveTakenEffect(err error) bool {
	if err == nil {
		return true
	}
	slurmError, ok := errors.AsType[*Error](err)
	return !ok || !slices.Contains([]Kind{NotFound, Rejected, Unauthorized, Unsupported}, slurmError.Kind)
}
