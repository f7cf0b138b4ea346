//go:build prove

package processes

import (
	"encoding/json"
	"net/url"
	"strconv"

	"exchange/actors/lineartest"
)

// Batches of recorded clients.

// act sends one operation, or sometimes a batch. False: the exchange is gone.
func (c *recordedClient) act() bool {
	list := c.draw()
	if len(list) > 1 {
		return c.doBatch(list)
	}
	return c.do(list[0])
}

// doBatch sends a batch and records its results. False: the exchange is gone.
func (c *recordedClient) doBatch(list []lineartest.Operation) bool {
	h := c.h
	h.mu.Lock()
	key := h.keys[list[0].Key]
	noted := h.history.BeginBatch(c.number, list)
	h.mu.Unlock()
	if key == nil { // its secret is not known, or not yet
		for _, r := range noted {
			r.Forget()
		}
		return true
	}
	items := make([]map[string]string, len(list))
	for i := range list {
		items[i] = itemOf(&list[i])
	}
	text, err := json.Marshal(items)
	if err != nil {
		h.t.Error(err)
		return true
	}
	status, body, err := key.at(c.s).send("POST", "/api/v1/order-batch/",
		"orders="+url.QueryEscape(string(text)), list[0].Nonce)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended++
	if status == 200 {
		c.noteItems(noted, body)
		return true
	}
	goOn := true
	for _, r := range noted { // what was answered for the whole batch is the answer to each
		goOn = c.note(r, status, body, err) && goOn
	}
	return goOn
}

// noteItems records the answers to the operations of a batch; the history is locked.
func (c *recordedClient) noteItems(noted []*lineartest.Recorded, body string) {
	var answer struct {
		Results []struct {
			Status int
			Body   json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil ||
		len(answer.Results) != len(noted) {
		c.h.t.Errorf("a batch of %d is answered with %s: %v", len(noted), body, err)
		return
	}
	for i, r := range answer.Results {
		c.note(noted[i], r.Status, string(r.Body), nil)
	}
}

// itemOf returns an operation as an item of a batch.
func itemOf(o *lineartest.Operation) map[string]string {
	name := strconv.Itoa(o.Order)
	if o.Kind == lineartest.Cancel {
		return map[string]string{"do": "cancel", "client_order_id": name}
	}
	side := "sell"
	if o.Buy {
		side = "buy"
	}
	return map[string]string{"do": "place", "client_order_id": name, "type": side,
		"pair": recordedPairs[o.Pair], "price": strconv.FormatInt(o.Price, 10),
		"amount": strconv.FormatInt(o.Amount, 10)}
}
