package network

import (
	"context"
	"fmt"
	"net/netip"
)

// diversion is the table of rules of a Divert.
const diversion = "soc-divert"

// Divert makes whoever in the node's pods connects to one address arrive at another. Connections that there are already end: a client
// that keeps them would not notice.
func (w Wire) Divert(ctx context.Context, from, to netip.AddrPort) error {
	rules := fmt.Sprintf(`add table ip %[1]s
add chain ip %[1]s arrive { type nat hook prerouting priority dstnat - 10; }
add chain ip %[1]s pass { type filter hook forward priority filter - 10; }
add rule ip %[1]s arrive ip daddr %[2]s tcp dport %[3]d dnat to %[4]s
add rule ip %[1]s pass meta l4proto tcp ct direction original ct original ip daddr %[2]s ct original proto-dst %[3]d ip daddr != %[5]s reject with tcp reset
`, diversion, from.Addr(), from.Port(), to, to.Addr())
	return run(ctx, w.inside("nft", rules)...)
}

// EndDiversion undoes Divert. Who arrived elsewhere stays there until that end closes the connection.
func (w Wire) EndDiversion(ctx context.Context) error {
	return run(ctx, w.inside("nft", "delete", "table", "ip", diversion)...)
}
