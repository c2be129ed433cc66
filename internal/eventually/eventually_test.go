package eventually

import (
	"testing"
	"testing/synctest"
)

// failing is a test that notes its failure, and ends as a real one does.
type failing struct{ testing.TB }

type failed struct{}

func (failing) Helper()               {}
func (failing) Fatalf(string, ...any) { panic(failed{}) }

func TestTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		True(t, "the third time", func() bool { asked++; return asked == 3 })
		if asked != 3 {
			t.Errorf("asked %d times", asked)
		}
		defer func() {
			if _, ok := recover().(failed); !ok {
				t.Error("a test that waits in vain goes on")
			}
		}()
		True(failing{t}, "what never is", func() bool { return false })
	})
}
