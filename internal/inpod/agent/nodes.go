package agent

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// NodesPath is where the agent serves which Slurm nodes have changed since a cursor, which follows it.
const NodesPath = "/nodes/"

const (
	// NodesTimeout bounds a read of all nodes. One of 16,000 takes less than a second.
	NodesTimeout = 10 * time.Second
	// maxNamed is how many changed nodes the agent names. More of them are cheaper to list.
	maxNamed = 1000
)

// A nodeTracker finds out which Slurm nodes have changed. slurmctld cannot tell, and slurmrestd takes seconds to list
// thousands of nodes, while Slurm's own protocol needs some tenths of a second. The tracker keeps a digest of each
// node, and compares only when it is asked.
type nodeTracker struct {
	// read passes all records to each, one after another, or fails.
	read func(ctx context.Context, each func(record string)) error

	mutex sync.Mutex
	// cursors start with the epoch, which is random, because an agent that restarts forgets the nodes.
	epoch string
	// round counts the reads, and nodes also holds those that were deleted.
	round uint64
	nodes map[string]trackedNode
}

// A trackedNode is what the tracker knows of a node.
type trackedNode struct {
	digest  uint64 // of its record; 0 if it was deleted
	changed uint64 // the round in which the digest changed
	seen    uint64 // the last round in which the node existed
}

func newNodeTracker(read func(ctx context.Context, each func(record string)) error) *nodeTracker {
	return &nodeTracker{read: read, epoch: rand.Text(), nodes: map[string]trackedNode{}}
}

// Changes reads all nodes and returns those that have changed since a cursor.
func (t *nodeTracker) Changes(ctx context.Context, since string) (slurm.NodeChanges, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	digests := make(map[string]uint64, len(t.nodes))
	if err := t.read(ctx, func(record string) { digests[nodeName(record)] = digestOf(record) }); err != nil {
		return slurm.NodeChanges{}, err
	}
	t.update(digests)
	answer := slurm.NodeChanges{Cursor: t.epoch + "-" + strconv.FormatUint(t.round, 10)}
	epoch, last, _ := strings.Cut(since, "-")
	round, err := strconv.ParseUint(last, 10, 64)
	if err != nil || epoch != t.epoch || round > t.round {
		answer.Unknown = true
		return answer, nil
	}
	for name, node := range t.nodes {
		if node.changed <= round {
			continue
		}
		if len(answer.Names) == maxNamed {
			answer.Names, answer.Unknown = nil, true
			break
		}
		answer.Names = append(answer.Names, name)
	}
	return answer, nil
}

// answer answers a request for the changes since the cursor in its path.
func (t *nodeTracker) answer(request *http.Request) (slurm.NodeChanges, error) {
	return t.Changes(request.Context(), request.PathValue("since"))
}

// update begins a round with the digests of all nodes.
func (t *nodeTracker) update(digests map[string]uint64) {
	t.round++
	for name, digest := range digests {
		node, known := t.nodes[name]
		if !known || node.digest != digest {
			node.digest, node.changed = digest, t.round
		}
		node.seen = t.round
		t.nodes[name] = node
	}
	for name, node := range t.nodes {
		if node.seen != t.round && node.digest != 0 {
			node.digest, node.changed = 0, t.round
			t.nodes[name] = node
		}
	}
}

// recordStart begins each record of `scontrol --oneliner show nodes`.
const recordStart = "NodeName="

// nodeName returns the name of the node that a record is of.
func nodeName(record string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(record, recordStart), " ")
	return name
}

// volatile matches fields that change with every ping.
var volatile = regexp.MustCompile(` (?:CPULoad|FreeMem|CurrentWatts|AveWatts|ConsumedJoules|ExtSensors\w*)=\S*`)

// digestOf returns a digest of a record without its volatile fields; never 0. They stand before everything that users
// write, such as comments, so only the first of each name is left out.
func digestOf(record string) uint64 {
	hash := fnv.New64a()
	end := 0
	omitted := map[string]bool{}
	for _, found := range volatile.FindAllStringIndex(record, -1) {
		field, _, _ := strings.Cut(record[found[0]:found[1]], "=")
		if omitted[field] {
			continue
		}
		omitted[field] = true
		_, _ = io.WriteString(hash, record[end:found[0]]) // never fails
		end = found[1]
	}
	_, _ = io.WriteString(hash, record[end:])
	return max(hash.Sum64(), 1)
}

// maxRecord limits a line about a node.
const maxRecord = 1 << 20

// EachNode passes the record of each node to each. A comment with line breaks makes a record of several lines.
func (scontrol) EachNode(ctx context.Context, each func(record string)) error {
	ctx, cancel := context.WithTimeout(ctx, NodesTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "scontrol", "--oneliner", "show", "nodes")
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	readErr := eachRecord(output, each)
	if err := errors.Join(readErr, command.Wait()); err != nil {
		return fmt.Errorf("%w: scontrol show nodes: %w", errDown, err)
	}
	return nil
}

// eachRecord passes each record in the output of scontrol to each.
func eachRecord(output io.Reader, each func(record string)) error {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, maxRecord)
	record := ""
	for lines.Scan() {
		switch line := lines.Text(); {
		case !strings.HasPrefix(line, recordStart):
			record += "\n" + line
		case strings.HasPrefix(record, recordStart):
			each(record)
			fallthrough
		default:
			record = line
		}
	}
	if strings.HasPrefix(record, recordStart) {
		each(record)
	}
	return lines.Err()
}
