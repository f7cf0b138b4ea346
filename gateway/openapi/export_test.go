package openapi

import "exchange/gateway/api"

// About returns the case of a failure's example, for tests of gateway.
func About(f *api.Failure) string { return failureAbout[f] }

// LastNonce is the nonce of the example of WrongNonce, for tests of gateway.
const LastNonce = lastNonceExample

// StatusTexts returns the texts of statuses that are failures, for tests of gateway.
func StatusTexts() map[int]string { return statusTexts }

// DocumentPath is the path in the form for clients.
func (d *Described) DocumentPath() string { return d.documentPath }
