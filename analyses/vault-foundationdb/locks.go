package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apple/foundationdb/bindings/go/src/fdb"
	"github.com/apple/foundationdb/bindings/go/src/fdb/directory"
	"github.com/apple/foundationdb/bindings/go/src/fdb/tuple"
	"github.com/hashicorp/vault/sdk/physical"
)

const (
	name = "core/lock"
	// A lease lasts as long.
	lease = 15 * time.Second
	// Whoever waits for a lock looks as often.
	pause = 5 * time.Second
)

// An instance with its lock, whose value is `who`.
func instance(who string) (backend, physical.Lock, error) {
	in, err := open()
	if err != nil {
		return in, nil, err
	}
	lock, err := in.LockWith(name, who)
	return in, lock, err
}

// Three instances have the lock in turns, and no two at once. What an error leaves behind is undone by hand.
func turns() (string, error) {
	var inside, repeated atomic.Int64
	failed := make(chan error, 9)
	var wait sync.WaitGroup
	for who := 0; who < 3; who++ {
		_, lock, err := instance(fmt.Sprint(who))
		if err != nil {
			return "", err
		}
		wait.Add(1)
		go func(who int) {
			defer wait.Done()
			var lost <-chan struct{}
			for {
				if lost, err = lock.Lock(nil); err == nil {
					break
				}
				repeated.Add(1)
				release(lock)
			}
			if inside.Add(1) > 1 {
				failed <- fmt.Errorf("two instances have the lock")
			}
			if held, value, err := lock.Value(); !temporary(err) && (!held || value != fmt.Sprint(who)) {
				failed <- fmt.Errorf("instance %d has the lock, and its value is %q", who, value)
			}
			time.Sleep(200 * time.Millisecond)
			inside.Add(-1)
			release(lock)
			select {
			case <-lost:
			case <-time.After(pause):
				failed <- fmt.Errorf("instance %d has released the lock, and is not told that it is lost", who)
			}
		}(who)
	}
	wait.Wait()
	select {
	case err := <-failed:
		return "", err
	default:
		return fmt.Sprintf("3 had the lock, %d calls repeated by hand", repeated.Load()), nil
	}
}

// Releases a lock, whatever its state.
func release(lock physical.Lock) {
	for {
		if err := lock.Unlock(); err == nil || strings.Contains(err.Error(), "non-existent") {
			return
		}
	}
}

// Writes the lock by hand, as another instance would.
func write(value string, expires time.Time) error {
	db, err := fdb.OpenDefault()
	if err != nil {
		return err
	}
	top, err := directory.CreateOrOpen(db, []string{"vault"}, nil)
	if err != nil {
		return err
	}
	_, err = db.Transact(func(tr fdb.Transaction) (interface{}, error) {
		key := top.Sub("_lock").Pack(tuple.Tuple{name})
		tr.Set(key, tuple.Tuple{value, "another", expires.UnixNano()}.Pack())
		return nil, nil
	})
	return err
}

// Another instance has the lock and is dead. Nobody gets it before its lease ends, and somebody soon after.
func takeover() (string, error) {
	_, lock, err := instance("next")
	if err != nil {
		return "", err
	}
	ends := time.Now().Add(pause / 2)
	if err := write("dead", ends); err != nil {
		return "", err
	}
	for {
		if _, err := lock.Lock(nil); err == nil {
			break
		}
		release(lock)
	}
	if time.Now().Before(ends) {
		return "", fmt.Errorf("two instances have the lock")
	}
	return "taken over", nil
}

// Another instance takes the lock, as if the lease had ended. Who had it is told.
func ousted() (string, error) {
	_, lock, err := instance("first")
	if err != nil {
		return "", err
	}
	var lost <-chan struct{}
	for {
		if lost, err = lock.Lock(nil); err == nil {
			break
		}
		release(lock)
	}
	if err := write("second", time.Now().Add(lease)); err != nil {
		return "", err
	}
	select {
	case <-lost:
		return "told", nil
	case <-time.After(2 * pause):
		return "", fmt.Errorf("another instance has the lock, and who had it is not told")
	}
}

// The only instance takes its lock as Vault does: after an error it waits, and asks again. Vault waits for 10
// seconds, and has no end. No other instance has ever had the lock, and a lease has ended meanwhile.
func stuck() (string, error) {
	_, lock, err := instance("only")
	if err != nil {
		return "", err
	}
	for begun, errs := time.Now(), 0; ; errs++ {
		if _, err = lock.Lock(nil); err == nil {
			return fmt.Sprintf("has the lock, after %d errors", errs), nil
		}
		if time.Since(begun) > lease+pause {
			return "", fmt.Errorf("after 20 seconds, the only instance has got no lock: %w", err)
		}
		time.Sleep(time.Second)
	}
}

// Vault is sealed while it waits for the lock, and unsealed later: Lock is interrupted, and then called anew.
func stopped() (string, error) {
	_, lock, err := instance("only")
	if err != nil {
		return "", err
	}
	stop := make(chan struct{})
	close(stop)
	if lost, err := lock.Lock(stop); lost != nil || err != nil {
		return "", fmt.Errorf("what is interrupted returns %v and %v", lost, err)
	}
	time.Sleep(pause / 5)
	held, value, err := lock.Value()
	if err != nil {
		return "", err
	}
	if held {
		_, err = lock.Lock(nil)
		return "", fmt.Errorf("Lock was interrupted, and the lock is held by %q; then Lock fails: %w", value, err)
	}
	return "nobody has the lock", nil
}

// Takes the lock and releases it. No other instance is there. Errors that a retry loop repeats are repeated.
func unlocked() (string, error) {
	_, lock, err := instance("only")
	if err != nil {
		return "", err
	}
	for {
		if _, err = lock.Lock(nil); err == nil {
			break
		}
		release(lock)
	}
	_, err = again(lock.Unlock)
	return "released", err
}

// The lease of a dead instance has ended. Nobody has the lock.
func expired() (string, error) {
	_, lock, err := instance("next")
	if err != nil {
		return "", err
	}
	if err := write("dead", time.Now().Add(-lease)); err != nil {
		return "", err
	}
	held, value, err := lock.Value()
	if err != nil {
		return "", err
	}
	if held {
		return "", fmt.Errorf("the lease of %q has ended, and Value says that the lock is held", value)
	}
	return "nobody has the lock", nil
}
