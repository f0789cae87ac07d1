package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Kind is the meaning of an answer that is not plain success. It is an error, so that errors.Is(err, slurm.NotFound) asks
// whether err has it. None of them says that a node is drained or, but for NotFound, that anything does not exist.
type Kind uint8

// The kinds of errors.
const (
	// Unreachable: there was no connection to slurmrestd, or it broke before the end of the answer.
	Unreachable Kind = iota + 1
	// Timeout: the answer did not come in time.
	Timeout
	// Unauthorized: the token is missing, wrong or expired, or its user may not do this.
	Unauthorized
	// NotFound: slurmctld itself says that what was to be changed does not exist. Questions are never answered with it:
	// that a node is gone, only a list of all nodes can tell.
	NotFound
	// Rejected: slurmctld or slurmrestd refused, for the reasons in Error.Reasons. Nothing was changed.
	Rejected
	// PartialEffect: a change of several things was refused for some of them, and may be in effect for others.
	PartialEffect
	// Malformed: the answer is not what this request is answered with. It may be cut off, garbage, or somebody else's.
	Malformed
	// TooLarge: the answer is longer than we are willing to read.
	TooLarge
	// Unsupported: slurmrestd has no version of the API that we know, or this version of it cannot do this.
	Unsupported
	// ControllerDown: slurmrestd answers, and says that slurmctld does not.
	ControllerDown
	// Failed: slurmrestd or something before it failed without saying why, in a way that asking again may mend.
	Failed
)

var kindNames = map[Kind]string{
	Unreachable:    "slurmrestd is not reachable",
	Timeout:        "slurmrestd did not answer in time",
	Unauthorized:   "not authorized",
	NotFound:       "does not exist",
	Rejected:       "refused",
	PartialEffect:  "refused in part",
	Malformed:      "answer not understood",
	TooLarge:       "answer too large",
	Unsupported:    "not supported by this Slurm",
	ControllerDown: "slurmctld does not answer",
	Failed:         "slurmrestd failed",
}

// Error is a short description of the kind.
func (k Kind) Error() string { return kindNames[k] }

// A Reason is an entry of the list of errors in an answer of slurmrestd.
type Reason struct {
	// Number is Slurm's error number. It can be 0 or -1, which say nothing.
	Number      int
	Text        string
	Description string
}

// Slurm's error numbers that mean something to us.
const (
	NumberAuthentication      = 1007 // the token is not valid
	NumberControllerUnreached = 1800 // slurmctld does not answer slurmrestd
	NumberInvalidUser         = 2010 // the user may not do this
	NumberNodesBusy           = 2016 // the node has jobs
	NumberInvalidJob          = 2017 // no such job
	NumberInvalidNodeName     = 2018 // no such node
	NumberInvalidNodeState    = 2028 // 24.11: the node's state does not allow the change
	NumberInvalidReservation  = 2053 // no such reservation
	NumberTopology            = 2178 // no such place in the topologies
	NumberInvalidTransition   = 2180 // 26.05: the node's state does not allow the change
)

// An Error is what went wrong with one request. It never contains a token.
type Error struct {
	Kind Kind
	// Op is what was asked, such as "update nodes gpu-[0-3]".
	Op string
	// Status is the HTTP status, 0 when there was no answer.
	Status int
	// Reasons is what Slurm said.
	Reasons []Reason
	// Err is the cause on our side, such as a network error.
	Err error
}

// Error says what was asked, what it means and what Slurm said.
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

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, kind) work.
func (e *Error) Is(target error) bool {
	kind, ok := target.(Kind)
	return ok && kind == e.Kind
}

// HasNumber tells whether Slurm gave one of the error numbers.
func (e *Error) HasNumber(numbers ...int) bool {
	return slices.ContainsFunc(e.Reasons, func(reason Reason) bool { return slices.Contains(numbers, reason.Number) })
}

// ErrorNumber tells whether err is an answer of Slurm with one of the error numbers.
func ErrorNumber(err error, numbers ...int) bool {
	slurmError, ok := errors.AsType[*Error](err)
	return ok && slurmError.HasNumber(numbers...)
}

// MayHaveTakenEffect tells whether a change that ended in err may nevertheless have been made, fully or in part. Whoever
// made it has to look before assuming anything.
func MayHaveTakenEffect(err error) bool {
	if err == nil {
		return true
	}
	slurmError, ok := errors.AsType[*Error](err)
	return !ok || !slices.Contains([]Kind{NotFound, Rejected, Unauthorized, Unsupported}, slurmError.Kind)
}
