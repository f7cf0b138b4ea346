package owner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"exchange/actors/mailbox"
	"exchange/persistence"
)

// ErrStandby wraps the error of a claim stopped while it waits for another owner.
var ErrStandby = errors.New("stopped while another exchange owns the store")

// An applicant is a start that claims the store.
type applicant struct {
	o          *Options
	ownerships persistence.Ownerships
	id         string // of this start's claims; "": none yet
	waited     bool   // this start was a standby

	watch             persistence.OwnerWatch
	downLogged        bool   // the store does not answer; logged
	notInEffectLogged bool   // the store's file was not in effect; logged
	loggedOwner       string // owner it waits for, as logged
}

// A turn is the reason why a start may claim the store.
type turn uint8

const (
	turnNotYet turn = iota
	turnFree        // there is no owner
	turnOwn         // the owner was an earlier process of this host's folder
	turnDead        // the owner shows no sign of life
	turnInsist      // the operator insists
)

// claim polls the store until it is this start's turn, and claims it then. The store refuses a
// claim whose newest known heartbeat is outdated. So of two starts that wait for one owner, one
// gets the store.
func (a *applicant) claim(ctx context.Context, w *Hold) (err error) {
	if a.ownerships, err = a.o.Identity.Load(); err != nil {
		return err
	}
	defer a.standsBy("")
	for {
		why, err := a.turn(ctx)
		if err != nil {
			return a.saveLostTail(err)
		}
		wait, err := a.saveClaim(why)
		if err != nil {
			return err
		}
		err = w.acquire(ctx, a.o.Store, persistence.Claim{
			Owner: a.o.Owner, ID: a.ownerships.Newest.ID,
			Heartbeat: a.watch.Heartbeat, After: &a.watch.Seen, Insist: a.o.TakeOver})
		switch {
		case err == nil:
			if wait > 0 {
				// After the last moment at which the earlier owner may start a private read.
				w.opens, w.open = time.Now().Add(wait+1), a.saveOpening
			}
			return nil
		case errors.Is(err, persistence.ErrHeld):
		case errors.Is(err, persistence.ErrCorrupt):
			return a.saveLostTail(err)
		// the claim may have been made: the next poll shows it
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

// untilInEffect pauses before the next try. A start waits, as it does when it opens the store.
func (a *applicant) untilInEffect(ctx context.Context, why error) error {
	if !a.notInEffectLogged {
		a.notInEffectLogged = true
		a.o.Log.Warn("the start waits until the store's append-only file is in effect", "error",
			why)
	}
	if mailbox.Pause(ctx, a.o.Check) != nil {
		return a.stopped(ctx)
	}
	return nil
}

// saveLostTail saves the journal's last known end, if the journal lost a tail since: the next start
// must not take the rest for the whole.
func (a *applicant) saveLostTail(err error) error {
	seen := a.watch.Seen.End
	if errors.Is(err, persistence.ErrCorrupt) && seen != a.ownerships.Seen &&
		seen != (persistence.Mark{}) {
		a.ownerships.Seen, a.ownerships.Accepted = seen, a.watch.Seen.Accepted
		return errors.Join(err, a.o.Identity.Save(a.ownerships))
	}
	return err
}

// saveClaim saves a claim before it is made, and returns how long admission must wait after it.
func (a *applicant) saveClaim(why turn) (wait time.Duration, err error) {
	t, own := a.ownerships.Of(a.watch.Seen.Token)
	switch {
	case own:
		a.ownerships.Before, wait = t, t.Wait()
	case why == turnInsist:
		wait = max(a.watch.Heartbeat.Stale, a.watch.Seen.Heartbeat.Stale)
	}
	if a.id == "" {
		a.id = persistence.NewID()
	}
	a.ownerships.Newest = persistence.Ownership{ID: a.id, WaitMs: persistence.Milliseconds(wait)}
	a.ownerships.Seen, a.ownerships.Accepted = persistence.Mark{}, 0
	return wait, a.o.Identity.Save(a.ownerships)
}

// saveOpening saves that admission opens.
func (a *applicant) saveOpening() error {
	a.ownerships.Newest.WaitMs = 0
	return a.o.Identity.Save(a.ownerships)
}

// turn waits until this start may claim the store. The store must answer the first poll; later a
// standby tolerates its failures.
func (a *applicant) turn(ctx context.Context) (turn, error) {
	for {
		why, err := a.poll(ctx)
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
			a.logWait()
		}
		if err := mailbox.Pause(ctx, a.o.Check); err != nil {
			return 0, a.stopped(ctx)
		}
	}
}

// stopped returns the error of a start that was stopped.
func (a *applicant) stopped(ctx context.Context) error {
	if a.waited {
		return fmt.Errorf("%w: %w", ErrStandby, ctx.Err())
	}
	return ctx.Err()
}

// poll queries the store's owner once.
func (a *applicant) poll(ctx context.Context) (turn, error) {
	asking, cancel := context.WithTimeout(ctx, a.pollTimeout())
	defer cancel()
	beat, err := a.o.Store.Beat(asking)
	if err != nil {
		return 0, fmt.Errorf("looking for the owner: %w", err)
	}
	if err := a.checkComplete(beat); err != nil {
		return 0, err
	}
	before := a.watch.Seen.End
	if err := a.watch.See(beat, time.Now()); err != nil {
		return 0, err
	}
	a.forget(before, beat)
	a.downLogged = false
	_, own := a.ownerships.Of(beat.Token)
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

// firstPoll is the shortest timeout of a start's first poll: it has no connection yet, and fails
// without an answer.
const firstPoll = time.Second

// pollTimeout returns the timeout of a poll. A later answer would be useless.
func (a *applicant) pollTimeout() time.Duration {
	gap := a.watch.Gap(a.watch.Seen)
	if a.waited {
		return gap
	}
	return max(gap, firstPoll)
}

// checkComplete refuses a store that lost a tail, unless an operator accepts that, or did so since.
func (a *applicant) checkComplete(beat persistence.Beat) error {
	switch {
	case a.o.TakeOver:
	case beat.Lost != "":
		return persistence.Cut(beat.Lost)
	case beat.Lacks(a.ownerships.Seen, a.ownerships.Accepted):
		return persistence.Shortened(a.ownerships.Seen, beat.End)
	}
	return nil
}

// forget drops the journal's known ends, if a tail is lost and an operator accepts that.
func (a *applicant) forget(before persistence.Mark, beat persistence.Beat) {
	if before.Fits(beat.End) && a.ownerships.Seen.Fits(beat.End) {
		return
	}
	a.o.Log.Warn(
		"the journal ends before the end that this host has seen: an operator has accepted "+
			"that with --take-over, or has restored a backup",
		"seen", max(before.Seq, a.ownerships.Seen.Seq), "ends", beat.End.Seq)
	a.ownerships.Seen, a.ownerships.Accepted = persistence.Mark{}, 0
}

// logWait logs the owner that this start waits for, once for each.
func (a *applicant) logWait() {
	owner := clip(a.watch.Seen.Owner)
	if a.waited && owner == a.loggedOwner {
		return
	}
	a.waited, a.loggedOwner = true, owner
	a.o.Waits()
	a.standsBy(owner)
	a.o.Log.Warn(
		"standby: another exchange owns the store, and this one takes over when that one has "+
			"stopped, or shows no sign of life; --take-over forces it",
		"store", a.o.Store.String(), "owner", owner, "after", a.watch.Needed())
}

func (a *applicant) standsBy(owner string) {
	if a.waited && a.o.StandsBy != nil {
		a.o.StandsBy(owner)
	}
}

// unanswered logs a failure of the store, once until the store answers again.
func (a *applicant) unanswered(err error) {
	if !a.downLogged {
		a.downLogged = true
		a.o.Log.Warn(
			"standby: the store does not answer, which proves nothing about its owner: the wait "+
				"starts again", "error", err)
	}
}

// clipped bounds the part of an owner's text in the log, in bytes: any client of the store may
// write it.
const clipped = 200

func clip(owner string) string {
	if len(owner) > clipped {
		return owner[:clipped] + "..."
	}
	return owner
}
