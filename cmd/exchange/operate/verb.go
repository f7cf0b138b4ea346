package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"exchange/cmd/exchange/cli"
	"exchange/gateway/operator"
)

// A verb is a command that makes one request of the operator's API, and prints the answer.
// Arguments and flags are members of the request, described by its type: a flag is named like its
// member.
type verb struct {
	use         string // the command after its group, with its arguments
	short, long string
	example     string
	route       string         // method, and path after /operator/v1/
	args        string         // members given as arguments; "[member]" may be left out
	flags       string         // members that are flags; "member!" must be given
	with        map[string]any // members that the command sets
	usual       uint64         // default of --limit
	// once is the advice after an unknown outcome of a change that is not repeated; "": a change is
	// repeated until its outcome is known.
	once  string
	pages bool   // the answer comes in pages
	done  string // sentence after an answer as text
	// check checks and completes a request; nil: only its members are checked.
	check func(x *invocation) error
	run   func(ctx context.Context, p *Commands, x *invocation) error // nil: send and show
}

// An invocation is one use of a verb.
type invocation struct {
	verb
	command      *cobra.Command
	method, path string
	in           reflect.Value // the request
	given        map[string]string
	out          reflect.Type // of the answer
}

// commandsOf returns the commands of verbs.
func (p *Commands) commandsOf(verbs []verb) (list []*cobra.Command) {
	for i := range verbs {
		list = append(list, p.commandOf(&verbs[i]))
	}
	return list
}

func (p *Commands) commandOf(v *verb) *cobra.Command {
	x := (&invocation{verb: *v}).begin()
	c := &cobra.Command{Use: v.use, Short: v.short, Long: v.long, Example: v.example}
	x.command = c
	c.Args = takesUpTo(argumentsOf(v.use))
	for _, name := range strings.Fields(v.flags) {
		name, required := strings.CutSuffix(name, "!")
		x.flag(name, required)
	}
	for name, value := range v.with {
		x.set(name, value)
	}
	c.RunE = cli.Run(func(ctx context.Context, args []string) error {
		if err := x.read(args); err != nil {
			return err
		}
		if v.run != nil {
			return v.run(ctx, p, x)
		}
		raw, repeats, err := p.send(ctx, x)
		if err != nil {
			return err
		}
		return p.answer(x, raw, repeats)
	})
	return c
}

// begin gives an invocation an empty request of its route.
func (x *invocation) begin() *invocation {
	x.method, x.path, _ = strings.Cut(x.route, " ")
	x.path, x.given = "/operator/v1/"+x.path, map[string]string{}
	in, out := operator.Types(x.method, x.path)
	x.in, x.out = reflect.New(reflect.TypeOf(in)).Elem(), reflect.TypeOf(out)
	if x.out.Kind() == reflect.Pointer {
		x.out = x.out.Elem()
	}
	return x
}

// argumentsOf returns the required arguments by name, and the number of optional ones.
func argumentsOf(use string) (names []string, more int) {
	for _, word := range strings.Fields(use)[1:] {
		switch {
		case strings.HasPrefix(strings.TrimPrefix(word, "["), "--"):
			return names, more
		case strings.HasPrefix(word, "["):
			more++
		default:
			names = append(names, word)
		}
	}
	return names, more
}

// takesUpTo checks that the named arguments are there, and at most more others.
func takesUpTo(names []string, more int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		more := min(max(len(args)-len(names), 0), more)
		return cli.Takes(append(slices.Clone(names), make([]string, more)...)...)(c, args)
	}
}

// member returns a member of the request, and its field.
func (x *invocation) member(name string) (reflect.Value, operator.Member) {
	for _, f := range reflect.VisibleFields(x.in.Type()) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name && !f.Anonymous {
			return x.in.FieldByIndex(f.Index), operator.MemberOf(&f)
		}
	}
	panic("BUG: the request of " + x.use + " has no member " + name)
}

// set sets a member.
func (x *invocation) set(name string, value any) {
	v, _ := x.member(name)
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	v.Set(reflect.ValueOf(value).Convert(v.Type()))
}

// text returns a member that is text.
func (x *invocation) text(name string) string {
	v, _ := x.member(name)
	return v.String()
}

func flagOf(member string) string { return strings.ReplaceAll(member, "_", "-") }

