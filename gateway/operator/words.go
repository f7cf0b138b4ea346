package operator

import (
	"reflect"

	"exchange/actors"
	"exchange/core/event"
	"exchange/gateway/openapi"
)

// Descriptions of members in requests and answers, for the document and for the commands that send
// them. A member's tag has its text as doc, and its bounds: need, most (characters, or entries),
// min, max, pattern, enum, const (true). A member without doc has the text of its name, below. The
// tag is describes a number, and text:"-" hides a member from the output of commands.

// words are the texts of members with one meaning in all types.
var words = map[string]string{
	"account": "Name of the account",
	"after":   "Only accounts with a greater id",
	"allow": "Addresses, or CIDR prefixes such as 10.0.0.0/8, from which the key works. Left out " +
		"or empty: from all",
	"amount":         "Amount",
	"before":         "Only those before this one",
	"balances":       "Sum of balances",
	"cause":          "Why",
	"cancels":        "Whether clients may cancel",
	"closed":         "When it closed",
	"currency":       "Code of the currency",
	"deposit":        "Id of the deposit",
	"despite_freeze": "Approve it although the account is frozen",
	"details":        "Reason of a refusal, which its owner receives, or reference of an approval",
	"email":          `E-mail address; "": none`,
	"from":           "Only from this time on: 2026-11-21, or 2026-11-21T08:00:00Z",
	"frozen":         "Whether the account is frozen",
	"held_until":     "Until when no money is withdrawn from the account",
	"id":             "Id of the account",
	"key":            "The key",
	"lag":            "Entries that it lacks; null: not known",
	"leader":         `Node that leads; "": none is known`,
	"limit":          "Most entries of the list",
	"log_bytes":      "What the node's log takes on its disk",
	"maker":          "Fraction that the maker pays: 0.001 is 0.1 %",
	"message":        "Message to clients",
	"name":           "Name",
	"next":           "Id of the last one, if more may follow it",
	"node":           "Name of the node",
	"order":          "Id of the order",
	"pair":           "Name of the pair",
	"parallel": "How many of its greatest nonces the key keeps, so that its requests may " +
		"overtake each other. Left out: each nonce is greater than the one before",
	"permissions":            "What the key may do",
	"price":                  "Price",
	"reason":                 "Reason, on one line; the owner receives it",
	"reference":              "Name with which a repeat is safe. Left out: the exchange makes one",
	"repeated":               "Already in this state: the request changed nothing",
	"reserve":                "The part that open orders and pending withdrawals hold",
	"reserved":               "The part that open orders and pending withdrawals hold",
	"role":                   `What it does in the cluster; "": it is no member`,
	"sequence":               "Sequence of the journal, of whose moment this is",
	"since":                  `Since when; "": it is not so, or that is not known any more`,
	"taker":                  "Fraction that the taker pays: 0.001 is 0.1 %",
	"term":                   "Number of the term",
	"time":                   "When it was",
	"to":                     "Only before this time",
	"usual":                  "The pair's rates count again; without maker and taker",
	"without_authentication": "Accept the archive's parts unchecked",
	"totals":                 "Sums over all accounts, by currency",
}

// bounds are named in tags, because they belong to other packages.
var bounds = map[string]int{
	"MaxClientID":  event.MaxClientID,
	"MaxDetails":   actors.MaxDetails,
	"MaxList":      maxList,
	"MaxMessage":   actors.MaxMessage,
	"MaxParallel":  event.MaxParallel,
	"MaxReference": actors.MaxReference,
}

// A Member is a member of a request or an answer, as described by its tags.
type Member = openapi.Member

// MemberOf returns the description of a field of a request or an answer.
func MemberOf(f *reflect.StructField) Member { return openapi.MemberOf(f, words, bounds) }
