package loadtest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// A rest sends requests before and after the load, when time does not matter: it repeats requests
// answered with "retry later".
type rest struct {
	o    *Options
	api  *fasthttp.HostClient   // of the address in use
	apis []*fasthttp.HostClient // by the number of an address
	ops  *fasthttp.HostClient
	pool *sync.Pool // of *signer
	// of all tries of a request to an API: shorter if there are other addresses
	patience time.Duration
	silence  *silence
}

// restTimeout bounds one request, and restPatience all tries of a request to a busy server.
const (
	restTimeout  = 30 * time.Second
	auditTimeout = time.Hour
	restPatience = 2 * time.Minute
	usualWait    = time.Minute
	askAgain     = 200 * time.Millisecond // after no answer
	onePatience  = 10 * time.Second       // with one of several addresses
	maxTestBody  = 1 << 30
)

func newRest(o *Options) *rest {
	client := func(address string, trust *tls.Config, patience time.Duration) *fasthttp.HostClient {
		return &fasthttp.HostClient{Addr: address, IsTLS: trust != nil, TLSConfig: trust,
			Dial: dialRest, MaxConns: 64, ReadTimeout: patience, WriteTimeout: restTimeout,
			MaxResponseBodySize: maxTestBody, MaxIdemponentCallAttempts: 1,
			RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false }}
	}
	ops := client(o.Operator, o.OperatorTLS, auditTimeout)
	if path := o.socket(); path != "" {
		ops.Dial = func(string) (net.Conn, error) {
			return net.DialTimeout("unix", path, restTimeout)
		}
	}
	r := &rest{o: o, ops: ops, pool: &sync.Pool{New: func() any { return newSigner() }},
		patience: restPatience, silence: newSilence(cmp.Or(o.Wait, usualWait))}
	if len(o.Addresses) > 1 {
		r.patience = onePatience
	}
	for _, address := range o.Addresses {
		r.apis = append(r.apis, client(address, nil, restTimeout))
	}
	r.api = r.apis[0]
	return r
}

// at returns a rest for the address of that number.
func (r *rest) at(address int) *rest {
	other := *r
	other.api = r.apis[address]
	return &other
}

// A statusError is an answer that is not a success.
type statusError struct {
	method, path string
	status       int
	body         string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s %s was answered with %d %.300s", e.method, e.path, e.status, e.body)
}

// A noAnswer is the error of a server that is down, or did not answer in time.
type noAnswer struct{ error }

func (e noAnswer) Unwrap() error { return e.error }

// unavailable reports whether another address may answer instead.
func unavailable(err error) bool {
	var status *statusError
	var none noAnswer
	return errors.As(err, &none) || errors.As(err, &status) && status.status >= 500
}

// do sends a request until it is answered. fill builds it for each try.
func (r *rest) do(ctx context.Context, client *fasthttp.HostClient, fill func(*fasthttp.Request),
	repeat bool, read func(*fasthttp.Response) error) error {
	patience := restPatience
	if client == r.api {
		patience = r.patience
	}
	for began := time.Now(); ; {
		req := &fasthttp.Request{} // not pooled, and not reused: see await
		fill(req)
		if client == r.api {
			req.Header.SetHost(client.Addr)
		}
		method, path := string(req.Header.Method()), string(req.URI().Path())
		wait, sent := time.Duration(0), time.Now()
		resp, err := r.await(ctx, client, repeat, req)
		switch {
		case errors.Is(err, errAbandoned):
			return context.Cause(ctx)
		case err != nil:
			err = noAnswer{fmt.Errorf("%s at %s was not answered: %w", path, client.Addr, err)}
			if repeat && r.silence.lasts(sent, err) {
				wait = askAgain
			}
		case resp.StatusCode()/100 == 2:
			r.silence.reset()
			return read(resp)
		default:
			status := resp.StatusCode()
			err = &statusError{method, path, status, string(resp.Body())}
			if status != 503 {
				r.silence.reset()
			}
			later := resp.Header.Peek("Retry-After")
			if n, e := strconv.Atoi(string(later)); e == nil && (status == 429 || status == 503) {
				wait = min(max(time.Duration(n)*time.Second, 50*time.Millisecond), 2*time.Second)
				if status == 503 {
					wait = 100 * time.Millisecond
				}
			} else if status == 503 && repeat {
				wait = 100 * time.Millisecond
			}
			if status == 503 && !r.silence.lasts(sent, err) {
				wait = 0
			}
		}
		if wait == 0 || time.Since(began) > patience {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(wait):
		}
	}
}

// await sends a request, and waits for its answer until the silence has lasted too long, or ctx has
// ended. A request that must not be repeated ignores ctx, because its answer is needed. An
// abandoned answer may still arrive, within the client's time limits.
func (r *rest) await(ctx context.Context, client *fasthttp.HostClient, repeat bool,
	req *fasthttp.Request) (*fasthttp.Response, error) {
	sent, ended := time.Now(), ctx.Done()
	if !repeat {
		ended = nil
	}
	hanging := fmt.Errorf("%s at %s is not answered", req.URI().Path(), client.Addr)
	return sendUntil(client, req, ended, func() bool { return r.silence.hangs(sent, hanging) })
}