// flag adds the flag of a member.
func (x *invocation) flag(name string, required bool) {
	v, m := x.member(name)
	about := strings.ToLower(m.Text[:1]) + m.Text[1:]
	if required {
		about += " (required)"
	}
	if list, there := x.with[name].([]string); there {
		about += " (default " + strings.Join(list, ",") + ")"
	}
	if name == "limit" {
		about = fmt.Sprintf("maximum number of entries, 1 to %d (default %d)", maxList, x.usual)
		v.SetUint(x.usual)
	}
	f := x.command.Flags().VarPF(&memberFlag{x, name, v}, flagOf(name), "", about)
	if v.Kind() == reflect.Bool {
		f.NoOptDefVal = "true"
	}
	if required {
		f.Annotations = map[string][]string{"required": nil}
	}
}

// A memberFlag is the value of a member's flag.
type memberFlag struct {
	x    *invocation
	name string
	v    reflect.Value
}

func (f *memberFlag) String() string { return "" }

// Type implements pflag.Value.
func (f *memberFlag) Type() string {
	switch f.v.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.Slice:
		return "strings"
	case reflect.Pointer:
		return strings.TrimPrefix(f.v.Type().Elem().String(), "operator.")
	case reflect.Uint64:
		return "number"
	}
	return "string"
}

// Set implements pflag.Value. A list's flag may be repeated; of any other the last one applies.
func (f *memberFlag) Set(text string) error {
	if before, there := f.x.given[f.name]; there && f.v.Kind() == reflect.Slice {
		text = before + "," + text
	}
	f.x.given[f.name] = text
	if f.v.Kind() == reflect.Bool {
		on, err := strconv.ParseBool(text)
		f.v.SetBool(on)
		return err
	}
	return nil
}

// read reads the arguments and the flags into the request.
func (x *invocation) read(args []string) error {
	for i, name := range strings.Fields(x.args) {
		if name = strings.Trim(name, "[]"); i < len(args) {
			if _, twice := x.given[name]; twice {
				return cli.Usage("%s has the %s twice: leave out --%s",
					strings.TrimPrefix(x.command.CommandPath(), "exchange "), name, flagOf(name))
			}
			x.given[name] = args[i]
		}
	}
	var missing []string
	x.command.Flags().VisitAll(func(f *pflag.Flag) {
		if _, required := f.Annotations["required"]; required && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	if missing != nil {
		return cli.Usage("%s needs %s", strings.TrimPrefix(x.command.CommandPath(), "exchange "),
			strings.Join(missing, " and "))
	}
	for _, f := range reflect.VisibleFields(x.in.Type()) { // in the order of the type
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if text, there := x.given[name]; there && !f.Anonymous {
			if err := x.readMember(name, text); err != nil {
				return err
			}
		}
	}
	if x.check != nil {
		return x.check(x)
	}
	return nil
}

// readMember checks the text of a member, and sets it.
func (x *invocation) readMember(name, text string) error {
	v, m := x.member(name)
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return nil // its flag has set it
	case reflect.Uint64, reflect.Int:
		n, err := x.readNumber(name, text, &m)
		if err == nil {
			x.set(name, n)
		}
		return err
	case reflect.Slice:
		list, err := readLists[name](strings.FieldsFunc(text, func(r rune) bool {
			return r == ','
		}))
		if err == nil {
			v.Set(reflect.ValueOf(list))
		}
		return err
	}
	check := checks[name]
	if most, bounded := m.Bound("most"); check == nil && bounded {
		check = func(s string) error { return checkText("--"+flagOf(name), s, most) }
	}
	if check != nil {
		if err := check(text); err != nil {
			return err
		}
	}
	x.set(name, text)
	return nil
}

// readNumber reads an id, or a number with bounds.
func (x *invocation) readNumber(name, text string, m *operator.Member) (uint64, error) {
	most, bounded := m.Bound("max")
	n, err := strconv.ParseUint(text, 10, 64)
	switch {
	case bounded && (err != nil || n < 1 || n > uint64(most)):
		return 0, cli.Usage("--%s is %s: write 1 to %d", flagOf(name), text, most)
	case (err != nil || n == 0) && x.command.Flags().Lookup(name) != nil:
		return 0, cli.Usage("--%s is %s: write a number, such as 17", name, text)
	case err != nil || n == 0:
		return 0, cli.Usage("the %s %q must be its number, such as 17", name, text)
	}
	return n, nil
}

// checks are the checks of members, by name.
var checks = map[string]func(string) error{
	"account": checkAccount, "name": checkAccount, "currency": checkCurrency, "pair": checkPair,
	"key": checkKey, "email": checkEmail, "message": checkMessage,
}

// readLists are the readers of list members, by name.
var readLists = map[string]func([]string) ([]string, error){
	"permissions": readPermissions, "allow": readNetworks,
}

// body returns the body of a POST; nil of a GET, whose members are in its address.
func (x *invocation) body() (address string, body any) {
	if x.method == "POST" {
		return x.path, x.in.Addr().Interface()
	}
	query := url.Values{}
	for _, f := range reflect.VisibleFields(x.in.Type()) {
		if v := x.in.FieldByIndex(f.Index); !f.Anonymous && !v.IsZero() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			query.Set(name, cli.Either(v.Kind() == reflect.Bool, "1",
				fmt.Sprint(reflect.Indirect(v).Interface())))
		}
	}
	if len(query) == 0 {
		return x.path, nil
	}
	return x.path + "?" + query.Encode(), nil
}

