package owner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"exchange/actors/mailbox"
	"exchange/persistence"
)

// ErrStandby is wrapped when a claim is told to stop while it waits for another owner.
var ErrStandby = errors.New("stopped while another exchange owns the store")

// An applicant is a start on its way to the store.
type applicant struct {
	o       *Options
	tenures persistence.Ownerships
	id      string // of this start's claims; "": it has made none
	waited  bool   // this start was a standby

	watch  persistence.OwnerWatch
	mute   bool   // the store does not answer, and the log says so
	unsafe bool   // the store's file was not in effect, and the log says so
	named  string // owner for which it waits, as the log says
}

// A turn is the reason why a start may claim the store.
type turn uint8

const (
	turnNotYet turn = iota
	turnFree        // there is no owner
	turnOwn         // the owner was a process of this host's folder, which has ended
	turnDead        // the owner has shown no sign of life
	turnInsist      // the operator insists
)

// claim looks at the store until it is this start's turn, and claims it then. The store refuses a
// claim that names a beat that is not the newest. So of two starts that wait for one owner, one
// gets the store.
func (a *applicant) claim(ctx context.Context, w *Hold) (err error) {
	if a.tenures, err = a.o.Identity.Load(); err != nil {
		return err
	}
	defer a.standsBy("")
	for {
		why, err := a.turn(ctx)
		if err != nil {
			return a.short(err)
		}
		wait, err := a.note(why)
		if err != nil {
			return err
		}
		err = w.acquire(ctx, a.o.Store, persistence.Claim{Owner: a.o.Owner, ID: a.tenures.Newest.ID,
			Heartbeat: a.watch.Heartbeat, After: &a.watch.Seen, Insist: a.o.TakeOver})
		switch {
		case err == nil:
			if wait > 0 {
				// Later than the last moment at which the owner before may begin a private read.
				w.opens, w.open = time.Now().Add(wait+1), a.opens
			}
			return nil
		case errors.Is(err, persistence.ErrHeld):
		case errors.Is(err, persistence.ErrCorrupt):
			return a.short(err)
		// the claim may have been made: the next look shows it
		case errors.Is(err, persistence.ErrNotInEffect):
			if err := a.untilInEffect(ctx, err); err != nil {
				return err
			}
		case !a.waited, ctx.Err() != nil, errors.Is(err, persistence.ErrInvalid):
			return err
		default:
			a.unanswered(err)
			if err := mailbox.Pause(ctx, a.o.Check); err != nil {
				return a.stopped(ctx)
			}
		}
		a.watch.Again()
	}
}

// untilInEffect pauses before the next try. As at the store's opening, a start waits.
func (a *applicant) untilInEffect(ctx context.Context, why error) error {
	if !a.unsafe {
		a.unsafe = true
		a.o.Log.Warn("the start waits until the store's append-only file is in effect", "error",
			why)
	}
	if mailbox.Pause(ctx, a.o.Check) != nil {
		return a.stopped(ctx)
	}
	return nil
}

// short remembers the end that the journal had, if it has lost a tail since: the next start must
// not take the rest for the whole.
func (a *applicant) short(err error) error {
	seen := a.watch.Seen.End
	if errors.Is(err, persistence.ErrCorrupt) && seen != a.tenures.Seen &&
		seen != (persistence.Mark{}) {
		a.tenures.Seen, a.tenures.Accepted = seen, a.watch.Seen.Accepted
		return errors.Join(err, a.o.Identity.Save(a.tenures))
	}
	return err
}

// note remembers a claim that is about to be made, and how long admission must wait after it.
func (a *applicant) note(why turn) (wait time.Duration, err error) {
	t, own := a.tenures.Of(a.watch.Seen.Token)
	switch {
	case own:
		a.tenures.Before, wait = t, t.Wait()
	case why == turnInsist:
		wait = max(a.watch.Heartbeat.Stale, a.watch.Seen.Heartbeat.Stale)
	}
	if a.id == "" {
		a.id = persistence.NewID()
	}
	a.tenures.Newest = persistence.Ownership{ID: a.id, WaitMs: persistence.Milliseconds(wait)}
	a.tenures.Seen, a.tenures.Accepted = persistence.Mark{}, 0
	return wait, a.o.Identity.Save(a.tenures)
}

// opens remembers that admission opens.
func (a *applicant) opens() error {
	a.tenures.Newest.WaitMs = 0
	return a.o.Identity.Save(a.tenures)
}

