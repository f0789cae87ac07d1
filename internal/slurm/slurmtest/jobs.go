package slurmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A Submitter submits and cancels jobs through slurmrestd, real or fake. The operator itself does neither.
type Submitter struct {
	// URL is slurmrestd's, API the version to use, and Token that of the user.
	URL, API, Token string
}

// A JobRequest describes a job to submit.
type JobRequest struct {
	Name      string
	Script    string
	Partition string
	// Nodes is the number of nodes.
	Nodes int
	// RequiredNodes are nodes that the job must get.
	RequiredNodes []string
	TimeLimit     time.Duration
	// Array submits one job for each of these indexes, such as 0-3; empty for a single job.
	Array string
}

// Submitter returns a Submitter for a user of the fake.
func (s *Server) Submitter(user string) Submitter {
	return Submitter{URL: s.URL, API: s.apis[len(s.apis)-1], Token: s.Token(user)}
}

// Submit submits a batch job and returns its number.
func (s Submitter) Submit(ctx context.Context, job JobRequest) (int64, error) {
	description := map[string]any{
		"name": job.Name, "script": job.Script, "current_working_directory": "/tmp",
		"environment": []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
	}
	if job.Partition != "" {
		description["partition"] = job.Partition
	}
	if job.Nodes > 0 {
		description["nodes"] = strconv.Itoa(job.Nodes)
	}
	if len(job.RequiredNodes) > 0 {
		description["required_nodes"] = job.RequiredNodes
	}
	if job.TimeLimit > 0 {
		description["time_limit"] = map[string]any{
			"set": true, "number": int64((job.TimeLimit + time.Minute - 1) / time.Minute),
		}
	}
	if job.Array != "" {
		description["array"] = job.Array
	}
	var answer struct {
		ID int64 `json:"job_id"`
	}
	if err := s.do(ctx, http.MethodPost, "job/submit", map[string]any{"job": description}, &answer); err != nil {
		return 0, err
	}
	if answer.ID <= 0 {
		return 0, fmt.Errorf("job %s has no number", job.Name)
	}
	return answer.ID, nil
}

// Cancel cancels a job. Cancelling one that does not exist succeeds.
func (s Submitter) Cancel(ctx context.Context, id int64) error {
	return s.do(ctx, http.MethodDelete, "job/"+strconv.FormatInt(id, 10), nil, &struct{}{})
}

func (s Submitter) do(ctx context.Context, method, path string, body, answer any) error {
	var encoded []byte
	if body != nil { // slurmrestd refuses a DELETE with a body
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, s.URL+"/slurm/"+s.API+"/"+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("X-Slurm-User-Token", s.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
