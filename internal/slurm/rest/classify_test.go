package rest_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

func TestMain(m *testing.M) {
	other.tests = m
	goleak.VerifyTestMain(&other)
}

// connect returns a client for the server, with options that change may adjust.
func connect(t *testing.T, server *slurmtest.Server, change func(*rest.Options)) *rest.Client {
	t.Helper()
	options := rest.Options{
		URL: server.URL, Timeout: 5 * time.Minute, MaxBody: 64 << 10,
		Token: func(context.Context) (string, error) { return server.Token("slurm"), nil },
	}
	if change != nil {
		change(&options)
	}
	client, err := rest.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// negotiated returns a client that the server has answered. Its requests time out soon only if that is what the test
// expects of them: on a busy computer, any request may take seconds.
func negotiated(t *testing.T, server *slurmtest.Server, want slurm.Kind) *rest.Client {
	t.Helper()
	client := connect(t, server, func(o *rest.Options) {
		if want == slurm.Timeout {
			o.Timeout = 2 * time.Second
		}
	})
	for {
		switch _, err := client.Diag(t.Context()); {
		case err == nil:
			return client
		case want != slurm.Timeout || !errors.Is(err, slurm.Timeout) || t.Context().Err() != nil:
			t.Fatal(err)
		}
	}
}

// oneNode is a complete answer with one drained node: the most dangerous one to misread.
const oneNode = `{"nodes":[{"name":"node-0","state":["IDLE","DRAIN"],"alloc_cpus":0,"alloc_memory":0}],` +
	`"last_update":{"set":true,"infinite":false,"number":1},"errors":[]}`

// oddAnswers are malformed and unexpected answers and their kinds. None means drained or gone.
var oddAnswers = map[string]struct {
	respond slurmtest.Responder
	want    slurm.Kind
}{
	"200 with errors and nodes": {
		slurmtest.Answer(200, strings.Replace(oneNode, `[]}`, `[{"error_number":0,"error":"No error"}]}`, 1)),
		slurm.Rejected,
	},
	"200 with errors only": {
		slurmtest.Answer(200,
			`{"errors":[{"error_number":0,"error":"No error","description":"Failure to query node"}]}`),
		slurm.Rejected,
	},
	"200 with a numbered error": {
		slurmtest.Answer(200, `{"errors":[{"error_number":2018,"error":"Invalid node name specified"}]}`),
		slurm.Rejected,
	},
	"200 without a body":       {slurmtest.Answer(200, ""), slurm.Malformed},
	"200 with null":            {slurmtest.Answer(200, "null"), slurm.Malformed},
	"200 with an empty object": {slurmtest.Answer(200, "{}"), slurm.Malformed},
	"200 without a list": {
		slurmtest.Answer(200, `{"errors":[],"last_update":{"set":true,"number":1}}`), slurm.Malformed,
	},
	"200 with null for the list": {
		slurmtest.Answer(200, `{"nodes":null,"jobs":null,"errors":[],"last_update":{"set":true,"number":1}}`),
		slurm.Malformed,
	},
	"200 without a time":          {slurmtest.Answer(200, `{"nodes":[],"jobs":[],"errors":[]}`), slurm.Malformed},
	"200 that is cut off":         {slurmtest.Answer(200, oneNode[:len(oneNode)-1]), slurm.Malformed},
	"200 with something after it": {slurmtest.Answer(200, oneNode+"{}"), slurm.Malformed},
	"200 with two lists": {
		slurmtest.Answer(200, `{"nodes":[],"jobs":[],`+oneNode[1:len(oneNode)-1]+`,"jobs":[]}`), slurm.Malformed,
	},
	"200 with garbage": {slurmtest.Answer(200, "\x00\xff<html>"), slurm.Malformed},
	"200 with wrong types": {
		slurmtest.Answer(200, `{"nodes":[{"name":1}],"jobs":[{"job_id":"x"}],"errors":[]}`), slurm.Malformed,
	},
	"200 with an incomplete record": {
		slurmtest.Answer(200,
			`{"nodes":[{"name":"node-0","state":["IDLE","DRAIN"]}],"jobs":[{"job_id":1}],"errors":[],"last_update":1}`),
		slurm.Malformed,
	},
	"204":                             {slurmtest.Answer(204, ""), slurm.Malformed},
	"304 to an unconditional request": {slurmtest.Answer(304, ""), slurm.Malformed},
	"a redirect":                      {slurmtest.Answer(302, ""), slurm.Malformed},
	"400":                             {slurmtest.Answer(400, "Unable to parse query."), slurm.Rejected},
	"401":                             {slurmtest.Answer(401, ""), slurm.Unauthorized},
	"403":                             {slurmtest.Answer(403, ""), slurm.Unauthorized},
	"404 from another server":         {slurmtest.Answer(404, "not here"), slurm.Unsupported},
	"404 with a numbered error":       {slurmtest.Answer(404, `{"errors":[{"error_number":2017}]}`), slurm.Rejected},
	"422":                             {slurmtest.Answer(422, `{"errors":[{"error_number":2018}]}`), slurm.Rejected},
	"429":                             {slurmtest.Answer(429, ""), slurm.Failed},
	"500 without a reason":            {slurmtest.Answer(500, ""), slurm.Failed},
	"500 with nodes":                  {slurmtest.Answer(500, oneNode), slurm.Failed},
	"502 from slurmrestd": {
		slurmtest.Answer(502, `{"jobs":[],"last_update":{"set":true,"number":0},"errors":[{"error_number":1800}]}`),
		slurm.ControllerDown,
	},
	"502 from a proxy": {slurmtest.Answer(502, "<html>bad gateway</html>"), slurm.Failed},
	"503":              {slurmtest.Answer(503, ""), slurm.Failed},
	"511": {
		slurmtest.Answer(511, `{"errors":[{"error_number":1007}]}`), slurm.Unauthorized,
	},
	"a broken connection":          {slurmtest.Reset, slurm.Unreachable},
	"a connection broken half-way": {slurmtest.Truncated(oneNode[:100]), slurm.Malformed},
	"an endless list":              {slurmtest.Endless, slurm.TooLarge},
	"no answer":                    {slurmtest.Hang, slurm.Timeout},
	"a slow drip":                  {slurmtest.Drip, slurm.Timeout},
}

// I9: each odd answer has a kind, and none of them means drained or gone.
func TestUnexpectedResponsesNeverMeanDrainedOrGone(t *testing.T) {
	for name, test := range oddAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := slurmtest.New(t, slurmtest.Release2605)
			server.AddNodes("node-0")
			client := negotiated(t, server, test.want)
			server.Inject(slurmtest.Fault{Respond: test.respond})
			list, err := client.Nodes(t.Context(), 0)
			check(t, "nodes", err, test.want)
			if list.Nodes != nil || list.Unchanged || list.Cursor != 0 {
				t.Errorf("a list came with the error: %+v", list)
			}
			node, err := client.Node(t.Context(), "node-0")
			if name != "200 without a time" { // a single node has no time
				check(t, "node", err, test.want)
			}
			if node.Drained() {
				t.Error("the node is drained")
			}
			jobs, err := client.Jobs(t.Context(), 0)
			if jobs.Jobs != nil || jobs.Unchanged || err == nil || errors.Is(err, slurm.NotFound) {
				t.Errorf("jobs are %+v: %v", jobs, err)
			}
		})
	}
}

