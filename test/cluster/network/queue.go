package network

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/slurm-operator/slurm-operator/test/thread"
)

// Queue makes the kernel ask the reader of a queue about the first packet of every connection that the node forwards,
// which are the connections of its pods. Those of the node itself, such as a kubelet's probes, are not affected.
// Without a reader, the packets are dropped. The rule is one of iptables, because not every kernel has the queue
// expression of nftables.
func (w Wire) Queue(ctx context.Context, number int) error {
	if err := w.EndQueue(ctx); err != nil {
		return err
	}
	return run(ctx, w.inside("iptables", "--table", "mangle", "--append", "FORWARD", "--match", "conntrack",
		"--ctstate", "NEW", "--jump", "NFQUEUE", "--queue-num", strconv.Itoa(number))...)
}

// EndQueue undoes Queue. Nothing else on a node has rules in that chain.
func (w Wire) EndQueue(ctx context.Context) error {
	return run(ctx, w.inside("iptables", "--table", "mangle", "--flush", "FORWARD")...)
}

// HasReader reports whether a program reads a queue of the node.
func (w Wire) HasReader(number int) (found bool, err error) {
	var queues []byte
	thread.Run(func() {
		if err = enter(w.NamespaceFile()); err == nil {
			queues, err = os.ReadFile("/proc/thread-self/net/netfilter/nfnetlink_queue")
		}
	})
	for line := range strings.Lines(string(queues)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == strconv.Itoa(number) {
			found = true
		}
	}
	return found, err
}
