package config

import (
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"exchange/core/money"
)

// validate returns nil, or a problemList of all problems. Each sentence names the key, its value,
// the source of the value, and a remedy.
func (c *Config) validate() error {
	v := validator{c: c}
	v.ranges()
	v.addresses()
	v.store()
	v.files()
	v.market()
	v.mail()
	v.contact()
	for i := range Options {
		v.bound(&Options[i])
	}
	if len(v.problems) > 0 {
		return v.problems
	}
	return nil
}

type validator struct {
	c        *Config
	problems problemList
}

// problem records an error in an option's value, and a remedy.
func (v *validator) problem(key, value, format string, args ...any) {
	origin := v.c.origin[key]
	if origin != "" {
		origin = " (" + origin + ")"
	}
	v.problems = append(v.problems,
		fmt.Sprintf("%s is %s%s: %s.", key, value, origin, fmt.Sprintf(format, args...)))
}

func (v *validator) ranges() {
	for i := range Options {
		o := &Options[i]
		if o.list != nil {
			continue
		}
		switch at := o.at(v.c).(type) {
		case *int:
			if !o.inRange(*at) {
				v.problem(o.Key, Thousands(*at), "write a whole number %s", o.valueRange())
			}
		case *string:
			if len(o.choices) > 0 && !slices.Contains(o.choices, *at) {
				v.problem(o.Key, strconv.Quote(*at), "write %s", o.valueRange())
			}
		}
	}
}

// bound compares a number with its other option, unless one of them is out of range already.
func (v *validator) bound(o *Option) {
	if o.than == "" {
		return
	}
	other := optionByKey[o.than]
	n, most := *o.at(v.c).(*int), *other.at(v.c).(*int)
	least := map[string]int{below: n + 1, atMost: n, atMostHalf: 2 * n}[o.must]
	if least > most && o.inRange(n) && other.inRange(most) {
		v.problem(o.Key, Thousands(n), "it must %s %s, which is %s", o.must, o.than,
			Thousands(most))
	}
}

func (v *validator) addresses() {
	listen, ok := v.address("listen", v.c.Listen)
	if ok && v.c.Demo && !Loopback(listen.host) {
		v.problem("listen", strconv.Quote(v.c.Listen),
			"with demo only a loopback address such as 127.0.0.1:8080 is possible, "+
				"because the demo's API keys are public; to serve others, leave out demo and "+
				"write a configuration (`exchange config example`)")
	}
	taken := ports{{"listen", listen}}
	v.operator(&taken)
	v.cluster(&taken)
	if v.c.Metrics.Listen != "" {
		v.remoteListener("metrics.listen", v.c.Metrics.Listen, &v.c.Metrics.TLS, &taken,
			"because others could read there what the exchange does; set metrics.cert_file and "+
				"metrics.key_file")
	}
}

// operator checks the operator's listener.
func (v *validator) operator(taken *ports) {
	if !strings.HasPrefix(v.c.Operator, socketPrefix) {
		v.remoteListener("operator", v.c.Operator, &v.c.OperatorTLS, taken,
			"because the operator's bearer token would cross the network without TLS; set "+
				"operator_tls.cert_file and operator_tls.key_file, "+
				"or use an SSH tunnel from elsewhere")
		return
	}
	switch {
	case v.c.OperatorSocket() == "":
		v.problem("operator", strconv.Quote(v.c.Operator),
			"name the socket after %q, such as unix:operator.sock", socketPrefix)
	case v.c.OperatorTLS.On():
		v.problem("operator_tls.cert_file", strconv.Quote(v.c.OperatorTLS.CertFile),
			"operator is %q, a socket, which has no TLS; give it host:port, or no certificate",
			v.c.Operator)
	}
}

// remoteListener checks the address of a listener that other machines may reach with TLS only, and
// that no other listener may share.
func (v *validator) remoteListener(key, value string, tls *TLS, taken *ports, why string) {
	e, ok := v.address(key, value)
	if !ok {
		return
	}
	if !Loopback(e.host) && !tls.On() {
		v.problem(key, strconv.Quote(value),
			"only a loopback address such as 127.0.0.1:8081 is possible, %s", why)
	}
	for _, at := range *taken {
		if e.conflictsWith(at.endpoint) {
			v.problem(key, strconv.Quote(value), "it has the port of %s; give it another", at.key)
		}
	}
	*taken = append(*taken, port{key, e})
}

// A port is the address of an option's listener.
type port struct {
	key string
	endpoint
}

