package params

import (
	"errors"
	"strconv"
)

// Limits on what one request may carry. The API needs fewer than ten parameters with names of at
// most 15 bytes; the rest is room for what clients add, small enough that insertion into a sorted
// list is cheap.
const (
	MaxParams = 64 // different names in one Set
	MaxName   = 64 // bytes of a decoded name
	MaxDepth  = 32 // brackets open at once in a nested value
)

// What is too much. The texts are complete sentences for the one who sent the request.
var (
	ErrTooMany     = errors.New("At most " + strconv.Itoa(MaxParams) + " parameters are possible.")
	ErrNameTooLong = errors.New("The name of a parameter can have at most " +
		strconv.Itoa(MaxName) + " bytes.")
)

// SyntaxError says where a body or a query stops being well formed.
type SyntaxError struct {
	Position int    // bytes before the offending one; the length of the input if it ended too early
	Expected string // what the grammar allows there, such as "',' or '}'"
}

func (e *SyntaxError) Error() string {
	return "Malformed at position " + strconv.Itoa(e.Position) + ": expected " + e.Expected + "."
}

// DuplicateError says that a body names a parameter twice.
type DuplicateError struct {
	Name string // decoded; a copy, so it outlives the Set
}

func (e *DuplicateError) Error() string {
	return "The parameter " + strconv.Quote(e.Name) + " appears more than once."
}

func expected(position int, what string) error {
	return &SyntaxError{Position: position, Expected: what}
}