// check fails the test unless err is of the wanted kind.
func check(t *testing.T, call string, err error, want slurm.Kind) {
	t.Helper()
	// After an Unsupported answer the client negotiates again, and gets the fault there.
	if errors.Is(err, slurm.Unsupported) && want == slurm.Rejected {
		return
	}
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %q", call, err, want)
	}
	if errors.Is(err, slurm.NotFound) {
		t.Errorf("%s: classified as not found: %v", call, err)
	}
}

// Whatever goes wrong with a conditional request, the result is not "unchanged" unless slurmrestd said so.
func TestUnexpectedResponsesNeverMeanUnchanged(t *testing.T) {
	for name, test := range oddAnswers {
		if name == "304 to an unconditional request" {
			continue // here the request is conditional
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := slurmtest.New(t, slurmtest.Release2411)
			client := negotiated(t, server, test.want)
			server.Inject(slurmtest.Fault{Respond: test.respond})
			if list, err := client.Nodes(t.Context(), 1); err == nil {
				t.Errorf("nodes are %+v", list)
			}
			if list, err := client.Jobs(t.Context(), 1); err == nil {
				t.Errorf("jobs are %+v", list)
			}
		})
	}
}

func TestAmbiguousUpdateErrorsAreMarked(t *testing.T) {
	for name, test := range oddAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := slurmtest.New(t, slurmtest.Release2605)
			client := negotiated(t, server, test.want)
			// Only a change that was refused as a whole, for a known reason, is certain not to have taken effect.
			certain := map[slurm.Kind]bool{slurm.Unauthorized: true, slurm.Unsupported: true}[test.want]
			server.Inject(slurmtest.Fault{Path: "nodes", Respond: test.respond})
			err := client.UpdateNodes(t.Context(), []string{"node-0", "node-1"}, slurm.NodeUpdate{State: slurm.Drain})
			if slurm.MayHaveTakenEffect(err) == certain {
				t.Errorf("%v: may have taken effect: %t", err, !certain)
			}
		})
	}
}

