package loadtest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"exchange/loadtest/generator"
)

// Options are the parameters of a test.
type Options struct {
	// host:port of the API, of one exchange or of the nodes of a cluster
	Addresses []string
	Operator  string // unix:PATH, or host:port, of the operator's listener
	// OperatorTLS holds the trusted certificates of the operator's listener; nil: plain HTTP.
	OperatorTLS *tls.Config
	// of the operator, for host:port; "" without a socket uses Keys and makes nothing
	Token string
	Keys  []Key  // accounts to trade with, instead of made ones
	Name  string // prefix of made accounts: NAME-1, NAME-2, ...

	Pairs           int // number of the server's pairs to trade, 0: all
	PairsPerAccount int // 0: by the number of accounts, at least 4
	Accounts        int
	Connections     int
	Sockets         int               // for orders, instead of connections; 0: HTTP
	Batch           int               // orders, cancels and changes of one request; 0: no batches
	Threads         int               // generator threads
	Duration        time.Duration     // of the load, or of each step of a ramp
	Warmup          time.Duration     // of load before that, which is verified and not counted
	Rate            float64           // requests a second in an open loop, 0: closed loop
	Stages          []generator.Stage // instead of a rate and a duration
	Mix             Mix
	Instructed      int // percentage of orders with instructions, and of cancels sent as changes
	Model           string
	Seed            uint64
	Subscribers     map[string]int // sockets by channel
	Ramp            bool
	P99             time.Duration // the bound of a ramp
	OpenOrders      int           // number of resting orders in all; 0: by the mix
	Deposits        float64       // a second, by the operator, while the load runs
	Every           time.Duration // of a row of the table over time
	Disk            string        // folder of the server whose size is reported; "": none
	Stall           time.Duration // longest allowed latency; 0: any
	Growth          float64       // factor by which the server's memory may grow; 0: any
	AllowRefused    float64       // percentage of requests that may be refused
	Timeout         time.Duration // of an answer
	Wait            time.Duration // for an exchange that does not answer, before and after the load
	NoVerify        bool
	LeaveOrders     bool // do not cancel the resting orders at the end

	Progress io.Writer // nil: none
	Terminal bool      // Progress is a terminal
}

// A Key is an API key of an account.
type Key struct{ Key, Secret string }

// A Mix is the percentages of the kinds of requests.
type Mix struct{ Place, Cancel, Read int } //tidy:keep callers may set every share

// Usage is an error of the options, not of the test.
type Usage struct{ error }

func usagef(format string, args ...any) error { return Usage{fmt.Errorf(format, args...)} }

// Limits of the options.
const (
	maxAccounts    = 1_000_000
	maxConnections = 60_000
	maxRate        = 10_000_000
	maxSubscribers = 100_000
	maxAddresses   = 64
)

// Validate checks the options and fills in those that depend on others.
func (o *Options) Validate() error {
	o.fillIn()
	m := o.Mix
	switch {
	case o.Model == "" || !slices.Contains(Models, o.Model):
		return usagef("--model is %q: write one of %s", o.Model, strings.Join(Models, ", "))
	case o.Pairs < 0:
		return usagef("--pairs is %d: write how many pairs are traded, or 0 for all", o.Pairs)
	case o.PairsPerAccount < 0:
		return usagef("--pairs-per-account is %d: write how many pairs an account trades, or 0",
			o.PairsPerAccount)
	case o.Accounts < 1 || o.Accounts > maxAccounts:
		return usagef("--accounts is %d: write 1 to %d", o.Accounts, maxAccounts)
	case o.Connections < 1 || o.Connections > maxConnections:
		return usagef("--connections is %d: write 1 to %d", o.Connections, maxConnections)
	case o.Threads < 1 || o.Threads > 256:
		return usagef("--threads is %d: write 1 to 256", o.Threads)
	case o.Disk != "" && !isFolder(o.Disk):
		return usagef("--disk is %q: write a folder that is on this machine", o.Disk)
	case o.Duration <= 0 && len(o.Stages) == 0:
		return usagef("--duration is %v: write a time such as 30s", o.Duration)
	case o.Warmup < 0:
		return usagef("--warmup is %v: write a time such as 10s, or 0 for none", o.Warmup)
	case math.IsNaN(o.Rate) || o.Rate < 0 || o.Rate > maxRate:
		return usagef("--rate is %g: write requests a second up to %d, or 0 for a closed loop",
			o.Rate, maxRate)
	case m.Place < 0 || m.Cancel < 0 || m.Read < 0 || m.Place+m.Cancel+m.Read != 100:
		return usagef(
			"--mix is %v: three shares of 100 for place, cancel and reads, such as 60,40,0", m)
	case m.Cancel > 0 && m.Place == 0:
		return usagef("--mix is %v: without orders there is nothing to cancel", m)
	case o.Timeout <= 0:
		return usagef("--timeout is %v: write a time such as 10s", o.Timeout)
	case o.Ramp && o.P99 <= 0:
		return usagef("--p99 is %v: write the bound that a ramp is to hold, such as 10ms", o.P99)
	case !o.Ramp && o.P99 != 0:
		return usagef("--p99 is the bound of --ramp, which is not asked for")
	case len(o.Keys) == 0 && !o.operated():
		return usagef(
			"accounts are needed: give an operator's token, or --keys FILE with key,secret lines")
	}
	if err := o.validateCourse(); err != nil {
		return err
	}
	if err := o.validateWays(); err != nil {
		return err
	}
	sum := 0
	for channel, n := range o.Subscribers {
		if !slices.Contains(Channels, channel) {
			return usagef("--subscribers names the channel %q: there are %s", channel,
				strings.Join(Channels, ", "))
		}
		if n < 0 || n > maxSubscribers {
			return usagef("--subscribers asks for %d of %s: write 0 to %d", n, channel,
				maxSubscribers)
		}
		sum += n
	}
	if sum > maxSubscribers {
		return usagef("--subscribers asks for %d sockets: write at most %d in all", sum,
			maxSubscribers)
	}
	return errors.Join(o.validateStages(), o.validateAddresses(), checkOperator(o))
}