type ports []port

// exampleAddress is an example for each listener that no other one has by default.
var exampleAddress = map[string]string{
	"listen": "127.0.0.1:8080", "operator": "127.0.0.1:8081", "metrics.listen": "127.0.0.1:8082",
}

// An endpoint is the address of a listener.
type endpoint struct {
	host string
	port int
}

// conflictsWith reports whether listeners at both endpoints conflict.
func (e endpoint) conflictsWith(o endpoint) bool {
	return e.port == o.port && e.port != 0 &&
		(e.host == o.host || everyInterface(e.host) || everyInterface(o.host))
}

func (v *validator) address(key, value string) (e endpoint, ok bool) {
	host, text, err := net.SplitHostPort(value)
	if err == nil {
		e.port, err = strconv.Atoi(text)
	}
	if err != nil || e.port < 0 || e.port > 65535 || strings.ContainsFunc(host, unicode.IsSpace) {
		v.problem(key, strconv.Quote(value),
			"write host:port with a port from 0 to 65535, such as %s", exampleAddress[key])
		return endpoint{port: -1}, false
	}
	e.host = host
	return e, true
}

// Loopback reports whether only this machine can reach host.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func everyInterface(host string) bool {
	if host == "" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}

func (v *validator) store() {
	bad := func(format string, args ...any) {
		v.problem("store", strconv.Quote(RedactURL(v.c.Store)), format, args...)
	}
	switch {
	case strings.HasPrefix(v.c.Store, pebblePrefix):
		if v.c.PebbleFolder() == "" {
			bad("name a folder after %q, such as pebble:./data", pebblePrefix)
		}
	case v.c.isRedis():
		v.redis(bad)
	default:
		bad(
			"write pebble:FOLDER, redis://host:port/db, rediss://host:port/db or " +
				"unix:///path/of/the/socket?db=0")
	}
}

// redis checks the address of a Redis.
func (v *validator) redis(bad func(format string, args ...any)) {
	u, err := url.Parse(v.c.Store) // its error would repeat the password
	if err != nil {
		bad(
			"write redis://[user:password@]host:port/db; percent-encode special characters of " +
				"the password, such as / as %%2F")
		return
	}
	db := strings.Trim(u.Path, "/")
	if u.Scheme == unixScheme {
		if db = u.Query().Get("db"); u.Host != "" || strings.Trim(u.Path, "/") == "" {
			bad(
				"write unix://[user:password@]/path/of/the/socket?db=0, with three slashes where " +
					"there is no user")
		}
	} else if u.Hostname() == "" {
		bad("the host is missing; write redis://[user:password@]host:port/db")
	}
	if n, err := strconv.Atoi(db); db != "" && (err != nil || n < 0) {
		bad("the database must be a number: /0 after the host, or ?db=0 after a socket")
	}
}

func (v *validator) files() {
	for _, x := range []struct {
		section string
		tls     *TLS
	}{{"tls", &v.c.TLS}, {"operator_tls", &v.c.OperatorTLS}, {"metrics", &v.c.Metrics.TLS}} {
		switch {
		case x.tls.CertFile != "" && x.tls.KeyFile == "":
			v.problem(x.section+".key_file", "empty",
				"%s.cert_file is set; name the file of its key", x.section)
		case x.tls.CertFile == "" && x.tls.KeyFile != "":
			v.problem(x.section+".cert_file", "empty",
				"%s.key_file is set; name the file of its certificate", x.section)
		}
	}
	if filepath.Clean(v.c.OperatorTokenFile) == filepath.Clean(v.c.SecretKeyFile) &&
		v.c.SecretKeyFile != "" {
		v.problem("secret_key_file", strconv.Quote(v.c.SecretKeyFile),
			"operator_token_file is the same file; give each its own")
	}
}

