package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"exchange/gateway/api"
	"exchange/gateway/encode"
)

// A description is one operation of the document. It repeats nothing of api.Operation.
type description struct {
	method, path string // as in the table of operations
	id, tag      string
	summary      string // a few words for lists
	text         string // Markdown

	parameters []parameter // of the path and the query
	body       string      // the schema of a POST's body, by name

	status  int    // of success
	success string // content of the answer
	answer  any    // its schema
	kind    string // its media type; "": JSON
	headers []string
	cached  bool // 304 is possible

	refusals []refusal      // 400 with other bodies than a failure's
	failures []*api.Failure // beyond the failures that follow from the route
}

// A refusal is an example of 400 outside the catalogue.
type refusal struct {
	name string
	body any
}

// A parameter is one parameter of a path or a query.
type parameter struct {
	name, in, text string
	example        any // of a parameter of a path, which always has one
	schema         object
}

// descriptions returns the operations in the order of the document.
func descriptions() []description {
	var all []description
	for _, part := range [][]description{marketDescriptions(), accountDescriptions(),
		orderDescriptions(), specialDescriptions(), withdrawalDescriptions(),
		serviceDescriptions()} {
		all = append(all, part...)
	}
	return all
}

// A Document is the encoded OpenAPI document.
type Document struct {
	body []byte
	page func() *Page
}

// New describes the public API, and the page at /docs if the edge has it. contact is an e-mail or
// https address for programmers; "": none.
func New(docs bool, contact string) *Document {
	operations := map[string]*api.Operation{}
	for _, o := range append(slices.Clone(api.Operations), Operations(docs)...) {
		operations[o.Method+" "+o.Path] = &o
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(encoded(operations, contact)); err != nil {
		panic("BUG: the OpenAPI document cannot be encoded: " + err.Error())
	}
	body := bytes.TrimSpace(b.Bytes())
	return &Document{body, sync.OnceValue(func() *Page { return newPage(jsonMedia, body) })}
}

// Page returns the document as a file. It is packed for the first call.
func (d *Document) Page() *Page { return d.page() }

func encoded(described map[string]*api.Operation, contact string) object {
	var paths object
	at := map[string]int{}
	for _, d := range descriptions() {
		e := described[d.method+" "+d.path]
		if e == nil && strings.HasPrefix(d.path, docsPath) {
			continue // the page is switched off
		}
		if e == nil {
			panic("BUG: " + d.method + " " + d.path + " is described and is no operation")
		}
		path := d.documentPath()
		n, known := at[path]
		if !known {
			n = len(paths)
			at[path] = n
			paths = append(paths, member{path, object{}})
		}
		operations := paths[n].value.(object)
		paths[n].value = append(operations, member{strings.ToLower(d.method), d.operation(e)})
	}
	return object{
		{"openapi", "3.1.0"},
		{"info", append(object{{"title", "Exchange API"}, {"version", api.Version},
			{"description", introduction()}, license}, contactOf(contact)...)},
		{"servers", []object{{{"url", "/"},
			{"description", "The exchange that serves this document."}}}},
		{"tags", tags()},
		{"paths", paths},
		{"components", object{
			{"schemas", schemas()},
			{"responses", sharedResponses()},
			{"headers", headers()},
			{"examples", failureExamples()},
			{"securitySchemes", security()},
		}},
	}
}

// license is that of the program, in the information about a document.
var license = member{"license", object{{"name", "Apache License 2.0"},
	{"identifier", "Apache-2.0"}}}

// contactOf returns the contact in the information about the document; nil: none.
func contactOf(address string) object {
	switch {
	case address == "":
		return nil
	case strings.HasPrefix(address, "https://"):
		return object{{"contact", object{{"url", address}}}}
	}
	return object{{"contact", object{{"email", address}}}}
}

// documentPath returns the path in the form for clients: paths of version 1 end with a slash. The
// edge answers all paths with and without it.
func (d *description) documentPath() string {
	if strings.HasPrefix(d.path, "/api/v1/") {
		return d.path + "/"
	}
	return d.path
}

func (d *description) operation(e *api.Operation) object {
	o := object{{"operationId", d.id}, {"tags", []string{d.tag}}, {"summary", d.summary},
		{"description", d.text + "\n\n" + d.access(e)}}
	if len(d.parameters) > 0 {
		list := make([]object, 0, len(d.parameters))
		for _, p := range d.parameters {
			one := object{{"name", p.name}, {"in", p.in}, {"description", p.text}}
			if p.in == "path" {
				one = append(one, member{"required", true}, member{"example", p.example})
			}
			list = append(list, append(one, member{"schema", p.schema}))
		}
		o = append(o, member{"parameters", list})
	}
	if d.body != "" {
		content := object{{"schema", reference("schemas", d.body)}}
		o = append(o, member{"requestBody",
			object{{"required", true}, {"content",
				object{{jsonMedia, content}, {formMedia, content}}}}})
	}
	signed := object{{"key", []string{}}, {"signature", []string{}}, {"nonce", []string{}}}
	ways := []object{} // none
	switch {
	case e.Private:
		ways = []object{signed}
	case e.Signable:
		ways = []object{{}, signed}
	}
	o = append(o, member{"security", ways})
	return append(o, member{"responses", d.responses(e)})
}

// access returns the text about keys and limits, and about the last slash.
func (d *description) access(e *api.Operation) string {
	var s string
	switch {
	case e.Private:
		s = "Private: signed, with a key of the permission `" + api.PermissionName(e.Permission) +
			"`."
	case e.Probe:
		s = "Public, with a limit of its own."
	case e.Signable:
		s = "Public, or signed, with a key of the permission `" +
			api.PermissionName(e.Permission) + "`."
	default:
		s = "Public."
	}
	if e.Early {
		s += " Answers before the exchange has started, too."
	}
	if slashed := d.documentPath(); strings.HasSuffix(slashed, "/") {
		return s + " The last slash may be left out."
	}
	return s + " A slash at the end changes nothing."
}

const (
	jsonMedia = "application/json"
	formMedia = "application/x-www-form-urlencoded"
)

// rateHeaders are those of answers whose rate is limited.
var rateHeaders = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

// usualHeaders are those of every answer that is no failure.
var usualHeaders = append([]string{"Cache-Control"}, rateHeaders...)

func (d *description) responses(e *api.Operation) object {
	kind := d.kind
	if kind == "" {
		kind = jsonMedia
	}
	good := object{{"description", d.success}}
	if names := slices.Concat(d.headers, usualHeaders); len(names) > 0 {
		good = append(good, member{"headers", headerReferences(names)})
	}
	all := object{{strconv.Itoa(d.status),
		append(good, member{"content", object{{kind, object{{"schema", d.answer}}}}})}}
	if d.cached {
		all = append(all, member{"304",
			object{{"description", "The client's version, by its ETag, is still current."},
				{"headers", headerReferences(slices.Concat([]string{"ETag"}, usualHeaders))}}})
	}
	return append(all, d.failed(e)...)
}

func headerReferences(names []string) object {
	var o object
	for _, name := range names {
		o = append(o, member{name, reference("headers", name)})
	}
	return o
}

// An object is a JSON object whose members keep their order, which is the order for readers.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(encode.Text(b, m.name), ':')
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		b = append(b, value...)
	}
	return append(b, '}'), nil
}

// reference returns a reference to a component.
func reference(kind, name string) object {
	return object{{"$ref", "#/components/" + kind + "/" + name}}
}
