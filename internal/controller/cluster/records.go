package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// The Slurm nodes of elastic NodeSets have records in slurm.conf. slurmctld requeues or ends the jobs of a node whose
// record changes or is removed, so a record changes only while its node is drained and has no jobs: the NodeSet
// controller drains it for that. A slurmd without a record (-Z) exits if it finds one, with its jobs, so a record is
// added only when no such slurmd is left.

// isElastic reports whether the cluster has an elastic NodeSet, or records of one.
func (s *scope) isElastic() bool {
	return slices.ContainsFunc(s.nodeSets, func(set slinkyv1beta1.NodeSet) bool { return set.Spec.Elastic != nil }) ||
		len(s.recordsInForce()) > 0
}

// recordsInForce returns the records of elastic nodes that slurmctld runs with, by the name of the node.
func (s *scope) recordsInForce() map[string][]slurmconf.Pair {
	return slurmconf.RecordsInForce(s.inForce())
}

// observeRecords finds the slurmds with and without a record, and refreshes the snapshot of Slurm if a record, or a
// line of an administrator's node, may be changed according to the last one.
func (r *Reconciler) observeRecords(ctx context.Context, scope *scope) error {
	if scope.controller.Spec.External {
		return nil
	}
	if err := r.observeElastic(ctx, scope); err != nil {
		return err
	}
	session, connected := r.Pool.Get(slurm.Key{Namespace: scope.controller.Namespace, Name: scope.controller.Name})
	if !connected || !scope.awaitsRecords() && !scope.awaitsLines() {
		return nil
	}
	refresh, cancel := context.WithTimeout(ctx, jobsTimeout)
	defer cancel()
	if snapshot, err := session.Mirror.Refresh(refresh); err == nil { // otherwise nothing is changed
		scope.drained = scope.nodes
		scope.nodes = snapshot
	}
	return nil
}

