package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/vault/sdk/physical"
)

var folder = []string{"", "a/", "a/b/", "a/b/c/", "d/"}

// Tasks put and delete entries in folders that they share, each its own entries, alone or several in a
// transaction. A task always finds what it was told, in an entry and in its folder's list. Afterwards the
// lists are those of the entries; and when all entries are deleted, no folder is left. The argument is the
// number of tasks.
func entries() (string, error) {
	first, err := open()
	if err != nil {
		return "", err
	}
	tasks := number(4)
	models := make([]map[string]string, tasks)
	failed := make([]error, tasks)
	var came atomic.Int64
	var wait sync.WaitGroup
	for who := range models {
		wait.Add(1)
		go func(who int) {
			defer wait.Done()
			models[who] = map[string]string{}
			failed[who] = task(first, who, models[who], &came)
		}(who)
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return "", err
		}
	}

	all := []string{}
	for _, model := range models {
		for key := range model {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	for _, prefix := range folder {
		if err := lists(first, prefix, children(prefix, all), &came); err != nil {
			return "", err
		}
	}
	for _, key := range all {
		repeated, err := again(func() error { return first.Delete(ctx, key) })
		came.Add(int64(repeated))
		if err != nil {
			return "", fmt.Errorf("%s is there and cannot be deleted: %w", key, err)
		}
	}
	for _, prefix := range folder {
		if err := lists(first, prefix, []string{}, &came); err != nil {
			return "", fmt.Errorf("all entries are deleted: %w", err)
		}
	}
	return fmt.Sprintf("%d entries, %d calls repeated by hand", len(all), came.Load()), nil
}

// What one task does, with what it must find.
func task(in backend, who int, model map[string]string, came *atomic.Int64) error {
	draw := chance(who)
	name := func() string { return fmt.Sprintf("%s%d.%d", folder[draw.Intn(len(folder))], who, draw.Intn(3)) }
	for step := 0; step < 12; step++ {
		changes := []*physical.TxnEntry{}
		for more := 1 + draw.Intn(3); more > 0; more-- {
			if key := name(); draw.Intn(3) > 0 {
				changes = append(changes, put(key, fmt.Sprintf("step %d", step)))
			} else {
				changes = append(changes, remove(key))
			}
		}
		repeated, err := again(func() error {
			if len(changes) > 1 {
				return in.Transaction(ctx, changes)
			}
			if changes[0].Operation == physical.PutOperation {
				return in.Put(ctx, changes[0].Entry)
			}
			return in.Delete(ctx, changes[0].Entry.Key)
		})
		came.Add(int64(repeated))
		if err != nil {
			return fmt.Errorf("task %d, step %d: %w", who, step, err)
		}
		for _, change := range changes {
			if change.Operation == physical.PutOperation {
				model[change.Entry.Key] = string(change.Entry.Value)
			} else {
				delete(model, change.Entry.Key)
			}
		}

		key := name()
		var entry *physical.Entry
		repeated, err = again(func() (err error) { entry, err = in.Get(ctx, key); return })
		came.Add(int64(repeated))
		if err != nil {
			return fmt.Errorf("get %s: %w", key, err)
		}
		value, there := model[key]
		if there != (entry != nil) || there && value != string(entry.Value) {
			return fmt.Errorf("%s should be %q, and is %v", key, value, entry)
		}

		prefix := folder[draw.Intn(len(folder))]
		var found []string
		repeated, err = again(func() (err error) { found, err = in.List(ctx, prefix); return })
		came.Add(int64(repeated))
		if err != nil {
			return fmt.Errorf("list %s: %w", prefix, err)
		}
		mine := []string{}
		for key := range model {
			mine = append(mine, key)
		}
		for _, name := range children(prefix, mine) {
			if !slices.Contains(found, name) {
				return fmt.Errorf("the list of %q lacks %s, and has %v", prefix, name, found)
			}
		}
		for _, name := range found {
			_, there := model[prefix+name]
			if strings.HasPrefix(name, fmt.Sprintf("%d.", who)) && !there {
				return fmt.Errorf("the list of %q has %s, which is deleted", prefix, name)
			}
		}
	}
	return nil
}

// Whether a list is as it must be.
func lists(in backend, prefix string, expected []string, came *atomic.Int64) error {
	var found []string
	repeated, err := again(func() (err error) { found, err = in.List(ctx, prefix); return })
	came.Add(int64(repeated))
	if err != nil {
		return err
	}
	if !slices.Equal(found, expected) {
		return fmt.Errorf("the list of %q should be %v, and is %v", prefix, expected, found)
	}
	return nil
}

// Opens an instance, which makes its directory. Nobody else does.
func opens() (string, error) {
	_, err := openOnce()
	return "open", err
}

// Puts and deletes entries one after the other, and repeats nothing. No call may fail with an error that
// FoundationDB's retry loop repeats.
func retries() (string, error) {
	in, err := open()
	if err != nil {
		return "", err
	}
	for n := 0; n < 20; n++ {
		key := fmt.Sprintf("folder/%d", n)
		if err := in.Put(ctx, put(key, "value").Entry); err != nil {
			return "", err
		}
	}
	for n := 0; n < 20; n++ {
		if err := in.Delete(ctx, fmt.Sprintf("folder/%d", n)); err != nil {
			return "", err
		}
	}
	return "20 put, 20 deleted", nil
}

// A folder has an entry, and nobody has put one whose name is that of the folder.
func phantom() (string, error) {
	in, err := open()
	if err != nil {
		return "", err
	}
	if _, err := again(func() error { return in.Put(ctx, put("folder/entry", "value").Entry) }); err != nil {
		return "", err
	}
	var entry *physical.Entry
	if _, err := again(func() (err error) { entry, err = in.Get(ctx, "folder/"); return }); err != nil {
		return "", err
	}
	if entry != nil {
		return "", fmt.Errorf("nobody has put folder/, and it is %x", entry.Value)
	}
	return "nothing is found", nil
}

// The same folder, after a delete of the entry with its name, which is not there. With the argument `delete`,
// the entry in it is deleted in the end.
func erased() (string, error) {
	in, err := open()
	if err != nil {
		return "", err
	}
	if _, err := again(func() error { return in.Put(ctx, put("folder/entry", "value").Entry) }); err != nil {
		return "", err
	}
	if _, err := again(func() error { return in.Delete(ctx, "folder/") }); err != nil {
		return "", err
	}
	if len(os.Args) > 2 {
		if _, err := again(func() error { return in.Delete(ctx, "folder/entry") }); err != nil {
			return "", err
		}
		return "deleted", nil
	}
	var found []string
	if _, err := again(func() (err error) { found, err = in.List(ctx, ""); return }); err != nil {
		return "", err
	}
	var entry *physical.Entry
	if _, err := again(func() (err error) { entry, err = in.Get(ctx, "folder/entry"); return }); err != nil {
		return "", err
	}
	if entry != nil && len(found) == 0 {
		return "", fmt.Errorf("folder/entry is %q, and the list is empty", entry.Value)
	}
	return "the list has it", nil
}
