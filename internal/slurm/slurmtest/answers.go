package slurmtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// A problem is an entry of the error list in an answer.
type problem struct {
	description string
	number      int
	text        string
}

// Slurm's errors.
var (
	noError         = problem{number: 0, text: "No error"}
	unspecified     = problem{number: -1, text: "Unspecified error"}
	unauthenticated = problem{number: 1007, text: "Protocol authentication error"}
	noController    = problem{number: 1800, text: "Unable to contact slurm controller (connect failure)"}
	invalidUser     = problem{number: 2010, text: "Invalid user id"}
	nodesBusy       = problem{number: 2016, text: "Requested nodes are busy"}
	invalidJob      = problem{number: 2017, text: "Invalid job id specified"}
	invalidNode     = problem{number: 2018, text: "Invalid node name specified"}
	invalidResv     = problem{number: 2053, text: "Requested reservation is invalid"}
	invalidTopology = problem{number: 2178, text: "Requested topology configuration is not available"}
	unknownFlag     = problem{number: 9207, text: "Data parser unable to parse invalid flag"}
)

func (p problem) about(description string) problem {
	p.description = description
	return p
}

// answer answers a request to slurmrestd.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, api, path string) {
	user := s.user(r)
	switch {
	case path == "ping/" && r.Method == http.MethodGet:
		s.ping(w, api)
		return
	case s.down:
		s.refuse(w, http.StatusBadGateway, noController.about("Failure to query"))
		return
	case user == "":
		s.refuse(w, http.StatusNetworkAuthenticationRequired, unauthenticated.about("Failure to query"))
		return
	}
	resource, name, _ := strings.Cut(strings.TrimSuffix(path, "/"), "/")
	name, _ = url.PathUnescape(name) // the server has parsed it already
	switch r.Method + " " + resource {
	case "GET diag":
		s.diag(w)
	case "GET nodes":
		s.listNodes(w, r)
	case "GET node":
		s.getNode(w, name)
	case "GET jobs":
		s.listJobs(w, r, name)
	case "GET job":
		s.getJob(w, name)
	case "GET reservations":
		s.listReservations(w, r)
	case "POST nodes", "POST node", "DELETE node", "POST job", "DELETE job", "POST reservation", "DELETE reservation":
		s.change(w, r, user, api, resource, name)
	default:
		s.noSuchPath(w)
	}
}

// send writes an answer with the common members.
func (s *Server) send(w http.ResponseWriter, status int, members object, warnings []object, problems ...problem) {
	body := object{
		"meta": object{
			"plugin": object{"type": "openapi/slurmctld", "name": "Slurm OpenAPI slurmctld"},
			"slurm":  object{"release": s.release, "cluster": "slurmtest"},
		},
		"warnings": []object{},
	}
	errors := []object{}
	for _, p := range problems {
		errors = append(errors, object{
			"description": p.description, "error_number": p.number, "error": p.text, "source": "slurmtest",
		})
	}
	body["errors"] = errors
	if warnings != nil {
		body["warnings"] = warnings
	}
	maps.Copy(body, members)
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // never: all of it encodes
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(encoded)))
	w.WriteHeader(status)
	count, _ := w.Write(encoded) // the client may be gone
	s.sent += int64(count)
}

// sendList answers with a full list.
func (s *Server) sendList(w http.ResponseWriter, members object, warnings []object) {
	before := s.sent
	s.send(w, http.StatusOK, members, warnings)
	s.lists++
	s.listed += s.sent - before
}

func (s *Server) refuse(w http.ResponseWriter, status int, problems ...problem) {
	s.send(w, status, nil, nil, problems...)
}

// reject answers a change that slurmctld refused. 24.11 uses the same status for all refusals.
func (s *Server) reject(w http.ResponseWriter, problems ...problem) {
	status := http.StatusUnprocessableEntity
	if s.old() {
		status = http.StatusInternalServerError
	}
	s.refuse(w, status, problems...)
}

// set returns a number in the object form.
func set(value int64) object { return object{"set": true, "infinite": false, "number": value} }

// unchangedSince reports whether a request is conditional, and whether the list last changed before the requested
// second.
func unchangedSince(r *http.Request, changed int64) (conditional, unchanged bool) {
	since, err := strconv.ParseInt(r.URL.Query().Get("update_time"), 10, 64)
	return err == nil && since > 0, err == nil && since-1 >= changed
}

