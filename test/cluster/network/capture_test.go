package network

import "testing"

func TestPortsOfPackets(t *testing.T) {
	v4 := make([]byte, 60)
	v4[0], v4[9] = 0x46, 6 // a header of 24 bytes
	copy(v4[24:], []byte{0x1a, 0xa4, 0x00, 0x50})
	v6 := make([]byte, 60)
	v6[0], v6[6] = 0x60, 6
	copy(v6[40:], []byte{0x1a, 0xa4, 0x00, 0x50})
	udp := append([]byte(nil), v4...)
	udp[9] = 17
	for name, test := range map[string]struct {
		packet []byte
		found  bool
	}{
		"IPv4": {v4, true}, "IPv6": {v6, true}, "UDP": {udp, false}, "short": {v4[:10], false},
		"ARP": {make([]byte, 28), false},
	} {
		source, destination, found := tcpPorts(test.packet)
		if found != test.found || found && (source != 6820 || destination != 80) {
			t.Errorf("%s: got %d, %d, %t", name, source, destination, found)
		}
	}
}
