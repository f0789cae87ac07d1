package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// AgentState is the state reported by the agent next to slurmctld.
type AgentState struct {
	// FilesHash is the hash of the configuration files in the pod.
	FilesHash string `json:"filesHash"`
	// RunningHash is the hash of the configuration that slurmctld runs with.
	RunningHash string `json:"runningHash"`
	// LastError is why slurmctld does not run with the files.
	LastError string `json:"lastError"`
}

// agentTimeout is the deadline of a request to an agent, which answers from memory.
const agentTimeout = 2 * time.Second

// AskAgent queries the agent in the pod with an address.
func AskAgent(ctx context.Context, address string) (AgentState, error) {
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(address, strconv.Itoa(naming.PortAgent)) + "/state"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return AgentState{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return AgentState{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return AgentState{}, fmt.Errorf("the agent answers %s", response.Status)
	}
	var state AgentState
	return state, json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&state)
}