func (s *Server) ping(w http.ResponseWriter, api string) {
	ping := object{"hostname": "slurmctld", "responding": !s.down, "latency": 500, "primary": true}
	if api != "v0.0.45" {
		ping["pinged"], ping["mode"] = "UP", "primary"
		if s.down {
			ping["pinged"] = "DOWN"
		}
	}
	s.rpcs["REQUEST_PING"]++
	s.send(w, http.StatusOK, object{"pings": []object{ping}}, nil)
}

func (s *Server) diag(w http.ResponseWriter) {
	rpcs := []object{}
	for _, name := range slices.Sorted(maps.Keys(s.rpcs)) {
		rpcs = append(rpcs, object{"message_type": name, "type_id": 1, "count": s.rpcs[name]})
	}
	counts := map[string]int{}
	for _, job := range s.jobs {
		counts[job.base]++
	}
	s.rpcs["REQUEST_STATS_INFO"]++
	s.send(w, http.StatusOK, object{"statistics": object{
		"req_time": set(s.clock().Unix()), "req_time_start": set(s.booted.Unix()), "rpcs_by_message_type": rpcs,
		"jobs_submitted": len(s.jobs), "jobs_started": len(s.jobs) - counts["PENDING"],
		"jobs_completed": counts["COMPLETED"],
		"jobs_canceled":  counts["CANCELLED"], "jobs_failed": 0, "jobs_pending": counts["PENDING"],
		"jobs_running": counts["RUNNING"],
	}}, nil)
}

func (s *Server) listNodes(w http.ResponseWriter, r *http.Request) {
	s.rpcs["REQUEST_NODE_INFO"]++
	conditional, unchanged := unchangedSince(r, s.nodesChanged)
	if unchanged {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	// 24.11 also queries slurmctld for partitions, with the same time, and treats their "unchanged" as a failure.
	if _, partsUnchanged := unchangedSince(r, s.partsChanged); conditional && partsUnchanged && s.old() {
		s.refuse(w, http.StatusInternalServerError, unspecified.about("Unable to query partitions"))
		return
	}
	nodes := []object{}
	uses := s.usages()
	for _, node := range s.sortedNodes() {
		nodes = append(nodes, s.nodeObject(node, uses[node.name]))
	}
	s.sendList(w, object{"nodes": nodes, "last_update": set(s.clock().Unix())}, nil)
}

func (s *Server) getNode(w http.ResponseWriter, name string) {
	s.rpcs["REQUEST_NODE_INFO_SINGLE"]++
	node, ok := s.nodes[name]
	if !ok {
		// Like the real slurmrestd: a success with an error without a number.
		s.refuse(w, http.StatusOK, noError.about("Failure to query node "+name))
		return
	}
	s.send(w, http.StatusOK, object{
		"nodes": []object{s.nodeObject(node, s.usages()[name])}, "last_update": set(s.clock().Unix()),
	}, nil)
}

func (s *Server) nodeObject(n *node, use usage) object {
	features := slices.Concat([]string{}, n.features)
	shown := object{
		"name": n.name, "hostname": n.name, "address": n.name, "architecture": "x86_64", "state": n.states(use),
		"reason": n.reason, "reason_set_by_user": n.reasonBy, "reason_changed_at": set(n.reasonAt),
		"comment": n.comment, "instance_id": n.instance,
		"features": features, "active_features": features, "partitions": []string{"all"}, "reservation": "",
		"cpus": nodeCPUs, "alloc_cpus": use.cpus, "alloc_idle_cpus": nodeCPUs - use.cpus, "real_memory": 24104,
		"alloc_memory": 0, "free_mem": set(5000), "cpu_load": 100, "gres": "", "gres_used": "",
		"boot_time": set(n.registered), "slurmd_start_time": set(n.registered), "last_busy": set(n.lastBusy),
		"version": s.release,
	}
	if !s.old() {
		shown["topology"] = n.topology
	}
	return shown
}

func (s *Server) listJobs(w http.ResponseWriter, r *http.Request, name string) {
	if name == "state" {
		s.rpcs["REQUEST_JOB_STATE"]++
		states := []object{}
		for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
			for _, name := range s.jobs[id].names() {
				states = append(states, object{"job_id": name, "state": s.jobs[id].states()})
			}
		}
		s.sendList(w, object{"jobs": states}, nil)
		return
	}
	s.rpcs["REQUEST_JOB_INFO"]++
	if _, unchanged := unchangedSince(r, s.jobsChanged); unchanged {
		s.send(w, http.StatusOK, object{"jobs": []object{}, "last_update": set(0), "last_backfill": set(0)},
			[]object{{"description": "No job changes since update_time", "source": "op_handler_jobs"}})
		return
	}
	jobs := []object{}
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		jobs = append(jobs, s.jobs[id].object())
	}
	var warnings []object
	if len(jobs) == 0 {
		warnings = []object{{"description": "Zero jobs to dump", "source": ""}}
	}
	s.sendList(w, object{"jobs": jobs, "last_update": set(s.clock().Unix()), "last_backfill": set(0)}, warnings)
}

