// Package params reads the parameters of a request: a JSON body, a form body or a query string.
//
// A Set holds every parameter that was sent, known or not, sorted by name, because all of them are
// part of the signed message. Values are kept as text, exactly as sent: the JSON number 0.50 stays
// "0.50". The handler that asks for a parameter interprets it.
//
//	var set params.Set // one per worker or from a pool; used again for every request
//	if err := set.ParseJSON(body); err != nil {
//		// *syntaxError, *DuplicateError, errTooMany or errNameTooLong: status 400
//	}
//	if p, ok := set.Get("amount"); ok {
//		amount, err := money.ParseAmount(p.Value)
//	}
//	set.Reset() // before the body's buffer goes back to its owner
//
// # Rules
//
// JSON is the strict grammar of RFC 8259: one object and nothing after it. Strings are decoded.
// Nested objects and arrays are checked, at most maxDepth deep, and kept as their raw text.
// Forms and queries are application/x-www-form-urlencoded: '+' and %XX are decoded, a name without
// '=' has an empty value, and empty pairs are skipped. A ';' is an ordinary character.
//
// Every name and every decoded value is valid UTF-8; other input is refused. A name that appears
// twice in a body is refused; in a query the last one applies. Names are compared after decoding.
//
// # Memory
//
// Parsing allocates nothing once a Set has grown to the usual size. Names and values point into the
// parsed bytes or, where something had to be decoded, into a buffer of the Set. They are valid
// until the next Reset or Parse call and only while the parsed bytes do not change. A caller that
// keeps one longer copies it. Parsing never writes to its input. One goroutine at a time uses a
// Set.
//
//	params.go  a Set and its parameters
//	json.go    JSON bodies
//	elements.go  the elements of a nested array
//	form.go    form bodies and queries
//	errors.go  limits, and errors for the client
package params
