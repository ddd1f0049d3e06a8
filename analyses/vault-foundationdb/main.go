// Programs that use Vault's storage backend for FoundationDB as Vault does. The first argument names one; it
// prints a line and exits with 0 if the backend kept its promise, and with 1 if not.

// The directory layer of FoundationDB's binding draws prefixes with math/rand: here the same in each run.
//
//go:debug randautoseed=0
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/apple/foundationdb/bindings/go/src/fdb"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/physical/foundationdb"
	"github.com/hashicorp/vault/sdk/physical"
)

var programs = map[string]func() (string, error){
	"entries":  entries,
	"opens":    opens,
	"retries":  retries,
	"phantom":  phantom,
	"erased":   erased,
	"turns":    turns,
	"takeover": takeover,
	"ousted":   ousted,
	"stuck":    stuck,
	"stopped":  stopped,
	"unlocked": unlocked,
	"expired":  expired,
}

func main() {
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "no such program")
		os.Exit(2)
	}
	said, err := programs[os.Args[1]]()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(said)
}

// A backend is an instance of Vault: each has an owner of locks of its own.
type backend struct {
	*foundationdb.FDBBackend
}

// Opens an instance. This is repeated by hand if an error comes through that a retry loop repeats: in the
// allocator of the binding's directory layer it is text.
func open() (backend, error) {
	for {
		in, err := openOnce()
		if err == nil || !temporary(err) && !strings.Contains(err.Error(), "unable to allocate") {
			return in, err
		}
	}
}

func openOnce() (backend, error) {
	in, err := foundationdb.NewFDBBackend(map[string]string{
		"api_version":  "520",
		"cluster_file": os.Getenv("FDB_CLUSTER_FILE"),
		"ha_enabled":   "true",
	}, hclog.New(&hclog.LoggerOptions{Output: io.Discard}))
	if err != nil {
		return backend{}, err
	}
	return backend{in.(*foundationdb.FDBBackend)}, nil
}

// Whether an error is one of FoundationDB that a retry loop repeats.
func temporary(err error) bool {
	var code fdb.Error
	if !errors.As(err, &code) {
		return false
	}
	switch code.Code {
	case 1007, 1009, 1020, 1021, 1037, 1038, 1039, 1042, 1051, 1078, 1213, 1223, 1235:
		return true
	}
	return false
}

// Repeats a call while errors come that a retry loop repeats, and says how many came.
func again(call func() error) (came int, err error) {
	for {
		if err = call(); err == nil || !temporary(err) {
			return came, err
		}
		came++
	}
}

// Chance of task `who`: the same for a seed, whatever other tasks do.
func chance(who int) *rand.Rand {
	seed, _ := strconv.ParseInt(os.Getenv("SHAKETABLE_SEED"), 10, 64)
	return rand.New(rand.NewSource(seed<<8 + int64(who)))
}

// The second argument, if it is a number, or another one.
func number(other int) int {
	if len(os.Args) > 2 {
		if given, err := strconv.Atoi(os.Args[2]); err == nil {
			return given
		}
	}
	return other
}

var ctx = context.Background()

func put(key, value string) *physical.TxnEntry {
	return &physical.TxnEntry{
		Operation: physical.PutOperation,
		Entry:     &physical.Entry{Key: key, Value: []byte(value)},
	}
}

func remove(key string) *physical.TxnEntry {
	return &physical.TxnEntry{Operation: physical.DeleteOperation, Entry: &physical.Entry{Key: key}}
}

// The names that a list of folder `prefix` must have, in order, if `keys` are there.
func children(prefix string, keys []string) []string {
	found := map[string]bool{}
	for _, key := range keys {
		if rest, in := strings.CutPrefix(key, prefix); in {
			name, _, deeper := strings.Cut(rest, "/")
			if deeper {
				name += "/"
			}
			found[name] = true
		}
	}
	return names(found)
}

func names(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for name := range set {
		list = append(list, name)
	}
	sort.Strings(list)
	return list
}
