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
// keeps a Call in its own memory of a request, and reuses it:
//
//	c.BindAPI(api)                          // an API that serves the operation
//	c.Key, c.Nonce = key, nonce             // of a private operation, after verification
//	c.CheckParse(c.Form.ParseJSON(body))    // also set Query and Path
//	operation.Run(c)
//	large := c.End(budget, mustAnswer)      // then c.Status, c.Body() or large
//	c.Reset()
//
// One goroutine at a time owns a Call.
type Call struct {
	Query params.Set // parameters of a question
	Form  params.Set // parameters of a command
	Path  PathParams // variable parts of the operation's path

	Key     *directory.Key // of a private call; nil: a public call
	Nonce   uint64         // of a private call
	Address uint64         // rate limit key (ratelimit.AddressKey) of a public call's client
	Gate    actors.Gate    // that the call's command passes before its wallet; nil: none

	Status  int      // HTTP status of the answer
	Failure *Failure // failure of the answer; nil: none
	Cause   error    // of a server failure, for the log

	wait        int  // seconds until a throttled client may try again
	unproven    bool // another node refused the call before it verified the signature
	target      target
	batch       []*Call  // items of a batch
	laterOrders []uint64 // of a batch's item: ids of orders placed by later items
	failedItem  *Call    // last item with a server failure; nil: none
	api         *API
	public      *actors.Public  // of api
	commands    actors.Commands // of api; nil: public operations only
	fields      []fieldError
	body        []byte     // of the answer
	pieces      []piece    // instead of body, if not empty
	shown       *shownView // the view of all pieces; nil: none
	span        span       // the part of shown in the answer
	updateID    uint64     // of the book in the answer
	isBook      bool       // the answer contains a book
}

// PathParams are the values of a path's parameters; "": the path has no such parameter.
type PathParams struct{ Pair, Timeframe, Order string }

// Reset clears a call for reuse, and keeps the buffers of its parameters and its answer.
func (c *Call) Reset() {
	c.Query.Reset()
	c.Form.Reset()
	clear(c.pieces)
	c.Path, c.Key, c.Nonce, c.Address = PathParams{}, nil, 0, 0
	c.Status, c.Failure, c.Cause, c.api, c.public, c.commands = 200, nil, nil, nil, nil, nil
	c.fields, c.body, c.pieces, c.isBook = c.fields[:0], c.body[:0], c.pieces[:0], false
	c.target, c.laterOrders, c.failedItem, c.wait, c.Gate, c.shown = target{}, nil, nil, 0, nil, nil
	c.unproven = false
	c.freeItems()
}

// BindAPI sets the API that runs the call's operation.
func (c *Call) BindAPI(a *API) { c.api, c.public, c.commands = a, a.public, a.commands }

// Commands returns the receiver of the call's commands; nil before BindAPI, or without one.
func (c *Call) Commands() actors.Commands { return c.commands }

// UpdateID returns the update id of the book in the answer; false: the answer contains no book.
func (c *Call) UpdateID() (id uint64, ok bool) { return c.updateID, c.isBook }

// Fail writes the response for a failure; about replaces the %s of its text.
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

// Throttle writes the response for a throttled client, which may try again after seconds.
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

// FailWith writes the response for an error of the engine. An error outside the catalogue is a
// server failure.
func (c *Call) FailWith(err error) {
	var nonce *committed.NonceError
	if errors.As(err, &nonce) {
		c.failWrongNonce(nonce.Last)
		return
	}
	if a, ok := errors.AsType[*actors.RemoteAnswer](err); ok {
		c.useRemoteAnswer(a)
		return
	}
	f, about := FailureOf(err), ""
	if f != Maintenance {
		c.Cause = err
	} else if m := c.commands.Maintenance(); m != nil {
		about = maintenanceDetail(m)
	}
	c.Fail(f, about)
}

// maintenanceDetail returns the text after the first sentence of Maintenance: whether cancels are
// accepted, and the operator's message.
func maintenanceDetail(m *event.Maintenance) (about string) {
	if m.Cancels {
		about = " Only cancels are accepted."
	}
	if m.Message != "" {
		about += " " + m.Message
	}
	return about
}

// failWrongNonce writes the response for a wrong nonce, with the key's last one. It is called only
// after the signature was verified.
func (c *Call) failWrongNonce(last uint64) {
	c.Fail(WrongNonce, "")
	b := append(c.body[:len(c.body)-1], `,"last":`...)
	c.body = append(strconv.AppendUint(b, last, 10), '}')
}

// CheckParse returns false after writing the response for an error of parsing Form.
func (c *Call) CheckParse(err error) bool {
	switch e := err.(type) {
	case nil:
		return true
	case *params.DuplicateError:
		c.addError(e.Name, FieldDuplicate)
		c.failOnBadFields()
	default:
		c.Fail(MalformedBody, err.Error())
	}
	return false
}

// readingClient returns the client on whose behalf the call reads.
func (c *Call) readingClient() committed.Client {
	return committed.Client{Key: c.Key, Nonce: c.Nonce, Address: c.Address}
}

// answerRows writes the rows of a list, which it frees, or the response for err.
func answerRows[T any](c *Call, list *committed.List[T], err error,
	add func(b []byte, row *T) []byte) {
	if err != nil {
		c.failRead(err)
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

// failRead writes the response for the error of a list or a query.
func (c *Call) failRead(err error) {
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
