package slurm

import (
	"math/bits"
	"slices"
)

// State is the base state of a Slurm node, without the flags.
type State uint8

// The base states. The zero value stands for UNKNOWN, INVALID and every state that is not understood.
const (
	StateUnknown State = iota
	StateDown
	StateIdle
	StateAllocated
	StateMixed
	StateError
	StateFuture
)

var stateNames = [...]string{
	StateUnknown:   "UNKNOWN",
	StateDown:      "DOWN",
	StateIdle:      "IDLE",
	StateAllocated: "ALLOCATED",
	StateMixed:     "MIXED",
	StateError:     "ERROR",
	StateFuture:    "FUTURE",
}

// String returns Slurm's name of the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return stateNames[StateUnknown]
}

// Flags is the set of state flags of a Slurm node, in addition to its base state.
type Flags uint32

// The state flags.
const (
	FlagBlocked Flags = 1 << iota
	FlagCloud
	FlagCompleting
	FlagDrain
	FlagDynamicFuture
	FlagDynamicNorm
	FlagExternal
	FlagFail
	FlagInvalidReg
	FlagMaintenance
	FlagNotResponding
	FlagPlanned
	FlagPowerDown
	FlagPowerDrain
	FlagPoweredDown
	FlagPoweringDown
	FlagPoweringUp
	FlagPowerUp
	FlagRebootCanceled
	FlagRebootIssued
	FlagRebootRequested
	FlagReserved
	FlagResume
	FlagUndrain
)

// flagNames holds the name of the flag 1<<i at index i.
var flagNames = [...]string{
	"BLOCKED", "CLOUD", "COMPLETING", "DRAIN", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "EXTERNAL", "FAIL", "INVALID_REG",
	"MAINTENANCE", "NOT_RESPONDING", "PLANNED", "POWER_DOWN", "POWER_DRAIN", "POWERED_DOWN", "POWERING_DOWN",
	"POWERING_UP", "POWER_UP", "REBOOT_CANCELED", "REBOOT_ISSUED", "REBOOT_REQUESTED", "RESERVED", "RESUME", "UNDRAIN",
}

// Has reports whether all the given flags are set.
func (f Flags) Has(flags Flags) bool { return f&flags == flags }

// HasAny reports whether at least one of the given flags is set.
func (f Flags) HasAny(flags Flags) bool { return f&flags != 0 }

// Names returns Slurm's names of the set flags.
func (f Flags) Names() []string {
	names := make([]string, 0, bits.OnesCount32(uint32(f)))
	for i, name := range flagNames {
		if f.Has(1 << i) {
			names = append(names, name)
		}
	}
	return names
}

// ParseState parses Slurm's list of state names, in any order. Unknown names are returned unchanged. A list without
// exactly one base state yields StateUnknown, which never counts as drained.
func ParseState(names []string) (state State, flags Flags, others []string) {
	bases := 0
	for _, name := range names {
		if base := slices.Index(stateNames[:], name); base >= 0 {
			state = State(base)
			bases++
		} else if flag := slices.Index(flagNames[:], name); flag >= 0 {
			flags |= 1 << flag
		} else {
			others = append(others, name)
		}
	}
	if bases != 1 {
		state = StateUnknown
	}
	return state, flags, others
}