// turn waits until this start may claim the store. The store must answer the first look; a standby
// goes on through its failures.
func (a *applicant) turn(ctx context.Context) (turn, error) {
	for {
		why, err := a.look(ctx)
		switch {
		case ctx.Err() != nil:
			return 0, a.stopped(ctx)
		case err != nil && (!a.waited || errors.Is(err, persistence.ErrCorrupt)):
			return 0, err
		case err != nil:
			a.watch.Again()
			a.unanswered(err)
		case why != turnNotYet:
			return why, nil
		default:
			a.waits()
		}
		if err := mailbox.Pause(ctx, a.o.Check); err != nil {
			return 0, a.stopped(ctx)
		}
	}
}

// stopped returns the error of a start that was told to stop.
func (a *applicant) stopped(ctx context.Context) error {
	if a.waited {
		return fmt.Errorf("%w: %w", ErrStandby, ctx.Err())
	}
	return ctx.Err()
}

// look asks the store once for its owner.
func (a *applicant) look(ctx context.Context) (turn, error) {
	asking, cancel := context.WithTimeout(ctx, a.patience())
	defer cancel()
	beat, err := a.o.Store.Beat(asking)
	if err != nil {
		return 0, fmt.Errorf("looking for the owner: %w", err)
	}
	if err := a.whole(beat); err != nil {
		return 0, err
	}
	before := a.watch.Seen.End
	if err := a.watch.See(beat, time.Now()); err != nil {
		return 0, err
	}
	a.forget(before, beat)
	a.mute = false
	_, own := a.tenures.Of(beat.Token)
	switch {
	case !beat.HasOwner():
		return turnFree, nil
	case own:
		return turnOwn, nil
	case a.o.TakeOver:
		return turnInsist, nil
	case a.watch.Quiet() >= a.watch.Needed():
		a.o.Log.Warn("the store's owner shows no sign of life: this standby takes over", "owner",
			clip(beat.Owner),
			"for", a.watch.Quiet().Round(time.Millisecond))
		return turnDead, nil
	}
	return turnNotYet, nil
}

// firstLook is the least time that a start waits for its first look: it has no connection yet, and
// ends if that look has no answer.
const firstLook = time.Second

// patience returns how long a look waits for its answer. A later answer would count for nothing.
func (a *applicant) patience() time.Duration {
	gap := a.watch.Gap(a.watch.Seen)
	if a.waited {
		return gap
	}
	return max(gap, firstLook)
}

// whole refuses a store that is known to have lost a tail, unless an operator accepts that, or has
// since.
func (a *applicant) whole(beat persistence.Beat) error {
	switch {
	case a.o.TakeOver:
	case beat.Lost != "":
		return persistence.Cut(beat.Lost)
	case beat.Lacks(a.tenures.Seen, a.tenures.Accepted):
		return persistence.Shortened(a.tenures.Seen, beat.End)
	}
	return nil
}

// forget drops the ends that the journal had, if a tail is lost and an operator accepts that.
func (a *applicant) forget(before persistence.Mark, beat persistence.Beat) {
	if before.Fits(beat.End) && a.tenures.Seen.Fits(beat.End) {
		return
	}
	a.o.Log.Warn(
		"the journal ends before the end that this host has seen: an operator has accepted "+
			"that with --take-over, or has restored a backup",
		"seen", max(before.Seq, a.tenures.Seen.Seq), "ends", beat.End.Seq)
	a.tenures.Seen, a.tenures.Accepted = persistence.Mark{}, 0
}

// waits logs for which owner this start waits, once for each.
func (a *applicant) waits() {
	owner := clip(a.watch.Seen.Owner)
	if a.waited && owner == a.named {
		return
	}
	a.waited, a.named = true, owner
	a.o.Waits()
	a.standsBy(owner)
	a.o.Log.Warn(
		"standby: another exchange owns the store, and this one takes over when that one has "+
			"stopped, or shows no sign of life; --take-over insists",
		"store", a.o.Store.String(), "owner", owner, "after", a.watch.Needed())
}

func (a *applicant) standsBy(owner string) {
	if a.waited && a.o.StandsBy != nil {
		a.o.StandsBy(owner)
	}
}

// unanswered logs a failure of the store, once until the store answers again.
func (a *applicant) unanswered(err error) {
	if !a.mute {
		a.mute = true
		a.o.Log.Warn(
			"standby: the store does not answer, which says nothing about its owner: the wait "+
				"begins anew", "error", err)
	}
}

// clipped bounds the part of an owner's text in the log: any client of the store may write it.
const clipped = 200

func clip(owner string) string {
	if len(owner) > clipped {
		return owner[:clipped] + "..."
	}
	return owner
}
