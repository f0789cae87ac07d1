// Command netpol enforces NetworkPolicies on one node of a test cluster. The kernel queues the first packet of every
// connection; the policy engine of kube-network-policies decides whether it may pass. The rule that fills the queue
// belongs to test/cluster, because the program of that project needs a kernel with nftables' queue expression.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/florianl/go-nfqueue/v2"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kube-network-policies/pkg/api"
	"sigs.k8s.io/kube-network-policies/pkg/network"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
	"sigs.k8s.io/kube-network-policies/pkg/podinfo"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	node := flag.String("node", "", "name of the Kubernetes node")
	queue := flag.Uint("queue", 0, "number of the queue")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *node, uint16(*queue)); err != nil {
		fmt.Fprintln(os.Stderr, "netpol:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, node string, queue uint16) error {
	engine, err := startEngine(ctx, kubeconfig, node)
	if err != nil {
		return err
	}
	return serve(ctx, engine, queue)
}

// startEngine returns a policy engine that knows all pods, namespaces and policies.
func startEngine(ctx context.Context, kubeconfig, node string) (*networkpolicy.PolicyEngine, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, namespaces := factory.Core().V1().Pods(), factory.Core().V1().Namespaces()
	addresses, err := podinfo.NewInformerResolver(pods.Informer())
	if err != nil {
		return nil, err
	}
	policies := networkpolicy.NewStandardNetworkPolicy(node, namespaces, pods, factory.Networking().V1().NetworkPolicies())
	provider := podinfo.NewInformerProvider(pods, namespaces, nil, []podinfo.IPResolver{addresses})
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("reading all %s: %w", kind, context.Cause(ctx))
		}
	}
	return networkpolicy.NewPolicyEngine(provider, []api.PolicyEvaluator{policies}), nil
}

// serve decides about queued packets until the context ends. The existence of the queue shows that it is ready.
func serve(ctx context.Context, engine *networkpolicy.PolicyEngine, number uint16) error {
	queue, err := nfqueue.Open(&nfqueue.Config{
		NfQueue:      number,
		MaxPacketLen: 128, // headers only
		MaxQueueLen:  1024,
		Copymode:     nfqueue.NfQnlCopyPacket,
		Flags:        nfqueue.NfQaCfgFlagGSO,
		WriteTimeout: time.Second,
	})
	if err != nil {
		return fmt.Errorf("opening queue %d: %w", number, err)
	}
	defer queue.Close()
	decide := func(attributes nfqueue.Attribute) int {
		verdict := nfqueue.NfDrop
		if isAllowed(ctx, engine, *attributes.Payload) {
			verdict = nfqueue.NfAccept
		}
		if err := queue.SetVerdict(*attributes.PacketID, verdict); err != nil {
			log.Printf("setting a verdict: %v", err)
		}
		return 0
	}
	report := func(err error) int {
		if timeout, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err); (!ok || !timeout.Timeout()) && ctx.Err() == nil {
			log.Printf("reading the queue: %v", err)
		}
		return 0
	}
	if err := queue.RegisterWithErrorFunc(ctx, decide, report); err != nil {
		return fmt.Errorf("reading queue %d: %w", number, err)
	}
	<-ctx.Done()
	return nil
}

// isAllowed reports whether the policies allow a packet. One that cannot be judged is dropped.
func isAllowed(ctx context.Context, engine *networkpolicy.PolicyEngine, payload []byte) bool {
	packet, err := network.ParsePacket(payload)
	if err != nil {
		log.Printf("dropped a packet that cannot be parsed: %v", err)
		return false
	}
	allowed, err := engine.EvaluatePacket(ctx, &packet)
	switch {
	case err != nil:
		log.Printf("dropped a packet that cannot be judged: %v", err)
	case !allowed:
		log.Printf("dropped %s from %s to %s port %d", packet.Proto, packet.SrcIP, packet.DstIP, packet.DstPort)
	}
	return err == nil && allowed
}
