package history

import (
	"context"
	"database/sql"
	"time"
)

// healthy is the stretch of service after which a start was a good one,
// however it ended.
const healthy = 10 * time.Minute

// refused is the outcome of an attempt that never spawned a server, and so has
// used up nothing.
const refused = "refused"

// wrongAnswers is the cause of an attempt whose answers were wrong: it got
// ready and served nobody.
const wrongAnswers = "output_corrupt"

// Good is a start that worked.
type Good struct {
	Launch  string
	Attempt int
	Key     Key
	Command []string
	Patches []Patch // recorded with it
	Ready   time.Time
}

// LastGood finds the newest start of a launch's name that served: it became
// ready, and still runs, was stopped as asked or served for ten minutes; one
// whose answers were wrong did not. ok is false where there is none. What differs
// from it is suspect; Key.SameServer tells whether that can only be a patch.
func (db *DB) LastGood(ctx context.Context, name string) (good Good, ok bool, err error) {
	found, err := read(ctx, db, "read which start worked last", func(ctx context.Context, c *sql.Conn) ([]Good, error) {
		found, err := collect(ctx, c, func(rows *sql.Rows) (Good, error) {
			var a Attempt
			var g Good
			err := scanAttemptInto(rows, &a, &g.Launch)
			g.Attempt, g.Key, g.Ready = a.N, a.Key, a.Ready
			return g, err
		}, "SELECT "+attemptColumns+`, launch FROM attempts
			WHERE launch IN (SELECT id FROM launches WHERE name = ?) AND ready > 0
			AND (outcome IN ('', 'ready', 'stopped') OR ended - ready >= ?) AND cause <> '`+wrongAnswers+`'
			ORDER BY launch DESC, n DESC LIMIT 1`, name, healthy.Milliseconds())
		if err != nil || len(found) == 0 {
			return nil, err
		}
		g := &found[0]
		if g.Patches, err = loadPatches(ctx, c, g.Launch, g.Attempt); err != nil {
			return nil, err
		}
		launches, err := collect(ctx, c, scanLaunch, "SELECT "+launchColumns+" FROM launches WHERE id = ?", g.Launch)
		if len(launches) > 0 {
			g.Command = launches[0].Command
		}
		return found, err
	})
	if err != nil || len(found) == 0 {
		return Good{}, false, err
	}
	return found[0], true, nil
}

// Earlier is what launches before this one leave to it, so that the restart by
// a service manager does not renew the budgets of a crash loop.
type Earlier struct {
	Spawns      []time.Time // oldest first, since the last healthy stretch
	Fingerprint string      // of the newest cause
	Same        int         // how often in a row
}

// Earlier reads the failed starts of a name since a moment, back to the last
// start that was healthy, the last launch that ended as asked, or the last one
// that was asked for otherwise: whoever changed something begins anew.
func (db *DB) Earlier(ctx context.Context, name string, asked Key, since time.Time) (Earlier, error) {
	return read(ctx, db, "read the launches before", func(ctx context.Context, c *sql.Conn) (Earlier, error) {
		launches, err := loadLaunches(ctx, c, "WHERE name = ? AND began >= ? ORDER BY id DESC LIMIT ?", name, millis(since), newest)
		if err != nil {
			return Earlier{}, err
		}
		return earlier(launches, asked, since), nil
	})
}

func earlier(newestFirst []Launch, asked Key, since time.Time) (e Earlier) {
	broken := false // the row of equal causes
	for _, l := range newestFirst {
		if l.Code != nil && *l.Code == 0 || !l.Key.SameServer(asked) || l.Key.Patches != asked.Patches {
			break
		}
		for i := len(l.Attempts) - 1; i >= 0; i-- {
			a := l.Attempts[i]
			if a.wasHealthy() {
				return e
			}
			if a.Began.IsZero() || a.Began.Before(since) || a.Outcome == refused {
				continue
			}
			e.Spawns = append([]time.Time{a.Began}, e.Spawns...)
			switch {
			case a.Fingerprint == "" || broken:
			case e.Fingerprint == "" || e.Fingerprint == a.Fingerprint:
				e.Fingerprint, e.Same = a.Fingerprint, e.Same+1
			default:
				broken = true
			}
		}
	}
	return e
}

func (a Attempt) wasHealthy() bool {
	return a.Cause != wrongAnswers && !a.Ready.IsZero() && !a.Ended.IsZero() && a.Ended.Sub(a.Ready) >= healthy
}