// validateAddresses checks the addresses of the exchange.
func (o *Options) validateAddresses() error {
	n := len(o.Addresses)
	switch {
	case n == 0 || n > maxAddresses:
		return usagef("--address names %d: write 1 to %d, such as 10.0.0.1:8080,10.0.0.2:8080", n,
			maxAddresses)
	case o.Connections < n:
		return usagef("--connections is %d, and --address names %d: write at least as many",
			o.Connections, n)
	}
	for i, address := range o.Addresses {
		if err := checkAddress("--address", address); err != nil {
			return err
		}
		if slices.Contains(o.Addresses[:i], address) {
			return usagef("--address names %s twice", address)
		}
	}
	return nil
}

// fillIn fills in the options that depend on others.
func (o *Options) fillIn() {
	if o.Mix == (Mix{}) {
		o.Mix = usualMix(o.Model)
	}
	if o.Ramp && o.Rate == 0 {
		o.Rate = 1000
	}
	if o.Sockets > 0 {
		o.Connections = o.Sockets
	}
	if len(o.Keys) > 0 {
		o.Accounts = len(o.Keys)
		o.Connections = min(o.Connections, len(o.Keys)) // a key's nonces grow in one connection
	}
}

// validateCourse checks the options of the course over time.
func (o *Options) validateCourse() error {
	if o.Every == 0 {
		o.Every = time.Minute
	}
	if o.Wait == 0 {
		o.Wait = usualWait
	}
	switch m := o.Mix; {
	case o.OpenOrders < 0 || o.OpenOrders > mostOpen*o.Accounts ||
		o.OpenOrders > 0 && o.OpenOrders < o.Accounts:
		return usagef("--open-orders is %d: write how many orders rest, 1 to %d of each account",
			o.OpenOrders, mostOpen)
	case o.Instructed < 0 || o.Instructed > 100:
		return usagef("--instructed is %d: write how many of 100 orders have instructions",
			o.Instructed)
	case o.OpenOrders > 0 && (m.Place == 0 || m.Cancel == 0):
		return usagef("--open-orders keeps a level by orders and cancels, and --mix is %v", m)
	case math.IsNaN(o.Deposits) || o.Deposits < 0 || o.Deposits > maxRate:
		return usagef("--deposits is %g: write deposits a second up to %d", o.Deposits, maxRate)
	case o.Deposits > 0 && (len(o.Keys) > 0 || !o.operated()):
		return usagef("--deposits needs the operator's listener, and accounts that are made")
	case o.Every < time.Second:
		return usagef("--row is %v: write a second or more", o.Every)
	case o.Wait < time.Second:
		return usagef("--wait is %v: write a second or more", o.Wait)
	case o.Stall < 0:
		return usagef("--stall is %v: write the longest latency that is allowed", o.Stall)
	case math.IsNaN(o.Growth) || o.Growth < 0:
		return usagef("--growth is %g: write how many times memory may grow, such as 1.2", o.Growth)
	case !(o.AllowRefused >= 0 && o.AllowRefused <= 100): // or no number
		return usagef("--allow-refused is %g: write how many percent of the requests may be "+
			"refused, 0 to 100", o.AllowRefused)
	case o.Growth > 0 && !o.operated():
		return usagef("--growth needs the operator's listener, which reports the server's memory")
	}
	return nil
}

