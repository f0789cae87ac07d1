// Package rest implements slurm.Client for slurmrestd.
//
// One adapter serves all API versions from v0.0.42 to v0.0.45, that is Slurm 24.11 to 26.05: the parts that we use
// differ little, and the decoders accept either form. The first call negotiates the version, newest first.
//
// Every call works the same way: one request with a deadline, an answer that is read as a stream up to a size limit,
// and a classification. slurmctld's error numbers take precedence over the HTTP status, because the same refusal is 422
// in 26.05 and 500 in 24.11, and a success can carry errors. Anything that is not understood is an error.
package rest

import (
	"cmp"
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

// apiVersions are the supported API versions, in order of preference.
var apiVersions = []string{"v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42"}

// Defaults of Options.
const (
	// DefaultTimeout is longer than the ten seconds after which slurmrestd gives up on slurmctld, and shorter than the
	// timeout of a reconcile.
	DefaultTimeout = 20 * time.Second
	// DefaultMaxBody is twice the answer for Slurm's largest possible cluster of 65,536 nodes.
	DefaultMaxBody = 256 << 20
)

// A TokenSource returns the token for a request. It is called for each request, so that a renewed token is used
// immediately.
type TokenSource func(context.Context) (string, error)

// Options describe how to reach slurmrestd.
type Options struct {
	// URL is slurmrestd's, such as https://slurm-restapi.slurm.svc:6820.
	URL string
	// Address (host:port) is where to connect to, if not to what the host of URL resolves to. A name may resolve to
	// another server's address, which would then get the token.
	Address string
	// Token returns the JWT.
	Token TokenSource
	// Metrics is slurmctld's own URL, such as http://slurm-controller.slurm:6817, for Census; it may be empty.
	// MetricsAddress is its address, as Address is URL's.
	Metrics, MetricsAddress string
	// NodeChanges asks for the Slurm nodes that have changed, which slurmrestd does not say; it may be nil.
	NodeChanges func(ctx context.Context, since string) (slurm.NodeChanges, error)
	// TLS is how slurmrestd is verified; nil for Go's defaults. With it, URL must be https: a token that is meant for a
	// verified server is never sent in plain.
	TLS *tls.Config
	// Timeout bounds each request and its answer; 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxBody limits the bytes of an answer; 0 means DefaultMaxBody.
	MaxBody int64
	// Observer receives each request; it may be nil.
	Observer slurm.Observer
}

// A Client implements slurm.Client for slurmrestd.
type Client struct {
	base      string
	options   Options
	transport *http.Transport

	mu   sync.Mutex
	info slurm.Info
	// outdated reports that slurmrestd was replaced by another release after the negotiation.
	outdated bool
}

var _ slurm.Client = (*Client)(nil)

// New returns a client. The first call connects.
func New(options Options) (*Client, error) {
	if options.Token == nil {
		return nil, errors.New("slurmrestd needs a token")
	}
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	if options.MaxBody == 0 {
		options.MaxBody = DefaultMaxBody
	}
	dial, err := dialer(options)
	if err != nil {
		return nil, err
	}
	return &Client{
		base:    strings.TrimSuffix(options.URL, "/"),
		options: options,
		transport: &http.Transport{
			Proxy:               nil, // whatever the environment says: a proxy would read the token
			DialContext:         dial,
			TLSClientConfig:     options.TLS,
			TLSHandshakeTimeout: 5 * time.Second,
			DisableCompression:  true, // slurmrestd does not compress
			MaxIdleConnsPerHost: 4,
			IdleConnTimeout:     90 * time.Second,
			ForceAttemptHTTP2:   false,
		},
	}, nil
}

// dialer returns the function that connects to the servers, at their given addresses.
func dialer(options Options) (func(ctx context.Context, network, target string) (net.Conn, error), error) {
	addresses := map[string]string{}
	for _, server := range []struct{ name, url, address string }{
		{"slurmrestd", options.URL, options.Address}, {"slurmctld", options.Metrics, options.MetricsAddress},
	} {
		if server.url == "" && server.name != "slurmrestd" {
			continue
		}
		parsed, err := url.Parse(server.url)
		if err != nil {
			return nil, fmt.Errorf("parsing the URL of %s: %w", server.name, err)
		}
		port := map[string]string{"http": "80", "https": "443"}[parsed.Scheme]
		if port == "" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" {
			return nil, fmt.Errorf("the URL of %s must be http or https with a host, and without user and query",
				server.name)
		}
		if server.name == "slurmrestd" && options.TLS != nil && parsed.Scheme != "https" {
			return nil, errors.New("the URL of slurmrestd must be https, because it is to be verified")
		}
		if server.address != "" {
			addresses[net.JoinHostPort(parsed.Hostname(), cmp.Or(parsed.Port(), port))] = server.address
		}
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return func(ctx context.Context, network, target string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, cmp.Or(addresses[target], target))
	}, nil
}

// Close closes idle connections. The client may still be used.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Info returns what was negotiated with slurmrestd.
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

// checkRelease makes the next call negotiate again if slurmrestd reports another release than the negotiated one. The
// new release may still serve the negotiated version, but also newer ones.
func (c *Client) checkRelease(release slurm.Version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outdated = c.outdated || release != slurm.Version{} && release != c.info.Version
}

// negotiated returns the negotiated API version; empty if the next call has to negotiate.
func (c *Client) negotiated() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outdated {
		return ""
	}
	return c.info.API
}

// forget makes the next call negotiate again, after slurmrestd was replaced by a release that does not serve this
// version.
func (c *Client) forget(api string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.info.API == api {
		c.info = slurm.Info{}
	}
}

// api returns the API version to use, and negotiates it if necessary.
func (c *Client) api(ctx context.Context) (string, error) {
	if api := c.negotiated(); api != "" {
		return api, nil
	}
	for _, api := range apiVersions {
		release, err := c.release(ctx, api)
		if errors.Is(err, slurm.Unsupported) {
			continue
		}
		if err != nil {
			return "", err
		}
		c.setInfo(slurm.Info{API: api, Version: release})
		return api, nil
	}
	return "", &slurm.Error{
		Kind: slurm.Unsupported, Op: "connect", Status: http.StatusNotFound,
		Err: fmt.Errorf("slurmrestd has none of the API versions %s", strings.Join(apiVersions, ", ")),
	}
}
