package operator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/gateway/api"
)

// A call is one request of an operator in its handler.
type call struct {
	server   *Server
	engine   *actors.Engine
	ctx      *fasthttp.RequestCtx
	operator string // name in the log of actions
}

// ask sends the engine a query that is not private.
func (c *call) ask(q committed.Question) error { return c.engine.Ask(q, nil, 0) }

// A badRequest is a request that the client has to change.
type badRequest struct{ text string }

func (e *badRequest) Error() string { return e.text }

// decode reads the body of a POST, or the query, into a struct.
func (c *call) decode(into any) error {
	if !c.ctx.IsPost() {
		return c.readQuery(reflect.ValueOf(into).Elem())
	}
	if err := c.parse(into); err != nil {
		return err
	}
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Tag.Get("need") != "" &&
			f.Type == reflect.TypeFor[*bool]() && v.Field(i).IsNil() {
			return &badRequest{f.Tag.Get("json") + ": true or false is required"}
		}
	}
	return nil
}

// readQuery reads the query into the fields of a struct: text, flags, and numbers with bounds. The
// tag is describes a number, for the error.
func (c *call) readQuery(into reflect.Value) error {
	for _, f := range reflect.VisibleFields(into.Type()) {
		if f.Anonymous {
			continue
		}
		m, v := MemberOf(&f), into.FieldByIndex(f.Index)
		text := c.ctx.QueryArgs().Peek(m.Name)
		if v.Kind() == reflect.Pointer && c.ctx.QueryArgs().Has(m.Name) {
			given := string(text)
			v.Set(reflect.ValueOf(&given))
		}
		switch least, _ := m.Bound("min"); {
		case v.Kind() == reflect.String:
			v.SetString(string(text))
		case v.Kind() == reflect.Bool && len(text) > 0:
			on, ok := api.Flag(text)
			if !ok {
				return &badRequest{m.Name + ": 1, 0, true or false"}
			}
			v.SetBool(on)
		case v.Kind() == reflect.Uint64 && len(text) == 0:
			usual, _ := m.Bound("default")
			v.SetUint(uint64(usual))
		case v.Kind() == reflect.Uint64:
			most, bounded := m.Bound("max")
			n, ok := api.Integer(text)
			if !ok || n < uint64(least) || bounded && n > uint64(most) {
				return &badRequest{m.Name + ": " + cmp.Or(f.Tag.Get("is"),
					fmt.Sprintf("%d to %d", least, most))}
			}
			v.SetUint(n)
		}
	}
	return nil
}

// parse reads the body into a struct. It refuses unknown fields and repeated ones, because an
// operator's slip must not pass unnoticed.
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
		return &badRequest{"there is data after the JSON object"}
	}
	return unique(body)
}

// wrongType names the member of a body that has a wrong type, without the names of Go's types.
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

// unique refuses an object that has a member twice, because one of the two would be ignored without
// notice. The body is an object or null.
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

// A Number is the text of a number, or of the value that was sent in its place. Its handler parses
// it, because the error needs the field's name.
type Number string

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		text = string(b)
	}
	*n = Number(text)
	return nil
}

// line returns an error for a text of more than one line.
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

// maxList bounds a list.
const maxList = 100_000

// A Page bounds a list.
type page struct {
	Limit uint64 `json:"limit" min:"1" max:"MaxList" default:"1000"`
}

// An AccountPage is a page of a list by accounts.
type accountPage struct {
	page
	After uint64 `json:"after" min:"0" is:"the id of an account"`
}

// account returns the id of the account with a name.
func (c *call) account(name string) (uint32, error) {
	q := &committed.Account{Name: name}
	if err := c.ask(q); err != nil {
		return 0, err
	}
	if q.Info.ID == 0 {
		return 0, &badRequest{fmt.Sprintf("there is no account %.80q", name)}
	}
	return q.Info.ID, nil
}
