package api

import (
	"errors"
	"strings"

	"exchange/actors"
	"exchange/actors/committed"
)

// A Failure is one way in which a request can fail: a named value with its status and text. Each
// answer that is not a success is one of these, or names the bad fields. The catalogue below is
// complete; documentation and tests are made from it.
type Failure struct {
	Name   string // of the value, for documentation and logs
	Status int
	Detail string // a sentence for the client; About replaces its %s
	// machine-readable, where a client must distinguish this failure from others of its status
	Code       string
	RetryAfter int  // seconds; 0: the header is not sent
	Ours       bool // server failure: the log has its cause, by X-Request-Id
}

// nonceCode is the code of all faults of a nonce.
const nonceCode = "nonce"

// The catalogue.
var (
	Unauthenticated = &Failure{Name: "Unauthenticated", Status: 401,
		Detail: "Incorrect authentication credentials."}
	MissingNonce = &Failure{Name: "MissingNonce", Status: 401, Code: nonceCode,
		Detail: "X-NONCE is missing."}
	MalformedNonce = &Failure{Name: "MalformedNonce", Status: 401, Code: nonceCode,
		Detail: "X-NONCE must be 1 to 19 digits, and greater than the last one."}
	WrongSignature = &Failure{Name: "WrongSignature", Status: 401, Detail: "Wrong signature"}
	WrongNonce     = &Failure{Name: "WrongNonce", Status: 401, Code: nonceCode,
		Detail: "Wrong Nonce"}

	AddressNotAllowed = &Failure{Name: "AddressNotAllowed", Status: 403,
		Detail: "This key may not be used from this address."}
	NotPermitted = &Failure{Name: "NotPermitted", Status: 403,
		Detail: "This key lacks the permission %s."}

	AccountFrozen = &Failure{Name: "AccountFrozen", Status: 403, Detail: "The account is frozen."}
	// WithdrawalsHeld gives the end of the hold, rounded up to a second.
	WithdrawalsHeld = &Failure{Name: "WithdrawsHeld", Status: 403,
		Detail: "The e-mail address of the account was changed: its withdrawals are held until %s."}
	PairHalted = &Failure{Name: "PairHalted", Status: 403, Detail: "Trading on %s is halted."}

	NotFound         = &Failure{Name: "NotFound", Status: 404, Detail: "Not found."}
	MethodNotAllowed = &Failure{Name: "MethodNotAllowed", Status: 405,
		Detail: `Method "%s" not allowed.`}
	NotAcceptable = &Failure{Name: "NotAcceptable", Status: 406,
		Detail: "Could not satisfy the request Accept header: only application/json is available."}

	MalformedBody = &Failure{Name: "MalformedBody", Status: 400,
		Detail: "The body could not be parsed. %s"}
	MalformedQuery = &Failure{Name: "MalformedQuery", Status: 400,
		Detail: "The query could not be parsed. %s"}
	UnknownContentType = &Failure{Name: "UnknownContentType", Status: 400,
		Detail: "The Content-Type of a body must be application/json or " +
			"application/x-www-form-urlencoded."}
	MalformedRequest = &Failure{Name: "MalformedRequest", Status: 400,
		Detail: "The request is not well-formed HTTP."}
	MalformedHost = &Failure{Name: "MalformedHost", Status: 400,
		Detail: "The header Host must be a name or an address, one of IPv6 in brackets, with or " +
			"without a port."}
	TooManyOpenOrders = &Failure{Name: "TooManyOpenOrders", Status: 400,
		Detail: "This account has too many open orders: cancel some first."}
	TooManyInBook = &Failure{Name: "TooManyInBook", Status: 400,
		Detail: "This account has too many open orders in %s: cancel some first."}
	BookFull = &Failure{Name: "BookFull", Status: 400,
		Detail: "The order book of %s is full."}

	TooManyWithdrawals = &Failure{Name: "TooManyWithdraws", Status: 400,
		Detail: "This account has too many pending withdrawals: confirm or cancel some " +
			"first."}
	NoEmail = &Failure{Name: "NoEmail", Status: 400,
		Detail: "The account has no e-mail address for the code that " +
			"confirms a withdrawal."}

	RequestTimeout = &Failure{Name: "RequestTimeout", Status: 408,
		Detail: "The request did not arrive in time."}
	BodyTooLarge = &Failure{Name: "BodyTooLarge", Status: 413,
		Detail: "The body is larger than %s bytes."}
	EncodedBody = &Failure{Name: "PackedBody", Status: 415,
		Detail: "A body must not be packed: send it without Content-Encoding."}
	// Retry-After has the same number
	Throttled = &Failure{Name: "Throttled", Status: 429,
		Detail: "Request was throttled. Expected available in %s seconds."}
	HeaderTooLarge = &Failure{Name: "HeaderTooLarge", Status: 431,
		Detail: "The headers are larger than %s bytes."}

	InternalError = &Failure{Name: "InternalError", Status: 500, Ours: true,
		Detail: "Internal error. The request id in X-Request-Id names it in the log."}

	Maintenance = &Failure{Name: "Maintenance", Status: 503,
		Detail: "The exchange is in maintenance.%s", RetryAfter: 30}
	Paused = &Failure{Name: "Paused", Status: 503,
		Detail: "The books are being compared: try again in a moment.", RetryAfter: 1}
	Starting = &Failure{Name: "Starting", Status: 503, Detail: "The exchange is starting.",
		RetryAfter: 1}
	// Following is a follower's response to a request that it does not serve. The header X-Leader
	// names the leader.
	Following = &Failure{Name: "Following", Status: 503,
		Detail: "This node is a follower and does not serve this request.%s", RetryAfter: 1}
	Stopping = &Failure{Name: "Stopping", Status: 503, Detail: "The exchange is stopping.",
		RetryAfter: 5}
	StoreUnavailable = &Failure{Name: "StoreUnavailable", Status: 503,
		Detail: "The store is not available at the moment.", RetryAfter: 1, Ours: true}
	Overloaded = &Failure{Name: "Overloaded", Status: 503,
		Detail: "Too many requests are in flight.", RetryAfter: 1}
	AccountBusy = &Failure{Name: "AccountBusy", Status: 503,
		Detail: "Too many requests of this account are in flight.", RetryAfter: 1}
	// WithdrawalsClosed has no Retry-After: it lasts until an operator names a mail server.
	WithdrawalsClosed = &Failure{Name: "WithdrawsClosed", Status: 503,
		Detail: "Withdraws are closed."}
	// TooManyConnections answers a connection before its first request, and closes it.
	TooManyConnections = &Failure{Name: "TooManyConnections", Status: 503,
		Detail: "Too many connections are open.", RetryAfter: 1}
	// OutcomeUnknown has no Retry-After: the command may be committed, and sending it again may do
	// it twice.
	OutcomeUnknown = &Failure{Name: "OutcomeUnknown", Status: 503, Code: "outcome_unknown",
		Ours: true,
		Detail: "Outcome unknown: the request was accepted, but its result is not known in time. " +
			"It may or may not have been carried out: find out before you send it again.%s"}
)

