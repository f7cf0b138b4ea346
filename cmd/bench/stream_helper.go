package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// The stream's subscribers, and the exchange in a process that also has the yardsticks, are this
// program again: a helper. A helper is asked on standard input and answers on standard output, a
// line of JSON each. A helper ends with its input.

// The helpers, as the flag -helper has them.
const (
	helperSubscribers = "subscribers"
	helperSource      = "source"
)

// patience is how long a helper may take for an answer.
const patience = time.Minute

// A helper is such a process, for the process that started it.
type helper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// An envelope is a helper's answer.
type envelope struct {
	Error  string          `json:"error,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

// startHelper starts a helper, which has the file as its descriptor 3.
func startHelper(kind string, file *os.File, args ...string) (*helper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h := &helper{cmd: exec.Command(self, append([]string{"-helper", kind}, args...)...)}
	h.cmd.Stderr, h.cmd.ExtraFiles = os.Stderr, []*os.File{file}
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.out = json.NewDecoder(out)
	return h, h.cmd.Start()
}

// ask asks, and fills answer, which may be nil.
func (h *helper) ask(question, answer any) error {
	// Reading fails when the process is killed.
	late := time.AfterFunc(patience, func() { _ = h.cmd.Process.Kill() })
	defer late.Stop()
	var e envelope
	err := json.NewEncoder(h.in).Encode(question)
	if err == nil {
		err = h.out.Decode(&e)
	}
	switch {
	case err != nil:
		return fmt.Errorf("asking a helper: %w", err)
	case e.Error != "":
		return errors.New(e.Error)
	case answer == nil:
		return nil
	}
	return json.Unmarshal(e.Answer, answer)
}

func (h *helper) stop() {
	if h != nil && h.cmd.Process != nil {
		h.cmd.Process.Kill() //nolint:errcheck // it may have ended
		h.cmd.Wait()         //nolint:errcheck
	}
}

// answer writes an envelope to the owner.
func answer(v any, err error) {
	var e envelope
	if err == nil {
		e.Answer, err = json.Marshal(v)
	}
	if err != nil {
		e = envelope{Error: err.Error()}
	}
	json.NewEncoder(os.Stdout).Encode(e) //nolint:errcheck // the owner is gone: so is the input
}

// serveQuestions runs the main loop of a helper.
func serveQuestions(handle func(line []byte) (any, error)) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		answer(handle(in.Bytes()))
	}
}
