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

// Token makes a JWT that lets the bearer act as the user for an hour.
func (c *Cluster) Token(user string) string {
	now := time.Now()
	return c.sign(jwt.MapClaims{"sun": user, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
}

// sign makes a JWT with HS256.
func (c *Cluster) sign(claims jwt.MapClaims) string {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(c.jwtKey)
	if err != nil {
		panic(err) // maps of strings and numbers always encode
	}
	return token
}

// nodeState asks slurmrestd for the state of a node, with its parts joined by a plus sign.
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
		return "", fmt.Errorf("slurmrestd knows %d nodes named %s", len(answer.Nodes), name)
	}
	return strings.Join(answer.Nodes[0].State, "+"), nil
}

// ping asks slurmrestd whether slurmctld answers.
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

// get asks slurmrestd in the one version of the API that all supported Slurm versions have.
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
