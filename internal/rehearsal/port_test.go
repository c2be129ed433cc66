package rehearsal

import (
	"fmt"
	"net"
	"testing"
)

func TestFreePort(t *testing.T) {
	port := freePort(t)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if port >= 32768 {
		t.Errorf("port %d may be that of an outgoing connection", port)
	}
}