// getJob answers with a job, or with all jobs of an array if the number is the array's.
func (s *Server) getJob(w http.ResponseWriter, name string) {
	s.rpcs["REQUEST_JOB_INFO_SINGLE"]++
	id, _ := strconv.ParseInt(name, 10, 64) // there is no job 0
	jobs := []object{}
	for _, other := range slices.Sorted(maps.Keys(s.jobs)) {
		if other == id || s.jobs[other].array == id {
			jobs = append(jobs, s.jobs[other].object())
		}
	}
	if s.jobs[id] == nil {
		s.refuse(w, http.StatusNotFound, invalidJob.about("Unable to query JobId="+name))
		return
	}
	s.send(w, http.StatusOK, object{"jobs": jobs, "last_update": set(s.clock().Unix()), "last_backfill": set(0)}, nil)
}

func (s *Server) listReservations(w http.ResponseWriter, r *http.Request) {
	s.rpcs["REQUEST_RESERVATION_INFO"]++
	if conditional, _ := unchangedSince(r, 0); conditional {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	list := []object{}
	for _, name := range slices.Sorted(maps.Keys(s.reservations)) {
		resv := s.reservations[name]
		list = append(list, object{
			"name": resv.name, "start_time": set(resv.start), "end_time": set(resv.end), "node_list": resv.nodes,
			"users": resv.users, "flags": resv.flags,
		})
	}
	s.sendList(w, object{"reservations": list, "last_update": set(s.clock().Unix())}, nil)
}

// jobMetrics counts jobs like slurmctld's metrics.
func (s *Server) jobMetrics(w http.ResponseWriter) {
	counts := map[string]int{"": 0}
	for _, state := range []string{
		"completing", "stageout", "configuring", "powerup_node", "resizing", "signaling", "expediting",
		"pending", "running", "suspended", "completed", "cancelled", "failed", "timeout", "node_failed", "preempted",
		"bootfail", "deadline", "outofmemory",
	} {
		counts["_"+state] = 0
	}
	for _, job := range s.jobs {
		state := "_" + strings.ToLower(job.base)
		if job.base == "NODE_FAIL" {
			state = "_node_failed"
		}
		number := len(job.names())
		counts[""] += number
		counts[state] += number
		if !job.completing.IsZero() {
			counts["_completing"]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "slurm_jobs%s %d\n", name, counts[name])
	}
}

// metrics counts nodes like slurmctld's metrics, for some of the states. The free memory always differs.
func (s *Server) metrics(w http.ResponseWriter) {
	counts := map[string]int{"idle": 0, "alloc": 0, "mixed": 0, "down": 0, "drain": 0, "no_resp": 0, "cg": 0}
	names := map[string]string{
		"IDLE": "idle", "ALLOCATED": "alloc", "MIXED": "mixed", "DOWN": "down", "DRAIN": "drain",
		"NOT_RESPONDING": "no_resp",
		"COMPLETING":     "cg",
	}
	uses := s.usages()
	for _, node := range s.nodes {
		for _, state := range node.states(uses[node.name]) {
			if name, ok := names[state]; ok {
				counts[name]++
			}
		}
	}
	counts["mem_free"] = len(s.requests)
	fmt.Fprintln(w, "# TYPE slurm_partition_nodes_idle gauge")
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "slurm_partition_nodes_%s{partition=\"all\"} %d\n", name, counts[name])
	}
}
