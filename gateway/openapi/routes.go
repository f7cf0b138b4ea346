package openapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"exchange/gateway/api"
)

// The document of an API whose bodies and answers are Go types, which is the operator's. Each
// schema is made from its type, so that it has exactly the type's members.

// An Outline is such an API.
type Outline struct {
	Title, Text string
	Tags        []Tag
	Routes      []Route
	Words       map[string]string // texts of members that have none of their own, by name
	Bounds      map[string]int    // by the name in a tag
	Scheme      string            // text about the bearer token
	Header      Header            // of every request that changes something
	Failure     any               // a value of the type of every refusal
	Statuses    []Status          // of refusals, which every operation can have
}

// A Tag is a group of operations.
type Tag struct{ Name, Text string }

// A Header is an optional header of a request.
type Header struct{ Name, Text, Pattern string }

// A Status is the status of a refusal. Its headers are optional.
type Status struct {
	Status  int
	Text    string
	Headers []string // of those that the public API has, too
}

// A Route is one operation. It has one body at most, and its answers of status 200 are of one type
// or of several.
type Route struct {
	Method, Path string
	Tag, Summary string
	Text         string // Markdown
	Query        any    // a value of its type; nil: none
	Body         any    // a value of its type; nil: none
	Answers      []any  // a value of each type; of an answer in lines, those of its lines
	End          any    // a value of the type that ends an answer in lines; nil: no lines
	Kind         string
	Refusals     []Refusal // examples of status 400
}

// A Refusal is the refusal of a body, or a query, in an exchange without accounts.
type Refusal struct{ Ask, Text string }

// A Member is a member of a body, an answer or a query, by the tags of its field: doc, need, most
// (characters, or entries), min, max, default, pattern, enum (words, separated by commas), and
// const, for a member that is always true.
type Member struct {
	Name    string
	omitted bool // left out of an answer where it is empty
	Text    string
	need    bool // of a body or a query
	tag     reflect.StructTag
	bounds  map[string]int
}

// MemberOf returns the description of a field. It panics without one.
func MemberOf(f *reflect.StructField, words map[string]string, bounds map[string]int) Member {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	text := f.Tag.Get("doc")
	if text == "" {
		text = words[name]
	}
	if name == "" || text == "" {
		panic("BUG: no description of the member " + f.Name + " " + name)
	}
	return Member{name, strings.Contains(options, "omitempty"), text, f.Tag.Get("need") != "",
		f.Tag, bounds}
}

// Bound returns the number of a tag.
func (m *Member) Bound(tag string) (n int, there bool) {
	text, there := m.tag.Lookup(tag)
	if !there {
		return 0, false
	}
	if n, there = m.bounds[text]; there {
		return n, true
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic("BUG: " + m.Name + " has the bound " + text)
	}
	return n, true
}

// keywords returns the keywords of a schema, without the type. Those about a list's content belong
// to its entries.
func (m *Member) keywords(list bool) object {
	o, length := object{{"description", m.Text + "."}}, "maxLength"
	if list {
		length = "maxItems"
	}
	if words, there := m.tag.Lookup("enum"); there {
		enum := member{"enum", strings.Split(words, ",")}
		if list {
			enum = member{"items", object{{"type", "string"}, enum}}
		}
		o = append(o, enum)
	}
	for _, x := range []struct{ tag, keyword string }{{"min", "minimum"}, {"max", "maximum"},
		{"default", "default"}, {"most", length}} {
		if n, there := m.Bound(x.tag); there {
			o = append(o, member{x.keyword, n})
		}
	}
	if m.tag.Get("const") != "" {
		o = append(o, member{"const", true})
	}
	if pattern := m.tag.Get("pattern"); pattern != "" {
		o = append(o, member{"pattern", pattern})
	}
	return o
}