// observeElastic finds the slurmds with and without a record, in clusters with elastic NodeSets.
func (r *Reconciler) observeElastic(ctx context.Context, scope *scope) error {
	if !scope.isElastic() {
		return nil
	}
	pods := &corev1.PodList{}
	err := r.Client.List(ctx, pods, client.InNamespace(scope.controller.Namespace),
		client.MatchingLabels(naming.DaemonSelector(naming.Slurmd)), client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	scope.dynamic, scope.recorded = map[string]bool{}, map[string]bool{}
	for i := range pods.Items {
		labels := pods.Items[i].Labels
		by := scope.dynamic
		if labels[naming.LabelElastic] != "" {
			by = scope.recorded
		}
		by[labels[slinkyv1beta1.LabelPodHostname]] = true
	}
	return nil
}

// awaitsRecords reports whether records of elastic nodes are to be changed that are drained according to the snapshot.
func (s *scope) awaitsRecords() bool {
	if !s.isElastic() {
		return false
	}
	wanted := elasticRecords(s, contributions(s).leftOut)
	return !slices.EqualFunc(s.settle(wanted, never), s.settle(wanted, isDrained(s.nodes)), sameRecord)
}

// awaitsLines reports whether lines of an administrator's nodes are to be changed that are drained according to the
// snapshot.
func (s *scope) awaitsLines() bool {
	written := slurmconf.Written(s.controller.Spec.ExtraConf)
	_, cautious := slurmconf.KeepNodes(written, s.inForce(), never, s.mayAddRecord)
	_, eager := slurmconf.KeepNodes(written, s.inForce(), isDrained(s.nodes), s.mayAddRecord)
	return len(eager.Kept) < len(cautious.Kept)
}

func never(string) bool { return false }

func sameRecord(a, b slurmconf.Record) bool {
	return a.NodeSet == b.NodeSet && slices.Equal(a.Nodes, b.Nodes) && slices.Equal(a.Parameters, b.Parameters)
}

// isDrained returns whether a snapshot shows that a node is drained and has no jobs, or that there is no such node.
func isDrained(snapshot *slurm.Snapshot) func(node string) bool {
	return func(name string) bool {
		if snapshot == nil {
			return false
		}
		switch snapshot.Vacancy(name, time.Time{}) {
		case slurm.Absent:
			return true
		case slurm.Drained:
			node, _ := snapshot.Node(name)
			return node.Draining()
		case slurm.Uncertain, slurm.Open, slurm.Occupied, slurm.Off:
		}
		return false
	}
}

// wasDrained reports whether two snapshots in a row show a node drained, so that the jobs of the second were read after
// the drain.
func (s *scope) wasDrained(node string) bool {
	return isDrained(s.drained)(node) && isDrained(s.nodes)(node)
}

// settle returns the records for a configuration, given which nodes have been drained.
func (s *scope) settle(wanted []slurmconf.Record, drained func(node string) bool) []slurmconf.Record {
	lines := map[string]bool{} // of an administrator, which stay until their nodes are drained: see keepForJobs
	if !s.changesDespiteJobs(slurmconf.NodeLines) {
		lines = slurmconf.AdministratorsNodes(s.inForce())
	}
	return slurmconf.SettleRecords(wanted, s.recordsInForce(),
		func(node string) bool { return drained(node) && !s.keepsRecord(node) },
		func(node string) bool { return s.mayAddRecord(node) && (!lines[node] || drained(node)) })
}

// keepsRecord reports whether a node of a NodeSet that is no longer elastic keeps its record: its pod still needs it,
// or an administrator has closed it, and it would be open without the record.
func (s *scope) keepsRecord(node string) bool {
	if record, known := s.nodes.Node(node); !s.recorded[node] && (!known || !record.HeldByOthers()) {
		return false // as almost all are: whose it is takes longer to find out
	}
	return slices.ContainsFunc(s.nodeSets, func(set slinkyv1beta1.NodeSet) bool {
		_, own := naming.WorkerOrdinals(&set)(node)
		return own && set.Spec.Elastic == nil && set.DeletionTimestamp == nil
	})
}

// mayAddRecord reports whether a node may get a record: slurmctld has no node that has registered without one, and no
// pod runs such a slurmd. Before the first configuration there is neither.
func (s *scope) mayAddRecord(node string) bool {
	if s.dynamic[node] || s.nodes == nil && s.promoted != nil {
		return false
	}
	if s.nodes == nil {
		return true
	}
	record, known := s.nodes.Node(node)
	return !known || !record.Flags.Has(slurm.FlagDynamicNorm)
}

// elasticRecords returns the records that the NodeSets ask for. Those of a NodeSet that is left out, or that cannot be
// read, are as they are in force.
func elasticRecords(scope *scope, leftOut []leftOut) []slurmconf.Record {
	inForce := scope.recordsInForce()
	var wanted []slurmconf.Record
	for i := range scope.nodeSets {
		set := &scope.nodeSets[i]
		if set.Spec.Elastic == nil {
			continue
		}
		node, err := nodeconf.Of(set)
		record := clusterconf.Record(set, node)
		if err == nil && !isLeftOut(leftOut, set.Name) {
			wanted = append(wanted, record)
			continue
		}
		for _, name := range record.Nodes {
			if parameters, exists := inForce[name]; exists {
				wanted = append(wanted, slurmconf.Record{NodeSet: set.Name, Nodes: []string{name}, Parameters: parameters})
			}
		}
	}
	return wanted
}

// isLeft returns whether a node has a record that no NodeSet asks for any more, and that stays for its jobs. slurmctld
// refuses an administrator's line beside it.
func isLeft(records []slurmconf.Record) func(node string) bool {
	left := map[string]bool{}
	for _, record := range records {
		for _, node := range record.Nodes {
			left[node] = left[node] || record.NodeSet == ""
		}
	}
	return func(node string) bool { return left[node] }
}

func isLeftOut(leftOut []leftOut, set string) bool {
	for _, each := range leftOut {
		if each.NodeSet == set {
			return true
		}
	}
	return false
}

// settleRecords returns the records for the next configuration, and whether others wait until nodes are drained.
func settleRecords(scope *scope, leftOut []leftOut) (records []slurmconf.Record, waiting bool) {
	if scope.controller.Spec.External || !scope.isElastic() {
		return nil, false
	}
	wanted := elasticRecords(scope, leftOut)
	records = scope.settle(wanted, scope.wasDrained)
	always := func(string) bool { return true }
	unhindered := slurmconf.SettleRecords(wanted, scope.recordsInForce(), always, always)
	return records, !slices.EqualFunc(records, unhindered, sameRecord)
}

// checkPowerSaving returns why a NodeSet cannot be elastic in this cluster; nil if it can.
func checkPowerSaving(set *slinkyv1beta1.NodeSet, written slurmconf.Document) error {
	if set.Spec.Elastic == nil {
		return nil
	}
	if keys := slurmconf.PowerKeys(written); len(keys) > 0 {
		return fmt.Errorf("spec.elastic: the Controller's spec.extraConf sets %s, and the operator must set it for elastic "+
			"NodeSets; remove it there, or remove spec.elastic", strings.Join(keys, ", "))
	}
	return nil
}
