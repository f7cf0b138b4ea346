package lineartest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/anishathalye/porcupine"
)

// visualize writes the page and returns its name. Beside the page it writes the history as text,
// with the longest order that explains a part of it.
func (x *object) visualize() (string, error) {
	m, _ := model(x.init, x.equal, decideWithin)
	_, info := porcupine.CheckOperationsVerbose(m, x.ops, 0)
	dir, err := os.MkdirTemp("", "exchange-history-")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, o := range x.ops {
		fmt.Fprintf(&text, "%d to %d, client %d: %s\n", o.Call, o.Return, o.ClientId,
			m.DescribeOperation(o.Input, nil))
	}
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, part := range partition {
			if len(part) > len(longest) {
				longest = part
			}
		}
	}
	fmt.Fprintf(&text, "\n%d of %d operations can be explained by this order:\n",
		len(longest), len(x.ops))
	m, _ = model(x.init, x.equal, decideWithin)
	state := m.Init()
	for _, o := range longest {
		_, state = m.Step(state, o.Input, nil)
		fmt.Fprintln(&text, m.DescribeOperation(o.Input, nil))
	}
	fmt.Fprintln(&text, "\nThen there are",
		strings.ReplaceAll(m.DescribeState(state), "<br>", "\n"))
	if err := os.WriteFile(filepath.Join(dir, "history.txt"), []byte(text.String()),
		0o600); err != nil {
		return "", err
	}
	page := filepath.Join(dir, "history.html")
	return page, porcupine.VisualizePath(m, info, page)
}

func (s *market) String() string {
	var b strings.Builder
	for _, o := range s.orders {
		if o.status == Open {
			fmt.Fprintf(&b, "open %+v<br>", *o)
		}
	}
	fmt.Fprintf(&b, "wallets %+v<br>withdrawals %+v<br>updates %v", s.wallets,
		s.withdrawals, s.updates)
	for account, at := range s.delivered {
		if list := s.notices[account]; at < len(list) && list[at].subscription == nil {
			fmt.Fprintf(&b, "<br>account %d receives next, at %d: %+v", account, list[at].at,
				list[at].event)
		}
	}
	return b.String()
}

func (s *keys) String() string {
	return fmt.Sprintf("frozen %v, at the door %v, keys %+v", s.frozen, s.frozenAtGateways, s.keys)
}

func (p *part) describe() string {
	o, r := p.o, p.r
	text := fmt.Sprintf("%v of account %d", o.Kind, o.Account)
	if o.Key != 0 {
		text += fmt.Sprintf(" with key %d, nonce %d", o.Key, o.Nonce)
	}
	switch o.Kind {
	case Place:
		side := "sell"
		if o.Buy {
			side = "buy"
		}
		text += fmt.Sprintf(" #%d in pair %d: %s %d at %d", o.Order, o.Pair, side,
			o.Amount, o.Price)
	case Cancel, ReadOrder:
		text += fmt.Sprintf(" #%d", o.Order)
	case CancelAll:
		text += fmt.Sprintf(" in pair %d, here #%d of %v", o.Pair, p.order, r.Cancelled)
	case ReadBook:
		text += fmt.Sprintf(" of pair %d", o.Pair)
	case Deposit, Adjustment, Withdrawal:
		text += fmt.Sprintf(" %d: %d of currency %d", o.Withdrawal, o.Amount, o.Currency)
	case ConfirmWithdrawal, CancelWithdrawal, ApproveWithdrawal, RefuseWithdrawal:
		text += fmt.Sprintf(" %d", o.Withdrawal)
	case CreateKey:
		text += fmt.Sprintf(" for %b", o.Permissions)
	case Freeze:
		text += fmt.Sprintf(" %v", o.On)
	}
	text += ": " + r.Outcome.String()
	if r.Outcome == RefusedNonce {
		return text + fmt.Sprintf(", the last is %d", r.LastNonce)
	}
	if r.Outcome != Done {
		return text
	}
	switch o.Kind {
	case Place, Cancel:
		text += fmt.Sprintf(", id %d, trades %+v, remains %d", r.ID, r.Trades, r.Remains)
	case ReadOrder, ReadOpen:
		text += fmt.Sprintf(", %+v", r.Orders)
	case ReadBook:
		text += fmt.Sprintf(", update %d, buy %v, sell %v", r.UpdateID, r.Levels[0], r.Levels[1])
	case ReadWallet:
		text += fmt.Sprintf(", %+v", r.Funds)
	case ReadPending:
		text += fmt.Sprintf(", %+v", r.Pending)
	case ReadKeys:
		text += fmt.Sprintf(", frozen %v, %+v", r.Frozen, r.Keys)
	}
	return text
}
