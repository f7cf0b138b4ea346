// Package sign checks the HMAC-SHA256 signatures of requests.
//
// The signed message is the API key followed by the request's parameters, sorted by name, each
// written name=value and percent-encoded, joined with '&'. The values are the literal texts that
// were sent: the JSON number 0.50 is signed as "0.50", a JSON string as its decoded text, true and
// false as such, null as such or left out, an object or an array as its raw text. For the key
// "demo-alice" and the body
//
//	{"type":"buy","pair":"BTC_USD","amount":0.12345678,"price":50000.12}
//
// the message is
//
//	demo-aliceamount=0.12345678&pair=BTC_USD&price=50000.12&type=buy
//
// and the signature is its HMAC under the secret, as 64 hexadecimal digits of either case.
//
//	keyed := sign.New(secret)  // once, when the API key is loaded
//	var v sign.Verifier        // one per worker or from a pool
//	ok := keyed.Verify(&v, key, &set, nil, header) // a POST with a JSON body
//	ok = keyed.Verify(&v, key, &set, form, header) // a POST with a form body
//	ok = keyed.VerifyGet(&v, key, &set, query, header)
//
// # Accepted texts
//
// Libraries disagree on the encoding, so a signature is accepted if it fits any of these texts:
//
//   - only the unreserved characters of RFC 3986 bare, a space as %20: tried first
//   - the form body or the query exactly as sent
//   - a space as '+'
//   - also !'()* bare, as encodeURIComponent of JavaScript leaves them; a space as %20 or as '+'
//   - of JSON: each of these without the fields whose value is null, which are absent
//   - for GET only: just the key, whatever the query; tried before all others
//
// A text equal to one already tried is skipped. Without spaces, !'()* and null one HMAC settles a
// JSON body, and a right signature of a form. maxTries bounds the rest, for bodies of every length:
// at 64 KB, the default maximum, a wrong signature costs some milliseconds at worst. The bucket of
// failures bounds the number of those from one address.
//
// A text of just the key is never accepted for a POST with parameters: otherwise the signature of
// any GET would also sign any order.
//
// # Logins
//
// A socket that logs in signs a challenge of the server, in the form "login", the key and the
// challenge, on a line each. So a login cannot be replayed, and no text of a request has its form.
//
// # Not covered
//
// Neither the nonce nor method and path are part of the message; that is the published scheme. An
// attacker that sees a signed request could send it again with a higher nonce, so the transport has
// to be encrypted and nonces have to grow.
//
// # Secrets
//
// A Keyed does not contain the secret. Its two hash states are as good for signing, and are
// therefore never printed, and nothing writes them as bytes: they leave no process. Digests are
// compared in constant time, and their number depends only on the request, up to the digest that
// fits. After Verify returns, no reference to the request is left.
//
//	sign.go     a secret, and the verification of a signature
//	message.go  the text that is signed
//	login.go    the login of a socket, whose nonce is the server's
package sign
