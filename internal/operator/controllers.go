package operator

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/controller/accounting"
	"github.com/slurm-operator/slurm-operator/internal/controller/cluster"
	"github.com/slurm-operator/slurm-operator/internal/controller/loginset"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset"
	"github.com/slurm-operator/slurm-operator/internal/controller/restapi"
	"github.com/slurm-operator/slurm-operator/internal/controller/slurmclient"
	"github.com/slurm-operator/slurm-operator/internal/controller/token"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/metrics"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/status"
	"github.com/slurm-operator/slurm-operator/internal/trace"
	"github.com/slurm-operator/slurm-operator/internal/window"
)

// addControllers adds all controllers to the manager.
func addControllers(ctx context.Context, manager ctrl.Manager, options Options, pods *window.Window) error {
	if err := index.Add(ctx, manager.GetFieldIndexer()); err != nil {
		return err
	}
	requests, err := metrics.NewRequests(options.Registerer)
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	nodeSets, err := nodeset.NewMetrics(options.Registerer)
	if err != nil {
		return err
	}
	options.Mirror.Backoff = options.SlurmClient.Backoff
	pool := slurm.NewPool(options.Mirror)
	if err := manager.Add(closer{pool}); err != nil {
		return err
	}
	reader := manager.GetClient()
	if err := options.Registerer.Register(newCollector(pool, reader)); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	children := child.NewApplier(reader)
	writer := func(controller string) *status.Writer {
		// Each controller is its own field owner, so that two of them may write to one object.
		owner := client.FieldOwner(naming.ManagedBy + "/" + controller)
		return status.NewWriter(reader, manager.GetEventRecorder(naming.ManagedBy), owner)
	}
	for name, controller := range map[string]interface{ SetupWithManager(ctrl.Manager) error }{
		accounting.Name: &accounting.Reconciler{
			Client: reader, Children: children, Status: writer(accounting.Name), Clock: clock.RealClock{},
			NewQueue: options.NewQueue, Images: options.Images,
		},
		cluster.Name: &cluster.Reconciler{
			Client: reader, Children: children, Status: writer(cluster.Name), Clock: clock.RealClock{},
			NewQueue: options.NewQueue, Images: options.Images,
			Pool: pool, Agent: options.Agent,
		},
		nodeset.Name: &nodeset.Reconciler{
			Client: reader, Children: children, Status: writer(nodeset.Name), Clock: clock.RealClock{},
			NewQueue: options.NewQueue, Images: options.Images,
			Live: manager.GetAPIReader(), Pool: pool, Metrics: nodeSets, Window: pods, ClusterDomain: options.ClusterDomain,
		},
		restapi.Name: &restapi.Reconciler{
			Client: reader, Children: children, Status: writer(restapi.Name), Clock: clock.RealClock{},
			NewQueue: options.NewQueue, Images: options.Images, ClusterDomain: options.ClusterDomain,
		},
		slurmclient.Name: &slurmclient.Reconciler{
			Client: reader, Status: writer(slurmclient.Name), Clock: clock.RealClock{},
			NewQueue: options.NewQueue, Pool: pool,
			Requests: func(cluster slurm.Key) slurm.Observer {
				return trace.Requests(options.SlurmLog, cluster, requests.For(cluster))
			},
			Forget: requests.Forget, Dial: options.Dial, NodeChanges: queryNodeChanges,
		},
		loginset.Name: &loginset.Reconciler{
			Client: reader, Children: children, Status: writer(loginset.Name), Clock: clock.RealClock{},
			NewQueue: options.NewQueue, Images: options.Images, ClusterDomain: options.ClusterDomain,
		},
		token.Name: &token.Reconciler{
			Client: reader, Children: children, Status: writer(token.Name), Clock: clock.RealClock{},
			NewQueue: options.NewQueue,
		},
	} {
		if err := controller.SetupWithManager(manager); err != nil {
			return fmt.Errorf("setting up the controller %s: %w", name, err)
		}
	}
	return nil
}

// withDefaults sets defaults for options that only tests set.
func (o Options) withDefaults() Options {
	if timeout := o.SlurmClient.Timeout; o.Dial == nil {
		o.Dial = func(options rest.Options) (slurm.Client, error) {
			options.Timeout = timeout
			return rest.New(options)
		}
	}
	if o.Agent == nil {
		o.Agent = queryAgent
	}
	if o.Registerer == nil {
		o.Registerer = crmetrics.Registry
	}
	return o
}

// A closer closes the sessions when the manager stops. It runs only on the leader, which has the sessions.
type closer struct{ pool *slurm.Pool }

var _ manager.Runnable = closer{}

// Start waits until the manager stops.
func (c closer) Start(ctx context.Context) error {
	<-ctx.Done()
	c.pool.Close()
	return nil
}

// queryAgent queries the agent in the pod with an address, which has the key unless it is of an earlier version.
func queryAgent(ctx context.Context, address string, key []byte) (agent.Report, error) {
	address = net.JoinHostPort(address, strconv.Itoa(naming.PortAgent))
	return report.Fetch[agent.Report](ctx, address, agent.ReportPath, key)
}

// queryNodeChanges asks the agent in the pod with an address which Slurm nodes have changed.
func queryNodeChanges(ctx context.Context, address string, key []byte, since string) (slurm.NodeChanges, error) {
	address = net.JoinHostPort(address, strconv.Itoa(naming.PortAgent))
	return report.FetchWithin[slurm.NodeChanges](ctx, agent.NodesTimeout, address, agent.NodesPath+since, key)
}
