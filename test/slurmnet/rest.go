package slurmnet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Token returns a JWT for a user that is valid for an hour.
func (c *Cluster) Token(user string) string {
	now := time.Now()
	return c.sign(jwt.MapClaims{"sun": user, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
}

// sign returns a JWT signed with HS256.
func (c *Cluster) sign(claims jwt.MapClaims) string {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(c.jwtKey)
	if err != nil {
		panic(err) // maps of strings and numbers always encode
	}
	return token
}

// nodeState returns the state of a node from slurmrestd, with its parts joined by a plus sign.
func (c *Cluster) nodeState(ctx context.Context, name string) (string, error) {
	var answer struct {
		Nodes []struct {
			State []string `json:"state"`
		} `json:"nodes"`
	}
	if err := c.get(ctx, "node/"+name, &answer); err != nil {
		return "", err
	}
	if len(answer.Nodes) != 1 {
		return "", fmt.Errorf("slurmrestd returned %d nodes named %s", len(answer.Nodes), name)
	}
	return strings.Join(answer.Nodes[0].State, "+"), nil
}

// ping returns an error unless slurmctld answers slurmrestd.
func (c *Cluster) ping(ctx context.Context) error {
	var answer struct {
		Pings []struct {
			Responding bool `json:"responding"`
		} `json:"pings"`
	}
	if err := c.get(ctx, "ping/", &answer); err != nil {
		return err
	}
	if len(answer.Pings) != 1 || !answer.Pings[0].Responding {
		return fmt.Errorf("slurmctld does not answer slurmrestd: %+v", answer)
	}
	return nil
}

// get sends a request to slurmrestd in the only API version that all supported Slurm versions have.
func (c *Cluster) get(ctx context.Context, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/slurm/v0.0.42/"+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-SLURM-USER-TOKEN", c.Token("root"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
