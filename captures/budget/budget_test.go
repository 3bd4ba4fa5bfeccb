package budget

import (
	"context"
	"errors"
	"math"
	"testing"
)

func TestBudget(t *testing.T) {
	b := New()
	least := rules()[Decompressed].least
	if err := b.Spend(Decompressed, least); err != nil {
		t.Fatal(err)
	}
	if err := b.Spend(Decompressed, 1); !errors.Is(err, ErrExceeded) {
		t.Fatal(err)
	}

	// Another input allows more, and so does the user.
	b.Input(1)
	if err := b.Spend(Decompressed, 0); err != nil {
		t.Error(err)
	}
	if err := b.Spend(Decompressed, 1000); err == nil {
		t.Error("no error")
	}
	b.Allow(Decompressed, 1000)
	if err := b.Spend(Decompressed, 0); err != nil {
		t.Error(err)
	}

	// The resources are independent.
	if err := b.Spend(Members, 5); err != nil {
		t.Error(err)
	}
	b.Input(math.MaxInt64)
	b.Input(math.MaxInt64)
	for r := range Resource(resources) {
		if err := b.Spend(r, math.MaxInt64/8); err != nil && r != Members {
			t.Errorf("%v: %v", r, err)
		}
		if err := errors.Join(b.Spend(r, math.MaxInt64), b.Spend(r, math.MaxInt64)); err == nil {
			t.Errorf("%v: no error", r)
		}
	}
}

// TestManySmallInputs: the minimum is for the command, not for each input.
func TestManySmallInputs(t *testing.T) {
	b := New()
	inputs := 0
	for ; inputs < 1_000_000; inputs++ {
		b.Input(100)
		if b.Spend(Parsed, 16<<20) != nil {
			break
		}
	}
	if inputs == 0 || inputs > 10 {
		t.Errorf("%d inputs of 100 bytes with 16 MiB each", inputs)
	}
}

func TestContext(t *testing.T) {
	if b := Of(context.Background()); b != nil {
		t.Error(b)
	}
	b := New()
	ctx := With(context.Background(), b)
	if Of(ctx) != b || Of(With(ctx, nil)) != nil {
		t.Error("not the budget of the context")
	}

	// None allows everything.
	var none *Budget
	none.Input(1)
	none.Allow(Time, 1)
	if err := none.Spend(Time, math.MaxInt64); err != nil {
		t.Error(err)
	}
}
