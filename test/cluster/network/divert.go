package network

import (
	"context"
	"fmt"
	"net/netip"
)

// diversion is the table of rules of a Divert.
const diversion = "soc-divert"

// Divert makes whoever in the node's pods connects to a service arrive at another address. Connections to what is behind the service
// end, also those that are older than its address: a client that keeps them would not notice. Only the machine itself still gets there.
func (w Wire) Divert(ctx context.Context, service, behind, to netip.AddrPort) error {
	rules := fmt.Sprintf(`add table ip %[1]s
add chain ip %[1]s arrive { type nat hook prerouting priority dstnat - 10; }
add chain ip %[1]s pass { type filter hook forward priority filter - 10; }
add rule ip %[1]s arrive ip daddr %[2]s tcp dport %[3]d dnat to %[4]s
add rule ip %[1]s pass ip saddr != %[5]s ip daddr %[6]s tcp dport %[7]d reject with tcp reset
`, diversion, service.Addr(), service.Port(), to, HostAddress, behind.Addr(), behind.Port())
	return run(ctx, w.inside("nft", rules)...)
}

// EndDiversion undoes Divert. Who arrived elsewhere stays there until that end closes the connection.
func (w Wire) EndDiversion(ctx context.Context) error {
	return run(ctx, w.inside("nft", "delete", "table", "ip", diversion)...)
}
