package generator

import (
	"bytes"
	"errors"
	"strconv"
)

// An Answer is a whole answer over HTTP.
type Answer struct {
	Status int
	Body   []byte
	Later  bool // refused for now: retry later
	last   bool // the server closes the connection
}

var headEnd = []byte("\r\n\r\n")

// fields are the searched parts of an answer's head.
type fields struct{ length, close, later []byte }

// An exchange writes header names in their usual case. Some proxies write them in lower case.
var (
	usualFields = fields{[]byte("\r\nContent-Length: "), []byte("\r\nConnection: close"),
		[]byte("\r\nRetry-After: ")}
	lowerFields = fields{bytes.ToLower(usualFields.length), bytes.ToLower(usualFields.close),
		bytes.ToLower(usualFields.later)}
)

var errNotAnAnswer = errors.New(notAnAnswer)

// readAnswer parses b as one answer. It returns false if it is incomplete.
func readAnswer(b []byte) (a Answer, whole bool, err error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return a, false, nil
	}
	head, body := b[:end], b[end+len(headEnd):]
	in := &usualFields
	at := bytes.Index(head, in.length)
	if at < 0 {
		in, head = &lowerFields, bytes.ToLower(head)
		at = bytes.Index(head, in.length)
	}
	if at < 0 || len(head) < 12 {
		return a, false, errNotAnAnswer
	}
	field, _, _ := bytes.Cut(head[at+len(in.length):], headEnd[:2])
	length, err1 := strconv.Atoi(string(field))
	status, err2 := strconv.Atoi(string(head[9:12]))
	if err1 != nil || err2 != nil || length < 0 || status < 0 || len(body) > length {
		return a, false, errNotAnAnswer
	}
	if len(body) < length {
		return a, false, nil
	}
	return Answer{Status: status, Body: body, last: bytes.Contains(head, in.close),
		Later: status >= 400 && bytes.Contains(head, in.later)}, true, nil
}