func TestAPIVersionIsRenegotiatedWhenSlurmrestdIsReplaced(t *testing.T) {
	server := slurmtest.New(t, slurmtest.Release2605)
	client := connect(t, server, nil)
	if _, err := client.Nodes(t.Context(), 0); err != nil || client.Info().API != "v0.0.45" {
		t.Fatalf("negotiated %+v: %v", client.Info(), err)
	}
	notServed := func(_ *slurmtest.Server, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	server.Inject(slurmtest.Fault{Times: 3, Respond: notServed}) // this call, and two attempts to negotiate
	if _, err := client.Nodes(t.Context(), 0); !errors.Is(err, slurm.Unsupported) {
		t.Errorf("error is %v", err)
	}
	if _, err := client.Nodes(t.Context(), 0); err != nil || client.Info().API != "v0.0.43" {
		t.Errorf("negotiated %+v: %v", client.Info(), err)
	}
}

func TestAPIVersionIsRenegotiatedWhenSlurmrestdIsUpgraded(t *testing.T) {
	current := slurmtest.New(t, slurmtest.Release2411)
	address := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			target, err := url.Parse(current.URL)
			if err != nil {
				t.Error(err)
			}
			request.SetURL(target)
		},
		Transport: &http.Transport{DisableKeepAlives: true},
	})
	defer address.Close()
	client := connect(t, current, func(options *rest.Options) {
		options.URL = address.URL
		options.Token = func(context.Context) (string, error) { return current.Token("slurm"), nil }
	})
	if _, err := client.Nodes(t.Context(), 0); err != nil || client.Info().API != "v0.0.42" {
		t.Fatalf("negotiated %+v: %v", client.Info(), err)
	}
	current = slurmtest.New(t, slurmtest.Release2605)
	if _, err := client.Nodes(t.Context(), 0); err != nil || client.Info().API != "v0.0.42" {
		t.Errorf("the old version, which the new slurmrestd still serves, is not used: %+v: %v", client.Info(), err)
	}
	if _, err := client.Nodes(t.Context(), 0); err != nil || client.Info().API != "v0.0.45" ||
		client.Info().Version.String() != slurmtest.Release2605 {
		t.Errorf("negotiated %+v: %v", client.Info(), err)
	}
}

func TestUnsupportedAPIVersionsAreReported(t *testing.T) {
	server := slurmtest.New(t, slurmtest.Release2605)
	client := connect(t, server, nil)
	server.Inject(slurmtest.Fault{Respond: slurmtest.Answer(404, "Unable find requested URL")})
	_, err := client.Nodes(t.Context(), 0)
	if !errors.Is(err, slurm.Unsupported) || !strings.Contains(err.Error(), "v0.0.45, v0.0.44, v0.0.43, v0.0.42") {
		t.Errorf("error is %v", err)
	}
}

func TestErrorsDoNotContainTheToken(t *testing.T) {
	const secret = "planted.canary.token"
	server := slurmtest.New(t, slurmtest.Release2605)
	client := connect(t, server, func(o *rest.Options) {
		o.Token = func(context.Context) (string, error) { return secret, nil }
	})
	echo := func(_ *slurmtest.Server, w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, `{"errors":[{"error_number":5,"error":%q,"description":%[1]q}]}`,
			r.Header.Get("X-SLURM-USER-TOKEN"))
	}
	for name, respond := range map[string]slurmtest.Responder{
		"echoed in JSON": echo,
		"echoed as text": func(_ *slurmtest.Server, w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("X-SLURM-USER-TOKEN"), http.StatusBadGateway)
		},
		"connection broken": slurmtest.Reset,
	} {
		server.ClearFaults()
		server.Inject(slurmtest.Fault{Respond: respond})
		if _, err := client.Nodes(t.Context(), 0); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInvalidURLsAreRejected(t *testing.T) {
	token := func(context.Context) (string, error) { return "", nil }
	for name, url := range map[string]string{
		"none": "", "no scheme": "slurm:6820", "another scheme": "ftp://x", "no host": "http://",
		"a user": "http://u:p@x", "a query": "http://x?a=b",
	} {
		if _, err := rest.New(rest.Options{URL: url, Token: token}); err == nil ||
			strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := rest.New(rest.Options{URL: "http://x", Token: token, TLS: &tls.Config{}}); err == nil {
		t.Error("a server that is to be verified would get tokens in plain")
	}
	if _, err := rest.New(rest.Options{URL: "http://x"}); err == nil {
		t.Error("no token source was accepted")
	}
}

// observer records the observations.
type observer struct{ seen []slurm.Observation }

func (o *observer) ObserveRequest(observation slurm.Observation) {
	o.seen = append(o.seen, observation)
}

func TestRequestsAreObserved(t *testing.T) {
	server := slurmtest.New(t, slurmtest.Release2605)
	server.AddNodes("node-0")
	var seen observer
	client := connect(t, server, func(o *rest.Options) { o.Observer = &seen })
	list, err := client.Nodes(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Nodes(t.Context(), list.Cursor+10); err != nil {
		t.Fatal(err)
	}
	_ = client.DeleteNodes(t.Context(), []string{"missing"})
	var got []string
	for _, observation := range seen.seen {
		got = append(got, observation.Call+" "+observation.Result)
		if observation.Duration <= 0 || (observation.Result != "unchanged" && observation.Received == 0) {
			t.Errorf("observation is %+v", observation)
		}
	}
	if want := "[ping ok nodes ok nodes unchanged delete-nodes not-found]"; fmt.Sprint(got) != want {
		t.Errorf("observed %v, want %s", got, want)
	}
}
