// Package api has the public API without a transport: the failures that a request can end with, and
// the fields that its handlers share.
//
//	failure.go   every way to fail, and the failure for an error of the engine
//	field.go     values of fields
package api