// mail checks the options of mails, if any are sent.
func (v *validator) mail() {
	m := &v.c.Mail
	if m.Host == "" {
		return
	}
	if _, err := netip.ParseAddr(m.Host); err != nil && !validHost(m.Host) {
		v.problem("mail.host", strconv.Quote(m.Host),
			"write a host's name or IP address alone, such as mail.example.org; its port goes "+
				"into mail.port")
	}
	if a, err := mail.ParseAddress(m.From); err != nil || len(m.From) > maxFrom ||
		strings.ContainsFunc(m.From+a.Name, unicode.IsControl) ||
		strings.ContainsFunc(a.Address, func(r rune) bool {
			return r > unicode.MaxASCII || unicode.IsSpace(r)
		}) {
		v.problem("mail.from", strconv.Quote(m.From),
			"with mail.host, write an address such as exchange@example.org or \"Example Exchange "+
				"<exchange@example.org>\"")
	}
	switch {
	case m.Username == "" && m.Password != "":
		v.problem("mail.username", "empty", "mail.password is set; write the user it belongs to")
	case m.Username != "" && m.Password == "":
		v.problem("mail.password", "empty",
			"mail.username is set; write its password, best in EXCHANGE_MAIL_PASSWORD")
	case m.Username != "" && m.TLS == "none" && !Loopback(m.Host):
		v.problem("mail.tls", strconv.Quote(m.TLS),
			"the password would cross the network in clear text; write required or implicit, "+
				"leave out mail.username, or use a server on this machine")
	}
	for _, x := range []struct{ key, text string }{{"mail.username", m.Username},
		{"mail.password", m.Password}} {
		if len(x.text) > maxLogin || strings.ContainsFunc(x.text, unicode.IsControl) {
			v.problem(x.key, "wrong", "write at most %d bytes of text without control characters",
				maxLogin)
		}
	}
}

// validHost reports whether s can be the name of a host.
func validHost(s string) bool {
	return len(s) <= maxHost && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._", r)
	})
}

const (
	maxHost  = 253 // bytes of a host's name: RFC 1035
	maxFrom  = 400 // bytes of mail.from: an address of 254 and a name
	maxLogin = 255 // bytes of mail.username and of mail.password: RFC 4616
)

const (
	maxCode = 12 // characters of a currency's code
	maxSign = 8  // characters of its sign
	// characters of its deposit instructions
	maxInstructions = 1000
	maxPattern      = 512   // bytes of the pattern of its addresses
	maxCurrencies   = 4_096 // capacity of one wallet in the store
	maxPairs        = 10_000
)

// contact checks the address for programmers of clients.
func (v *validator) contact() {
	c := v.c.Contact
	page, err := url.Parse(c)
	isPage := err == nil && page.Scheme == "https" && page.Host != ""
	a, err := mail.ParseAddress(c)
	if c != "" && !isPage && (err != nil || a.Address != c) {
		v.problem("contact", strconv.Quote(c), "write an e-mail address or an https address")
	}
}

func (v *validator) market() {
	c := v.c
	if c.unread {
		return
	}
	if len(c.Currencies) == 0 && len(c.Pairs) == 0 {
		v.problems = append(v.problems,
			"no currencies and pairs are configured: give a file with currencies and pairs by "+
				"--config FILE "+
				"(`exchange config example > exchange.yaml` makes a sample), or --demo to try "+
				"it out.")
		return
	}
	if c.Demo && !v.isDemoMarket() {
		v.problems = append(v.problems,
			"demo brings currencies and pairs of its own: leave out either demo or currencies "+
				"and pairs.")
		return
	}
	if len(c.Currencies) > maxCurrencies {
		v.problem("currencies", Thousands(len(c.Currencies))+" long", "list at most %s",
			Thousands(maxCurrencies))
	}
	if len(c.Pairs) > maxPairs {
		v.problem("pairs", Thousands(len(c.Pairs))+" long", "list at most %s", Thousands(maxPairs))
	}
	if len(c.Pairs) == 0 {
		v.problem("pairs", "empty", "list at least one")
	}
	known := map[string]bool{}
	for _, x := range c.Currencies {
		v.currency(x, known)
		known[x.Code] = true
	}
	seen := map[string]bool{}
	for _, x := range c.Pairs {
		if seen[x.Name] {
			v.problem("pairs", "wrong", "%q is listed twice; leave one out", x.Name)
		}
		seen[x.Name] = true
		v.pair(x, known)
	}
}

func (v *validator) isDemoMarket() bool {
	demo := Config{Currencies: demoCurrencies(), Pairs: demoPairs(),
		syntheticPairs: v.c.syntheticPairs}
	demo.addSynthetic()
	return slices.Equal(v.c.Currencies, demo.Currencies) && slices.Equal(v.c.Pairs, demo.Pairs)
}

