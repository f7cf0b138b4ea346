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
	maxName   = 64 // bytes of a decoded name
	maxDepth  = 32 // brackets open at once in a nested value
)

// Errors of the limits. The texts are complete sentences for the client.
var (
	errTooMany     = errors.New("At most " + strconv.Itoa(MaxParams) + " parameters are possible.")
	errNameTooLong = errors.New("The name of a parameter can have at most " +
		strconv.Itoa(maxName) + " bytes.")
)

// A syntaxError holds the place where a body or a query stops being well formed.
type syntaxError struct {
	position int    // bytes before the wrong one; the length of an input that ended too early
	expected string // text that the grammar allows there, such as "',' or '}'"
}

func (e *syntaxError) Error() string {
	return "Malformed at position " + strconv.Itoa(e.position) + ": expected " + e.expected + "."
}

// A DuplicateError is a parameter that a body names twice.
type DuplicateError struct {
	Name string // decoded; a copy, so it outlives the Set
}

func (e *DuplicateError) Error() string {
	return "The parameter " + strconv.Quote(e.Name) + " appears more than once."
}

func expected(position int, what string) error {
	return &syntaxError{position: position, expected: what}
}