// send makes the request. A change is repeated until its outcome is known, unless it has advice for
// that case.
func (p *Commands) send(ctx context.Context, x *invocation) (raw json.RawMessage, repeats int,
	err error) {
	address, body := x.body()
	switch {
	case x.pages:
		raw, err = p.askPages(ctx, x)
	case body == nil:
		raw, err = p.ask(ctx, address, x.out)
	case x.once != "":
		raw, err = p.change(ctx, address, body, x.out,
			strings.Replace(x.once, "ACCOUNT", x.given["account"], 1))
	default:
		return p.changeUntilKnown(ctx, address, body, x.out, repeatIt)
	}
	return raw, 0, err
}

// answer prints an answer.
func (p *Commands) answer(x *invocation, raw json.RawMessage, repeats int) error {
	if err := p.show(x.out, raw); err != nil || p.JSON {
		return err
	}
	n, _ := parseMembers(raw)
	if limit, there := x.in.Type().FieldByName("Limit"); there {
		most := int(x.in.FieldByIndex(limit.Index).Uint())
		before := strings.Contains(x.flags, "before")
		if c := columnsOf(x.out)[0]; !x.pages && (most < maxList || before) &&
			length(n[c.name]) >= most || n["next"] != nil || n["after"] != nil {
			fmt.Fprintf(p.Stdout, "\nThere may be more: give a larger --limit%s.\n",
				cli.Either(before, ", or --before", ""))
		}
	}
	if x.done != "" {
		fmt.Fprintf(p.Stdout, "\n%s\n", x.done)
	}
	if string(n["repeated"]) == "true" {
		fmt.Fprintf(p.Stdout, "\nAlready done%s.\n", cli.Either(repeats > 0,
			", perhaps by an earlier try of this command", ": nothing was changed"))
	}
	return nil
}

// length returns the number of elements of a list.
func length(raw json.RawMessage) int {
	list, _ := elements(raw)
	return len(list)
}

// askPages requests one page after the other, up to the limit of rows, and returns them as one.
// `next` is present if there may be more.
func (p *Commands) askPages(ctx context.Context, x *invocation) (json.RawMessage, error) {
	limit := uint64(math.MaxUint64)
	if f := x.in.FieldByName("Limit"); x.usual > 0 {
		limit = f.Uint()
		f.SetUint(0)
	}
	all, rows := map[string][]json.RawMessage{}, uint64(0)
	var last members
	for more := true; more && rows < limit; {
		if left := limit - rows; left < pageOfRows {
			x.set("limit", left)
		}
		address, _ := x.body()
		raw, err := p.ask(ctx, address, x.out)
		if err != nil {
			return nil, err
		}
		last, _ = parseMembers(raw)
		for _, c := range columnsOf(x.out) {
			if rowOf(c.valueType) != nil {
				list, _ := elements(last[c.name])
				all[c.name], rows = append(all[c.name], list...), rows+uint64(len(list))
			}
		}
		more = x.nextPage(last)
	}
	whole := []byte{'{'}
	for _, c := range columnsOf(x.out) {
		value := last[c.name]
		if rowOf(c.valueType) != nil {
			value, _ = json.Marshal(append([]json.RawMessage{}, all[c.name]...))
		}
		if value != nil {
			whole = fmt.Appendf(whole, "%s%q:%s", cli.Either(len(whole) > 1, ",", ""), c.name,
				value)
		}
	}
	return append(whole, '}'), nil
}

// pageOfRows is the server's default number of rows on a page.
const pageOfRows = 1000

// nextPage makes the request ask for the next page, and reports whether there may be more: a page
// has the begin of the next one as `next`, and for orders as `after`, too.
func (x *invocation) nextPage(page members) bool {
	next, after := page["next"], page["after"]
	if before := x.in.FieldByName("Before"); before.IsValid() {
		before.SetUint(number(next))
		x.in.FieldByName("After").SetUint(number(after))
	} else {
		x.in.FieldByName("After").SetUint(number(next))
	}
	return next != nil || after != nil
}

func number(raw json.RawMessage) (n uint64) {
	_ = json.Unmarshal(raw, &n) // none is 0
	return n
}