// OfRoutes returns the document of an API.
func OfRoutes(of *Outline) []byte {
	r := &reflected{outline: of, types: map[string]reflect.Type{}}
	var tags []object
	for _, t := range of.Tags {
		tags = append(tags, object{{"name", t.Name}, {"description", t.Text}})
	}
	paths, responses := r.paths(), r.responses()
	slices.SortFunc(r.schemas, func(a, b member) int { return strings.Compare(a.name, b.name) })
	h := of.Header
	document := object{
		{"openapi", "3.1.0"},
		{"info", object{{"title", of.Title}, {"version", api.Version}, {"description", of.Text},
			license}},
		{"servers", []object{{{"url", "/"},
			{"description", "The listener that serves this document."}}}},
		{"tags", tags},
		{"security", []object{{{"token", []string{}}}}},
		{"paths", paths},
		{"components", object{
			{"schemas", r.schemas},
			{"responses", responses},
			{"parameters", object{{h.Name, object{{"name", h.Name}, {"in", "header"},
				{"description", h.Text},
				{"schema", object{{"type", "string"}, {"pattern", h.Pattern}}}}}}},
			{"headers", r.headers()},
			{"securitySchemes", object{{"token", object{{"type", "http"},
				{"scheme", "bearer"}, {"description", of.Scheme}}}}},
		}},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		panic("BUG: the OpenAPI document cannot be encoded: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}

// A reflected makes schemas from types.
type reflected struct {
	outline *Outline
	schemas object
	types   map[string]reflect.Type // of schemas, by name
}

func (r *reflected) paths() object {
	var paths object
	for _, route := range r.outline.Routes {
		n := slices.IndexFunc(paths, func(m member) bool { return m.name == route.Path })
		if n < 0 {
			n = len(paths)
			paths = append(paths, member{route.Path, object{}})
		}
		paths[n].value = append(paths[n].value.(object),
			member{strings.ToLower(route.Method), r.operation(&route)})
	}
	return paths
}

func (r *reflected) operation(route *Route) object {
	o := object{{"operationId", route.id()}, {"tags", []string{route.Tag}},
		{"summary", route.Summary}, {"description", route.Text}}
	parameters := r.query(route.Query)
	if route.Method == "POST" {
		parameters = append(parameters, reference("parameters", r.outline.Header.Name))
	}
	if len(parameters) > 0 {
		o = append(o, member{"parameters", parameters})
	}
	if route.Body != nil {
		o = append(o, member{"requestBody", object{{"required", true}, {"content",
			object{{jsonMedia, object{{"schema", r.body(reflect.TypeOf(route.Body))}}}}}}})
	}
	all := object{{"200", object{{"description", "Done, or the requested data."},
		{"content", r.success(route)}}}}
	for _, s := range r.outline.Statuses {
		response := reference("responses", responseName(s.Status))
		if s.Status == 400 && len(route.Refusals) > 0 {
			response = r.refused(&s, route.Refusals)
		}
		all = append(all, member{strconv.Itoa(s.Status), response})
	}
	return append(o, member{"responses", all})
}

// query returns the parameters of a query. A flag is sent as 1.
func (r *reflected) query(value any) (list []object) {
	if value == nil {
		return nil
	}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(value)) {
		if f.Anonymous {
			continue
		}
		m := MemberOf(&f, r.outline.Words, r.outline.Bounds)
		one, schema := object{{"name", m.Name}, {"in", "query"}}, object{{"type", "string"}}
		if m.need {
			one = append(one, member{"required", true})
		}
		switch f.Type.Kind() {
		case reflect.Bool:
			schema = append(object{{"type", "integer"}}, m.keywords(false)...)
			schema = append(schema, member{"enum", []int{1}})
		case reflect.Int, reflect.Uint64:
			schema = append(object{{"type", "integer"}}, m.keywords(false)...)
		default:
			schema = append(schema, m.keywords(false)...)
		}
		list = append(list, append(one, member{"schema", schema}))
	}
	return list
}

// id returns the operation's name, such as postAccountsFreeze.
func (route *Route) id() string {
	id := strings.ToLower(route.Method)
	parts := strings.FieldsFunc(route.Path, func(c rune) bool {
		return c == '/' || c == '-' || c == '.'
	})
	for _, part := range parts[2:] { // after operator and v1
		id += upper(part)
	}
	return id
}

func upper(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// success returns the content of status 200.
func (r *reflected) success(route *Route) object {
	if route.Kind != "" {
		return object{{route.Kind, object{{"schema", object{{"type", "string"},
			{"contentEncoding", "binary"}}}}}}
	}
	var all []any
	for _, a := range route.Answers {
		all = append(all, r.schema(reflect.TypeOf(a)))
	}
	if route.End == nil {
		if len(all) == 1 {
			return object{{jsonMedia, object{{"schema", all[0]}}}}
		}
		return object{{jsonMedia, object{{"schema", object{{"oneOf", all}}}}}}
	}
	end := recordSchema("The last line of an answer that is whole.",
		property{name: "end", schema: r.schema(reflect.TypeOf(route.End))})
	all = append(all, end, r.schema(reflect.TypeOf(r.outline.Failure)))
	return object{{"application/x-ndjson", object{{"schema",
		object{{"description", "Each line of the answer is a JSON object of one of these. The " +
			"last one has `end`, or `error`; without such a line the answer is broken."},
			{"oneOf", all}}}}}}
}

func (r *reflected) responses() object {
	var all object
	for _, s := range r.outline.Statuses {
		all = append(all, member{responseName(s.Status), r.refused(&s, nil)})
	}
	return all
}

// refused returns the response of a refusal.
func (r *reflected) refused(s *Status, refusals []Refusal) object {
	content := object{{"schema", r.schema(reflect.TypeOf(r.outline.Failure))}}
	var examples object
	for i, x := range refusals {
		examples = append(examples, member{"refusal" + strconv.Itoa(i+1), object{
			{"summary", x.Ask}, {"value", object{{"error", x.Text}}}}})
	}
	if examples != nil {
		content = append(content, member{"examples", examples})
	}
	response := object{{"description", s.Text}}
	if len(s.Headers) > 0 {
		response = append(response, member{"headers", headerReferences(s.Headers)})
	}
	return append(response, member{"content", object{{jsonMedia, content}}})
}

// headers returns the public API's headers that the refusals have.
func (r *reflected) headers() object {
	return slices.DeleteFunc(headers(), func(m member) bool {
		return !slices.ContainsFunc(r.outline.Statuses, func(s Status) bool {
			return slices.Contains(s.Headers, m.name)
		})
	})
}

var (
	marshaler   = reflect.TypeFor[json.Marshaler]()
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	jsonNumber  = reflect.TypeFor[json.Number]()
	bytesType   = reflect.TypeFor[[]byte]()
	rawMessage  = reflect.TypeFor[json.RawMessage]()
)

// schema returns the schema of an answer's type, or of a member's.
func (r *reflected) schema(t reflect.Type) object {
	switch {
	case t == rawMessage:
		return object{{"type", "object"}}
	case t == jsonNumber:
		return object{{"type", "number"}}
	case t.Implements(marshaler): // an amount of money
		return object{{"type", "number"}, notNegative}
	case reflect.PointerTo(t).Implements(unmarshaler): // such an amount in a body
		return object{{"type", []string{"number", "string"}}}
	}
	switch t.Kind() {
	case reflect.String:
		return object{{"type", "string"}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Int, reflect.Int64:
		return object{{"type", "integer"}, int64Format}
	case reflect.Uint64:
		return object{{"type", "integer"}, member{"format", "uint64"}, notNegative}
	case reflect.Uint8, reflect.Uint32:
		return object{{"type", "integer"}, notNegative}
	case reflect.Slice:
		if t == bytesType {
			return object{{"type", "string"}, {"contentEncoding", "base64"}}
		}
		return object{{"type", "array"}, {"items", r.schema(t.Elem())}}
	case reflect.Pointer:
		return r.schema(t.Elem())
	case reflect.Struct:
		return reference("schemas", r.record(t, false))
	}
	panic("BUG: no schema for " + t.String())
}

// body returns the schema of a body.
func (r *reflected) body(t reflect.Type) object {
	return reference("schemas", r.record(t, true))
}

// record returns the name of the schema of a struct, which it makes if missing.
func (r *reflected) record(t reflect.Type, body bool) string {
	name := upper(t.Name())
	if known := r.types[name]; known != nil {
		if known != t {
			panic("BUG: " + known.String() + " and " + t.String() + " have the same name")
		}
		return name
	}
	r.types[name] = t
	var properties []property
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		about := MemberOf(&f, r.outline.Words, r.outline.Bounds)
		s, list := r.schema(f.Type), f.Type.Kind() == reflect.Slice && f.Type != bytesType
		if f.Type.Kind() == reflect.Pointer && !body && !about.omitted {
			s = nullable(s)
		}
		properties = append(properties, property{about.Name, joined(s, about.keywords(list)),
			body && !about.need || !body && about.omitted})
	}
	o := slices.DeleteFunc(recordSchema("", properties...),
		func(m member) bool { return m.name == "description" })
	if body {
		o = append(o, member{"additionalProperties", false})
	}
	r.schemas = append(r.schemas, member{name, o})
	return name
}

// joined returns a schema with more keywords, which replace its own.
func joined(s, more object) object {
	s = slices.DeleteFunc(slices.Clone(s), func(m member) bool {
		return slices.ContainsFunc(more, func(x member) bool { return x.name == m.name })
	})
	return append(s, more...)
}

// nullable returns a schema of the same values and null.
func nullable(s object) object {
	if kind, ok := s[0].value.(string); ok && s[0].name == "type" {
		return append(object{{"type", []string{kind, "null"}}}, s[1:]...)
	}
	return object{{"anyOf", []object{s, {{"type", "null"}}}}}
}
