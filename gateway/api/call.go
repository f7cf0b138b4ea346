package api

import (
	"errors"
	"fmt"
	"strconv"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/gateway/encode"
	"exchange/gateway/params"
)

// A Call is one use of an operation over any transport: a client's request and its answer. An edge
// of the API keeps a Call with its other memory of a request, and reuses it:
//
//	c.Begin(api)                            // which serves the operation
//	c.Key, c.Nonce = key, nonce             // of a private operation, with a right signature
//	c.Parsed(c.Form.ParseJSON(body))        // and Query, and Names
//	operation.Run(c)
//	large := c.End(budget, must)            // then c.Status, c.Body() or large
//	c.Reset()
//
// One goroutine at a time owns a Call.
type Call struct {
	Query params.Set // parameters of a question
	Form  params.Set // parameters of a command
	Names Names      // variable parts of the operation's path

	Key     *directory.Key // of a private call; nil: a public call
	Nonce   uint64         // of a private call
	Address uint64         // of a public call's client, as limits count addresses
	Gate    actors.Gate    // before the wallet of a command; nil: none

	Status  int      // of the answer, in the numbers of HTTP
	Failure *Failure // newest failure answered; nil: none
	Cause   error    // of a server failure, for the log

	wait     int // seconds until the client may try again, if it was throttled
	unproven bool
	target   target
	batch    []*Call  // its items, if it is one
	later    []uint64 // of an item: orders placed by later items of its batch
	faulty   *Call    // last item with a server failure; nil: none
	api      *API
	public   *actors.Public  // of api
	commands actors.Commands // of api; nil: public operations only
	fields   []fieldError
	body     []byte     // of the answer
	pieces   []piece    // instead of body, if not empty
	shown    *shownView // the view of all pieces; nil: none
	span     span       // the part of it that they show
	updateID uint64     // of the book that the answer shows
	isBook   bool       // the answer shows a book
}

// Names are the values of a path's variable parts; "" stands for a part that the path lacks.
type Names struct{ Pair, Timeframe, Order string }

// Reset makes a call ready for its next use. The memory of its parameters and answer stays.
func (c *Call) Reset() {
	c.Query.Reset()
	c.Form.Reset()
	clear(c.pieces)
	c.Names, c.Key, c.Nonce, c.Address = Names{}, nil, 0, 0
	c.Status, c.Failure, c.Cause, c.api, c.public, c.commands = 200, nil, nil, nil, nil, nil
	c.fields, c.body, c.pieces, c.isBook = c.fields[:0], c.body[:0], c.pieces[:0], false
	c.target, c.later, c.faulty, c.wait, c.Gate, c.shown = target{}, nil, nil, 0, nil, nil
	c.unproven = false
	c.freeItems()
}

// Begin names the API that answers the call.
func (c *Call) Begin(a *API) { c.api, c.public, c.commands = a, a.public, a.commands }

// Commands returns where the call's commands go, nil before Begin.
func (c *Call) Commands() actors.Commands { return c.commands }

// UpdateID returns the state of the book that the answer shows; false: it shows no book.
func (c *Call) UpdateID() (id uint64, ok bool) { return c.updateID, c.isBook }

// Fail answers with a failure; about replaces the %s of its text.
func (c *Call) Fail(f *Failure, about string) {
	c.Status, c.Failure = f.Status, f
	b := append(c.body[:0], `{"detail":`...)
	b = encode.Text(b, f.About(about))
	if f.Code != "" {
		b = append(b, `,"code":"`...)
		b = append(append(b, f.Code...), '"')
	}
	c.body = append(b, '}')
}

// Throttle answers a client that may try again after some seconds.
func (c *Call) Throttle(seconds int) {
	c.Fail(Throttled, strconv.Itoa(seconds))
	c.wait = seconds
}

// RetryAfter returns the seconds after which the client may try again; 0: unspecified.
func (c *Call) RetryAfter() int {
	if c.Failure == nil || c.Failure == Throttled {
		return c.wait
	}
	return c.Failure.RetryAfter
}

// FailWith answers for an error of the engine. An error outside the catalogue is a server failure.
func (c *Call) FailWith(err error) {
	var nonce *committed.NonceError
	if errors.As(err, &nonce) {
		c.wrongNonce(nonce.Last)
		return
	}
	if a, ok := errors.AsType[*actors.RemoteAnswer](err); ok {
		c.answered(a)
		return
	}
	f, about := FailureOf(err), ""
	if f != Maintenance {
		c.Cause = err
	} else if m := c.commands.Maintenance(); m != nil {
		about = ofMaintenance(m)
	}
	c.Fail(f, about)
}

// ofMaintenance returns the description of a maintenance that follows the first sentence.
func ofMaintenance(m *event.Maintenance) (about string) {
	if m.Cancels {
		about = " Cancels alone are taken."
	}
	if m.Message != "" {
		about += " " + m.Message
	}
	return about
}

// wrongNonce answers a call whose signature was right, with the last nonce of its key.
func (c *Call) wrongNonce(last uint64) {
	c.Fail(WrongNonce, "")
	b := append(c.body[:len(c.body)-1], `,"last":`...)
	c.body = append(strconv.AppendUint(b, last, 10), '}')
}

// Parsed reports whether the parameters of Form could be parsed. Otherwise the call is answered.
func (c *Call) Parsed(err error) bool {
	switch e := err.(type) {
	case nil:
		return true
	case *params.DuplicateError:
		c.bad(e.Name, FieldDuplicate)
		c.badFields()
	default:
		c.Fail(MalformedBody, err.Error())
	}
	return false
}

// readingClient returns the client on whose behalf the call reads.
func (c *Call) readingClient() committed.Client {
	return committed.Client{Key: c.Key, Nonce: c.Nonce, Address: c.Address}
}

// answerRows answers with the rows of a list, which it frees, or for the error.
func answerRows[T any](c *Call, list *committed.List[T], err error,
	add func(b []byte, row *T) []byte) {
	if err != nil {
		c.readFailed(err)
		return
	}
	b := append(c.body, '[')
	for i := range list.Rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = add(b, &list.Rows[i])
	}
	c.body = append(b, ']')
	list.Free()
}

// readFailed answers for a list or a query without an answer.
func (c *Call) readFailed(err error) {
	var history *committed.HistoryError
	switch {
	case errors.As(err, &history):
		c.Cause = fmt.Errorf("the history did not answer: %w", err)
		c.Fail(StoreUnavailable, "")
	case errors.Is(err, committed.ErrTimeout):
		c.Cause = err
		c.Fail(StoreUnavailable, "")
	default:
		c.FailWith(err)
	}
}
