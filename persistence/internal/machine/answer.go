package machine

import (
	"fmt"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// An Outcome is the result of applying an entry.
type Outcome uint8

const (
	Done          Outcome = iota + 1
	Already               // an append: the journal's last batch is the same
	Fenced                // the entry's token is not the owner's
	gap                   // an append: it does not follow the journal's end
	held                  // an acquire: the beat is not the one that the claim names
	short                 // an acquire: the journal ends before the end that the claim has seen
	notEmpty              // a begin: the journal has batches, or begins elsewhere
	changing              // a change of the membership: another one is not complete
	unknownMember         // a change: no member has that name and a fitting role
	alreadyMember         // a change: the node is a member already
	notJoined             // a promotion: the node has not joined
	tooMany               // a change: the cluster has maxMembers already
	lastVoter             // a removal: of the last voter
)

// An Answer is the outcome of an entry, and the state that it found.
type Answer struct {
	Outcome Outcome
	Token   persistence.Token // of an acquire that is Done
	Seq     uint64            // where the journal ends now
	owner   string            // of the engine now
	end     persistence.Mark
}

// Err returns nil if the entry took effect, now or before, and the store's error otherwise.
func (a Answer) Err(e *Entry) error {
	switch a.Outcome {
	case Done, Already:
		return nil
	case Fenced:
		return codec.Fenced(a.owner)
	case gap:
		return codec.Gap(a.Seq, e.Prev)
	case held:
		return codec.Held(a.owner)
	case short:
		return persistence.Shortened(e.After.End, a.end)
	case notEmpty:
		return codec.NotEmpty(fmt.Sprintf("a journal up to sequence %d", a.Seq))
	}
	if why := refusals[a.Outcome]; why != "" {
		return fmt.Errorf("%w: node %q: "+why, persistence.ErrInvalid, e.Name)
	}
	return fmt.Errorf("BUG: outcome %d of an entry", a.Outcome)
}

// refusals say why the membership is not changed.
var refusals = map[Outcome]string{
	changing: "another change of the membership is under way; wait for its end, or remove the " +
		"node that joins",
	unknownMember: "there is no such node, or it has no such role; the status names the nodes",
	alreadyMember: "it is a member already; to give it an empty disk, replace it by itself",
	notJoined:     "it has not joined yet; start it with an empty folder",
	tooMany:       fmt.Sprintf("the cluster has %d members, and more are not possible", maxMembers),
	lastVoter:     "it is the last voter",
}
