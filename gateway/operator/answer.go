package operator

import (
	"encoding/json"
	"strconv"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
)

// Answer answers a request with a status and JSON.
func Answer(ctx *fasthttp.RequestCtx, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.SetBody(append(b, '\n'))
}

// Fail answers with a failure of the catalogue; about replaces the %s of its text.
func Fail(ctx *fasthttp.RequestCtx, f *api.Failure, about string) {
	if f.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	refuse(ctx, f.Status, f.About(about))
}

// refuse answers with the text of an error.
func refuse(ctx *fasthttp.RequestCtx, status int, text string) {
	Answer(ctx, status, map[string]string{"error": text})
}
