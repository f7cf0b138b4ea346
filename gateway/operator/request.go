package operator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/gateway/api"
)

// A call is one request of an operator, on its way through a handler.
type call struct {
	server   *Server
	engine   *actors.Engine
	ctx      *fasthttp.RequestCtx
	operator string // name for the log of actions
}

// query returns a parameter of the query, nil if it is missing.
func (c *call) query(name string) []byte { return c.ctx.QueryArgs().Peek(name) }

// read asks the engine for something that is not private.
func (c *call) read(q committed.Question) error { return c.engine.Ask(q, nil, 0) }

// A badRequest is a request that the client has to change.
type badRequest struct{ text string }

func (e *badRequest) Error() string { return e.text }

// parse reads the body into a struct. It refuses unknown fields and repeated ones, because an
// operator's slip must not pass unseen.
func (c *call) parse(into any) error {
	body := c.ctx.PostBody()
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		why := err.Error()
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			why = wrongType(wrong)
		}
		return &badRequest{"the body is not the JSON object that is expected: " + why}
	}
	if _, err := d.Token(); err != io.EOF {
		return &badRequest{"there is something behind the JSON object"}
	}
	return unique(body)
}

// wrongType says which member of a body is of a wrong type, without the names of Go's types.
func wrongType(e *json.UnmarshalTypeError) string {
	expected := "an object"
	switch e.Type.Kind() {
	case reflect.String:
		expected = "text"
	case reflect.Bool:
		expected = "true or false"
	case reflect.Slice:
		expected = "a list"
	case reflect.Int, reflect.Int64, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		expected = "a whole number of its range"
	}
	return fmt.Sprintf("%s has to be %s, and is of the type %s", cmp.Or(e.Field, "it"), expected,
		e.Value)
}

// unique refuses an object that has a member twice, because one of the two would not count, and
// pass unseen. The body is an object or null.
func unique(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.Token() //nolint:errcheck // it was read before
	seen := map[string]bool{}
	for d.More() {
		var value json.RawMessage
		token, err := d.Token()
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return err
		}
		name := strings.ToLower(fmt.Sprint(token)) // case does not matter to names
		if seen[name] {
			return &badRequest{fmt.Sprintf("%q appears more than once", name)}
		}
		seen[name] = true
	}
	return nil
}

// A number is the text of a number, or of the value that was sent in its place. Its handler parses
// it, because the handler knows the field's name for the error.
type number string

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		text = string(b)
	}
	*n = number(text)
	return nil
}

// line refuses a text that is longer than one line.
func line(name, text string) error {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return &badRequest{name + ": one line of text, without control characters"}
	}
	return nil
}

// clock formats a time for people.
func clock(us int64) string {
	return time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// Lengths of lists.
const (
	defaultList = 1000
	maxList     = 100_000
)

// limit returns the length of the list that the request asks for.
func (c *call) limit() (int, error) {
	text := c.query("limit")
	if len(text) == 0 {
		return defaultList, nil
	}
	n, ok := api.Integer(text)
	if !ok || n == 0 || n > maxList {
		return 0, &badRequest{"limit: 1 to " + strconv.Itoa(maxList)}
	}
	return int(n), nil
}

// account returns the id of the account with a name.
func (c *call) account(name string) (uint32, error) {
	q := &committed.Account{Name: name}
	if err := c.read(q); err != nil {
		return 0, err
	}
	if q.Info.ID == 0 {
		return 0, &badRequest{fmt.Sprintf("there is no account %.80q", name)}
	}
	return q.Info.ID, nil
}
