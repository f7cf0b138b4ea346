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
	Later  bool // the server refuses and asks to come again
	last   bool // the server closes the connection
}

var (
	headEnd     = []byte("\r\n\r\n")
	lengthField = []byte("\r\nContent-Length: ")
	closeField  = []byte("\r\nConnection: close")
	laterField  = []byte("\r\nRetry-After: ")
)

var errNotAnAnswer = errors.New(notAnAnswer)

// readAnswer reads b as one answer. It returns false if more bytes are to come.
func readAnswer(b []byte) (a Answer, whole bool, err error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return a, false, nil
	}
	head, body := b[:end], b[end+len(headEnd):]
	at := bytes.Index(head, lengthField)
	if at < 0 || len(head) < 12 {
		return a, false, errNotAnAnswer
	}
	field, _, _ := bytes.Cut(head[at+len(lengthField):], headEnd[:2])
	length, err1 := strconv.Atoi(string(field))
	status, err2 := strconv.Atoi(string(head[9:12]))
	if err1 != nil || err2 != nil || length < 0 || status < 0 || len(body) > length {
		return a, false, errNotAnAnswer
	}
	if len(body) < length {
		return a, false, nil
	}
	return Answer{Status: status, Body: body, last: bytes.Contains(head, closeField),
		Later: status >= 400 && bytes.Contains(head, laterField)}, true, nil
}