// sendUntil sends a request, and waits for its answer until ended is closed or hangs is true.
func sendUntil(client *fasthttp.HostClient, req *fasthttp.Request, ended <-chan struct{},
	hangs func() bool) (*fasthttp.Response, error) {
	resp, answered := &fasthttp.Response{}, make(chan error, 1)
	go func() { answered <- client.Do(req, resp) }()
	look := time.NewTicker(askAgain)
	defer look.Stop()
	for {
		select {
		case err := <-answered:
			return resp, err
		case <-ended:
			return nil, errAbandoned
		case <-look.C:
		}
		if hangs() {
			return nil, errSilent
		}
	}
}

var (
	errAbandoned = errors.New("its answer is no longer awaited")
	errSilent    = errors.New("the exchange stands still")
)

// get reads a page; of u if it is private.
func (r *rest) get(ctx context.Context, u *user, path string, read func(body []byte) error) error {
	return r.getWith(ctx, u, path, func(resp *fasthttp.Response) error { return read(resp.Body()) })
}

func (r *rest) getWith(ctx context.Context, u *user, path string,
	read func(*fasthttp.Response) error) error {
	return r.do(ctx, r.api, func(req *fasthttp.Request) {
		req.SetRequestURI(path)
		if u != nil {
			u.nonce++
			req.Header.SetBytesV("X-KEY", u.key)
			req.Header.SetBytesV("X-SIGN", u.get)
			req.Header.Set("X-NONCE", strconv.FormatUint(u.nonce, 10))
		}
	}, true, read)
}

// catchUp moves the nonces of an existing key beyond those used by other programs.
func (r *rest) catchUp(ctx context.Context, u *user) error {
	ignore := func([]byte) error { return nil }
	err := r.get(ctx, u, "/api/v1/wallets/", ignore)
	var status *statusError
	if !errors.As(err, &status) || status.status != 401 {
		return err
	}
	var refusal struct {
		Last uint64 `json:"last"`
	}
	if json.Unmarshal([]byte(status.body), &refusal) != nil || refusal.Last < u.nonce {
		return err
	}
	u.nonce = refusal.Last
	return r.get(ctx, u, "/api/v1/wallets/", ignore)
}

// post sends a signed form that may be repeated.
func (r *rest) post(ctx context.Context, u *user, path, form string) error {
	s := r.pool.Get().(*signer)
	defer r.pool.Put(s)
	signature := s.sign(nil, &u.secret, u.key, []byte(form))
	return r.do(ctx, r.api, func(req *fasthttp.Request) {
		u.nonce++
		req.SetRequestURI(path)
		req.Header.SetMethod("POST")
		req.Header.SetContentType("application/x-www-form-urlencoded")
		req.Header.SetBytesV("X-KEY", u.key)
		req.Header.SetBytesV("X-SIGN", signature)
		req.Header.Set("X-NONCE", strconv.FormatUint(u.nonce, 10))
		req.SetBodyString(form)
	}, true, func(*fasthttp.Response) error { return nil })
}

// toOperator addresses a request to the operator's listener.
func (r *rest) toOperator(req *fasthttp.Request) {
	req.Header.SetHost(r.ops.Addr)
	if r.o.socket() != "" {
		req.Header.SetHost("operator")
	}
	if r.ops.IsTLS {
		req.URI().SetScheme("https")
	}
	if r.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.o.Token)
	}
}

// operate calls the operator's listener. repeat: the call may be repeated.
func (r *rest) operate(ctx context.Context, path string, in, out any, repeat bool) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return r.do(ctx, r.ops, func(req *fasthttp.Request) {
		if path != "audit" {
			req.SetTimeout(restTimeout)
		}
		req.SetRequestURI("/operator/v1/" + path)
		req.Header.SetMethod("POST")
		req.Header.SetContentType("application/json")
		r.toOperator(req)
		req.Header.Set("X-Operator", "loadtest")
		req.SetBody(body)
	}, repeat, func(resp *fasthttp.Response) error {
		if out == nil {
			return nil
		}
		body := resp.Body()
		if lines, ok := out.(*lastLine); ok {
			body = bytes.TrimSuffix(body, []byte("\n"))
			*lines = bytes.Clone(body[bytes.LastIndexByte(body, '\n')+1:])
			return nil
		}
		return json.Unmarshal(body, out)
	})
}

// A lastLine keeps only the last line of an answer in lines.
type lastLine []byte

// atOnce calls fn for 0 to n-1, concurrently, and stops at the first error.
func atOnce(ctx context.Context, n, workers int, fn func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := range next {
				if err := fn(ctx, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}
