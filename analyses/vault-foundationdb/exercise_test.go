package main

import (
	"testing"

	"github.com/hashicorp/vault/sdk/physical"
)

// What Vault's own test of the backend does.
func TestExercise(t *testing.T) {
	first, err := openOnce()
	if err != nil {
		t.Fatal(err)
	}
	second, err := openOnce()
	if err != nil {
		t.Fatal(err)
	}
	physical.ExerciseBackend(t, first)
	physical.ExerciseBackend_ListPrefix(t, first)
	physical.ExerciseTransactionalBackend(t, first)
	physical.ExerciseHABackend(t, first, second)
}