func (v *validator) currency(x Currency, known map[string]bool) {
	if !validCode(x.Code) {
		v.problem("currencies", "wrong", "the code %q must be 1 to %d of A-Z and 0-9", x.Code,
			maxCode)
	} else if known[x.Code] {
		v.problem("currencies", "wrong", "%q is listed twice; leave one out", x.Code)
	}
	if !utf8.ValidString(x.Sign) || utf8.RuneCountInString(x.Sign) > maxSign ||
		strings.ContainsFunc(x.Sign, unicode.IsControl) {
		v.problem("currencies", "wrong",
			"the sign of %s must be at most %d printable characters, not %q", x.Code, maxSign,
			x.Sign)
	}
	v.addressPattern(x)
	if d := x.DepositInstructions; !utf8.ValidString(d) ||
		utf8.RuneCountInString(d) > maxInstructions ||
		strings.ContainsFunc(d, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
		v.problem("currencies", "wrong", "the deposit_instructions of %s must be at most %d "+
			"printable characters in lines, not %.100q", x.Code, maxInstructions, d)
	}
}

// addressPattern checks the pattern of a currency's addresses.
func (v *validator) addressPattern(x Currency) {
	p := x.addressPattern
	if p == "" {
		return
	}
	bad := func(format string, args ...any) {
		v.problem("currencies", "wrong", "the address_pattern of "+x.Code+" "+format, args...)
	}
	if len(p) > maxPattern {
		bad("has %d bytes; write at most %d", len(p), maxPattern)
		return
	}
	_, err := regexp.Compile(p)
	if err == nil { // an unterminated quotation (\Q) would include the text after it
		_, err = regexp.Compile(wholeAddress(p))
	}
	if err != nil {
		bad("is %q, which is no regular expression (RE2): %v", p, err)
	} else if !strings.HasPrefix(p, "^") || !strings.HasSuffix(p, "$") {
		bad("is %q; begin it with ^ and end it with $, because it must match the whole address", p)
	}
}

func validCode(s string) bool {
	return s != "" && len(s) <= maxCode && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

func (v *validator) pair(x Pair, known map[string]bool) {
	bad := func(format string, args ...any) { v.problem("pairs", "wrong", format, args...) }
	base, quote := x.Currencies()
	switch {
	case !validCode(base) || !validCode(quote):
		bad("the name %q must be two currencies with _ between, such as BTC_USDT", x.Name)
	case base == quote:
		bad("%s trades a currency against itself", x.Name)
	default:
		for _, code := range []string{base, quote} {
			if !known[code] {
				bad("%s needs the currency %s; add it to currencies", x.Name, code)
			}
		}
	}
	if x.PricePrecision < 0 || x.PricePrecision > money.FixedDecimals {
		bad("the price_precision of %s is %d; write 0 to %d", x.Name, x.PricePrecision,
			money.FixedDecimals)
	} else if !x.PriceTick.FitsDecimals(x.PricePrecision) {
		bad("the price_tick of %s is %s, which has more decimals than its price_precision of %d",
			x.Name, x.PriceTick, x.PricePrecision)
	}
	if x.AmountPrecision < 0 || x.AmountPrecision > money.FixedDecimals {
		bad("the amount_precision of %s is %d; write 0 to %d", x.Name, x.AmountPrecision,
			money.FixedDecimals)
		return
	}
	for _, s := range []struct {
		key   string
		value money.Amount
	}{{"minimum_order_size", x.MinimumOrderSize}, {"maximum_order_size", x.MaximumOrderSize}} {
		switch {
		case s.value <= 0:
			bad("the %s of %s must be above 0", s.key, x.Name)
		case !s.value.FitsDecimals(x.AmountPrecision):
			bad("the %s of %s is %s, which has more decimals than its amount_precision of %d",
				s.key, x.Name, s.value, x.AmountPrecision)
		case x.AmountStep > 0 && s.value%x.AmountStep != 0:
			bad("the %s of %s is %s, which is no multiple of its amount_step, %s", s.key, x.Name,
				s.value, x.AmountStep)
		}
	}
	if !x.AmountStep.FitsDecimals(x.AmountPrecision) {
		bad("the amount_step of %s is %s, which has more decimals than its amount_precision of %d",
			x.Name, x.AmountStep, x.AmountPrecision)
	}
	if x.MaximumOrderSize > 0 && x.MinimumOrderSize > x.MaximumOrderSize {
		bad("the minimum_order_size of %s, %s, is above its maximum_order_size, %s", x.Name,
			x.MinimumOrderSize, x.MaximumOrderSize)
	}
	if x.MinimumOrderValue.Cmp(money.MaxSupply) > 0 {
		bad("the minimum_order_value of %s is %s, more than there can be", x.Name,
			x.MinimumOrderValue)
	}
}
