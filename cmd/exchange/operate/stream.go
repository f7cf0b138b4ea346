package operate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"exchange/cmd/exchange/cli"
)

// Shared by commands with long answers: answers come line by line, and a line on the terminal shows
// the progress.

// maxLine bounds one line of a long answer, in bytes: the longest is the audit's report.
const maxLine = 16 << 20

// lines requests a long answer, and calls fn with each line except the last, which it decodes into
// end. The slice is valid only during the call. An answer that breaks off is an error, even if its
// first lines were good.
func (p *Commands) lines(ctx context.Context, path string, in any, fn func(line []byte) error,
	endType reflect.Type, end any) error {
	c, err := p.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cli.StreamTimeout)
	defer cancel()
	response, err := c.send(ctx, path, in)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	scanner := bufio.NewScanner(response.Body)
	scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; scanner.Scan(); n++ {
		line := scanner.Bytes()
		switch {
		case !json.Valid(line) && n == 1:
			return notOfListener(line)
		case !json.Valid(line):
			return c.brokeOff(fmt.Errorf("line %d is cut off", n))
		case bytes.HasPrefix(line, []byte(`{"error":`)):
			return c.failed(line)
		case bytes.HasPrefix(line, []byte(`{"end":`)):
			if err := lastLine(line, endType, end); err != nil {
				return c.brokeOff(err)
			}
			if scanner.Scan() {
				return c.brokeOff(errors.New("there is data after its end"))
			}
			return nil
		}
		if err := fn(line); err != nil {
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		return c.brokeOff(cause(err))
	}
	return c.brokeOff(errors.New("its last line is missing"))
}

func lastLine(line []byte, endType reflect.Type, end any) error {
	n, _ := parseMembers(line)
	if !complete(endType, n["end"]) || json.Unmarshal(n["end"], end) != nil {
		return errors.New("its last line is not one of an exchange's operator listener")
	}
	return nil
}

// notOfListener is the error of a malformed line.
func notOfListener(line []byte) error {
	return cli.WithExit(cli.ExitUnavailable,
		fmt.Errorf("the answer is not one of an exchange's operator listener: %.80q", line))
}

// brokeOff is the error of an incomplete answer. Nothing was changed, so the request can be
// repeated.
func (c *client) brokeOff(err error) error {
	return cli.WithExit(cli.ExitUnavailable,
		fmt.Errorf("the answer of the exchange at %s is incomplete: %w", c.address,
			err))
}

// failed returns the error at the end of a server's answer.
func (c *client) failed(line []byte) error {
	var e struct {
		Error   string
		Damaged bool
	}
	if err := json.Unmarshal(line, &e); err != nil || e.Error == "" {
		return c.brokeOff(errors.New("its last line has no error text"))
	}
	if e.Damaged {
		return cli.WithExit(cli.ExitBroken, errors.New(e.Error))
	}
	return cli.WithExit(cli.ExitUnavailable, errors.New(e.Error))
}