// Failures is the catalogue as a list, in order of status.
var Failures = []*Failure{MalformedBody, MalformedQuery, UnknownContentType, MalformedRequest,
	MalformedHost, TooManyOpenOrders, TooManyInBook, BookFull, TooManyWithdrawals, NoEmail,
	Unauthenticated, MissingNonce, MalformedNonce, WrongSignature, WrongNonce, AddressNotAllowed,
	NotPermitted, AccountFrozen, WithdrawalsHeld, PairHalted, NotFound, MethodNotAllowed,
	NotAcceptable, RequestTimeout, BodyTooLarge, EncodedBody, Throttled, HeaderTooLarge,
	InternalError, Maintenance, Paused, Starting, Following, Stopping, StoreUnavailable,
	Overloaded, AccountBusy, WithdrawalsClosed, TooManyConnections, OutcomeUnknown}

// About returns the failure's text, with %s replaced by about.
func (f *Failure) About(about string) string { return filled(f.Detail, about) }

// filled returns a text with the %s in it replaced.
func filled(text, about string) string {
	before, after, ok := strings.Cut(text, "%s")
	if !ok {
		return text
	}
	return before + about + after
}

// A MarketRefusal is a reason why the market does not allow an order whose fields are all right.
// Its answer is 400 with the time, the text and the code.
type MarketRefusal struct {
	Name string // of the value, for documentation
	Code string // for programs
	text string // a sentence for the client; About replaces its %s
}

// The market's refusals.
var (
	WouldTrade = &MarketRefusal{"WouldTrade", "would_trade",
		"The order would trade at once, and is post-only"}
	WouldTrigger = &MarketRefusal{"WouldTrigger", "would_trigger",
		"The last price %s would trigger the order at once"}
	NoLiquidity = &MarketRefusal{"NoLiquidity", "no_liquidity", "Nothing to trade with on %s"}
	PriceBand   = &MarketRefusal{"PriceBand", "price_band", "The price must be at %s"}
	// TooManyStops and TooManyGTD are for a limit of the account and for one of the book.
	TooManyStops = &MarketRefusal{"TooManyStops", "too_many_stops",
		"There are as many waiting orders on %s as there may be"}
	TooManyGTD = &MarketRefusal{"TooManyGTD", "too_many_gtd",
		"There are as many orders that expire on %s as there may be"}
)

// MarketRefusals is the complete list.
var MarketRefusals = []*MarketRefusal{PriceBand, WouldTrade, WouldTrigger, NoLiquidity,
	TooManyStops, TooManyGTD}

// About returns the text, with %s replaced by about.
func (r *MarketRefusal) About(about string) string { return filled(r.text, about) }

// FailureOf returns the failure for an error of the engine.
func FailureOf(err error) *Failure {
	switch {
	case errors.Is(err, actors.ErrNotLoggedIn):
		return NotLoggedIn
	case errors.Is(err, committed.ErrNonce):
		return WrongNonce
	case errors.Is(err, committed.ErrKeyRevoked), errors.Is(err, actors.ErrDropped):
		return Unauthenticated
	case errors.Is(err, committed.ErrFrozen):
		return AccountFrozen
	case errors.Is(err, actors.ErrPaused):
		return Paused
	case errors.Is(err, actors.ErrMaintenance):
		return Maintenance
	case errors.Is(err, actors.ErrStopping):
		return Stopping
	case errors.Is(err, actors.ErrNoMail):
		return WithdrawalsClosed
	case errors.Is(err, actors.ErrBusy), errors.Is(err, actors.ErrBehind),
		errors.Is(err, actors.ErrNotQuiet):
		return Overloaded
	case errors.Is(err, actors.ErrAccountBusy):
		return AccountBusy
	case errors.Is(err, actors.ErrStalled), errors.Is(err, actors.ErrNotConfirmed),
		errors.Is(err, committed.ErrUnanswered):
		return StoreUnavailable
	}
	return InternalError
}
