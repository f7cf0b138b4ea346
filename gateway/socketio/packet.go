package socketio

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"
)

// Types of Engine.IO packets.
const (
	engineOpen    = '0'
	engineClose   = '1'
	enginePing    = '2'
	enginePong    = '3'
	engineMessage = '4'
	engineUpgrade = '5'
	engineNoop    = '6'
)

// Types of Socket.IO packets, which are Engine.IO messages.
const (
	typeConnect = iota
	typeDisconnect
	typeEvent
	typeAck
	typeConnectError
	typeBinaryEvent
	typeBinaryAck
)

// mainNamespace is the namespace that packets do not name.
const mainNamespace = "/"

// A violation is an error that ends the session for a reason.
type violation Reason

func (v violation) Error() string { return Reason(v).String() }

// errPacket is the error for a packet that violates the protocol.
const errPacket = violation(ParseError)

// maxSafe is the largest number of an acknowledgement, because clients count in floating point.
const maxSafe = 1<<53 - 1

// A packet is a Socket.IO packet from a client: `type[attachments-][/namespace,][id][json]`.
type packet struct {
	kind        int
	namespace   string
	attachments int // number of binary messages that follow
	// of the acknowledgement that the client wants, or that this packet is; -1: none
	id   int64
	auth json.RawMessage   // of a connect; nil: none
	args []json.RawMessage // of an event without its name, or of an acknowledgement
	name string            // of an event
}

// decode parses the text of a packet with at most most arguments. It keeps no part of the text.
func decode(text []byte, most int) (p packet, err error) {
	if len(text) == 0 || text[0] < '0'+typeConnect || text[0] > '0'+typeBinaryAck {
		return p, errPacket
	}
	p.kind, p.id = int(text[0]-'0'), -1
	text = text[1:]
	if p.kind == typeBinaryEvent || p.kind == typeBinaryAck {
		n, rest := digits(text)
		if n < 0 || len(rest) == 0 || rest[0] != '-' {
			return p, errPacket
		}
		p.attachments, text = int(n), rest[1:]
	}
	p.namespace = mainNamespace
	if len(text) > 0 && text[0] == '/' {
		name, rest, _ := bytes.Cut(text, []byte{','})
		p.namespace, text = string(name), rest
	}
	if len(text) > 0 && text[0] >= '0' && text[0] <= '9' {
		if p.id, text = digits(text); p.id < 0 {
			return p, errPacket
		}
	}
	return p, p.check(text, most)
}

// digits parses a number up to maxSafe; -1 if the text begins with none.
func digits(b []byte) (int64, []byte) {
	end := 0
	for end < len(b) && b[end] >= '0' && b[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(b[:min(end, 17)]), 10, 64)
	if err != nil || end > 16 || n > maxSafe {
		return -1, b
	}
	return n, b[end:]
}

// check parses the payload by the packet's type.
func (p *packet) check(payload []byte, most int) (err error) {
	switch p.kind {
	case typeConnect:
		if p.id >= 0 || len(payload) > 0 && (payload[0] != '{' || !json.Valid(payload)) {
			return errPacket
		}
		if len(payload) > 0 {
			p.auth = bytes.Clone(payload)
		}
	case typeDisconnect:
		if p.id >= 0 || len(payload) > 0 {
			return errPacket
		}
	case typeEvent, typeBinaryEvent:
		if p.args, err = Elements(payload, most+1); err != nil || len(p.args) == 0 {
			return errPacket
		}
		return p.takeName()
	case typeAck, typeBinaryAck: // the server asks for none, so its content does not matter
		if p.id < 0 || len(payload) == 0 || payload[0] != '[' || !json.Valid(payload) {
			return errPacket
		}
	default: // clients send no refusals
		return errPacket
	}
	return nil
}

// takeName moves the name of an event out of its arguments.
func (p *packet) takeName() error {
	name := p.args[0]
	p.args = p.args[1:]
	switch c := name[0]; {
	case c == '"':
		if json.Unmarshal(name, &p.name) != nil {
			return errPacket
		}
	case c == '-' || c >= '0' && c <= '9':
		p.name = string(name)
	default:
		return errPacket
	}
	switch p.name {
	case "connect", "connect_error", "disconnect", "disconnecting", "newListener", "removeListener":
		return errPacket
	}
	return nil
}

// Errors of Elements.
var (
	ErrNoArray = errors.New("socketio: this is no JSON array")
	errTooMany = errors.New("socketio: the array has too many elements")
)

