package slurmtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// change answers requests that change something; most need an administrator.
func (s *Server) change(w http.ResponseWriter, r *http.Request, user, api, resource, name string) {
	admin := user == "root" || user == "slurm"
	if !admin && resource != "job" {
		s.reject(w, invalidUser.about("Failure to update "+resource))
		return
	}
	switch r.Method + " " + resource {
	case "POST nodes", "POST node":
		s.updateNodes(w, r, user, name)
	case "DELETE node":
		s.deleteNodes(w, name)
	case "POST job":
		s.submitJob(w, r, user)
	case "DELETE job":
		s.cancelJob(w, name)
	default:
		s.changeReservation(w, r, api, name)
	}
}

// nodeUpdate is the body of a node update.
type nodeUpdate struct {
	Name     []string  `json:"name"`
	State    []string  `json:"state"`
	Reason   *string   `json:"reason"`
	Comment  *string   `json:"comment"`
	Features *[]string `json:"features"`
	Topology *string   `json:"topology_str"`
}

func (s *Server) updateNodes(w http.ResponseWriter, r *http.Request, user, expression string) {
	s.rpcs["REQUEST_UPDATE_NODE"]++
	var update nodeUpdate
	if json.NewDecoder(r.Body).Decode(&update) != nil {
		http.Error(w, "Failure during parsing", http.StatusBadRequest)
		return
	}
	if expression == "" {
		expression = strings.Join(update.Name, ",")
	}
	failure := "Failure to update node " + expression
	for _, state := range update.State {
		if !slices.Contains([]string{
			"DRAIN", "UNDRAIN", "RESUME", "DOWN", "FAIL", "POWER_UP", "POWER_DOWN", "POWERED_DOWN",
		}, state) {
			s.refuse(w, http.StatusInternalServerError, unknownFlag.about("Unknown flag"),
				s.badTransition().about(failure))
			return
		}
	}
	if update.Topology != nil && !isTopologyUnit(*update.Topology) {
		s.reject(w, invalidTopology.about(failure))
		return
	}
	names, err := hostlist.Expand(expression, maxNames)
	if err != nil || len(names) == 0 {
		s.reject(w, invalidNode.about(failure))
		return
	}
	s.touchNodes()
	defer s.schedule()
	// The nodes before a failing one stay changed.
	for _, name := range names {
		node, ok := s.nodes[name]
		if !ok {
			s.reject(w, invalidNode.about(failure))
			return
		}
		if !s.update(node, update, user) {
			s.reject(w, s.badTransition().about(failure))
			return
		}
	}
	s.send(w, http.StatusOK, nil, nil)
}

// badTransition returns Slurm's error for a state that a node cannot enter now.
func (s *Server) badTransition() problem {
	if s.old() {
		return problem{number: 2028, text: "Invalid node state specified"}
	}
	return problem{number: 2180, text: "Invalid node state transition"}
}

// update changes one node. It returns false if the node's state does not allow the new one.
func (s *Server) update(n *node, update nodeUpdate, user string) bool {
	if update.Reason != nil && *update.Reason != "" { // an empty reason changes nothing
		n.reason, n.reasonBy, n.reasonAt = *update.Reason, user, s.clock().Unix()
	}
	for _, state := range update.State {
		switch state {
		case "DRAIN":
			n.setFlag("DRAIN", true)
			n.setFlag("FAIL", false)
		case "FAIL":
			n.setFlag("FAIL", true)
			n.setFlag("DRAIN", false)
		case "UNDRAIN":
			n.setFlag("DRAIN", false)
			s.clearReason(n)
		case "RESUME":
			if !n.has("DRAIN") && !n.has("FAIL") && !n.down {
				return false
			}
			n.setFlag("DRAIN", false)
			n.setFlag("FAIL", false)
			n.down = false
			s.clearReason(n)
		case "DOWN":
			n.down = true
			s.failJobs(n.name)
		case "POWER_UP", "POWER_DOWN":
			if !n.cloud {
				return false
			}
			s.setPower(n, state, slices.Contains(update.State, "POWERED_DOWN"))
		}
	}
	if update.Comment != nil {
		n.comment = *update.Comment
	}
	if update.Features != nil {
		n.features = *update.Features
	}
	if update.Topology != nil {
		n.topology = *update.Topology
	}
	return true
}

// isTopologyUnit reports whether the cluster has the unit. It has the switches s1 and s2, in one topology.
func isTopologyUnit(unit string) bool {
	return slices.Contains([]string{"", "topo-switch:s1", "topo-switch:s2"}, unit)
}

// clearReason removes the drain reason. 24.11 keeps it.
func (s *Server) clearReason(n *node) {
	if !s.old() {
		n.reason, n.reasonBy, n.reasonAt = "", "", 0
	}
}

func (s *Server) failJobs(node string) {
	for _, job := range s.jobs {
		if job.base == "RUNNING" && slices.Contains(job.nodes, node) {
			s.finish(job, "NODE_FAIL", s.clock())
		}
	}
}

func (s *Server) deleteNodes(w http.ResponseWriter, expression string) {
	s.rpcs["REQUEST_DELETE_NODE"]++
	nodes, missing := s.expand(expression)
	for _, node := range nodes {
		if s.busy(node.name) {
			s.reject(w, nodesBusy.about("Failure to delete node "+expression))
			return
		}
		delete(s.nodes, node.name)
		s.touchNodes()
		s.partsChanged = s.nodesChanged
	}
	if missing {
		s.reject(w, invalidNode.about("Failure to delete node "+expression))
		return
	}
	s.send(w, http.StatusOK, nil, nil)
}

