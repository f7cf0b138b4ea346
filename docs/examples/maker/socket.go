package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fasthttp/websocket"
)

// A socket is a connection to the event stream: Socket.IO over a websocket. Events come while the
// client waits for an answer, or for a change.
type socket struct {
	id      string
	conn    *websocket.Conn
	packets chan []byte // closed at the end of the connection
	answers map[int]json.RawMessage
	asked   int
	event   func(name string, arg json.RawMessage) error
}

// patience is the longest wait for an answer.
const patience = 10 * time.Second

var errLost = errors.New("the connection is lost")

// dial connects, and joins the main namespace.
func dial(address string, event func(string, json.RawMessage) error) (*socket, error) {
	conn, _, err := websocket.DefaultDialer.Dial(
		"ws://"+address+"/socket.v2/?EIO=4&transport=websocket", nil)
	if err != nil {
		return nil, err
	}
	s := &socket{conn: conn, packets: make(chan []byte, 64), answers: map[int]json.RawMessage{},
		event: event}
	go func() {
		defer close(s.packets)
		for {
			_, packet, err := conn.ReadMessage()
			if err != nil {
				return
			}
			s.packets <- packet
		}
	}()
	err = s.say("40")
	for late := time.After(patience); err == nil && s.id == ""; {
		err = s.wait(late)
	}
	return s, err
}

// close ends the connection, and the goroutine that reads it.
func (s *socket) close() {
	s.conn.Close()
	for range s.packets {
	}
}

func (s *socket) say(packet string) error {
	return s.conn.WriteMessage(websocket.TextMessage, []byte(packet))
}

// emit sends an event. ack: its answer comes under the number.
func (s *socket) emit(ack, name string, args ...any) error {
	b, err := json.Marshal(append([]any{name}, args...))
	if err != nil {
		return err
	}
	return s.say("42" + ack + string(b))
}

// ask sends an event and waits for its answer. An error says nothing of what became of the request.
func (s *socket) ask(name string, args ...any) (answer json.RawMessage, err error) {
	s.asked++
	n := s.asked
	err = s.emit(strconv.Itoa(n), name, args...)
	for late := time.After(patience); err == nil; {
		if answer = s.answers[n]; answer != nil {
			delete(s.answers, n)
			return answer, nil
		}
		err = s.wait(late)
	}
	return nil, fmt.Errorf("%s: %w", name, err)
}

// wait takes one packet.
func (s *socket) wait(late <-chan time.Time) error {
	select {
	case packet, ok := <-s.packets:
		if !ok {
			return errLost
		}
		return s.take(packet)
	case <-late:
		return errors.New("nothing came in time")
	}
}

// change waits for something to come, for a second at most, or for the end of the program.
func (s *socket) change(ending <-chan struct{}) error {
	select {
	case packet, ok := <-s.packets:
		if !ok {
			return errLost
		}
		return s.take(packet)
	case <-time.After(time.Second):
	case <-ending:
	}
	return nil
}

func (s *socket) take(packet []byte) error {
	switch {
	case string(packet) == "2": // ping
		return s.say("3")
	case bytes.HasPrefix(packet, []byte("40")):
		var joined struct{ Sid string }
		err := json.Unmarshal(packet[2:], &joined)
		s.id = joined.Sid
		return err
	case bytes.HasPrefix(packet, []byte("42")):
		var event [2]json.RawMessage
		if err := json.Unmarshal(packet[2:], &event); err != nil {
			return err
		}
		return s.event(string(bytes.Trim(event[0], `"`)), event[1])
	case bytes.HasPrefix(packet, []byte("43")):
		at := bytes.IndexByte(packet, '[')
		n, err := strconv.Atoi(string(packet[2:max(at, 2)]))
		var answer [1]json.RawMessage
		if err == nil {
			err = json.Unmarshal(packet[at:], &answer)
		}
		s.answers[n] = answer[0]
		return err
	}
	return nil
}
