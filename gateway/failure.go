package gateway

import (
	"strconv"

	"exchange/gateway/api"
	"exchange/gateway/encode"
)

// The catalogue of failures, from the room below.
type Failure = api.Failure

var (
	Unauthenticated    = api.Unauthenticated
	WrongSignature     = api.WrongSignature
	WrongNonce         = api.WrongNonce
	AddressNotAllowed  = api.AddressNotAllowed
	NotPermitted       = api.NotPermitted
	AccountFrozen      = api.AccountFrozen
	PairHalted         = api.PairHalted
	NotFound           = api.NotFound
	MethodNotAllowed   = api.MethodNotAllowed
	NotAcceptable      = api.NotAcceptable
	MalformedBody      = api.MalformedBody
	MalformedQuery     = api.MalformedQuery
	UnknownContentType = api.UnknownContentType
	MalformedRequest   = api.MalformedRequest
	TooManyOpenOrders  = api.TooManyOpenOrders
	TooManyInBook      = api.TooManyInBook
	BookFull           = api.BookFull
	TooManyWithdraws   = api.TooManyWithdraws
	NoEmail            = api.NoEmail
	RequestTimeout     = api.RequestTimeout
	BodyTooLarge       = api.BodyTooLarge
	PackedBody         = api.PackedBody
	Throttled          = api.Throttled
	HeaderTooLarge     = api.HeaderTooLarge
	InternalError      = api.InternalError
	Maintenance        = api.Maintenance
	Paused             = api.Paused
	Starting           = api.Starting
	Stopping           = api.Stopping
	StoreUnavailable   = api.StoreUnavailable
	Overloaded         = api.Overloaded
	AccountBusy        = api.AccountBusy
	WithdrawsClosed    = api.WithdrawsClosed
	TooManyConnections = api.TooManyConnections
	OutcomeUnknown     = api.OutcomeUnknown
	Failures           = api.Failures
	failureOf          = api.FailureOf
)

// Texts of field errors. They stand in a list under the name of the field.
const (
	fieldRequired  = "This field is required."
	fieldNotScalar = "A number or a string is required."
	fieldDuplicate = "This field appears more than once."
	fieldPositive  = "A number above 0 is required."
	fieldChoice    = "Not a valid choice."
	fieldPair      = "Unknown pair."
	fieldCurrency  = "Unknown currency."
	fieldInteger   = "A valid integer is required."
	fieldAddress   = "1 to 256 printable ASCII characters without blanks are required."
)

// fail answers with a failure; about replaces the %s of its text.
func (r *request) fail(f *Failure, about string) {
	r.status, r.failure = f.Status, f
	b := append(r.body[:0], `{"detail":`...)
	b = encode.Text(b, f.About(about))
	if f.Code != "" {
		b = append(b, `,"code":"`...)
		b = append(append(b, f.Code...), '"')
	}
	r.body = append(b, '}')
	if f.RetryAfter > 0 {
		r.ctx.Response.Header.SetCanonical(headerRetryAfter,
			strconv.AppendInt(r.digits[:0], int64(f.RetryAfter), 10))
	}
}

// wrongNonce answers 401 to a request whose signature was right, with the last nonce of its key.
func (r *request) wrongNonce(last uint64) {
	r.fail(WrongNonce, "")
	b := append(r.body[:len(r.body)-1], `,"last":`...)
	r.body = append(strconv.AppendUint(b, last, 10), '}')
}

// A fieldError is one bad field; a request reports all of them at once.
type fieldError struct{ name, text string }

// bad notes a bad field.
func (r *request) bad(name, text string) { r.fields = append(r.fields, fieldError{name, text}) }

// badFields answers 400 if any field was bad.
func (r *request) badFields() bool {
	if len(r.fields) == 0 {
		return false
	}
	r.status = 400
	b := append(r.body[:0], '{')
	for i, f := range r.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = encode.Text(b, f.name)
		b = append(b, `:[`...)
		b = encode.Text(b, f.text)
		b = append(b, ']')
	}
	r.body = append(b, '}')
	return true
}
