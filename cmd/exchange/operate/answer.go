package operate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"exchange/cmd/exchange/cli"
)

// The server's type of an answer defines its required members, and their order in text. Digits of
// amounts and ids pass through untouched, because no member is parsed.

// members are the members of a JSON object, by name.
type members map[string]json.RawMessage

func parseMembers(raw []byte) (n members, ok bool) {
	return n, json.Unmarshal(raw, &n) == nil && n != nil
}

// elements returns the elements of a JSON array; false: the text is no array.
func elements(raw json.RawMessage) (list []json.RawMessage, ok bool) {
	return list, json.Unmarshal(raw, &list) == nil && list != nil
}

// A column is a member of a type, with its displayed name.
type column struct {
	name, label string
	valueType   reflect.Type
	optional    bool // left out where it is empty
	data        bool // for programs only, not in text
	always      bool // true in each answer
}

// columnsOf returns the members of a struct, those of embedded ones in their place.
func columnsOf(t reflect.Type) (list []column) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous && f.IsExported() && name != "" {
			list = append(list, column{name, strings.ReplaceAll(name, "_", " "), f.Type,
				options == "omitempty", f.Tag.Get("text") == "-", f.Tag.Get("const") != ""})
		}
	}
	return list
}

// object returns the struct type of a member that is an object or null; nil: any other member.
func object(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || len(columnsOf(t)) == 0 {
		return nil
	}
	return t
}

// rowOf returns the struct type of a list's elements; nil: no list of objects.
func rowOf(t reflect.Type) reflect.Type {
	if t.Kind() != reflect.Slice {
		return nil
	}
	return object(t.Elem())
}

// complete reports whether a text is a value of a type with all its members: a missing `on` is not
// `off`.
func complete(t reflect.Type, raw []byte) bool {
	if string(raw) == "null" {
		return t.Kind() == reflect.Pointer
	}
	if row := rowOf(t); row != nil {
		list, ok := elements(raw)
		return ok && !slices.ContainsFunc(list,
			func(x json.RawMessage) bool { return !complete(row, x) })
	}
	structType := object(t)
	if structType == nil {
		if t.Implements(reflect.TypeFor[json.Marshaler]()) { // an amount of money
			t = reflect.TypeFor[json.Number]()
		}
		return json.Unmarshal(raw, reflect.New(t).Interface()) == nil
	}
	n, ok := parseMembers(raw)
	return ok && !slices.ContainsFunc(columnsOf(structType), func(c column) bool {
		value, there := n[c.name]
		return there && !complete(c.valueType, value) || !there && !c.optional ||
			c.always && string(value) != "true"
	})
}

// show prints a whole answer of a type: as it is, or as text.
func (p *Commands) show(t reflect.Type, raw []byte) error {
	if p.JSON {
		_, err := fmt.Fprintf(p.Stdout, "%s\n", bytes.TrimSpace(raw))
		return err
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	writeAnswer(w, t, raw)
	return w.Flush()
}

// A table is a list of objects in an answer.
type table struct {
	label   string
	rowType reflect.Type
	rows    []json.RawMessage
}

// writeAnswer writes an answer as text: a line for each member, and a table for each list.
func writeAnswer(w io.Writer, t reflect.Type, raw []byte) {
	n, _ := parseMembers(raw)
	var tables []table
	lines := writeLines(w, t, n, "", &tables)
	for i := range tables {
		x := &tables[i]
		if lines > 0 || len(tables) > 1 {
			if len(x.rows) == 0 {
				continue
			}
			if lines++; lines > 1 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "%s:\n", x.label)
		}
		x.write(w)
	}
}

// writeLines writes a line for each member of an object, and returns their number. Lists of objects
// go into tables instead.
func writeLines(w io.Writer, t reflect.Type, n members, prefix string,
	tables *[]table) (lines int) {
	for _, c := range columnsOf(t) {
		raw, there := n[c.name]
		label := prefix + c.label
		if row := rowOf(c.valueType); row != nil {
			rows, _ := elements(raw)
			*tables = append(*tables, table{label, row, rows})
			continue
		}
		of := object(c.valueType)
		switch inner, ok := parseMembers(raw); {
		case !there || c.data || c.name == "repeated":
			continue
		case of != nil && ok:
			lines += writeLines(w, of, inner, label+" ", tables)
		default:
			fmt.Fprintf(w, "%s\t%s\n", label, shown(raw, "\n\t"))
			lines++
		}
	}
	return lines
}

// write writes the rows under their columns, without columns that no row has.
func (x *table) write(w io.Writer) {
	rows := make([]members, len(x.rows))
	for i, raw := range x.rows {
		rows[i], _ = parseMembers(raw)
	}
	columns := slices.DeleteFunc(columnsOf(x.rowType), func(c column) bool {
		return c.data || c.optional && !slices.ContainsFunc(rows, func(n members) bool {
			return n[c.name] != nil
		})
	})
	writeHeader(w, columns)
	for _, n := range rows {
		writeRow(w, columns, n)
	}
}

func writeHeader(w io.Writer, columns []column) {
	for i, c := range columns {
		fmt.Fprint(w, strings.ToUpper(c.label), separator(i, len(columns)))
	}
}

func writeRow(w io.Writer, columns []column, n members) {
	for i, c := range columns {
		fmt.Fprint(w, shown(n[c.name], ", "), separator(i, len(columns)))
	}
}

func separator(i, n int) string { return cli.Either(i+1 < n, "\t", "\n") }

// shown formats a member; between separates the entries of a list.
func shown(raw json.RawMessage, between string) string {
	var text string
	list, isList := elements(raw)
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return cli.OrDash(text) // also of null, and of a missing member
	case isList:
		var all []string
		for _, x := range list {
			all = append(all, shown(x, between))
		}
		if all == nil {
			return "-"
		}
		return strings.Join(all, between)
	case string(raw) == "true":
		return "yes"
	case string(raw) == "false":
		return "no"
	}
	return cli.OrDash(string(raw))
}
