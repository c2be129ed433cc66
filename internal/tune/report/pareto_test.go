package report

import "testing"

// Each point of the picture lies where its figures say, the beaten ones are small.
func TestPareto(t *testing.T) {
	p, ok := drawPareto(summary(t, 1000))
	if !ok || len(p.Lines) != 4 || p.Lines[0].Class != "baseline" || p.Lines[1].Class != "won" {
		t.Fatalf("%+v", p)
	}
	for i, line := range p.Lines {
		if len(line.Dots) != 2 || line.Dots[0].X <= line.Dots[1].X || line.Dots[0].Y <= line.Dots[1].Y {
			t.Errorf("more at a time is slower for each and faster for all: %+v", line)
		}
		for _, d := range line.Dots {
			if d.Front != (i == 1) {
				t.Errorf("on the front: %v: %s", d.Front, d.Title)
			}
			if d.West > d.X || d.East < d.X || d.Low < d.Y || d.Top > d.Y || d.X < paretoLeft || d.X > paretoRight || d.Y > paretoBottom || d.Y < paretoTop {
				t.Errorf("it lies outside: %+v", d)
			}
		}
	}
	// The baseline gives 1000 tokens/s at 32, on two GPUs, so 31.25 for each user.
	most := p.Y[len(p.Y)-1]
	if got := p.Lines[0].Dots[1]; most.Text != "600" || got.Y < 60 || got.Y > 62 {
		t.Errorf("500 tokens/s a GPU of %s lie at %v", most.Text, got.Y)
	}
	if _, ok := drawPareto(summary(t, 0)); ok {
		t.Error("a night without a run has a picture")
	}
}
