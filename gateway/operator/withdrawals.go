package operator

import (
	"cmp"
	"errors"
	"fmt"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
)

var moneyRoutes = []route{
	{"POST deposits", do(deposit), byEngine, "Credit an account",
		"A deposit with the same reference and content is made once. Without a " +
			"reference the exchange makes one."},
	{"POST adjustments", do(adjust), byEngine, "Take money back",
		"A correction takes available money out of an account. One with the same " +
			"reference and content is made once."},
	{"GET withdraws", do(listWithdrawals), byEngine, "Withdraws",
		"Newest first: the pending ones of all accounts, or all of one account."},
	{"POST withdraws/approve", do(approveWithdrawal), byEngine, "Approve a withdrawal",
		"The amount leaves the balance."},
	{"POST withdraws/refuse", do(refuseWithdrawal), byEngine, "Refuse a withdrawal",
		"The amount is available again. `details` is required; the owner " +
			"receives it."},
}

type withdrawalAnswer struct {
	Withdrawal uint64       `json:"withdraw" doc:"Id of the withdrawal"`
	Account    string       `json:"account"`
	Currency   string       `json:"currency"`
	Amount     money.Amount `json:"amount" doc:"Amount"`
	Status     uint8        `json:"status" text:"-" doc:"10, 20, 30, 40 or 50"`
	State      string       `json:"state" doc:"State, in a word"`
	Address    string       `json:"address" doc:"Where the money goes"`
	Details    string       `json:"details,omitempty"`
	Time       string       `json:"time"`
	Frozen     bool         `json:"frozen,omitempty" doc:"Whether the account is frozen"`
}

func newWithdrawal(e *actors.Engine, w *committed.Withdrawal) withdrawalAnswer {
	return withdrawalAnswer{w.ID, e.AccountName(w.Account), e.CurrencyCode(w.Currency), w.Amount,
		w.Status, event.WithdrawalStatusName(w.Status), w.Address, w.Details, clock(w.TimeUs),
		e.AccountFrozen(w.Account)}
}

type withdrawalsAnswer struct {
	Withdrawals []withdrawalAnswer `json:"withdraws" doc:"The withdrawals"`
}

// A WithdrawalsQuery chooses withdrawals.
type withdrawalsQuery struct {
	page
	Account string `json:"account"`
}

// listWithdrawals returns the pending withdrawals of all accounts, or all of one account, newest
// first.
func listWithdrawals(c *call, q *withdrawalsQuery) (*withdrawalsAnswer, error) {
	limit := int(q.Limit)
	var withdrawals *committed.List[committed.Withdrawal]
	var err error
	if q.Account == "" {
		withdrawals, err = c.engine.AllPending(limit)
	} else {
		var account uint32
		if account, err = c.account(q.Account); err != nil {
			return nil, err
		}
		withdrawals, err = c.engine.WithdrawalsOf(account, limit)
	}
	if err != nil {
		return nil, err
	}
	list := make([]withdrawalAnswer, 0, len(withdrawals.Rows))
	for i := range withdrawals.Rows {
		list = append(list, newWithdrawal(c.engine, &withdrawals.Rows[i]))
	}
	withdrawals.Free()
	return &withdrawalsAnswer{list}, nil
}

func approveWithdrawal(c *call, q *decision) (*decisionAnswer, error) {
	return decideWithdrawal(c, q, event.WithdrawalApproved)
}

func refuseWithdrawal(c *call, q *decision) (*decisionAnswer, error) {
	return decideWithdrawal(c, q, event.WithdrawalRefused)
}

// A decision approves or refuses a withdrawal.
type decision struct {
	Withdrawal    uint64 `json:"withdraw" need:"yes" doc:"Id of the withdrawal"`
	Details       string `json:"details,omitempty" most:"MaxDetails"`
	Reference     string `json:"reference,omitempty" most:"MaxDetails" doc:"Transaction that pays it"`
	DespiteFreeze bool   `json:"despite_freeze,omitempty"`
}

// check refuses fields that do not fit the new status.
func (q *decision) check(to uint8) error {
	switch {
	case to == event.WithdrawalRefused && q.Details == "":
		return &badRequest{"details: required; the owner receives them"}
	case to == event.WithdrawalApproved && q.Details != "":
		return &badRequest{"details: only of a refusal; an approval has a reference"}
	case to == event.WithdrawalRefused && q.Reference != "":
		return &badRequest{"reference: only of an approval"}
	case to == event.WithdrawalRefused && q.DespiteFreeze:
		return &badRequest{"despite_freeze: only of an approval"}
	case len(q.Details) > actors.MaxDetails:
		return &badRequest{fmt.Sprintf("details: at most %d bytes", actors.MaxDetails)}
	case len(q.Reference) > actors.MaxDetails:
		return &badRequest{fmt.Sprintf("reference: at most %d bytes", actors.MaxDetails)}
	}
	return cmp.Or(line("details", q.Details), line("reference", q.Reference))
}

// text returns the text for the owner.
func (q *decision) text() string { return cmp.Or(q.Details, q.Reference) }

type decisionAnswer struct {
	withdrawalAnswer
	Repeated bool `json:"repeated,omitempty"`
}

// decideWithdrawal approves or refuses a withdrawal. If the withdrawal has the status already, the
// answer is the same, so a repeat is safe.
func decideWithdrawal(c *call, q *decision, to uint8) (*decisionAnswer, error) {
	if err := q.check(to); err != nil {
		return nil, err
	}
	var command *actors.Command
	var err error
	if q.DespiteFreeze {
		command, err = c.engine.ApproveDespiteFreeze(c.operator, q.Withdrawal, q.text())
	} else {
		command, err = c.engine.SetWithdrawalStatus(c.operator, q.Withdrawal, to, q.text())
	}
	if err == nil {
		w := committed.WithdrawalRow(command.Withdrawal())
		accepted := command.Outcome() == actors.Accepted
		kind, refusal := command.Record().Kind, command.Record().Refusal
		held := command.HoldEndsUs()
		switch command.Free(); {
		case accepted:
			return &decisionAnswer{newWithdrawal(c.engine, &w), false}, nil
		case kind == event.KindRefusal && refusal.Reason == event.RefusedFrozen:
			return nil, &badRequest{fmt.Sprintf(
				"account %s is frozen, so withdrawal %d was not approved: unfreeze the "+
					"account, or approve with despite_freeze (--despite-freeze)",
				c.engine.AccountName(refusal.Account), q.Withdrawal)}
		case kind == event.KindRefusal && refusal.Reason == event.RefusedHeld:
			return nil, &badRequest{fmt.Sprintf(
				"the e-mail address of account %s was changed, so its withdrawals are held "+
					"until %s: withdrawal %d was not approved",
				c.engine.AccountName(refusal.Account),
				clock(held), q.Withdrawal)}
		}
	}
	var request *actors.RequestError
	if err != nil && !errors.As(err, &request) {
		return nil, err
	}
	w, found, err := c.engine.WithdrawalOf(q.Withdrawal)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, &badRequest{fmt.Sprintf("there is no withdrawal %d", q.Withdrawal)}
	case w.Status != to:
		return nil, &badRequest{fmt.Sprintf("withdrawal %d is %s", q.Withdrawal,
			event.WithdrawalStatusName(w.Status))}
	case q.Reference != "" && w.Details != q.Reference:
		return nil, &badRequest{fmt.Sprintf("withdrawal %d is approved already, with the "+
			"reference %q: it was not changed", q.Withdrawal, w.Details)}
	}
	return &decisionAnswer{newWithdrawal(c.engine, &w), true}, nil
}
