package operator_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
	"exchange/prove/harness"
)

// A failureCounter counts the failures of a checker that is tried itself.
type failureCounter struct {
	testing.TB
	failures int
}

func (c *failureCounter) Errorf(string, ...any) { c.failures++ }

func TestAnswersOutsideTheOperatorsDocumentAreFound(t *testing.T) {
	const row = `{"accounts":[{"account":"a","id":1,"email":"","frozen":false`
	for body, failures := range map[string]int{
		`{"accounts":[]}`: 0, row + `}],"next":1}`: 0,
		row + `,"x":1}]}`: 1, `{"accounts":[],"x":1}`: 1, // additional members
		`{"accounts":[{"account":"a","id":1,"email":""}]}`: 1, `{}`: 1, // missing ones
		`{"accounts":null}`: 1, `{"accounts":[],"next":1.5}`: 1, // other types
		`{"accounts":[{"account":"a","id":"1","email":"","frozen":false}]}`: 1,
		`{"error":"wrong"}`: 1, `{"accounts":[]`: 1,
	} {
		c, a := &failureCounter{TB: t}, harness.Answer{Status: 200,
			Header: new(fasthttp.ResponseHeader), Body: body}
		a.Header.SetContentType(harness.JsonMedia)
		harness.OperatorDocument().Fits(c, "GET", "/operator/v1/accounts", "", a)
		if c.failures != failures {
			t.Errorf("%s: %d failures", body, c.failures)
		}
	}
	for _, ask := range [][3]string{{"GET", "/operator/v1/accounts?x=1"}, // an additional parameter
		{"POST", "/operator/v1/accounts/freeze", `{"account":"a","on":1}`}} {
		c := &failureCounter{TB: t}
		path, query, _ := strings.Cut(ask[1], "?")
		operation := "/paths/" + harness.Escaped(path) + "/" + strings.ToLower(ask[0])
		harness.OperatorDocument().Asked(c, operation, query, ask[2])
		if c.failures != 1 {
			t.Errorf("%s: %d failures", ask, c.failures)
		}
	}
}

func TestTheOperatorsDocumentHasTheRoutesAndNoOther(t *testing.T) {
	d := harness.NewDocumentation(t, operator.Document())
	var described []string
	d.Operations(func(method, path, _ string, o map[string]any) {
		described = append(described, method+" "+path)
		for _, must := range []string{"summary", "description", "tags", "responses"} {
			if o[must] == nil {
				t.Errorf("%s %s has no %s", method, path, must)
			}
		}
		if (method == "POST") != (o["requestBody"] != nil) {
			t.Errorf("%s %s: body %v", method, path, o["requestBody"])
		}
	})
	if slices.Sort(described); !slices.Equal(described, operator.Routes()) {
		t.Errorf("described are %q, routes are %q", described, operator.Routes())
	}
}

func TestTheOperatorsDocumentIsServed(t *testing.T) {
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10, OperatorToken: harness.OperatorToken})
	ask := harness.AsOperator(t, g) // before there is an engine
	a := ask("GET", operator.DocumentPath, "")
	var want bytes.Buffer
	if err := json.Compact(&want, operator.Document()); err != nil || a.Status != 200 ||
		string(a.Header.ContentType()) != harness.JsonMedia || a.Body != want.String()+"\n" {
		t.Errorf("%d %v, another document is served: %.200s", a.Status, err, a.Body)
	}
	ask("GET", operator.DocumentPath, "", "Authorization: Bearer x").Is(t, 401, "without the token")
}

// Handlers take the documented members, and each of them refuses any other.
func TestTheOperatorsBodiesHaveTheMembersOfTheDocument(t *testing.T) {
	h := harness.New(t, nil)
	ask := harness.AsOperator(t, h.Gateway)
	harness.OperatorDocument().Bodies(func(path string, members []string) {
		for _, name := range append(members, "unheard_of") {
			a := ask("POST", path, `{"`+name+`":null}`)
			if unknown := strings.Contains(a.Body, "unknown field"); unknown != (name ==
				"unheard_of") {
				t.Errorf("%s %s: %d %s", path, name, a.Status, a.Body)
			}
		}
	})
}

func TestExamplesOfRefusalsOfOperatorsAreTrue(t *testing.T) {
	h := harness.New(t, nil)
	ask := harness.AsOperator(t, h.Gateway)
	for _, route := range operator.Routes() {
		method, path, _ := strings.Cut(route, " ")
		for _, x := range operator.RefusalsOf(route) {
			query, body := "", x.Ask
			if method == "GET" {
				query, body = "?"+x.Ask, ""
			}
			harness.Says(t, route+" "+x.Ask, ask(method, path+query, body), 400,
				harness.Refusal(x.Text))
		}
	}
}