func (s *Server) submitJob(w http.ResponseWriter, r *http.Request, user string) {
	s.rpcs["REQUEST_SUBMIT_BATCH_JOB"]++
	var request struct {
		Job struct {
			Name     string   `json:"name"`
			Script   string   `json:"script"`
			Nodes    string   `json:"nodes"`
			Required []string `json:"required_nodes"`
			Array    string   `json:"array"`
			Limit    struct {
				Minutes int64 `json:"number"`
			} `json:"time_limit"`
		} `json:"job"`
	}
	if json.NewDecoder(r.Body).Decode(&request) != nil {
		http.Error(w, "Failure during parsing", http.StatusBadRequest)
		return
	}
	count, _ := strconv.Atoi(request.Job.Nodes) // defaults to one
	limit := time.Duration(request.Job.Limit.Minutes) * time.Minute
	id := s.submit(&job{
		name: request.Job.Name, user: user, count: count, required: request.Job.Required, limit: limit,
		tasks: tasks(request.Job.Array),
	}, request.Job.Script)
	s.send(w, http.StatusOK, object{"job_id": id, "step_id": "batch", "job_submit_user_msg": ""}, nil)
}

// tasks returns the task indexes of an array such as 0-3.
func tasks(array string) []int {
	first, last, found := strings.Cut(array, "-")
	if !found {
		return nil
	}
	from, _ := strconv.Atoi(first) // other forms are not supported
	to, _ := strconv.Atoi(last)
	var all []int
	for task := from; task <= to; task++ {
		all = append(all, task)
	}
	return all
}

func (s *Server) cancelJob(w http.ResponseWriter, name string) {
	s.rpcs["REQUEST_KILL_JOB"]++
	id, _ := strconv.ParseInt(name, 10, 64) // there is no job 0
	for _, job := range s.jobs {
		switch {
		case job.id != id && job.array != id: // like slurmctld, ignore a missing job
		case job.holds() && job.completing.IsZero():
			s.finish(job, "CANCELLED", s.clock())
		case job.base == "PENDING":
			job.base = "CANCELLED"
			s.touchJobs()
		}
	}
	s.send(w, http.StatusOK, nil, nil)
}

func (s *Server) changeReservation(w http.ResponseWriter, r *http.Request, api, name string) {
	if api < "v0.0.43" {
		s.noSuchPath(w)
		return
	}
	if r.Method == http.MethodDelete {
		if _, ok := s.reservations[name]; !ok {
			s.reject(w, invalidResv.about("Error deleting reservation "+name))
			return
		}
		delete(s.reservations, name)
		s.send(w, http.StatusOK, nil, nil)
		return
	}
	type number struct {
		Value int64 `json:"number"`
	}
	var request struct {
		Name  string   `json:"name"`
		Start number   `json:"start_time"`
		End   number   `json:"end_time"`
		Nodes []string `json:"node_list"`
		Users []string `json:"users"`
		Flags []string `json:"flags"`
	}
	if json.NewDecoder(r.Body).Decode(&request) != nil {
		http.Error(w, "Failure during parsing", http.StatusBadRequest)
		return
	}
	if _, missing := s.expand(strings.Join(request.Nodes, ",")); missing {
		s.reject(w, invalidNode.about("Error creating reservation "+request.Name))
		return
	}
	s.reservations[request.Name] = &reservation{
		name: request.Name, start: request.Start.Value, end: request.End.Value, nodes: strings.Join(request.Nodes, ","),
		users: strings.Join(request.Users, ","), flags: slices.Concat([]string{}, request.Flags),
	}
	s.send(w, http.StatusOK, object{"reservations": []object{}}, nil)
}

// states returns a job's state as Slurm prints it.
func (j *job) states() []string {
	switch {
	case !j.completing.IsZero():
		return []string{j.base, "COMPLETING"}
	case j.configuring():
		return []string{j.base, "CONFIGURING", "POWER_UP_NODE"}
	}
	return []string{j.base}
}

// reason returns why a job waits, as Slurm prints it.
func (j *job) reason() string {
	if j.base == "PENDING" {
		return "Resources"
	}
	return "None"
}

func (j *job) object() object {
	limit := object{"set": false, "infinite": true, "number": 0}
	end := j.end
	if j.limit > 0 {
		limit = set(int64(j.limit / time.Minute))
	}
	// The end of a running job is that of its time limit, or far in the future without one.
	if j.base == "RUNNING" || j.base == "SUSPENDED" {
		end = j.start.Add(365 * 24 * time.Hour)
		if j.limit > 0 {
			end = j.start.Add(j.limit)
		}
	}
	return object{
		"job_id": j.id, "name": j.name, "job_state": j.states(), "user_name": j.user, "user_id": 0, "partition": "all",
		"nodes": compress(j.nodes), "resv_name": "", "start_time": set(unix(j.start)), "end_time": set(unix(end)),
		"time_limit": limit, "state_reason": j.reason(),
	}
}

// unix returns a time in seconds; zero for the zero time.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func compress(names []string) string {
	expression, err := hostlist.Compress(names)
	if err != nil {
		panic(err) // the names were parsed from hostlists
	}
	return expression
}
