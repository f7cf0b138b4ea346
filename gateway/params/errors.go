package params

import (
	"errors"
	"strconv"
)

// Limits of one request. The API needs fewer than ten parameters with names of at most 15 bytes.
// The rest is room for parameters that clients add, few enough that insertion into a sorted list is
// cheap.
const (
	MaxParams = 64 // different names in one Set
	MaxName   = 64 // bytes of a decoded name
	MaxDepth  = 32 // brackets open at once in a nested value
)

// Errors of the limits. The texts are complete sentences for the client.
var (
	ErrTooMany     = errors.New("At most " + strconv.Itoa(MaxParams) + " parameters are possible.")
	ErrNameTooLong = errors.New("The name of a parameter can have at most " +
		strconv.Itoa(MaxName) + " bytes.")
)

// A SyntaxError has the place where a body or a query stops being well formed.
type SyntaxError struct {
	Position int    // bytes before the wrong one; the length of an input that ended too early
	Expected string // text that the grammar allows there, such as "',' or '}'"
}

func (e *SyntaxError) Error() string {
	return "Malformed at position " + strconv.Itoa(e.Position) + ": expected " + e.Expected + "."
}

// A DuplicateError is a parameter that a body names twice.
type DuplicateError struct {
	Name string // decoded; a copy, so it outlives the Set
}

func (e *DuplicateError) Error() string {
	return "The parameter " + strconv.Quote(e.Name) + " appears more than once."
}

func expected(position int, what string) error {
	return &SyntaxError{Position: position, Expected: what}
}
