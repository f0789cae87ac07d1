// Package rest speaks to slurmrestd for the package slurm.
//
// One adapter serves all versions of the API from v0.0.42 to v0.0.45, that is Slurm 24.11 to 26.05: the parts that we use
// differ little, and the decoders take either form. The version is agreed on with the first call, the newest first.
//
// Every call goes the same way: one request with a deadline, an answer that is read as a stream and no further than a
// bound, and a meaning. The meaning is taken from what slurmctld said (its error numbers) before what HTTP said, because
// the same refusal is 422 in 26.05 and 500 in 24.11, and a success can carry errors. What is not understood is an error.
package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// apiVersions are the versions of the API that we speak, in the order of preference.
var apiVersions = []string{"v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42"}

// Defaults of Options.
const (
	// DefaultTimeout is longer than the ten seconds after which slurmrestd gives up on slurmctld and says so, and shorter
	// than what a reconcile may take.
	DefaultTimeout = 20 * time.Second
	// DefaultMaxBody is twice what Slurm's largest possible cluster, of 65,536 nodes, sends.
	DefaultMaxBody = 256 << 20
)

// A TokenSource gives the token for a request. It is asked each time, so that a renewed token is used at once.
type TokenSource func(context.Context) (string, error)

// Options say how to reach slurmrestd.
type Options struct {
	// URL is where slurmrestd listens, such as http://slurm-restapi.slurm:6820.
	URL string
	// Token gives the JWT.
	Token TokenSource
	// Metrics is where slurmctld itself listens, such as http://slurm-controller.slurm:6817, for Census; it may be empty.
	Metrics string
	// TLS is for https; nil for Go's defaults.
	TLS *tls.Config
	// Timeout bounds each request and its answer; 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxBody bounds the bytes of an answer; 0 is DefaultMaxBody.
	MaxBody int64
	// Observer is told about each request; it may be nil.
	Observer slurm.Observer
}

// A Client is a slurm.Client for slurmrestd.
type Client struct {
	base      string
	options   Options
	transport *http.Transport

	mu   sync.Mutex
	info slurm.Info
	// outdated tells that slurmrestd was replaced by one of another release since.
	outdated bool
}

var _ slurm.Client = (*Client)(nil)

// New makes a client. It does not connect: the first call does.
func New(options Options) (*Client, error) {
	parsed, err := url.Parse(options.URL)
	if err != nil {
		return nil, fmt.Errorf("parsing the URL of slurmrestd: %w", err)
	}
	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" {
		return nil, errors.New("the URL of slurmrestd must be http or https with a host, and without user and query")
	}
	if options.Token == nil {
		return nil, errors.New("slurmrestd needs a token")
	}
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	if options.MaxBody == 0 {
		options.MaxBody = DefaultMaxBody
	}
	return &Client{
		base:    strings.TrimSuffix(options.URL, "/"),
		options: options,
		transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSClientConfig:     options.TLS,
			TLSHandshakeTimeout: 5 * time.Second,
			DisableCompression:  true, // slurmrestd has none
			MaxIdleConnsPerHost: 4,
			IdleConnTimeout:     90 * time.Second,
			ForceAttemptHTTP2:   false,
		},
	}, nil
}

// Close gives back idle connections. The client may still be used.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Info is what was agreed on with slurmrestd.
func (c *Client) Info() slurm.Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

func (c *Client) setInfo(info slurm.Info) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.info, c.outdated = info, false
}

// heard makes the next call agree on a version again, when slurmrestd says that it is of another release than the one that was
// agreed with. The new one may have the agreed version too, and others that can do more.
func (c *Client) heard(release slurm.Version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outdated = c.outdated || release != slurm.Version{} && release != c.info.Version
}

// agreed is the version of the API that was agreed on; empty when it has to be agreed on first.
func (c *Client) agreed() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outdated {
		return ""
	}
	return c.info.API
}

// forget makes the next call agree on a version again, after slurmrestd was replaced by one that has not this one.
func (c *Client) forget(api string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.info.API == api {
		c.info = slurm.Info{}
	}
}

// api is the version of the API to use, agreed on with slurmrestd if need be.
func (c *Client) api(ctx context.Context) (string, error) {
	if api := c.agreed(); api != "" {
		return api, nil
	}
	for _, api := range apiVersions {
		answer, err := c.ping(ctx, api)
		if errors.Is(err, slurm.Unsupported) {
			continue
		}
		if err != nil {
			return "", err
		}
		c.setInfo(slurm.Info{API: api, Version: answer.meta.version()})
		return api, nil
	}
	return "", &slurm.Error{
		Kind: slurm.Unsupported, Op: "connect", Status: http.StatusNotFound,
		Err: fmt.Errorf("slurmrestd has none of the API versions %s", strings.Join(apiVersions, ", ")),
	}
}
