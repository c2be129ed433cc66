package tune

import (
	"slices"
	"testing"
)

// Each member of a block is as often at each place as any other, the next block
// is its reverse, and who drops out leaves the order of the rest as it was.
func TestTheOrderOfABlock(t *testing.T) {
	const nights = 3000
	members := []string{BaselineID, "t-1", "t-2"}
	at := map[string][]int{BaselineID: {0, 0, 0}, "t-1": {0, 0, 0}, "t-2": {0, 0, 0}}
	for seed := range int64(nights) {
		n := &Night{plan: Planned{Seed: seed}}
		odd, even := n.drawn(3, slices.Clone(members)), n.drawn(4, slices.Clone(members))
		for place, id := range odd {
			at[id][place]++
			if even[len(even)-1-place] != id {
				t.Fatalf("after %v comes %v", odd, even)
			}
		}
		rest := slices.DeleteFunc(slices.Clone(odd), func(id string) bool { return id == "t-1" })
		if got := n.drawn(3, []string{"t-2", BaselineID}); !slices.Equal(got, rest) {
			t.Fatalf("of %v remain %v", odd, got)
		}
	}
	for id, places := range at {
		for place, times := range places {
			if times < nights*3/10 || times > nights*37/100 {
				t.Errorf("%s is at place %d in %d of %d nights", id, place, times, nights)
			}
		}
	}
}

// Another pair of blocks has another order, or one that is drawn anew.
func TestBlocksAreDrawnAnew(t *testing.T) {
	n, same := &Night{}, 0
	for block := 1; block < 200; block += 2 {
		if slices.Equal(n.drawn(block, []string{"a", "b"}), []string{"a", "b"}) {
			same++
		}
	}
	if same < 30 || same > 70 {
		t.Errorf("%d of 100 pairs of blocks begin alike", same)
	}
}