// Elements returns the elements of a JSON array. If the array has more than most elements, it
// returns the first ones and errTooMany without parsing the rest, which bounds the cost of a
// message.
func Elements(array []byte, most int) (list []json.RawMessage, err error) {
	d := json.NewDecoder(bytes.NewReader(array))
	if start, err := d.Token(); err != nil || start != json.Delim('[') {
		return nil, ErrNoArray
	}
	for d.More() {
		if len(list) == most {
			return list, errTooMany
		}
		var one json.RawMessage
		if d.Decode(&one) != nil {
			return nil, ErrNoArray
		}
		list = append(list, one)
	}
	if _, err := d.Token(); err != nil {
		return nil, ErrNoArray
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, ErrNoArray
	}
	return list, nil
}

// placeholder returns the number of the attachment that an argument stands for.
func placeholder(arg json.RawMessage) (int, bool) {
	var p struct {
		Placeholder bool `json:"_placeholder"`
		Number      *int `json:"num"`
	}
	if len(arg) == 0 || arg[0] != '{' || json.Unmarshal(arg, &p) != nil || !p.Placeholder ||
		p.Number == nil {
		return 0, false
	}
	return *p.Number, true
}

// encode makes the frames of an event or an acknowledgement. Arguments that are []byte become
// attachments.
func encode(kind int, namespace string, id int64, name *string, args []any) ([]byte, error) {
	var list []byte
	var attachments [][]byte
	if name != nil {
		list = append(list, jsonString(*name)...)
	}
	for i, arg := range args {
		if i > 0 || name != nil {
			list = append(list, ',')
		}
		if b, ok := arg.([]byte); ok {
			list = append(list, `{"_placeholder":true,"num":`...)
			list = append(strconv.AppendInt(list, int64(len(attachments)), 10), '}')
			attachments = append(attachments, b)
			continue
		}
		b, err := json.Marshal(arg)
		if err != nil {
			return nil, err
		}
		list = append(list, b...)
	}
	text := make([]byte, 0, len(list)+len(namespace)+32)
	if len(attachments) > 0 {
		text = append(text, engineMessage, byte('0'+kind+typeBinaryEvent-typeEvent))
		text = append(strconv.AppendInt(text, int64(len(attachments)), 10), '-')
	} else {
		text = append(text, engineMessage, byte('0'+kind))
	}
	text = appendNamespace(text, namespace)
	if id >= 0 {
		text = strconv.AppendInt(text, id, 10)
	}
	text = append(append(append(text, '['), list...), ']')
	frames := appendFrame(make([]byte, 0, maxHeader+len(text)), textFrame, text)
	for _, b := range attachments {
		frames = appendFrame(frames, binaryFrame, b)
	}
	return frames, nil
}

// ackFrame makes the frame of an acknowledgement with one argument, which is valid JSON.
func ackFrame(namespace string, id int64, payload []byte) []byte {
	head := appendNamespace([]byte{engineMessage, '0' + typeAck}, namespace)
	head = append(strconv.AppendInt(head, id, 10), '[')
	b := appendHeader(make([]byte, 0, maxHeader+len(head)+len(payload)+1), textFrame,
		len(head)+len(payload)+1)
	return append(append(append(b, head...), payload...), ']')
}

func appendNamespace(text []byte, namespace string) []byte {
	if namespace == mainNamespace {
		return text
	}
	return append(append(text, namespace...), ',')
}

// control makes the frame of a packet whose payload is an object or empty.
func control(kind int, namespace string, payload any) ([]byte, error) {
	text := appendNamespace([]byte{engineMessage, byte('0' + kind)}, namespace)
	if payload != nil {
		b, err := json.Marshal(payload)
		if err != nil {
			return nil, err
		}
		text = append(text, b...)
	}
	return appendFrame(nil, textFrame, text), nil
}

// An enginePacket is a packet of Engine.IO: a text whose first byte is its type, or the bytes of a
// binary message.
type enginePacket struct {
	binary bool
	data   []byte
}

// split calls f with each packet of a polling body from a client, until f returns an error.
func split(body []byte, f func(enginePacket) error) error {
	if !utf8.Valid(body) {
		return errPacket
	}
	for {
		one, rest, more := bytes.Cut(body, []byte{separator})
		p := enginePacket{data: one}
		if len(one) > 0 && one[0] == 'b' {
			b, err := base64.StdEncoding.AppendDecode(nil, one[1:])
			if err != nil {
				return errPacket
			}
			p = enginePacket{true, b}
		} else if len(one) == 0 {
			return errPacket
		}
		if err := f(p); err != nil || !more {
			return err
		}
		body = rest
	}
}
