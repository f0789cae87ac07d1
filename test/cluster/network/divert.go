package network

import (
	"context"
	"fmt"
	"net/netip"
)

// diversion is the nftables table with the rules of Divert.
const diversion = "soc-divert"

// Divert redirects connections of the node's pods to a service to another address. It resets all connections to the
// service's endpoint, because a client that reused one would bypass the diversion. Only the host can still reach the
// endpoint.
func (w Wire) Divert(ctx context.Context, service, behind, to netip.AddrPort) error {
	rules := fmt.Sprintf(`add table ip %[1]s
add chain ip %[1]s arrive { type nat hook prerouting priority dstnat - 10; }
add chain ip %[1]s pass { type filter hook forward priority filter - 10; }
add rule ip %[1]s arrive ip daddr %[2]s tcp dport %[3]d dnat to %[4]s
add rule ip %[1]s pass ip saddr != %[5]s ip daddr %[6]s tcp dport %[7]d reject with tcp reset
`, diversion, service.Addr(), service.Port(), to, HostAddress, behind.Addr(), behind.Port())
	return run(ctx, w.inside("nft", rules)...)
}

// EndDiversion undoes Divert. Redirected connections stay open until the other address closes them.
func (w Wire) EndDiversion(ctx context.Context) error {
	return run(ctx, w.inside("nft", "delete", "table", "ip", diversion)...)
}