// maxBatch is the maximum number of items in an exchange's batch.
const maxBatch = 50

// validateWays checks the options of the transport of orders.
func (o *Options) validateWays() error {
	switch {
	case o.Batch < 0 || o.Batch > maxBatch:
		return usagef("--batch is %d: write 1 to %d, or 0 for requests of one order", o.Batch,
			maxBatch)
	case o.Sockets < 0 || o.Sockets > maxConnections:
		return usagef("--sockets is %d: write 1 to %d, or 0 for orders over HTTP", o.Sockets,
			maxConnections)
	case o.Sockets > 0 && o.Mix.Read > 0:
		return usagef("--mix is %v, and over sockets go orders and cancels only", o.Mix)
	case o.Sockets > 0 && o.Sockets < o.Accounts:
		return usagef("--accounts is %d, and each needs a socket: write --sockets %d or more",
			o.Accounts, o.Accounts)
	case o.Subscribers[ownChannel] > o.Accounts:
		return usagef("--subscribers asks for %d of %s: write at most one for each account",
			o.Subscribers[ownChannel], ownChannel)
	}
	return nil
}

// inFlight is the number of orders in flight on a socket.
const inFlight = 64

// depth returns the number of requests in flight on a socket, 0 over HTTP.
func (o *Options) depth() int {
	if o.Sockets == 0 {
		return 0
	}
	return max(1, inFlight/max(1, o.Batch))
}

// operated reports whether there is an operator's listener: a socket, or an address and its token.
func (o *Options) operated() bool { return o.socket() != "" || o.Token != "" }

// socket returns the path of the operator's socket, "" if there is none.
func (o *Options) socket() string {
	path, ok := strings.CutPrefix(o.Operator, "unix:")
	if !ok {
		return ""
	}
	return path
}

func checkOperator(o *Options) error {
	if !o.operated() || o.socket() != "" {
		return nil
	}
	return checkAddress("the operator's address", o.Operator)
}

func checkAddress(what, address string) error {
	host, port, err := net.SplitHostPort(address)
	if n, e := strconv.Atoi(port); err != nil || e != nil || n < 1 || n > 65535 || host == "" ||
		strings.ContainsAny(host, "/@ ") {
		return usagef("%s is %q: write host:port, such as 127.0.0.1:8080", what, address)
	}
	return nil
}

func (m Mix) String() string { return fmt.Sprintf("%d,%d,%d", m.Place, m.Cancel, m.Read) }

// ParseMix parses three percentages: place, cancel, reads.
func ParseMix(text string) (m Mix, err error) {
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return m,
			usagef("--mix is %q: three shares of 100 for place, cancel and reads, such as 60,40,0",
				text)
	}
	for i, at := range []*int{&m.Place, &m.Cancel, &m.Read} {
		if *at, err = strconv.Atoi(strings.TrimSpace(parts[i])); err != nil || *at < 0 ||
			*at > 100 {
			return m,
				usagef(
					"--mix is %q: three shares of 100 for place, cancel and reads, such as 60,40,0",
					text)
		}
	}
	if m.Place+m.Cancel+m.Read != 100 {
		return m, usagef("--mix is %q: its shares are %d in all, and must be 100", text,
			m.Place+m.Cancel+m.Read)
	}
	return m, nil
}

// ParseSubscribers parses channel=number pairs, such as diff=2,trades=10; "none" is no subscriber.
func ParseSubscribers(text string) (map[string]int, error) {
	all := map[string]int{}
	if text == "none" || text == "" {
		return all, nil
	}
	for _, part := range strings.Split(text, ",") {
		channel, number, ok := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < 0 {
			return nil,
				usagef(
					"--subscribers is %q: write channel=number, such as diff=1,trades=10, or none",
					text)
		}
		if _, twice := all[channel]; twice {
			return nil, usagef("--subscribers names %s twice", channel)
		}
		all[channel] = n
	}
	return all, nil
}

// ParseKeys parses key,secret lines. It ignores blank lines and lines that begin with #.
func ParseKeys(text string) (keys []Key, err error) {
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, secret, ok := strings.Cut(line, ",")
		key, secret = strings.TrimSpace(key), strings.TrimSpace(secret)
		if !ok || key == "" || secret == "" ||
			strings.ContainsFunc(key+secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
			// without the line, because it may be a secret
			return nil, usagef("line %d of the keys must be key,secret", i+1)
		}
		if seen[key] {
			return nil,
				usagef(
					"line %d of the keys has the key of a line before; each must be of an "+
						"account of its own", i+1)
		}
		seen[key] = true
		keys = append(keys, Key{key, secret})
	}
	if len(keys) == 0 {
		return nil, usagef("the file of keys has no key,secret line")
	}
	return keys, nil
}
